//! Writing: a whole file, byte for byte, in the place of whatever was there.

use std::collections::HashSet;

use super::diff::{self, Names};
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
    let held = match reached.file()? {
        Some(node) => Some(reach::load(context, node, LARGEST, "replaced")?),
        None if ask.expect.is_some() => return Err(reach::missing(&ask.path)),
        None => None,
    };
    let (diff, preview, is_cut, expect) = match &held {
        Some(held) => {
            held.check(context, &path, ask.expect.as_ref())?;
            let names = Names::same(context.workspace, &path);
            let diff = diff::of_contents(&names, &held.content, &ask.content);
            let is_cut = diff.as_ref().is_some_and(|diff| diff.is_cut);
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
            (diff, preview, is_cut, Expect::Stamp(held.meta.stamp))
        }
        None => {
            let names = Names::made(context.workspace, &path);
            let preview = diff::of_contents(&names, &[], &ask.content);
            let is_cut = preview.as_ref().is_some_and(|diff| diff.is_cut);
            let preview = preview.map(|diff| diff.text).filter(|text| !text.is_empty());
            let preview = preview.unwrap_or_else(|| {
                format!(
                    "{}: a new file of {} bytes, SHA-256 {}\n",
                    path.display(),
                    ask.content.len(),
                    Digest::of(&ask.content)
                )
            });
            (None, preview, is_cut, Expect::Nothing)
        }
    };
    let (content, remembered, created) = (ask.content.clone(), context.remembered.clone(), held.is_none());
    let Reached { spot, .. } = reached;
    Ok(Planned {
        paths: vec![(Access::Write, path.clone())],
        preview,
        is_cut,
        directories: HashSet::new(),
        make: Box::new(move || {
            spot.replace(&content, false, expect)?;
            let hash = hash::written(spot.as_ref(), &content);
            remembered.keep(&hash, &content);
            let size = content.len() as u64;
            Ok(FileAnswer::Written(Written {
                path,
                created,
                size,
                hash,
                diff,
            }))
        }),
    })
}

#[cfg(test)]
mod tests;
