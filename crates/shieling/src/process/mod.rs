//! Starts one command and ends its whole tree, exactly. Refuses to guess: whether a process is left
//! is asked of the kernel, not hoped.
//!
//! Linux only: it rests on child subreapers, pidfds and `close_range` (kernel 5.9 or newer), and
//! on `/proc` for finding the processes to signal.
//!
//! This is the layer below approval: whoever runs commands for an agent goes through an
//! [`Environment`](crate::environment::Environment), which takes only what was approved.

mod counts;
mod descent;
mod drive;
mod jail;
mod job;
mod memory;
mod plan;
mod run;
mod shell;
mod socket;
mod started;
mod streams;
mod sys;
mod zygote;

use std::fmt;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;

pub(crate) use counts::{Counts, Struck};
pub(crate) use drive::{BURST, LEFT_BEHIND_GRACE, LINGER, QUIET, READ, Reading, STOP_MARGIN, read_pipe};
pub use drive::{DRAIN, LARGE, LARGE_PIPE};
pub use jail::{Jail, JailError};
pub(crate) use jail::{Next, Ordered, Sent};
pub use memory::programs_in;
pub use plan::{Plan, SCRIPT_DESCRIPTOR, SpawnError, Streams};
pub use run::{End, Finished, Limits, run_to_end};
pub use shell::{SessionShell, Shell, ShellError, Starting, State};
pub use started::{Received, SendError, Started};
pub(crate) use sys::watch_both;
pub use zygote::start_ahead;
#[cfg(feature = "copy")]
pub use zygote::{copy_ahead, has_copy};

pub use shieling_jail::message::{Layer as JailLayer, Refusal as JailRefusal};

/// How the main process of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MainEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By the kernel or its jail, since its jail had used up its memory.
    OutOfMemory,
}

/// What the main process and the children that it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time in user code.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The largest resident set of one process, in bytes.
    pub peak_memory: u64,
}

impl From<shieling_jail::message::Usage> for Usage {
    fn from(raw: shieling_jail::message::Usage) -> Self {
        Self {
            user: Duration::from_micros(raw.user_us),
            system: Duration::from_micros(raw.system_us),
            peak_memory: raw.peak_kib.saturating_mul(1024),
        }
    }
}

/// How the rest of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Processes besides the main one that were alive when the job was ended.
    pub ended: u32,
    /// Processes that could not be ended, such as those of another user; 0 is checked.
    pub survivors: u32,
}

/// What happens to a job, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its main process ended; others may go on.
    MainEnded(MainEnd, Usage),
    /// None of its processes is left, or only survivors. The last event.
    Gone(Ended),
    /// Nobody can say any more whether its processes run. The last event.
    Lost,
}

/// The way to a running job. Dropping it ends the job at once, with every process it has.
pub trait Control: Send {
    /// What happens next. Pending for ever after [`Event::Gone`] and [`Event::Lost`].
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event>;

    /// Begins to end the job: SIGTERM, `grace`, SIGKILL. [`Event::Gone`] follows.
    fn stop(&mut self, grace: Duration);
}

/// One running job. Dropping it kills every process it has.
pub struct Process {
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    input: Option<pipe::Sender>,
    job: Job,
    pid: Option<u32>,
    started: Instant,
}

/// The streams of a process and the way to it: [`Process::into_streams`].
pub struct OpenStreams {
    /// What it prints.
    pub stdout: pipe::Receiver,
    /// What it prints as errors.
    pub stderr: pipe::Receiver,
    /// The way to its standard input, if it has one. Dropping that is its end of file.
    pub input: Option<pipe::Sender>,
    /// The way to it. Dropping it kills every process it has.
    pub control: Box<dyn Control>,
}

impl fmt::Debug for OpenStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStreams")
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

/// A process taken apart, for whoever drives it.
pub(crate) struct Parts {
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
    pub(crate) job: Job,
    pub(crate) started: Instant,
}

