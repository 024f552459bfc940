//! What really happened to one command: facts, with units.
//!
//! This is the shape of contract section 2, the same in the CLI's `--json`, in MCP and in Python.
//! Wording for people and models is made elsewhere.

use std::path::PathBuf;

use serde::Serialize;

use crate::policy::{Decision, Reason};

/// The typed end, or present state, of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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

/// What the environment really enforced, read back and not wished.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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
    /// Why it was refused, if it was.
    pub denial: Option<Denial>,
    /// What went wrong, for `failed` and `lost`.
    pub error: Option<String>,
}
