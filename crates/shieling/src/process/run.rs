//! Runs a process to its end: drains its output throughout, keeps its deadline, and ends what it
//! leaves behind.
//!
//! ```text
//!            main ended, others left              quiet, or LINGER over
//! running ───────────────────────────► lingering ──────────────────────► stopping ─► drained
//!    │  deadline, output limit                                              ▲           ▲
//!    ├──────────────────────────────────────────────────────────────────────┘           │
//!    └──────────────────────────── main ended, nothing left ────────────────────────────┘
//! ```

use std::io;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::time::sleep_until;

use super::{Ended, Event, LostError, MainEnd, Process, Usage};
use crate::outcome::{Outcome, Status};
use crate::output::{Capture, Captured, SpillTo, Spilled, Stream, Tee};
use crate::request::Command;
use crate::units::ByteCount;

/// What the kernel may take to end a tree, beyond the grace, before it is called lost.
pub(crate) const STOP_MARGIN: Duration = Duration::from_secs(4);
/// After its main process ended, the rest of a job may go on as long as it writes something at
/// least this often: the last stage of a process substitution, say.
pub(crate) const QUIET: Duration = Duration::from_millis(20);
/// But no longer than this.
pub(crate) const LINGER: Duration = Duration::from_millis(200);
/// Between SIGTERM and SIGKILL for what was left behind.
pub(crate) const LEFT_BEHIND_GRACE: Duration = Duration::from_millis(100);
/// With every process gone, only somebody outside can keep a pipe open; nobody waits longer.
pub(crate) const DRAIN: Duration = Duration::from_millis(100);
/// The size of one read.
pub(crate) const READ: usize = 256 * 1024;
/// A stream that has given this much gets a larger pipe. Not sooner: most never need it, and all
/// pipes of a user share one budget (64 MiB).
pub(crate) const LARGE: u64 = 128 * 1024;
pub(crate) const LARGE_PIPE: usize = 1024 * 1024;
/// Reads in a row before timers get their turn.
pub(crate) const BURST: usize = 8;

/// The bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run, from its start.
    pub deadline: Duration,
    /// Between SIGTERM and SIGKILL at the deadline.
    pub grace: Duration,
    /// How much is kept of each stream.
    pub keep: ByteCount,
    /// How much both streams together may give before the command is ended (default: any amount).
    pub output: Option<ByteCount>,
}

impl Limits {
    /// Those of a command.
    pub fn of(command: &Command) -> Self {
        Self {
            deadline: command.deadline(),
            grace: command.grace(),
            keep: command.output_kept(),
            output: None,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// At its deadline.
    TimedOut,
    /// By its memory limit.
    OutOfMemory,
    /// At its output limit.
    OutputLimit,
    /// Contact was lost; some of its processes may still be running.
    Lost,
}

impl End {
    /// The end of a job that was ended for this cause, or ended so by itself.
    pub(crate) fn of(cause: Option<Self>, main: Option<MainEnd>, lost: bool) -> Self {
        match (cause, main) {
            _ if lost => Self::Lost,
            (Some(cause), _) => cause,
            (None, Some(MainEnd::Exited(code))) => Self::Exited(code),
            (None, Some(MainEnd::Signalled(signal))) => Self::Signalled(signal),
            (None, Some(MainEnd::OutOfMemory)) => Self::OutOfMemory,
            (None, None) => Self::Lost,
        }
    }

    /// The code that a shell would report: 128+N for signal N, 124 for a timeout.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signalled(signal) => Some(128 + signal),
            Self::TimedOut => Some(124),
            Self::OutOfMemory | Self::OutputLimit | Self::Lost => None,
        }
    }
}

/// A run that is over.
#[derive(Debug)]
#[must_use]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What was kept of standard output.
    pub stdout: Captured,
    /// What was kept of standard error.
    pub stderr: Captured,
    /// The file with the whole output, if it was more than was kept and a place was given.
    pub spilled: Option<Spilled>,
    /// From the start to the end of the main process, or to the end of everything if it was ended.
    pub duration: Duration,
    /// Processes besides the main one that were alive when the run was ended, or were left behind.
    pub ended_processes: u32,
    /// Processes that could not be ended; 0 is checked. At least 1 if contact was lost.
    pub survivors: u32,
    /// What the main process used; unknown if contact was lost.
    pub usage: Option<Usage>,
}

