//! Opens directories whose owner took away the right to read or search them, for as long as they are looked at.
//!
//! Tools of the user that run as the owner cannot read such a directory, until the user opens it again. By then no command
//! runs, so that what is in it has to be judged while it is closed.
//!
//! Only directories of the process's own user are opened, only by descriptor, and only their owner's rights change. The mode
//! is set back when the last holder lets go, unless somebody else has set another one meanwhile.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

/// What an owner needs to list a directory, and to replace what is in it. It is always all of it, so that two processes
/// that open one directory never take the mode of each other for the owner's.
const OPEN: u32 = 0o700;

/// How many directories are remembered that were opened once.
const REMEMBERED: usize = 100_000;

/// The directories that this process has opened. One for the process, as threads that look at once share their modes.
static OPENED: Mutex<BTreeMap<(u64, u64), Opened>> = Mutex::new(BTreeMap::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// A time of the kernel's, in nanoseconds since 1970.
pub(crate) type Time = i128;

#[derive(Debug)]
struct Opened {
    holders: usize,
    /// What the owner has set.
    mode: u32,
    /// When it changed last by somebody else's hand, and by ours.
    changed: Time,
    changed_by_us: Time,
    /// When names in it changed last, before it was opened.
    modified: Time,
}

/// Keeps a directory open to its owner.
#[derive(Debug)]
pub(crate) struct Widened {
    directory: OwnedFd,
    key: (u64, u64),
}

fn opened() -> MutexGuard<'static, BTreeMap<(u64, u64), Opened>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets a mode by descriptor, also one that was opened with `O_PATH`.
pub(crate) fn set_mode(directory: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmod(&*name, Mode::from_raw_mode(mode))
}

/// Whether the mode of this directory can be changed and set back.
fn is_ours(stat: &Stat) -> bool {
    // Who is not in its group would take this bit away for good.
    let keeps_group = || {
        stat.st_mode & 0o2000 == 0
            || stat.st_gid == rustix::process::getegid().as_raw()
            || rustix::process::getgroups().is_ok_and(|all| all.iter().any(|group| group.as_raw() == stat.st_gid))
    };
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && keeps_group()
}

impl Widened {
    /// Opens a directory to its owner. `only` says whether that is wanted for this one, by device and inode, and the mode
    /// that its owner has set.
    ///
    /// # Errors
    /// [`Errno::ACCESS`]: it is no directory, of another user, open already, or not wanted.
    pub(crate) fn new(directory: BorrowedFd<'_>, only: impl FnOnce((u64, u64), u32) -> bool) -> Result<Self, Errno> {
        // Most are open, and not by us.
        if !ANY.load(Ordering::Acquire) && rustix::fs::fstat(directory)?.st_mode & OPEN == OPEN {
            return Err(Errno::ACCESS);
        }
        let own = rustix::io::fcntl_dupfd_cloexec(directory, 3)?;
        let mut all = opened();
        let stat = rustix::fs::fstat(directory)?;
        let key = (stat.st_dev, stat.st_ino);
        if let Some(known) = all.get_mut(&key).filter(|known| known.holders > 0) {
            if !only(key, known.mode) {
                return Err(Errno::ACCESS);
            }
            known.holders += 1;
            return Ok(Self { directory: own, key });
        }
        let mode = stat.st_mode & 0o7777;
        if !is_ours(&stat) || mode & OPEN == OPEN || !only(key, mode) {
            return Err(Errno::ACCESS);
        }
        set_mode(directory, mode | OPEN)?;
        let changed = match all.get(&key) {
            Some(known) if known.changed_by_us == changed_at(&stat) => known.changed,
            _ => changed_at(&stat),
        };
        if all.len() >= REMEMBERED {
            all.retain(|_, known| known.holders > 0);
        }
        let changed_by_us = rustix::fs::fstat(directory).map_or(changed, |stat| changed_at(&stat));
        all.insert(
            key,
            Opened {
                holders: 1,
                mode,
                changed,
                changed_by_us,
                modified: modified_at(&stat),
            },
        );
        ANY.store(true, Ordering::Release);
        Ok(Self { directory: own, key })
    }
}

impl Drop for Widened {
    fn drop(&mut self) {
        let mut all = opened();
        let Some(known) = all.get_mut(&self.key) else { return };
        known.holders -= 1;
        if known.holders > 0 {
            return;
        }
        let Ok(stat) = rustix::fs::fstat(&self.directory) else {
            return;
        };
        let is_changed = changed_at(&stat) != known.changed_by_us;
        if is_changed {
            known.changed = changed_at(&stat);
        }
        // A mode that somebody else has set meanwhile stays, also if it is the same as ours: then the directory changed, and
        // no name in it.
        let was_set = is_changed && modified_at(&stat) == known.modified;
        if !was_set
            && stat.st_mode & 0o7777 == known.mode | OPEN
            && set_mode(self.directory.as_fd(), known.mode).is_ok()
        {
            known.changed_by_us = rustix::fs::fstat(&self.directory).map_or(known.changed, |stat| changed_at(&stat));
        }
    }
}

fn time(seconds: i64, nanoseconds: u64) -> Time {
    Time::from(seconds) * 1_000_000_000 + Time::from(nanoseconds)
}

fn changed_at(stat: &Stat) -> Time {
    time(stat.st_ctime, stat.st_ctime_nsec)
}

fn modified_at(stat: &Stat) -> Time {
    time(stat.st_mtime, stat.st_mtime_nsec)
}

/// When something changed last by another hand than this process's.
pub(crate) fn changed_by_others(stat: &Stat) -> Time {
    let changed = changed_at(stat);
    if !ANY.load(Ordering::Acquire) || FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return changed;
    }
    match opened().get(&(stat.st_dev, stat.st_ino)) {
        Some(known) if known.changed_by_us == changed => known.changed,
        _ => changed,
    }
}
