//! Writes a whole file, byte for byte.

use std::collections::HashSet;
use std::path::Path;

use super::diff::{self, Diff, Names};
use super::hash;
use super::resolve::{self, ResolvedTarget};
use super::{Access, Context, FileResponse, FilesError, PlannedChange, WriteRequest, WriteResponse};
use crate::environment::{Expect, FileError, Links};
use crate::request::Digest;

/// The largest file that is replaced, in bytes: its old content is compared with the new one.
const LARGEST: u64 = 256 << 20;

/// Prepares a write. Links are followed.
///
/// # Errors
/// [`FileError::Exists`] if the file must not exist, [`FilesError::Stale`] if it is not in the expected state, a
/// refusal by the access check, and errors of the environment.
pub(crate) fn plan_write(context: Context<'_>, request: &WriteRequest) -> Result<PlannedChange, FilesError> {
    let reached = resolve::write_target(context, &request.path, Links::Follow).map_err(|error| match error {
        FilesError::File(FileError::IsDirectory(path)) if request.create_only => FileError::Exists(path).into(),
        error => error,
    })?;
    let path = reached.write_target.path().to_path_buf();
    if request.create_only && reached.current.is_some() {
        return Err(FileError::Exists(path).into());
    }
    if reached.current.is_none() && names_a_directory(&request.path) {
        let (path, why) = (
            request.path.clone(),
            "it ends as a directory's does, and a file is to be written",
        );
        return Err(FileError::BadPath { path, why }.into());
    }
    let held = match reached.file()? {
        Some(node) => Some(resolve::load(context, node, LARGEST, "replaced")?),
        None if request.expect.is_some() => return Err(resolve::missing(&request.path)),
        None => None,
    };
    let (diff, preview, cut_at, expect) = match &held {
        Some(held) => {
            held.check(context, &path, request.expect.as_ref())?;
            let names = Names::same(context.workspace, &path);
            let diff = diff::of_contents(&names, &held.content, &request.content);
            let cut_at = diff.as_ref().and_then(Diff::cut_at);
            let diff = diff.map(|diff| diff.text);
            let preview = diff.clone().unwrap_or_else(|| {
                format!(
                    "{}: {} bytes become {} others, SHA-256 {}\n",
                    path.display(),
                    held.content.len(),
                    request.content.len(),
                    Digest::of(&request.content)
                )
            });
            (diff, preview, cut_at, Expect::Stamp(held.meta.stamp))
        }
        None => {
            let names = Names::made(context.workspace, &path);
            let preview = diff::of_contents(&names, &[], &request.content);
            let cut_at = preview.as_ref().and_then(Diff::cut_at);
            let preview = preview.map(|diff| diff.text).filter(|text| !text.is_empty());
            let preview = preview.unwrap_or_else(|| {
                format!(
                    "{}: a new file of {} bytes, SHA-256 {}\n",
                    path.display(),
                    request.content.len(),
                    Digest::of(&request.content)
                )
            });
            (None, preview, cut_at, Expect::Nothing)
        }
    };
    let (content, cache, created) = (request.content.clone(), context.cache.clone(), held.is_none());
    let ResolvedTarget { write_target, .. } = reached;
    Ok(PlannedChange {
        paths: vec![(Access::Write, path.clone())],
        preview,
        cut_at,
        directories: HashSet::new(),
        make: Box::new(move || {
            write_target.replace(&content, false, expect)?;
            let hash = hash::written(write_target.as_ref(), &content);
            cache.insert(&hash, &content);
            let size = content.len() as u64;
            Ok(FileResponse::Write(WriteResponse {
                note: None,
                path,
                created,
                size,
                hash,
                diff,
            }))
        }),
    })
}

/// Returns whether a path can only refer to a directory.
fn names_a_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

#[cfg(test)]
mod tests;
