//! Streams that are no pipes, carried to and from pipes: everything above reads and writes pipes only, whose
//! back-pressure is the kernel's.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::event::{Control, Event};
use super::pipes;

/// How long a pipe is read on once every process of its command is gone: only somebody outside can keep it open.
pub const DRAIN: Duration = Duration::from_millis(100);

/// The control of a process whose output is carried by tasks. They end with it.
pub(super) struct Carried {
    inner: Box<dyn Control>,
    carriers: JoinSet<()>,
    /// The last event, which waits for the output that was written before it.
    last: Option<Event>,
    /// Set once the process was stopped and has ended: how long its output is waited for.
    patience: Option<Pin<Box<Sleep>>>,
    stopped: bool,
    over: bool,
}

impl Carried {
    pub(super) fn new(inner: Box<dyn Control>) -> Self {
        Self {
            inner,
            carriers: JoinSet::new(),
            last: None,
            patience: None,
            stopped: false,
            over: false,
        }
    }

    /// The read end of a pipe into which a stream is carried until its end.
    pub(super) fn output(&mut self, stream: impl AsyncRead + Send + 'static) -> io::Result<OwnedFd> {
        let (read, write) = pipes::pipe()?;
        let mut write = pipe::Sender::from_owned_fd(write)?;
        self.carriers.spawn(async move {
            // What cannot be read further is at its end; with the last handle the pipe's reader is gone, too.
            let _ = copy(&mut pin!(stream), &mut write).await;
        });
        Ok(read)
    }

    /// Whether everything that was written is in the pipes, or is waited for no longer.
    fn poll_carried(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(carried) = self.carriers.poll_join_next(cx) {
            if carried.is_none() {
                return Poll::Ready(());
            }
        }
        if self.stopped {
            let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(DRAIN)));
            return patience.as_mut().poll(cx);
        }
        Poll::Pending
    }
}

impl Control for Carried {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.over {
            return Poll::Pending;
        }
        let last = match self.last {
            Some(last) => last,
            None => match self.inner.poll_event(cx) {
                Poll::Ready(last @ (Event::Gone(_) | Event::Lost)) => *self.last.insert(last),
                other => return other,
            },
        };
        self.poll_carried(cx).map(|()| {
            self.over = true;
            last
        })
    }

    fn stop(&mut self, grace: Duration) {
        self.stopped = true;
        self.inner.stop(grace);
    }
}

/// Carries what is written to a process to the stream that is its input, and then the end of file.
pub(super) fn carry_input(
    from: OwnedFd,
    to: impl AsyncWrite + Send + 'static,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut from = pipe::Receiver::from_owned_fd(from)?;
    Ok(async move {
        let mut to = pin!(to);
        if copy(&mut from, &mut to).await.is_ok() {
            // One that reads no more has its end.
            let _ = to.shutdown().await;
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use crate::outcome::Status;
    use crate::process::{Control, End, Ended, Event, Limits, MainEnd, Process, Usage, run_to_end};
    use crate::request::Command;

    /// Has ended with 0 as soon as it is looked at, or is gone once it is stopped.
    struct Fake {
        events: Vec<Event>,
        stopped: Arc<AtomicBool>,
        stays: bool,
    }

    impl Fake {
        fn over() -> Self {
            let main = Event::MainEnded(MainEnd::Exited(0), Usage::default());
            Self {
                events: vec![Event::Gone(Ended::default()), main],
                stopped: Arc::default(),
                stays: false,
            }
        }
    }

    impl Control for Fake {
        fn poll_event(&mut self, _: &mut Context<'_>) -> Poll<Event> {
            if self.stays && !self.stopped.load(Ordering::Relaxed) {
                return Poll::Pending;
            }
            self.events.pop().map_or(Poll::Pending, Poll::Ready)
        }

        fn stop(&mut self, _: Duration) {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    fn limits(deadline: Duration) -> Limits {
        let command = Command::new("true", "/").expect("a command");
        Limits {
            deadline,
            ..Limits::of(&command)
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn all_output_of_a_stream_arrives_though_its_process_is_gone_before() {
        let (ours, mut theirs) = duplex(100);
        let process = Process::from_streams(ours, tokio::io::empty(), Box::new(Fake::over())).expect("a process");
        let sent: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let content = sent.clone();
        let writing = tokio::spawn(async move {
            for piece in content.chunks(9_000) {
                theirs.write_all(piece).await.expect("it is read");
                tokio::task::yield_now().await;
            }
        });
        let mut limits = limits(LONG);
        limits.keep = crate::units::ByteCount::mib(1);
        let finished = run_to_end(process, &limits, None, None).await;
        writing.await.expect("all of it is taken");
        assert_eq!(finished.end, End::Exited(0));
        assert_eq!(finished.stdout.total(), sent.len() as u64);
    }

    #[tokio::test]
    async fn a_stream_that_never_ends_does_not_keep_a_stopped_process() {
        let (ours, _theirs) = duplex(100);
        let fake = Fake {
            stays: true,
            ..Fake::over()
        };
        let stopped = Arc::clone(&fake.stopped);
        let process = Process::from_streams(ours, tokio::io::empty(), Box::new(fake)).expect("a process");
        let finished = run_to_end(process, &limits(Duration::from_millis(50)), None, None).await;
        assert_eq!((finished.end, finished.survivors), (End::TimedOut, 0));
        assert!(stopped.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn what_is_sent_arrives_at_a_stream_and_so_does_the_end() {
        let (ours, mut theirs) = duplex(10);
        let fake = Fake {
            stays: true,
            ..Fake::over()
        };
        let process = Process::from_streams(tokio::io::empty(), tokio::io::empty(), Box::new(fake));
        let process = process.and_then(|process| process.with_input(ours)).expect("a process");
        let blank = crate::outcome::Outcome::blank(Status::Exited, "/", "fake");
        let started = crate::process::Started::new(process, limits(LONG), None, None, blank, Box::new(|_| {}));
        let sending = async {
            started.send(&[7; 100_000]).await.expect("it is read");
            started.send_eof().await;
        };
        let mut read = Vec::new();
        let (_, all) = tokio::join!(sending, theirs.read_to_end(&mut read));
        assert_eq!((all.expect("an end"), read), (100_000, vec![7; 100_000]));
        assert_eq!(started.kill().await.status, Status::Exited);
    }
}
