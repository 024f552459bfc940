//! Walks a directory tree by handles, in the byte order of its paths.
//!
//! ```text
//! Walk (behind a lock) ─► Batch: files of one or more directories, numbered ─► worker threads
//! ```
//!
//! Batches are numbered in order, so that the results of any number of threads can be put in order again. Links are
//! not entered, hidden names are not returned, and a tree of any depth needs a bounded number of handles.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use super::ignored::{Ignored, unreadable};
use super::{Context, FilesError, Include};
use crate::environment::{Entry, FileError, Kind, Node};

/// The largest number of entries in a batch.
const ENTRIES: usize = 64;

/// The largest number of directories in a batch. Each holds a handle.
const PIECES: usize = 8;

/// The number of deepest directories that keep their handles; of those above, every `SPARSE`th keeps its handle.
const KEPT: usize = 32;
const SPARSE: usize = 64;

/// Which part of a tree to walk.
pub(super) struct Rules<'a> {
    pub(super) context: Context<'a>,
    pub(super) include: Include,
    /// Returns whether a directory may contain results, given its path below the root.
    pub(super) may_hold: Box<dyn Fn(&Path) -> bool + Send + Sync + 'a>,
    /// Whether directories themselves are results.
    pub(super) directories: bool,
    /// Where to continue: at this path, or after it.
    pub(super) after: Option<After>,
    /// Set once the caller no longer waits for the result.
    pub(super) stopped: &'a AtomicBool,
}

/// Where a walk continues.
pub(super) struct After {
    pub(super) path: Vec<u8>,
    pub(super) inclusive: bool,
}

/// A directory whose entries are visited.
pub(super) struct Directory {
    pub(super) node: Box<dyn Node>,
    /// The path below the root; empty for the root.
    pub(super) below: PathBuf,
    ignored: Ignored,
}

/// Consecutive entries of one directory.
pub(super) struct Piece {
    pub(super) directory: Arc<Directory>,
    pub(super) entries: Vec<Entry>,
}

/// A unit of work.
pub(super) struct Batch {
    /// Its position in the order.
    pub(super) number: u64,
    pub(super) pieces: Vec<Piece>,
    /// The number of directories and ignore files on the way that could not be read.
    pub(super) unreadable: u64,
}

/// A directory on the way, with the entries that are still to be visited.
struct Level {
    directory: Option<Arc<Directory>>,
    entries: std::vec::IntoIter<Entry>,
    ignored: Ignored,
    /// The length of its path in [`Walk::below`].
    length: usize,
}

/// A walk in progress.
pub(super) struct Walk<'a> {
    rules: &'a Rules<'a>,
    root: Arc<Directory>,
    levels: Vec<Level>,
    /// The path of the deepest level below the root.
    below: Vec<u8>,
    given: u64,
    unreadable: u64,
}

impl<'a> Walk<'a> {
    /// Starts a walk of a directory.
    ///
    /// # Errors
    /// [`FilesError`] if the directory cannot be read.
    pub(super) fn new(rules: &'a Rules<'a>, root: Box<dyn Node>) -> Result<Self, FilesError> {
        let (ignored, above) = match rules.include.ignored {
            true => (Ignored::default(), 0),
            false => Ignored::above(rules.context, &*root),
        };
        let (root, entries, unread) = rules.open(root, PathBuf::new(), &ignored)?;
        let root = Arc::new(root);
        let first = Level {
            ignored: root.ignored.clone(),
            directory: Some(Arc::clone(&root)),
            entries: entries.into_iter(),
            length: 0,
        };
        Ok(Self {
            rules,
            root,
            levels: vec![first],
            below: Vec::new(),
            given: 0,
            unreadable: above + unread,
        })
    }

    /// Returns the next batch, if there is one.
    pub(super) fn next(&mut self) -> Option<Batch> {
        let mut pieces = Vec::new();
        let mut room = ENTRIES;
        while room > 0 && pieces.len() < PIECES && !self.rules.stopped.load(atomic::Ordering::Relaxed) {
            let Some(level) = self.levels.last_mut() else { break };
            self.below.truncate(level.length);
            let mut entries = Vec::new();
            let mut enter = None;
            while entries.len() < room
                && enter.is_none()
                && let Some(entry) = level.entries.next()
            {
                if entry.kind == Kind::Directory {
                    enter = Some(entry.clone());
                }
                if entry.kind != Kind::Directory || self.rules.directories {
                    entries.push(entry);
                }
            }
            let exhausted = level.entries.as_slice().is_empty();
            room -= entries.len();
            if !entries.is_empty() || enter.is_some() {
                match self.directory() {
                    Ok(directory) => {
                        if exhausted {
                            self.levels.pop();
                        }
                        if let Some(entry) = enter {
                            self.enter(&directory, &entry);
                        }
                        if !entries.is_empty() {
                            pieces.push(Piece { directory, entries });
                        }
                    }
                    Err(error) => {
                        self.levels.pop();
                        self.unreadable += unreadable(&error.into());
                    }
                }
            } else {
                self.levels.pop();
            }
        }
        let unreadable = std::mem::take(&mut self.unreadable);
        if pieces.is_empty() && unreadable == 0 {
            return None;
        }
        let number = self.given;
        self.given += 1;
        Some(Batch {
            number,
            pieces,
            unreadable,
        })
    }

