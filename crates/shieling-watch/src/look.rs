//! Looks at directories: lists what is in them, and finds what of it matters.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::num::NonZero;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use shieling_gate::{Concern, Gate, Kind, is_object_store};

use crate::notifier::Notifier;
use crate::tree::{self, Directory, KEPT, Kept, Live, Stamp, Time, is_young};

/// How many directories are looked at by one gate.
const BATCH: usize = 32;

/// A directory that is to be looked at.
#[derive(Debug, Clone)]
pub(crate) struct Ahead {
    pub(crate) path: PathBuf,
    /// Whether the directory above it changed since the beginning.
    above_changed: bool,
    /// Whether it, or one above it, may have been moved here since.
    may_be_moved: bool,
}

impl Ahead {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            above_changed: false,
            may_be_moved: false,
        }
    }
}

/// What was found in a directory.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) ahead: Ahead,
    /// Of the directory itself, from before it was read.
    pub(crate) stamp: Stamp,
    /// The directories in it, with their inodes.
    pub(crate) directories: Vec<(PathBuf, u64)>,
    /// What matters. Without content, unless that was asked for.
    pub(crate) matter: Vec<(PathBuf, Kept)>,
    /// What matters and changed while it was looked at.
    pub(crate) unsure: Vec<PathBuf>,
    /// Whether it may change, or have changed, without another stamp: it is listed again at the next look.
    pub(crate) is_young: bool,
    /// Whether its owner has closed it.
    pub(crate) was_closed: bool,
}

impl Listed {
    /// A directory in which nothing can be looked at.
    pub(crate) fn unread(ahead: Ahead) -> Self {
        Self {
            ahead,
            stamp: Stamp::NONE,
            directories: Vec::new(),
            matter: Vec::new(),
            unsure: Vec::new(),
            is_young: true,
            was_closed: true,
        }
    }

    /// The directories in it, to be looked at.
    pub(crate) fn next(&self, since: Time) -> impl Iterator<Item = Ahead> {
        let is_changed = self.stamp.changed >= since;
        let may_be_moved = self.may_be_moved(since);
        self.directories.iter().map(move |(path, _)| Ahead {
            path: path.clone(),
            above_changed: is_changed,
            may_be_moved,
        })
    }

    /// A directory that is moved changes, and so does the one that it is moved into.
    pub(crate) fn may_be_moved(&self, since: Time) -> bool {
        self.ahead.may_be_moved || self.ahead.above_changed && self.stamp.changed >= since
    }
}

/// Whether there is no directory at a path any more.
pub(crate) fn is_gone(errno: Errno) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].contains(&errno)
}

/// Looks into a directory.
pub(crate) fn list(
    live: &Live,
    gate: &Gate<'_>,
    notifier: Option<&Notifier>,
    ahead: Ahead,
    with_content: bool,
) -> Result<Listed, Errno> {
    let directory = live.directory(&ahead.path)?;
    if let Some(notifier) = notifier {
        // Before it is read, so that nothing is missed in between.
        notifier.add(&directory, &ahead.path);
    }
    let stamp = Stamp::of(&rustix::fs::fstat(&directory)?);
    let mut listed = Listed {
        stamp,
        // The stamp of one that we open is ours, so that it does not tell what changes at this moment.
        is_young: directory.was_closed() || is_young(stamp.changed),
        was_closed: directory.was_closed(),
        ..Listed::unread(ahead)
    };
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let path = listed.ahead.path.join(name);
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        // What cannot be told is taken for what matters.
        let concern = gate.concern(&path).unwrap_or(Concern::Content);
        let is_directory = kind == FileType::Directory;
        if is_directory && !is_object_store(&path) {
            listed.directories.push((path.clone(), entry.ino()));
        }
        let is_plain = is_directory || kind == FileType::RegularFile;
        if is_plain && concern == Concern::Nothing {
            continue;
        }
        let is_read = with_content && concern == Concern::Content;
        match keep(&directory, name, is_read) {
            Some(kept) => listed.matter.push((path, kept)),
            // Somebody has closed it again meanwhile.
            None if is_shut(&directory, name) => {
                return Err(Errno::ACCESS);
            }
            None => listed.unsure.push(path),
        }
    }
    Ok(listed)
}

/// Whether the names in a directory cannot be used.
fn is_shut(directory: &Directory, name: &OsStr) -> bool {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_err_and(|errno| errno == Errno::ACCESS)
}

