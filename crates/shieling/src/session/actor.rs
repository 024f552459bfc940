//! Drives one job: drains its output throughout, obeys orders, and tells its end once.
//!
//! ```text
//!          main ended, pipes open         quiet, or LINGER over
//! running ────────────────────► lingering ──┬─ alone ──► stopping ──► draining ──► over
//!    │ order, output limit                  └─ else ───► left           ▲ gone
//!    └─────────────────────────► stopping                 └─ pipes at their end ──► over
//! ```
//!
//! A command that does not stand alone has ended once it is *left*: what it started in the background
//! keeps its pipes, and whatever that writes still belongs to the job.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;

use super::Progress;
use super::human::Deed;
use super::job::{AtEnd, Shared};
use super::progress::Reporter;
use crate::outcome::{Outcome, Status};
use crate::output::Stream;
use crate::process::{
    BURST, DRAIN, End, Ended, Event, Finished, LARGE, LARGE_PIPE, LEFT_BEHIND_GRACE, LINGER, LostError, Parts, QUIET,
    READ, Reading, STOP_MARGIN, read_pipe,
};
use crate::units::ByteCount;

/// The size of the first reads. Most jobs write little.
const FIRST_READ: usize = 8 * 1024;

/// How much that nobody has read is kept to be typed.
const TYPED: usize = 64 * 1024;

/// What an actor is told.
#[derive(Debug)]
pub(super) enum Order {
    /// End everything.
    Stop {
        /// How the command has then ended; otherwise as its main process really does.
        cause: Option<End>,
        /// Between SIGTERM and SIGKILL.
        grace: Duration,
    },
    /// A person has the keyboard, and does this.
    Person(mpsc::Receiver<Deed>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Lingering { until: Instant },
    Left,
    Stopping,
    Draining,
}

/// Owns the process of a job.
pub(super) struct Actor {
    job: crate::process::Job,
    pipes: [pipe::Receiver; 2],
    open: [bool; 2],
    large: [bool; 2],
    buffer: Vec<u8>,
    output_limit: Option<ByteCount>,
    orders: mpsc::Receiver<Order>,
    reporter: Option<Reporter>,
    person: Option<mpsc::Receiver<Deed>>,
    /// What a person has typed, or the terminal answers, and the program has not read.
    typed: Vec<u8>,
    phase: Phase,
    /// Why we ended it, if we did.
    cause: Option<End>,
    main_ended: Option<Instant>,
    /// Dropped last, so that the processes end first.
    shared: Guard,
}

/// Tells the end of a job whose actor is dropped before it.
struct Guard {
    shared: Arc<Shared>,
    at_end: Option<AtEnd>,
}

enum Wake {
    Event(Event),
    Order(Order),
    Timer,
    Report,
    Deed(Option<Deed>),
    Room(bool),
    Output(Stream, bool),
}

impl Actor {
    pub(super) fn new(
        shared: Arc<Shared>,
        parts: Parts,
        orders: mpsc::Receiver<Order>,
        output_limit: Option<ByteCount>,
        progress: Option<watch::Sender<Progress>>,
        at_end: AtEnd,
    ) -> Self {
        Self {
            job: parts.job,
            pipes: [parts.stdout, parts.stderr],
            // A terminal is one stream.
            open: [true, shared.terminal.is_none()],
            large: [false, false],
            buffer: Vec::new(),
            output_limit,
            orders,
            reporter: progress.map(Reporter::new),
            person: None,
            typed: Vec::new(),
            phase: Phase::Running,
            cause: None,
            main_ended: None,
            shared: Guard {
                shared,
                at_end: Some(at_end),
            },
        }
    }

    /// Until nothing of the job is left.
    pub(super) async fn drive(mut self) {
        let last = self.run().await;
        self.finish(last);
    }

