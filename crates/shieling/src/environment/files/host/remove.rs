//! Removes what stands at a name: a directory by handles from the inside out, with no link followed.
//!
//! A directory that hides something is not removed, and not moved either: what lies over the hidden file
//! would go with its name, and the hidden file with it; elsewhere, the next sandbox may not hide it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::super::{Entry, FileError, Kind};
use super::error::refused;
use super::node::list;
use super::stat::Stat;
use super::view::View;
use super::write_target::HostWriteTarget;

/// How deep directories are looked through and removed: each level is one descriptor.
const DEEPEST: usize = 200;

/// What is done with what is found in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Whether all of it can be removed or moved, as far as can be seen.
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

impl HostWriteTarget {
    /// Removes what stands at the name.
    pub(super) fn take_away(&self, recursive: bool) -> Result<(), FileError> {
        let not_found = || FileError::NotFound(self.path.clone());
        let directory = self.reach()?.ok_or_else(not_found)?;
        let (_, stat) = self.held(&directory)?.ok_or_else(not_found)?;
        self.check_movable(&stat)?;
        let name = Path::new(&self.name);
        if stat.kind() != Kind::Directory {
            return rustix::fs::unlinkat(&directory, name, AtFlags::empty()).map_err(self.said("remove"));
        }
        match rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            // Some file systems say so by EEXIST.
            Err(Errno::NOTEMPTY | Errno::EXIST) if recursive => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                // Who sees nothing in it would not know what to make of its being full.
                self.check_open(&directory)?;
                return Err(FileError::NotEmpty(self.path.clone()));
            }
            done => return done.map_err(self.said("remove")),
        }
        // What is mounted over in it cannot be removed. Better known before half of it is gone.
        self.pass_through(&directory, Doing::Looking)?;
        self.pass_through(&directory, Doing::Removing)?;
        rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR).map_err(self.said("remove"))
    }

    /// Whether a directory that stands at the name in this one hides nothing.
    ///
    /// # Errors
    /// [`FileError::Fixed`], and what looking through it meets.
    pub(super) fn check_open(&self, directory: &OwnedFd) -> Result<(), FileError> {
        if self.view.hides() {
            self.pass_through(directory, Doing::Looking)?;
        }
        Ok(())
    }

    fn pass_through(&self, directory: &OwnedFd, doing: Doing) -> Result<(), FileError> {
        pass_through(&self.view, directory, &self.name, &self.path, doing)
    }
}

/// Empties a directory, or looks whether that can be done.
fn pass_through(view: &View, parent: &OwnedFd, name: &OsString, top: &Path, doing: Doing) -> Result<(), FileError> {
    let mut levels = vec![Level::open(parent, name, top.to_path_buf())?];
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
        let stat = match Stat::in_directory(&level.directory, &entry.name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(refused(errno, "remove", &path)),
        };
        if view.is_cover(&stat) {
            // Which one it is, and how deep, is not told.
            return Err(FileError::Fixed(top.to_path_buf()));
        }
        if stat.is_mounted() {
            return Err(FileError::Fixed(path));
        }
        match (stat.kind(), doing) {
            (Kind::Directory, _) => {
                if depth == DEEPEST {
                    return Err(FileError::Unsupported(
                        "directories that are nested 200 deep or deeper are neither removed nor moved here; use a command",
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
