//! Bytes passed between two sockets, without a copy in this process (`splice`).
//!
//! A pipe is held only while bytes are under way, so that an idle connection costs two descriptors and no buffer.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use rustix::net::{Shutdown, sockopt};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::record::{End, Live};

/// The size of a pipe in bytes, where the kernel grants it.
const PIPE_BYTES: usize = 1024 * 1024;

/// The send buffer towards the sandbox, in bytes, of which the kernel makes twice as many. The receiver is on this
/// machine, so that no delay has to be bridged; of a larger buffer, more data has left the processor's cache when the
/// receiver copies it. Less than two segments (64 KiB each on loopback) would wait for delayed acknowledgements.
const INSIDE_SEND_BYTES: usize = 128 * 1024;

/// The most pipes that wait for their next use.
const PIPES_KEPT: usize = 16;

/// Into how many parts the idle time is cut. A connection ends at most one part late.
const IDLE_PARTS: u32 = 8;

/// Pipes that are empty.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Mutex<Vec<Pipe>>);

/// Two ends of a pipe.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipes {
    fn take(&self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.lock().expect("no panic while held").pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // The user's share of pipe memory may be used up; then the size stays 64 KiB.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Pipe { read, write })
    }

    /// Takes an empty pipe back.
    fn put(&self, pipe: Pipe) {
        let mut pipes = self.0.lock().expect("no panic while held");
        if pipes.len() < PIPES_KEPT {
            pipes.push(pipe);
        }
    }
}

/// Why a relay ended before both sides had closed.
enum Stop {
    Failed(io::Error),
    ByteLimit,
}

/// Passes bytes between the sandbox and a host, until both have closed, one fails, or a limit is reached. The end of one
/// direction is passed on as such, while the other one goes on.
pub(crate) async fn relay(pipes: &Pipes, inside: &TcpStream, outside: &TcpStream, live: &Live, idle: Duration) -> End {
    let _ = sockopt::set_socket_send_buffer_size(inside, INSIDE_SEND_BYTES);
    let out = direction(pipes, inside, outside, |bytes| live.count_out(bytes));
    let back = direction(pipes, outside, inside, |bytes| live.count_in(bytes));
    let both = async { tokio::try_join!(out, back) };
    let end = tokio::select! {
        ended = both => match ended {
            Ok(_) => return End::Closed,
            Err(Stop::ByteLimit) => End::ByteLimit,
            Err(Stop::Failed(error)) => End::Failed(error.to_string()),
        },
        () = idle_for(live, idle) => End::Idle,
    };
    // Each side learns that this was no orderly end.
    let _ = inside.set_zero_linger();
    let _ = outside.set_zero_linger();
    end
}

/// Returns when no byte has passed for a while.
pub(crate) async fn idle_for(live: &Live, idle: Duration) {
    let mut seen = live.bytes();
    let mut quiet = 0;
    while quiet < IDLE_PARTS {
        sleep(idle / IDLE_PARTS).await;
        let now = live.bytes();
        quiet = if now == seen { quiet + 1 } else { 0 };
        seen = now;
    }
}

/// Passes bytes in one direction, until `from` has closed.
async fn direction(pipes: &Pipes, from: &TcpStream, to: &TcpStream, count: impl Fn(u64) -> bool) -> Result<(), Stop> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    loop {
        from.readable().await.map_err(Stop::Failed)?;
        let pipe = pipes.take().map_err(Stop::Failed)?;
        // The pipe is filled only when it is empty, so that it is the socket which would block.
        let filled = from.try_io(Interest::READABLE, || {
            Ok(splice(from, None, &pipe.write, None, PIPE_BYTES, flags)?)
        });
        let filled = match filled {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pipes.put(pipe);
                continue;
            }
            Err(error) => return Err(Stop::Failed(error)),
        };
        let mut left = filled;
        while left > 0 {
            let drain = || Ok(splice(&pipe.read, None, to, None, left, flags)?);
            left -= to.async_io(Interest::WRITABLE, drain).await.map_err(Stop::Failed)?;
        }
        pipes.put(pipe);
        if filled == 0 {
            // The other side may be gone already.
            let _ = rustix::net::shutdown(to, Shutdown::Write);
            return Ok(());
        }
        if !count(filled as u64) {
            return Err(Stop::ByteLimit);
        }
    }
}
