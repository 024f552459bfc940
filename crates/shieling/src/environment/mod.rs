//! Where commands run. An environment takes only what was approved and cannot see a policy.

mod argv;
mod files;
mod local;
mod sandbox;
mod shell;
mod variables;

use std::collections::BTreeSet;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::approval::Approved;
pub use crate::enforcement::{EnforceError, Enforced, Enforcement, Hidden};
pub use crate::outcome::WritablePaths;
use crate::outcome::{Changes, Confinement, HeldBack, Hint, LimitHit, Outcome};
use crate::process::{Counts, Process, SessionShell, SpawnError, Streams, Struck};
use crate::request::{Access, Command, Digest};

pub use files::{Content, Entry, Expect, FileError, Files, Kind, Links, Meta, Node, Stamp, WriteTarget};
pub use local::{Local, kernel};
pub(crate) use sandbox::HiddenPaths;
pub use sandbox::{
    ChangeRules, HiddenError, Restrictions, Sandbox, SandboxError, Sizes, StageError, Staging, ViewError,
};
pub use sandbox::{CopiedWorkspace, NotWrittenBack, Unsuitable, WriteBack, WriteBackError, check_copied};
pub use sandbox::{leads_through, linked_repository, repository_above, toolchain_variables};
pub use shell::NoShell;
pub use shell::Shell;
pub use variables::{VariableError, Variables};

pub use shieling_jail::plan::{Isolation, Limits as JailLimits};

/// The platform of commands that do not run on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The kernel, or what takes its place, as part of a sentence.
    pub kernel: String,
    /// Advice for agents that work on it, one piece each.
    pub advice: Vec<String>,
}

/// What of the network a command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing.
    None,
    /// The machine it believes to be on.
    Loopback,
    /// Whatever this host can reach.
    Host,
}

/// A resource that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Memory of all processes together.
    Memory,
    /// The number of processes.
    Pids,
    /// CPU time per wall time.
    Cpus,
    /// The size of any file that is written.
    FileSize,
}

/// What can be asked of an environment. What it cannot give is refused, not ignored, by whoever was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The network modes that it can give.
    pub networks: BTreeSet<Network>,
    /// The limits that it can set.
    pub limits: BTreeSet<Limit>,
    /// What can be done in it.
    pub abilities: BTreeSet<Ability>,
}

/// Something that can be done in an environment. A tool that needs one that is missing is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ability {
    /// Commands run in it.
    Commands,
    /// Shells stay in it, with directory, variables and functions.
    Sessions,
    /// Commands go on in it while others run.
    Jobs,
    /// A command that runs can be written to.
    Input,
    /// Commands run on a terminal in it.
    Terminals,
    /// Its files are read.
    ReadFiles,
    /// Its files are written.
    WriteFiles,
    /// Commands are processes of this host.
    Processes,
}

impl Ability {
    /// All that an environment with processes has.
    pub const ALL: [Self; 8] = [
        Self::Commands,
        Self::Sessions,
        Self::Jobs,
        Self::Input,
        Self::Terminals,
        Self::ReadFiles,
        Self::WriteFiles,
        Self::Processes,
    ];
}

/// A future on the heap, so that [`Environment`] can be a trait object.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A look at what the limits of an environment have done, to compare a later one with.
#[derive(Debug, Clone, Default)]
pub struct LimitCounts {
    of: Option<Arc<Counts>>,
    struck: Struck,
    mark: u64,
    #[cfg(feature = "gateway")]
    network: Option<crate::network::Look>,
}

impl LimitCounts {
    /// A look that is kept elsewhere, under this number.
    #[must_use]
    pub fn marked(mark: u64) -> Self {
        Self {
            mark,
            ..Self::default()
        }
    }

    /// The number under which it is kept elsewhere; 0 if it is not.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Whether nothing has happened between the two.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let counts = |limit_counts: &Self| limit_counts.of.as_ref().map(Arc::as_ptr);
        #[cfg(feature = "gateway")]
        if self.network != other.network {
            return false;
        }
        counts(self) == counts(other) && self.struck == other.struck && self.mark == other.mark
    }
}

/// Staged changes, for a person to decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// What is done to which paths, absolute.
    pub paths: Vec<(Access, PathBuf)>,
    /// The changes, as a person reads them.
    pub diff: String,
    /// Whether something is not shown, so that nobody can agree to it.
    pub is_cut: bool,
}

/// A change that was held back, for a person to decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBackReview {
    /// What is shown, at the path and below it.
    pub review: Review,
    /// The id of the change set that it waits in.
    pub id: String,
    /// Its path, relative to the directory that the change set is of.
    pub path: PathBuf,
    /// The digest of exactly what is shown. Nothing else is accepted by a yes.
    pub digest: Digest,
}

