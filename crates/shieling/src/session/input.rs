//! Typing into a job: text, then keys, then Enter, at most for two seconds. Nothing is queued: what the
//! job does not take is told, and not written later.

use std::io;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::time::timeout_at;

use super::job::Job;
use super::keys::{self, Mode};
use super::{Input, JobError, Until, View};

/// How long a job may take to read what is written to it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much is written at once.
const PIECE: usize = 64 * 1024;

/// What typing means.
#[derive(Debug, PartialEq, Eq)]
enum Stroke {
    Bytes(Vec<u8>),
    /// The end of what is typed.
    Close,
    /// What is running is to stop.
    Interrupt,
}

impl Input {
    /// How many bytes of text it is, and the names of the keys that are none.
    pub(crate) fn told(&self) -> (usize, Vec<&str>) {
        let (bytes, mut named) = keys::told(&self.keys);
        if self.enter {
            named.push("Enter");
        }
        (self.text.len() + bytes, named)
    }
}

impl Job {
    /// Types, and gives what is new once something has followed and then nothing for 200 ms, or once
    /// `wait` is over.
    ///
    /// On a pipe, Enter is a line feed, `C-d` its end, and `C-c` ends what a session runs. What keys
    /// are on a terminal, its [`Watcher`](super::Watcher) says.
    ///
    /// # Errors
    /// [`JobError`]; nothing was written, but for [`JobError::Full`].
    /// # Cancel safety
    /// What was written stays written; the rest is not written.
    pub(crate) async fn write(&self, input: &Input, wait: Duration) -> Result<View, JobError> {
        self.still_running()?;
        self.keyboard.check(self.id())?;
        let strokes = self.strokes(input)?;
        let deadline = Instant::now() + PATIENCE;
        let mut left = strokes
            .iter()
            .map(|stroke| match stroke {
                Stroke::Bytes(bytes) => bytes.len(),
                Stroke::Close | Stroke::Interrupt => 0,
            })
            .sum();
        let full = |left| JobError::Full {
            job: self.id().clone(),
            left,
        };
        let turn = timeout_at(deadline.into(), self.shared.stdin.lock()).await;
        let mut stdin = turn.map_err(|_| full(left))?;
        // What comes from here on is an answer, as far as anybody outside can tell.
        let before = self.shared.state().log.end();
        for stroke in strokes {
            match stroke {
                Stroke::Bytes(bytes) => {
                    for piece in bytes.chunks(PIECE) {
                        self.put(stdin.as_ref(), piece, &mut left, deadline).await?;
                    }
                }
                Stroke::Close if stdin.take().is_none() => return Err(self.no_input()),
                Stroke::Close => {}
                Stroke::Interrupt => self.stop(None, self.command().grace()),
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

    /// Writes all of it, or says how much of everything is left.
    async fn put(
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
                // Nobody reads any more.
                Err(_) => return Err(self.no_input()),
            }
        }
        Ok(())
    }

    fn strokes(&self, input: &Input) -> Result<Vec<Stroke>, JobError> {
        let terminal = self.shared.terminal.is_some();
        let mut strokes = vec![Stroke::Bytes(input.text.as_bytes().to_vec())];
        match self.shared.watcher().filter(|_| terminal) {
            Some(watcher) => strokes.push(Stroke::Bytes(watcher.keys(&input.keys)?)),
            None => {
                for key in &input.keys {
                    strokes.push(self.key(key)?);
                }
            }
        }
        if input.enter {
            let enter = if terminal { b'\r' } else { b'\n' };
            strokes.push(Stroke::Bytes(vec![enter]));
        }
        Ok(strokes)
    }

    /// What a key means where no terminal gives it a meaning.
    fn key(&self, key: &str) -> Result<Stroke, JobError> {
        let bytes = keys::bytes(&[key.to_owned()], Mode::default())?;
        let what = match bytes.as_slice() {
            [0x04] => return Ok(Stroke::Close),
            [0x03] if !self.shared.alone => return Ok(Stroke::Interrupt),
            [0x03] => "`C-c`, or kill it",
            [0x1b, _, ..] => "such keys",
            _ => return Ok(Stroke::Bytes(bytes)),
        };
        Err(JobError::NoTerminal {
            job: self.id().clone(),
            what,
        })
    }
}
