//! Begins recordings: one for each session, and one for each command that runs by itself.

use std::io;

use super::Shieling;
use crate::request::Command;
use crate::session::{JobRequest, Recorder, Recording, RecordingHeader, Session, TerminalSize};

impl Shieling {
    /// Where this call is recorded: with its session, or alone. Nothing if nothing is recorded here.
    ///
    /// # Errors
    /// It cannot be recorded, and so it does not start.
    pub(super) fn tape(
        &self,
        call: &JobRequest,
        session: Option<&Session>,
        command: &Command,
    ) -> io::Result<Option<Recorder>> {
        let own = call.background || call.terminal.is_some();
        match session.filter(|_| !own) {
            Some(session) if self.recordings.is_some() => {
                let title = format!("session {}", session.name());
                let tape = session.recorder(|| self.begin_tape(&title, None, command))?;
                tape.mark(&format!("command: {}", command.text()));
                Ok(Some(tape))
            }
            Some(_) => Ok(None),
            None => self.own_tape(call.terminal, command),
        }
    }

    /// A recording of this command alone.
    ///
    /// # Errors
    /// As those of [`Self::tape`].
    pub(super) fn own_tape(&self, terminal: Option<TerminalSize>, command: &Command) -> io::Result<Option<Recorder>> {
        if self.recordings.is_none() {
            return Ok(None);
        }
        let tape = self.begin_tape(command.text(), terminal, command)?;
        tape.mark(&format!("command: {}", command.text()));
        Ok(Some(tape))
    }

    fn begin_tape(&self, title: &str, terminal: Option<TerminalSize>, command: &Command) -> io::Result<Recorder> {
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
