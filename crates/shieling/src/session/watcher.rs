//! Observers of a running job: the emulator of its terminal, its recording, a person who looks on. They decide
//! nothing and never delay the job.

use super::human::{ScreenUpdate, Viewer};
use super::recording::{Recorder, RecordingId};
use super::screen::Emulator;
use super::{JobError, Screen, TerminalSize, keys};
use crate::output::Stream;

/// Observes the events of a job in the order in which they happen. No method may block.
pub(crate) trait Watcher: Send {
    /// The job wrote output.
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// The job received input.
    fn input(&mut self, bytes: &[u8]);

    /// Something else happened: a command, an approval, a denial, a person.
    fn mark(&mut self, label: &str);

    /// The terminal was resized.
    fn resize(&mut self, size: TerminalSize);

    /// Returns the terminal's screen; `None` without a terminal.
    fn screen(&self) -> Option<Screen>;

    /// Encodes keys in the modes that the program has set.
    ///
    /// # Errors
    /// [`JobError::UnknownKey`] if a key has no encoding.
    fn keys(&self, names: &[String]) -> Result<Vec<u8>, JobError>;

    /// Takes the terminal's replies to queries in the output, to be written to the program. Programs such as vim wait
    /// for them. Each call returns a few KiB at most.
    fn replies(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the id of the recording, if there is one.
    fn recording(&self) -> Option<RecordingId> {
        None
    }

    /// A person looks on from now on.
    fn attach(&mut self, _person: Viewer) {}

    /// The person has given the terminal back.
    fn detach(&mut self) {}
}

/// The observers of one job.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    screen: Option<Emulator>,
    recording: Option<Recorder>,
    person: Option<Viewer>,
}

impl Watchers {
    /// Creates observers for the screen of a terminal and for a recording, either of which is optional.
    pub(crate) fn new(screen: Option<Emulator>, recording: Option<Recorder>) -> Self {
        Self {
            screen,
            recording,
            person: None,
        }
    }

    /// Sends output to the person, or the whole screen if the person missed some of it.
    fn show(&mut self, bytes: &[u8]) {
        let Some(person) = &mut self.person else { return };
        let screen = &self.screen;
        let whole = || ScreenUpdate::Reset(screen.as_ref().map(Emulator::drawn).unwrap_or_default());
        if !person.show(bytes, whole) {
            self.detach();
        }
    }
}

impl Watcher for Watchers {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(screen) = &mut self.screen {
            screen.output(bytes);
        }
        if let Some(recording) = &self.recording {
            recording.output(stream, bytes);
        }
        self.show(bytes);
    }

    fn input(&mut self, bytes: &[u8]) {
        if let Some(recording) = &self.recording {
            recording.input(bytes);
        }
    }

    fn recording(&self) -> Option<RecordingId> {
        self.recording.as_ref().map(Recorder::id)
    }

    fn mark(&mut self, label: &str) {
        if let Some(recording) = &self.recording {
            recording.mark(label);
        }
    }

    fn resize(&mut self, size: TerminalSize) {
        if let Some(screen) = &mut self.screen {
            screen.resize(size);
        }
        if let Some(recording) = &self.recording {
            recording.resize(size);
        }
    }

    fn screen(&self) -> Option<Screen> {
        self.screen.as_ref().map(Emulator::screen)
    }

    fn keys(&self, names: &[String]) -> Result<Vec<u8>, JobError> {
        let mode = self.screen.as_ref().map_or_else(keys::KeyMode::default, Emulator::mode);
        keys::bytes(names, mode)
    }

    fn attach(&mut self, person: Viewer) {
        self.mark("person: took the keyboard");
        self.person = Some(person);
        self.show(&[]);
    }

    fn detach(&mut self) {
        if self.person.take().is_some() {
            self.mark("person: gave the keyboard back");
        }
    }

    fn replies(&mut self) -> Vec<u8> {
        self.screen.as_mut().map(Emulator::replies).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
