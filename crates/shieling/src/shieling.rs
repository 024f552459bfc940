//! The façade: everything between a command and its outcome, in order.
//!
//! [`Shieling::run`] is the whole journey. A refusal is a normal outcome; an error is told only
//! where Shieling itself could not do what it should. It decides nothing by itself: policy judges,
//! approval approves, the environment runs.

mod entry;
mod hidden;
mod lookup;
mod reading;
mod refusal;
mod telling;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::approval::{Approvals, Approver, Case, Mode, Nobody, Refused};
use crate::audit::Sink;
use crate::environment::Environment;
use crate::outcome::{Denial, Outcome, Status};
use crate::output::{SpillTo, Tee};
use crate::policy::{Decision, Enforced, Policy, Verdict};
use crate::process::{End, Finished, Limits, LostError, SpawnError, run_to_end};
use crate::rate::{Limit, RateLimiter};
use crate::request::{Command, Digest};
use crate::units::{ByteCount, Clock, SystemClock};

use entry::{Entry, blank};
pub use telling::Told;

/// One environment with its policy, its approvals, its limits and its log. Shared by reference.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use shieling::Shieling;
/// use shieling::approval::Mode;
/// use shieling::environment::{Local, Shell};
/// use shieling::policy::Policy;
/// use shieling::request::Command;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let environment = Arc::new(Local::new(Shell::find(None)?));
/// let shieling = Shieling::builder(environment, Policy::open().with_readonly(), "/work")
///     .approval(Mode::OnAsk)
///     .rate("3/10,10/60".parse()?)
///     .build();
/// let outcome = shieling.run(Command::new("git status", "/work")?, None).await;
/// assert!(outcome.denial.is_none());
/// # Ok(())
/// # }
/// ```
pub struct Shieling {
    environment: Arc<dyn Environment>,
    policy: Policy,
    policy_digest: Digest,
    workspace: PathBuf,
    approvals: Approvals,
    rate: Option<RateLimiter>,
    audit: Option<Arc<dyn Sink>>,
    spill: Option<SpillTo>,
    output_limit: Option<ByteCount>,
    born: Instant,
    runs: AtomicU64,
}

impl fmt::Debug for Shieling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shieling")
            .field("environment", &self.environment.name())
            .field("workspace", &self.workspace)
            .field("approvals", &self.approvals)
            .finish_non_exhaustive()
    }
}

