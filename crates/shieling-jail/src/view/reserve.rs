//! Names that are kept taken on the host while jails are there that protect them: each by an empty
//! directory, since what is not there cannot be mounted over.
//!
//! Jails over one workspace share it. Whoever removes a directory takes every mount off it, in all
//! namespaces, and with it the others' protection. So each jail's keeper has a shared lock on it, and
//! the last to go removes it: a keeper that gets the whole lock is alone. The kernel lets go of the
//! shared lock before it looks for others', so that of two who go at once one stays behind to remove it.
//!
//! Which directories are a keeper's is told by a mark that they are made with; an empty one of the
//! user's is left alone. What a killed keeper has left behind goes with the next.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RawDir, ResolveFlags, flock};
use rustix::io::Errno;
use shieling_jail::message::Layer;
use shieling_jail::plan::Entry;

use crate::refusal::{Step, While as _};

/// A keeper's directory, in which nobody puts anything: the bit that is set for directories like `/tmp`.
const MARK: u32 = 0o1000;

/// How often a name is tried that others make and remove at the same time.
const TRIES: u32 = 1_000;
/// How often and how long, for all names together, others are waited for who have a whole lock.
const WAITS: u32 = 20;
const WAIT: Duration = Duration::from_millis(2);

/// Names that are kept taken, until they are released.
pub(crate) struct Reserved(Vec<Held>);

struct Held {
    target: PathBuf,
    /// The numbers of the device and of the directory.
    file: (u64, u64),
    /// Open, and locked where the file system has locks.
    directory: OwnedFd,
}

/// What came of one try.
enum Tried {
    Held(Held),
    /// Something of somebody else's stands there.
    Theirs,
    /// Somebody has the whole lock: a keeper that is about to remove it, or no keeper at all, since none
    /// can have a part of it then.
    Locked,
    /// Somebody has removed it in between.
    Gone,
}

/// Keeps names taken on the host that are to be protected and are not there. Runs outside, before the
/// jail is made.
pub(crate) fn reserve(entries: &[Entry]) -> Step<Reserved> {
    let mut all = Reserved(Vec::new());
    let mut waits = WAITS;
    for entry in entries {
        let Entry::Protect { target, reserve: true } = entry else {
            continue;
        };
        match hold(target, &mut waits) {
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
            if !alone {
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

/// Makes a directory or shares another keeper's; nothing where something of somebody else's stands.
fn hold(target: &Path, waits: &mut u32) -> Result<Option<Held>, Errno> {
    for _ in 0..TRIES {
        match at_parent(target, |parent, name| try_hold(target, parent, name))? {
            Tried::Held(held) => return Ok(Some(held)),
            Tried::Theirs => return Ok(None),
            Tried::Locked => {
                // It was waited for long enough for a keeper, which would be gone: it is somebody's who
                // wants us to wait, and protected as it stands.
                let Some(fewer) = waits.checked_sub(1) else {
                    return Ok(None);
                };
                *waits = fewer;
                sleep(WAIT);
            }
            Tried::Gone => {}
        }
    }
    Err(Errno::AGAIN)
}

fn try_hold(target: &Path, parent: &OwnedFd, name: &Path) -> Result<Tried, Errno> {
    let made = match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(MARK | 0o755)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Tried::Gone),
        // A file, a link, or what only others may read.
        Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) if !made => return Ok(Tried::Theirs),
        opened => opened?,
    };
    let stat = rustix::fs::fstat(&directory)?;
    if !made {
        match is_empty(&directory) {
            Err(Errno::NOENT) => return Ok(Tried::Gone),
            empty if !empty? || stat.st_mode & MARK == 0 => return Ok(Tried::Theirs),
            _ => {}
        }
    }
    match flock(&directory, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => return Ok(Tried::Locked),
        // A file system without locks: whoever made it removes it.
        Err(_) if !made => return Ok(Tried::Theirs),
        Err(_) | Ok(()) => {}
    }
    let file = (stat.st_dev, stat.st_ino);
    match file_at(parent, name) {
        Ok(found) if found == file => Ok(Tried::Held(Held {
            target: target.to_path_buf(),
            file,
            directory,
        })),
        Ok(_) | Err(Errno::NOENT) => Ok(Tried::Gone),
        Err(errno) => Err(errno),
    }
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
