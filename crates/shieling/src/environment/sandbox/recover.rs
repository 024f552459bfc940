//! Hides again, while commands run, what somebody outside replaces. A cover lies over a file and not over its name, so the
//! kernel takes it off when the file is replaced or removed; until the new file is covered, commands can open it.
//!
//! ```text
//! inotify on the directories that lead to hidden names ─► a hidden name is another file ─► the jail covers it
//!                                                      └► a directory above was replaced ─► all is looked at ─► covered
//! ```
//!
//! It takes some milliseconds. What appears in a directory that holds nothing hidden is found before the next command.
//! Nothing here decides what is hidden: [`HiddenFiles`] says so.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use shieling_jail::message::Update;
use tokio::time::{Instant, sleep, sleep_until};

use super::hidden::HiddenFiles;
use crate::process::{self, Jail};

/// What is told of a directory: names that belong to another file than before.
const FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// How many directories are watched. With more, all is looked at again and again.
const MOST: usize = 16_384;
/// How often all is looked at where the kernel does not tell of changes.
const UNTOLD: Duration = Duration::from_millis(100);
/// How many events are read at once.
const EVENTS: usize = 32_768;
/// The share of the time that looks at everything may take, as a divisor.
const SHARE: u32 = 10;
/// The pause between two batches of events, so that a flood of them is read many at a time.
const PAUSE: Duration = Duration::from_millis(1);
/// How often what moved while it was covered is looked for at once. After that, it is left to the next event.
const TRIES: usize = 16;

/// Which directories lead to hidden names, and the kernel's word of what changes in them.
#[derive(Debug)]
pub(super) struct Notifier {
    /// None where the user has no inotify instance left.
    descriptor: Option<OwnedFd>,
    /// The directories by the kernel's number, and those that are watched at present.
    watched: Mutex<HashMap<i32, PathBuf>>,
    /// Whether some directory is not watched.
    has_gaps: AtomicBool,
}

/// What changed since the last time.
#[derive(Debug, Default)]
struct Changed {
    names: BTreeSet<PathBuf>,
    everywhere: bool,
    /// Whether there is more to be read.
    has_more: bool,
}

impl Notifier {
    /// Watches nothing yet.
    fn new() -> Self {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Self {
            has_gaps: AtomicBool::new(descriptor.is_none()),
            descriptor,
            watched: Mutex::default(),
        }
    }

    /// Whether some directory is not watched.
    pub(super) fn has_gaps(&self) -> bool {
        self.has_gaps.load(Ordering::Relaxed)
    }

    /// Watches the directories that lead to what is hidden now.
    pub(super) fn follow(&self, hidden: &[HiddenFiles]) {
        let Some(descriptor) = &self.descriptor else { return };
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for hidden in hidden {
            let Ok(root) = open(CWD.as_fd(), hidden.root_path(), ResolveFlags::empty()) else {
                continue;
            };
            for directory in hidden.leading() {
                let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                // Gone, or closed: something above it is watched.
                let Ok(opened) = open(root.as_fd(), super::hidden::named(&directory), beneath) else {
                    continue;
                };
                if watched.len() >= MOST {
                    return self.has_gaps.store(true, Ordering::Relaxed);
                }
                let name = format!("/proc/self/fd/{}", opened.as_raw_fd());
                match inotify::add_watch(descriptor, name, FLAGS) {
                    Ok(number) => drop(watched.insert(number, hidden.root_path().join(directory))),
                    // Usually the limit on watches per user.
                    Err(_) => return self.has_gaps.store(true, Ordering::Relaxed),
                }
            }
        }
    }

