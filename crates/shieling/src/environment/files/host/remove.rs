//! Removes what stands at a name: a directory by handles from the inside out, with no link followed.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::super::{Entry, FileError, Kind};
use super::error::refused;
use super::look::Look;
use super::node::list;
use super::spot::HostSpot;

/// How deep directories are removed with what is in them: each level is one descriptor.
const DEEPEST: usize = 200;

/// What is done with what is found in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Whether all of it can be removed, as far as can be seen.
    Looking,
    /// It is removed.
    Removing,
}

/// A directory that is being emptied.
struct Level {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    left: Vec<Entry>,
}

impl HostSpot {
    /// Removes what stands at the name.
    pub(super) fn take_away(&self, recursive: bool) -> Result<(), FileError> {
        let not_found = || FileError::NotFound(self.path.clone());
        let directory = self.reach()?.ok_or_else(not_found)?;
        let (_, look) = self.held(&directory)?.ok_or_else(not_found)?;
        self.check_free(&look)?;
        let name = Path::new(&self.name);
        if look.kind() != Kind::Directory {
            return rustix::fs::unlinkat(&directory, name, AtFlags::empty()).map_err(self.said("remove"));
        }
        match rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            // Some file systems say so by EEXIST.
            Err(Errno::NOTEMPTY | Errno::EXIST) if recursive => {}
            Err(Errno::EXIST) => return Err(FileError::NotEmpty(self.path.clone())),
            done => return done.map_err(self.said("remove")),
        }
        // What is mounted over in it cannot be removed. Better known before half of it is gone.
        empty(&directory, &self.name, &self.path, Doing::Looking)?;
        empty(&directory, &self.name, &self.path, Doing::Removing)?;
        rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR).map_err(self.said("remove"))
    }
}

/// Empties a directory, or looks whether that can be done.
fn empty(parent: &OwnedFd, name: &OsString, path: &Path, doing: Doing) -> Result<(), FileError> {
    let mut levels = vec![Level::open(parent, name, path.to_path_buf())?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { break };
        let Some(entry) = level.left.pop() else {
            let Some(done) = levels.pop() else { break };
            if let (Some(above), Doing::Removing) = (levels.last(), doing) {
                unlink(above, &done.name, AtFlags::REMOVEDIR)?;
            }
            continue;
        };
        let path = level.path.join(&entry.name);
        let look = match Look::in_directory(&level.directory, &entry.name) {
            Ok(look) => look,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(refused(errno, "remove", &path)),
        };
        if look.is_mounted() {
            return Err(FileError::ReadOnly(path));
        }
        match (look.kind(), doing) {
            (Kind::Directory, _) => {
                if depth == DEEPEST {
                    return Err(FileError::Unsupported(
                        "directories that are nested 200 deep or deeper are not removed here; use `rm -r`",
                    ));
                }
                // A directory that became something else meanwhile is refused here.
                let next = level.enter(entry.name, path)?;
                levels.push(next);
            }
            (Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device, Doing::Removing) => {
                unlink(level, &entry.name, AtFlags::empty())?;
            }
            (Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device, Doing::Looking) => {}
        }
    }
    Ok(())
}

fn unlink(level: &Level, name: &OsString, flags: AtFlags) -> Result<(), FileError> {
    match rustix::fs::unlinkat(&level.directory, Path::new(name), flags) {
        // Somebody else has removed it.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(refused(errno, "remove", &level.path.join(name))),
    }
}

impl Level {
    fn open(parent: &OwnedFd, name: &OsString, path: PathBuf) -> Result<Self, FileError> {
        let said = |errno| refused(errno, "remove", &path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(parent, Path::new(name), flags, Mode::empty()).map_err(said)?;
        let left = list(&directory).map_err(said)?;
        Ok(Self {
            directory,
            name: name.clone(),
            path,
            left,
        })
    }

    fn enter(&self, name: OsString, path: PathBuf) -> Result<Self, FileError> {
        Self::open(&self.directory, &name, path)
    }
}