impl Finished {
    /// The outcome, with all that nobody but the caller knows taken from `blank`.
    pub(crate) fn into_outcome(self, blank: Outcome) -> Outcome {
        let (output_id, spill_error) = self.spilled.map_or((None, None), |spilled| (spilled.id, spilled.error));
        Outcome {
            status: match self.end {
                End::Exited(_) => Status::Exited,
                End::Signalled(_) => Status::Signalled,
                End::TimedOut => Status::TimedOut,
                End::OutOfMemory => Status::OutOfMemory,
                End::OutputLimit => Status::OutputLimit,
                End::Lost => Status::Lost,
            },
            exit_code: self.end.exit_code(),
            signal: if let End::Signalled(signal) = self.end {
                Some(signal)
            } else {
                None
            },
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            stdout_bytes: self.stdout.total(),
            stderr_bytes: self.stderr.total(),
            truncated: self.stdout.truncated() || self.stderr.truncated(),
            output_id: output_id.map(|id| id.to_string()),
            duration_ms: self.duration.as_secs_f64() * 1_000.0,
            survivors: self.survivors,
            ended_processes: self.ended_processes,
            error: match self.end {
                End::Lost => Some(LostError.to_string()),
                End::Exited(_) | End::Signalled(_) | End::TimedOut | End::OutOfMemory | End::OutputLimit => {
                    spill_error.map(|error| format!("the whole output could not be kept: {error}"))
                }
            },
            ..blank
        }
    }
}