/// Why a change that was held back was not accepted, although a person said yes. The workspace is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// It, or the workspace, is no longer what the person was shown.
    #[error("it is no longer what was shown")]
    Changed,
    /// It could not be moved into the workspace.
    #[error("{0}")]
    Failed(String),
}

pub use crate::process::AtEnd;

/// Where commands run.
///
/// The same things hold in each: a command gets the streams that it is started with, exactly the
/// variables it was approved with, and no other descriptor of its host; its [`Process`] ends all of it.
pub trait Environment: Send + Sync {
    /// Its name: `local`, `sandbox`, `memory`, `container`.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Takes what a policy asks for, before anything runs, and says what it enforces from now on, for every
    /// command and every operation on files. Only that relaxes how the policy judges a text: what is not
    /// enforced and cannot be decided by reading is asked about. By default nothing is.
    ///
    /// # Errors
    /// [`EnforceError`]: it serves another policy already, or cannot do at all what may not be left out.
    fn enforce(&self, asked: &Enforcement) -> Result<Enforced, EnforceError> {
        let _ = asked;
        Ok(Enforced::default())
    }

    /// Takes what of the network commands may reach by name, before anything runs. By default it is refused.
    ///
    /// # Errors
    /// [`EnforceError::Network`]: it has no gateway, and commands would reach less, or more, than was asked for.
    #[cfg(feature = "gateway")]
    fn open_network(&self, access: crate::network::NetworkAccess) -> Result<(), EnforceError> {
        let _ = access;
        Err(EnforceError::Network {
            environment: self.name().to_owned(),
            why: "it has no gateway, which `sandbox` has".to_owned(),
        })
    }

    /// Takes what of the changes in a staged workspace the policy holds back, before anything runs. By default it is
    /// refused, unless there is no rule.
    ///
    /// # Errors
    /// [`EnforceError`]: it stages no changes, so that nothing could be held back; or it serves other rules already.
    fn hold_back(&self, rules: Vec<shieling_changes::Rule>) -> Result<(), EnforceError> {
        match rules.is_empty() {
            true => Ok(()),
            false => Err(EnforceError::Unsupported {
                environment: self.name().to_owned(),
                why: crate::enforcement::UNSTAGED,
            }),
        }
    }

    /// What it does enforce, read back and not wished.
    fn confinement(&self) -> Confinement;

    /// What stands beneath its commands, where that is not the kernel of this host.
    fn platform(&self) -> Option<Platform> {
        None
    }

    /// Starts a command with these streams. Its time counts from here on.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing is left running. [`SpawnError::NoTerminal`] where it has none.
    /// # Cancel safety
    /// Dropping the future ends what may have been started.
    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>>;

