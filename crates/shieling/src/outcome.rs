//! The outcome of a command: facts with units.
//!
//! The JSON form is the same in the command line's `--json`, in MCP and in Python. Messages for people and models are
//! worded elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::path;
use crate::policy::{Decision, Reason};

/// How a command ended, or that it still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It exited; `exit_code` is its exit code.
    Exited,
    /// A signal ended it.
    Signalled,
    /// It was ended at its deadline.
    TimedOut,
    /// It was ended at the memory limit.
    OutOfMemory,
    /// It was ended at the output limit.
    OutputLimit,
    /// A policy denied it. Nothing was started.
    Denied,
    /// It needs an approval that was not given. Nothing was started.
    NeedsApproval,
    /// It exceeded the rate limit. Nothing was started.
    RateLimited,
    /// It is still running.
    Running,
    /// Contact with the environment was lost. It may still be running.
    Lost,
    /// It could not be started.
    Failed,
}

impl Status {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signalled => "signalled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::OutputLimit => "output_limit",
            Self::Denied => "denied",
            Self::NeedsApproval => "needs_approval",
            Self::RateLimited => "rate_limited",
            Self::Running => "running",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

/// Which paths of an environment can be written, and which of them last. All other paths are read-only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WritablePaths {
    /// Files and directories of the host, absolute. Changes to them last.
    #[serde(serialize_with = "path::list")]
    pub lasting: Vec<PathBuf>,
    /// Directories of the environment, absolute. Their contents are removed with it.
    #[serde(serialize_with = "path::list")]
    pub private: Vec<PathBuf>,
    /// Those of them that are the user's caches: readable, and written privately or not at all.
    #[serde(serialize_with = "path::list")]
    pub caches: Vec<PathBuf>,
    /// Whether caches are read-only.
    pub caches_are_readonly: bool,
    /// The home directory, and the directory of the host that it is stored in, if it lasts.
    #[serde(serialize_with = "path::some_pair")]
    pub kept_home: Option<(PathBuf, PathBuf)>,
    /// Remarks about the paths, one sentence each.
    pub notes: Vec<String>,
}

impl WritablePaths {
    /// Returns whether changes at a path are removed with the environment.
    pub fn is_private(&self, path: &Path) -> bool {
        let depth = |places: &[PathBuf]| {
            let above = places.iter().filter(|place| path.starts_with(place));
            above.map(|place| place.components().count()).max()
        };
        let home = self.kept_home.as_ref().map(|(home, _)| home);
        let kept = home
            .filter(|home| path.starts_with(home))
            .map(|home| home.components().count());
        let lasting = depth(&self.lasting).max(kept);
        depth(&self.private).max(depth(&self.caches)) > lasting
    }
}

/// What the environment enforces, as verified and not as requested.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Confinement {
    /// The layers that are enforced.
    pub enforced: Vec<String>,
    /// The layers that were requested and are not enforced.
    pub missing: Vec<String>,
}

/// The stage that refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The policy.
    Policy,
    /// The rate limit.
    Rate,
    /// The approver.
    Approval,
    /// The environment, which cannot do what was requested.
    Environment,
}

/// A refusal, with everything that a caller needs to improve its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// The stage that refused.
    pub layer: Layer,
    /// `deny`, or `ask` if an approval would help.
    pub decision: Decision,
    /// The reasons.
    pub reasons: Vec<Reason>,
    /// For a rate limit, the time after which a retry can succeed.
    pub retry_after_ms: Option<u64>,
}

impl Denial {
    /// The rule id of a refusal because a request cannot be shown whole to the approver.
    pub(crate) const LENGTH: &str = "approval length";

    /// Returns whether the request was too long to be shown whole to the approver. It can be repeated in smaller
    /// parts.
    pub fn is_for_length(&self) -> bool {
        self.reasons.iter().any(|reason| reason.rule == Self::LENGTH)
    }
}

/// Where a command's changes to the workspace are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeMode {
    /// In the workspace itself, at once.
    Direct,
    /// In a private layer, and moved into the workspace after each command.
    Commit,
    /// In a private layer, and moved into the workspace once a person has agreed.
    Review,
    /// In a private layer, which is removed with the environment.
    Discard,
}

impl ChangeMode {
    /// Returns the name, as in JSON and in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Commit => "commit",
            Self::Review => "review",
            Self::Discard => "discard",
        }
    }
}

/// The state of a command's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// They are in the workspace, except for what was held back.
    Committed,
    /// They are stored under the id, and not in the workspace.
    Waiting,
    /// They are not in the workspace, and are removed with the environment.
    Discarded,
    /// The workspace has changed as well, in the places that `conflicts` names. They are stored under the id, and
    /// none of them is in the workspace.
    Conflict,
}

