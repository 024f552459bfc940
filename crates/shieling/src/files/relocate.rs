//! Moving a file, a link, or a directory.

use std::path::Path;

use super::reach::{self, Reached};
use super::{Access, Context, FileAnswer, FileInfo, FilesError, MoveAsk, Planned, info, inside};
use crate::environment::{FileError, Kind, Links};

/// Works out a move. A link is moved, not what it leads to; a directory gets what is moved to it inside.
///
/// # Errors
/// [`FileError::Exists`] unless a file is there that may be replaced, [`FilesError::Argument`] for a move
/// onto or into itself, as [`inside::all`], and what the gate says of whatever is moved: elsewhere it may
/// be readable.
pub(crate) fn plan_move(context: Context<'_>, ask: &MoveAsk) -> Result<Planned, FilesError> {
    let Reached {
        spot: from,
        current,
        kind,
    } = reach::spot(context, &ask.from, Links::Keep)?;
    let Some(node) = current else {
        return Err(reach::missing(&ask.from));
    };
    let there = reach::bounded(context.absolute(&ask.to))?;
    let mut to = reach::spot(context, &ask.to, Links::Keep);
    let is_directory = |node: &dyn crate::environment::Node| node.meta().is_ok_and(|meta| meta.kind == Kind::Directory);
    if context
        .files
        .node(&there, Links::Follow)
        .is_ok_and(|node| is_directory(&*node))
        && let Some(name) = from.path().file_name()
        && !to.as_ref().is_ok_and(|to| to.spot.path() == from.path())
    {
        to = reach::spot(context, &ask.to.join(name), Links::Keep);
    }
    let to = to?;
    let (was, target) = (from.path().to_path_buf(), to.spot.path().to_path_buf());
    let nonsense = |why: &str| {
        Err(FilesError::Argument {
            argument: "to",
            why: format!("`{}` {why}", target.display()),
        })
    };
    if target == was {
        return nonsense("is where it is already");
    }
    if target.starts_with(&was) {
        return nonsense("is in the directory itself that is to be moved");
    }
    if to.current.is_some() && !(ask.replace && to.kind == Some(Kind::File) && kind != Some(Kind::Directory)) {
        return Err(FileError::Exists(target).into());
    }
    let gone = inside::all(context, &*node, "moved")?;
    let moved = |path: &Path| {
        let inner = path.strip_prefix(&was).expect("it is in what is moved");
        // Nothing more for itself: a path that ends with a slash is another.
        if inner.as_os_str().is_empty() {
            target.clone()
        } else {
            target.join(inner)
        }
    };
    let mut paths = Vec::with_capacity(gone.len() * 2);
    for thing in &gone {
        context.gate.reads(&thing.path, &|| Ok(thing.meta.clone()))?;
        paths.push((Access::Write, moved(&thing.path)));
        paths.push((Access::Remove, thing.path.clone()));
    }
    let directories = inside::directories(&gone).flat_map(|path| [path.to_path_buf(), moved(path)]);
    let directories = directories.collect();
    let replaced = to
        .current
        .as_ref()
        .map(|node| node.meta())
        .transpose()?
        .map(|meta| meta.stamp);
    let info = FileInfo {
        path: target.clone(),
        ..info::told(context, &*node, was.clone())?
    };
    Ok(Planned {
        paths,
        preview: format!("moved: {} to {}\n", was.display(), target.display()),
        cut_at: None,
        directories,
        make: Box::new(move || {
            inside::check(from.as_ref(), gone)?;
            if let Some(replaced) = replaced {
                reach::check(to.spot.as_ref(), replaced)?;
            }
            from.rename(to.spot.as_ref(), replaced.is_some())?;
            Ok(FileAnswer::Info(info))
        }),
    })
}

#[cfg(test)]
mod tests;
