//! One command, running or finished, that outlives the call it was started by. Knows no deadline:
//! whoever waits for it decides when its time is over, and a job that nobody waits for runs until it
//! ends, is killed, or the last handle of it goes.
//!
//! A job's [`Actor`] owns its process and drains it all the time. A [`Job`] is the handle: it looks at
//! what the actor leaves in the shared state, and gives it orders.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::actor::{Actor, Order};
use super::control::Holder;
use super::human::{self, Attachment, TakeOver};
use super::log::{self, Log};
use super::moment::Moment;
use super::pattern::Search;
use super::terminal::Terminal;
use super::{JobError, JobId, JobInfo, Progress, Screen, SessionName, Size, Watcher};
use crate::outcome::{Outcome, Status};
use crate::output::{Capture, SpillTo};
use crate::process::{End, Process, STOP_MARGIN};
use crate::request::Command;
use crate::units::ByteCount;

/// How many orders may wait for the actor. Those that do not fit say nothing new.
const ORDERS: usize = 8;
/// How much of a command's text a list shows.
const LISTED: usize = 200;

/// What is done with the outcome of a command once it is known.
pub(crate) type AtEnd = Box<dyn FnOnce(&mut Outcome) + Send>;

/// What a job is made of besides its process.
pub(crate) struct Setup {
    /// Its name.
    pub(crate) id: JobId,
    /// The session that it belongs to.
    pub(crate) session: Option<SessionName>,
    /// What runs.
    pub(crate) command: Command,
    /// An outcome in which nothing has happened yet.
    pub(crate) blank: Outcome,
    /// Whether what the main process leaves behind is ended. Otherwise it goes on, and the job with
    /// it, until nothing of it has the job's output any more.
    pub(crate) alone: bool,
    /// Our end of its terminal, which is read instead of the process's pipes.
    pub(crate) terminal: Option<Terminal>,
    /// The way to its standard input.
    pub(crate) stdin: Option<pipe::Sender>,
    /// Who sees all that goes in and comes out.
    pub(crate) watcher: Option<Box<dyn Watcher>>,
    /// Who wants to know how far it is.
    pub(crate) progress: Option<watch::Sender<Progress>>,
    /// How much it may write before it is ended.
    pub(crate) output_limit: Option<ByteCount>,
    /// Where the whole output goes.
    pub(crate) spill: Option<SpillTo>,
    /// Called once with the outcome of the command, also if the job is dropped before its end. Must
    /// hold no handle of the job, which would then never be the last one.
    pub(crate) at_end: AtEnd,
}

/// A handle of a job. Dropping the last one ends all processes of the job.
pub(crate) struct Job {
    pub(super) shared: Arc<Shared>,
    /// Who has the keyboard.
    pub(super) keyboard: Holder,
    orders: mpsc::Sender<Order>,
    /// The scope of the actor.
    task: Mutex<JoinSet<()>>,
}

/// What the actor and the handles share.
pub(super) struct Shared {
    pub(super) id: JobId,
    pub(super) session: Option<SessionName>,
    pub(super) command: Command,
    pub(super) blank: Outcome,
    pub(super) alone: bool,
    pub(super) started: Instant,
    /// The number of its main process on this host, where it has one that means something here.
    pub(super) pid: Option<u32>,
    pub(super) terminal: Option<Terminal>,
    /// Held by whoever writes.
    pub(super) stdin: tokio::sync::Mutex<Option<pipe::Sender>>,
    pub(super) watcher: Option<Mutex<Box<dyn Watcher>>>,
    /// Told after each change of the state.
    pub(super) changed: watch::Sender<()>,
    state: Mutex<State>,
}

