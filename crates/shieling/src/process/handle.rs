//! One running job, as whoever started it holds it: its streams, its events, and its stop.

use std::fmt;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;

use super::event::{Control, Ended, Event, LostError, MainEnd, Usage};
use super::stop_handle::AtEnd;
use super::{pipes, streams};

/// What the kernel may take to end a tree, beyond the grace, before it is called lost.
pub(crate) const STOP_MARGIN: Duration = Duration::from_secs(10);

/// Between SIGTERM and SIGKILL for what is ended from elsewhere.
const ENDED_GRACE: Duration = Duration::from_millis(100);

/// One running job. Dropping it kills every process it has.
pub struct Process {
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    input: Option<pipe::Sender>,
    job: Job,
    pid: Option<u32>,
    started: Instant,
    terminal_filter: Option<Box<dyn TerminalFilter>>,
}

/// Changes what a process writes to its terminal, before anything of it is shown or kept.
pub(crate) trait TerminalFilter: Send {
    /// Takes a part, and returns what is passed on now.
    fn push(&mut self, part: &[u8]) -> Vec<u8>;

    /// Returns what was held back, at the end of the output.
    fn finish(&mut self) -> Vec<u8>;
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
    pub(crate) terminal_filter: Option<Box<dyn TerminalFilter>>,
}

/// What is known of a job, and the way to know more. Dropping it kills every process it has.
pub(crate) struct Job {
    /// What is done once nothing of it is left, or it is let go of.
    at_end: Option<AtEnd>,
    /// Whether it was ended from elsewhere.
    is_ended: bool,
    control: Box<dyn Control>,
    main: Option<(MainEnd, Usage)>,
    last: Option<Result<Ended, LostError>>,
    /// The tasks that carry its input to a stream that is no pipe.
    carriers: JoinSet<()>,
}

impl Process {
    /// A process made from any two streams of output and a way to stop it: one that runs in a container, on
    /// another machine, or in this very process. With [`with_input`](Self::with_input) it has a standard
    /// input, too.
    ///
    /// What the streams give is carried into two pipes (64 KiB each, as a rule), so a process whose output
    /// nobody reads is held up as any other is. [`Event::MainEnded`] is passed on once what the streams held by then,
    /// 1 MiB of each at most, is in the pipes: `poll_read` of a stream must not be pending while it has bytes that
    /// were written before. [`Event::Gone`] is passed on once both streams are at their end. So nothing is lost which
    /// was written before; a process that was stopped is given 100 ms for that. An error of a stream is its end.
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
            terminal_filter: None,
        })
    }

    /// The process with a filter for the output of its terminal, which whoever reads the terminal applies.
    #[cfg(feature = "gateway")]
    #[must_use]
    pub(crate) fn with_terminal_filter(mut self, filter: Box<dyn TerminalFilter>) -> Self {
        self.terminal_filter = Some(filter);
        self
    }

    /// The process with something short that is done once nothing of it is left, or it is dropped.
    #[must_use]
    pub fn with_end(mut self, at_end: AtEnd) -> Self {
        self.job.at_end = Some(at_end);
        self
    }

    /// The process with any stream as its standard input: it is written to as the process is
    /// ([`Started::send`](super::Started::send), a job's input), and shut down at the end of file.
    ///
    /// # Errors
    /// No more descriptors.
    /// # Panics
    /// Outside a tokio runtime with I/O.
    pub fn with_input(mut self, input: impl AsyncWrite + Send + 'static) -> std::io::Result<Self> {
        let (read, write) = pipes::pipe()?;
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
    pub(super) fn with_origin(mut self, pid: Option<u32>, started: Instant) -> Self {
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
            terminal_filter: self.terminal_filter,
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
    /// within `grace` and 10 s.
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
        tokio::time::timeout(grace.saturating_add(STOP_MARGIN), end)
            .await
            .unwrap_or(Err(LostError))
    }
}

impl Job {
    fn new(control: Box<dyn Control>) -> Self {
        Self {
            at_end: None,
            is_ended: false,
            control,
            main: None,
            last: None,
            carriers: JoinSet::new(),
        }
    }

    fn end(&mut self) {
        if let Some(at_end) = self.at_end.take() {
            at_end.act();
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
        let is_to_end = self.at_end.as_ref().is_some_and(|at_end| at_end.stop_handle.poll(cx));
        if is_to_end && !std::mem::replace(&mut self.is_ended, true) {
            self.control.stop(ENDED_GRACE);
        }
        let event = ready!(self.control.poll_event(cx));
        match event {
            Event::MainEnded(end, usage) => {
                self.main = Some((end, usage));
                if let Some(at_end) = &self.at_end {
                    at_end.stop_handle.main_ended();
                }
            }
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
