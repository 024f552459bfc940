//! The output of processes, without the secrets of an outlet.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::io::Errno;
use shieling_gateway::{RedactStream, Redactor};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

use crate::process::{OpenStreams, Process, SessionShell, ShellError, Starting, State, TerminalFilter};

/// The size of one read.
const READ: usize = 16 * 1024;

/// A process whose output has placeholders in the place of secrets, wherever it goes.
///
/// # Errors
/// No more descriptors.
pub(crate) fn process(process: Process, redactor: &Redactor) -> io::Result<Process> {
    let OpenStreams {
        stdout,
        stderr,
        input,
        control,
    } = process.into_streams();
    let redacted = Process::from_streams(
        Redacted::new(stdout, redactor),
        Redacted::new(stderr, redactor),
        control,
    )?;
    match input {
        Some(input) => redacted.with_input_pipe(input.into_nonblocking_fd()?),
        None => Ok(redacted),
    }
}

/// A process whose output is on a terminal, without secrets there.
pub(crate) fn on_terminal(process: Process, redactor: &Redactor) -> Process {
    process.with_terminal_filter(Box::new(redactor.terminal_stream()))
}

impl TerminalFilter for RedactStream {
    fn push(&mut self, part: &[u8]) -> Vec<u8> {
        Self::push(self, part)
    }

    fn finish(&mut self) -> Vec<u8> {
        Self::finish(self)
    }
}

/// A shell that stays, whose commands are such processes.
pub(crate) struct RedactedShell {
    pub(crate) inner: Box<dyn SessionShell>,
    pub(crate) redactor: Redactor,
}

impl SessionShell for RedactedShell {
    fn run<'a>(&'a mut self, text: &'a str) -> Starting<'a> {
        let running = self.inner.run(text);
        let redactor = &self.redactor;
        Box::pin(async move {
            let running = running.await?;
            process(running, redactor).map_err(|error| ShellError::Order {
                what: "making a pipe",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            })
        })
    }

    fn state(&self) -> State {
        self.inner.state()
    }

    fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }
}

/// The output of a pipe without secrets. Its end is held back while it could be the beginning of one.
struct Redacted {
    from: pipe::Receiver,
    stream: RedactStream,
    ready: Vec<u8>,
    given: usize,
    over: bool,
}

impl Redacted {
    fn new(from: pipe::Receiver, redactor: &Redactor) -> Self {
        Self {
            from,
            stream: redactor.stream(),
            ready: Vec::new(),
            given: 0,
            over: false,
        }
    }
}

impl AsyncRead for Redacted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.given == this.ready.len() && !this.over {
            let mut bytes = vec![0; READ];
            let mut read = ReadBuf::new(&mut bytes);
            let count = match Pin::new(&mut this.from).poll_read(cx, &mut read)? {
                Poll::Ready(()) => read.filled().len(),
                // The runtime may not have looked since the last bytes came.
                Poll::Pending => match rustix::io::read(&this.from, &mut bytes) {
                    Err(Errno::AGAIN | Errno::INTR) => return Poll::Pending,
                    read => read?,
                },
            };
            this.given = 0;
            this.over = count == 0;
            this.ready = match this.over {
                true => this.stream.finish(),
                false => this.stream.push(bytes.get(..count).unwrap_or_default()),
            };
        }
        let rest = this.ready.get(this.given..).unwrap_or_default();
        let count = rest.len().min(into.remaining());
        into.put_slice(rest.get(..count).unwrap_or_default());
        this.given += count;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn what_is_in_the_pipe_is_there_before_the_runtime_has_noticed() {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        let from = pipe::Receiver::from_owned_fd(read).expect("a pipe");
        let mut redacted = Redacted::new(from, &Redactor::default());
        rustix::io::write(&write, b"eof\n").expect("there is room");
        let mut bytes = [0; 16];
        let mut into = ReadBuf::new(&mut bytes);
        let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut redacted).poll_read(cx, &mut into).is_ready())).await;
        assert_eq!((read, into.filled()), (true, &b"eof\n"[..]));
    }
}
