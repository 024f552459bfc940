//! What really happened to one command: facts, with units.
//!
//! This is the shape of contract section 2, the same in the CLI's `--json`, in MCP and in Python.
//! Wording for people and models is made elsewhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::{Decision, Reason};

/// The typed end, or present state, of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ended by itself; `exit_code` says how.
    Exited,
    /// A signal ended it.
    Signalled,
    /// Its time was over and it was ended.
    TimedOut,
    /// The memory limit ended it.
    OutOfMemory,
    /// The output limit ended it.
    OutputLimit,
    /// A policy refused it; nothing started.
    Denied,
    /// It needs a yes that nobody gave; nothing started.
    NeedsApproval,
    /// Too many commands in too short a time; nothing started.
    RateLimited,
    /// It is still running.
    Running,
    /// Contact to the environment is lost; it may still be running.
    Lost,
    /// Shieling could not start it.
    Failed,
}

impl Status {
    /// Its name, as in JSON.
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

/// Where in an environment what is written lasts, and where not. What is in neither list is read-only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Places {
    /// Files and directories of the host that commands write, absolute.
    pub lasting: Vec<PathBuf>,
    /// Directories of the environment's own, absolute: what is in them is gone with it.
    pub private: Vec<PathBuf>,
    /// Of these, caches of the user: read as they are, and written privately; or only read.
    pub caches: Vec<PathBuf>,
    /// Whether caches are only read.
    pub caches_are_readonly: bool,
    /// The home, and where on the host it is kept, if it is.
    pub kept_home: Option<(PathBuf, PathBuf)>,
    /// What else there is to know of them, one sentence each.
    pub notes: Vec<String>,
}

impl Places {
    /// Whether what is written at a path is gone with the environment.
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

/// What the environment really enforced, read back and not wished.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Confinement {
    /// The layers in force.
    pub enforced: Vec<String>,
    /// The layers that were asked for and are not in force.
    pub missing: Vec<String>,
}

/// Which stage refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The policy.
    Policy,
    /// The rate limit.
    Rate,
    /// The approver.
    Approval,
    /// The environment cannot do it as asked.
    Environment,
}

/// A refusal, with all that a caller needs to do better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// The stage that refused.
    pub layer: Layer,
    /// `deny`, or `ask` where a yes would help.
    pub decision: Decision,
    /// Why.
    pub reasons: Vec<Reason>,
    /// After how many milliseconds a retry can help, for a rate limit.
    pub retry_after_ms: Option<u64>,
}

impl Denial {
    /// The rule of what cannot be shown whole to whoever would have to say yes.
    pub(crate) const LENGTH: &str = "approval length";

    /// Whether nobody was asked, since not all of it can be shown to whoever would say yes: in smaller
    /// parts, it can be asked for again.
    pub fn is_for_length(&self) -> bool {
        self.reasons.iter().any(|reason| reason.rule == Self::LENGTH)
    }
}

/// Where a command's changes of the workspace went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeMode {
    /// Into the workspace itself, as they were made.
    Direct,
}

/// What became of a command's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// They are in the workspace, but for what was held back.
    Committed,
}

/// What became of what a command changed in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The name of a set of changes that waits; none does here.
    pub id: Option<String>,
    /// Where changes went.
    pub mode: ChangeMode,
    /// What became of them.
    pub state: ChangeState,
    /// What was added, where that is known: in `direct` nobody counts.
    pub added: Option<Vec<PathBuf>>,
    /// What was changed, where that is known.
    pub modified: Option<Vec<PathBuf>>,
    /// What was removed, where that is known.
    pub deleted: Option<Vec<PathBuf>>,
    /// What was not let into the workspace as it was made.
    pub held_back: Vec<HeldBack>,
}

impl Changes {
    /// Those of a command that writes the workspace directly, of which nothing is known.
    fn direct() -> Self {
        Self {
            id: None,
            mode: ChangeMode::Direct,
            state: ChangeState::Committed,
            added: None,
            modified: None,
            deleted: None,
            held_back: Vec::new(),
        }
    }
}

/// Something that a command made, and that was not left where the user's own tools would run code from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// Where it was made; relative to the workspace if it lies there.
    pub path: PathBuf,
    /// Why it was held back.
    pub because: String,
    /// Where it is now, and how it can be had.
    pub instead: String,
}

