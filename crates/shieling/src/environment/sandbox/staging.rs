//! What is asked of a staged workspace.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use shieling_changes::{Limits, Mode, Rule};

/// Where changes to the workspace go, if not into it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Staging {
    /// When they go into the workspace.
    pub mode: Mode,
    /// The directory that change sets are stored in, absolute and without links. It has to be in the same mount as the
    /// workspace, and not inside it; its parent exists.
    pub directory: PathBuf,
    /// The bounds of one change set.
    pub limits: Limits,
    /// What the policy holds back, beside what the gate does.
    pub rules: ChangeRules,
}

/// What a policy holds back of changes, once an environment is bound to it.
#[derive(Debug, Clone, Default)]
pub struct ChangeRules(Arc<OnceLock<Vec<Rule>>>);

/// Other rules are bound already.
#[derive(Debug)]
pub(super) struct Bound;

impl ChangeRules {
    pub(super) fn bind(&self, rules: Vec<Rule>) -> Result<(), Bound> {
        let bound = self.0.get_or_init(|| rules.clone());
        (*bound == rules).then_some(()).ok_or(Bound)
    }

    pub(super) fn bound(&self) -> Vec<Rule> {
        self.0.get().cloned().unwrap_or_default()
    }
}

impl Staging {
    /// Creates a staging area in this directory, with the default limits and no rules.
    pub fn new(mode: Mode, directory: PathBuf) -> Self {
        Self {
            mode,
            directory,
            limits: Limits::default(),
            rules: ChangeRules::default(),
        }
    }

    /// What a model is told.
    pub(super) fn note(&self, workspace: &Path) -> String {
        let workspace = workspace.display();
        match self.mode {
            Mode::Direct => format!("Changes in {workspace} are made at once."),
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
