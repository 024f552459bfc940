//! What is asked of sessions and jobs, and what is answered.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::{JobId, RecordingId, SessionName};
use crate::outcome::{Denial, Outcome, Status};
use crate::request::Command;

/// One command, and how it is to run.
#[derive(Debug)]
pub struct Call {
    /// The text, its time, how much of its output is kept. Its directory and variables are those that
    /// a new session starts with; in a session that runs, the session's are taken.
    pub command: Command,
    /// The shell that it runs in; none for a fresh process, of which nothing stays.
    pub session: Option<SessionName>,
    /// What happens once its time is over.
    pub on_timeout: OnTimeout,
    /// Whether the call returns at once, and the command goes on as a job of its own that can be
    /// written to. It starts where the session stands, with the session's exported variables.
    pub background: bool,
    /// A terminal of this size instead of pipes. Such a command, too, is a process of its own.
    pub terminal: Option<Size>,
    /// The name that its job gets (default `j1`, `j2` …). A call with the name of a job that exists
    /// starts nothing and gives that job's present outcome, so that a call may be repeated; with another
    /// text, session or kind of output it is refused.
    pub id: Option<JobId>,
    /// Who wants to know how far it is.
    pub progress: Option<watch::Sender<Progress>>,
}

impl Call {
    /// A command in the session `main`, that becomes a job once its time is over.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            session: Some(SessionName::default()),
            on_timeout: OnTimeout::Background,
            background: false,
            terminal: None,
            id: None,
            progress: None,
        }
    }
}

/// What happens to a command whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTimeout {
    /// It goes on as a job; its session is busy meanwhile.
    #[default]
    Background,
    /// What it started is ended, and the rest of its list does not run. The session stays.
    Kill,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Size {
    /// The largest terminal, which has a bound since each of its characters takes memory.
    pub const LARGEST: Self = Self {
        rows: 500,
        columns: 1_000,
    };

    /// This size, if a terminal can have it: 1 to 500 lines of 1 to 1,000 characters.
    ///
    /// # Errors
    /// What it is, if not.
    pub fn checked(self) -> Result<Self, SizeError> {
        if self == self.clamped() {
            Ok(self)
        } else {
            Err(SizeError(self))
        }
    }

    /// The nearest size that a terminal can have.
    pub(crate) fn clamped(self) -> Self {
        Self {
            rows: self.rows.clamp(1, Self::LARGEST.rows),
            columns: self.columns.clamp(1, Self::LARGEST.columns),
        }
    }
}

/// A size that no terminal can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no terminal has {} lines of {} characters: 1 to {} lines of 1 to {} characters",
    .0.rows, .0.columns, Size::LARGEST.rows, Size::LARGEST.columns
)]
pub struct SizeError(Size);

impl Default for Size {
    /// 24 lines of 80.
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// How far a command is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// How much it has written.
    pub bytes: u64,
    /// The last line that has something in it, at most 200 bytes of it.
    pub line: String,
}

/// What is to be seen of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewAsk {
    /// The job.
    pub job: JobId,
    /// Output from here on; none for what is new since the last view.
    pub cursor: Option<u64>,
    /// How long to wait for `until` (default not at all; at most 10 minutes).
    pub wait: Duration,
    /// What is waited for. The end of the job ends each wait.
    pub until: Until,
    /// Whether to show the terminal's screen.
    pub screen: bool,
}

impl ViewAsk {
    /// What is new of this job, now.
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

/// What a view waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// Any new output.
    #[default]
    Output,
    /// New output, and then none for 200 ms.
    Quiet,
    /// The end.
    Exit,
}

/// What is typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// This text, as it is.
    pub text: String,
    /// Then these keys, such as `C-c`, `Up`, `F1`.
    pub keys: Vec<String>,
    /// Then the Enter key.
    pub enter: bool,
}

/// What can be waited for within one budget of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    /// The end of the job.
    Exit,
    /// Output that matches this regular expression, from the first byte that is kept on.
    Pattern(String),
    /// A TCP port of the loopback device that takes connections, as seen from where the job runs.
    Port(u16),
}

/// A job, as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// Its outcome so far; `stdout` and `stderr` hold what is new.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Where the next view goes on.
    pub cursor: u64,
    /// How many bytes came after the cursor that was asked from, and are not kept any more.
    pub missed_bytes: u64,
    /// The command's text.
    pub command: String,
    /// What a person would see.
    pub screen: Option<Screen>,
}

