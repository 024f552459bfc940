//! Lists a directory.

use std::os::unix::ffi::OsStrExt as _;

use super::{Context, FilesError, ListRequest, ListResponse, cursor, info};
use crate::environment::{FileError, Kind, Links};

/// The largest number of entries in one response.
const MOST: u64 = 10_000;

/// Lists a directory. Entries that are removed in the meantime are left out.
///
/// # Errors
/// [`FilesError`]; [`FileError::NotADirectory`] for a file.
pub(crate) fn list(context: Context<'_>, request: &ListRequest) -> Result<ListResponse, FilesError> {
    let limit = cursor::bounded("limit", request.limit, MOST)?;
    let after = request
        .after
        .as_deref()
        .map(|text| cursor::read_name("after", text))
        .transpose()?;
    let directory = context.reach(&request.path, Links::Follow)?;
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
            .access
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
            .and_then(|node| info::described(context, &*node, entry.name.clone().into()));
        entries.push(match told {
            Ok(told) => told,
            // An entry without metadata, such as `/proc`, must not make the whole directory unreadable.
            Err(FileError::Unsupported(_)) => info::named(&entry),
            Err(FileError::NotFound(_)) => continue,
            Err(error) => return Err(error.into()),
        });
        last = Some(cursor::written(entry.name.as_bytes()));
    }
    Ok(ListResponse {
        path: directory.path().to_path_buf(),
        entries,
        next,
    })
}

#[cfg(test)]
mod tests;