/// Looks at a name in a directory. Nothing if it went, or changes at this moment.
fn keep(directory: &Directory, name: &OsStr, with_content: bool) -> Option<Kept> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let stamp = Stamp::of(&stat);
    // Now, and not once it was read: what is written after that has a later stamp, or one that is young.
    let is_young = is_young(stamp.changed);
    let kind = match tree::kind_of(&stat) {
        Some(kind) => kind,
        None => tree::link(directory.as_fd(), name).ok()?,
    };
    let mut content = None;
    if with_content && kind == Kind::File {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // Who may not read it is not led by it either.
        if let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) {
            content = tree::read(&file, KEPT).ok();
            let is_same = rustix::fs::fstat(&file).is_ok_and(|stat| Stamp::of(&stat) == stamp);
            if !is_same {
                return None;
            }
        }
    }
    Some(Kept {
        entry: tree::entry(kind, &stat),
        stamp,
        content,
        is_young,
    })
}

/// Whether a directory is looked at before the first command begins, however long that takes on a busy machine: what git
/// reads of the repository at the top. Of what a command has replaced nobody knows what it said, and all of it would be new.
fn is_urgent(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.starts_with(".git") && path.iter().count() <= 2
}

/// The first look at a tree.
pub(crate) struct First<'f> {
    pub(crate) live: &'f Live,
    pub(crate) notifier: Option<&'f Notifier>,
    pub(crate) since: Time,
    /// A gate over the tree as it is.
    pub(crate) gate: &'f (dyn Fn() -> Gate<'f> + Sync),
    pub(crate) ahead: VecDeque<Ahead>,
    /// How many directories are looked at at most.
    pub(crate) most: usize,
    pub(crate) seen: usize,
}

impl First<'_> {
    /// Looks on until then, or until all is seen, and hands over what is found.
    pub(crate) fn go(&mut self, until: Option<Instant>, found: &mut dyn FnMut(Listed)) {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(4);
        while !self.ahead.is_empty() && self.seen < self.most {
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            let parallel = until.is_none() && self.ahead.len() >= 2 * BATCH && threads > 1;
            let batches: Vec<Vec<Ahead>> = if is_late {
                let urgent = self.ahead.iter().position(|ahead| is_urgent(&ahead.path));
                let Some(urgent) = urgent.and_then(|at| self.ahead.remove(at)) else {
                    return;
                };
                vec![vec![urgent]]
            } else if parallel {
                let share = self.ahead.len().div_ceil(threads);
                let mut all: Vec<Ahead> = self.ahead.drain(..).collect();
                let mut batches = Vec::new();
                while !all.is_empty() {
                    batches.push(all.split_off(all.len().saturating_sub(share)));
                }
                batches
            } else {
                let share = self.ahead.len().min(BATCH);
                vec![self.ahead.drain(..share).collect()]
            };
            let (live, notifier, gate) = (self.live, self.notifier, self.gate);
            let look = move |batch: Vec<Ahead>| -> Vec<Listed> {
                let mut listed = Vec::with_capacity(batch.len());
                for batch in batch.chunks(BATCH) {
                    let gate = gate();
                    listed.extend(batch.iter().filter_map(|ahead| {
                        match list(live, &gate, notifier, ahead.clone(), true) {
                            Ok(listed) => Some(listed),
                            Err(errno) if is_gone(errno) => None,
                            // Closed to us, and so to commands and to the user's tools. Once it is open, it is listed.
                            Err(_) => {
                                live.note_closed_before(&ahead.path);
                                Some(Listed::unread(ahead.clone()))
                            }
                        }
                    }));
                }
                listed
            };
            let listed: Vec<Listed> = match parallel {
                true => std::thread::scope(|scope| {
                    let threads: Vec<_> = batches
                        .into_iter()
                        .map(|batch| scope.spawn(move || look(batch)))
                        .collect();
                    threads
                        .into_iter()
                        .flat_map(|thread| thread.join().expect("looking does not panic"))
                        .collect()
                }),
                false => batches.into_iter().flat_map(look).collect(),
            };
            for one in listed {
                self.seen += 1;
                for next in one.next(self.since) {
                    // Commands come to repositories first.
                    match next.path.iter().any(|name| name == ".git") {
                        true => self.ahead.push_front(next),
                        false => self.ahead.push_back(next),
                    }
                }
                found(one);
            }
        }
    }
}
