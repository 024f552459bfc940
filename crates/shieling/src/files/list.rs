//! Lists a directory.

use std::os::unix::ffi::OsStrExt as _;

use super::{Context, FilesError, ListAsk, Listed, cursor, info};
use crate::environment::{FileError, Kind, Links};

/// The most entries that are given at once.
const MOST: u64 = 10_000;

/// Lists a directory. What vanishes meanwhile is left out.
///
/// # Errors
/// [`FilesError`]; [`FileError::NotADirectory`] for a file.
pub(crate) fn list(context: Context<'_>, ask: &ListAsk) -> Result<Listed, FilesError> {
    let limit = cursor::bounded("limit", ask.limit, MOST)?;
    let after = ask
        .after
        .as_deref()
        .map(|text| cursor::read_name("after", text))
        .transpose()?;
    let directory = context.reach(&ask.path, Links::Follow)?;
    let mut names = directory.entries()?;
    names.retain(|entry| {
        after
            .as_ref()
            .is_none_or(|after| entry.name.as_bytes() > after.as_bytes())
    });
    names.sort_unstable_by(|one, other| one.name.as_bytes().cmp(other.name.as_bytes()));

    let mut entries = Vec::new();
    let mut last = None;
    let mut next = None;
    for entry in names {
        if context
            .gate
            .hides(&directory.path().join(&entry.name), entry.kind == Kind::Directory)
        {
            continue;
        }
        if entries.len() as u64 == limit {
            next = last;
            break;
        }
        let told = directory
            .child(&entry.name)
            .and_then(|node| info::told(context, &*node, entry.name.clone().into()));
        entries.push(match told {
            Ok(told) => told,
            // One thing that is no file, such as `/proc`, hides none of the others.
            Err(FileError::Unsupported(_)) => info::named(&entry),
            Err(FileError::NotFound(_)) => continue,
            Err(error) => return Err(error.into()),
        });
        last = Some(cursor::written(entry.name.as_bytes()));
    }
    Ok(Listed {
        path: directory.path().to_path_buf(),
        entries,
        next,
    })
}

#[cfg(test)]
mod tests;
