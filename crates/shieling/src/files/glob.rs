//! Finds files by their names.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::pattern::{self, Pattern};
use super::walk::{After, Rules, Walk};
use super::{Context, FilesError, GlobRequest, GlobResponse, Include, cursor};
use crate::environment::{Kind, Links};

/// The largest number of paths in one response.
const MOST: u64 = 10_000;

/// Finds files whose paths match a pattern: regular files, links (which are not followed) and other types, but not
/// directories. A pattern with a trailing slash finds directories instead, whose paths end with a slash. A pattern
/// that names a dotfile also visits dotfiles.
///
/// Stops soon after `stopped` is set.
///
/// # Errors
/// [`FilesError`].
pub(crate) fn find(
    context: Context<'_>,
    request: &GlobRequest,
    stopped: &AtomicBool,
) -> Result<GlobResponse, FilesError> {
    let limit = cursor::bounded("limit", request.limit, MOST)?;
    let after = request
        .after
        .as_deref()
        .map(|text| cursor::read("after", text))
        .transpose()?;
    let after = after.map(|path| cursor::raw(&path).to_vec());
    let root = context.reach(&request.path, Links::Follow)?;
    let wanted = Pattern::parse(
        "pattern",
        &request.pattern,
        &[root.path(), &context.absolute(&request.path)],
    )?;
    let rules = Rules {
        context,
        include: Include {
            dotfiles: request.include.dotfiles || wanted.dotted,
            ..request.include.clone()
        },
        may_hold: Box::new(|below| wanted.may_hold(below)),
        directories: wanted.directories,
        after: after.clone().map(|path| After { path, inclusive: false }),
        stopped,
    };
    let mut found = GlobResponse {
        root: root.path().to_path_buf(),
        paths: Vec::new(),
        next: None,
        unreadable: 0,
    };
    let mut walk = Walk::new(&rules, root)?;
    while let Some(batch) = walk.next() {
        found.unreadable += batch.unreadable;
        for piece in batch.pieces {
            for entry in piece.entries {
                let below = piece.directory.below.join(&entry.name);
                let is_directory = entry.kind == Kind::Directory;
                if is_directory != wanted.directories || !wanted.matches(&below) {
                    continue;
                }
                let shown = pattern::shown(&below, is_directory);
                // A walk that continues also yields the directories on the way to its start.
                let known = after.as_ref().is_some_and(|after| shown <= *after);
                if known || rules.admits(&piece.directory, &entry).is_none() {
                    continue;
                }
                if found.paths.len() as u64 == limit {
                    found.next = found
                        .paths
                        .last()
                        .map(|last: &PathBuf| cursor::written(cursor::raw(last)));
                    return Ok(found);
                }
                found.paths.push(pattern::path(&shown).to_path_buf());
            }
        }
    }
    rules.whole()?;
    Ok(found)
}

#[cfg(test)]
mod tests;
