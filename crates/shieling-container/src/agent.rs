//! The agent program as a file of this host, for engines to mount: one file for each version, by its digest.
#![expect(clippy::disallowed_methods, reason = "engines mount files, so there has to be one")]

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use shieling_remote::agent::Program;

use crate::error::ContainerError;

/// How many files were begun.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The directory in which it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    directory: PathBuf,
    program: Program,
}

impl Agent {
    pub(crate) fn in_directory(directory: &Path) -> Result<Self, ContainerError> {
        let program = Program::carried().map_err(|error| ContainerError::Agent { why: error.to_string() })?;
        Ok(Self {
            directory: directory.to_owned(),
            program,
        })
    }

    /// What the file holds.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.program.bytes()
    }

    /// Its path, where it is written if it is not there as it should be.
    ///
    /// # Errors
    /// [`ContainerError::Agent`]: it cannot be written, or somebody else could write it.
    pub(crate) fn path(&self) -> Result<PathBuf, ContainerError> {
        let failed = |error: std::io::Error| ContainerError::Agent {
            why: format!("`{}` cannot be used: {error}", self.directory.display()),
        };
        // Engines that run as another user have to reach it.
        let mut maker = std::fs::DirBuilder::new();
        maker
            .recursive(true)
            .mode(0o755)
            .create(&self.directory)
            .map_err(failed)?;
        let directory = std::fs::canonicalize(&self.directory).map_err(failed)?;
        let path = directory.join(self.program.digest());
        if self.is_whole(&path) {
            return Ok(path);
        }
        // A start that was given up may still write its own.
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let beside = directory.join(format!("{}.{}.{number}", self.program.digest(), std::process::id()));
        let written = (|| {
            let _ = std::fs::remove_file(&beside);
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o700).open(&beside)?;
            file.write_all(self.bytes())?;
            file.set_permissions(std::fs::Permissions::from_mode(0o555))?;
            // Nothing waits for the disk: what a crash leaves of it is seen by `is_whole`.
            drop(file);
            std::fs::rename(&beside, &path)
        })();
        if let Err(error) = written {
            let _ = std::fs::remove_file(&beside);
            return Err(failed(error));
        }
        Ok(path)
    }
    /// Whether the file holds the program of this version.
    fn is_whole(&self, path: &Path) -> bool {
        let Ok(meta) = std::fs::symlink_metadata(path) else {
            return false;
        };
        meta.is_file()
            && meta.permissions().mode() & 0o777 == 0o555
            && meta.len() == self.bytes().len() as u64
            && std::fs::read(path).is_ok_and(|bytes| bytes == self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_once_leave_one_whole_file() {
        let Ok(program) = Program::carried() else {
            return shieling_testkit::prerequisite::skip("this build has no agent program");
        };
        let place = tempfile::tempdir().unwrap();
        let agent = Agent {
            directory: place.path().join("agents"),
            program,
        };
        std::thread::scope(|scope| {
            let starts = [(); 4].map(|()| scope.spawn(|| agent.path()));
            for start in starts {
                let path = start.join().unwrap().unwrap();
                assert!(agent.is_whole(&path));
            }
        });
        let left = std::fs::read_dir(place.path().join("agents")).unwrap().count();
        assert_eq!(left, 1);
    }
}
