//! A recording that is shared by all commands of a session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Recording, RecordingId};
use crate::output::Stream;
use crate::session::TerminalSize;

/// A shared recording. Clones write to the same recording.
#[derive(Debug, Clone)]
pub(crate) struct Recorder(Arc<Mutex<Recording>>);

impl From<Recording> for Recorder {
    fn from(recording: Recording) -> Self {
        Self(Arc::new(Mutex::new(recording)))
    }
}

impl Recorder {
    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn output(&self, stream: Stream, bytes: &[u8]) {
        self.recording().output(stream, bytes);
    }

    pub(crate) fn input(&self, bytes: &[u8]) {
        self.recording().input(bytes);
    }

    pub(crate) fn mark(&self, label: &str) {
        self.recording().mark(label);
    }

    pub(crate) fn resize(&self, size: TerminalSize) {
        self.recording().resize(size);
    }

    /// Returns the recording's id.
    pub(crate) fn id(&self) -> RecordingId {
        self.recording().id().clone()
    }

    /// Returns the error that ended the recording early, if there was one.
    pub(crate) fn error(&self) -> Option<String> {
        self.recording().error().map(ToOwned::to_owned)
    }
}
