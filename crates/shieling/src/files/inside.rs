//! Everything that goes with a directory when it is removed or moved.

use std::path::{Path, PathBuf};

use super::{Context, FilesError};
use crate::environment::{Entry, FileError, Kind, Meta, Node, Spot};

/// More than that is not judged path by path.
const MOST: u64 = 100_000;

/// How deep directories may stand in each other: a handle is held for each on the way, and for nothing
/// else, since a process has but some thousand.
const DEEPEST: usize = 200;

/// A directory that is looked through, with what of it is still to come.
struct Level {
    node: Box<dyn Node>,
    entries: std::vec::IntoIter<Entry>,
}

/// Something, as it stood when it was looked at.
pub(super) struct Thing {
    pub(super) path: PathBuf,
    pub(super) meta: Meta,
}

/// Something and all that is in it, each directory before what is in it.
pub(super) type All = Vec<Thing>;

/// The directories among them.
pub(super) fn directories(all: &All) -> impl Iterator<Item = &Path> {
    let directories = all.iter().filter(|thing| thing.meta.kind == Kind::Directory);
    directories.map(|thing| thing.path.as_path())
}

/// Something and all that is in it.
///
/// # Errors
/// [`FilesError::TooLarge`] for more than 100,000; [`FileError::Fixed`] if something in it is hidden:
/// removed it would be lost unseen, and elsewhere it might be hidden no more; [`FileError::Unsupported`]
/// for directories that are nested 200 deep; what the files say.
pub(super) fn all(context: Context<'_>, node: &dyn Node, done: &'static str) -> Result<All, FilesError> {
    walk(node, done, |path, is_directory| context.gate.hides(path, is_directory))
}

/// Sees to it that what stands at a place is still what was looked at, and so is all that is in it:
/// nothing more, nothing less, nothing else.
///
/// # Errors
/// [`FileError::Changed`].
pub(super) fn check(spot: &dyn Spot, mut expected: All) -> Result<(), FileError> {
    let changed = || FileError::Changed(spot.path().to_path_buf());
    let node = spot.current()?.ok_or_else(changed)?;
    // What is hidden was not there, and would be a difference now. What cannot be looked at any more
    // could be.
    let mut now = walk(&*node, "looked at", |_, _| false).map_err(|_| changed())?;
    // Directories are told in no order.
    let by_path = |one: &Thing, other: &Thing| one.path.cmp(&other.path);
    expected.sort_unstable_by(by_path);
    now.sort_unstable_by(by_path);
    let same = |(one, other): (&Thing, &Thing)| one.path == other.path && one.meta.stamp == other.meta.stamp;
    if now.len() == expected.len() && now.iter().zip(&expected).all(same) {
        Ok(())
    } else {
        Err(changed())
    }
}

fn walk(node: &dyn Node, done: &'static str, hides: impl Fn(&Path, bool) -> bool) -> Result<All, FilesError> {
    let top = node.path();
    let meta = node.meta()?;
    let is_directory = meta.kind == Kind::Directory;
    let mut all = vec![Thing {
        path: top.to_path_buf(),
        meta,
    }];
    if !is_directory {
        return Ok(all);
    }
    let mut entries = node.entries()?.into_iter();
    let mut above: Vec<Level> = Vec::new();
    loop {
        let depth = above.len();
        let (directory, next) = match above.last_mut() {
            Some(level) => (&*level.node, level.entries.next()),
            None => (node, entries.next()),
        };
        let Some(entry) = next else {
            if above.pop().is_none() {
                return Ok(all);
            }
            continue;
        };
        let path = directory.path().join(&entry.name);
        let is_directory = entry.kind == Kind::Directory;
        if hides(&path, is_directory) {
            return Err(FileError::Fixed(top.to_path_buf()).into());
        }
        // A handle only for what is looked into.
        let (node, meta) = if is_directory {
            let node = directory.child(&entry.name)?;
            let meta = node.meta()?;
            (Some(node), meta)
        } else {
            (None, directory.child_meta(&entry.name)?)
        };
        all.push(Thing { path, meta });
        let size = all.len() as u64;
        if size > MOST {
            return Err(FilesError::TooLarge {
                path: top.to_path_buf(),
                size,
                limit: MOST,
                done,
            });
        }
        if let Some(node) = node {
            if depth == DEEPEST {
                let why =
                    "directories that are nested 200 deep or deeper are neither removed nor moved here; use a command";
                return Err(FileError::Unsupported(why).into());
            }
            let entries = node.entries()?.into_iter();
            above.push(Level { node, entries });
        }
    }
}
