//! A job: one command, running or finished, that outlives the call that started it. A job has no deadline of its own:
//! callers that wait for it apply theirs. It runs until it ends, is killed, or its last handle is dropped.
//!
//! A job's [`Actor`] owns its process and drains its output. A [`Job`] is a handle: it reads the state that the actor
//! shares, and sends orders to the actor.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::actor::{Actor, Order};
use super::human::{self, Attachment, TakeOver};
use super::job_state::{AtEnd, Shared, State};
use super::keyboard::KeyboardLock;
use super::log::{self, Log};
use super::snapshot::JobSnapshot;
use super::terminal::Terminal;
use super::{JobError, JobId, JobInfo, Progress, Screen, SessionName, TerminalSize, Watcher};
use crate::outcome::{Outcome, Status};
use crate::output::{Capture, SpillTo};
use crate::process::{End, Process, STOP_MARGIN};
use crate::request::Command;
use crate::units::ByteCount;

/// The capacity of the actor's queue of orders. An order that does not fit repeats one in the queue.
const ORDERS: usize = 8;
/// The number of bytes of a command's text that a listing contains.
const LISTED: usize = 200;

/// The parts of a job other than its process.
pub(crate) struct JobSetup {
    /// The job's name.
    pub(crate) id: JobId,
    /// The session that the job belongs to.
    pub(crate) session: Option<SessionName>,
    /// The command that runs.
    pub(crate) command: Command,
    /// An outcome without results, used as a template.
    pub(crate) blank: Outcome,
    /// Ends the processes that the main process leaves behind. Otherwise they keep running, and the job with them,
    /// until none of them has the job's output open.
    pub(crate) kill_leftovers: bool,
    /// The controlling end of its terminal, which is read instead of the process's pipes.
    pub(crate) terminal: Option<Terminal>,
    /// The write end of its standard input.
    pub(crate) stdin: Option<pipe::Sender>,
    /// Observes all input and output.
    pub(crate) watcher: Option<Box<dyn Watcher>>,
    /// Receives the progress.
    pub(crate) progress: Option<watch::Sender<Progress>>,
    /// The number of bytes of output at which the job is ended.
    pub(crate) output_limit: Option<ByteCount>,
    /// The file for the whole output.
    pub(crate) spill: Option<SpillTo>,
    /// Called once with the outcome of the command, also if the job is dropped before its end. It must not hold a
    /// handle of the job, or the last handle would never be dropped.
    pub(crate) at_end: AtEnd,
}

/// A handle of a job. Dropping the last handle ends all processes of the job.
pub(crate) struct Job {
    pub(super) shared: Arc<Shared>,
    /// Whether the agent or a person may write.
    pub(super) keyboard: KeyboardLock,
    orders: mpsc::Sender<Order>,
    /// The task of the actor, which ends with the handle.
    task: Mutex<JoinSet<()>>,
}

impl Job {
    /// Starts a job for a running process, driven by a task that ends with the last handle.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[cfg(test)]
    pub(crate) fn start(process: Process, setup: JobSetup) -> Arc<Self> {
        let (job, actor) = Self::make(process, setup);
        job.adopt(actor);
        job
    }

