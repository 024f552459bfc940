//! The audit log: an append-only record of requests, approvals and outcomes.
//!
//! Each command is recorded twice: the intent before it starts, the outcome after. If a record cannot be written, the
//! command does not start. Only the façade writes records, and no part of the library reads them: no decision depends
//! on an earlier record.
//!
//! Records contain the names of environment variables, but not their values. They contain the text of commands
//! unchanged, including any secrets in it. Input to jobs is recorded by length only, since it may be a password.
//!
//! ```text
//! intent ──► approved ──► outcome          a command that ran
//!        └─► denied                        a command that was not approved
//! connection                               a connection to a host that ended, or was refused
//! denied                                   a command that the policy or the rate limit refused
//! ```
//!
//! A change of files is recorded like a command, with an intent each time it is prepared. A read has only an outcome,
//! which is written before the caller receives the result; if a rule requires an approval for it, an intent and the
//! approval precede the outcome. A request that fails before it can be judged, such as an edit of a missing file, has
//! only an outcome. Records never contain the contents of files, only digests.
//!
//! Each line of a [`LogFile`] contains the SHA-256 of the line before. This reveals every change by a party that
//! cannot rewrite the rest of the file. To detect a rewritten or truncated file, compare with a [`LogHead`] that was
//! stored elsewhere.

mod connection;
mod head;
mod file;
mod line;
mod touched;
mod typed;
mod verify;

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

pub use crate::units::rfc3339;
pub use connection::{ConnectionRecord, RequestRecord};
pub use file::{Durability, LogFile, LogSettings, MAX_LINE_BYTES};
pub use head::LogHead;
pub use line::escape;
pub use touched::{FileRecord, MAX_PATHS};
pub use typed::{InputRecord, MAX_KEYS};
pub use verify::{BrokenLog, Defect, LogSummary, verify};

use crate::outcome::{Denial, Layer, Outcome, Status};
use crate::policy::{Decision, Reason, Verdict};
use crate::request::{Digest, FileOp, Request};
use touched::lossy;

/// The largest number of reasons in a record; the others are counted.
pub const MAX_REASONS: usize = 64;

/// Stores records.
///
/// `append` returns once the record is as durable as the sink promises. It is called from asynchronous code and may
/// block for the duration of a write to a local file, but not longer.
pub trait Sink: Send + Sync {
    /// Appends a record.
    ///
    /// # Errors
    /// If the record could not be stored. The command is then not started.
    fn append(&self, record: &Record) -> io::Result<()>;
}

/// A sink that calls a function.
pub struct SinkFn<F>(pub F);

impl<F: Fn(&Record) -> io::Result<()> + Send + Sync> Sink for SinkFn<F> {
    fn append(&self, record: &Record) -> io::Result<()> {
        (self.0)(record)
    }
}

impl<F> fmt::Debug for SinkFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// The event that a record reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// A command is about to be approved and started.
    Intent,
    /// An approver, or an earlier grant, allowed it. Written before it starts.
    Approved,
    /// It was refused and not started.
    Denied,
    /// It has ended, or contact with it was lost.
    Outcome,
    /// A connection to a host has ended, or was refused.
    Connection,
}

/// A record, before it receives its number and its link to the line before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The event.
    pub kind: RecordKind,
    /// An id that all records of one run share, unique in the log.
    pub run: String,
    /// The wall-clock time in RFC 3339 (UTC). It is informative only.
    pub time: String,
    /// The monotonic time, in milliseconds since the writer was created.
    pub monotonic_ms: f64,
    /// The id of the process that wrote the record.
    pub pid: u32,
    /// The text of the command or of the file operation; for input to a job, its length and the job.
    pub command: String,
    /// The file operation, if the record is about one. Otherwise it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileRecord>,
    /// The input to a job, if the record is about one. Otherwise it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<InputRecord>,
    /// The connection, if the record is about one. Otherwise it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionRecord>,
    /// The working directory; bytes that are not UTF-8 are replaced.
    pub cwd: String,
    /// The names of the environment variables.
    pub variables: Vec<String>,
    /// The name of the environment.
    pub environment: String,
    /// The digest of the text, the directory, and the variables with their values; for a file operation, of the paths
    /// and contents that it changes. For input to a job, it is the SHA-256 of `run`, a line feed, and the text, so
    /// that the same password has a different digest each time.
    pub command_digest: Digest,
    /// The digest of the policy.
    pub policy_digest: Digest,
    /// The verdict, if the policy was asked.
    pub verdict: Option<VerdictRecord>,
    /// The approval, if there is one.
    pub grant: Option<GrantRecord>,
    /// The refusal, if there is one.
    pub denial: Option<DenialRecord>,
    /// The outcome, if it has ended.
    pub outcome: Option<OutcomeRecord>,
}

