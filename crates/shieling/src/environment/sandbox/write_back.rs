//! A workspace of which commands elsewhere have a copy: what they changed in it comes back, all of it or nothing.
//!
//! ```text
//! begin ─► the workspace is copied, entry by entry: seen ─► commands ─► what differs: layer, gone ─► commit
//! ```
//!
//! What comes back is a change set, as of a staged workspace: judged, and committed in steps that can be taken back.
//! What the user changed meanwhile is a conflict: then nothing is committed, and the set waits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling_changes::{
    Action, ChangeSet, ChangesError, CopyRecorder, Judged, Limits, Matcher, Mode, Node, Rule, Store, Surroundings,
};

use super::stage;
use super::unsuitable::{Unsuitable, check_copied};
use crate::enforcement::Hidden;
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

/// Why nothing can come back from a copy of a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteBackError {
    /// Commands get no copy of this workspace.
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    /// The change set cannot be stored.
    #[error(transparent)]
    Changes(#[from] ChangesError),
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
    /// [`WriteBackError`]: nothing can be stored, `sets` and the workspace are in different mounts, or the workspace
    /// is or holds a home or `sets`.
    pub fn begin(copied: &CopiedWorkspace) -> Result<Self, WriteBackError> {
        let workspace = &copied.workspace;
        check_copied(workspace, copied.home.as_deref(), &[("change sets", &copied.sets)])?;
        let store = Store::open(&copied.sets, Limits::default())?;
        let mut set = store.create(workspace, Mode::Commit)?;
        let fixed = copied.fixed.iter().filter_map(|path| path.strip_prefix(workspace).ok());
        Ok(Self {
            recorder: Some(set.record_copy()?),
            surroundings: Surroundings {
                home: copied.home.clone(),
                leads: stage::leads(workspace, copied.home.as_deref()),
                toolchains: Vec::new(),
                fixed: fixed.map(Path::to_path_buf).collect(),
                rules: Vec::new(),
                hidden: None,
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

    /// Marks a path as gone in the copy, after all that is new or changed is in the layer. Parents come first.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn gone(&mut self, path: &Path) -> Result<(), ChangesError> {
        self.set.as_ref().map_or(Ok(()), |set| set.put_gone(path))
    }

    /// Commits what is in the layer, with what the policy holds back and hides besides. Returns what became of it;
    /// `None` if nothing was changed. May block.
    ///
    /// # Errors
    /// [`NotWrittenBack`]: the workspace is as it was, and the set is kept.
    pub fn commit(
        mut self,
        rules: Vec<Rule>,
        hidden: Option<Arc<dyn Hidden>>,
    ) -> Result<Option<Changes>, NotWrittenBack> {
        self.surroundings.rules = rules;
        let Some(mut set) = self.set.take() else {
            return Ok(None);
        };
        let failed = |error, set: &ChangeSet| {
            Err(NotWrittenBack {
                error,
                id: set.id().to_owned(),
            })
        };
        // Before it can be applied by others.
        let stored = hidden.as_ref().map_or(Ok(()), |hidden| set.hide(hidden.patterns()));
        if let Err(error) = stored.and_then(|()| set.filled()) {
            return failed(error, &set);
        }
        self.surroundings.hidden = hidden.map(HiddenPaths::matcher);
        let changes = stage::commit(
            Mode::Commit,
            &self.store,
            &mut set,
            &self.surroundings,
            Limits::default(),
            None,
        );
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) => return failed(error, &set),
        };
        let is_empty = changes.totals.is_some_and(|totals| {
            totals.added + totals.modified + totals.deleted + totals.held_back + totals.conflicts == 0
        });
        if is_empty {
            // One that cannot be removed is listed, with nothing in it.
            let _ = self.store.discard(set);
            return Ok(None);
        }
        Ok(Some(changes))
    }

    /// Gives up before all that changed is in the layer. What is in it is kept in an incomplete set, whose id is
    /// returned; `None` if there is nothing in it.
    #[must_use]
    pub fn give_up(mut self) -> Option<String> {
        let is_filled = self.set.as_ref()?.is_unfilled().is_ok_and(|is_unfilled| !is_unfilled);
        if !is_filled {
            return None;
        }
        let mut set = self.set.take()?;
        // What is left of an overlay that was never mounted.
        let _ = set.close();
        Some(set.id().to_owned())
    }

    /// Describes changes of which nobody knows how many there are: those of the set with this id, or such as are lost.
    #[must_use]
    pub fn uncommitted(id: Option<String>) -> Changes {
        let state = match id {
            Some(_) => ChangeState::Waiting,
            None => ChangeState::Discarded,
        };
        stage::uncounted(Mode::Commit, id, state)
    }

    /// Describes that nothing was changed, but for what could not come back.
    #[must_use]
    pub fn unchanged() -> Changes {
        stage::changes_of(Mode::Commit, None, ChangeState::Committed, &Judged::default(), None)
    }
}

/// What is hidden, with all that is below it.
pub(crate) struct HiddenPaths(Arc<dyn Hidden>);

impl HiddenPaths {
    pub(crate) fn matcher(hidden: Arc<dyn Hidden>) -> Arc<dyn Matcher> {
        Arc::new(Self(hidden))
    }
}

impl std::fmt::Debug for HiddenPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HiddenPaths").field(&&*self.0).finish()
    }
}

impl Matcher for HiddenPaths {
    fn matches(&self, _: Action, path: &Path, is_directory: bool) -> bool {
        let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        self.0.hides(path, is_directory) || above.any(|above| self.0.hides(above, true))
    }
}

/// Changes that are complete, and could not be committed.
#[derive(Debug)]
pub struct NotWrittenBack {
    /// Why.
    pub error: ChangesError,
    /// The set that they are kept in.
    pub id: String,
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
