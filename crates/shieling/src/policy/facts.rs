//! What a judgement needs to know of the environment, looked up before it and passed in.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use shieling_shell::CarriedState;

use crate::enforcement::Enforced;

/// Facts about the environment and the place where a command is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// What the environment enforces.
    pub enforced: Enforced,
    pub(crate) workspace: String,
    pub(crate) home: Option<String>,
    /// Where the command starts, relative to the workspace if it is in there.
    pub(crate) start: String,
    /// The same by the way that its shell has come there, through links, in which `cd ..` goes back.
    pub(crate) way: Option<String>,
    /// Programs that the workspace itself puts on the path, and so may be anything.
    pub(crate) shadowed: BTreeSet<String>,
    /// Whether the directory where the command starts holds names that begin with a dash or an `@`; unknown if
    /// nobody looked.
    pub dashed_names: Option<bool>,
    /// Whether the file names that the text uses ([`Reading::names_used`]) are known to be plain.
    ///
    /// [`Reading::names_used`]: shieling_shell::Reading::names_used
    pub(crate) plain_names: bool,
    /// Every hidden path that is there, without what lies below another, directories with a slash at their
    /// ends; unknown if nobody looked, or there is too much to look at.
    pub(crate) hidden_there: Option<Vec<String>>,
    /// Words of the text that are paths of files that are there.
    pub(crate) files_named: BTreeSet<String>,
    /// Words of the text that lead into a repository of git below the workspace's own; `.` if the text starts in one.
    pub(crate) repositories: BTreeSet<String>,
    /// What texts that ran before in the same shell may have left behind in it.
    #[serde(skip)]
    pub(crate) left: CarriedState,
}

impl Facts {
    /// Facts for commands that start in `cwd`, in a workspace; nothing is enforced.
    pub fn new(workspace: &Path, cwd: &Path) -> Self {
        Self {
            enforced: Enforced::default(),
            workspace: workspace.to_string_lossy().trim_end_matches('/').to_owned(),
            home: None,
            start: within(workspace, cwd),
            way: None,
            shadowed: BTreeSet::new(),
            dashed_names: None,
            plain_names: false,
            hidden_there: None,
            files_named: BTreeSet::new(),
            repositories: BTreeSet::new(),
            left: CarriedState::default(),
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

    /// The home directory that `~` names.
    pub(crate) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// The same where the file names that the text uses are known to be plain.
    #[must_use]
    pub(crate) fn with_plain_names(mut self) -> Self {
        self.plain_names = true;
        self
    }

    /// The same with every hidden path of the workspace that is there.
    #[must_use]
    pub(crate) fn with_hidden_there(mut self, paths: Option<Vec<String>>) -> Self {
        self.hidden_there = paths;
        self
    }

    /// The same in a shell that has come to where it stands by this path.
    #[must_use]
    pub(crate) fn by_way_of(mut self, path: &Path) -> Self {
        self.way = Some(within(Path::new(&self.workspace), path));
        self
    }

    /// The same in a shell in which others ran before.
    #[must_use]
    pub(crate) fn after(mut self, left: CarriedState) -> Self {
        self.left = left;
        self
    }

    /// The same with the home directory that `~` and `$HOME` name inside.
    #[must_use]
    pub fn with_home(mut self, home: Option<&str>) -> Self {
        self.home = home.map(|home| home.trim_end_matches('/').to_owned());
        self
    }
}

/// A path relative to the workspace, if it is in there.
fn within(workspace: &Path, path: &Path) -> String {
    path.strip_prefix(workspace)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}
