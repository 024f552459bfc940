//! Walks a tree by its handles, in the order of the bytes of its paths.
//!
//! ```text
//! Walk (behind a lock) ─► Batch: a few files of one or more directories, numbered ─► whoever works on them
//! ```
//!
//! Batches come in order, so that whatever is made of them can be put in order again by their numbers,
//! however many threads work. No link is entered, nothing hidden is named, and a tree of any depth needs
//! only so many handles.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use super::ignored::Ignored;
use super::{Context, FilesError, Glob};
use crate::environment::{Entry, FileError, Kind, Node};

/// The most entries of a batch.
const ENTRIES: usize = 64;

/// The most directories whose entries are in one batch, each of which holds a handle.
const PIECES: usize = 8;

/// So many of the deepest directories on the way keep their handles; of those above, each so many-th.
const KEPT: usize = 32;
const SPARSE: usize = 64;

/// What of a tree is looked at.
pub(super) struct Rules<'a> {
    pub(super) context: Context<'a>,
    pub(super) of: Glob,
    /// Whether a directory may hold anything that is wanted, by its path below the root.
    pub(super) may_hold: Box<dyn Fn(&Path) -> bool + Send + Sync + 'a>,
    /// Whether directories themselves are given, too.
    pub(super) directories: bool,
    /// Where to go on: with what stands behind this path, or with it.
    pub(super) after: Option<After>,
    /// Set once nobody waits for the answer.
    pub(super) stopped: &'a AtomicBool,
}

/// Where a walk goes on.
pub(super) struct After {
    pub(super) path: Vec<u8>,
    pub(super) inclusive: bool,
}

/// A directory whose entries are looked at.
pub(super) struct Directory {
    pub(super) node: Box<dyn Node>,
    /// Its path below the root; empty for the root.
    pub(super) below: PathBuf,
    ignored: Ignored,
}

/// Some entries of a directory, in order.
pub(super) struct Piece {
    pub(super) directory: Arc<Directory>,
    pub(super) entries: Vec<Entry>,
}

/// A share of the work.
pub(super) struct Batch {
    /// Its place in the order.
    pub(super) number: u64,
    pub(super) pieces: Vec<Piece>,
    /// How many directories and ignore files on the way could not be looked at.
    pub(super) unreadable: u64,
}

/// A directory on the way, with what of it is still to come.
struct Level {
    directory: Option<Arc<Directory>>,
    entries: std::vec::IntoIter<Entry>,
    ignored: Ignored,
    /// How much of [`Walk::below`] is its path.
    length: usize,
}

/// The walk.
pub(super) struct Walk<'a> {
    rules: &'a Rules<'a>,
    root: Arc<Directory>,
    levels: Vec<Level>,
    /// The path of the deepest level, below the root.
    below: Vec<u8>,
    given: u64,
    unreadable: u64,
}

impl<'a> Walk<'a> {
    /// A walk through a directory.
    ///
    /// # Errors
    /// [`FilesError`] if it cannot be read.
    pub(super) fn new(rules: &'a Rules<'a>, root: Box<dyn Node>) -> Result<Self, FilesError> {
        let (ignored, above) = match rules.of.ignored {
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

    /// The next share, if there is more.
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

    /// The deepest directory. Its handle may have been given up: it then is reached again from one above,
    /// step by step, each of which keeps to what stands there.
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

    /// Goes down, if the rules let it.
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
                self.rules.context.gate.reads(node.path(), &|| node.meta())?;
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

/// How many more could not be looked at, if this is why not: what has vanished or is hidden is not there.
pub(super) fn unreadable(error: &FilesError) -> u64 {
    u64::from(!matches!(error, FilesError::File(FileError::NotFound(_))))
}

impl Rules<'_> {
    /// That nobody broke the walk off.
    ///
    /// # Errors
    /// [`FilesError::Fault`], which nobody waits for.
    pub(super) fn whole(&self) -> Result<(), FilesError> {
        match self.stopped.load(atomic::Ordering::Relaxed) {
            true => Err(FilesError::Fault("it was broken off".to_owned())),
            false => Ok(()),
        }
    }

    /// The path of an entry, unless it is hidden or ignored.
    pub(super) fn admits(&self, directory: &Directory, entry: &Entry) -> Option<PathBuf> {
        let path = directory.node.path().join(&entry.name);
        let is_directory = entry.kind == Kind::Directory;
        let out = directory.ignored.leaves_out(&path, is_directory) || self.context.gate.hides(&path, is_directory);
        (!out).then_some(path)
    }

    /// A directory, with those of its entries that may be looked at, in order.
    fn open(
        &self,
        node: Box<dyn Node>,
        below: PathBuf,
        above: &Ignored,
    ) -> Result<(Directory, Vec<Entry>, u64), FileError> {
        let mut entries = node.entries()?;
        let (ignored, unread) = match self.of.ignored {
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
            (self.of.dotted || !dotted) && !git && self.is_to_come(&prefix, entry)
        });
        entries.sort_unstable_by(order);
        let directory = Directory { node, below, ignored };
        Ok((directory, entries, unread))
    }

    /// Whether an entry, or anything in it, stands behind where the walk goes on.
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

/// A directory's name is compared as if it ended with a slash: so a walk gives paths in the order of
/// their bytes (`a-b` before what is in `a`).
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
