//! Metadata of paths, read without opening files.

use std::path::{Path, PathBuf};

use super::{Context, FileHash, FileInfo, FilesError, StatRequest};
use crate::environment::{Entry, FileError, Kind, Links, Node};
use crate::units::rfc3339;

/// Returns the metadata of a path. If it is a link, the metadata is that of the file it leads to, with the target of
/// the link. A link whose target is missing or hidden is described itself.
///
/// # Errors
/// [`FilesError`] if the path cannot be resolved.
pub(crate) fn stat(context: Context<'_>, request: &StatRequest) -> Result<FileInfo, FilesError> {
    let node = match context.reach(&request.path, Links::Follow) {
        Ok(node) => node,
        Err(nowhere) => match context.reach(&request.path, Links::Keep) {
            Ok(link) if link.meta()?.kind == Kind::Link => link,
            Ok(_) | Err(_) => return Err(nowhere),
        },
    };
    let mut told = described(context, &*node, node.path().to_path_buf())?;
    if told.kind != Kind::Link
        && let Ok(named) = context.reach(&request.path, Links::Keep)
    {
        told.target = named.target().ok();
    }
    if told.kind == Kind::File {
        // A file that may be listed but not read has no state.
        told.hash = node.open().and_then(|mut file| FileHash::of_open(&mut *file)).ok();
    }
    Ok(told)
}

/// Describes the file of a handle, under the path `shown`.
///
/// # Errors
/// [`FileError`] if the metadata cannot be read.
pub(super) fn described(context: Context<'_>, node: &dyn Node, shown: PathBuf) -> Result<FileInfo, FileError> {
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
        note: None,
    })
}

/// Describes a directory entry whose own metadata may not be read.
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
        note: None,
    }
}

/// Returns whether the target of a link exists and is visible. The result contains nothing else about the target, so
/// a link that changes afterwards does no harm.
fn leads(context: Context<'_>, link: &Path) -> bool {
    let Ok(led) = context.files.node(link, Links::Follow) else {
        return false;
    };
    context.hides(&*led).is_ok_and(|hidden| !hidden) && context.access.reads(led.path(), &|| led.meta()).is_ok()
}