    /// Creates a job, and the future that drives it. The future completes at the end of the job; dropping it ends the
    /// job.
    ///
    /// A caller that waits for the job may poll the future itself, which saves a switch between tasks, and
    /// [`adopt`](Self::adopt) it when it stops waiting.
    pub(crate) fn make(process: Process, setup: JobSetup) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let pid = process.pid();
        let parts = process.into_parts();
        let (orders, taken) = mpsc::channel(ORDERS);
        let shared = Arc::new(Shared {
            id: setup.id,
            session: setup.session,
            blank: setup.blank,
            kill_leftovers: setup.kill_leftovers,
            started: parts.started,
            pid,
            terminal: setup.terminal,
            stdin: tokio::sync::Mutex::new(setup.stdin),
            watcher: setup.watcher.map(Mutex::new),
            changed: watch::Sender::new(()),
            state: Mutex::new(State {
                log: Log::new(log::KEPT),
                capture: Some(Capture::new(setup.command.output_kept(), setup.spill.as_ref())),
                totals: [0, 0],
                searches: Vec::new(),
                seen: 0,
                seen_before: 0,
                last_output: None,
                ended: None,
                is_reviewed: false,
                over: None,
            }),
            command: setup.command,
        });
        let actor = Actor::new(
            Arc::clone(&shared),
            parts,
            taken,
            setup.output_limit,
            setup.progress,
            setup.at_end,
        );
        let job = Self {
            shared,
            keyboard: KeyboardLock::default(),
            orders,
            task: Mutex::new(JoinSet::new()),
        };
        (Arc::new(job), actor.drive())
    }

    /// Runs the future that drives the job in a task that ends with the last handle.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn adopt(&self, actor: impl Future<Output = ()> + Send + 'static) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.spawn(actor);
    }

    /// Returns the job's name.
    pub(crate) fn id(&self) -> &JobId {
        &self.shared.id
    }

    /// Returns the session that the job belongs to.
    pub(crate) fn session(&self) -> Option<&SessionName> {
        self.shared.session.as_ref()
    }

    /// Returns the command.
    pub(crate) fn command(&self) -> &Command {
        &self.shared.command
    }

    /// Starts to end the job: SIGTERM, then SIGKILL after `grace`. `cause` becomes the end of the command, unless it
    /// has ended before.
    pub(crate) fn stop(&self, cause: Option<End>, grace: Duration) {
        // A full queue holds the same order, and a job that is over needs none.
        let _ = self.orders.try_send(Order::Stop { cause, grace });
    }

    /// Ends all processes of the job and waits until they are gone. Does nothing if the job is over.
    ///
    /// # Cancel safety
    /// Cancel safe: the job is still ended.
    pub(crate) async fn kill(&self) {
        let grace = self.shared.command.grace();
        self.stop(None, grace);
        let over = self.until(|state| state.over);
        // The actor has this bound itself, except while it drains the output.
        let _ = tokio::time::timeout(grace.saturating_add(STOP_MARGIN * 2), over).await;
    }

    /// Resizes the terminal. Its programs receive SIGWINCH.
    ///
    /// # Errors
    /// [`JobError::NoTerminal`], [`JobError::Ended`], [`JobError::Size`].
    pub(crate) fn resize(&self, size: TerminalSize) -> Result<(), JobError> {
        let terminal = self.terminal("a size")?;
        self.still_running()?;
        let size = size.checked().map_err(JobError::Size)?;
        terminal.resize(size).map_err(|_| JobError::Ended {
            job: self.id().clone(),
            status: Status::Running,
        })?;
        if let Some(mut watcher) = self.shared.watcher() {
            watcher.resize(size);
        }
        Ok(())
    }

    /// Returns the terminal, which the operation `what` needs.
    pub(super) fn terminal(&self, what: &'static str) -> Result<&Terminal, JobError> {
        let job = || self.shared.id.clone();
        self.shared
            .terminal
            .as_ref()
            .ok_or_else(|| JobError::NoTerminal { job: job(), what })
    }

    /// Adds a label to the recording, if there is one.
    pub(crate) fn mark(&self, label: &str) {
        if let Some(mut watcher) = self.shared.watcher() {
            watcher.mark(label);
        }
    }

    /// Returns whether no process of the job is left.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.state().over.is_some()
    }

    /// Fails with [`JobError::Ended`] if no process of the job is left.
    pub(super) fn still_running(&self) -> Result<(), JobError> {
        let state = self.shared.state();
        match (&state.ended, state.over) {
            (Some(ended), Some(_)) => Err(JobError::Ended {
                job: self.shared.id.clone(),
                status: ended.status,
            }),
            _ => Ok(()),
        }
    }

    /// Waits for the end of the command and returns its outcome. If processes that it left in the background still
    /// run, the outcome's `job` names this job.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn ended(&self) -> Outcome {
        self.until(|state| state.ended.as_ref().map(|outcome| self.with_job(outcome, state)))
            .await
    }

    /// Returns the outcome of the command for a caller that asks a person about the changes in it. `None` before the end
    /// of the command, and if a caller has asked or is asking.
    pub(crate) fn claim_review(self: &Arc<Self>) -> Option<ReviewClaim> {
        let mut state = self.shared.state();
        let outcome = state.ended.clone()?;
        if std::mem::replace(&mut state.is_reviewed, true) {
            return None;
        }
        Some(ReviewClaim {
            job: Arc::clone(self),
            outcome,
            is_done: false,
        })
    }

    /// Says in an earlier copy of the outcome of the command what came of the review of its changes.
    pub(crate) fn tell_review(&self, outcome: &mut Outcome) {
        if let Some(ended) = &self.shared.state().ended {
            outcome.changes.clone_from(&ended.changes);
            outcome.error.clone_from(&ended.error);
        }
    }

    /// Returns the outcome of the command, or `running` with the head and the tail of its output so far.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome_now(&self.shared.state())
    }

    /// Returns the [outcome](Self::outcome) and marks the output as viewed: the next view starts after it.
    pub(crate) fn shown(&self) -> Outcome {
        let mut state = self.shared.state();
        state.seen = state.log.end();
        self.outcome_now(&state)
    }

    fn outcome_now(&self, state: &State) -> Outcome {
        if let Some(ended) = &state.ended {
            return self.with_job(ended, state);
        }
        let mut outcome = self.running(state);
        if let Some(capture) = &state.capture {
            use crate::output::Stream::{Stderr, Stdout};
            let (stdout, stderr) = (capture.so_far(Stdout), capture.so_far(Stderr));
            outcome.truncated = stdout.truncated() || stderr.truncated();
            outcome.output_id = capture.output_id().map(ToString::to_string);
            (outcome.stdout, outcome.stderr) = (stdout.text(), stderr.text());
        }
        outcome
    }

    fn with_job(&self, outcome: &Outcome, state: &State) -> Outcome {
        Outcome {
            job: state.over.is_none().then(|| self.shared.id.to_string()),
            ..outcome.clone()
        }
    }

    /// Returns the outcome of a running command, without its output.
    pub(super) fn running(&self, state: &State) -> Outcome {
        Outcome {
            status: Status::Running,
            stdout_bytes: state.totals[0],
            stderr_bytes: state.totals[1],
            duration_ms: self.shared.started.elapsed().as_secs_f64() * 1_000.0,
            job: Some(self.shared.id.to_string()),
            ..self.shared.blank.clone()
        }
    }

    /// Returns the contents of the terminal's screen, if there is one.
    pub(crate) fn screen(&self) -> Option<Screen> {
        self.shared.watcher().and_then(|watcher| watcher.screen())
    }

    /// Returns whether the job has a terminal.
    pub(crate) fn has_terminal(&self) -> bool {
        self.shared.terminal.is_some()
    }

    /// Returns the number of bytes that the job has written.
    pub(crate) fn written(&self) -> u64 {
        self.shared.state().totals.iter().sum()
    }

    /// Records the present state, for [`changed`](Self::changed) to compare with.
    pub(crate) fn snapshot(&self, workspace: &Path) -> JobSnapshot {
        // After the end of the process its id may belong to another process.
        let pid = self.shared.pid.filter(|_| self.shared.state().ended.is_none());
        JobSnapshot::of(self.written(), pid, workspace)
    }

    /// Describes the changes since a snapshot, one sentence each.
    pub(crate) fn changed(&self, before: &JobSnapshot, workspace: &Path) -> Vec<String> {
        let (job, now) = (self.id(), self.snapshot(workspace));
        let mut changed = Vec::new();
        if now.written > before.written {
            changed.push(format!(
                "job `{job}` wrote {} bytes; view it",
                now.written - before.written
            ));
        }
        changed.extend(now.since(before));
        match self.still_running() {
            Ok(()) => {}
            Err(ended) => changed.push(ended.to_string()),
        }
        changed
    }

    /// Returns the job's entry in a listing.
    pub(crate) fn info(&self) -> JobInfo {
        let shared = &self.shared;
        let text = shared.command.text();
        let recording = shared.watcher().and_then(|watcher| watcher.recording());
        let state = shared.state();
        let ended = state.ended.as_ref().filter(|_| state.over.is_some());
        JobInfo {
            job: shared.id.clone(),
            session: shared.session.clone(),
            command: text[..text.floor_char_boundary(LISTED)].to_owned(),
            status: ended.map_or(Status::Running, |ended| ended.status),
            exit_code: ended.and_then(|ended| ended.exit_code),
            duration_ms: ended.map_or_else(
                || shared.started.elapsed().as_secs_f64() * 1_000.0,
                |ended| ended.duration_ms,
            ),
            output_bytes: state.totals[0] + state.totals[1],
            unseen_bytes: state.log.end() - state.seen,
            terminal: shared.terminal.is_some(),
            person: self.keyboard.is_held(),
            recording,
        }
    }

    /// Waits until `so` returns a value for the state.
    pub(super) async fn until<T>(&self, mut so: impl FnMut(&State) -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        loop {
            if let Some(value) = so(&self.shared.state()) {
                return value;
            }
            // Never fails: the sender lives as long as the handle.
            let _ = changed.changed().await;
        }
    }
}

