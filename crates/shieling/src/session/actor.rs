//! The task that drives one job, by the steps of its [`Lifecycle`]: it drains the output throughout, obeys orders, and
//! reports the end once.
//!
//! A command in a session ends once its main process has: processes that it left in the background keep its pipes,
//! and their output still belongs to the job.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;

use super::Progress;
use super::human::InputEvent;
use super::job_state::{AtEnd, Shared};
use super::progress::Reporter;
use crate::outcome::{Outcome, Status};
use crate::output::Stream;
use crate::process::{
    Action, End, Ended, Event, Lifecycle, LostError, OutputReader, Parts, Reading, TerminalFilter, read_pipe,
};
use crate::units::ByteCount;

/// The longest input that waits to be read by the program, in bytes.
const TYPED: usize = 64 * 1024;

/// An order to the actor of a job.
#[derive(Debug)]
pub(super) enum Order {
    /// Ends all processes of the job.
    Stop {
        /// The reported end of the command. With `None`, it is the end of its main process.
        cause: Option<End>,
        /// The time between SIGTERM and SIGKILL.
        grace: Duration,
    },
    /// A person has taken over the keyboard and sends input events.
    Person(mpsc::Receiver<InputEvent>),
}

/// Owns the process of a job and drives it to its end.
pub(super) struct Actor {
    job: crate::process::Job,
    pipes: [pipe::Receiver; 2],
    output: OutputReader,
    orders: mpsc::Receiver<Order>,
    reporter: Option<Reporter>,
    person: Option<mpsc::Receiver<InputEvent>>,
    /// Applied to the output of the terminal.
    filter: Option<Box<dyn TerminalFilter>>,
    /// Input from a person, or replies of the terminal, that the program has not read yet.
    typed: Vec<u8>,
    life: Lifecycle,
    /// The last field, so that the processes end before the guard reports the end.
    shared: EndGuard,
}

/// Reports the end of a job, also if its actor is dropped early.
struct EndGuard {
    shared: Arc<Shared>,
    at_end: Option<AtEnd>,
}

