//! Streams that are no pipes, carried to and from pipes: everything above reads and writes pipes only, whose
//! back-pressure is the kernel's.
//!
//! A reader of pipes takes what they hold when the main process ends as the output of that process. So the end is
//! passed on behind the output:
//!
//! ```text
//! inner control ── MainEnded ──► Carried, asks each carrier ──► all caught up ── MainEnded ──► reader
//! stream ──────────────────────► carrier ──────────────────────► pipe ─────────────────────►
//! ```

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy};
use tokio::net::unix::pipe;
use tokio::task::{JoinSet, unconstrained};
use tokio::time::{Sleep, sleep};

use super::event::{Control, Event};
use super::pipes;

/// How long a pipe is read on once every process of its command is gone: only somebody outside can keep it open.
pub const DRAIN: Duration = Duration::from_millis(100);

/// The size of the pipe of a stream that has given [`LARGE`](super::LARGE) bytes.
pub const LARGE_PIPE: usize = 1024 * 1024;
/// The size of one read from a stream.
const PIECE: usize = 8 * 1024;
/// The most that a stream and its carrier hold. Once so much was carried after the end of the main process, what
/// follows is the output of processes that it left behind.
const HELD: usize = LARGE_PIPE + PIECE;

/// The control of a process whose output is carried by tasks. They end with it.
pub(super) struct Carried {
    inner: Box<dyn Control>,
    carriers: JoinSet<()>,
    progress: Vec<Arc<Progress>>,
    /// The end of the main process, which waits for the output that was written before it.
    main: Option<Event>,
    /// The last event, which waits for the output that was written before it.
    last: Option<Event>,
    /// Set once the process was stopped and has ended: how long its output is waited for.
    timer: Option<Pin<Box<Sleep>>>,
    stopped: bool,
    over: bool,
}

impl Carried {
    pub(super) fn new(inner: Box<dyn Control>) -> Self {
        Self {
            inner,
            carriers: JoinSet::new(),
            progress: Vec::new(),
            main: None,
            last: None,
            timer: None,
            stopped: false,
            over: false,
        }
    }

    /// The read end of a pipe into which a stream is carried until its end.
    pub(super) fn output(&mut self, stream: impl AsyncRead + Send + 'static) -> io::Result<OwnedFd> {
        let (read, write) = pipes::pipe()?;
        let write = pipe::Sender::from_owned_fd(write)?;
        let progress = Arc::new(Progress::default());
        self.progress.push(Arc::clone(&progress));
        self.carriers
            .spawn(carry_output(stream, write, CarrierProgress(progress)));
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
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(DRAIN)));
            return timer.as_mut().poll(cx);
        }
        Poll::Pending
    }

    /// Whether what the streams held when the main process ended is in the pipes.
    fn poll_caught_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        for progress in &self.progress {
            ready!(progress.poll_caught_up(cx));
        }
        Poll::Ready(())
    }
}

impl Control for Carried {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.over {
            return Poll::Pending;
        }
        if self.main.is_none() && self.last.is_none() {
            match ready!(self.inner.poll_event(cx)) {
                main @ Event::MainEnded(..) => {
                    self.main = Some(main);
                    self.progress.iter().for_each(|progress| progress.ask());
                }
                last @ (Event::Gone(_) | Event::Lost) => self.last = Some(last),
            }
        }
        if let Some(main) = self.main {
            // The output of a process that was stopped is read until all of it is gone, and then for `DRAIN`.
            if !self.stopped {
                ready!(self.poll_caught_up(cx));
            }
            if self.last.is_none()
                && let Poll::Ready(last) = self.inner.poll_event(cx)
            {
                self.last = Some(last);
            }
            // If nothing is left by now, whoever hears the one can hear the other without a wait.
            if self.last.is_some() {
                ready!(self.poll_carried(cx));
            }
            self.main = None;
            return Poll::Ready(main);
        }
        ready!(self.poll_carried(cx));
        self.over = true;
        self.last.map_or(Poll::Pending, Poll::Ready)
    }

    fn stop(&mut self, grace: Duration) {
        self.stopped = true;
        self.inner.stop(grace);
    }
}

/// How far the carrier of one stream has come.
#[derive(Default)]
struct Progress(Mutex<ProgressState>);

#[derive(Default)]
struct ProgressState {
    /// How much may still be carried before it counts as caught up. `None` until the main process has ended.
    left: Option<usize>,
    ended: bool,
    carrier: Option<Waker>,
    control: Option<Waker>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the carrier to catch up.
    fn ask(&self) {
        let mut state = self.lock();
        state.left = Some(HELD);
        let carrier = state.carrier.take();
        drop(state);
        carrier.into_iter().for_each(Waker::wake);
    }

    fn poll_caught_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.ended || state.left == Some(0) {
            return Poll::Ready(());
        }
        state.control = Some(cx.waker().clone());
        Poll::Pending
    }

    fn update(&self, change: impl FnOnce(&mut ProgressState)) {
        let mut state = self.lock();
        change(&mut state);
        let control = state.control.take();
        drop(state);
        control.into_iter().for_each(Waker::wake);
    }
}

