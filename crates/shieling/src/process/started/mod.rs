//! A program that is talked to while it runs: bytes in, bytes out, and how it ended.
//!
//! ```text
//! send ──► pipe ──► program ──► pipe ──► recv
//!                      │  └──► pipe ──► recv_stderr
//!                      └ its task: deadline, end, record
//! ```
//!
//! Nothing is buffered but in the kernel's pipes, so a program that nobody reads waits, and so does whoever
//! sends to one that does not read.

mod driver_task;
mod output_pipes;

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::drive::{CallerControl, Stop, Wishes};
use super::{Limits, MainEnd, Process};
use crate::outcome::{Outcome, Status};
use crate::output::{SpillTo, Stream, Tee};
use driver_task::{AtEnd, DriverTask, Stage};
use output_pipes::{OutputPipes, Piece};

/// How much is written at once.
const PIECE: usize = 64 * 1024;
/// The exit code that a shell reports for a program that the kernel killed, as it does at a memory limit.
const KILLED: i32 = 128 + 9;

/// A program that is talked to while it runs. Made by [`Shieling::start`](crate::Shieling::start).
///
/// Its methods take `&self`, so that one future can send while another receives. It holds at most what the
/// kernel's pipes do (64 KiB each, as a rule): a program that nobody reads waits, and goes on once it is read.
///
/// Its deadline counts from its start and is kept by a task of its own, whether anybody polls the handle or
/// not, as long as the runtime turns. When it is over every process ends; what the program had written by
/// then can still be received, and [`wait`](Self::wait) says `timed_out`.
///
/// Once its main process has ended, what that left in the background goes on and can still write, until
/// [`wait`](Self::wait), [`kill`](Self::kill) or the deadline ends it.
///
/// Dropping it ends every process of it, with SIGKILL and as soon as the runtime turns. If it had not ended
/// before, the log says `lost`.
#[must_use = "dropping it ends the program"]
pub struct Started {
    /// `None` once its end of file was sent, or nobody reads.
    input: Mutex<Option<pipe::Sender>>,
    output: Arc<OutputPipes>,
    stage: watch::Receiver<Stage>,
    main: watch::Receiver<Option<MainEnd>>,
    grace: Duration,
    blank: Outcome,
    /// Its one task, which ends with this.
    _scope: JoinSet<()>,
}

/// What came of receiving.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// The next bytes of the stream as they were written, at least one and at most 65,536. They can end
    /// within a character.
    Bytes(Vec<u8>),
    /// The stream is at its end: nobody can write to it any more. From here on it is always this.
    End,
    /// Nothing came in time. What comes later is given later.
    TimedOut,
}

/// Why not everything was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The program has closed its input, or ended.
    #[error("the program reads no more: it has closed its input or ended, after {sent} bytes of this were written")]
    NobodyReads {
        /// How many bytes of what was to be sent went into its pipe. It need not have read them.
        sent: usize,
    },
    /// Its end of file was sent before, so nothing can follow.
    #[error("nothing can follow the end of file that was sent")]
    Closed,
}

