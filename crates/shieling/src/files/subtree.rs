//! The whole content of a directory that is removed or moved.

use std::path::{Path, PathBuf};

use super::{Context, FilesError};
use crate::environment::{Entry, FileError, Kind, Meta, Node, WriteTarget};

/// The largest number of entries, each of which is judged.
const MOST: u64 = 100_000;

/// The deepest nesting of directories. A handle is held for each directory on the way and for nothing else, since a
/// process has only some thousand.
const DEEPEST: usize = 200;

/// A directory on the way, with the entries that are still to be visited.
struct Level {
    node: Box<dyn Node>,
    entries: std::vec::IntoIter<Entry>,
}

/// An entry, with its metadata at the time of the visit.
pub(super) struct SubtreeEntry {
    pub(super) path: PathBuf,
    pub(super) meta: Meta,
}

/// A path and everything below it, each directory before its entries.
pub(super) type Subtree = Vec<SubtreeEntry>;

/// Returns the directories.
pub(super) fn directories(all: &Subtree) -> impl Iterator<Item = &Path> {
    let directories = all.iter().filter(|thing| thing.meta.kind == Kind::Directory);
    directories.map(|thing| thing.path.as_path())
}

/// Lists a path and everything below it.
///
/// # Errors
/// [`FilesError::TooLarge`] for more than 100,000 entries; [`FileError::Fixed`] if one of them is hidden: its removal
/// would go unnoticed, and at another path it might no longer be hidden; [`FileError::Unsupported`] for 200 nested
/// directories; errors of the environment.
pub(super) fn list(context: Context<'_>, node: &dyn Node, done: &'static str) -> Result<Subtree, FilesError> {
    walk(node, done, |path, is_directory| {
        context.access.hides(path, is_directory)
    })
}

/// Checks that a path and everything below it is unchanged since it was listed.
///
/// # Errors
/// [`FileError::Changed`] if it is not.
pub(super) fn check(write_target: &dyn WriteTarget, mut expected: Subtree) -> Result<(), FileError> {
    let changed = || FileError::Changed(write_target.path().to_path_buf());
    let node = write_target.current()?.ok_or_else(changed)?;
    // Hidden entries were refused before, so one that exists now is a difference. An entry that cannot be read may be
    // one.
    let mut now = walk(&*node, "looked at", |_, _| false).map_err(|_| changed())?;
    // Directories list their entries in no particular order.
    let by_path = |one: &SubtreeEntry, other: &SubtreeEntry| one.path.cmp(&other.path);
    expected.sort_unstable_by(by_path);
    now.sort_unstable_by(by_path);
    let same =
        |(one, other): (&SubtreeEntry, &SubtreeEntry)| one.path == other.path && one.meta.stamp == other.meta.stamp;
    if now.len() == expected.len() && now.iter().zip(&expected).all(same) {
        Ok(())
    } else {
        Err(changed())
    }
}

fn walk(node: &dyn Node, done: &'static str, hides: impl Fn(&Path, bool) -> bool) -> Result<Subtree, FilesError> {
    let top = node.path();
    let meta = node.meta()?;
    let is_directory = meta.kind == Kind::Directory;
    let mut all = vec![SubtreeEntry {
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
        // Only directories that are entered need a handle.
        let (node, meta) = if is_directory {
            let node = directory.child(&entry.name)?;
            let meta = node.meta()?;
            (Some(node), meta)
        } else {
            (None, directory.child_meta(&entry.name)?)
        };
        all.push(SubtreeEntry { path, meta });
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
