//! Finds files by their names.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::pattern::{self, Pattern};
use super::walk::{After, Rules, Walk};
use super::{Context, FilesError, Found, Glob, GlobAsk, cursor};
use crate::environment::{Kind, Links};

/// The most paths that are given at once.
const MOST: u64 = 10_000;

/// Finds what a pattern fits: files, links (which are not followed) and whatever else is no directory; or,
/// if the pattern ends with a slash, directories, each with a slash at its end. A pattern that names
/// something with a dot at its beginning also looks at names that begin with one.
///
/// Gives up soon once `stopped` is set.
///
/// # Errors
/// [`FilesError`].
pub(crate) fn find(context: Context<'_>, ask: &GlobAsk, stopped: &AtomicBool) -> Result<Found, FilesError> {
    let limit = cursor::bounded("limit", ask.limit, MOST)?;
    let after = ask
        .after
        .as_deref()
        .map(|text| cursor::read("after", text))
        .transpose()?;
    let after = after.map(|path| cursor::raw(&path).to_vec());
    let root = context.reach(&ask.path, Links::Follow)?;
    let wanted = Pattern::parse("pattern", &ask.pattern, &[root.path(), &context.absolute(&ask.path)])?;
    let rules = Rules {
        context,
        of: Glob {
            dotted: ask.of.dotted || wanted.dotted,
            ..ask.of.clone()
        },
        may_hold: Box::new(|below| wanted.may_hold(below)),
        directories: wanted.directories,
        after: after.clone().map(|path| After { path, inclusive: false }),
        stopped,
    };
    let mut walk = Walk::new(&rules, root)?;
    let mut found = Found {
        paths: Vec::new(),
        next: None,
        unreadable: 0,
    };
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
                // A walk also gives the directories that lead to where it goes on.
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
