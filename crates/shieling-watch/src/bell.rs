//! A bell that rings when something changed: inotify, of which nothing is used but that it told something.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// What it rings for. Removals change nothing that is judged, and a directory that is removed and made again was made.
const FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

#[derive(Debug)]
pub(crate) struct Bell {
    descriptor: OwnedFd,
    /// Whether some directory is not watched: then it always rings.
    has_gaps: AtomicBool,
}

impl Bell {
    /// A bell over no directory yet; `None` where the kernel gives none.
    pub(crate) fn new() -> Option<Self> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            descriptor,
            has_gaps: AtomicBool::new(false),
        })
    }

    /// Has it ring for a directory, which is open, also if that is moved.
    pub(crate) fn add(&self, directory: &OwnedFd) {
        if self.has_gaps.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
        // Mostly the user's bound of watched directories.
        if inotify::add_watch(&self.descriptor, name, FLAGS).is_err() {
            self.has_gaps.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it rang since this was last asked.
    pub(crate) fn rang(&self) -> bool {
        let mut rang = self.has_gaps.load(Ordering::Relaxed);
        let mut buffer = [MaybeUninit::<u8>::uninit(); 64 * 1024];
        let mut reader = Reader::new(&self.descriptor, &mut buffer);
        loop {
            match reader.next() {
                Ok(_) => rang = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return rang,
                // It tells nothing any more.
                Err(_) => return true,
            }
        }
    }
}
