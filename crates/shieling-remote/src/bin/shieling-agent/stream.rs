//! The standard streams as the agent's one byte stream: pipes or sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;

use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// How much a pipe holds, where it may: a piece of the protocol, many times.
const PIPE: usize = 1024 * 1024;

/// Takes standard input and output away, so that nothing else writes into the protocol.
pub(crate) fn take_standard() -> io::Result<(OwnedFd, OwnedFd)> {
    let keep = |fd| rustix::io::fcntl_dupfd_cloexec(fd, 16);
    let (input, output) = (keep(rustix::stdio::stdin())?, keep(rustix::stdio::stdout())?);
    // A place without /dev/null has a pipe that nobody holds the other end of.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    match null {
        Ok(null) => {
            rustix::stdio::dup2_stdin(&null)?;
            rustix::stdio::dup2_stdout(&null)?;
        }
        Err(_) => {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            rustix::stdio::dup2_stdin(&read)?;
            rustix::stdio::dup2_stdout(&write)?;
        }
    }
    Ok((input, output))
}

/// What is read from this descriptor.
pub(crate) fn reader(input: OwnedFd) -> io::Result<Pin<Box<dyn AsyncRead + Send>>> {
    Ok(match kind(&input)? {
        FileType::Fifo => {
            enlarge(&input);
            Box::pin(pipe::Receiver::from_owned_fd(input)?)
        }
        FileType::Socket => Box::pin(socket(input)?),
        other => return Err(neither(other)),
    })
}

/// What writes to this descriptor.
pub(crate) fn writer(output: OwnedFd) -> io::Result<Pin<Box<dyn AsyncWrite + Send>>> {
    Ok(match kind(&output)? {
        FileType::Fifo => {
            enlarge(&output);
            Box::pin(pipe::Sender::from_owned_fd(output)?)
        }
        FileType::Socket => Box::pin(socket(output)?),
        other => return Err(neither(other)),
    })
}

fn neither(kind: FileType) -> io::Error {
    io::Error::other(format!("it is neither a pipe nor a socket, but: {kind:?}"))
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

fn enlarge(pipe: &OwnedFd) {
    // Over the user's budget it stays as it was, only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}