impl Shieling {
    /// Begins one for this environment, policy and workspace.
    pub fn builder(environment: Arc<dyn Environment>, policy: Policy, workspace: impl Into<PathBuf>) -> Builder {
        Builder {
            environment,
            policy,
            workspace: workspace.into(),
            approver: Arc::new(Nobody),
            mode: None,
            patience: None,
            rate: None,
            audit: None,
            spill: None,
            output_limit: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// Runs one command: judges, records, asks, starts, waits and records again.
    ///
    /// Its output goes to `tee` as it arrives. A refusal is an outcome with a `denial`; `failed` with
    /// an `error` means that Shieling itself could not go on, and nothing was started.
    ///
    /// # Cancel safety
    /// Dropping the future kills every process of the command and records that nobody saw its end.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn run(&self, command: Command, tee: Option<&mut dyn Tee>) -> Outcome {
        let command = self.prepared(command);
        let mut entry = self.entry(&command);
        let here = &self.environment;
        let blank = |status| blank(&command, here.name(), here.confinement(), status);

        if let Some(Err(too_soon)) = self.rate.as_ref().map(RateLimiter::attempt) {
            return refuse(&mut entry, blank(Status::RateLimited), refusal::too_soon(too_soon));
        }

        let (verdict, by_environment) = self.judge_here(&command);
        let refused = |refused| refusal::unapproved(&refused, &verdict, &command, by_environment);
        if verdict.decision == Decision::Deny {
            entry.judged(&verdict);
            return refuse(&mut entry, blank(Status::Denied), refused(Refused::Denied));
        }

        if let Err(error) = entry.intent(&verdict) {
            return failed(&mut entry, blank(Status::Failed), &error);
        }

        let case = Case {
            verdict: &verdict,
            policy: self.policy_digest,
            environment: self.environment.name(),
            session: None,
        };
        let files = |command: &Command| lookup::files(&verdict, command, &self.workspace);
        let approved = match self.approvals.approve(command.clone(), &case, files).await {
            Ok(approved) => approved,
            Err(no) => return refuse(&mut entry, blank(Status::Denied), refused(no)),
        };
        if let Err(error) = entry.approved(&approved) {
            return failed(&mut entry, blank(Status::Failed), &error);
        }

        entry.starting();
        let process = match self.environment.spawn(approved).await {
            Ok(process) => process,
            Err(error) => {
                let status = match error {
                    SpawnError::Lost { .. } => Status::Lost,
                    _ => Status::Failed,
                };
                return failed(&mut entry, blank(status), &error);
            }
        };
        let mut limits = Limits::of(&command);
        limits.output = self.output_limit;
        let finished = run_to_end(process, &limits, self.spill.as_ref(), tee).await;

        let mut outcome = told(finished, blank(Status::Exited));
        if let Err(error) = entry.ended(&outcome) {
            outcome.error = Some(format!("it ran, and its end could not be recorded: {error}"));
        }
        outcome
    }

    /// What the policy, and the environment, say of a command. Starts, asks and records nothing.
    pub fn judge(&self, command: &Command) -> Verdict {
        self.judge_here(command).0
    }

    /// The grants, and whoever is asked for them.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Where commands run.
    pub fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    /// What may run.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Where whole outputs go, if they are kept.
    pub fn spill(&self) -> Option<&SpillTo> {
        self.spill.as_ref()
    }

    /// How many commands the rate limit would let through at this moment; none if there is no limit.
    pub fn room(&self) -> Option<usize> {
        self.rate.as_ref().map(RateLimiter::room)
    }

    /// The command as it is to run here.
    fn prepared(&self, command: Command) -> Command {
        let enforced = self.environment.capabilities().enforces_readonly;
        if self.policy.is_readonly() && !enforced {
            reading::only(command)
        } else {
            command
        }
    }

    /// The verdict, and whether only the environment's own reasons ask.
    fn judge_here(&self, command: &Command) -> (Verdict, bool) {
        let can = self.environment.capabilities();
        let facts = lookup::facts(command, &self.workspace).enforcing(Enforced {
            readonly: can.enforces_readonly,
            ignore: can.hides_ignored,
            allow: can.enforces_allow,
        });
        let mut verdict = self.policy.judge(command, &facts);
        let own = hidden::reasons(
            &verdict,
            &can,
            &self.policy,
            command,
            &self.workspace,
            self.environment.name(),
        );
        let by_environment = verdict.decision == Decision::Allow && !own.is_empty();
        for reason in own {
            verdict.decision = verdict.decision.max(reason.decision);
            verdict.reasons.push(reason);
        }
        (verdict, by_environment)
    }

    fn entry(&self, command: &Command) -> Entry {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let name = self.environment.name();
        Entry::new(
            self.audit.clone(),
            command,
            name,
            self.policy_digest,
            number,
            self.born.elapsed(),
        )
    }
}

/// The outcome of a refusal, recorded.
fn refuse(entry: &mut Entry, blank: Outcome, (status, denial): (Status, Denial)) -> Outcome {
    let recorded = entry.refused(&denial);
    Outcome {
        status,
        error: recorded
            .err()
            .map(|error| format!("the refusal could not be recorded: {error}")),
        denial: Some(denial),
        ..blank
    }
}

/// The outcome of a fault of our own, recorded if the log still takes it.
fn failed(entry: &mut Entry, blank: Outcome, error: &(dyn std::error::Error + 'static)) -> Outcome {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    let outcome = Outcome {
        error: Some(text),
        ..blank
    };
    // If the log is what failed, the outcome says so already.
    let _ = entry.ended(&outcome);
    outcome
}

/// The outcome of a run that is over.
fn told(finished: Finished, blank: Outcome) -> Outcome {
    let (output_id, spill_error) = finished
        .spilled
        .map_or((None, None), |spilled| (spilled.id, spilled.error));
    Outcome {
        status: match finished.end {
            End::Exited(_) => Status::Exited,
            End::Signalled(_) => Status::Signalled,
            End::TimedOut => Status::TimedOut,
            End::OutputLimit => Status::OutputLimit,
            End::Lost => Status::Lost,
        },
        exit_code: finished.end.exit_code(),
        signal: if let End::Signalled(signal) = finished.end {
            Some(signal)
        } else {
            None
        },
        stdout: finished.stdout.text(),
        stderr: finished.stderr.text(),
        stdout_bytes: finished.stdout.total(),
        stderr_bytes: finished.stderr.total(),
        truncated: finished.stdout.truncated() || finished.stderr.truncated(),
        output_id: output_id.map(|id| id.to_string()),
        duration_ms: finished.duration.as_secs_f64() * 1_000.0,
        survivors: finished.survivors,
        ended_processes: finished.ended_processes,
        error: match finished.end {
            End::Lost => Some(LostError.to_string()),
            End::Exited(_) | End::Signalled(_) | End::TimedOut | End::OutputLimit => {
                spill_error.map(|error| format!("the whole output could not be kept: {error}"))
            }
        },
        ..blank
    }
}

/// Builds a [`Shieling`]. What is not given: nobody answers, no rate limit, no log, no whole outputs.
#[must_use]
pub struct Builder {
    environment: Arc<dyn Environment>,
    policy: Policy,
    workspace: PathBuf,
    approver: Arc<dyn Approver>,
    mode: Option<Mode>,
    patience: Option<Duration>,
    rate: Option<Limit>,
    audit: Option<Arc<dyn Sink>>,
    spill: Option<SpillTo>,
    output_limit: Option<ByteCount>,
    clock: Arc<dyn Clock>,
}

impl Builder {
    /// With somebody to ask.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// With this to be asked. Otherwise everything where the environment enforces nothing, and what
    /// the policy wants to be asked where it does.
    pub fn approval(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// With this much time to answer (default 10 minutes).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// With a rate limit.
    pub fn rate(mut self, limit: Limit) -> Self {
        self.rate = Some(limit);
        self
    }

    /// With a log.
    pub fn audit(mut self, sink: Arc<dyn Sink>) -> Self {
        self.audit = Some(sink);
        self
    }

    /// With a place for outputs that are more than is kept in memory.
    pub fn spill(mut self, to: SpillTo) -> Self {
        self.spill = Some(to);
        self
    }

    /// With an end to commands that write more than this (default: they may write any amount).
    pub fn output_limit(mut self, limit: ByteCount) -> Self {
        self.output_limit = Some(limit);
        self
    }

    /// With another clock for the rate limit and the grants.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds it.
    pub fn build(self) -> Shieling {
        let can = self.environment.capabilities();
        let contains = can.hides_ignored || can.enforces_readonly || can.enforces_allow;
        let mode = self.mode.unwrap_or(if contains { Mode::OnAsk } else { Mode::Always });
        let mut approvals = Approvals::new(mode, self.approver, self.clock.clone());
        if let Some(patience) = self.patience {
            approvals = approvals.with_patience(patience);
        }
        Shieling {
            policy_digest: self.policy.digest(),
            approvals,
            rate: self.rate.map(|limit| RateLimiter::new(limit, self.clock.clone())),
            environment: self.environment,
            policy: self.policy,
            workspace: self.workspace,
            audit: self.audit,
            spill: self.spill,
            output_limit: self.output_limit,
            born: Instant::now(),
            runs: AtomicU64::new(0),
        }
    }
}