    /// What is known of the end; `None` if contact was lost.
    async fn run(&mut self) -> Option<Ended> {
        let timer = sleep_until(Instant::now().into());
        tokio::pin!(timer);
        let mut armed = false;
        loop {
            let shared = &self.shared.shared;
            let due = self.reporter.as_ref().and_then(|reporter| reporter.due);
            let wake = tokio::select! {
                biased;
                event = self.job.event(), if self.phase != Phase::Draining => Wake::Event(event),
                Some(order) = self.orders.recv() => Wake::Order(order),
                () = &mut timer, if armed => Wake::Timer,
                () = sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => Wake::Report,
                deed = deed(&mut self.person), if self.person.is_some() && self.typed.is_empty() => Wake::Deed(deed),
                ok = writable(shared), if !self.typed.is_empty() => Wake::Room(ok),
                ok = readable(shared, &self.pipes[0], Stream::Stdout), if self.open[0] => Wake::Output(Stream::Stdout, ok),
                ok = readable(shared, &self.pipes[1], Stream::Stderr), if self.open[1] => Wake::Output(Stream::Stderr, ok),
            };
            let now = Instant::now();
            let next = match wake {
                Wake::Event(Event::MainEnded(..)) => {
                    self.main_ended = Some(now);
                    (self.phase == Phase::Running).then(|| {
                        // What is in the pipes is the command's own.
                        self.read_rest();
                        self.phase = Phase::Lingering { until: now + LINGER };
                        now + QUIET
                    })
                }
                Wake::Event(Event::Gone(_)) => {
                    self.phase = Phase::Draining;
                    Some(now + DRAIN)
                }
                Wake::Event(Event::Lost) => {
                    self.read_rest();
                    return None;
                }
                Wake::Order(Order::Stop { cause, grace }) => self.obey(now, cause, grace),
                Wake::Order(Order::Person(deeds)) => {
                    self.person = Some(deeds);
                    None
                }
                Wake::Timer => {
                    armed = false;
                    match self.phase {
                        Phase::Running | Phase::Left => None,
                        Phase::Lingering { .. } if self.alone() => Some(self.stop(now, LEFT_BEHIND_GRACE)),
                        Phase::Lingering { .. } => {
                            self.read_rest();
                            self.command_ended(Some(Ended::default()), false);
                            self.phase = Phase::Left;
                            None
                        }
                        Phase::Stopping => {
                            self.read_rest();
                            return None;
                        }
                        Phase::Draining => {
                            self.read_rest();
                            self.open = [false, false];
                            None
                        }
                    }
                }
                Wake::Report => {
                    self.report();
                    None
                }
                Wake::Deed(deed) => {
                    self.does(deed);
                    None
                }
                Wake::Room(ok) => {
                    self.write(ok);
                    None
                }
                Wake::Output(stream, true) => {
                    let (read, total) = self.read(stream, BURST, Reading::Ready);
                    match self.phase {
                        Phase::Running if self.output_limit.is_some_and(|limit| total > limit.get()) => {
                            self.cause = Some(End::OutputLimit);
                            Some(self.stop(now, self.grace()))
                        }
                        Phase::Lingering { until } if read > 0 => Some(until.min(now + QUIET)),
                        _ => None,
                    }
                }
                Wake::Output(stream, false) => {
                    self.open[stream as usize] = false;
                    None
                }
            };
            if self.open == [false, false] {
                match self.phase {
                    Phase::Draining => return self.job.last().and_then(Result::ok),
                    Phase::Lingering { .. } | Phase::Left if !self.alone() => return Some(Ended::default()),
                    Phase::Running | Phase::Lingering { .. } | Phase::Left | Phase::Stopping => {}
                }
            }
            if let Some(next) = next {
                timer.as_mut().reset(next.into());
                armed = true;
            }
        }
    }

    fn alone(&self) -> bool {
        self.shared.shared.alone
    }

    fn grace(&self) -> Duration {
        self.shared.shared.command.grace()
    }

