//! What a judgement needs to know of the environment, looked up before it and passed in.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

/// Which meanings the environment enforces by itself.
///
/// Where it does, what cannot be decided from the text is allowed and contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Enforced {
    /// Nothing can be changed from inside.
    pub readonly: bool,
    /// Hidden files do not exist inside.
    pub ignore: bool,
    /// Nothing but the allowed programs exists inside.
    pub allow: bool,
}

/// Facts about the environment and the place where a command is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// What the environment enforces.
    pub enforced: Enforced,
    pub(crate) workspace: String,
    pub(crate) home: Option<String>,
    /// Where the command starts, relative to the workspace.
    pub(crate) start: String,
    /// Programs that the workspace itself puts on the path, and so may be anything.
    pub(crate) shadowed: BTreeSet<String>,
    /// Whether the directory where the command starts holds names that begin with a dash; unknown if
    /// nobody looked.
    pub dashed_names: Option<bool>,
}

impl Facts {
    /// Facts for commands that start in `cwd`, in a workspace; nothing is enforced.
    pub fn new(workspace: &Path, cwd: &Path) -> Self {
        let start = cwd
            .strip_prefix(workspace)
            .map(|start| start.to_string_lossy().into_owned())
            .unwrap_or_default();
        Self {
            enforced: Enforced::default(),
            workspace: workspace.to_string_lossy().trim_end_matches('/').to_owned(),
            home: None,
            start,
            shadowed: BTreeSet::new(),
            dashed_names: None,
        }
    }

    /// The same with what the environment enforces.
    #[must_use]
    pub fn enforcing(mut self, enforced: Enforced) -> Self {
        self.enforced = enforced;
        self
    }

    /// The same with the names of programs that are found in the workspace before the system's.
    #[must_use]
    pub fn with_shadowed(mut self, names: BTreeSet<String>) -> Self {
        self.shadowed = names;
        self
    }

    /// The same with the home directory that `~` and `$HOME` name inside.
    #[must_use]
    pub fn with_home(mut self, home: Option<&str>) -> Self {
        self.home = home.map(|home| home.trim_end_matches('/').to_owned());
        self
    }
}