    /// Starts a shell that stays, in the directory and with the variables of the first command that is
    /// to run in it.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing is left running. [`SpawnError::Session`] where it has no such shell.
    /// # Cancel safety
    /// As [`Self::spawn`].
    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        let _ = first;
        let why = format!("`{}` starts no shell that stays", self.name());
        Box::pin(async move { Err(SpawnError::Session { why }) })
    }

    /// What terminals of its commands are made from, opened: its own `/dev/ptmx`, so that a terminal has a name
    /// where commands are. Nothing if that is the host's.
    ///
    /// # Errors
    /// [`SpawnError`].
    /// # Cancel safety
    /// As [`Self::spawn`].
    fn terminals(&self) -> Later<'_, Result<Option<OwnedFd>, SpawnError>> {
        Box::pin(async { Ok(None) })
    }

    /// Whether its commands share the loopback device of this process.
    fn shares_network(&self) -> bool {
        false
    }

    /// How many shells that stay may do so at once, so that there is room for what they run.
    fn shells(&self) -> usize {
        usize::MAX
    }

    /// What its shell says of a text that it cannot read, with its exit code: nothing of the text runs,
    /// so it needs no approval. Nothing if the shell can read it, or cannot be asked.
    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        let _ = command;
        Box::pin(async { None })
    }

    /// Prepares for the next command of a shell that stays: what has appeared since the last one is
    /// hidden and protected. Gives what is to be done once that command is over.
    ///
    /// # Errors
    /// [`SpawnError`]; the command must not run.
    fn before<'a>(&'a self, next: &'a Approved<Command>) -> Later<'a, Result<Option<AtEnd>, SpawnError>> {
        let _ = next;
        Box::pin(async { Ok(None) })
    }

    /// Its files, as a command that starts now would see them.
    ///
    /// # Errors
    /// [`SpawnError`]: it cannot be started, or has no files.
    /// # Cancel safety
    /// As [`Self::spawn`].
    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        let why = format!("`{}` has no files that could be reached", self.name());
        Box::pin(async move { Err(SpawnError::Environment(why.into())) })
    }

    /// Those of these paths, absolute and without links, from which, or from below which, something of
    /// the user's own would run code, if nothing here keeps a command from changing them: the hooks of a
    /// repository, the settings of an editor, in a workspace that is writable. By their places in
    /// `paths`, in order. May block; many paths at once take little more time than one.
    fn unprotected_paths(&self, paths: &[&std::path::Path], workspace: &std::path::Path) -> Vec<usize> {
        let _ = (paths, workspace);
        Vec::new()
    }

    /// Looks for what commands have made by protected names that were not there, moves it aside, and gives
    /// what was moved aside since this was last asked. May block for a moment.
    fn held_back(&self) -> Vec<HeldBack> {
        Vec::new()
    }

    /// What lies below this path, absolute and without links, and cannot be changed by commands, though what is
    /// beside it can: removing the path would stop half-way. Empty if the path itself cannot be changed, or if
    /// nothing is kept. May block for a moment.
    fn kept_below(&self, path: &std::path::Path) -> Vec<std::path::PathBuf> {
        let _ = path;
        Vec::new()
    }

    /// The settings of the git repository in which a directory lies, absolute and without links, if commands
    /// cannot change them. May block for a moment.
    fn kept_settings(&self, directory: &std::path::Path) -> Option<std::path::PathBuf> {
        let _ = directory;
        None
    }

    /// Whether there can be anything to tell of a command besides its own end: what [`Self::tell`],
    /// [`Self::held_back`] and [`Self::limit_counts`] are for. Where there cannot, they are not asked over a link.
    fn tells(&self) -> bool {
        true
    }

    /// Tells in an outcome what was held back since this was last asked, what explains its errors, and which
    /// limits were reached since the look `before` it began. May block for a moment.
    fn tell(&self, outcome: &mut Outcome, before: &LimitCounts) {
        outcome.add_held_back(self.held_back());
        outcome.hints = self.hints(outcome);
        outcome.limits_hit = self.limits_hit(outcome, before);
    }

    /// A look at what its limits have done until now.
    fn limit_counts(&self) -> LimitCounts {
        LimitCounts::default()
    }

    /// The limits that were reached since that look, told with the command that has this outcome.
    fn limits_hit(&self, outcome: &Outcome, before: &LimitCounts) -> Vec<LimitHit> {
        let _ = (outcome, before);
        Vec::new()
    }

    /// What of the error output of a command that ended this environment can explain.
    fn hints(&self, outcome: &Outcome) -> Vec<Hint> {
        let _ = outcome;
        Vec::new()
    }

    /// The variables that commands find in it besides those of the command, each only where the command has none
    /// of that name: what has programs notice its limits and its network.
    fn added_variables(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Where what is written in it lasts, if that differs.
    fn places(&self) -> Option<WritablePaths> {
        None
    }

    /// Those of these paths, absolute and without links, that would be moved aside if they were made, by
    /// their places in `paths`, in order.
    fn holds_back(&self, paths: &[&std::path::Path]) -> Vec<usize> {
        let _ = paths;
        Vec::new()
    }

    /// Commits what was changed by something that was no command, in an environment that stages changes, or says what
    /// waits. `None` where nothing is staged. May block.
    fn settle(&self) -> Option<Changes> {
        None
    }

    /// What became of changes that come into the workspace only when the environment is closed, and what went wrong with
    /// that: once, after [`Self::close`]. `None` where there were none, or none come so late.
    fn settled_at_close(&self) -> Option<(Changes, Option<String>)> {
        None
    }

    /// Takes a copy of the staged changes that wait, for a person to decide about. `None` if nothing waits for that.
    /// May block.
    fn review(&self) -> Option<Result<Review, String>> {
        None
    }

    /// Commits the copy that [`Self::review`] took, or forgets it; the changes themselves then still wait. `None` if
    /// there is none, or if it was forgotten. May block.
    fn decide(&self, yes: bool) -> Option<Result<Changes, String>> {
        let _ = yes;
        None
    }

    /// What may be left of the environment after it was closed, and what to do about it, in words: once, after
    /// [`Self::close`]. `None` where all of it is known to be gone.
    fn left_at_close(&self) -> Option<String> {
        None
    }

    /// Looks at something that was held back and is stored in a change set, for a person to decide about. `None` where it
    /// cannot be accepted here: the environment has no such set, or the workspace has changed in the same place. May
    /// block.
    fn review_held_back(&self, held: &HeldBack) -> Option<Result<HeldBackReview, String>> {
        let _ = held;
        None
    }

    /// Moves exactly what [`Self::review_held_back`] has shown into the workspace. The id of the changes is that of the
    /// committed set, which can be undone. May block.
    ///
    /// # Errors
    /// [`AcceptError`]. The workspace is as it was.
    fn accept_held_back(&self, reviewed: &HeldBackReview) -> Result<Changes, AcceptError> {
        let _ = reviewed;
        Err(AcceptError::Failed("nothing is held back here".to_owned()))
    }

    /// Gives back what it holds. Commands that still run end with their [`Process`].
    fn close(&self) -> Later<'_, ()>;
}
