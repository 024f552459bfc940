//! What is asked of a staged workspace.

use std::path::{Path, PathBuf};

use shieling_changes::{Limits, Mode};

/// Where changes to the workspace go, if not into it.
#[derive(Debug, Clone)]
pub struct Staging {
    /// When they go into the workspace.
    pub mode: Mode,
    /// The directory that change sets are stored in, absolute and without links. It has to be in the same mount as the
    /// workspace, and not inside it; its parent exists.
    pub directory: PathBuf,
    /// The bounds of one change set.
    pub limits: Limits,
}

impl Staging {
    /// What a model is told.
    pub(super) fn note(&self, workspace: &Path) -> String {
        let workspace = workspace.display();
        match self.mode {
            Mode::Commit => format!(
                "Changes in {workspace} are staged: they are judged and moved into the user's workspace after each \
                 command; what is held back is reported with the command."
            ),
            Mode::Review => format!(
                "Changes in {workspace} are staged: all commands see them, and the user's own workspace gets them once \
                 a person has agreed."
            ),
            Mode::Discard => format!(
                "Changes in {workspace} are staged: all commands see them, and none of them reaches the user's own \
                 workspace; they are removed with the sandbox."
            ),
        }
    }
}