/// What a person would see on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Screen {
    /// Its size.
    pub size: Size,
    /// Its lines, without the blanks at their ends.
    pub text: String,
    /// Where the cursor is: line and column from 0; none if it is hidden.
    pub cursor: Option<(u16, u16)>,
    /// Whether a full-screen program has it.
    pub alternate: bool,
    /// The title that the program gave it.
    pub title: String,
}

/// All that there is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// The sessions, by name.
    pub sessions: Vec<SessionInfo>,
    /// The jobs, oldest first.
    pub jobs: Vec<JobInfo>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionInfo {
    /// Its name.
    pub session: SessionName,
    /// Where it stands.
    pub cwd: PathBuf,
    /// The job that keeps it busy.
    pub job: Option<JobId>,
    /// How often its shell had to be started anew.
    pub restarts: u32,
    /// How many commands it has run.
    pub commands: u64,
    /// Its recording, if it is recorded: `shieling log replay` plays it.
    pub recording: Option<RecordingId>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobInfo {
    /// Its name.
    pub job: JobId,
    /// The session it belongs to.
    pub session: Option<SessionName>,
    /// Its text, at most the first 200 bytes of it.
    pub command: String,
    /// How it is.
    pub status: Status,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// How long it has run, in milliseconds of the monotonic clock.
    pub duration_ms: f64,
    /// How much it has written.
    pub output_bytes: u64,
    /// How much of that no view has shown yet.
    pub unseen_bytes: u64,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Whether a person has its keyboard.
    pub person: bool,
    /// Its recording, or its session's, if it is recorded.
    pub recording: Option<RecordingId>,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answered {
    /// This.
    Answer {
        /// The person's words.
        text: String,
    },
    /// The person took the keyboard and has given it back.
    TookOver {
        /// What changed meanwhile, in sentences.
        changed: Vec<String>,
    },
    /// The person does not want to answer.
    Declined,
    /// Nobody is there.
    Nobody,
}

/// Why something cannot be done with a job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// There is none of that name.
    #[error("there is no job `{job}`; {}", known_jobs(.known))]
    Unknown {
        /// The name.
        job: JobId,
        /// Those that there are.
        known: Vec<JobId>,
    },
    /// It has ended.
    #[error("job `{job}` has ended ({}); its output can still be viewed", .status.name())]
    Ended {
        /// The name.
        job: JobId,
        /// How.
        status: Status,
    },
    /// It was started without an input that stays.
    #[error(
        "job `{job}` reads from nowhere: its standard input is at its end; start it with `background` or `tty` to write to \
         it (`memory` gives input whole, with the command)"
    )]
    NoInput {
        /// The name.
        job: JobId,
    },
    /// It has no terminal.
    #[error("job `{job}` has no terminal; start it with `tty` for {what}")]
    NoTerminal {
        /// The name.
        job: JobId,
        /// What was asked of it.
        what: &'static str,
    },
    /// No terminal can be so large.
    #[error(transparent)]
    Size(SizeError),
    /// It does not take its input, whose bound is reached.
    #[error("job `{job}` does not read its input: {left} bytes could not be written")]
    Full {
        /// The name.
        job: JobId,
        /// How many.
        left: usize,
    },
    /// A person has the keyboard.
    #[error("a person has control of job `{job}`; view it, and write again once control is given back")]
    PersonHolds {
        /// The name.
        job: JobId,
    },
    /// No such key.
    #[error("there is no key `{key}`; keys are single characters, {known}")]
    UnknownKey {
        /// The name.
        key: String,
        /// Those that there are.
        known: &'static str,
    },
    /// The expression cannot be used.
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
    /// It runs on a loopback device that nobody outside of it can reach.
    #[error(
        "job `{job}` has a network of its own, in which nobody else sees whether a port is open; wait for a pattern in its output instead"
    )]
    OwnNetwork {
        /// The name.
        job: JobId,
    },
    /// So many are running already.
    #[error("{most} jobs are running or waiting to, and that is the most; end one, or wait for its end")]
    TooMany {
        /// How many there may be.
        most: usize,
    },
    /// No job is started any more.
    #[error("all jobs were ended and no more are started")]
    Closed,
    /// More than can be approved and recorded at once.
    #[error("{bytes} bytes cannot be typed at once, the limit is {most}; write them to a file, or in parts")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The log did not take it.
    #[error("it was not written, since it could not be recorded: {0}")]
    Unrecorded(String),
    /// What was to be written was not approved.
    #[error("it was not approved")]
    Refused(Box<Denial>),
}

fn known_jobs(jobs: &[JobId]) -> String {
    if jobs.is_empty() {
        return "there are no jobs".to_owned();
    }
    let names: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
    format!("there are {}", names.join(", "))
}