    fn obey(&mut self, now: Instant, cause: Option<End>, grace: Duration) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                self.cause = cause;
                Some(self.stop(now, grace))
            }
            Phase::Lingering { .. } | Phase::Left | Phase::Stopping => Some(self.stop(now, grace)),
            Phase::Draining => None,
        }
    }

    /// What a person did, or that they have let go.
    fn does(&mut self, deed: Option<Deed>) {
        let shared = &self.shared.shared;
        match deed {
            None => {
                self.person = None;
                if let Some(mut watcher) = shared.watcher() {
                    watcher.detach();
                }
            }
            Some(Deed::Type(bytes)) => self.typed = bytes,
            Some(Deed::Look) => {
                if let Some(mut watcher) = shared.watcher() {
                    watcher.output(Stream::Stdout, &[]);
                }
            }
            Some(Deed::Resize(size)) => {
                let resized = shared.terminal.as_ref().map(|terminal| terminal.resize(size));
                if let (Some(Ok(())), Some(mut watcher)) = (resized, shared.watcher()) {
                    watcher.resize(size);
                }
            }
        }
    }

    /// Types what there is room for; nothing of it, if there never will be any.
    fn write(&mut self, room: bool) {
        let shared = &self.shared.shared;
        let written = match &shared.terminal {
            Some(terminal) if room => terminal.try_write(&self.typed),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match written {
            Ok(count) => {
                if let Some(mut watcher) = shared.watcher() {
                    watcher.input(self.typed.get(..count).unwrap_or_default());
                }
                self.typed.drain(..count);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.typed.clear(),
        }
    }

    fn stop(&mut self, now: Instant, grace: Duration) -> Instant {
        self.job.begin_stop(grace);
        self.phase = Phase::Stopping;
        let margin = grace.saturating_add(STOP_MARGIN);
        now.checked_add(margin).unwrap_or(now + STOP_MARGIN)
    }

    /// Reads what is there, `times` at most. Gives how many bytes that were, and how many in all.
    fn read(&mut self, stream: Stream, times: usize, how: Reading) -> (usize, u64) {
        let at = stream as usize;
        if self.buffer.is_empty() {
            self.buffer.resize(FIRST_READ, 0);
        }
        let shared = &self.shared.shared;
        let mut count = 0;
        for _ in 0..times {
            let read = match &shared.terminal {
                Some(terminal) => terminal.try_read(&mut self.buffer),
                None => read_pipe(&self.pipes[at], &mut self.buffer, how),
            };
            match read {
                Ok(0) => {
                    self.open[at] = false;
                    break;
                }
                Ok(length) => {
                    let bytes = self.buffer.get(..length).unwrap_or_default();
                    shared.take(stream, bytes);
                    count += length;
                    if length == self.buffer.len() && length < READ {
                        self.buffer.resize(READ, 0);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // A terminal that nobody has open any more says EIO.
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.open[at] = false;
                    }
                    break;
                }
            }
        }
        let totals = shared.state().totals;
        if shared.terminal.is_none() && !self.large[at] && totals[at] > LARGE {
            self.large[at] = true;
            // Over the user's budget it stays as it was, only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(&self.pipes[at], LARGE_PIPE);
        }
        if count > 0 {
            shared.changed.send_replace(());
            self.answer();
            if let Some(reporter) = &mut self.reporter {
                reporter.changed();
            }
        }
        (count, totals[0] + totals[1])
    }

    /// What is in pipes that do not end now, and no more.
    fn read_rest(&mut self) {
        let times = LARGE_PIPE / self.buffer.len().max(FIRST_READ) + 1;
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.open[stream as usize] {
                self.read(stream, times, Reading::Now);
            }
        }
    }

    /// Types what the terminal answers to what it was asked. A program that asks and does not read has
    /// no answer to wait for.
    fn answer(&mut self) {
        let shared = &self.shared.shared;
        if shared.terminal.is_some()
            && let Some(mut watcher) = shared.watcher()
        {
            let replies = watcher.replies();
            if self.typed.len() + replies.len() <= TYPED {
                self.typed.extend(replies);
            }
        }
    }

    fn report(&mut self) {
        if let Some(reporter) = &mut self.reporter {
            let state = self.shared.shared.state();
            reporter.tell(state.totals[0] + state.totals[1], &state.log);
        }
    }

    /// Nothing is left of the job, or nobody can say.
    fn finish(&mut self, last: Option<Ended>) {
        if self.reporter.as_ref().is_some_and(|reporter| reporter.due.is_some()) {
            self.report();
        }
        if self.shared.at_end.is_some() {
            self.command_ended(last, true);
            return;
        }
        // The command had ended before; what it left behind has now.
        let shared = &self.shared.shared;
        let mut state = shared.state();
        let totals = state.totals;
        if let Some(outcome) = &mut state.ended {
            let (ended, survivors) = last.map_or((0, 1), |last| (last.ended, last.survivors));
            outcome.ended_processes += ended;
            outcome.survivors = survivors;
            if last.is_none() {
                outcome.error.get_or_insert_with(|| LostError.to_string());
            }
            (outcome.stdout_bytes, outcome.stderr_bytes) = (totals[0], totals[1]);
        }
        state.log.finish();
        state.over = Some(Instant::now());
        drop(state);
        shared.changed.send_replace(());
    }

    /// The command has ended: makes its outcome.
    fn command_ended(&mut self, last: Option<Ended>, over: bool) {
        let now = Instant::now();
        let ended_at = match self.cause {
            Some(_) => now,
            None => self.main_ended.unwrap_or(now),
        };
        let main = self.job.main();
        let end = End::of(self.cause, main.map(|(end, _)| end), last.is_none());
        let (ended_processes, survivors) = last.map_or((0, 1), |last| (last.ended, last.survivors));
        let shared = Arc::clone(&self.shared.shared);
        let outcome = shared.capture().map(|capture| {
            let (stdout, stderr, spilled) = capture.finish();
            let finished = Finished {
                end,
                stdout,
                stderr,
                spilled,
                duration: ended_at.saturating_duration_since(shared.started),
                ended_processes,
                survivors,
                usage: main.map(|(_, usage)| usage),
            };
            finished.into_outcome(shared.blank.clone())
        });
        if let Some(outcome) = outcome {
            self.shared.end(outcome, over);
        }
    }
}