impl ChangeState {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Waiting => "waiting",
            Self::Discarded => "discarded",
            Self::Conflict => "conflict",
        }
    }
}

/// The exact numbers of changed paths, where the lists of them are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ChangeTotals {
    /// The number of added paths.
    pub added: u64,
    /// The number of modified paths.
    pub modified: u64,
    /// The number of deleted paths.
    pub deleted: u64,
    /// The number of renames. Each is a deleted and an added path, with what lies below them.
    pub renamed: u64,
    /// The number of paths that were held back.
    pub held_back: u64,
    /// The number of conflicts.
    pub conflicts: u64,
}

impl From<shieling_changes::Counts> for ChangeTotals {
    fn from(counts: shieling_changes::Counts) -> Self {
        Self {
            added: counts.added,
            modified: counts.modified,
            deleted: counts.deleted,
            ..Self::default()
        }
    }
}

impl fmt::Display for ChangeTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            added,
            modified,
            deleted,
            ..
        } = self;
        write!(f, "{added} added, {modified} modified, {deleted} deleted")
    }
}

/// A path that both a command and somebody else changed in different ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Conflict {
    /// The path, relative to the workspace.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// What both sides did.
    pub because: String,
    /// What to do about it.
    pub instead: String,
}

/// A file, a link or a directory that got another name, with the same content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// Its name before, relative to the workspace.
    #[serde(serialize_with = "path::one")]
    pub old_path: PathBuf,
    /// Its name now, relative to the workspace.
    #[serde(serialize_with = "path::one")]
    pub new_path: PathBuf,
}

/// The largest number of paths in each list of [`Changes`].
pub const PATHS_TOLD: usize = 200;

/// A command's changes to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// The id of the stored changes, for `shieling changes` and `shieling undo`; `None` if nothing is stored.
    pub id: Option<String>,
    /// Where the changes were made.
    pub mode: ChangeMode,
    /// Their state.
    pub state: ChangeState,
    /// The paths that were added, relative to the workspace, at most [`PATHS_TOLD`]; `None` if unknown, as in the
    /// mode `direct`.
    #[serde(serialize_with = "path::some_list")]
    pub added: Option<Vec<PathBuf>>,
    /// The paths that were modified, in the same form.
    #[serde(serialize_with = "path::some_list")]
    pub modified: Option<Vec<PathBuf>>,
    /// The paths that were deleted, in the same form.
    #[serde(serialize_with = "path::some_list")]
    pub deleted: Option<Vec<PathBuf>>,
    /// Which of the deleted and added paths are the same file, link or directory under another name, at most
    /// [`PATHS_TOLD`]; `None` if unknown. They are told as deleted and added, too.
    pub renamed: Option<Vec<Renamed>>,
    /// The exact numbers, if they are known.
    pub totals: Option<ChangeTotals>,
    /// What was kept out of the workspace.
    pub held_back: Vec<HeldBack>,
    /// What was held back until a person, who was shown it, let it into the workspace.
    pub accepted: Vec<Accepted>,
    /// What was changed by others as well.
    pub conflicts: Vec<Conflict>,
    /// What a person answered who was asked about changes that wait, if it was no yes; `None` if nobody was asked. Once
    /// refused, the same changes are not asked about again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ReviewAnswer>,
}

impl Changes {
    /// Creates changes that were made in the workspace itself, of which the paths are unknown.
    pub fn direct() -> Self {
        Self {
            id: None,
            mode: ChangeMode::Direct,
            state: ChangeState::Committed,
            added: None,
            modified: None,
            deleted: None,
            renamed: None,
            totals: None,
            held_back: Vec::new(),
            accepted: Vec::new(),
            conflicts: Vec::new(),
            answer: None,
        }
    }
}

/// Something that a command created where the user's own tools would run code from it, and that was moved elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// Its path, relative to the workspace if it is inside.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// Why it was held back.
    pub because: String,
    /// Where it is now, and how to get it.
    pub instead: String,
    /// The id of the change set that it waits in; `None` if it is stored in none.
    #[serde(default)]
    pub id: Option<String>,
    /// What came of asking a person about it; `None` if nobody was asked.
    #[serde(default)]
    pub answer: Option<ReviewAnswer>,
}

/// What came of asking a person about changes that are not in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReviewAnswer {
    /// They said no.
    Refused,
    /// Nobody answered in time.
    Unanswered,
    /// They said yes to what was no longer there: it, or the workspace, changed meanwhile. Only of what was held back.
    Changed,
    /// They said yes, and it could not be moved into the workspace. Only of what was held back.
    Failed,
}

