//! What was held back, shown to a person and moved into the workspace at their word.
//!
//! The person is shown a copy, and what is committed is the same by its digest, or nothing is. What is decided here is only
//! what is shown and in which bounds; asking is the façade's.

use std::path::{Path, PathBuf};

use shieling_changes::{
    Action, ChangeSet, ChangesError, Choice, Committed, DiffLimits, Fingerprint, Limits, Shadows, Shown, Store, Stored,
    Surroundings,
};
use shieling_watch::{Content, KEPT};

use super::Restrictions;
use crate::environment::{AcceptError, HeldBackReview, Review};
use crate::outcome::{Changes, HeldBack};
use crate::request::{Access, Digest};

/// What one question can be about: more is for `shieling changes`.
const LIMITS: Limits = Limits {
    entries: 500,
    bytes: 64 << 20,
};

/// What of it is shown. An approver shows no more than 96 KiB, with what is escaped in it.
const DIFF: DiffLimits = DiffLimits {
    file_bytes: 64 << 10,
    bytes: 64 << 10,
};

/// What of a set lies at a path and below, unless it cannot be committed as it is.
pub(super) fn look(
    store: &Store,
    set: &ChangeSet,
    shadows: Option<&Shadows>,
    path: &Path,
) -> Result<Option<HeldBackReview>, ChangesError> {
    let shown = store.show(set, &[path.to_path_buf()], shadows, (LIMITS, DIFF))?;
    let Some(shown) = shown.filter(|shown| !shown.is_blocked) else {
        return Ok(None);
    };
    let Shown {
        diff,
        is_cut,
        paths,
        fingerprint,
        ..
    } = shown;
    let access = |action| match action {
        Action::Deleted => Access::Remove,
        Action::Added | Action::Modified | Action::Touched => Access::Write,
    };
    let paths = paths
        .into_iter()
        .map(|(path, action)| (access(action), set.workspace().join(path)));
    Ok(Some(HeldBackReview {
        review: Review {
            paths: paths.collect(),
            diff: diff.text,
            is_cut,
        },
        id: set.id().to_owned(),
        path: path.to_path_buf(),
        digest: Digest(fingerprint.bytes()),
    }))
}

/// What of a set is committed at a person's word.
pub(super) fn choice(reviewed: &HeldBackReview) -> Choice {
    Choice {
        only: vec![reviewed.path.clone()],
        accept_held_back: true,
        shown: Some((Fingerprint::from(reviewed.digest.0), DIFF)),
        ..Choice::default()
    }
}

pub(super) fn failed(error: ChangesError) -> AcceptError {
    match error {
        // It is gone, by another process.
        ChangesError::NotAsShown
        | ChangesError::NothingThere { .. }
        | ChangesError::Unknown { .. }
        | ChangesError::WrongState { .. }
        | ChangesError::Moving { .. } => AcceptError::Changed,
        error => AcceptError::Failed(error.to_string()),
    }
}

/// Looks at what was taken back out of a workspace.
pub(super) fn review(restrictions: &Restrictions, held: &HeldBack) -> Result<Option<HeldBackReview>, ChangesError> {
    let (Some(directory), Some(id)) = (&restrictions.held_back, &held.id) else {
        return Ok(None);
    };
    let store = Store::open(directory, Limits::default())?;
    let set = store.get(id)?;
    // What lies in another tree is told with its whole path.
    let path = restrictions.workspace.join(&held.path);
    match path.strip_prefix(set.workspace()) {
        Ok(path) => look(&store, &set, None, path),
        Err(_) => Ok(None),
    }
}

/// Moves what was taken back into the workspace, and tells what below which root is the user's now.
pub(super) fn accept(
    restrictions: &Restrictions,
    reviewed: &HeldBackReview,
    tell: impl FnOnce(&Path, &[(PathBuf, Content)]),
) -> Result<Changes, AcceptError> {
    let directory = restrictions.held_back.as_ref().ok_or(AcceptError::Changed)?;
    let store = Store::open(directory, Limits::default()).map_err(failed)?;
    let set = store.get(&reviewed.id).map_err(failed)?;
    let root = set.workspace().to_path_buf();
    let mut contents = Vec::new();
    for (_, path) in &reviewed.review.paths {
        let Ok(path) = path.strip_prefix(&root) else {
            return Err(AcceptError::Changed);
        };
        if let Some(stored) = set.stored(path, KEPT as u64).map_err(failed)? {
            contents.push((path.to_path_buf(), content(stored)));
        }
    }
    let surroundings = Surroundings {
        home: restrictions.home.clone(),
        ..Surroundings::default()
    };
    let committed = store.apply(set, &choice(reviewed), &surroundings);
    let Committed { id, judged } = committed.map_err(failed)?;
    let id = id.ok_or(AcceptError::Changed)?;
    tell(&root, &contents);
    let relative = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| {
            let path = root.join(path);
            path.strip_prefix(&restrictions.workspace)
                .map_or_else(|_| path.clone(), Path::to_path_buf)
        });
        Some(paths.collect())
    };
    Ok(Changes {
        id: Some(id),
        added: relative(&judged.added),
        modified: relative(&judged.modified),
        deleted: relative(&judged.deleted),
        totals: Some(judged.counts.into()),
        ..Changes::direct()
    })
}

fn content(stored: Stored) -> Content {
    match stored {
        Stored::File { content, mode } => Content::File(content, mode),
        Stored::Link(target) => Content::Link(target),
    }
}
