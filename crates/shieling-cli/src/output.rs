//! The command's output on its way to our own streams, byte for byte, while the command runs.
//!
//! ```text
//! pipes ─► Copied (Tee) ─► queue, 1 MiB ─► thread ─► stdout, stderr
//! ```
//!
//! Writing is another thread's work, since a reader that does not read must not hold up the command's
//! deadline. While the queue is full the command's pipes are not read, so the command waits for our reader
//! as it would without us. The thread starts with the first byte: many commands print nothing.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};

use shieling::output::{Stream, Tee};
use shieling::units::ByteCount;

use crate::stream::Bounded;

/// How many bytes wait for a reader before the command's output is read no further.
const QUEUE: usize = 1024 * 1024;

/// The threads that write: gives the first error as soon as there is one, and nothing once all is written.
pub(crate) type Written = tokio::sync::mpsc::Receiver<io::Error>;

/// Waits until everything is written.
///
/// # Errors
/// The first error of a writer, as soon as it occurs.
/// # Cancel safety
/// Cancel safe.
pub(crate) async fn all_written(written: &mut Written) -> io::Result<()> {
    written.recv().await.map_or(Ok(()), Err)
}

/// Copies both streams to ours. Dropping it passes on what is still kept back.
pub(crate) struct Copied {
    stdout: Copy,
    stderr: Copy,
}

/// One stream: all of it, or a bounded part.
enum Copy {
    Whole(Sender),
    Bounded(Bounded<Sender>),
}

/// Begins to copy to these writers: all, or `limit` bytes of each stream. If both lead to the same place, one
/// thread writes both, which keeps them in the order in which they came.
pub(crate) fn copy(
    limit: Option<ByteCount>,
    stdout: impl io::Write + Send + 'static,
    stderr: impl io::Write + Send + 'static,
    same_place: bool,
) -> (Copied, Written) {
    let (done, written) = tokio::sync::mpsc::channel(2);
    let mut writers: [Box<dyn io::Write + Send>; 2] = [Box::new(stdout), Box::new(stderr)];
    let (first, second) = if same_place {
        let way = Way::new(writers, done);
        (Arc::clone(&way), way)
    } else {
        let [stdout, stderr] = &mut writers;
        let nothing = || Box::new(io::sink()) as Box<dyn io::Write + Send>;
        let stdout = [std::mem::replace(stdout, nothing()), nothing()];
        let stderr = [nothing(), std::mem::replace(stderr, nothing())];
        (Way::new(stdout, done.clone()), Way::new(stderr, done))
    };
    let copy = |stream, way| {
        let sender = Sender { stream, way };
        match limit {
            None => Copy::Whole(sender),
            Some(limit) => Copy::Bounded(Bounded::new(sender, limit.as_usize())),
        }
    };
    let copied = Copied {
        stdout: copy(Stream::Stdout, first),
        stderr: copy(Stream::Stderr, second),
    };
    (copied, written)
}

/// Whether our standard output and standard error are one file, pipe or terminal.
pub(crate) fn is_one_place() -> bool {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let [stdout, stderr] = [stdout.as_fd(), stderr.as_fd()].map(rustix::fs::fstat);
    match (stdout, stderr) {
        (Ok(stdout), Ok(stderr)) => {
            (stdout.st_dev, stdout.st_ino, stdout.st_rdev) == (stderr.st_dev, stderr.st_ino, stderr.st_rdev)
        }
        _ => false,
    }
}

type Piece = (Stream, Vec<u8>);

/// The way to a thread that writes.
struct Way {
    queue: Arc<Queue>,
    writer: Mutex<Writer>,
}

/// A thread that writes what is sent to it.
enum Writer {
    /// It starts with the first piece.
    Waits([Box<dyn io::Write + Send>; 2], tokio::sync::mpsc::Sender<io::Error>),
    Writes(mpsc::Sender<Piece>),
    /// It could not be started, which was told.
    Failed,
}

impl Way {
    fn new(to: [Box<dyn io::Write + Send>; 2], done: tokio::sync::mpsc::Sender<io::Error>) -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::new(Queue::default()),
            writer: Mutex::new(Writer::Waits(to, done)),
        })
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        *writer = match std::mem::replace(&mut *writer, Writer::Failed) {
            Writer::Waits(to, done) => Writer::start(to, done, Arc::clone(&self.queue)),
            started => started,
        };
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        match &*writer {
            Writer::Writes(to) => to.send(piece).map_err(|_| gone()),
            Writer::Waits(..) | Writer::Failed => Err(gone()),
        }
    }
}

impl Writer {
    fn start(
        mut to: [Box<dyn io::Write + Send>; 2],
        done: tokio::sync::mpsc::Sender<io::Error>,
        taken: Arc<Queue>,
    ) -> Self {
        let (sender, pieces) = mpsc::channel::<Piece>();
        let (queue, tells) = (Arc::clone(&taken), done.clone());
        let write = move || {
            for (stream, bytes) in &pieces {
                let to = &mut to[stream as usize];
                if let Err(error) = to.write_all(&bytes).and_then(|()| to.flush()) {
                    // There is room for one error of each thread; nobody waits any more if we were told to stop.
                    let _ = tells.try_send(error);
                    break;
                }
                taken.take(bytes.len());
            }
            taken.close();
        };
        match std::thread::Builder::new().name("output".to_owned()).spawn(write) {
            Ok(_) => Self::Writes(sender),
            Err(error) => {
                let _ = done.try_send(error);
                queue.close();
                Self::Failed
            }
        }
    }
}