    /// Returns the deepest directory. If its handle was closed, it is opened again from a directory above, one
    /// component at a time.
    fn directory(&mut self) -> Result<Arc<Directory>, FileError> {
        let (deepest, above) = self.levels.split_last_mut().expect("asked for a level that is there");
        if let Some(directory) = &deepest.directory {
            return Ok(Arc::clone(directory));
        }
        let nearest = above.iter().rev().find_map(|level| level.directory.as_ref());
        let from = nearest.unwrap_or(&self.root);
        let way = &self.below[from.below.as_os_str().len()..];
        let mut node: Option<Box<dyn Node>> = None;
        for name in way.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let name = OsStr::from_bytes(name);
            node = Some(node.as_ref().unwrap_or(&from.node).child(name)?);
        }
        let node = node.expect("a level below another has a name");
        let directory = Arc::new(Directory {
            node,
            below: OsStr::from_bytes(&self.below).into(),
            ignored: deepest.ignored.clone(),
        });
        deepest.directory = Some(Arc::clone(&directory));
        Ok(directory)
    }

    /// Enters a directory, if the rules permit.
    fn enter(&mut self, parent: &Directory, entry: &Entry) {
        let below = parent.below.join(&entry.name);
        if !(self.rules.may_hold)(&below) || self.rules.admits(parent, entry).is_none() {
            return;
        }
        let opened = parent
            .node
            .child(&entry.name)
            .map_err(FilesError::from)
            .and_then(|node| {
                self.rules.context.access.reads(node.path(), &|| node.meta())?;
                Ok(self.rules.open(node, below, &parent.ignored)?)
            });
        let (directory, entries, unread) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.unreadable += unreadable(&error);
                return;
            }
        };
        self.unreadable += unread;
        self.below = directory.below.as_os_str().as_bytes().to_vec();
        self.levels.push(Level {
            ignored: directory.ignored.clone(),
            directory: Some(Arc::new(directory)),
            entries: entries.into_iter(),
            length: self.below.len(),
        });
        if let Some(far) = self.levels.len().checked_sub(KEPT + 1)
            && far % SPARSE != 0
        {
            self.levels[far].directory = None;
        }
    }
}

impl Rules<'_> {
    /// Checks that the walk was not stopped.
    ///
    /// # Errors
    /// [`FilesError::Fault`], which no caller sees.
    pub(super) fn whole(&self) -> Result<(), FilesError> {
        match self.stopped.load(atomic::Ordering::Relaxed) {
            true => Err(FilesError::Fault("it was broken off".to_owned())),
            false => Ok(()),
        }
    }

    /// Returns the path of an entry, unless it is hidden or ignored.
    pub(super) fn admits(&self, directory: &Directory, entry: &Entry) -> Option<PathBuf> {
        let path = directory.node.path().join(&entry.name);
        let is_directory = entry.kind == Kind::Directory;
        let out = directory.ignored.leaves_out(&path, is_directory) || self.context.access.hides(&path, is_directory);
        (!out).then_some(path)
    }

    /// Opens a directory and returns its visible entries in order.
    fn open(
        &self,
        node: Box<dyn Node>,
        below: PathBuf,
        above: &Ignored,
    ) -> Result<(Directory, Vec<Entry>, u64), FileError> {
        let mut entries = node.entries()?;
        let (ignored, unread) = match self.include.ignored {
            true => (Ignored::default(), 0),
            false => above.with(self.context, &*node, Some(&entries)),
        };
        let mut prefix = below.as_os_str().as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        entries.retain(|entry| {
            let dotted = entry.name.as_bytes().starts_with(b".");
            let git = entry.kind == Kind::Directory && entry.name == ".git";
            (self.include.dotfiles || !dotted) && !git && self.is_to_come(&prefix, entry)
        });
        entries.sort_unstable_by(order);
        let directory = Directory { node, below, ignored };
        Ok((directory, entries, unread))
    }

    /// Returns whether an entry, or anything below it, comes after the start of the walk.
    fn is_to_come(&self, prefix: &[u8], entry: &Entry) -> bool {
        let Some(after) = &self.after else { return true };
        let path = [prefix, entry.name.as_bytes(), end(entry)].concat();
        let within = entry.kind == Kind::Directory && after.path.starts_with(&path);
        match path.cmp(&after.path) {
            Ordering::Less => within,
            Ordering::Equal => after.inclusive || within,
            Ordering::Greater => true,
        }
    }
}

/// Compares two entries. A directory sorts as if its name ended with a slash, which gives the byte order of whole
/// paths (`a-b` comes before the entries of `a`).
fn order(one: &Entry, other: &Entry) -> Ordering {
    let (first, second) = (one.name.as_bytes(), other.name.as_bytes());
    let common = first.len().min(second.len());
    let rest = |name: &[u8], entry: &Entry| name.get(common).or(end(entry).first()).copied();
    first[..common]
        .cmp(&second[..common])
        .then_with(|| rest(first, one).cmp(&rest(second, other)))
        .then_with(|| first.len().cmp(&second.len()))
}

fn end(entry: &Entry) -> &'static [u8] {
    if entry.kind == Kind::Directory { b"/" } else { b"" }
}
