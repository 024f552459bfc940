//! The state of a job, shared by its actor and its handles.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::log::Log;
use super::pattern::PatternSearch;
use super::terminal::Terminal;
use super::{JobId, SessionName, Watcher};
use crate::outcome::Outcome;
use crate::output::Capture;
use crate::request::Command;

/// Called with the outcome of a command at its end.
pub(crate) type AtEnd = Box<dyn FnOnce(&mut Outcome) + Send>;

/// The state that the actor and the handles share.
pub(super) struct Shared {
    pub(super) id: JobId,
    pub(super) session: Option<SessionName>,
    pub(super) command: Command,
    pub(super) blank: Outcome,
    pub(super) kill_leftovers: bool,
    pub(super) started: Instant,
    /// The process id of its main process on this host, if it has one.
    pub(super) pid: Option<u32>,
    pub(super) terminal: Option<Terminal>,
    /// Locked during a write.
    pub(super) stdin: tokio::sync::Mutex<Option<pipe::Sender>>,
    pub(super) watcher: Option<Mutex<Box<dyn Watcher>>>,
    /// Notified after each change of the state.
    pub(super) changed: watch::Sender<()>,
    pub(super) state: Mutex<State>,
}

/// The part of the state that changes while a job runs.
pub(super) struct State {
    pub(super) log: Log,
    /// The head and the tail of the command's output, until the command has ended.
    pub(super) capture: Option<Capture>,
    /// The number of bytes on each stream.
    pub(super) totals: [u64; 2],
    /// The searches of callers that wait for a pattern.
    pub(super) searches: Vec<PatternSearch>,
    /// The cursor after the last view.
    pub(super) seen: u64,
    /// That cursor before the last view, in case nobody receives it.
    pub(super) seen_before: u64,
    pub(super) last_output: Option<Instant>,
    /// The outcome of the command, after its end.
    pub(super) ended: Option<Outcome>,
    /// Whether a person was asked about the changes in it, or is being asked.
    pub(super) is_reviewed: bool,
    /// The time at which the last process of the job ended.
    pub(super) over: Option<Instant>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watcher(&self) -> Option<MutexGuard<'_, Box<dyn Watcher>>> {
        let watcher = self.watcher.as_ref()?;
        Some(watcher.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