/// The right to ask a person about the changes in a job's outcome. If it is dropped before [`done`](Self::done), another
/// caller may ask.
pub(crate) struct ReviewClaim {
    job: Arc<Job>,
    /// The outcome, into which the answers go.
    pub(crate) outcome: Outcome,
    is_done: bool,
}

impl ReviewClaim {
    /// Keeps the changes and the error of the outcome as the job's own.
    pub(crate) fn done(mut self) {
        self.is_done = true;
        if let Some(ended) = &mut self.job.shared.state().ended {
            ended.changes = self.outcome.changes.take();
            ended.error = self.outcome.error.take();
        }
    }
}

impl Drop for ReviewClaim {
    fn drop(&mut self) {
        if !self.is_done {
            self.job.shared.state().is_reviewed = false;
        }
    }
}

impl TakeOver for Job {
    fn attach(&self) -> Result<Attachment, JobError> {
        let terminal = self.terminal("a person to take the keyboard")?;
        self.still_running()?;
        let held = self
            .keyboard
            .take()
            .ok_or_else(|| JobError::PersonHolds { job: self.id().clone() })?;
        let (attachment, viewer, events) = human::attach(held, terminal.size());
        if let Some(mut watcher) = self.shared.watcher() {
            watcher.attach(viewer);
        }
        // A job that is over needs no order; input is then discarded, and the write says so.
        let _ = self.orders.try_send(Order::Person(events));
        Ok(attachment)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", self.id()).finish_non_exhaustive()
    }
}
