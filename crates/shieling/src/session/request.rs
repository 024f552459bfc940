//! Requests to sessions and jobs. Plain data.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::JobId;
use crate::request::Command;

/// A command to run, in a [session](crate::SessionHandle) or as a [job](crate::Shieling::run_job) of its own.
///
/// A [`Command`] alone is the request to run it with the defaults.
///
/// ```
/// use shieling::request::Command;
/// use shieling::session::{JobRequest, TerminalSize};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let request = JobRequest::new(Command::new("top", "/work")?)
///     .with_id("top".parse()?)
///     .with_terminal(TerminalSize::default());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct JobRequest {
    /// The text of the command, its deadline and the bounds of its output. Its directory and variables are the
    /// initial ones of a new session; a session that already runs keeps its own.
    pub command: Command,
    /// What happens to the command at its deadline.
    pub on_timeout: OnTimeout,
    /// Gives the command a terminal of this size instead of pipes, in a process of its own.
    pub terminal: Option<TerminalSize>,
    /// The name of the job (default: `j1`, `j2`, …). If a job of this name exists, nothing is started and its present
    /// outcome is returned, so that a request may be repeated safely; a request that differs from the job's in text,
    /// session or kind of output is refused.
    pub id: Option<JobId>,
    /// With [`OnTimeout::Background`], the command also becomes a job once it has printed nothing for this long
    /// (default: it does not). A program on a terminal that is silent may wait for what nobody can type before the
    /// request returns.
    pub background_when_silent: Option<Duration>,
    /// Receives the progress of the command, at most ten times a second.
    pub progress: Option<watch::Sender<Progress>>,
    /// Whether a start in the background leaves all of the output to the first view (default: no; what its outcome
    /// shows is not shown again).
    pub unread: bool,
}

impl JobRequest {
    /// Creates a request to run a command on pipes. At its deadline it becomes a background job.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            on_timeout: OnTimeout::default(),
            terminal: None,
            id: None,
            background_when_silent: None,
            progress: None,
            unread: false,
        }
    }

    /// Sets [`Self::on_timeout`].
    #[must_use]
    pub fn with_on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.on_timeout = on_timeout;
        self
    }

    /// Sets [`Self::terminal`].
    #[must_use]
    pub fn with_terminal(mut self, size: TerminalSize) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Sets [`Self::id`].
    #[must_use]
    pub fn with_id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }
}

impl From<Command> for JobRequest {
    fn from(command: Command) -> Self {
        Self::new(command)
    }
}

/// What happens to a command at its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTimeout {
    /// It continues as a job. Its session is busy until the job ends.
    #[default]
    Background,
    /// The processes that it started are ended and the rest of its command list is skipped. The session survives.
    Kill,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TerminalSize {
    /// The number of lines.
    pub rows: u16,
    /// The number of characters in a line.
    pub columns: u16,
}

impl TerminalSize {
    /// The largest size. It is bounded because every character of a terminal takes memory.
    pub const LARGEST: Self = Self {
        rows: 500,
        columns: 1_000,
    };

    /// Returns this size if it is valid: 1 to 500 rows and 1 to 1,000 columns.
    ///
    /// # Errors
    /// [`TerminalSizeError`] if it is not.
    pub fn checked(self) -> Result<Self, TerminalSizeError> {
        if self == self.clamped() {
            Ok(self)
        } else {
            Err(TerminalSizeError(self))
        }
    }

    /// Returns the nearest valid size.
    pub(crate) fn clamped(self) -> Self {
        Self {
            rows: self.rows.clamp(1, Self::LARGEST.rows),
            columns: self.columns.clamp(1, Self::LARGEST.columns),
        }
    }
}

/// A terminal size outside of the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no terminal has {} lines of {} characters: 1 to {} lines of 1 to {} characters",
    .0.rows, .0.columns, TerminalSize::LARGEST.rows, TerminalSize::LARGEST.columns
)]
pub struct TerminalSizeError(TerminalSize);

impl Default for TerminalSize {
    /// Returns 24 rows of 80 columns.
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// The progress of a running command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The number of bytes that it has written so far.
    pub bytes: u64,
    /// The last line of output that is not blank, at most 200 bytes of it.
    pub line: String,
}

/// A request for the state and the output of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRequest {
    /// The job.
    pub job: JobId,
    /// The offset in the output to start from. With `None`, the view starts where the last one ended.
    pub cursor: Option<u64>,
    /// The longest time to wait for `until` (default: zero; at most 10 minutes).
    pub wait: Duration,
    /// The condition to wait for. The end of the job always ends the wait.
    pub until: Until,
    /// Includes the terminal's screen in the response.
    pub screen: bool,
}

impl ViewRequest {
    /// Creates a request for the new output of a job, without waiting.
    pub fn new(job: JobId) -> Self {
        Self {
            job,
            cursor: None,
            wait: Duration::ZERO,
            until: Until::Output,
            screen: false,
        }
    }
}

/// The condition that a view waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// New output.
    #[default]
    Output,
    /// New output, followed by 200 ms without any.
    Quiet,
    /// The end of the job.
    Exit,
}

/// Input for a job, written in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobInput {
    /// Text, written as it is.
    pub text: String,
    /// Keys by name, such as `C-c`, `Up`, `F1`.
    pub keys: Vec<String>,
    /// Ends the input with the Enter key.
    pub enter: bool,
}

/// A condition of a job that a caller can wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    /// The end of the job.
    Exit,
    /// Output that matches this regular expression. The search starts at the oldest byte that is kept.
    Pattern(String),
    /// A TCP port on the job's loopback device that accepts connections.
    Port(u16),
}
