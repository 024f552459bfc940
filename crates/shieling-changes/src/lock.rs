//! Locks between processes.

use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode as Bits, OFlags};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};

/// A file that is locked until this is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct Lock(OwnedFd);

impl Lock {
    /// Locks the file of this name, which is made if it is not there; `None` if somebody has locked it.
    pub(crate) fn try_take(directory: &Directory, name: &str) -> Result<Option<Self>, ChangesError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Bits::RUSR | Bits::WUSR).doing("open", name)?;
        Self::held(file).doing("lock", name)
    }

    /// Locks a directory that was opened for this alone; `None` if somebody has locked it.
    pub(crate) fn of(directory: &Directory) -> Result<Option<Self>, Errno> {
        Self::held(rustix::io::fcntl_dupfd_cloexec(directory, 3)?)
    }

    fn held(file: OwnedFd) -> Result<Option<Self>, Errno> {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock belongs to the open file. A process that another thread starts at this moment has that file open, too,
        // until it becomes another program, so that closing it here would not yet give the lock back.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_although_a_process_that_was_started_meanwhile_has_its_file_open() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(place.path()).expect("it is there");
        let take = || Lock::try_take(&directory, "lock").expect("it can be locked");
        let lock = take().expect("nobody has it");
        assert!(take().is_none(), "somebody has it");
        let inherited = lock.0.try_clone().expect("a descriptor");
        drop(lock);
        assert!(take().is_some(), "it was given back");
        drop(inherited);
    }
}
