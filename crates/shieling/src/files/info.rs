//! What is told of something without opening it.

use std::path::{Path, PathBuf};

use super::{Context, FileHash, FileInfo, FilesError, StatAsk};
use crate::environment::{Entry, FileError, Kind, Links, Node};
use crate::units::rfc3339;

/// Looks at what something is. A link that leads nowhere, or to where nothing may be seen, stands for
/// itself.
///
/// # Errors
/// [`FilesError`].
pub(crate) fn stat(context: Context<'_>, ask: &StatAsk) -> Result<FileInfo, FilesError> {
    let node = match context.reach(&ask.path, Links::Follow) {
        Ok(node) => node,
        Err(nowhere) => match context.reach(&ask.path, Links::Keep) {
            Ok(link) if link.meta()?.kind == Kind::Link => link,
            Ok(_) | Err(_) => return Err(nowhere),
        },
    };
    let mut told = told(context, &*node, node.path().to_path_buf())?;
    if told.kind == Kind::File {
        // One that may be looked at and not be read has no state that could be expected of it.
        told.hash = node.open().and_then(|mut file| FileHash::of_open(&mut *file)).ok();
    }
    Ok(told)
}

/// What a handle stands for, under the path that is shown for it.
///
/// # Errors
/// [`FileError`].
pub(super) fn told(context: Context<'_>, node: &dyn Node, shown: PathBuf) -> Result<FileInfo, FileError> {
    let meta = node.meta()?;
    let is_link = meta.kind == Kind::Link;
    Ok(FileInfo {
        path: shown,
        kind: meta.kind,
        size: (meta.kind == Kind::File).then_some(meta.size),
        mode: format!("{:04o}", meta.mode & 0o7777),
        modified: rfc3339(meta.modified),
        target: if is_link { Some(node.target()?) } else { None },
        dangling: is_link && !leads(context, node.path()),
        hash: None,
    })
}

/// What a directory says of something that may not be looked at itself.
pub(super) fn named(entry: &Entry) -> FileInfo {
    FileInfo {
        path: entry.name.clone().into(),
        kind: entry.kind,
        size: None,
        mode: String::new(),
        modified: String::new(),
        target: None,
        dangling: false,
        hash: None,
    }
}

/// Whether a link leads to something that may be seen. Nothing more is told of where it leads, so that it
/// does no harm if it leads elsewhere by now.
fn leads(context: Context<'_>, link: &Path) -> bool {
    let Ok(led) = context.files.node(link, Links::Follow) else {
        return false;
    };
    context.hides(&*led).is_ok_and(|hidden| !hidden) && context.gate.reads(led.path(), &|| led.meta()).is_ok()
}