/// Waits until there is something to read. Says no if there never will be.
async fn readable(shared: &Shared, pipe: &pipe::Receiver, stream: Stream) -> bool {
    match (&shared.terminal, stream) {
        (Some(terminal), Stream::Stdout) => terminal.readable().await.is_ok(),
        (Some(_), Stream::Stderr) => false,
        (None, Stream::Stdout | Stream::Stderr) => pipe.readable().await.is_ok(),
    }
}

/// Waits until there may be room to type.
async fn writable(shared: &Shared) -> bool {
    match &shared.terminal {
        Some(terminal) => terminal.writable().await.is_ok(),
        None => false,
    }
}

/// Waits for what a person does next.
async fn deed(person: &mut Option<mpsc::Receiver<Deed>>) -> Option<Deed> {
    person.as_mut()?.recv().await
}

impl Shared {
    /// Takes what the job wrote.
    fn take(&self, stream: Stream, bytes: &[u8]) {
        if let Some(mut watcher) = self.watcher() {
            watcher.output(stream, bytes);
        }
        let mut state = self.state();
        let state = &mut *state;
        state.log.push(stream, bytes);
        if let Some(capture) = &mut state.capture {
            capture.push(stream, bytes);
        }
        state.totals[stream as usize] += bytes.len() as u64;
        state.last_output = Some(Instant::now());
        if !state.searches.is_empty() {
            state.searches.retain_mut(|search| {
                search.push(stream, bytes);
                search.goes_on()
            });
        }
    }

    fn capture(&self) -> Option<crate::output::Capture> {
        self.state().capture.take()
    }
}

impl Guard {
    /// Tells the outcome, once.
    fn end(&mut self, mut outcome: Outcome, over: bool) {
        let Some(at_end) = self.at_end.take() else { return };
        at_end(&mut outcome);
        let mut state = self.shared.state();
        state.ended = Some(outcome);
        if over {
            state.log.finish();
            state.over = Some(Instant::now());
        }
        drop(state);
        self.shared.changed.send_replace(());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.at_end.is_some() {
            let capture = self.shared.capture();
            let totals = self.shared.state().totals;
            let error = "it was let go of: all its processes were killed, and nobody saw its end";
            let mut outcome = Outcome {
                status: Status::Lost,
                stdout_bytes: totals[0],
                stderr_bytes: totals[1],
                duration_ms: self.shared.started.elapsed().as_secs_f64() * 1_000.0,
                error: Some(error.to_owned()),
                ..self.shared.blank.clone()
            };
            if let Some(capture) = capture {
                let (stdout, stderr, spilled) = capture.finish();
                outcome.truncated = stdout.truncated() || stderr.truncated();
                outcome.output_id = spilled.and_then(|spilled| spilled.id).map(|id| id.to_string());
                (outcome.stdout, outcome.stderr) = (stdout.text(), stderr.text());
            }
            self.end(outcome, true);
        }
        // Nobody reads it any more; whoever is writing at this moment sees that by itself.
        if let Ok(mut stdin) = self.shared.stdin.try_lock() {
            *stdin = None;
        }
        let mut state = self.shared.state();
        if state.over.is_none() {
            state.over = Some(Instant::now());
            drop(state);
            self.shared.changed.send_replace(());
        }
    }
}
