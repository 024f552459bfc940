//! Moves what stands at a name to another, in one step.
//!
//! If one of the two directories has been moved away in that moment, or something else was moved than
//! what was looked at, it is moved back: and so is what it has replaced, which keeps a second name
//! until then where the file system and its owner let it have one.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::super::{FileError, Kind};
use super::error::refused;
use super::look::{Look, hold};
use super::spot::HostSpot;
use super::temporary::Temporary;

impl HostSpot {
    /// Moves what stands here to another name.
    pub(super) fn move_to(&self, to: &Self, replace: bool) -> Result<(), FileError> {
        let not_found = || FileError::NotFound(self.path.clone());
        let from = self.reach()?.ok_or_else(not_found)?;
        let (file, look) = self.held(&from)?.ok_or_else(not_found)?;
        self.check_free(&look)?;
        if look.kind() == Kind::Directory {
            self.check_open(&from)?;
        }
        let made = to.make_directories()?;
        let mut second = None;
        if let Some((file, there)) = to.held(&made.directory)? {
            to.check_free(&there)?;
            if !replace {
                return Err(FileError::Exists(to.path.clone()));
            }
            if there.kind() == Kind::Directory {
                return Err(FileError::IsDirectory(to.path.clone()));
            }
            second = Temporary::named_too(&made.directory, &to.name, file).ok();
        }
        self.check_place(&from)?;
        to.check_place(&made.directory)?;
        let (old, new) = (Path::new(&self.name), Path::new(&to.name));
        let moved = if replace {
            rustix::fs::renameat(&from, old, &made.directory, new)
        } else {
            rustix::fs::renameat_with(&from, old, &made.directory, new, RenameFlags::NOREPLACE)
        };
        moved.map_err(|errno| match errno {
            Errno::EXIST => FileError::Exists(to.path.clone()),
            Errno::ISDIR => FileError::IsDirectory(to.path.clone()),
            // A directory into itself. What the file system does not know is told in the same way, but
            // for the paths.
            Errno::INVAL if to.path.starts_with(&self.path) => FileError::BadPath {
                path: to.path.clone(),
                why: "a directory cannot be moved into itself",
            },
            errno => refused(errno, "move", &self.path),
        })?;
        if let Err(error) = self.check_moved(&file, &from, to, &made.directory) {
            rustix::fs::renameat_with(&made.directory, new, &from, old, RenameFlags::NOREPLACE)
                .and_then(|()| second.map_or(Ok(()), |second| second.become_named(&to.name, false)))
                .map_err(|errno| refused(errno, "move back", &to.path))?;
            return Err(error);
        }
        drop(second);
        made.keep();
        Ok(())
    }

    /// Whether what was looked at has been moved, from and to where it was meant.
    fn check_moved(&self, file: &OwnedFd, from: &OwnedFd, to: &Self, into: &OwnedFd) -> Result<(), FileError> {
        self.check_place(from)?;
        to.check_place(into)?;
        let there = hold(into, &to.name).map_err(to.said("look at"))?;
        // Looked at anew: some file systems give a file another number as it is moved.
        let moved = Look::at(file).map_err(self.said("look at"))?;
        match there {
            Some((_, there)) if there.identity() != moved.identity() => Err(FileError::Changed(self.path.clone())),
            // It has been moved on since.
            Some(_) | None => Ok(()),
        }
    }
}
