//! Moves a file, a link, or a directory.

use std::path::Path;

use super::resolve::{self, ResolvedTarget};
use super::{Access, Context, FileInfo, FileResponse, FilesError, MoveRequest, PlannedChange, info, subtree};
use crate::environment::{FileError, Kind, Links};

/// Prepares a move. A link is moved itself, not its target. If the destination is a directory, the move goes into it.
///
/// # Errors
/// [`FileError::Exists`], unless the destination is a file that may be replaced; [`FilesError::Argument`] for a move
/// onto or into itself; those of [`subtree::all`]; and a refusal by the access check, since a file may be readable at
/// its new path.
pub(crate) fn plan_move(context: Context<'_>, request: &MoveRequest) -> Result<PlannedChange, FilesError> {
    let ResolvedTarget {
        write_target: from,
        current,
        kind,
    } = resolve::write_target(context, &request.from, Links::Keep)?;
    let Some(node) = current else {
        return Err(resolve::missing(&request.from));
    };
    let there = resolve::bounded(context.absolute(&request.to))?;
    let mut to = resolve::write_target(context, &request.to, Links::Keep);
    let is_directory = |node: &dyn crate::environment::Node| node.meta().is_ok_and(|meta| meta.kind == Kind::Directory);
    if context
        .files
        .node(&there, Links::Follow)
        .is_ok_and(|node| is_directory(&*node))
        && let Some(name) = from.path().file_name()
        && !to.as_ref().is_ok_and(|to| to.write_target.path() == from.path())
    {
        to = resolve::write_target(context, &request.to.join(name), Links::Keep);
    }
    let to = to?;
    let (was, target) = (from.path().to_path_buf(), to.write_target.path().to_path_buf());
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
    if to.current.is_some() && !(request.replace && to.kind == Some(Kind::File) && kind != Some(Kind::Directory)) {
        return Err(FileError::Exists(target).into());
    }
    let gone = subtree::list(context, &*node, "moved")?;
    let moved = |path: &Path| {
        let inner = path.strip_prefix(&was).expect("it is in what is moved");
        // Joining an empty path would add a trailing slash, which changes the meaning of the path.
        if inner.as_os_str().is_empty() {
            target.clone()
        } else {
            target.join(inner)
        }
    };
    let mut paths = Vec::with_capacity(gone.len() * 2);
    for thing in &gone {
        context.access.reads(&thing.path, &|| Ok(thing.meta.clone()))?;
        paths.push((Access::Write, moved(&thing.path)));
        paths.push((Access::Remove, thing.path.clone()));
    }
    let directories = subtree::directories(&gone).flat_map(|path| [path.to_path_buf(), moved(path)]);
    let directories = directories.collect();
    let replaced = to
        .current
        .as_ref()
        .map(|node| node.meta())
        .transpose()?
        .map(|meta| meta.stamp);
    let info = FileInfo {
        path: target.clone(),
        ..info::described(context, &*node, was.clone())?
    };
    Ok(PlannedChange {
        paths,
        preview: format!("moved: {} to {}\n", was.display(), target.display()),
        cut_at: None,
        directories,
        make: Box::new(move || {
            subtree::check(from.as_ref(), gone)?;
            if let Some(replaced) = replaced {
                resolve::check(to.write_target.as_ref(), replaced)?;
            }
            from.rename(to.write_target.as_ref(), replaced.is_some())?;
            Ok(FileResponse::Info(info))
        }),
    })
}

#[cfg(test)]
mod tests;