    /// What changed since this was last called.
    fn changed(&self) -> Changed {
        let mut changed = Changed {
            everywhere: self.has_gaps.load(Ordering::Relaxed),
            ..Changed::default()
        };
        let Some(descriptor) = &self.descriptor else {
            return changed;
        };
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [MaybeUninit::<u8>::uninit(); 64 * 1024];
        let mut reader = Reader::new(descriptor, &mut buffer);
        changed.has_more = true;
        for _ in 0..EVENTS {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => changed.everywhere = true,
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => drop(watched.remove(&event.wd())),
                Ok(event) => {
                    if let (Some(directory), Some(name)) = (watched.get(&event.wd()), event.file_name()) {
                        changed.names.insert(directory.join(OsStr::from_bytes(name.to_bytes())));
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => {
                    changed.has_more = false;
                    if errno != Errno::AGAIN {
                        // It tells nothing any more.
                        self.has_gaps.store(true, Ordering::Relaxed);
                        changed.everywhere = true;
                    }
                    break;
                }
            }
        }
        changed
    }
}

fn open(at: std::os::fd::BorrowedFd<'_>, path: &Path, how: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(at, path, flags, Mode::empty(), how)
}

/// Prepares to watch what a sandbox hides; nothing where nothing is hidden. Without an inotify instance, all is looked at
/// again and again.
pub(super) fn notifier(hidden: &[HiddenFiles]) -> Option<Arc<Notifier>> {
    if hidden.is_empty() {
        return None;
    }
    let notifier = Notifier::new();
    notifier.follow(hidden);
    Some(Arc::new(notifier))
}

/// What is to be told to which jail of what changed under these names, or anywhere; and whether something above a hidden
/// name did. None once there is no jail.
type Replaced = dyn Fn(&BTreeSet<PathBuf>, bool) -> Option<(Update, bool, Arc<Jail>)> + Send + Sync;
/// Takes note of what a jail was told, and what of it was not there any more.
type Done = dyn Fn(&Update, &[PathBuf]) + Send + Sync;

/// Covers again, until the sandbox is dropped, what is replaced in it.
pub(super) async fn keep_covered(notifier: Arc<Notifier>, replaced: Arc<Replaced>, done: Arc<Done>) {
    let descriptor = notifier.descriptor.as_ref().map(OwnedFd::try_clone);
    let readable = descriptor.and_then(|descriptor| process::watch(descriptor.ok()?).ok());
    if readable.is_none() {
        notifier.has_gaps.store(true, Ordering::Relaxed);
    }
    let mut look_due = false;
    let mut next_look = Instant::now();
    loop {
        let has_gaps = notifier.has_gaps.load(Ordering::Relaxed);
        let look = async {
            match (look_due, has_gaps) {
                (true, _) => sleep_until(next_look).await,
                (false, true) => sleep_until(next_look.max(Instant::now() + UNTOLD)).await,
                (false, false) => std::future::pending().await,
            }
        };
        let told = async {
            match &readable {
                Some(readable) => readable.readable().await,
                None => std::future::pending().await,
            }
        };
        let ready = tokio::select! {
            ready = told => Some(ready),
            () = look => None,
        };
        let changed = notifier.changed();
        look_due |= changed.everywhere || ready.is_none();
        match ready {
            // What is told meanwhile is not cleared with it.
            Some(Ok(mut ready)) if !changed.has_more => ready.clear_ready(),
            // The runtime ends.
            Some(Err(_)) => return,
            Some(Ok(_)) | None => {}
        }
        let mut names = changed.names;
        for _ in 0..TRIES {
            let looks = look_due && Instant::now() >= next_look;
            let began = Instant::now();
            let look = Arc::clone(&replaced);
            let found = tokio::task::spawn_blocking(move || look(&names, looks));
            let Ok(Some((update, is_above, jail))) = found.await else {
                return;
            };
            if looks {
                look_due = false;
                next_look = Instant::now() + began.elapsed() * SHARE;
            }
            look_due |= is_above;
            if update == Update::default() && !is_above {
                break;
            }
            // Where it cannot be told, the next command is refused.
            let missed = match jail.update(&update).await {
                Ok(missed) => missed,
                Err(_) => update.hide.iter().map(|hide| hide.target.clone()).collect(),
            };
            drop(jail);
            names = missed.iter().cloned().collect();
            let note = Arc::clone(&done);
            let noted = tokio::task::spawn_blocking(move || note(&update, &missed));
            if noted.await.is_err() {
                return;
            }
        }
        sleep(PAUSE).await;
    }
}