/// The progress of a carrier, in the hands of that carrier. It ends with it.
struct CarrierProgress(Arc<Progress>);

impl CarrierProgress {
    /// Polls the next read. All that was read before is in the pipe.
    fn poll_read(&self, cx: &mut Context<'_>, mut read: impl FnMut(&mut Context<'_>) -> Poll<()>) -> Poll<()> {
        loop {
            let mut state = self.0.lock();
            let asked = state.left.is_some();
            state.carrier = Some(cx.waker().clone());
            drop(state);
            if read(cx).is_ready() {
                return Poll::Ready(());
            }
            if asked {
                self.0.update(|state| state.left = Some(0));
                return Poll::Pending;
            }
            // A look from before the question does not answer it.
            if self.0.lock().left.is_none() {
                return Poll::Pending;
            }
        }
    }

    fn carried(&self, count: usize) {
        if self.0.lock().left.is_some() {
            self.0
                .update(|state| state.left = state.left.map(|left| left.saturating_sub(count)));
        }
    }
}

impl Drop for CarrierProgress {
    fn drop(&mut self) {
        self.0.update(|state| state.ended = true);
    }
}

/// Carries a stream into a pipe until its end, or until nobody reads the pipe. `tokio::io::copy` would do, but it reads
/// on while it holds what is not written yet, so that a reader at rest would not mean a full pipe.
async fn carry_output(stream: impl AsyncRead, mut write: pipe::Sender, progress: CarrierProgress) {
    let mut stream = pin!(stream);
    let mut buffer = vec![0; PIECE];
    loop {
        let mut piece = ReadBuf::new(&mut buffer);
        let mut failed = false;
        let read = poll_fn(|cx| {
            progress.poll_read(cx, |cx| {
                stream
                    .as_mut()
                    .poll_read(cx, &mut piece)
                    .map(|read| failed = read.is_err())
            })
        });
        // A stream whose task has used up its share of time would say that it has nothing. Writing keeps to it.
        unconstrained(read).await;
        let bytes = piece.filled();
        // What cannot be read further is at its end; with the last handle the pipe's reader is gone, too.
        if failed || bytes.is_empty() || write.write_all(bytes).await.is_err() {
            return;
        }
        progress.carried(bytes.len());
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
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::io;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll};
    use std::time::Duration;

    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf, duplex};

    use crate::outcome::Status;
    use crate::process::{Control, End, Ended, Event, Limits, MainEnd, OpenStreams, Process, Usage, run_to_end};
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

    /// A stream that prints nothing and never ends.
    struct Silent;

    impl AsyncRead for Silent {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
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
    async fn the_end_of_the_main_process_is_told_behind_what_it_has_printed() {
        // The second is more than a pipe holds.
        for size in [5, 70_000] {
            let left_behind = Fake {
                events: vec![Event::MainEnded(MainEnd::Exited(0), Usage::default())],
                ..Fake::over()
            };
            let stdout = tokio::io::repeat(b'x').take(size).chain(Silent);
            let process = Process::from_streams(stdout, Silent, Box::new(left_behind)).expect("a process");
            let OpenStreams {
                stdout, mut control, ..
            } = process.into_streams();
            let read = Cell::new(0);
            let reading = async {
                let mut buffer = vec![0; 1_000];
                loop {
                    tokio::task::yield_now().await;
                    if let Ok(count) = stdout.try_read(&mut buffer) {
                        read.set(read.get() + count as u64);
                    }
                }
            };
            let event = tokio::select! {
                biased;
                event = poll_fn(|cx| control.poll_event(cx)) => event,
                () = reading => unreachable!("it never ends"),
            };
            assert!(matches!(event, Event::MainEnded(..)), "{event:?}");
            let waiting = rustix::io::ioctl_fionread(&stdout).expect("a pipe");
            assert_eq!(read.get() + waiting, size);
        }
    }

    #[tokio::test]
    async fn what_a_main_process_has_left_behind_does_not_hold_its_end_up_by_printing() {
        let left_behind = || Fake {
            events: vec![Event::MainEnded(MainEnd::Exited(0), Usage::default())],
            ..Fake::over()
        };
        let flood = || tokio::io::repeat(b'x');
        let process = Process::from_streams(flood(), Silent, Box::new(left_behind())).expect("a process");
        let OpenStreams {
            mut stdout,
            mut control,
            ..
        } = process.into_streams();
        let mut nowhere = tokio::io::sink();
        let event = tokio::select! {
            event = poll_fn(|cx| control.poll_event(cx)) => event,
            _ = tokio::io::copy(&mut stdout, &mut nowhere) => unreachable!("it never ends"),
        };
        assert!(matches!(event, Event::MainEnded(..)), "{event:?}");
        // And where nobody reads, an order to stop ends the wait.
        let process = Process::from_streams(flood(), Silent, Box::new(left_behind())).expect("a process");
        let mut control = process.into_streams().control;
        let pending = poll_fn(|cx| Poll::Ready(control.poll_event(cx).is_pending())).await;
        assert!(pending);
        control.stop(Duration::ZERO);
        let event = poll_fn(|cx| control.poll_event(cx)).await;
        assert!(matches!(event, Event::MainEnded(..)), "{event:?}");
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
