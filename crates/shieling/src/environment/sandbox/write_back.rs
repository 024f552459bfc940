//! A workspace of which commands elsewhere have a copy: what they changed in it comes back, all of it or nothing.
//!
//! ```text
//! begin ─► the workspace is copied, entry by entry: seen ─► commands ─► what differs: layer, gone ─► commit
//! ```
//!
//! What comes back is a change set, as of a staged workspace: judged, and committed in steps that can be taken back.
//! What the user changed meanwhile is a conflict: then nothing is committed, and the set waits.

use std::path::{Path, PathBuf};

use shieling_changes::{ChangeSet, ChangesError, CopyRecorder, Judged, Limits, Mode, Node, Rule, Store, Surroundings};

use super::stage;
use crate::outcome::{ChangeState, Changes};

/// What comes back from a copy of a workspace.
#[derive(Debug)]
pub struct WriteBack {
    store: Store,
    /// None once it was committed.
    set: Option<ChangeSet>,
    recorder: Option<CopyRecorder>,
    surroundings: Surroundings,
}

/// What is asked of a [`WriteBack`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedWorkspace {
    /// The workspace, absolute and without links.
    pub workspace: PathBuf,
    /// The directory that change sets are stored in, absolute and without links. It has to be in the same mount as the
    /// workspace, and not inside it; its parent exists.
    pub sets: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Paths in the workspace that decide what commands may do. What is changed there is held back.
    pub fixed: Vec<PathBuf>,
}

impl WriteBack {
    /// Begins, before anything is copied. Dropping it removes all that is stored of it, unless changes wait.
    ///
    /// # Errors
    /// [`ChangesError`]: nothing can be stored, or `sets` and the workspace are in different mounts.
    pub fn begin(copied: &CopiedWorkspace) -> Result<Self, ChangesError> {
        let workspace = &copied.workspace;
        let store = Store::open(&copied.sets, Limits::default())?;
        let set = store.create(workspace, Mode::Commit)?;
        let fixed = copied.fixed.iter().filter_map(|path| path.strip_prefix(workspace).ok());
        Ok(Self {
            recorder: Some(set.record_copy()?),
            surroundings: Surroundings {
                home: copied.home.clone(),
                leads: stage::leads(workspace, copied.home.as_deref()),
                toolchains: Vec::new(),
                fixed: fixed.map(Path::to_path_buf).collect(),
                rules: Vec::new(),
            },
            store,
            set: Some(set),
        })
    }

    /// Records an entry, by its path relative to the workspace, as it was before it was copied.
    ///
    /// # Errors
    /// [`ChangesError`]: it cannot be stored.
    pub fn seen(&mut self, path: &Path, node: Node) -> Result<(), ChangesError> {
        match &mut self.recorder {
            Some(recorder) => recorder.record(path, Some(node)),
            None => Ok(()),
        }
    }

    /// Says that all was copied.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn copied(&mut self) -> Result<(), ChangesError> {
        self.recorder.take().map_or(Ok(()), CopyRecorder::finish)
    }

    /// Returns the directory that takes what is new or changed, with the directories that lead to it.
    #[must_use]
    pub fn layer(&self) -> PathBuf {
        self.set.as_ref().map(ChangeSet::upper).unwrap_or_default()
    }

    /// Says that a path is gone in the copy, after all that is new or changed is in the layer. Parents come first.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn gone(&mut self, path: &Path) -> Result<(), ChangesError> {
        self.set.as_ref().map_or(Ok(()), |set| set.put_gone(path))
    }

    /// Commits what is in the layer, with what the policy holds back besides. Returns what became of it; `None` if
    /// nothing was changed. May block.
    ///
    /// # Errors
    /// [`ChangesError`]: the workspace is as it was, and the set waits if it was complete.
    pub fn commit(mut self, rules: Vec<Rule>) -> Result<Option<Changes>, ChangesError> {
        self.surroundings.rules = rules;
        let Some(set) = &mut self.set else { return Ok(None) };
        set.filled()?;
        let limits = Limits::default();
        // From here on it is complete, and kept if it cannot be committed.
        let (Some(mut set), store) = (self.set.take(), &self.store) else {
            return Ok(None);
        };
        let changes = stage::commit(Mode::Commit, store, &mut set, &self.surroundings, limits, None)?;
        let is_empty = changes.totals.is_some_and(|totals| {
            totals.added + totals.modified + totals.deleted + totals.held_back + totals.conflicts == 0
        });
        if is_empty {
            store.discard(set)?;
            return Ok(None);
        }
        Ok(Some(changes))
    }

    /// What is told where nothing came back.
    #[must_use]
    pub fn nothing() -> Changes {
        let judged = Judged::default();
        let mut nothing = stage::changes_of(Mode::Commit, None, ChangeState::Waiting, &judged, None);
        (nothing.added, nothing.modified, nothing.deleted, nothing.totals) = (None, None, None, None);
        nothing.renamed = None;
        nothing
    }
}

impl Drop for WriteBack {
    fn drop(&mut self) {
        self.recorder = None;
        if let Some(mut set) = self.set.take() {
            // What cannot be removed is listed by `shieling changes`, as after a kill.
            let _ = set.close();
            let _ = self.store.discard(set);
        }
    }
}
