//! Whoever looks on while a job runs: the screen of its terminal, its recording. Decides nothing and
//! holds nothing up.

use super::human::{Onlooker, Shown};
use super::recording::{RecordingId, Tape};
use super::screen::Emulator;
use super::{JobError, Screen, Size, keys};
use crate::output::Stream;

/// What a job tells of itself, in the order in which it happens. No call may block.
pub(crate) trait Watcher: Send {
    /// It wrote this.
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// This was written to it.
    fn input(&mut self, bytes: &[u8]);

    /// Something happened that is no output: a command, an approval, a denial, a person.
    fn mark(&mut self, label: &str);

    /// Its terminal has this size from now on.
    fn resize(&mut self, size: Size);

    /// What a person would see now; none without a terminal.
    fn screen(&self) -> Option<Screen>;

    /// The bytes of these keys, as the program wants them now.
    ///
    /// # Errors
    /// [`JobError::UnknownKey`].
    fn keys(&self, names: &[String]) -> Result<Vec<u8>, JobError>;

    /// What the terminal answers by itself to the questions in the output so far, to be written to
    /// the program: programs such as vim wait for it. A few KiB at most; the next call has the next ones.
    fn replies(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Where it is recorded, if it is.
    fn recording(&self) -> Option<RecordingId> {
        None
    }

    /// A person looks on from now on.
    fn attach(&mut self, _person: Onlooker) {}

    /// The person has let go.
    fn detach(&mut self) {}
}

/// All that look on to one job.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    screen: Option<Emulator>,
    recording: Option<Tape>,
    person: Option<Onlooker>,
}

impl Watched {
    /// The screen of a terminal, if the job has one, and a recording, if it is recorded.
    pub(crate) fn new(screen: Option<Emulator>, recording: Option<Tape>) -> Self {
        Self {
            screen,
            recording,
            person: None,
        }
    }

    /// Shows the person what was written, or all of the screen if they missed something.
    fn show(&mut self, bytes: &[u8]) {
        let Some(person) = &mut self.person else { return };
        let screen = &self.screen;
        let whole = || Shown::Anew(screen.as_ref().map(Emulator::drawn).unwrap_or_default());
        if !person.show(bytes, whole) {
            self.detach();
        }
    }
}

impl Watcher for Watched {
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
        self.recording.as_ref().map(Tape::id)
    }

    fn mark(&mut self, label: &str) {
        if let Some(recording) = &self.recording {
            recording.mark(label);
        }
    }

    fn resize(&mut self, size: Size) {
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
        let mode = self.screen.as_ref().map_or_else(keys::Mode::default, Emulator::mode);
        keys::bytes(names, mode)
    }

    fn attach(&mut self, person: Onlooker) {
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
