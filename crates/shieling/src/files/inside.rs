//! Everything that goes with a directory when it is removed or moved.

use std::path::PathBuf;

use super::{Context, FilesError};
use crate::environment::{Entry, FileError, Kind, Node};

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

/// The paths of something and of all that is in it, each directory before what is in it.
///
/// # Errors
/// [`FilesError::TooLarge`] for more than 100,000; [`FileError::Fixed`] if something in it is hidden:
/// removed it would be lost unseen, and elsewhere it might be hidden no more; [`FileError::Unsupported`]
/// for directories that are nested 200 deep; what the files say.
pub(super) fn all(context: Context<'_>, node: &dyn Node, done: &'static str) -> Result<Vec<PathBuf>, FilesError> {
    let top = node.path();
    let mut paths = vec![top.to_path_buf()];
    if node.meta()?.kind != Kind::Directory {
        return Ok(paths);
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
                return Ok(paths);
            }
            continue;
        };
        let path = directory.path().join(&entry.name);
        let is_directory = entry.kind == Kind::Directory;
        if context.gate.hides(&path, is_directory) {
            return Err(FileError::Fixed(top.to_path_buf()).into());
        }
        paths.push(path);
        let size = paths.len() as u64;
        if size > MOST {
            return Err(FilesError::TooLarge {
                path: top.to_path_buf(),
                size,
                limit: MOST,
                done,
            });
        }
        if is_directory {
            if depth == DEEPEST {
                let why =
                    "directories that are nested 200 deep or deeper are neither removed nor moved here; use a command";
                return Err(FileError::Unsupported(why).into());
            }
            let node = directory.child(&entry.name)?;
            let entries = node.entries()?.into_iter();
            above.push(Level { node, entries });
        }
    }
}
