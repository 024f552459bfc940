//! A bell that rings when something changed: inotify. It says where, so that a look while commands run need not go
//! through everything; the look before an outcome trusts nothing but its silence.

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

/// What it rings for. Removals change nothing that is judged, and a directory that is removed and made again was made.
const FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// How many places are remembered between two looks. If there are more, all is looked at.
const PLACES: usize = 4_096;

/// How many events are told at once.
const EVENTS: usize = 32_768;

#[derive(Debug)]
pub(crate) struct Bell {
    descriptor: OwnedFd,
    /// Whether some directory is not watched: then it always rings.
    has_gaps: AtomicBool,
    /// Where each watched directory was when it was last listed, by the kernel's number of the watch.
    watched: Mutex<HashMap<i32, PathBuf>>,
}

/// Where it rang.
#[derive(Debug, Default)]
pub(crate) struct Rung {
    /// What may have changed, as it was called when the kernel noted it.
    pub(crate) places: BTreeSet<PathBuf>,
    /// Directories that may be new where they are.
    pub(crate) directories: BTreeSet<PathBuf>,
    /// Whether some of them may have been moved.
    pub(crate) has_moves: bool,
    /// Whether it is not known where, or in too many places.
    pub(crate) everywhere: bool,
}

impl Rung {
    pub(crate) fn is_empty(&self) -> bool {
        !self.everywhere && self.places.is_empty() && self.directories.is_empty()
    }

    /// Remembers that it rang, and not where.
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
            // The directory itself: its mode, say, by which it is open now.
            None => {
                self.directories.insert(directory.to_path_buf());
            }
        }
        if self.places.len() + self.directories.len() > PLACES {
            self.spread();
        }
    }
}

impl Bell {
    /// A bell over no directory yet; `None` where the kernel gives none.
    pub(crate) fn new() -> Option<Self> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            descriptor,
            has_gaps: AtomicBool::new(false),
            watched: Mutex::default(),
        })
    }

    /// Has it ring for a directory, which is open and at this path, also if that is moved.
    pub(crate) fn add(&self, directory: &OwnedFd, path: &Path) {
        if self.has_gaps() {
            return;
        }
        let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
        // What it rings for at once is read after its place is known.
        let mut watched = self.watched();
        match inotify::add_watch(&self.descriptor, name, FLAGS) {
            Ok(number) => {
                watched.insert(number, path.to_path_buf());
            }
            // Mostly the user's bound of watched directories.
            Err(_) => self.has_gaps.store(true, Ordering::Relaxed),
        }
    }

    /// Whether it cannot tell of everything.
    pub(crate) fn has_gaps(&self) -> bool {
        self.has_gaps.load(Ordering::Relaxed)
    }

    /// Adds where it rang since this was last asked. What comes faster than it can be told is told the next time.
    pub(crate) fn listen(&self, rung: &mut Rung) {
        if self.has_gaps() {
            rung.spread();
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
                        rung.spread();
                    } else if let Some(directory) = watched.get(&event.wd()) {
                        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                        rung.add(directory, name, flags);
                    } else {
                        rung.spread();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // It tells nothing any more.
                Err(_) => {
                    self.has_gaps.store(true, Ordering::Relaxed);
                    return rung.spread();
                }
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<i32, PathBuf>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
