//! A recording that goes on from command to command of a session. Each command, and whoever decides
//! about it, writes to the same one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Recording, RecordingId};
use crate::output::Stream;
use crate::session::Size;

/// A shared recording. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Tape(Arc<Mutex<Recording>>);

impl From<Recording> for Tape {
    fn from(recording: Recording) -> Self {
        Self(Arc::new(Mutex::new(recording)))
    }
}

impl Tape {
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

    pub(crate) fn resize(&self, size: Size) {
        self.recording().resize(size);
    }

    /// Its name.
    pub(crate) fn id(&self) -> RecordingId {
        self.recording().id().clone()
    }

    /// Why it ends sooner than what it records, if it could not be written.
    pub(crate) fn error(&self) -> Option<String> {
        self.recording().error().map(ToOwned::to_owned)
    }
}