/// What changes while a job runs.
pub(super) struct State {
    pub(super) log: Log,
    /// The first and last output of the command, until it has ended.
    pub(super) capture: Option<Capture>,
    /// How much each stream has given.
    pub(super) totals: [u64; 2],
    /// Who waits for a pattern.
    pub(super) searches: Vec<Search>,
    /// The cursor behind what views have shown.
    pub(super) seen: u64,
    pub(super) last_output: Option<Instant>,
    /// The command's outcome, once it has ended.
    pub(super) ended: Option<Outcome>,
    /// Since when nothing of the job is left.
    pub(super) over: Option<Instant>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watcher(&self) -> Option<MutexGuard<'_, Box<dyn Watcher>>> {
        let watcher = self.watcher.as_ref()?;
        Some(watcher.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Job {
    /// A job for a process that runs. It is driven by a task of its own, as long as there is a handle.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[cfg(test)]
    pub(crate) fn start(process: Process, setup: Setup) -> Arc<Self> {
        let (job, actor) = Self::make(process, setup);
        job.adopt(actor);
        job
    }

    /// A job, and what drives it: a future that ends with the job, and that ends the job if it is dropped.
    ///
    /// A caller that waits for the job may drive it itself, which saves a change of tasks, and has it
    /// [adopted](Self::adopt) once it stops to wait.
    pub(crate) fn make(process: Process, setup: Setup) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let pid = process.pid();
        let parts = process.into_parts();
        let (orders, taken) = mpsc::channel(ORDERS);
        let shared = Arc::new(Shared {
            id: setup.id,
            session: setup.session,
            blank: setup.blank,
            alone: setup.alone,
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
                last_output: None,
                ended: None,
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
            keyboard: Holder::default(),
            orders,
            task: Mutex::new(JoinSet::new()),
        };
        (Arc::new(job), actor.drive())
    }

    /// Has what drives it run in a task that ends with the last handle.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn adopt(&self, actor: impl Future<Output = ()> + Send + 'static) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.spawn(actor);
    }

    /// Its name.
    pub(crate) fn id(&self) -> &JobId {
        &self.shared.id
    }

    /// The session that it belongs to.
    pub(crate) fn session(&self) -> Option<&SessionName> {
        self.shared.session.as_ref()
    }

    /// What runs.
    pub(crate) fn command(&self) -> &Command {
        &self.shared.command
    }

    /// Begins to end it: SIGTERM, `grace`, SIGKILL. With a cause, that is how its command has ended,
    /// if it had not before.
    pub(crate) fn stop(&self, cause: Option<End>, grace: Duration) {
        // A full queue holds the same order, and nobody takes orders of a job that is over.
        let _ = self.orders.try_send(Order::Stop { cause, grace });
    }

    /// Ends it with all its processes, and waits until they are gone. One that is over stays as it is.
    ///
    /// # Cancel safety
    /// Cancel safe: it goes on ending.
    pub(crate) async fn kill(&self) {
        let grace = self.shared.command.grace();
        self.stop(None, grace);
        let over = self.until(|state| state.over);
        // Its actor has that bound itself, but for draining.
        let _ = tokio::time::timeout(grace.saturating_add(STOP_MARGIN * 2), over).await;
    }

    /// Makes its terminal so large. The programs on it are told by a SIGWINCH.
    ///
    /// # Errors
    /// [`JobError::NoTerminal`], [`JobError::Ended`], [`JobError::Size`].
    pub(crate) fn resize(&self, size: Size) -> Result<(), JobError> {
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

    /// Its terminal, for `what`.
    pub(super) fn terminal(&self, what: &'static str) -> Result<&Terminal, JobError> {
        let job = || self.shared.id.clone();
        self.shared
            .terminal
            .as_ref()
            .ok_or_else(|| JobError::NoTerminal { job: job(), what })
    }

    /// Tells whoever records it of something that is no input and no output.
    pub(crate) fn mark(&self, label: &str) {
        if let Some(mut watcher) = self.shared.watcher() {
            watcher.mark(label);
        }
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.state().over.is_some()
    }

    /// Nothing, unless nothing of it is left.
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

    /// Waits for the end of its command, of which what it left in the background may go on; `job`
    /// then says so. Gives the outcome.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn ended(&self) -> Outcome {
        self.until(|state| state.ended.as_ref().map(|outcome| self.with_job(outcome, state)))
            .await
    }

    /// The outcome of its command, or how it is now: `running`, with the first and last of its output.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome_now(&self.shared.state())
    }

    /// Its [outcome](Self::outcome) for somebody to whom it is shown: the next view begins behind it.
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

    /// The outcome of what runs, without output.
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

    /// What a person would see of it, if it has a terminal.
    pub(crate) fn screen(&self) -> Option<Screen> {
        self.shared.watcher().and_then(|watcher| watcher.screen())
    }

    /// Whether it has a terminal.
    pub(crate) fn has_terminal(&self) -> bool {
        self.shared.terminal.is_some()
    }

    /// How much it has written.
    pub(crate) fn written(&self) -> u64 {
        self.shared.state().totals.iter().sum()
    }

    /// How it is now, for [`changed`](Self::changed) to compare with.
    pub(crate) fn moment(&self, workspace: &Path) -> Moment {
        // The number of one that has ended may be another's by now.
        let pid = self.shared.pid.filter(|_| self.shared.state().ended.is_none());
        Moment::of(self.written(), pid, workspace)
    }

    /// What has become of it since, in sentences.
    pub(crate) fn changed(&self, before: &Moment, workspace: &Path) -> Vec<String> {
        let (job, now) = (self.id(), self.moment(workspace));
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

    /// Its line in a list.
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
            person: self.keyboard.person(),
            recording,
        }
    }

    /// Waits until the state is so.
    pub(super) async fn until<T>(&self, mut so: impl FnMut(&State) -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        loop {
            if let Some(value) = so(&self.shared.state()) {
                return value;
            }
            // Its sender is in the handle.
            let _ = changed.changed().await;
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
        let (attachment, onlooker, deeds) = human::attach(held, terminal.size());
        if let Some(mut watcher) = self.shared.watcher() {
            watcher.attach(onlooker);
        }
        // Nobody takes orders of a job that is over; what is typed then goes nowhere, and says so.
        let _ = self.orders.try_send(Order::Person(deeds));
        Ok(attachment)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", self.id()).finish_non_exhaustive()
    }
}
