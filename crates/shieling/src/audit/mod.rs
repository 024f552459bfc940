//! The record of what was asked, answered and done, which can only grow.
//!
//! Written twice for each command: the intent before anything starts, the outcome after. A sink that
//! fails stops the start: nothing runs unrecorded. The façade writes it and no part of the library
//! reads it back; no decision depends on what an earlier record says.
//!
//! Records name environment variables and never hold their values, and hold the command's text as it
//! was given: whoever writes a secret into a command finds it in the log. What is typed into a job is
//! never in it, only how much: it may be a password, and nobody can tell.
//!
//! ```text
//! intent ──► approved ──► outcome          a command that ran
//!        └─► denied                        that nobody said yes to
//! denied                                   that the policy or the rate limit refused
//! ```
//!
//! A change of files is recorded as a command is: each time that it is worked out, an intent. Of what is
//! only read there is one line, the outcome, written before the caller gets to see it; if a rule had
//! somebody asked about it, the intent and the yes stand before that. What could not even be worked out,
//! such as an edit of what is not there, leaves an outcome alone. What is in the files, and what a
//! change puts there, is never in a record: only a digest of it.
//!
//! Each line of a [`File`] carries the SHA-256 of the line before. That shows every change by
//! somebody who cannot rewrite the rest of the file; against somebody who can, or who cuts off the
//! end, compare with a [`Head`] that was noted elsewhere.

mod file;
mod line;
mod touched;
mod typed;
mod verify;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use crate::units::rfc3339;
pub use file::{Durability, File, MAX_LINE_BYTES, Settings};
pub use line::escape;
pub use touched::{FilesTouched, MAX_PATHS};
pub use typed::{MAX_KEYS, Typed};
pub use verify::{Broken, Head, Summary, Why, verify};

use crate::outcome::{Denial, Layer, Outcome, Status};
use crate::policy::{Decision, Reason, Verdict};
use crate::request::{Digest, Request};

/// The largest number of reasons that a record repeats; the rest is counted.
pub const MAX_REASONS: usize = 64;

/// Where records go.
///
/// `append` returns once the record is as safe as the sink promises. It is called from asynchronous
/// code and may block for as long as a write to a local file takes, not longer.
pub trait Sink: Send + Sync {
    /// Adds one record at the end.
    ///
    /// # Errors
    /// Anything that leaves the record unwritten. The command is then not started.
    fn append(&self, record: &Record) -> io::Result<()>;
}

/// A sink that hands each record to a function.
pub struct Callback<F>(pub F);

impl<F: Fn(&Record) -> io::Result<()> + Send + Sync> Sink for Callback<F> {
    fn append(&self, record: &Record) -> io::Result<()> {
        (self.0)(record)
    }
}

impl<F> fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// What a record reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A command is about to be approved and started.
    Intent,
    /// Somebody, or an earlier grant, said yes to it; written before it starts.
    Approved,
    /// It was refused and did not start.
    Denied,
    /// It has ended, or contact to it was lost.
    Outcome,
}

/// One line of the log, before it has its number and its link to the line before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// What it reports.
    pub kind: Kind,
    /// The same for all records of one run of one command, and for no other in this log.
    pub run: String,
    /// The wall clock, RFC 3339 in UTC. For people: nothing is measured with it.
    pub time: String,
    /// The monotonic clock, in milliseconds since the writer was built.
    pub monotonic_ms: f64,
    /// The process that wrote it.
    pub pid: u32,
    /// The text of the command; how an operation on files reads; for what is typed, how much and into
    /// what.
    pub command: String,
    /// The operation on files, where that is what it reports; otherwise not in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FilesTouched>,
    /// What was typed, where that is what it reports; otherwise not in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
    /// Where it was to run; bytes that are not UTF-8 are replaced.
    pub cwd: String,
    /// The names of the variables in its environment, without their values.
    pub variables: Vec<String>,
    /// The environment it was to run in.
    pub environment: String,
    /// The digest of text, directory, and variables with their values; of an operation on files, of all
    /// that it changes and by what. Of what is typed, the SHA-256 of `run`, a line feed, and the text: the same password has another one each time.
    pub command_digest: Digest,
    /// The digest of the policy that judged.
    pub policy_digest: Digest,
    /// What the policy said, if it was asked.
    pub verdict: Option<Judged>,
    /// The yes that it started on.
    pub grant: Option<Granted>,
    /// The stage that refused it.
    pub denial: Option<Refusal>,
    /// How it ended.
    pub outcome: Option<Ended>,
}