/// How much waits for a writer.
#[derive(Default)]
struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    bytes: usize,
    /// Nothing is written any more, so nothing is worth waiting for.
    closed: bool,
    /// Who waits for room; both streams are polled by one task, but not always with one waker.
    wakers: [Option<Waker>; 2],
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, bytes: usize) {
        self.lock().bytes += bytes;
    }

    fn take(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.bytes -= bytes;
        if waiting.bytes < QUEUE {
            waiting.wake();
        }
    }

    fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.wake();
    }

    fn poll_room(&self, stream: Stream, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.bytes < QUEUE {
            return Poll::Ready(());
        }
        waiting.wakers[stream as usize] = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Waiting {
    fn wake(&mut self) {
        self.wakers.iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }
}

/// One stream's way to its thread.
struct Sender {
    stream: Stream,
    way: Arc<Way>,
}

impl io::Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.way.queue.put(bytes.len());
        self.way.send((self.stream, bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Copied {
    fn stream(&self, stream: Stream) -> &Copy {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }
}

impl Copy {
    fn queue(&self) -> &Queue {
        match self {
            Self::Whole(sender) => &sender.way.queue,
            Self::Bounded(bounded) => &bounded.get_ref().way.queue,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Whole(sender) => io::Write::write_all(sender, bytes),
            Self::Bounded(bounded) => bounded.push(bytes),
        }
    }
}

impl Tee for Copied {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        let copy = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        // It fails only if the thread ended, which `Written` tells.
        let _ = copy.push(bytes);
    }

    fn poll_ready(&self, stream: Stream, cx: &mut Context<'_>) -> Poll<()> {
        self.stream(stream).queue().poll_room(stream, cx)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        for copy in [&mut self.stdout, &mut self.stderr] {
            if let Copy::Bounded(bounded) = copy {
                // As above.
                let _ = bounded.finish();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Remembers what is written, once its lock is free.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    struct Gone;

    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn is_ready(copied: &Copied, stream: Stream) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        copied.poll_ready(stream, &mut cx).is_ready()
    }

    #[test]
    fn a_limited_stream_keeps_its_ends_whatever_its_reader_does() {
        let (out, err) = (Page::default(), Page::default());
        let not_reading = out.0.lock().unwrap();
        let limit = Some(ByteCount::bytes(10));
        let (mut copied, mut written) = copy(limit, out.clone(), err.clone(), false);
        for _ in 0..1_000 {
            copied.bytes(Stream::Stdout, b"0123456789");
        }
        copied.bytes(Stream::Stderr, b"warning");
        drop(copied);
        drop(not_reading);
        assert!(written.blocking_recv().is_none());
        assert_eq!(out.text(), "01234\n[... 9,990 bytes left out ...]\n56789");
        assert_eq!(err.text(), "warning");
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_holds_up_its_own_stream_alone() {
        let (out, err) = (Page::default(), Page::default());
        let not_reading = out.0.lock().unwrap();
        let (mut copied, mut written) = copy(None, out.clone(), err.clone(), false);
        let piece = vec![b'x'; QUEUE / 4];
        let mut sent = 0;
        while is_ready(&copied, Stream::Stdout) {
            copied.bytes(Stream::Stdout, &piece);
            sent += piece.len();
        }
        assert!(sent <= 2 * QUEUE, "{sent} bytes wait for a reader");
        assert!(is_ready(&copied, Stream::Stderr));
        drop(not_reading);
        poll_fn(|cx| copied.poll_ready(Stream::Stdout, cx)).await;
        drop(copied);
        assert!(written.recv().await.is_none());
        assert_eq!(out.text().len(), sent);
    }

    #[test]
    fn streams_of_one_place_keep_their_order() {
        let page = Page::default();
        let (mut copied, mut written) = copy(None, page.clone(), page.clone(), true);
        let mut expected = String::new();
        for round in 0..200 {
            for (stream, name) in [(Stream::Stdout, "out"), (Stream::Stderr, "err")] {
                let line = format!("{name} {round}\n");
                copied.bytes(stream, line.as_bytes());
                expected.push_str(&line);
            }
        }
        drop(copied);
        assert!(written.blocking_recv().is_none());
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn a_reader_that_went_away_is_told_and_waited_for_no_longer() {
        let (mut copied, mut written) = copy(None, Gone, Page::default(), false);
        copied.bytes(Stream::Stdout, b"x");
        assert_eq!(written.blocking_recv().unwrap().kind(), io::ErrorKind::BrokenPipe);
        // What comes after is dropped without an error, however much it is.
        copied.bytes(Stream::Stdout, &vec![b'y'; 2 * QUEUE]);
        // The thread that drops it may not have had a processor yet.
        let begun = std::time::Instant::now();
        while !is_ready(&copied, Stream::Stdout) {
            assert!(
                begun.elapsed() < std::time::Duration::from_secs(30),
                "it is not dropped"
            );
            std::thread::yield_now();
        }
    }
}