/// What a hint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintKind {
    /// Something that is protected and cannot be changed.
    Protected,
    /// Permission bits that no command can set.
    Permissions,
    /// A place that is read-only here.
    ReadOnly,
    /// Something outside that commands do not see.
    NotShown,
    /// A network that there is not.
    Network,
}

/// A failure that the environment can explain: the command's own message says `EBUSY`, `EROFS` or that a host is
/// unknown, and not why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// What it is about.
    pub kind: HintKind,
    /// The path that it could not change, if it is about one; relative to the workspace if it lies there.
    pub path: Option<PathBuf>,
    /// Why.
    pub because: String,
    /// What to do instead.
    pub instead: String,
}

/// A resource whose limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Memory of all processes together: processes were killed.
    Memory,
    /// The number of processes and threads: no more could be started.
    Pids,
}

/// A process that was killed at a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KilledProcess {
    /// Its number, as commands see it.
    pub pid: i32,
    /// The name of its program, cut to 15 bytes.
    pub name: String,
    /// The memory that it was last seen to have, in bytes.
    pub bytes: u64,
}

/// A limit that was reached while a command ran, whatever became of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// Which.
    pub limit: Limited,
    /// The limit: bytes, or processes and threads.
    pub bound: u64,
    /// The most that all processes of the environment had together, where it is known.
    pub peak: Option<u64>,
    /// How often it was reached: processes killed, or processes and threads refused; none if nobody counts.
    pub times: Option<u64>,
    /// Who was killed, as far as it is known: the last [`KILLED_TOLD`] of them.
    pub killed: Vec<KilledProcess>,
    /// The option that allows more.
    pub instead: String,
}

/// How many killed processes one [`LimitHit`] names at most.
pub const KILLED_TOLD: usize = 8;

/// The outcome of one command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The exit code; 124 for a timeout, 128+N for signal N, otherwise null unless it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output, invalid UTF-8 replaced, bounded.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// How many bytes it wrote to standard output in all.
    pub stdout_bytes: u64,
    /// How many bytes it wrote to standard error in all.
    pub stderr_bytes: u64,
    /// Whether any byte was left out of `stdout` or `stderr`.
    pub truncated: bool,
    /// The key under which the whole output can be read.
    pub output_id: Option<String>,
    /// How long it ran, in milliseconds of the monotonic clock.
    pub duration_ms: f64,
    /// Where the session stands afterwards.
    pub cwd: PathBuf,
    /// The environment's name.
    pub environment: String,
    /// What that environment enforced.
    pub confinement: Confinement,
    /// Processes of this command that were still alive after everything was done to end them.
    pub survivors: u32,
    /// Processes that the command left behind and that were ended.
    pub ended_processes: u32,
    /// The session, if it ran in one.
    pub session: Option<String>,
    /// Whether the session's shell had to be started anew.
    pub session_restarted: bool,
    /// The job, if it goes on.
    pub job: Option<String>,
    /// Its recording, or its session's, if it is recorded: `shieling log replay` plays it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// What became of its changes of the workspace, where there is something to tell of them. Also what an
    /// earlier command's job has made since.
    pub changes: Option<Changes>,
    /// What explains its failure: what its output names and the environment does not let it change or reach.
    pub hints: Vec<Hint>,
    /// Limits of the environment that were reached while it ran, by it or by what ran beside it.
    pub limits_hit: Vec<LimitHit>,
    /// Why it was refused, if it was.
    pub denial: Option<Denial>,
    /// What went wrong, for `failed` and `lost`.
    pub error: Option<String>,
}

impl Outcome {
    /// How long it ran.
    pub fn took(&self) -> Duration {
        Duration::try_from_secs_f64(self.duration_ms / 1_000.0).unwrap_or_default()
    }

    /// Adds what was held back to what is told of its changes.
    pub fn add_held_back(&mut self, held_back: Vec<HeldBack>) {
        if !held_back.is_empty() {
            self.changes
                .get_or_insert_with(Changes::direct)
                .held_back
                .extend(held_back);
        }
    }

    /// An outcome in which nothing has happened yet, and of which nothing is known to be enforced.
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
            hints: Vec::new(),
            limits_hit: Vec::new(),
            denial: None,
            error: None,
        }
    }
}

/// The names of the signals that end commands in practice; the rest go by number.
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
