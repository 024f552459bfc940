//! The output of processes, without the secrets of an outlet.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use shieling_gateway::{RedactStream, Redactor};
use tokio::io::{AsyncRead, ReadBuf};

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

/// A stream without secrets. Its end is held back while it could be the beginning of one.
struct Redacted<R> {
    from: R,
    stream: RedactStream,
    ready: Vec<u8>,
    given: usize,
    over: bool,
}

impl<R> Redacted<R> {
    fn new(from: R, redactor: &Redactor) -> Self {
        Self {
            from,
            stream: redactor.stream(),
            ready: Vec::new(),
            given: 0,
            over: false,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Redacted<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.given == this.ready.len() && !this.over {
            let mut bytes = vec![0; READ];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.from).poll_read(cx, &mut read))?;
            this.given = 0;
            this.over = read.filled().is_empty();
            this.ready = match this.over {
                true => this.stream.finish(),
                false => this.stream.push(read.filled()),
            };
        }
        let rest = this.ready.get(this.given..).unwrap_or_default();
        let count = rest.len().min(into.remaining());
        into.put_slice(rest.get(..count).unwrap_or_default());
        this.given += count;
        Poll::Ready(Ok(()))
    }
}