/// What is known of a job, and the way to know more. Dropping it kills every process it has.
pub(crate) struct Job {
    /// What is done once nothing of it is left, or it is let go of.
    at_end: Option<Box<dyn FnOnce() + Send>>,
    control: Box<dyn Control>,
    main: Option<(MainEnd, Usage)>,
    last: Option<Result<Ended, LostError>>,
    /// The tasks that carry its input to a stream that is no pipe.
    carriers: JoinSet<()>,
}

/// Contact to a job is lost: its supervisor was killed. It may still be running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the supervisor of the command is gone; some of its processes may still be running")]
pub struct LostError;

impl Process {
    /// A process made from any two streams of output and a way to stop it: one that runs in a container, on
    /// another machine, or in this very process. With [`with_input`](Self::with_input) it has a standard
    /// input, too.
    ///
    /// What the streams give is carried into two pipes (64 KiB each, as a rule), so a process whose output
    /// nobody reads is held up as any other is. [`Event::Gone`] is passed on once both streams are at their
    /// end, so that nothing is lost which was written before; a process that was stopped is given 100 ms
    /// for that. An error of a stream is its end.
    ///
    /// ```
    /// use std::task::{Context, Poll};
    /// use std::time::Duration;
    ///
    /// use shieling::process::{Control, End, Ended, Event, Limits, MainEnd, Process, Usage, run_to_end};
    /// use shieling::request::Command;
    ///
    /// /// A program that has ended with 3 by the time anybody looks.
    /// struct Over(Vec<Event>);
    ///
    /// impl Control for Over {
    ///     fn poll_event(&mut self, _: &mut Context<'_>) -> Poll<Event> {
    ///         self.0.pop().map_or(Poll::Pending, Poll::Ready)
    ///     }
    ///     fn stop(&mut self, _grace: Duration) {}
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let gone = Event::Gone(Ended::default());
    /// let over = Over(vec![gone, Event::MainEnded(MainEnd::Exited(3), Usage::default())]);
    /// let process = Process::from_streams(&b"hello"[..], tokio::io::empty(), Box::new(over))?;
    ///
    /// let finished = run_to_end(process, &Limits::of(&Command::new("hello", "/")?), None, None).await;
    /// assert_eq!((finished.end, finished.stdout.text().as_str()), (End::Exited(3), "hello"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No more descriptors.
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub fn from_streams(
        stdout: impl AsyncRead + Send + 'static,
        stderr: impl AsyncRead + Send + 'static,
        control: Box<dyn Control>,
    ) -> std::io::Result<Self> {
        let mut carried = streams::Carried::new(control);
        let stdout = carried.output(stdout)?;
        let stderr = carried.output(stderr)?;
        Self::from_parts(stdout, stderr, Box::new(carried))
    }

    /// A process made from the read ends of two pipes and a way to stop it: as
    /// [`from_streams`](Self::from_streams), with nothing in between.
    ///
    /// # Errors
    /// A descriptor that is not a pipe to read from.
    pub fn from_parts(stdout: OwnedFd, stderr: OwnedFd, control: Box<dyn Control>) -> std::io::Result<Self> {
        Ok(Self {
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
            input: None,
            job: Job::new(control),
            pid: None,
            started: Instant::now(),
        })
    }

    /// The process with something short that is done once nothing of it is left, or it is dropped.
    #[must_use]
    pub(crate) fn with_end(mut self, act: Box<dyn FnOnce() + Send>) -> Self {
        self.job.at_end = Some(act);
        self
    }

    /// The process with any stream as its standard input: it is written to as the process is
    /// ([`Started::send`], a job's input), and shut down at the end of file.
    ///
    /// # Errors
    /// No more descriptors.
    /// # Panics
    /// Outside a tokio runtime with I/O.
    pub fn with_input(mut self, input: impl AsyncWrite + Send + 'static) -> std::io::Result<Self> {
        let (read, write) = job::pipe()?;
        self.job.carriers.spawn(streams::carry_input(read, input)?);
        self.with_input_pipe(write)
    }

    /// The process with the write end of the pipe that is its standard input.
    ///
    /// # Errors
    /// A descriptor that is not a pipe to write to.
    pub fn with_input_pipe(mut self, input: OwnedFd) -> std::io::Result<Self> {
        self.input = Some(pipe::Sender::from_owned_fd(input)?);
        Ok(self)
    }