/// A verdict, as far as a record repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The decision.
    pub decision: Decision,
    /// The first [`MAX_REASONS`] reasons.
    pub reasons: Vec<Reason>,
    /// How many more there were.
    pub reasons_omitted: usize,
}

impl From<&Verdict> for Judged {
    fn from(verdict: &Verdict) -> Self {
        let (reasons, reasons_omitted) = first(&verdict.reasons);
        Self {
            decision: verdict.decision,
            reasons,
            reasons_omitted,
        }
    }
}

/// A yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// The grant's number in the process that wrote the record.
    pub id: String,
    /// Whose yes it is: `policy`, `answer` or `grant`.
    pub basis: String,
    /// The files that the text runs, as they were when the yes was given.
    pub files: Vec<FileSeen>,
}

/// A file that a command runs, and what was in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSeen {
    /// Its path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Its digest.
    pub digest: Digest,
}

impl From<&(PathBuf, Digest)> for FileSeen {
    fn from((path, digest): &(PathBuf, Digest)) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            digest: *digest,
        }
    }
}

/// A refusal, as far as a record repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The stage.
    pub layer: Layer,
    /// `deny`, or `ask` where a yes was missing.
    pub decision: Decision,
    /// The first [`MAX_REASONS`] reasons.
    pub reasons: Vec<Reason>,
    /// How many more there were.
    pub reasons_omitted: usize,
    /// The wait after which a retry can help.
    pub retry_after_ms: Option<u64>,
}

impl From<&Denial> for Refusal {
    fn from(denial: &Denial) -> Self {
        let (reasons, reasons_omitted) = first(&denial.reasons);
        Self {
            layer: denial.layer,
            decision: denial.decision,
            reasons,
            reasons_omitted,
            retry_after_ms: denial.retry_after_ms,
        }
    }
}

/// An outcome without its output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    /// How it ended.
    pub status: Status,
    /// The exit code, as in the outcome.
    pub exit_code: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
    /// Bytes written to standard output.
    pub stdout_bytes: u64,
    /// Bytes written to standard error.
    pub stderr_bytes: u64,
    /// How long it ran.
    pub duration_ms: f64,
    /// What was still alive at the end.
    pub survivors: u32,
    /// What was left behind and ended.
    pub ended_processes: u32,
    /// What the environment enforced.
    pub enforced: Vec<String>,
    /// What it did not enforce though asked to.
    pub missing: Vec<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl From<&Outcome> for Ended {
    fn from(outcome: &Outcome) -> Self {
        Self {
            status: outcome.status,
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            stdout_bytes: outcome.stdout_bytes,
            stderr_bytes: outcome.stderr_bytes,
            duration_ms: outcome.duration_ms,
            survivors: outcome.survivors,
            ended_processes: outcome.ended_processes,
            enforced: outcome.confinement.enforced.clone(),
            missing: outcome.confinement.missing.clone(),
            error: outcome.error.clone(),
        }
    }
}

impl Record {
    /// A record with nothing in it but who asks what, where and when.
    pub fn new(
        kind: Kind,
        run: String,
        monotonic_ms: f64,
        request: &impl Request,
        environment: &str,
        policy_digest: Digest,
    ) -> Self {
        Self {
            kind,
            run,
            time: rfc3339(std::time::SystemTime::now()),
            monotonic_ms,
            pid: std::process::id(),
            command: request.text().to_owned(),
            file: None,
            typed: None,
            cwd: lossy(request.cwd()),
            variables: request.variable_names(),
            environment: environment.to_owned(),
            command_digest: request.digest(),
            policy_digest,
            verdict: None,
            grant: None,
            denial: None,
            outcome: None,
        }
    }
}

fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn first(reasons: &[Reason]) -> (Vec<Reason>, usize) {
    let kept = &reasons[..reasons.len().min(MAX_REASONS)];
    (kept.to_vec(), reasons.len() - kept.len())
}
