//! The output of a text: a pipe that is written directly. Only a pipe that is full, or has received much, is
//! registered with the runtime, which takes longer than writing the output of most texts.

use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe::Sender;

/// The number of bytes after which a pipe is registered in any case, so that the runtime can alternate between
/// writers.
const UNWATCHED: usize = 4 << 10;

/// What bashkit's `sed` says where it cuts its output and succeeds.
const CUT: &str = "sed: warning: branch/label loop limit";

/// What bashkit says about a command that a hook refuses, and what is said instead, which is as long.
const CANCELLED: [&str; 2] = ["cancelled by before_tool hook", "refused by memory: see below."];

/// Returns output in the words of memory: lines in which bashkit says that a hook refused a command.
pub(super) fn reworded(bytes: &[u8]) -> Cow<'_, [u8]> {
    let [theirs, ours] = CANCELLED;
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Cow::Borrowed(bytes);
    };
    let mut reworded = Cow::Borrowed(bytes);
    for (at, _) in text.match_indices(theirs) {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let is_at_end = matches!(text.as_bytes().get(at + theirs.len()), None | Some(b'\n'));
        if is_at_end && line.starts_with("bash: line ") && line.ends_with(": ") {
            reworded.to_mut()[at..at + ours.len()].copy_from_slice(ours.as_bytes());
        }
    }
    reworded
}

/// The output of a text.
pub(super) struct OutputPipe {
    end: WriteEnd,
    has_cut_sed: bool,
}

/// The write end of a pipe.
enum WriteEnd {
    Unwatched {
        pipe: OwnedFd,
        written: usize,
    },
    Watched(Sender),
    /// It could not be registered.
    Gone,
}

impl OutputPipe {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self {
            end: WriteEnd::Unwatched { pipe, written: 0 },
            has_cut_sed: false,
        })
    }

    /// Returns whether a `sed` said here that its output is cut.
    pub(super) fn has_cut_sed(&self) -> bool {
        self.has_cut_sed
    }
}

impl WriteEnd {
    /// Writes without waiting. Returns what was not written.
    fn write_at_once(&mut self, bytes: &[u8]) -> Option<io::Result<usize>> {
        let Self::Unwatched { pipe, written } = self else {
            return None;
        };
        if *written >= UNWATCHED {
            return None;
        }
        loop {
            match rustix::io::write(&*pipe, bytes) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(errno) => return Some(Err(errno.into())),
                Ok(more) => {
                    *written += more;
                    return Some(Ok(more));
                }
            }
        }
    }

    fn watched(&mut self) -> io::Result<Pin<&mut Sender>> {
        *self = match std::mem::replace(self, Self::Gone) {
            Self::Unwatched { pipe, .. } => Self::Watched(Sender::from_owned_fd(pipe)?),
            other => other,
        };
        match self {
            Self::Watched(sender) => Ok(Pin::new(sender)),
            Self::Unwatched { .. } | Self::Gone => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl AsyncWrite for OutputPipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.has_cut_sed |= std::str::from_utf8(bytes).is_ok_and(|text| text.contains(CUT));
        let bytes = &*reworded(bytes);
        match self.end.write_at_once(bytes) {
            Some(written) => Poll::Ready(written),
            None => self.end.watched()?.poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _};

    use tokio::io::AsyncWriteExt as _;

    use super::{OutputPipe, UNWATCHED};
    use crate::pipe;

    #[tokio::test(flavor = "multi_thread")]
    async fn all_that_is_written_arrives_in_its_order_also_if_the_pipe_is_full() {
        for piece in [1, 1_000, UNWATCHED, 100_000] {
            let (read, write) = pipe().expect("a pipe");
            let expected: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
            let content = expected.clone();
            let writing = tokio::spawn(async move {
                let mut outlet = OutputPipe::new(write).expect("a pipe");
                for piece in content.chunks(piece) {
                    outlet.write_all(piece).await.expect("it is read");
                }
            });
            let reading = tokio::task::spawn_blocking(move || {
                let mut found = Vec::new();
                std::fs::File::from(read).read_to_end(&mut found).map(|_| found)
            });
            writing.await.expect("it is written");
            let found = reading.await.expect("a thread").expect("it is read");
            assert!(found == expected, "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn a_pipe_that_nobody_reads_is_broken() {
        let (read, write) = pipe().expect("a pipe");
        drop(read);
        let mut outlet = OutputPipe::new(write).expect("a pipe");
        for _ in 0..2 {
            let error = outlet.write_all(b"a").await.expect_err("nobody reads it");
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    }
}
