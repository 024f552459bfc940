//! The two output streams of an interactive program, and the counts of what was read from them. The kernel's pipes
//! are the only buffer: the program waits while its output is not read.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::super::drive::{Stop, Wishes};
use super::super::{Reading, read_pipe};
use crate::output::{Stream, Tee};
use crate::process::{End, Limits};

/// The largest read, in bytes.
pub(super) const PIECE: usize = 64 * 1024;

/// The read ends of both pipes, shared by the receiver and the driver task.
pub(super) struct OutputPipes {
    pub(super) pipes: [pipe::Receiver; 2],
    limits: Limits,
    wishes: watch::Sender<Wishes>,
    taken: Mutex<Taken>,
}

/// What has been read from the pipes, by either of them.
struct Taken {
    bytes: [u64; 2],
    open: [bool; 2],
    tee: Option<Box<dyn Tee>>,
}

/// The result of one read.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    End,
    NothingYet,
    /// Nothing before every process is gone: there was more than the limit.
    Held,
}

impl OutputPipes {
    pub(super) fn new(
        pipes: [pipe::Receiver; 2],
        limits: Limits,
        wishes: watch::Sender<Wishes>,
        tee: Option<Box<dyn Tee>>,
    ) -> Self {
        Self {
            pipes,
            limits,
            wishes,
            taken: Mutex::new(Taken {
                bytes: [0, 0],
                open: [true, true],
                tee,
            }),
        }
    }

    /// Takes what is there. While it is being ended for its output it is not relieved of any more: how
    /// much it can write until it is gone is what fits into its pipes, not what a busy machine has time for.
    pub(super) fn take(&self, stream: Stream, gone: bool) -> Piece {
        let mut taken = self.taken();
        if !taken.open[stream as usize] {
            return Piece::End;
        }
        if !gone && self.is_too_much(&taken) {
            return Piece::Held;
        }
        let mut bytes = vec![0; PIECE];
        loop {
            match read_pipe(&self.pipes[stream as usize], &mut bytes, Reading::Now) {
                Ok(0) => {
                    taken.open[stream as usize] = false;
                    return Piece::End;
                }
                Ok(length) => {
                    bytes.truncate(length);
                    bytes.shrink_to_fit();
                    self.count(&mut taken, stream, &bytes);
                    return Piece::Bytes(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Piece::NothingYet,
                Err(_) => {
                    taken.open[stream as usize] = false;
                    return Piece::End;
                }
            }
        }
    }

    fn count(&self, taken: &mut Taken, stream: Stream, bytes: &[u8]) {
        if let Some(tee) = &mut taken.tee {
            tee.bytes(stream, bytes);
        }
        taken.bytes[stream as usize] += bytes.len() as u64;
        if self.is_too_much(taken) {
            self.stop(Stop {
                cause: Some(End::OutputLimit),
                grace: self.limits.grace,
            });
        }
    }

    fn is_too_much(&self, taken: &Taken) -> bool {
        let total = taken.bytes[0] + taken.bytes[1];
        self.limits.output.is_some_and(|limit| total > limit.get())
    }

    /// How much of a stream was written: taken, or still in its pipe.
    pub(super) fn written(&self, stream: Stream) -> u64 {
        let taken = self.taken();
        // A pipe that cannot be asked has nothing more to give.
        let waiting = rustix::io::ioctl_fionread(&self.pipes[stream as usize]).unwrap_or(0);
        taken.bytes[stream as usize] + waiting
    }

    /// Wishes that what is written from here on is drained.
    pub(super) fn drain(&self) {
        self.wishes
            .send_if_modified(|wishes| !std::mem::replace(&mut wishes.drained, true));
    }

    /// Wishes that it is ended. The first such wish holds.
    pub(super) fn stop(&self, stop: Stop) {
        self.wishes.send_if_modified(|wishes| {
            let first = wishes.stop.is_none();
            wishes.stop.get_or_insert(stop);
            first
        });
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is drained counts as what is received.
pub(super) struct Drained<'a>(pub(super) &'a OutputPipes);

impl Tee for Drained<'_> {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        let mut taken = self.0.taken();
        self.0.count(&mut taken, stream, bytes);
    }
}
