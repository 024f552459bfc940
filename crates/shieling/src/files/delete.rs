//! Removes a file, a link, or a directory.

use std::path::Path;

use super::resolve::{self, ResolvedTarget};
use super::{Access, Context, DeleteRequest, FileResponse, FilesError, PlannedChange, info, subtree};
use crate::environment::{Entry, FileError, Kind, Links};

/// Prepares a removal. A link is removed itself, not its target.
///
/// # Errors
/// [`FileError::NotEmpty`] for a directory with entries, unless the request is recursive; those of [`subtree::all`].
pub(crate) fn plan_delete(context: Context<'_>, request: &DeleteRequest) -> Result<PlannedChange, FilesError> {
    let ResolvedTarget {
        write_target,
        current,
        kind,
    } = resolve::write_target(context, &request.path, Links::Keep)?;
    let Some(node) = current else {
        return Err(resolve::missing(&request.path));
    };
    let path = write_target.path().to_path_buf();
    if kind == Some(Kind::Directory) && !request.recursive {
        // A directory that only looks empty, because its entries are hidden, is refused below.
        let is_seen = |entry: &Entry| {
            !context
                .access
                .hides(&path.join(&entry.name), entry.kind == Kind::Directory)
        };
        if node.entries()?.iter().any(is_seen) {
            return Err(FileError::NotEmpty(path).into());
        }
    }
    let gone = subtree::list(context, &*node, "removed")?;
    let info = info::described(context, &*node, path.clone())?;
    let preview = match gone.len() {
        1 => format!("removed: {}\n", path.display()),
        many => format!("removed: {} and the {} things in it\n", path.display(), many - 1),
    };
    let recursive = request.recursive;
    Ok(PlannedChange {
        paths: gone.iter().map(|thing| (Access::Remove, thing.path.clone())).collect(),
        preview,
        cut_at: None,
        directories: subtree::directories(&gone).map(Path::to_path_buf).collect(),
        make: Box::new(move || {
            subtree::check(write_target.as_ref(), gone)?;
            write_target.remove(recursive)?;
            Ok(FileResponse::Info(info))
        }),
    })
}

#[cfg(test)]
mod tests;
