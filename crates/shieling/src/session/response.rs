//! Responses about sessions and jobs. Plain data.

use std::path::PathBuf;

use serde::Serialize;

use super::{JobId, RecordingId, SessionName, TerminalSize};
use crate::outcome::{Outcome, Status};

/// The present state of a job, with the output that was requested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewResponse {
    /// The outcome so far. `stdout` and `stderr` hold the output since the request's cursor.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The cursor for the next view.
    pub cursor: u64,
    /// The number of bytes after the request's cursor that are no longer kept.
    pub missed_bytes: u64,
    /// The text of the command.
    pub command: String,
    /// The terminal's screen, if it was requested and the job has a terminal.
    pub screen: Option<Screen>,
}

/// The contents of a terminal as a person would see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Screen {
    /// The size of the terminal.
    pub size: TerminalSize,
    /// The lines, without trailing blanks.
    pub text: String,
    /// The row and the column of the cursor, counted from 0; `None` if the cursor is hidden.
    pub cursor: Option<(u16, u16)>,
    /// Whether the alternate screen is active, as in full-screen programs.
    pub alternate: bool,
    /// The title that the program has set.
    pub title: String,
}

/// All sessions and jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// The sessions, sorted by name.
    pub sessions: Vec<SessionInfo>,
    /// The jobs, oldest first.
    pub jobs: Vec<JobInfo>,
}

/// The present state of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionInfo {
    /// The session's name.
    pub session: SessionName,
    /// The working directory of its shell.
    #[serde(serialize_with = "crate::path::one")]
    pub cwd: PathBuf,
    /// The job that keeps it busy, if any.
    pub job: Option<JobId>,
    /// The number of times that its shell was restarted.
    pub restarts: u32,
    /// The number of commands that it has run.
    pub commands: u64,
    /// Its recording, if it is recorded. `shieling log replay` plays it.
    pub recording: Option<RecordingId>,
}

/// The present state of a job, without its output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobInfo {
    /// The job's name.
    pub job: JobId,
    /// The session that it belongs to, if any.
    pub session: Option<SessionName>,
    /// The text of the command, at most its first 200 bytes.
    pub command: String,
    /// Whether it runs, or how it ended.
    pub status: Status,
    /// The exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The time that it has run, in milliseconds of the monotonic clock.
    pub duration_ms: f64,
    /// The number of bytes that it has written.
    pub output_bytes: u64,
    /// The number of those bytes that no view has returned yet.
    pub unseen_bytes: u64,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Whether a person has taken over its keyboard.
    pub person: bool,
    /// Its recording, or that of its session, if there is one.
    pub recording: Option<RecordingId>,
}

/// The result of a question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AskHumanResponse {
    /// The person answered.
    Answer {
        /// The answer.
        text: String,
    },
    /// The person took over the keyboard of the job and has given it back.
    TookOver {
        /// What changed in the meantime, one sentence each.
        changed: Vec<String>,
    },
    /// The person declined to answer.
    Declined,
    /// No person was available.
    Nobody,
}
