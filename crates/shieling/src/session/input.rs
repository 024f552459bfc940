//! Input for a job: text, then keys, then Enter. Nothing is queued: input that the job does not read within two
//! seconds is reported, and not written later.

use std::io;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::time::timeout_at;

use super::job::Job;
use super::keys::{self, KeyMode};
use super::{JobError, JobInput, Until, ViewResponse};

/// The time that a job has to read its input.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The number of bytes in one write.
const PIECE: usize = 64 * 1024;

/// One element of the input.
#[derive(Debug, PartialEq, Eq)]
enum InputElement {
    Bytes(Vec<u8>),
    /// Closes the input.
    Close,
    /// Interrupts the running command.
    Interrupt,
}

impl JobInput {
    /// Returns the number of bytes of text, and the names of the keys that produce no text.
    pub(crate) fn described(&self) -> (usize, Vec<&str>) {
        let (bytes, mut named) = keys::described(&self.keys);
        if self.enter {
            named.push("Enter");
        }
        (self.text.len() + bytes, named)
    }
}

impl Job {
    /// Writes input, and returns the new output after 200 ms of silence, or after `wait`.
    ///
    /// On a pipe, Enter is a line feed, `C-d` closes it, and `C-c` interrupts the command of a session. On a
    /// terminal, the [`Watcher`](super::Watcher) encodes keys.
    ///
    /// # Errors
    /// [`JobError`]. Only with [`JobError::Full`] was a part of the input written.
    /// # Cancel safety
    /// Input that was written stays written; the rest is not written.
    pub(crate) async fn write(&self, input: &JobInput, wait: Duration) -> Result<ViewResponse, JobError> {
        self.still_running()?;
        self.keyboard.check(self.id())?;
        let elements = self.elements(input)?;
        let deadline = Instant::now() + TIMEOUT;
        let mut left = elements
            .iter()
            .map(|stroke| match stroke {
                InputElement::Bytes(bytes) => bytes.len(),
                InputElement::Close | InputElement::Interrupt => 0,
            })
            .sum();
        let full = |left| JobError::Full {
            job: self.id().clone(),
            left,
        };
        let turn = timeout_at(deadline.into(), self.shared.stdin.lock()).await;
        let mut stdin = turn.map_err(|_| full(left))?;
        // Output from here on counts as the answer to this input: no observer can tell more exactly.
        let before = self.shared.state().log.end();
        for stroke in elements {
            match stroke {
                InputElement::Bytes(bytes) => {
                    for piece in bytes.chunks(PIECE) {
                        self.write_all(stdin.as_ref(), piece, &mut left, deadline).await?;
                    }
                }
                InputElement::Close if stdin.take().is_none() => return Err(self.no_input()),
                InputElement::Close => {}
                InputElement::Interrupt => self.stop(None, self.command().grace()),
            }
        }
        drop(stdin);
        self.wait(before, Until::Quiet, wait).await;
        Ok(self.look(None, false))
    }

    fn no_input(&self) -> JobError {
        match self.still_running() {
            Err(ended) => ended,
            Ok(()) => JobError::NoInput { job: self.id().clone() },
        }
    }

    /// Writes all bytes, or fails with the number of bytes left of the whole input.
    async fn write_all(
        &self,
        stdin: Option<&pipe::Sender>,
        mut bytes: &[u8],
        left: &mut usize,
        deadline: Instant,
    ) -> Result<(), JobError> {
        while !bytes.is_empty() {
            let written = match (&self.shared.terminal, stdin) {
                (Some(terminal), _) => terminal.try_write(bytes),
                (None, Some(pipe)) => pipe.try_write(bytes),
                (None, None) => return Err(self.no_input()),
            };
            match written {
                Ok(count) => {
                    let (done, rest) = bytes.split_at(count);
                    if let Some(mut watcher) = self.shared.watcher() {
                        watcher.input(done);
                    }
                    *left -= count;
                    bytes = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let room = async {
                        match (&self.shared.terminal, stdin) {
                            (Some(terminal), _) => terminal.writable().await,
                            (None, Some(pipe)) => pipe.writable().await,
                            (None, None) => Ok(()),
                        }
                    };
                    let room = timeout_at(deadline.into(), room).await;
                    if !matches!(room, Ok(Ok(()))) {
                        return Err(JobError::Full {
                            job: self.id().clone(),
                            left: *left,
                        });
                    }
                }
                // No process has the read end open.
                Err(_) => return Err(self.no_input()),
            }
        }
        Ok(())
    }

    fn elements(&self, input: &JobInput) -> Result<Vec<InputElement>, JobError> {
        let terminal = self.shared.terminal.is_some();
        let mut elements = vec![InputElement::Bytes(input.text.as_bytes().to_vec())];
        match self.shared.watcher().filter(|_| terminal) {
            Some(watcher) => elements.push(InputElement::Bytes(watcher.keys(&input.keys)?)),
            None => {
                for key in &input.keys {
                    elements.push(self.key(key)?);
                }
            }
        }
        if input.enter {
            let enter = if terminal { b'\r' } else { b'\n' };
            elements.push(InputElement::Bytes(vec![enter]));
        }
        Ok(elements)
    }

    /// Returns the meaning of a key on a pipe.
    fn key(&self, key: &str) -> Result<InputElement, JobError> {
        let bytes = keys::bytes(&[key.to_owned()], KeyMode::default())?;
        let what = match bytes.as_slice() {
            [0x04] => return Ok(InputElement::Close),
            [0x03] if !self.shared.kill_leftovers => return Ok(InputElement::Interrupt),
            [0x03] => "`C-c`, or kill it",
            [0x1b, _, ..] => "such keys",
            _ => return Ok(InputElement::Bytes(bytes)),
        };
        Err(JobError::NoTerminal {
            job: self.id().clone(),
            what,
        })
    }
}
