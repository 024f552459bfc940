//! Reads the output of a job in bursts and without waiting, from pipes or from a terminal. When it is read, and where it
//! goes, is up to the driver of the job.

use std::io;

use tokio::net::unix::pipe;

use super::streams::LARGE_PIPE;
use crate::output::Stream;

/// The size of the first reads. Most jobs write little.
const FIRST_READ: usize = 8 * 1024;
/// The size of the reads of a stream that fills the first ones.
const READ: usize = 256 * 1024;
/// A stream that has given this many bytes gets a pipe of [`LARGE_PIPE`]. Not sooner: most never need it, and all
/// pipes of a user share one budget (64 MiB).
pub const LARGE: u64 = 128 * 1024;
/// Reads in a row before timers get their turn.
const BURST: usize = 8;

/// How much is read, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One burst, once the runtime has said that there is something.
    Ready,
    /// What the stream holds now, whatever the runtime knows: it may not have looked since the last bytes came.
    Now,
}

/// The output streams of a job, as far as they are open.
#[derive(Debug)]
pub(crate) struct OutputReader {
    pub(crate) open: [bool; 2],
    large: [bool; 2],
    buffer: Vec<u8>,
}

impl OutputReader {
    pub(crate) fn new(open: [bool; 2]) -> Self {
        Self {
            open,
            large: [false, false],
            buffer: Vec::new(),
        }
    }

    /// Reads a stream with `read`, and gives each piece to `take`. Returns the number of bytes. A stream that has ended,
    /// or fails, is open no longer: reading a terminal fails with `EIO` once no process has it open.
    pub(crate) fn read(
        &mut self,
        stream: Stream,
        how: Reading,
        read: impl Fn(&mut [u8]) -> io::Result<usize>,
        mut take: impl FnMut(&[u8]),
    ) -> usize {
        if self.buffer.is_empty() {
            self.buffer.resize(FIRST_READ, 0);
        }
        let times = match how {
            Reading::Ready => BURST,
            Reading::Now => LARGE_PIPE / self.buffer.len() + 1,
        };
        let mut count = 0;
        for _ in 0..times {
            match read(&mut self.buffer) {
                Ok(0) => {
                    self.open[stream as usize] = false;
                    break;
                }
                Ok(length) => {
                    take(self.buffer.get(..length).unwrap_or_default());
                    count += length;
                    if length == self.buffer.len() && length < READ {
                        self.buffer.resize(READ, 0);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.open[stream as usize] = false;
                    }
                    break;
                }
            }
        }
        count
    }

    /// Makes the pipe of a stream larger that has given so many bytes, once they are many.
    pub(crate) fn enlarge(&mut self, stream: Stream, pipe: &pipe::Receiver, total: u64) {
        if total > LARGE && !std::mem::replace(&mut self.large[stream as usize], true) {
            // Beyond the user's pipe budget the pipe keeps its size, and is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, LARGE_PIPE);
        }
    }
}

/// Reads once from a pipe, without waiting.
pub(crate) fn read_pipe(pipe: &pipe::Receiver, buffer: &mut [u8], how: Reading) -> io::Result<usize> {
    match pipe.try_read(buffer) {
        Err(error) if how == Reading::Now && error.kind() == io::ErrorKind::WouldBlock => {
            Ok(rustix::io::read(pipe, buffer)?)
        }
        read => read,
    }
}