/// Runs `process` to its end and keeps `limits.keep` of each stream; the whole goes to `spill`.
///
/// Returns within the deadline, the grace and about 10 ms, whoever holds the pipes. Background
/// processes that outlive the main one are given 20 ms of silence (200 ms at most), then ended and
/// counted. Output written before the end of the last process is never lost.
///
/// `tee` gets every byte as it arrives; it must not block for long, since the deadline waits for it.
///
/// # Cancel safety
/// Dropping the future kills every process of the job.
pub async fn run_to_end(
    process: Process,
    limits: &Limits,
    spill: Option<&SpillTo>,
    tee: Option<&mut dyn Tee>,
) -> Finished {
    let started = process.started();
    let mut run = Run {
        capture: Capture::new(limits.keep, spill),
        tee,
        limits,
        open: [true, true],
        large: [false, false],
        buffer: vec![0; READ],
        phase: Phase::Running,
        cause: None,
        main_ended: None,
        process,
    };
    let last = run.drive().await;
    let now = Instant::now();
    let (ended_processes, survivors) = match last {
        Some(ended) => (ended.ended, ended.survivors),
        None => (0, 1),
    };
    let end = End::of(run.cause, run.process.job.main.map(|(end, _)| end), last.is_none());
    let ended_at = if run.cause.is_some() {
        now
    } else {
        run.main_ended.unwrap_or(now)
    };
    let usage = run.process.job.main.map(|(_, usage)| usage);
    let (stdout, stderr, spilled) = run.capture.finish();
    Finished {
        end,
        stdout,
        stderr,
        spilled,
        duration: ended_at.saturating_duration_since(started),
        ended_processes,
        survivors,
        usage,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Lingering { until: Instant },
    Stopping,
    Draining,
}

struct Run<'a, 'b> {
    process: Process,
    limits: &'a Limits,
    capture: Capture,
    tee: Option<&'b mut dyn Tee>,
    buffer: Vec<u8>,
    open: [bool; 2],
    large: [bool; 2],
    phase: Phase,
    /// Why we ended it, if we did.
    cause: Option<End>,
    main_ended: Option<Instant>,
}

impl Run<'_, '_> {
    /// Until everything is over. `None` if contact was lost.
    async fn drive(&mut self) -> Option<Ended> {
        // A deadline beyond the clock is none.
        let far = || Instant::now() + Duration::from_secs(60 * 60 * 24 * 365);
        let deadline = self
            .process
            .started()
            .checked_add(self.limits.deadline)
            .unwrap_or_else(far);
        let timer = sleep_until(deadline.into());
        tokio::pin!(timer);
        loop {
            let wake = tokio::select! {
                biased;
                event = self.process.job.event(), if self.phase != Phase::Draining => Wake::Event(event),
                () = &mut timer => Wake::Timer,
                ready = self.process.stdout.readable(), if self.open[0] => Wake::Output(Stream::Stdout, ready.is_ok()),
                ready = self.process.stderr.readable(), if self.open[1] => Wake::Output(Stream::Stderr, ready.is_ok()),
            };
            let now = Instant::now();
            let next = match wake {
                Wake::Event(Event::MainEnded(..)) => {
                    self.main_ended = Some(now);
                    (self.phase == Phase::Running).then(|| {
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
                Wake::Timer => match self.phase {
                    Phase::Running => Some(self.end_it(now, End::TimedOut)),
                    Phase::Lingering { .. } => Some(self.stop(now, LEFT_BEHIND_GRACE)),
                    Phase::Stopping => {
                        self.read_rest();
                        return None;
                    }
                    Phase::Draining => {
                        self.read_rest();
                        self.open = [false, false];
                        None
                    }
                },
                Wake::Output(stream, true) => {
                    let read = self.read(stream, BURST, Reading::Ready);
                    let total = self.capture.total();
                    match self.phase {
                        Phase::Running if self.limits.output.is_some_and(|limit| total > limit.get()) => {
                            Some(self.end_it(now, End::OutputLimit))
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
            if self.phase == Phase::Draining && self.open == [false, false] {
                return self.process.job.last.and_then(Result::ok);
            }
            if let Some(next) = next {
                timer.as_mut().reset(next.into());
            }
        }
    }

    fn end_it(&mut self, now: Instant, cause: End) -> Instant {
        self.cause = Some(cause);
        self.stop(now, self.limits.grace)
    }

    fn stop(&mut self, now: Instant, grace: Duration) -> Instant {
        self.process.job.control.stop(grace);
        self.phase = Phase::Stopping;
        let margin = grace.saturating_add(STOP_MARGIN);
        now.checked_add(margin).unwrap_or(now + STOP_MARGIN)
    }

    /// Reads what is there, `times` at most. Gives the number of bytes.
    fn read(&mut self, stream: Stream, times: usize, how: Reading) -> usize {
        let pipe: &pipe::Receiver = match stream {
            Stream::Stdout => &self.process.stdout,
            Stream::Stderr => &self.process.stderr,
        };
        let mut count = 0;
        for _ in 0..times {
            match read_pipe(pipe, &mut self.buffer, how) {
                Ok(0) => {
                    self.open[stream as usize] = false;
                    break;
                }
                Ok(length) => {
                    let bytes = self.buffer.get(..length).unwrap_or_default();
                    if let Some(tee) = &mut self.tee {
                        tee.bytes(stream, bytes);
                    }
                    self.capture.push(stream, bytes);
                    count += length;
                    if !self.large[stream as usize] && self.capture.stream_total(stream) > LARGE {
                        self.large[stream as usize] = true;
                        // Over the user's budget it stays as it was, only slower.
                        let _ = rustix::pipe::fcntl_setpipe_size(pipe, LARGE_PIPE);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.open[stream as usize] = false;
                    }
                    break;
                }
            }
        }
        count
    }

    /// A last look at pipes that do not end: what is in them now, and no more.
    fn read_rest(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.open[stream as usize] {
                self.read(stream, LARGE_PIPE / READ + 1, Reading::Now);
            }
        }
    }
}

/// When a pipe is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Once the runtime has said that there is something.
    Ready,
    /// Whatever the runtime knows: it may not have looked since the last bytes came.
    Now,
}

/// Reads what is there.
pub(crate) fn read_pipe(pipe: &pipe::Receiver, buffer: &mut [u8], how: Reading) -> io::Result<usize> {
    match pipe.try_read(buffer) {
        Err(error) if how == Reading::Now && error.kind() == io::ErrorKind::WouldBlock => {
            Ok(rustix::io::read(pipe, buffer)?)
        }
        read => read,
    }
}

enum Wake {
    Event(Event),
    Timer,
    Output(Stream, bool),
}
