//! Removing a file, a link, or a directory.

use std::path::Path;

use super::reach::{self, Reached};
use super::{Access, Context, DeleteAsk, FileAnswer, FilesError, Planned, info, inside};
use crate::environment::{Entry, FileError, Kind, Links};

/// Works out a removal. A link is removed, not what it leads to.
///
/// # Errors
/// [`FileError::NotEmpty`] for a directory with something in it, unless all of it is meant; as
/// [`inside::all`].
pub(crate) fn plan_delete(context: Context<'_>, ask: &DeleteAsk) -> Result<Planned, FilesError> {
    let Reached { spot, current, kind } = reach::spot(context, &ask.path, Links::Keep)?;
    let Some(node) = current else {
        return Err(reach::missing(&ask.path));
    };
    let path = spot.path().to_path_buf();
    if kind == Some(Kind::Directory) && !ask.recursive {
        // One that only looks empty is told of below, as one that stays.
        let is_seen = |entry: &Entry| {
            !context
                .gate
                .hides(&path.join(&entry.name), entry.kind == Kind::Directory)
        };
        if node.entries()?.iter().any(is_seen) {
            return Err(FileError::NotEmpty(path).into());
        }
    }
    let gone = inside::all(context, &*node, "removed")?;
    let info = info::told(context, &*node, path.clone())?;
    let preview = match gone.len() {
        1 => format!("removed: {}\n", path.display()),
        many => format!("removed: {} and the {} things in it\n", path.display(), many - 1),
    };
    let recursive = ask.recursive;
    Ok(Planned {
        paths: gone.iter().map(|thing| (Access::Remove, thing.path.clone())).collect(),
        preview,
        cut_at: None,
        directories: inside::directories(&gone).map(Path::to_path_buf).collect(),
        make: Box::new(move || {
            inside::check(spot.as_ref(), gone)?;
            spot.remove(recursive)?;
            Ok(FileAnswer::Info(info))
        }),
    })
}

#[cfg(test)]
mod tests;
