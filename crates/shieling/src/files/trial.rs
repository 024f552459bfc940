//! A directory of this host for tests, with a gate that hides what a test says.

#![expect(clippy::disallowed_methods, reason = "the tests make the files that are found")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, FileType, Mode};

use super::{Context, FilesError, Found, Gate, GlobAsk, GrepAsk, Grepped, Look, Remembered};
use crate::environment::{Environment as _, FileError, Files, Local, Shell};

/// The directory `w` of a temporary one, as a workspace.
pub(super) struct Trial {
    directory: tempfile::TempDir,
    workspace: PathBuf,
    files: Arc<dyn Files>,
    remembered: Remembered,
}

/// Hides what is called `secret`, with all that is in it; forbids what is called `forbidden`.
impl Gate for Trial {
    fn hides(&self, path: &Path, _: bool) -> bool {
        path.iter().any(|name| name == "secret")
    }

    fn reads(&self, path: &Path, _: Look<'_>) -> Result<(), FilesError> {
        match path.file_name() {
            Some(name) if name == "forbidden" => Err(FileError::Permission(path.to_path_buf()).into()),
            Some(_) | None => Ok(()),
        }
    }
}

impl Trial {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().canonicalize().unwrap().join("w");
        fs::create_dir(&workspace).unwrap();
        let local = Local::new(Shell::find(None).unwrap()).with_workspace(&workspace);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let files = runtime.block_on(local.files()).unwrap();
        Self {
            directory,
            workspace,
            files,
            remembered: Remembered::default(),
        }
    }

    /// One with these files, of which those without content are directories.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let trial = Self::new();
        for (name, content) in files {
            trial.put(name, content);
        }
        trial
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// A place beside the workspace.
    pub(super) fn outside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(super) fn put(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.workspace.join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn directory(&self, name: &str) {
        fs::create_dir_all(self.workspace.join(name)).unwrap();
    }

    pub(super) fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.workspace.join(name)).unwrap();
    }

    pub(super) fn fifo(&self, name: &str) {
        rustix::fs::mknodat(CWD, self.workspace.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            files: &*self.files,
            gate: self,
            remembered: &self.remembered,
            workspace: &self.workspace,
        }
    }

    pub(super) fn find(&self, ask: &GlobAsk) -> Result<Found, FilesError> {
        super::find(self.context(), ask, &AtomicBool::new(false))
    }

    /// The paths that a pattern finds.
    pub(super) fn paths(&self, pattern: &str) -> Vec<String> {
        let found = self.find(&GlobAsk::new(pattern)).unwrap();
        assert_eq!(found.next, None);
        found.paths.iter().map(|path| path.display().to_string()).collect()
    }

    pub(super) fn grep(&self, ask: &GrepAsk) -> Result<Grepped, FilesError> {
        super::grep(self.context(), ask, &AtomicBool::new(false))
    }

    /// What a search for a pattern gives: `path:line:text`, with `-` for lines beside those that match.
    pub(super) fn hits(&self, ask: &GrepAsk) -> Vec<String> {
        let grepped = self.grep(ask).unwrap();
        assert_eq!(grepped.next, None);
        written(&grepped)
    }
}

/// The lines of an answer.
pub(super) fn written(grepped: &Grepped) -> Vec<String> {
    let hits = grepped.hits.iter().map(|hit| {
        let sign = if hit.matched { ':' } else { '-' };
        let number = hit
            .line
            .or(hit.count)
            .map_or(String::new(), |number| format!("{sign}{number}"));
        let text = hit.text.as_ref().map_or(String::new(), |text| format!("{sign}{text}"));
        format!("{}{number}{text}", hit.path.display())
    });
    hits.collect()
}

pub(super) fn search(pattern: &str) -> GrepAsk {
    GrepAsk {
        limit: 1_000,
        ..GrepAsk::new(pattern)
    }
}