impl ReviewAnswer {
    /// Returns the answer in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Refused => "the user was asked, and said no",
            Self::Unanswered => "the user was asked, and gave no answer",
            Self::Changed => "the user said yes, and it was changed meanwhile: nothing was accepted",
            Self::Failed => "the user said yes, and it could not be moved into the workspace",
        }
    }

    /// Returns the answer in words after a semicolon; nothing if nobody was asked.
    pub fn appended(answer: Option<Self>) -> String {
        answer.map_or_else(String::new, |answer| format!("; {}", answer.text()))
    }
}

/// Something that was held back until a person let it into the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its path, relative to the workspace if it is inside.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// The id of the committed change set, for `shieling undo`.
    pub id: String,
}

impl Accepted {
    /// What became of it, and how to take it back, as one text that is not escaped.
    pub fn text(&self) -> String {
        format!(
            "`{}` was held back, and the user has let it into the workspace; `shieling undo {}` takes it back",
            self.path.display(),
            self.id
        )
    }
}

impl HeldBack {
    /// Creates a path that was held back, and is stored in no change set.
    pub fn new(path: impl Into<PathBuf>, because: impl Into<String>, instead: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            because: because.into(),
            instead: instead.into(),
            id: None,
            answer: None,
        }
    }

    /// Adds the id of the change set that it waits in.
    #[must_use]
    pub fn with_id(mut self, id: Option<String>) -> Self {
        self.id = id;
        self
    }

    /// The path, unless the reason names it, then the reason, what a person answered and the remedy, as one text that is not escaped.
    pub fn text(&self) -> String {
        let path = format!("`{}`", self.path.display());
        let named = if self.because.contains(&path) {
            String::new()
        } else {
            format!("{path}: ")
        };
        let answer = ReviewAnswer::appended(self.answer);
        format!("{named}{}{answer}; {}", self.because, self.instead)
    }
}

/// The subject of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HintKind {
    /// A protected path that cannot be changed.
    Protected,
    /// Permission bits that commands cannot set.
    Permissions,
    /// A path that is read-only in the environment.
    ReadOnly,
    /// A path of the host that is not visible to commands.
    NotShown,
    /// A network that the environment does not have.
    Network,
    /// A directory or a disk that takes no more.
    NoSpace,
}

/// An explanation of a failure that the environment caused. The command's own message only says `EBUSY`, `EROFS` or
/// that a host is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The subject.
    pub kind: HintKind,
    /// The path that could not be changed, if there is one; relative to the workspace if it is inside.
    #[serde(serialize_with = "path::some")]
    pub path: Option<PathBuf>,
    /// The explanation.
    pub because: String,
    /// What to do instead.
    pub instead: String,
}

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedResource {
    /// The memory of all processes together. Processes are killed at the limit.
    Memory,
    /// The number of processes and threads. No more can be started at the limit.
    Pids,
    /// The size of one file. A write beyond it fails, or ends the program with SIGXFSZ.
    FileSize,
}

/// A process that was killed at a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KilledProcess {
    /// Its process id, as commands see it.
    pub pid: i32,
    /// The name of its program, cut to 15 bytes.
    pub name: String,
    /// The last known size of its memory, in bytes.
    pub bytes: u64,
}

/// A limit that was reached while a command ran, whether or not the command failed because of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// The resource.
    pub limit: LimitedResource,
    /// The limit: bytes, or a number of processes and threads.
    pub bound: u64,
    /// The peak usage of all processes of the environment together, if known.
    pub peak: Option<u64>,
    /// The number of processes that were killed, or of processes and threads that were refused, if known.
    pub times: Option<u64>,
    /// The processes that were killed, as far as known: the last [`KILLED_TOLD`].
    pub killed: Vec<KilledProcess>,
    /// The option that raises the limit.
    pub instead: String,
}

/// The largest number of killed processes in one [`LimitHit`].
pub const KILLED_TOLD: usize = 8;

/// A host that commands connected to, with all connections to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetworkConnection {
    /// The name, or the address if a rule names one.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The number of bytes that came from the host.
    pub bytes_in: u64,
    /// The number of bytes that went to the host.
    pub bytes_out: u64,
    /// The number of connections.
    pub count: u64,
    /// Why the last connection that failed did, if one did.
    pub error: Option<String>,
}

impl NetworkConnection {
    /// How an error begins where the host was not reached.
    pub(crate) const NO_ADDRESS: &'static str = "it has no address";
    pub(crate) const UNREACHABLE: &'static str = "it cannot be reached";

    /// Returns the error, if it is that the host was not reached at all.
    pub(crate) fn unreached(&self) -> Option<&str> {
        let error = self.error.as_deref()?;
        let unreached = error.starts_with(Self::NO_ADDRESS) || error.starts_with(Self::UNREACHABLE);
        unreached.then_some(error)
    }
}

