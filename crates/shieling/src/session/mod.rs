//! Sessions, whose shells keep their state, and jobs, which outlive the call that started them. Starts only what was
//! approved, and gives each command streams of its own, so that no output is attributed to another command.
//!
//! A *session* is a shell that keeps its directory, variables and functions from one command to the next. A *job* is
//! one command, running or finished, with a name, its output and its outcome.

mod actor;
mod keyboard;
mod error;
mod human;
mod id;
mod input;
mod job;
mod job_state;
mod jobs;
mod keys;
mod log;
mod pattern;
mod progress;
mod recording;
mod renderer;
mod request;
mod response;
mod screen;
mod sessions;
mod shell;
mod snapshot;
mod terminal;
mod view;
mod watcher;

pub use error::JobError;
pub use human::{
    Attachment, Human, HumanQuestion, HumanReply, InputEvent, NoHuman, ReplyFuture, ScreenUpdate, TakeOver,
};
pub use id::{IdError, JobId, SessionName};
pub(crate) use job::{Job, JobSetup};
#[cfg(test)]
pub(crate) use jobs::Reservation;
pub(crate) use jobs::{Claim, Jobs};
pub(crate) use recording::{Recorder, Recording, RecordingHeader};
pub use recording::{RecordingId, RecordingIdError, RecordingInfo, RecordingSettings, list_recordings};
pub use renderer::{KeyTarget, Renderer};
pub use request::{
    JobInput, JobRequest, OnTimeout, Progress, TerminalSize, TerminalSizeError, Until, ViewRequest, WaitFor,
};
pub use response::{AskHumanResponse, JobInfo, Listing, Screen, SessionInfo, ViewResponse};
pub(crate) use screen::Emulator;
pub(crate) use sessions::{MOST as MOST_SESSIONS, Sessions};
pub(crate) use shell::{RunningCommand, Session, SessionPermit};
pub use terminal::Pty;
pub(crate) use terminal::Terminal;
pub(crate) use watcher::{Watcher, Watchers};

#[cfg(test)]
mod tests;
