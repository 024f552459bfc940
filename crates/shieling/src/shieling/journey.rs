//! The journey of a command: the one way from a request to what runs, and on to its recorded outcome.
//!
//! ```text
//! rate limit ─► judge ─► record the intent ─► approve ─► start ─► Running ─► record the end
//!     │           │              │               │         │
//!     └───────────┴──────────────┴───────────────┴─────────┴─► an outcome in which nothing runs
//! ```
//!
//! [`Shieling::run`], [`Shieling::start`], [`Shieling::run_shell`] and jobs differ in what they start, and in who waits
//! for its end.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::authorize::{Unauthorized, announce};
use super::entry::{Entry, blank};
use super::{Shieling, file_size, lookup, recorded, refusal, unjudged};
use crate::approval::Approved;
use crate::environment::{Environment, LimitCounts};
use crate::outcome::{Denial, Outcome, Status};
use crate::output::{SpillTo, Tee};
use crate::policy::{CarriedState, Decision, Facts, Policy};
use crate::process::{Limits, Process, SpawnError, run_until};
use crate::rate::RateLimiter;
use crate::request::Command;
use crate::session::{Recorder, SessionName};
use crate::units::ByteCount;

/// The longest time that a command may take to start. A sandbox looks for hidden files in a large workspace first.
const STARTING: Duration = Duration::from_secs(120);

/// The start of a journey.
pub(super) struct Journey<'a> {
    pub(super) command: &'a Command,
    /// The session that the command belongs to.
    pub(super) session: Option<&'a SessionName>,
    /// What there is of earlier commands where it runs.
    pub(super) before: CarriedState,
    /// The recorder of its output, or why it cannot be recorded. Nothing starts then.
    pub(super) recorder: io::Result<Option<Recorder>>,
    pub(super) judge: Judge,
}

impl<'a> Journey<'a> {
    /// The journey of a command outside of sessions, which the policy judges.
    pub(super) fn new(command: &'a Command, recorder: io::Result<Option<Recorder>>) -> Self {
        Self {
            command,
            session: None,
            before: CarriedState::default(),
            recorder,
            judge: Judge::Policy,
        }
    }
}

/// Who decides whether a command may start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judge {
    /// The policy, and the approver where the policy asks.
    Policy,
    /// The person who starts it by hand.
    Person,
}

/// A command that was started, with what its end needs.
pub(super) struct Running {
    environment: Arc<dyn Environment>,
    entry: Entry,
    pub(super) recorder: Option<Recorder>,
    before: LimitCounts,
    file_size: Option<ByteCount>,
}

impl Running {
    /// Adds to an outcome what the environment knows about it.
    pub(super) fn explain(&self, outcome: &mut Outcome) {
        file_size::tell(&*self.environment, outcome, &self.before, self.file_size);
    }

    /// Records the end.
    pub(super) fn close(mut self, outcome: &mut Outcome) {
        if let Some(recorder) = &self.recorder {
            recorded::ended(recorder, outcome);
        }
        self.entry.close(outcome);
    }

    /// Runs the process to its end, which is recorded. Once `stop` has come, it is ended.
    pub(super) async fn drain(
        self,
        process: Process,
        limits: &Limits,
        spill: Option<&SpillTo>,
        tee: Option<&mut dyn Tee>,
        blank: Outcome,
        stop: impl Future<Output = Duration>,
    ) -> Outcome {
        let finished = match self.recorder.clone() {
            None => run_until(process, limits, spill, tee, stop).await,
            Some(recorder) => {
                let mut tee = recorded::Recorded { recorder, tee };
                run_until(process, limits, spill, Some(&mut tee), stop).await
            }
        };
        let confinement = self.environment.confinement();
        let mut outcome = finished.into_outcome(Outcome { confinement, ..blank });
        self.explain(&mut outcome);
        self.close(&mut outcome);
        outcome
    }
}

