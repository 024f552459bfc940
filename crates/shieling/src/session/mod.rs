//! Shells that stay, and jobs that outlive a call. Starts nothing but what was approved, and refuses
//! to mix: each command has streams of its own, so that no output is attributed to another one.
//!
//! A *session* is a shell whose directory, variables and functions live on from command to command.
//! A *job* is one command, running or finished, with a number, its output and its end.

mod actor;
mod ask;
mod control;
mod human;
mod moment;
mod id;
mod input;
mod job;
mod jobs;
mod keys;
mod log;
mod painter;
mod pattern;
mod progress;
mod recording;
mod screen;
mod sessions;
mod shell;
mod terminal;
mod view;
mod watcher;
pub use ask::{
    Answered, Call, Input, JobError, JobInfo, Listing, OnTimeout, Progress, Screen, SessionInfo, Size, SizeError,
    Until, View, ViewAsk, WaitFor,
};
pub use human::{Asking, Attachment, Deed, Human, HumanQuestion, HumanReply, NobodyThere, Shown, TakeOver};
pub use id::{IdError, JobId, SessionName};
pub(crate) use job::{Job, Setup};
#[cfg(test)]
pub(crate) use jobs::Slot;
pub(crate) use jobs::{Claim, Jobs};
pub use painter::{Keyboard, Painter};
pub(crate) use recording::{About, Recording, Tape};
pub use recording::{RecordTo, Recorded, RecordingId, RecordingIdError, recorded};
pub(crate) use screen::Emulator;
pub(crate) use sessions::{MOST as MOST_SESSIONS, Sessions};
pub(crate) use shell::{Busy, Held as Turn, Session};
pub use terminal::Pair;
pub(crate) use terminal::Terminal;
pub(crate) use watcher::{Watched, Watcher};

#[cfg(test)]
mod tests;
