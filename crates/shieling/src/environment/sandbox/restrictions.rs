//! What a sandbox is asked to be. Plain facts, which the caller found out: nothing is read here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use shieling_jail::plan::{Isolation, Limits};

use crate::enforcement::{EnforceError, Enforcement, Hidden, ONE_EACH};
use crate::environment::Network;

use super::staging::Staging;

/// How much the private directories hold at most. They are in memory, and count as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes in `/tmp`; by default 1 GiB.
    pub tmp: u64,
    /// Files in `/tmp`, and as many in the home; by default 200,000.
    pub files: u64,
    /// Bytes in `/dev/shm`; by default 256 MiB.
    pub shm: u64,
    /// Bytes in `/run`; by default 16 MiB.
    pub run: u64,
    /// Bytes in the home; by default 1 GiB.
    pub home: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            tmp: 1024 * MIB,
            files: 200_000,
            shm: 256 * MIB,
            run: 16 * MIB,
            home: 1024 * MIB,
        }
    }
}

/// What a sandbox is asked to be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Restrictions {
    /// The directory that is worked in, absolute and without links.
    pub workspace: PathBuf,
    /// Whether it cannot be changed.
    pub readonly: bool,
    /// What of it does not exist.
    pub hidden: Option<Arc<dyn Hidden>>,
    /// The only programs that can be executed, each a name or a path (absolute, or relative to the
    /// workspace); any if there is no list.
    pub programs: Option<Vec<String>>,
    /// What of the network can be reached.
    pub network: Network,
    /// More that can be read, absolute.
    pub read: Vec<PathBuf>,
    /// More of the host that can be written, absolute and without links, under the rules of the workspace.
    pub write: Vec<PathBuf>,
    /// A directory of the host that is the home of commands, and lasts; private, and gone with the sandbox,
    /// if there is none. It is the caller's alone (mode 0700), and nothing of the user's looks into it.
    pub kept_home: Option<PathBuf>,
    /// The git directory of the workspace, where it stands outside of it, absolute and without links: shown
    /// beside the workspace and as writable as it is, with its hooks and settings protected. Nothing that
    /// a workspace's own files say has a repository shown; who sets this has to know that no command has
    /// written what it is taken from (see [`linked_repository`](super::linked_repository)).
    pub repository: Option<PathBuf>,
    /// The caller's `PATH`, whose toolchains are shown.
    pub path: String,
    /// The caller's `HOME`.
    pub home: Option<PathBuf>,
    /// The caller's name.
    pub user_name: Option<String>,
    /// Where toolchains stand that are not at their usual place, by the variable that says so, such
    /// as `CARGO_HOME`.
    pub roots: BTreeMap<String, PathBuf>,
    /// Where changes to the workspace go, if not into it.
    pub staging: Option<Staging>,
    /// The directory of change sets, absolute and without links, in which is kept what is taken back out of the workspace
    /// where changes go into it at once: they are then judged while commands run and after each, and `.git/config`, `.vscode` and what
    /// else tools of the user run code from can be written. Without it, and in homes, such names are protected by mounts
    /// as far as these can.
    pub held_back: Option<PathBuf>,
    /// The limits.
    pub limits: Limits,
    /// How much stands between a command and the host.
    pub isolation: Isolation,
    /// Whether protected paths of the workspace, such as `.git/hooks`, can be changed.
    pub open_protected: bool,
    /// Whether the workspace may be a home, or hold one. What starts by itself in it then cannot be made or
    /// changed, and neither can anything else at its top.
    pub allow_home: bool,
    /// Files of the workspace, absolute, that decide what commands may do, such as its policy: they cannot be
    /// changed, replaced or moved away, whatever else is opened.
    pub fixed: Vec<PathBuf>,
    /// Shieling's own directories, absolute: hidden where they lie in the workspace.
    pub own: Vec<PathBuf>,
    /// The shell that runs commands, absolute.
    pub shell: PathBuf,
    /// How much the private directories hold.
    pub sizes: Sizes,
    /// Whether one command is expected: nothing is then kept ready for another, and the sandbox ends with it. One that
    /// follows is started in a sandbox that is made anew.
    pub once: bool,
}

impl Restrictions {
    /// A writable workspace at this place, with a loopback of its own and no way out, and with everything
    /// else at its default: no home, no `PATH`, no limits. [`Isolation::Landlock`] has no loopback to give,
    /// and needs another [`Self::network`].
    pub fn new(workspace: impl Into<PathBuf>, shell: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            readonly: false,
            hidden: None,
            programs: None,
            network: Network::Loopback,
            read: Vec::new(),
            write: Vec::new(),
            kept_home: None,
            repository: None,
            path: String::new(),
            home: None,
            user_name: None,
            roots: BTreeMap::new(),
            staging: None,
            held_back: None,
            limits: Limits::default(),
            isolation: Isolation::Full,
            open_protected: false,
            allow_home: false,
            fixed: Vec::new(),
            own: Vec::new(),
            shell: shell.into(),
            sizes: Sizes::default(),
            once: false,
        }
    }

    /// The same, with what a policy asks for.
    ///
    /// # Errors
    /// [`EnforceError`]: they hide other paths or leave other programs already, or their isolation cannot do it.
    pub fn enforcing(mut self, asked: &Enforcement) -> Result<Self, EnforceError> {
        let environment = || "sandbox".to_owned();
        if asked.hidden.is_some() && self.isolation != Isolation::Full {
            return Err(EnforceError::Unsupported {
                environment: environment(),
                why: UNHIDDEN,
            });
        }
        if asked.names_its_workspace() && asked.workspace != self.workspace {
            return Err(EnforceError::Workspace {
                environment: environment(),
                asked: asked.workspace.clone(),
                has: self.workspace,
            });
        }
        self.readonly |= asked.readonly;
        self.hidden = self.hidden.or_else(|| asked.hidden.clone());
        self.programs = self.programs.or_else(|| asked.programs.clone());
        if self.enforcement().covers(asked) {
            return Ok(self);
        }
        Err(EnforceError::Bound {
            environment: environment(),
            why: "was made to hide other paths, or to leave other programs, than the policy",
            cure: ONE_EACH,
        })
    }

    /// Whether changes of the workspace are made at once and judged there, and not kept out by mounts.
    pub(super) fn is_watched(&self) -> bool {
        let can_keep = self
            .held_back
            .as_ref()
            .is_some_and(|held_back| !held_back.starts_with(&self.workspace));
        can_keep
            && self.isolation == Isolation::Full
            && self.staging.is_none()
            && !self.readonly
            && !self.open_protected
            && !self.allow_home
    }

    /// What of a policy they enforce.
    pub(super) fn enforcement(&self) -> Enforcement {
        Enforcement {
            workspace: self.workspace.clone(),
            readonly: self.readonly,
            hidden: self.hidden.clone(),
            programs: self.programs.clone(),
        }
    }
}

/// Why an isolation without a view of its own hides nothing.
pub(super) const UNHIDDEN: &str = "files cannot be hidden without a mount namespace, which this isolation does without";