    /// The way to its standard input, once, if it has one. Dropping that is its end of file.
    pub fn take_input(&mut self) -> Option<pipe::Sender> {
        self.input.take()
    }

    /// The process, whose start began at that time: its time counts from then on, and not from when it was made.
    #[must_use]
    pub fn with_start(self, started: Instant) -> Self {
        Self { started, ..self }
    }

    /// The process with its number, if it has one on this host, and the time when its start began.
    fn with_origin(mut self, pid: Option<u32>, started: Instant) -> Self {
        self.pid = pid;
        self.started = started;
        self
    }

    /// Its parts.
    pub(crate) fn into_parts(self) -> Parts {
        Parts {
            stdout: self.stdout,
            stderr: self.stderr,
            job: self.job,
            started: self.started,
        }
    }

    /// Its streams and the way to it, for whoever carries them elsewhere: as it was made, by
    /// [`from_parts`](Self::from_parts). Dropping the control kills every process it has.
    #[must_use]
    pub fn into_streams(self) -> OpenStreams {
        OpenStreams {
            stdout: self.stdout,
            stderr: self.stderr,
            input: self.input,
            control: Box::new(self.job),
        }
    }

    /// The number of the main process, where it has one on this host.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// When its start began, on the monotonic clock.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Waits for the end of the main process. Does not read its output: a command that writes more
    /// than a pipe holds waits for its reader.
    ///
    /// # Errors
    /// [`LostError`] if nobody can say.
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&mut self) -> Result<(MainEnd, Usage), LostError> {
        loop {
            if let Some(end) = self.job.main {
                return Ok(end);
            }
            if self.job.last.is_some() {
                return Err(LostError);
            }
            self.job.event().await;
        }
    }

    /// Ends every process of the job: SIGTERM, `grace` (less if they end sooner), SIGKILL.
    ///
    /// # Errors
    /// [`LostError`] if nobody can say whether they ended, also if the supervisor does not answer
    /// within `grace` and 4 s.
    /// # Cancel safety
    /// Cancel safe: the job goes on ending, and another call waits for the rest.
    pub async fn stop(&mut self, grace: Duration) -> Result<Ended, LostError> {
        if self.job.last.is_none() {
            self.job.control.stop(grace);
        }
        let end = async {
            loop {
                if let Some(last) = self.job.last {
                    return last;
                }
                self.job.event().await;
            }
        };
        tokio::time::timeout(grace.saturating_add(drive::STOP_MARGIN), end)
            .await
            .unwrap_or(Err(LostError))
    }
}

impl Job {
    fn new(control: Box<dyn Control>) -> Self {
        Self {
            at_end: None,
            control,
            main: None,
            last: None,
            carriers: JoinSet::new(),
        }
    }

    fn end(&mut self) {
        if let Some(act) = self.at_end.take() {
            act();
        }
    }

    /// How its main process ended, if it has.
    pub(crate) fn main(&self) -> Option<(MainEnd, Usage)> {
        self.main
    }

    /// How the rest of it ended, once that is known.
    pub(crate) fn last(&self) -> Option<Result<Ended, LostError>> {
        self.last
    }

    /// Begins to end it. The events say when it has ended.
    pub(crate) fn begin_stop(&mut self, grace: Duration) {
        self.control.stop(grace);
    }

    /// The next event. Cancel safe; pending for ever after the last one.
    pub(crate) async fn event(&mut self) -> Event {
        poll_fn(|cx| self.poll_event(cx)).await
    }
}

impl Control for Job {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let event = ready!(self.control.poll_event(cx));
        match event {
            Event::MainEnded(end, usage) => self.main = Some((end, usage)),
            Event::Gone(ended) => self.last = Some(Ok(ended)),
            Event::Lost => self.last = Some(Err(LostError)),
        }
        if self.last.is_some() {
            self.end();
        }
        Poll::Ready(event)
    }

    fn stop(&mut self, grace: Duration) {
        self.control.stop(grace);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.pid)
            .field("main", &self.job.main)
            .finish_non_exhaustive()
    }
}
