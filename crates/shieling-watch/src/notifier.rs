//! Reports which paths changed, through inotify, so that a scan while commands run need not read everything. The scan
//! before an outcome relies on it only for the fact that nothing changed.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// The events that are reported. Removals change nothing that is judged, and recreating a directory is a creation.
const FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// The most paths that are collected between two scans. With more, the next scan is a full one.
const PLACES: usize = 4_096;

/// The most events that are read at once.
const EVENTS: usize = 32_768;

#[derive(Debug)]
pub(crate) struct Notifier {
    descriptor: OwnedFd,
    /// Whether some directory is not watched. Then every scan is a full one.
    has_gaps: AtomicBool,
    /// The path of each watched directory when it was last listed, by its inotify watch descriptor.
    watched: Mutex<HashMap<i32, PathBuf>>,
}

/// The paths that were reported since the last scan.
#[derive(Debug, Default)]
pub(crate) struct Notified {
    /// Paths that may have changed, under their names at the time of the event.
    pub(crate) places: BTreeSet<PathBuf>,
    /// Directories that may be new at their path.
    pub(crate) directories: BTreeSet<PathBuf>,
    /// Whether some of them may have been moved.
    pub(crate) has_moves: bool,
    /// Whether the paths are unknown or too many.
    pub(crate) everywhere: bool,
}

impl Notified {
    pub(crate) fn is_empty(&self) -> bool {
        !self.everywhere && self.places.is_empty() && self.directories.is_empty()
    }

    /// Forgets the paths: everything may have changed.
    pub(crate) fn spread(&mut self) {
        *self = Self {
            everywhere: true,
            ..Self::default()
        };
    }

    fn add(&mut self, directory: &Path, name: Option<&OsStr>, flags: ReadFlags) {
        if self.everywhere {
            return;
        }
        let is_directory = flags.contains(ReadFlags::ISDIR);
        match name {
            Some(name) if is_directory => {
                self.has_moves |= flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO);
                self.directories.insert(directory.join(name));
            }
            Some(name) => {
                self.places.insert(directory.join(name));
            }
            // The directory itself, such as a new mode that makes it readable.
            None => {
                self.directories.insert(directory.to_path_buf());
            }
        }
        if self.places.len() + self.directories.len() > PLACES {
            self.spread();
        }
    }
}

impl Notifier {
    /// Creates a notifier that watches nothing yet; `None` if the kernel refuses one.
    pub(crate) fn new() -> Option<Self> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            descriptor,
            has_gaps: AtomicBool::new(false),
            watched: Mutex::default(),
        })
    }

    /// Watches an open directory at this path. The watch stays with the directory when it is moved.
    pub(crate) fn add(&self, directory: impl AsFd, path: &Path) {
        if self.has_gaps() {
            return;
        }
        let name = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        // The lock is taken first: an event is not read before its path is known.
        let mut watched = self.watched();
        match inotify::add_watch(&self.descriptor, name, FLAGS) {
            Ok(number) => {
                watched.insert(number, path.to_path_buf());
            }
            // Usually the limit on watches per user.
            Err(_) => self.has_gaps.store(true, Ordering::Relaxed),
        }
    }

    /// Whether some directories are not watched.
    pub(crate) fn has_gaps(&self) -> bool {
        self.has_gaps.load(Ordering::Relaxed)
    }

    /// Adds the paths reported since the last call. Events beyond the bound are left for the next call.
    pub(crate) fn listen(&self, notified: &mut Notified) {
        if self.has_gaps() {
            notified.spread();
        }
        let mut watched = self.watched();
        let mut buffer = [MaybeUninit::<u8>::uninit(); 64 * 1024];
        let mut reader = Reader::new(&self.descriptor, &mut buffer);
        for _ in 0..EVENTS {
            match reader.next() {
                Ok(event) => {
                    let flags = event.events();
                    if flags.contains(ReadFlags::IGNORED) {
                        watched.remove(&event.wd());
                    } else if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                        notified.spread();
                    } else if let Some(directory) = watched.get(&event.wd()) {
                        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                        notified.add(directory, name, flags);
                    } else {
                        notified.spread();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // It tells nothing any more.
                Err(_) => {
                    self.has_gaps.store(true, Ordering::Relaxed);
                    return notified.spread();
                }
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<i32, PathBuf>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