impl Shieling {
    /// Takes a command from its request to its start. Returns what `start` has started, an outcome without results as a
    /// template, and what the end needs; or the outcome, if nothing runs.
    ///
    /// `start` is called with the approval. Its error means that nothing could be started; its future has a time limit.
    pub(super) async fn journey<T, F>(
        &self,
        journey: Journey<'_>,
        start: impl FnOnce(Approved<Command>) -> io::Result<F>,
    ) -> Result<(T, Outcome, Running), Box<Outcome>>
    where
        F: Future<Output = Result<T, SpawnError>>,
    {
        let Journey {
            command,
            session,
            before: earlier,
            recorder,
            judge,
        } = journey;
        let mut entry = self.entry(command);
        let recorder = match recorder {
            Ok(recorder) => recorder,
            Err(error) => {
                let blank = self.blank(command, session, None, Status::Denied);
                return Err(refuse(&mut entry, blank, refusal::unrecorded(&error)));
            }
        };
        let blank = |status| self.blank(command, session, recorder.as_ref(), status);
        let is_closed = self.closed.load(Ordering::Acquire);
        let approved = match judge {
            _ if is_closed => Err(refuse(&mut entry, blank(Status::Denied), refusal::closed())),
            Judge::Policy => self.admit(command, session, earlier, &mut entry, &blank).await,
            Judge::Person => self.admit_unjudged(command, &mut entry, &blank).await,
        };
        let approved = approved.inspect_err(|refused| recorded::refused(recorder.as_ref(), refused))?;
        recorded::approved(recorder.as_ref(), approved.basis());

        let before = self.environment.limit_counts();
        let failure = |entry: &mut Entry, status, error: &(dyn Error + 'static)| failed(entry, blank(status), error);
        let starting = start(approved).map_err(|error| failure(&mut entry, Status::Failed, &error))?;
        entry.starting();
        let begun = match tokio::time::timeout(STARTING, starting).await {
            Ok(Ok(begun)) => begun,
            Ok(Err(error)) => {
                let status = match error {
                    SpawnError::Lost { .. } => Status::Lost,
                    _ => Status::Failed,
                };
                return Err(failure(&mut entry, status, &error));
            }
            Err(_) => {
                let why = format!("it did not start within {} s", STARTING.as_secs());
                return Err(failure(&mut entry, Status::Failed, &io::Error::other(why)));
            }
        };
        if self.closed.load(Ordering::Acquire) {
            // It began while all was being closed, which has ended everything else.
            drop(begun);
            let why = io::Error::other("it was ended at once: all was closed while it started");
            return Err(failure(&mut entry, Status::Failed, &why));
        }
        // The confinement is known once the environment has started, which its first command makes it do.
        let blank = blank(Status::Exited);
        let running = Running {
            environment: Arc::clone(&self.environment),
            entry,
            recorder,
            before,
            file_size: command.file_size(),
        };
        Ok((begun, blank, running))
    }

    /// Refuses a command before its journey.
    pub(super) fn refused(
        &self,
        command: &Command,
        session: Option<&SessionName>,
        no: (Status, Denial),
    ) -> Box<Outcome> {
        let blank = self.blank(command, session, None, Status::Denied);
        refuse(&mut self.entry(command), blank, no)
    }

    /// Returns an outcome in which nothing has happened yet.
    fn blank(
        &self,
        command: &Command,
        session: Option<&SessionName>,
        recorder: Option<&Recorder>,
        status: Status,
    ) -> Outcome {
        let here = &self.environment;
        Outcome {
            session: session.map(ToString::to_string),
            recording: recorder.map(|recorder| recorder.id().to_string()),
            ..blank(command, here.name(), here.confinement(), status)
        }
    }

    /// Admits a command: applies the rate limit, judges it, records the intent and asks for approval. Returns the
    /// approval, or the outcome of the refusal.
    async fn admit(
        &self,
        command: &Command,
        session: Option<&SessionName>,
        before: CarriedState,
        entry: &mut Entry,
        blank: &(impl Fn(Status) -> Outcome + Sync),
    ) -> Result<Approved<Command>, Box<Outcome>> {
        if let Some(Err(too_soon)) = self.rate.as_ref().map(RateLimiter::attempt) {
            return Err(refuse(entry, blank(Status::RateLimited), refusal::too_soon(too_soon)));
        }

        let (verdict, by_environment) = self.judge_here(command, before);
        let unauthorized = |entry: &mut Entry, why| match why {
            Unauthorized::Refused(no) => {
                let no = refusal::unapproved(&no, &verdict, command, by_environment);
                refuse(entry, blank(Status::Denied), no)
            }
            Unauthorized::Unrecorded(error) => failed(entry, blank(Status::Failed), &error),
            Unauthorized::Closed => refuse(entry, blank(Status::Denied), refusal::closed()),
        };
        announce(&verdict, entry).map_err(|why| unauthorized(entry, why))?;

        let unread = verdict.decision == Decision::Ask && verdict.is_unreadable();
        // A text that bash cannot read either gets bash's own error message. Nothing of it runs.
        if unread && let Some(syntax_check) = self.environment.syntax_check(command).await {
            return Err(self::syntax_check(entry, blank(Status::Exited), syntax_check));
        }

        let session = session.map(ToString::to_string);
        let files = |command: &Command| lookup::files(&verdict, command, &self.workspace, &self.place());
        let approved = self.authorize(command.clone(), &verdict, session.as_deref(), entry, files);
        approved.await.map_err(|why| unauthorized(entry, why))
    }

    /// Admits a command that a person starts by hand, which is its approval.
    async fn admit_unjudged(
        &self,
        command: &Command,
        entry: &mut Entry,
        blank: &(impl Fn(Status) -> Outcome + Sync),
    ) -> Result<Approved<Command>, Box<Outcome>> {
        let failure = |entry: &mut Entry, error: &(dyn Error + 'static)| failed(entry, blank(Status::Failed), error);
        let verdict = Policy::open().judge(command, &Facts::new(&self.workspace, std::path::Path::new("/")));
        entry.intent(&verdict).map_err(|error| failure(entry, &error))?;
        let approved = unjudged::approved(command.clone(), &verdict, &*self.environment)
            .await
            .map_err(|refused| failure(entry, &refused))?;
        entry.approved(&approved).map_err(|error| failure(entry, &error))?;
        Ok(approved)
    }
}

/// Records a refusal and returns its outcome.
fn refuse(entry: &mut Entry, blank: Outcome, (status, denial): (Status, Denial)) -> Box<Outcome> {
    let recorded = entry.refused(&denial);
    Box::new(Outcome {
        status,
        error: recorded
            .err()
            .map(|error| format!("the refusal could not be recorded: {error}")),
        denial: Some(denial),
        ..blank
    })
}

/// Records and returns the outcome of a text that bash cannot read, as `bash -c` reports it. Nothing of it ran.
fn syntax_check(entry: &mut Entry, blank: Outcome, (code, said): (i32, String)) -> Box<Outcome> {
    let outcome = Outcome {
        exit_code: Some(code),
        stderr_bytes: said.len() as u64,
        stderr: said,
        ..blank
    };
    match entry.ended(&outcome) {
        Ok(()) => Box::new(outcome),
        Err(error) => {
            let blank = Outcome {
                status: Status::Failed,
                exit_code: None,
                ..outcome
            };
            failed(entry, blank, &error)
        }
    }
}

/// Returns the outcome of an error of Shieling itself, and records it if the log still accepts records.
fn failed(entry: &mut Entry, blank: Outcome, error: &(dyn Error + 'static)) -> Box<Outcome> {
    let outcome = Outcome {
        error: Some(told(error)),
        // It may have started before contact was lost.
        survivors: u32::from(blank.status == Status::Lost),
        ..blank
    };
    // If the log is what failed, the outcome says so already.
    let _ = entry.ended(&outcome);
    Box::new(outcome)
}

/// Formats an error with its causes.
pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}