/// A host that commands tried to reach and were refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetworkDenied {
    /// The name or the address.
    pub host: String,
    /// The port; `None` if the name was only looked up.
    pub port: Option<u16>,
    /// Why it was refused.
    pub because: String,
    /// What to do instead, if known.
    pub instead: Option<String>,
    /// The number of attempts.
    pub count: u64,
}

/// The use of a network that is opened by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NetworkSummary {
    /// The hosts that were connected to.
    pub connections: Vec<NetworkConnection>,
    /// The hosts that were refused.
    pub denied: Vec<NetworkDenied>,
    /// The lines for `shieling.toml` of hosts that a person has allowed for always.
    pub always: Vec<String>,
    /// The number of connections and refusals that are not listed.
    pub omitted: u64,
}

/// The outcome of one command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The exit code: 124 for a timeout, 128+N for signal N; `None` if there is none.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output, bounded; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Standard error, in the same form.
    pub stderr: String,
    /// The number of bytes that it wrote to standard output.
    pub stdout_bytes: u64,
    /// The number of bytes that it wrote to standard error.
    pub stderr_bytes: u64,
    /// Whether any byte is missing from `stdout` or `stderr`.
    pub truncated: bool,
    /// The id of the whole output, if it is stored.
    pub output_id: Option<String>,
    /// The time that it ran, in milliseconds of the monotonic clock.
    pub duration_ms: f64,
    /// The working directory of the session after the command.
    #[serde(serialize_with = "path::one")]
    pub cwd: PathBuf,
    /// The name of the environment.
    pub environment: String,
    /// What the environment enforced.
    pub confinement: Confinement,
    /// The number of processes of the command that could not be ended.
    pub survivors: u32,
    /// The number of processes that the command left behind and that were ended.
    pub ended_processes: u32,
    /// The session that it ran in, if any.
    pub session: Option<String>,
    /// Whether the session's shell was restarted.
    pub session_restarted: bool,
    /// The job, if it still runs.
    pub job: Option<String>,
    /// The recording of the command or of its session, if there is one. `shieling log replay` plays it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// Its changes to the workspace, if there is something to report. Includes changes that an earlier command's job
    /// has made since.
    pub changes: Option<Changes>,
    /// Its use of the network, if that is opened by name, or an attempt was refused. Includes what other commands did
    /// meanwhile.
    pub network: Option<NetworkSummary>,
    /// Explanations of its failure: what its output names and the environment does not let it change or reach.
    pub hints: Vec<Hint>,
    /// Limits of the environment that were reached while it ran, by this or another command.
    pub limits_hit: Vec<LimitHit>,
    /// The refusal, if it was refused.
    pub denial: Option<Denial>,
    /// The error, for `failed` and `lost`.
    pub error: Option<String>,
}

/// How much of an output is looked at for words that explain a failure, from its end: what made a command fail is told
/// last.
pub(crate) const LOOKED_AT: usize = 32 * 1024;

/// How many of the last lines of an output are looked at where the status or the stream does not tell of a failure, as
/// after `… 2>&1 | tail`, which shows ten lines and succeeds however the program ended.
pub(crate) const LAST_LINES: usize = 12;

/// The end of an output, in which words that explain a failure are looked for.
pub(crate) fn end_of(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT));
    text.get(start..).unwrap_or_default()
}

impl Outcome {
    /// Returns the time that it ran.
    pub fn took(&self) -> Duration {
        Duration::try_from_secs_f64(self.duration_ms / 1_000.0).unwrap_or_default()
    }

    /// Returns whether a host was refused to it, where the network is opened by name.
    pub fn was_refused_a_host(&self) -> bool {
        self.network.as_ref().is_some_and(|network| !network.denied.is_empty())
    }

    /// Adds to the list of what was held back.
    pub fn add_held_back(&mut self, held_back: Vec<HeldBack>) {
        if !held_back.is_empty() {
            self.changes
                .get_or_insert_with(Changes::direct)
                .held_back
                .extend(held_back);
        }
    }

    /// Creates an outcome without results, with nothing known to be enforced.
    pub fn blank(status: Status, cwd: impl Into<PathBuf>, environment: impl Into<String>) -> Self {
        Self {
            status,
            exit_code: None,
            signal: None,
            stdout: String::new(),
            stderr: String::new(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            truncated: false,
            output_id: None,
            duration_ms: 0.0,
            cwd: cwd.into(),
            environment: environment.into(),
            confinement: Confinement::default(),
            survivors: 0,
            ended_processes: 0,
            session: None,
            session_restarted: false,
            job: None,
            recording: None,
            changes: None,
            network: None,
            hints: Vec::new(),
            limits_hit: Vec::new(),
            denial: None,
            error: None,
        }
    }
}

/// Returns the names of common signals; other signals have only a number.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}