/// The recorded part of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerdictRecord {
    /// The decision.
    pub decision: Decision,
    /// The first [`MAX_REASONS`] reasons.
    pub reasons: Vec<Reason>,
    /// The number of further reasons.
    pub reasons_omitted: usize,
}

impl From<&Verdict> for VerdictRecord {
    fn from(verdict: &Verdict) -> Self {
        let (reasons, reasons_omitted) = first(&verdict.reasons);
        Self {
            decision: verdict.decision,
            reasons,
            reasons_omitted,
        }
    }
}

/// A recorded approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GrantRecord {
    /// The number of the grant within the process that wrote the record.
    pub id: String,
    /// The basis: `policy`, `answer` or `grant`.
    pub basis: String,
    /// The files that the text runs, in the state that was approved.
    pub files: Vec<FileDigest>,
}

/// A file that a command runs, with the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDigest {
    /// The path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The digest.
    pub digest: Digest,
}

impl From<&(PathBuf, Digest)> for FileDigest {
    fn from((path, digest): &(PathBuf, Digest)) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            digest: *digest,
        }
    }
}

/// The recorded part of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DenialRecord {
    /// The stage that refused.
    pub layer: Layer,
    /// `deny`, or `ask` if an approval was missing.
    pub decision: Decision,
    /// The first [`MAX_REASONS`] reasons.
    pub reasons: Vec<Reason>,
    /// The number of further reasons.
    pub reasons_omitted: usize,
    /// The time after which a retry can succeed.
    pub retry_after_ms: Option<u64>,
}

impl From<&Denial> for DenialRecord {
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

/// The recorded part of an outcome, without the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OutcomeRecord {
    /// How it ended.
    pub status: Status,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The number of bytes written to standard output.
    pub stdout_bytes: u64,
    /// The number of bytes written to standard error.
    pub stderr_bytes: u64,
    /// The time that it ran.
    pub duration_ms: f64,
    /// The number of processes that could not be ended.
    pub survivors: u32,
    /// The number of processes that were left behind and ended.
    pub ended_processes: u32,
    /// The layers that the environment enforced.
    pub enforced: Vec<String>,
    /// The layers that were requested and not enforced.
    pub missing: Vec<String>,
    /// The error, if there was one.
    pub error: Option<String>,
}

impl From<&Outcome> for OutcomeRecord {
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
    /// Creates a record that contains only the request, its place and its time.
    pub fn new(
        kind: RecordKind,
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
            connection: None,
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

    /// Makes this a record about a file operation.
    pub(crate) fn set_files(&mut self, op: &FileOp) {
        self.file = Some(op.into());
    }

    /// Makes this a record about the input `text`, without the text.
    pub(crate) fn set_typed(&mut self, text: &str, typed: InputRecord) {
        self.command_digest = Digest::of(format!("{}\n{text}", self.run).as_bytes());
        self.command = typed.to_string();
        self.typed = Some(typed);
    }

    /// Removes the parts that may quote the input, if this is a record about input.
    pub(crate) fn unquote(&mut self) {
        let Some(typed) = &self.typed else { return };
        let object = format!("job {}", typed.job);
        let judged = self.verdict.as_mut().map(|VerdictRecord { reasons, .. }| reasons);
        let refused = self.denial.as_mut().map(|DenialRecord { reasons, .. }| reasons);
        for Reason {
            object: of,
            span,
            because,
            instead,
            decision: _,
            rule: _,
        } in judged.into_iter().chain(refused).flatten()
        {
            of.clone_from(&object);
            *span = None;
            "what was typed is not repeated here".clone_into(because);
            *instead = None;
        }
        if let Some(grant) = &mut self.grant {
            grant.files.clear();
        }
    }
}

fn first(reasons: &[Reason]) -> (Vec<Reason>, usize) {
    let kept = &reasons[..reasons.len().min(MAX_REASONS)];
    (kept.to_vec(), reasons.len() - kept.len())
}
