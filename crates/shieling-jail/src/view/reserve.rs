//! Names that are kept taken on the host while jails are there that protect them: each by an empty
//! directory, since what is not there cannot be mounted over.
//!
//! Jails over one workspace share it. Whoever removes a directory takes every mount off it, in all
//! namespaces, and with it the others' protection. So each jail's keeper has a shared lock on it, and
//! the last to go removes it: a keeper that gets the whole lock is alone. The kernel lets go of the
//! shared lock before it looks for others', so that of two who go at once one stays behind to remove it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RawDir, ResolveFlags, flock};
use rustix::io::Errno;
use shieling_jail::message::Layer;
use shieling_jail::plan::Entry;

use crate::refusal::{Step, While as _};

/// How often a name is tried that another keeper makes or removes at the same time.
const TRIES: u32 = 100;
/// How long that takes others: longer than from making a directory to locking it.
const MEANWHILE: Duration = Duration::from_millis(2);

/// Names that are kept taken, until they are released.
pub(crate) struct Reserved(Vec<Held>);

struct Held {
    target: PathBuf,
    /// The numbers of the device and of the directory.
    file: (u64, u64),
    /// Open, and locked where the file system has locks.
    directory: OwnedFd,
    /// Whether a keeper has made it, and not somebody else.
    ours: bool,
}

/// Keeps names taken on the host that are to be protected and are not there. Runs outside, before the
/// jail is made.
pub(crate) fn reserve(entries: &[Entry]) -> Step<Reserved> {
    let mut all = Reserved(Vec::new());
    for entry in entries {
        let Entry::Protect { target, reserve: true } = entry else {
            continue;
        };
        match hold(target) {
            Ok(held) => all.0.extend(held),
            // Nobody who runs as this user can take it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::ROFS) => {}
            // On a full disk, say, on which a command could make room.
            Err(errno) => {
                all.release();
                return Err(errno).or_refuse(Layer::Mount, || format!("keeping `{}` taken", target.display()));
            }
        }
    }
    Ok(all)
}

impl Reserved {
    /// The names, with the numbers of the device and of the directory.
    pub(crate) fn names(&self) -> Vec<(PathBuf, (u64, u64))> {
        self.0.iter().map(|held| (held.target.clone(), held.file)).collect()
    }

    /// What is open of it.
    pub(crate) fn open(&self) -> impl Iterator<Item = &OwnedFd> {
        self.0.iter().map(|held| &held.directory)
    }

    /// Removes what nobody else keeps, unless somebody put something into it.
    pub(crate) fn release(self) {
        for held in self.0 {
            let alone = flock(&held.directory, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK);
            if !held.ours || !alone {
                continue;
            }
            // Not empty, gone, or another one: somebody else's now.
            let _ = at_parent(&held.target, |parent, name| {
                if file_at(parent, name)? == held.file {
                    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
                }
                Ok(())
            });
        }
    }
}

/// Makes a directory or shares another keeper's; nothing where somebody else's is, with something in it.
fn hold(target: &Path) -> Result<Option<Held>, Errno> {
    for _ in 0..TRIES {
        match at_parent(target, |parent, name| try_hold(target, parent, name)) {
            // Another keeper was faster, or is about to remove it.
            Err(Errno::WOULDBLOCK) => sleep(MEANWHILE),
            done => return done,
        }
    }
    Err(Errno::WOULDBLOCK)
}

fn try_hold(target: &Path, parent: &OwnedFd, name: &Path) -> Result<Option<Held>, Errno> {
    let made = match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Err(Errno::WOULDBLOCK),
        // A file, a link, or what only others may read.
        Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) if !made => return Ok(None),
        opened => opened?,
    };
    if !made && !is_empty(&directory)? {
        return Ok(None);
    }
    let ours = made || is_shared(&directory)?;
    match flock(&directory, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => return Err(Errno::WOULDBLOCK),
        // A file system without locks: whoever made it removes it.
        Err(_) if !made => return Ok(None),
        Err(_) | Ok(()) => {}
    }
    let stat = rustix::fs::fstat(&directory)?;
    let file = (stat.st_dev, stat.st_ino);
    match file_at(parent, name) {
        Ok(found) if found == file => {}
        Ok(_) | Err(Errno::NOENT) => return Err(Errno::WOULDBLOCK),
        Err(errno) => return Err(errno),
    }
    Ok(Some(Held {
        target: target.to_path_buf(),
        file,
        directory,
        ours,
    }))
}

/// Whether a keeper has a lock on it: one that has just made it may be about to get it.
fn is_shared(directory: &OwnedFd) -> Result<bool, Errno> {
    for wait in [MEANWHILE, Duration::ZERO] {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(true),
            Err(_) => return Ok(false),
            Ok(()) => flock(directory, FlockOperation::Unlock)?,
        }
        sleep(wait);
    }
    Ok(false)
}

fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    let mut room = Vec::with_capacity(1024);
    let mut entries = RawDir::new(directory, room.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        if ![c".", c".."].contains(&entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn file_at(parent: &OwnedFd, name: &Path) -> Result<(u64, u64), Errno> {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_dev, found.st_ino))
}

/// Does something in the directory in which a target is, if no link is on the way to it.
fn at_parent<T>(target: &Path, act: impl FnOnce(&OwnedFd, &Path) -> Result<T, Errno>) -> Result<T, Errno> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(Errno::INVAL);
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    act(&parent, Path::new(name))
}
