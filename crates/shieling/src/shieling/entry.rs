//! The records of one run, of which the last is written whatever happens.
//!
//! ```text
//! new ──► refused                         one record: denied
//!   └───► intent ──► refused              then: denied
//!               ├──► failed               then: outcome
//!               ├──► ended                then: outcome
//!               └──► dropped              then: outcome, by the guard
//! ```

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::approval::Approved;
use crate::audit::{FileDigest, GrantRecord, InputRecord, OutcomeRecord, Record, RecordKind, Sink};
use crate::files::FilesError;
use crate::outcome::{Confinement, Denial, Outcome, Status};
use crate::policy::Verdict;
use crate::request::{Command, Digest, FileOp, Request};

/// One run's place in the log.
pub(super) struct Entry {
    sink: Option<Arc<dyn Sink>>,
    /// What every record of the run repeats.
    record: Record,
    began: Instant,
    offset: Duration,
    /// Whether an intent stands in the log and no end of it yet.
    open: bool,
    started: bool,
}

impl Entry {
    pub(super) fn new(
        sink: Option<Arc<dyn Sink>>,
        request: &impl Request,
        environment: &str,
        policy: Digest,
        number: u64,
        offset: Duration,
    ) -> Self {
        let record = Record::new(RecordKind::Intent, run_id(number), 0.0, request, environment, policy);
        Self {
            sink,
            record,
            began: Instant::now(),
            offset,
            open: false,
            started: false,
        }
    }

    /// What the records report is not a command but that `text` is typed, which none of them holds.
    pub(super) fn typing(&mut self, text: &str, typed: InputRecord) {
        self.record.set_typed(text, typed);
    }

    /// What the records report from here on is this operation on files: the same as before, worked out
    /// anew perhaps.
    pub(super) fn of_files(&mut self, op: &FileOp) {
        op.text().clone_into(&mut self.record.command);
        self.record.command_digest = op.digest();
        self.record.set_files(op);
    }

    /// Records how an operation on files ended, in an environment in which this holds.
    ///
    /// # Errors
    /// Those of the log.
    pub(super) fn ended_files(&mut self, end: Result<Option<u64>, &FilesError>, holds: Confinement) -> io::Result<()> {
        if let (Some(file), Ok(bytes)) = (&mut self.record.file, end) {
            file.bytes = bytes;
        }
        let (status, error) = match end {
            Ok(_) => (Status::Exited, None),
            Err(error) => (Status::Failed, Some(error.to_string())),
        };
        let outcome = Outcome {
            confinement: holds,
            duration_ms: self.began.elapsed().as_secs_f64() * 1_000.0,
            error,
            ..Outcome::blank(status, &self.record.cwd, &self.record.environment)
        };
        self.ended(&outcome)
    }

    /// Records that the command is to be approved and started.
    pub(super) fn intent(&mut self, verdict: &Verdict) -> io::Result<()> {
        self.judged(verdict);
        self.append(RecordKind::Intent)?;
        self.open = true;
        Ok(())
    }

    /// Remembers the verdict for the records to come.
    pub(super) fn judged(&mut self, verdict: &Verdict) {
        self.record.verdict = Some(verdict.into());
    }

    /// Records on whose yes the command starts. Where the policy alone decided, the intent has said
    /// so already.
    pub(super) fn approved(&mut self, approved: &Approved<impl Request>) -> io::Result<()> {
        self.record.grant = Some(GrantRecord {
            id: approved.grant().to_string(),
            basis: approved.basis().name().to_owned(),
            files: approved.files().iter().map(FileDigest::from).collect(),
        });
        if approved.basis() == crate::approval::Basis::Policy {
            Ok(())
        } else {
            self.append(RecordKind::Approved)
        }
    }

    /// From here on the command may be running.
    pub(super) fn starting(&mut self) {
        self.started = true;
    }

    /// It is not: nothing was done, and it may be tried again.
    pub(super) fn not_started(&mut self) {
        self.started = false;
    }

    /// Records a refusal.
    pub(super) fn refused(&mut self, denial: &Denial) -> io::Result<()> {
        self.open = false;
        self.record.denial = Some(denial.into());
        self.append(RecordKind::Denied)
    }

    /// Records the end of what ran, which says so itself if that cannot be done.
    pub(super) fn close(&mut self, outcome: &mut Outcome) {
        if let Err(error) = self.ended(outcome) {
            outcome.error = Some(format!("it ran, and its end could not be recorded: {error}"));
        }
    }

    /// Records the end.
    pub(super) fn ended(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.finish(outcome.into())
    }

    fn finish(&mut self, ended: OutcomeRecord) -> io::Result<()> {
        self.open = false;
        self.record.outcome = Some(ended);
        self.append(RecordKind::Outcome)
    }

    fn append(&mut self, kind: RecordKind) -> io::Result<()> {
        let Some(sink) = &self.sink else { return Ok(()) };
        self.record.kind = kind;
        self.record.time = crate::audit::rfc3339(SystemTime::now());
        self.record.monotonic_ms = (self.offset + self.began.elapsed()).as_secs_f64() * 1_000.0;
        self.record.unquote();
        sink.append(&self.record)
    }
}

/// The caller has gone away in the middle: the record says so, truthfully.
impl Drop for Entry {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let (status, error) = match (self.started, &self.record.file) {
            (false, _) => (Status::Failed, "the caller went away before it was started"),
            (true, None) => (
                Status::Lost,
                "the caller went away: all processes of the command were killed, and nobody saw its end",
            ),
            (true, Some(_)) => (
                Status::Lost,
                "it was broken off while it was made, and nobody saw its end",
            ),
        };
        let ended = OutcomeRecord {
            status,
            exit_code: None,
            signal: None,
            stdout_bytes: 0,
            stderr_bytes: 0,
            duration_ms: self.began.elapsed().as_secs_f64() * 1_000.0,
            survivors: 0,
            ended_processes: 0,
            enforced: Vec::new(),
            missing: Vec::new(),
            error: Some(error.to_owned()),
        };
        // There is nobody left to tell if this fails; the intent without an end tells it.
        let _ = self.finish(ended);
    }
}

/// A name for a run that no other run in any log has: several processes may share one.
pub(super) fn run_id(number: u64) -> String {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let digest = Digest::of(format!("{} {} {number}", std::process::id(), now.as_nanos()).as_bytes());
    digest.to_string()[..16].to_owned()
}

/// An outcome in which nothing has happened yet.
pub(super) fn blank(command: &Command, environment: &str, confinement: Confinement, status: Status) -> Outcome {
    Outcome {
        confinement,
        ..Outcome::blank(status, command.cwd(), environment)
    }
}
