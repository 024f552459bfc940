//! Moves what stands at a name to another, in one step.
//!
//! If one of the two directories has been moved away in that moment, or something else was moved than
//! what was looked at, it is moved back: and so is what it has replaced, which keeps a second name
//! until then. Where the file system or its owner lets it have none, the two change places, and it is
//! removed from the other. A file system that can do neither replaces nothing by a move.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::super::{FileError, Kind};
use super::error::refused;
use super::stat::{Stat, hold};
use super::temporary::Temporary;
use super::write_target::HostWriteTarget;

/// What stands where something is moved to, and how it comes back if that is taken back.
enum Replaced<'a> {
    Nothing,
    /// It has a second name.
    Named(Temporary<'a>),
    /// It stands where the other stood before.
    Exchanged(OwnedFd),
}

impl Replaced<'_> {
    /// How something is moved onto it.
    fn onto(&self, replace: bool) -> RenameFlags {
        match self {
            Self::Exchanged(_) => RenameFlags::EXCHANGE,
            Self::Nothing | Self::Named(_) if replace => RenameFlags::empty(),
            Self::Nothing | Self::Named(_) => RenameFlags::NOREPLACE,
        }
    }
}

impl HostWriteTarget {
    /// Moves what stands here to another name.
    pub(super) fn move_to(&self, to: &Self, replace: bool) -> Result<(), FileError> {
        let not_found = || FileError::NotFound(self.path.clone());
        let from = self.reach()?.ok_or_else(not_found)?;
        let (file, stat) = self.held(&from)?.ok_or_else(not_found)?;
        self.check_movable(&stat)?;
        if stat.kind() == Kind::Directory {
            self.check_open(&from)?;
        }
        let made = to.make_directories()?;
        let replaced = to.replaced(&made.directory, stat.kind(), replace)?;
        if let Replaced::Exchanged(file) = &replaced {
            self.check_removable(&from, file, to)?;
        }
        self.check_place(&from)?;
        to.check_place(&made.directory)?;
        let (old, new) = (Path::new(&self.name), Path::new(&to.name));
        let flags = replaced.onto(replace);
        rustix::fs::renameat_with(&from, old, &made.directory, new, flags).map_err(|errno| match errno {
            Errno::EXIST => FileError::Exists(to.path.clone()),
            Errno::ISDIR => FileError::IsDirectory(to.path.clone()),
            // A directory into itself. What the file system does not know is told in the same way, but
            // for the paths.
            Errno::INVAL if to.path.starts_with(&self.path) => FileError::BadPath {
                path: to.path.clone(),
                why: "a directory cannot be moved into itself",
            },
            Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP if flags == RenameFlags::EXCHANGE => FileError::Unsupported(
                "on this file system a move that replaces a file could not be taken back: delete that file first",
            ),
            errno => refused(errno, "move", &self.path),
        })?;
        let moved = self
            .check_moved(&file, &from, to, &made.directory)
            .and_then(|()| match &replaced {
                Replaced::Exchanged(was) => self.remove_exchanged(&from, was, to),
                Replaced::Nothing | Replaced::Named(_) => Ok(()),
            });
        if let Err(error) = moved {
            rustix::fs::renameat_with(&made.directory, new, &from, old, replaced.onto(false))
                .and_then(|()| match replaced {
                    Replaced::Named(second) => second.become_named(&to.name, false),
                    Replaced::Nothing | Replaced::Exchanged(_) => Ok(()),
                })
                .map_err(|errno| refused(errno, "move back", &to.path))?;
            return Err(error);
        }
        drop(replaced);
        made.keep();
        Ok(())
    }

    /// What stands here, in this directory, and is to be replaced by something of this kind.
    fn replaced<'a>(&self, directory: &'a OwnedFd, by: Kind, replace: bool) -> Result<Replaced<'a>, FileError> {
        let Some((file, there)) = self.held(directory)? else {
            return Ok(Replaced::Nothing);
        };
        self.check_free(&there)?;
        if !replace {
            return Err(FileError::Exists(self.path.clone()));
        }
        if there.kind() == Kind::Directory {
            return Err(FileError::IsDirectory(self.path.clone()));
        }
        if by == Kind::Directory {
            return Err(FileError::NotADirectory(self.path.clone()));
        }
        match Temporary::named_too(directory, &self.name, &file) {
            Ok(second) => Ok(Replaced::Named(second)),
            Err(Errno::NOENT) => Err(FileError::Changed(self.path.clone())),
            // Another owner's file, too many names already, or a file system without.
            Err(_) => Ok(Replaced::Exchanged(file)),
        }
    }

    /// Whether a file could be removed again once it has changed places with the one here: in a
    /// directory like `/tmp`, of whose files each is its owner's, not if it is somebody else's.
    fn check_removable(&self, from: &OwnedFd, file: &OwnedFd, to: &Self) -> Result<(), FileError> {
        let directory = Stat::at(from).map_err(self.said("look at"))?;
        let there = Stat::at(file).map_err(to.said("look at"))?;
        let user = rustix::process::geteuid();
        let owners = [directory.owner().0, there.owner().0];
        let sticky = directory.mode() & 0o1000 != 0;
        if sticky && !user.is_root() && !owners.contains(&user.as_raw()) {
            return Err(FileError::Permission(to.path.clone()));
        }
        Ok(())
    }

    /// Removes what was replaced, from where it has changed places to.
    fn remove_exchanged(&self, from: &OwnedFd, was: &OwnedFd, to: &Self) -> Result<(), FileError> {
        match self.is_there(from, was)? {
            Some(false) => Err(FileError::Changed(to.path.clone())),
            Some(true) => {
                rustix::fs::unlinkat(from, Path::new(&self.name), AtFlags::empty()).map_err(self.said("remove"))
            }
            // It was removed since.
            None => Ok(()),
        }
    }

    /// Whether what was looked at has been moved, from and to where it was meant.
    fn check_moved(&self, file: &OwnedFd, from: &OwnedFd, to: &Self, into: &OwnedFd) -> Result<(), FileError> {
        self.check_place(from)?;
        to.check_place(into)?;
        match to.is_there(into, file)? {
            Some(false) => Err(FileError::Changed(self.path.clone())),
            // It has been moved on since.
            Some(true) | None => Ok(()),
        }
    }

    /// Whether what stands here, in this directory, is this file; nothing if nothing does. The file is
    /// looked at anew: some file systems give it another number as it is moved.
    fn is_there(&self, directory: &OwnedFd, file: &OwnedFd) -> Result<Option<bool>, FileError> {
        let there = hold(directory, &self.name).map_err(self.said("look at"))?;
        let file = Stat::at(file).map_err(self.said("look at"))?;
        Ok(there.map(|(_, there)| there.identity() == file.identity()))
    }
}
