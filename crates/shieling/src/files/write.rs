//! Writing: a whole file, byte for byte, in the place of whatever was there.

use std::collections::HashSet;
use std::path::Path;

use super::diff::{self, Diff, Names};
use super::hash;
use super::reach::{self, Reached};
use super::{Access, Context, FileAnswer, FilesError, Planned, WriteAsk, Written};
use crate::environment::{Expect, FileError, Links};
use crate::request::Digest;

/// The largest file that is replaced, in bytes: what was there is compared with what comes.
const LARGEST: u64 = 256 << 20;

/// Works out a write. Links are followed.
///
/// # Errors
/// [`FileError::Exists`] if it must not be there, [`FilesError::Stale`] if it is not as expected, what
/// the gate says, and what the files say.
pub(crate) fn plan_write(context: Context<'_>, ask: &WriteAsk) -> Result<Planned, FilesError> {
    let reached = reach::spot(context, &ask.path, Links::Follow).map_err(|error| match error {
        FilesError::File(FileError::IsDirectory(path)) if ask.create_only => FileError::Exists(path).into(),
        error => error,
    })?;
    let path = reached.spot.path().to_path_buf();
    if ask.create_only && reached.current.is_some() {
        return Err(FileError::Exists(path).into());
    }
    if reached.current.is_none() && names_a_directory(&ask.path) {
        let (path, why) = (
            ask.path.clone(),
            "it ends as a directory's does, and a file is to be written",
        );
        return Err(FileError::BadPath { path, why }.into());
    }
    let held = match reached.file()? {
        Some(node) => Some(reach::load(context, node, LARGEST, "replaced")?),
        None if ask.expect.is_some() => return Err(reach::missing(&ask.path)),
        None => None,
    };
    let (diff, preview, cut_at, expect) = match &held {
        Some(held) => {
            held.check(context, &path, ask.expect.as_ref())?;
            let names = Names::same(context.workspace, &path);
            let diff = diff::of_contents(&names, &held.content, &ask.content);
            let cut_at = diff.as_ref().and_then(Diff::cut_at);
            let diff = diff.map(|diff| diff.text);
            let preview = diff.clone().unwrap_or_else(|| {
                format!(
                    "{}: {} bytes become {} others, SHA-256 {}\n",
                    path.display(),
                    held.content.len(),
                    ask.content.len(),
                    Digest::of(&ask.content)
                )
            });
            (diff, preview, cut_at, Expect::Stamp(held.meta.stamp))
        }
        None => {
            let names = Names::made(context.workspace, &path);
            let preview = diff::of_contents(&names, &[], &ask.content);
            let cut_at = preview.as_ref().and_then(Diff::cut_at);
            let preview = preview.map(|diff| diff.text).filter(|text| !text.is_empty());
            let preview = preview.unwrap_or_else(|| {
                format!(
                    "{}: a new file of {} bytes, SHA-256 {}\n",
                    path.display(),
                    ask.content.len(),
                    Digest::of(&ask.content)
                )
            });
            (None, preview, cut_at, Expect::Nothing)
        }
    };
    let (content, remembered, created) = (ask.content.clone(), context.remembered.clone(), held.is_none());
    let Reached { spot, .. } = reached;
    Ok(Planned {
        paths: vec![(Access::Write, path.clone())],
        preview,
        cut_at,
        directories: HashSet::new(),
        make: Box::new(move || {
            spot.replace(&content, false, expect)?;
            let hash = hash::written(spot.as_ref(), &content);
            remembered.keep(&hash, &content);
            let size = content.len() as u64;
            Ok(FileAnswer::Written(Written {
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

/// Whether only a directory can be meant.
fn names_a_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

#[cfg(test)]
mod tests;
