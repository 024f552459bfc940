//! Everything that goes with a directory when it is removed or moved.

use std::path::PathBuf;

use super::{Context, FilesError};
use crate::environment::{FileError, Kind, Node};

/// More than that is not judged path by path.
const MOST: u64 = 100_000;

/// The paths of something and of all that is in it, itself first.
///
/// # Errors
/// [`FilesError::TooLarge`] for more than 100,000; [`FileError::Unsupported`] if something in it is
/// hidden, which would go with it unseen; what the files say.
pub(super) fn all(context: Context<'_>, node: &dyn Node, done: &'static str) -> Result<Vec<PathBuf>, FilesError> {
    let mut paths = vec![node.path().to_path_buf()];
    if node.meta()?.kind != Kind::Directory {
        return Ok(paths);
    }
    let mut todo = children(node)?;
    while let Some(next) = todo.pop() {
        if context.hides(&*next)? {
            let why = "a directory in which something is hidden is neither removed nor moved as a whole";
            return Err(FileError::Unsupported(why).into());
        }
        paths.push(next.path().to_path_buf());
        let size = paths.len() as u64;
        if size > MOST {
            return Err(FilesError::TooLarge {
                path: node.path().to_path_buf(),
                size,
                limit: MOST,
                done,
            });
        }
        if next.meta()?.kind == Kind::Directory {
            todo.extend(children(&*next)?);
        }
    }
    Ok(paths)
}

fn children(node: &dyn Node) -> Result<Vec<Box<dyn Node>>, FileError> {
    node.entries()?
        .into_iter()
        .map(|entry| node.child(&entry.name))
        .collect()
}