impl Started {
    /// Talks to a process that has an input; `at_end` is called once with how it ended, before anybody is
    /// told, and dropped if nobody will know.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub(crate) fn new(
        mut process: Process,
        limits: Limits,
        spill: Option<SpillTo>,
        tee: Option<Box<dyn Tee>>,
        blank: Outcome,
        at_end: AtEnd,
    ) -> Self {
        let input = process.take_input();
        let parts = process.into_parts();
        let (wishes, wished) = watch::channel(Wishes::default());
        let (told, main) = watch::channel(None);
        let (reached, stage) = watch::channel(Stage::Running);
        let output = Arc::new(OutputPipes::new([parts.stdout, parts.stderr], limits, wishes, tee));
        let driver_task = DriverTask {
            job: parts.job,
            output: Arc::clone(&output),
            started: parts.started,
            limits,
            spill,
            caller: CallerControl {
                wishes: wished,
                main: told,
            },
            stage: reached,
            blank: blank.clone(),
            at_end,
        };
        let mut scope = JoinSet::new();
        scope.spawn(driver_task.run());
        Self {
            input: Mutex::new(input),
            output,
            stage,
            main,
            grace: limits.grace,
            blank,
            _scope: scope,
        }
    }

    /// Writes all of these bytes to the program's standard input, and waits while its pipe is full. Several
    /// senders take turns, each with all that it sends.
    ///
    /// # Errors
    /// [`SendError`]. No signal comes of it.
    /// # Cancel safety
    /// What was written stays written, and how much that was is not known: send nothing more, or ask the
    /// program.
    pub async fn send(&self, bytes: &[u8]) -> Result<(), SendError> {
        let input = self.input.lock().await;
        let pipe = input.as_ref().ok_or(SendError::Closed)?;
        let mut sent = 0;
        // What carries the bytes elsewhere may take some more after the end.
        if !bytes.is_empty() && !matches!(*self.stage.borrow(), Stage::Running) {
            return Err(SendError::NobodyReads { sent });
        }
        while let Some(piece) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match pipe.try_write(&piece[..piece.len().min(PIECE)]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // With every process gone, only somebody outside can keep the pipe open.
                    let reading = tokio::select! {
                        room = pipe.writable() => room.is_ok(),
                        () = self.gone() => false,
                    };
                    if !reading {
                        return Err(SendError::NobodyReads { sent });
                    }
                }
                Err(_) => return Err(SendError::NobodyReads { sent }),
            }
        }
        Ok(())
    }

    /// Closes the program's standard input, once what is being sent was sent. Nothing if it is closed.
    ///
    /// # Cancel safety
    /// Cancel safe: it is closed, or as it was.
    pub async fn send_eof(&self) {
        *self.input.lock().await = None;
    }

    /// The next bytes of standard output, as soon as there is at least one; waits at most for `timeout`.
    /// With a `timeout` of zero, what is there now.
    ///
    /// # Cancel safety
    /// Cancel safe: what was not given is given later.
    pub async fn recv(&self, timeout: Duration) -> Received {
        self.receive(Stream::Stdout, timeout).await
    }

    /// The next bytes of standard error, in the same way. The two streams are apart: neither waits for the
    /// other, and what nobody receives of one can hold the program up.
    ///
    /// # Cancel safety
    /// Cancel safe, as [`recv`](Self::recv).
    pub async fn recv_stderr(&self, timeout: Duration) -> Received {
        self.receive(Stream::Stderr, timeout).await
    }

    /// Waits until it has ended, and drains what it writes until then.
    ///
    /// The outcome's `stdout` and `stderr` are what was *not* received: the first and last bytes of that, as
    /// much as the command keeps (64 KiB of each by default), and all of it under `output_id` where whole
    /// outputs are kept. `stdout_bytes` and `stderr_bytes` count everything that it wrote, received or not.
    ///
    /// What the main process leaves behind has 20 ms of silence, 200 ms at most, and is then ended, as in
    /// [`Shieling::run`](crate::Shieling::run). The input is left as it is: a program that reads it to its
    /// end goes on until [`send_eof`](Self::send_eof), or its deadline. Waiting again gives the same outcome.
    ///
    /// # Cancel safety
    /// Cancel safe: it goes on and is drained, and waiting again gives the outcome. What was drained is
    /// not received any more.
    pub async fn wait(&self) -> Outcome {
        self.output.drain();
        let mut stage = self.stage.clone();
        let over = stage.wait_for(|stage| matches!(stage, Stage::Over(_))).await;
        match over.as_deref() {
            Ok(Stage::Over(outcome)) => Outcome::clone(outcome),
            // The runtime has given up its task.
            Ok(Stage::Running | Stage::Gone) | Err(_) => Outcome {
                status: Status::Lost,
                exit_code: None,
                survivors: 1,
                error: Some("the runtime ended before the program; nobody saw its end".to_owned()),
                ..self.blank.clone()
            },
        }
    }

    /// Ends every process of it: SIGTERM, the command's grace, SIGKILL. Then as [`wait`](Self::wait):
    /// `survivors` counts what could not be ended, and 0 is checked. If it has ended already, that is told.
    ///
    /// # Cancel safety
    /// Cancel safe: it goes on ending.
    pub async fn kill(&self) -> Outcome {
        self.output.stop(Stop {
            cause: None,
            grace: self.grace,
        });
        self.wait().await
    }

    /// How its main process ended, if it has: its exit code, or 128+N if signal N ended it, whoever sent it.
    /// Does not wait, and says nothing of what that process left behind.
    ///
    /// Known once the runtime has turned after the end, so a loop around this has to await something.
    pub fn returncode(&self) -> Option<i32> {
        self.main.borrow().map(|end| match end {
            MainEnd::Exited(code) => code,
            MainEnd::Signalled(signal) => 128 + signal,
            MainEnd::OutOfMemory => KILLED,
        })
    }

    /// Returns the number of the signal that ended the main process, if one has.
    ///
    /// Known when [`Self::returncode`] is, which does not tell signal N from the exit code 128+N.
    pub fn signal(&self) -> Option<i32> {
        self.main.borrow().and_then(|end| match end {
            MainEnd::Exited(_) => None,
            MainEnd::Signalled(signal) => Some(signal),
            MainEnd::OutOfMemory => Some(KILLED - 128),
        })
    }

    async fn receive(&self, stream: Stream, budget: Duration) -> Received {
        let next = async {
            loop {
                // Known before the look: what is written before the end is then in the pipe.
                let gone = !matches!(*self.stage.borrow(), Stage::Running);
                match self.output.take(stream, gone) {
                    Piece::Bytes(bytes) => return Received::Bytes(bytes),
                    Piece::End => return Received::End,
                    Piece::NothingYet if gone => return Received::End,
                    Piece::Held => self.gone().await,
                    Piece::NothingYet => tokio::select! {
                        // Whether it can be read is seen by the next look.
                        _ = self.output.pipes[stream as usize].readable() => {}
                        () = self.gone() => {}
                    },
                }
            }
        };
        timeout(budget, next).await.unwrap_or(Received::TimedOut)
    }

    /// Until nothing of it can write any more.
    fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stage = self.stage.clone();
        async move {
            // An error is the end of the task, and so of the program.
            let _ = stage.wait_for(|stage| !matches!(stage, Stage::Running)).await;
        }
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started")
            .field("returncode", &self.returncode())
            .finish_non_exhaustive()
    }
}
