//! Begins recordings: one for each session, and one for each command that runs by itself.

use std::io;

use super::Shieling;
use crate::request::Command;
use crate::session::{Recorder, Recording, RecordingHeader, Session, TerminalSize};

impl Shieling {
    /// Returns the recorder of a command: that of the session whose shell runs it, or its own. `None` if recordings are off.
    ///
    /// # Errors
    /// If the recording cannot begin. The command must not start then.
    pub(super) fn recorder(
        &self,
        terminal: Option<TerminalSize>,
        session: Option<&Session>,
        command: &Command,
    ) -> io::Result<Option<Recorder>> {
        if self.recordings.is_none() {
            return Ok(None);
        }
        let recorder = match session {
            Some(session) => {
                let title = format!("session {}", session.name());
                session.recorder(|| self.begin_recording(&title, None, command))?
            }
            None => self.begin_recording(command.text(), terminal, command)?,
        };
        recorder.mark(&format!("command: {}", command.text()));
        Ok(Some(recorder))
    }

    fn begin_recording(&self, title: &str, terminal: Option<TerminalSize>, command: &Command) -> io::Result<Recorder> {
        let nowhere = || io::Error::other("there is no place for recordings");
        let to = self.recordings.as_ref().ok_or_else(nowhere)?;
        let variable = |name| command.variables().get(name).map(String::as_str);
        let header = RecordingHeader {
            title,
            size: terminal.unwrap_or_default(),
            terminal: terminal.is_some(),
            variables: [variable("TERM"), variable("SHELL")],
        };
        Ok(Recorder::from(Recording::begin(to, &header)?))
    }
}