enum Wake {
    Event(Event),
    Order(Order),
    Timer,
    Report,
    Person(Option<InputEvent>),
    Writable(bool),
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
            // A terminal has no separate standard error.
            output: OutputReader::new([true, shared.terminal.is_none()]),
            orders,
            reporter: progress.map(Reporter::new),
            person: None,
            filter: parts.terminal_filter.filter(|_| shared.terminal.is_some()),
            typed: Vec::new(),
            life: Lifecycle::new(shared.command.grace(), output_limit, shared.kill_leftovers),
            shared: EndGuard {
                shared,
                at_end: Some(at_end),
            },
        }
    }

    /// Runs until no process of the job is left.
    pub(super) async fn drive(mut self) {
        let last = self.run().await;
        self.finish(last);
    }

    /// Returns the state at the end, or `None` if contact with the process was lost.
    async fn run(&mut self) -> Option<Ended> {
        let timer = sleep_until(Instant::now().into());
        tokio::pin!(timer);
        let mut armed = false;
        loop {
            let shared = &self.shared.shared;
            let due = self.reporter.as_ref().and_then(|reporter| reporter.due);
            let wake = tokio::select! {
                biased;
                event = self.job.event(), if !self.life.is_draining() => Wake::Event(event),
                Some(order) = self.orders.recv() => Wake::Order(order),
                () = &mut timer, if armed => Wake::Timer,
                () = sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => Wake::Report,
                event = next_input_event(&mut self.person), if self.person.is_some() && self.typed.is_empty() => Wake::Person(event),
                ok = writable(shared), if !self.typed.is_empty() => Wake::Writable(ok),
                ok = readable(shared, &self.pipes[0], Stream::Stdout), if self.output.open[0] => Wake::Output(Stream::Stdout, ok),
                ok = readable(shared, &self.pipes[1], Stream::Stderr), if self.output.open[1] => Wake::Output(Stream::Stderr, ok),
            };
            let now = Instant::now();
            let action = match wake {
                Wake::Event(Event::MainEnded(..)) => {
                    if self.life.is_running() {
                        // What is in the pipes now was written by the command, not by what it left in the background.
                        self.read_rest();
                    }
                    self.life.main_ended(now, true)
                }
                Wake::Event(Event::Gone(_)) => self.life.gone(now),
                Wake::Event(Event::Lost) => {
                    self.read_rest();
                    return None;
                }
                Wake::Order(Order::Stop { cause, grace }) => self.life.stop(now, cause, grace),
                Wake::Order(Order::Person(events)) => {
                    self.person = Some(events);
                    Action::Continue
                }
                Wake::Timer => {
                    armed = false;
                    self.life.timer_expired(now)
                }
                Wake::Report => {
                    self.report();
                    Action::Continue
                }
                Wake::Person(event) => {
                    self.handle_input_event(event);
                    Action::Continue
                }
                Wake::Writable(ok) => {
                    self.write(ok);
                    Action::Continue
                }
                Wake::Output(stream, true) => {
                    let (read, total) = self.read(stream, Reading::Ready);
                    self.life.output(now, read, total)
                }
                Wake::Output(stream, false) => {
                    self.output.open[stream as usize] = false;
                    Action::Continue
                }
            };
            let next = match action {
                Action::Continue => None,
                Action::SetTimer(time) => Some(time),
                Action::Stop { grace, timer } => {
                    self.job.begin_stop(grace);
                    Some(timer)
                }
                Action::Report => {
                    self.read_rest();
                    self.command_ended(Some(Ended::default()), false);
                    None
                }
                Action::CloseOutput => {
                    self.read_rest();
                    self.output.open = [false, false];
                    None
                }
                Action::GiveUp => {
                    self.read_rest();
                    return None;
                }
            };
            if self.output.open == [false, false] && self.life.is_over_with_output() {
                // Where the session's shell itself has ended, the end of all may be known already.
                if self.job.last().is_none() {
                    let _ = pin!(self.job.event()).poll(&mut Context::from_waker(Waker::noop()));
                }
                return match self.job.last() {
                    Some(last) => last.ok(),
                    None => Some(Ended::default()),
                };
            }
            if let Some(next) = next {
                timer.as_mut().reset(next.into());
                armed = true;
            }
        }
    }

    /// Handles an input event of a person. `None` means that the person has given the keyboard back.
    fn handle_input_event(&mut self, event: Option<InputEvent>) {
        let shared = &self.shared.shared;
        match event {
            None => {
                self.person = None;
                if let Some(mut watcher) = shared.watcher() {
                    watcher.detach();
                }
            }
            Some(InputEvent::Type(bytes)) => self.typed = bytes,
            Some(InputEvent::Refresh) => {
                if let Some(mut watcher) = shared.watcher() {
                    watcher.output(Stream::Stdout, &[]);
                }
            }
            Some(InputEvent::Resize(size)) => {
                let resized = shared.terminal.as_ref().map(|terminal| terminal.resize(size));
                if let (Some(Ok(())), Some(mut watcher)) = (resized, shared.watcher()) {
                    watcher.resize(size);
                }
            }
        }
    }

    /// Writes as much of the pending input as the terminal accepts. Discards it if the terminal is closed.
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

    /// Reads what is there. Returns the number of bytes read now, and in total on both streams.
    fn read(&mut self, stream: Stream, how: Reading) -> (usize, u64) {
        let shared = &self.shared.shared;
        let pipe = &self.pipes[stream as usize];
        let read = |buffer: &mut [u8]| match &shared.terminal {
            Some(terminal) => terminal.try_read(buffer),
            None => read_pipe(pipe, buffer, how),
        };
        let filter = &mut self.filter;
        let count = self.output.read(stream, how, read, |bytes| match filter {
            Some(filter) => shared.record_output(stream, &filter.push(bytes)),
            None => shared.record_output(stream, bytes),
        });
        let totals = shared.state().totals;
        if shared.terminal.is_none() {
            self.output.enlarge(stream, pipe, totals[stream as usize]);
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

    /// Reads what the pipes hold now, without waiting for their end.
    fn read_rest(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.output.open[stream as usize] {
                self.read(stream, Reading::Now);
            }
        }
    }

    /// Queues the terminal's replies to queries of the program. Replies that exceed the bound are dropped: a program
    /// that sends queries without reading the replies does not wait for them.
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
            reporter.send(state.totals[0] + state.totals[1], &state.log);
        }
    }

    /// Handles the end of the last process. `None` means that contact with the process was lost.
    fn finish(&mut self, last: Option<Ended>) {
        self.flush();
        if self.reporter.as_ref().is_some_and(|reporter| reporter.due.is_some()) {
            self.report();
        }
        if self.shared.at_end.is_some() {
            self.command_ended(last, true);
            return;
        }
        // The command ended earlier; now the processes that it left behind have ended too.
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

    /// Records what the filter has held back until the end of the output.
    fn flush(&mut self) {
        let held = self.filter.as_mut().map(|filter| filter.finish()).unwrap_or_default();
        if !held.is_empty() {
            self.shared.shared.record_output(Stream::Stdout, &held);
        }
    }

    /// Builds and reports the outcome of the command.
    fn command_ended(&mut self, last: Option<Ended>, over: bool) {
        if over {
            // Else what is left behind may yet write the rest of what is held back.
            self.flush();
        }
        let times = (self.shared.shared.started, Instant::now());
        let main = self.job.main();
        let shared = Arc::clone(&self.shared.shared);
        let outcome = shared.capture().map(|capture| {
            let finished = self.life.finished(times, main, last, capture.finish());
            finished.into_outcome(shared.blank.clone())
        });
        if let Some(outcome) = outcome {
            self.shared.end(outcome, over);
        }
    }
}

/// Waits until a stream is readable. Returns `false` if it never will be.
async fn readable(shared: &Shared, pipe: &pipe::Receiver, stream: Stream) -> bool {
    match (&shared.terminal, stream) {
        (Some(terminal), Stream::Stdout) => terminal.readable().await.is_ok(),
        (Some(_), Stream::Stderr) => false,
        (None, Stream::Stdout | Stream::Stderr) => pipe.readable().await.is_ok(),
    }
}

/// Waits until the terminal accepts input. Returns `false` if it never will.
async fn writable(shared: &Shared) -> bool {
    match &shared.terminal {
        Some(terminal) => terminal.writable().await.is_ok(),
        None => false,
    }
}

/// Waits for the next input event of a person.
async fn next_input_event(person: &mut Option<mpsc::Receiver<InputEvent>>) -> Option<InputEvent> {
    person.as_mut()?.recv().await
}

impl Shared {
    /// Records output of the job.
    fn record_output(&self, stream: Stream, bytes: &[u8]) {
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
                search.is_waiting()
            });
        }
    }

    fn capture(&self) -> Option<crate::output::Capture> {
        self.state().capture.take()
    }
}

impl EndGuard {
    /// Reports the outcome, unless it was reported before.
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

impl Drop for EndGuard {
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
        // Closes the input. A writer that holds the lock now sees the end of the job by itself.
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
