//! One byte stream, shared by all calls: what is written in which order, signs of life, and its one end.
//!
//! ```text
//! orders, answers, credit ──► urgent ─┐
//!                                     ├─► writer ─► stream ─► reader ─► the other side's handler
//! pieces of streams ──► a short line ─┘
//! ```
//!
//! Whoever sends a piece of a stream waits in line for it, one piece at a time, so that a flood on one
//! stream holds another up for a few pieces. Orders, which are as long as their commands, wait until little is in
//! front of them. What else is urgent never waits, is small, and is bounded by who may have something urgent to say;
//! beyond [`MOST_URGENT`] the other side is too far behind and the link is over.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;

use crate::frame::{Frame, HEADER, Header, Kind, PIECE, PREAMBLE, VERSION, frame, preamble, version};

/// How many pieces of streams stand in line.
const LINE: usize = 4;
/// How much may be urgent at once.
const MOST_URGENT: usize = 32 * 1024 * 1024;
/// How much may be in front of an order that is sent.
const MOST_BEFORE: usize = 4 * 1024 * 1024;
/// How much is read, or gathered to be written, at once.
const BLOCK: usize = 64 * 1024;

/// Why a link is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// This side has ended it.
    #[error("the link was closed")]
    Closed,
    /// The stream came to its end.
    #[error("the other side has closed the link")]
    Ended,
    /// The stream failed.
    #[error("the link broke: {0}")]
    Broken(String),
    /// Nothing was heard, or nothing was taken, for too long.
    #[error("the link is silent: the other side {what} for {for_ms} ms")]
    Silent {
        /// What it did.
        what: &'static str,
        /// For how long.
        for_ms: u64,
    },
    /// More waits to be taken by the other side than is held for it.
    #[error(
        "the other side is too slow: {waiting} bytes of what it was told still wait to be taken, of at most {MOST_URGENT}"
    )]
    Behind {
        /// How many bytes wait.
        waiting: usize,
    },
    /// What answers does not speak this protocol.
    #[error("what answers is not shieling: its first bytes are {0:?}")]
    Foreign(String),
    /// The other side is of another version.
    #[error(
        "the other side speaks version {theirs} of the protocol and this one version {VERSION}: {}; use the same \
         shieling at both ends",
        if *theirs < VERSION { "it is older" } else { "it is newer" }
    )]
    Version {
        /// The version of the other side.
        theirs: u32,
    },
    /// The other side does not keep to the protocol.
    #[error("the other side broke the protocol: it sent {0}")]
    Violated(String),
}

/// How long a link may be silent.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// After this long without anything to say, a sign of life is sent.
    pub beat: Duration,
    /// After this long without anything heard, or without anything taken, the link is over. More than two beats.
    pub max_silence: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(5),
            max_silence: Duration::from_secs(15),
        }
    }
}

/// The sending side of a stream, and its end.
pub(crate) struct Link {
    urgent: Mutex<Urgent>,
    wake: Notify,
    /// Some of what was urgent was taken.
    freed: Notify,
    line: mpsc::Sender<Vec<u8>>,
    end: watch::Sender<Option<LinkError>>,
    timing: Timing,
}

#[derive(Default)]
struct Urgent {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// What stands in line to be written.
pub(crate) struct Line(mpsc::Receiver<Vec<u8>>);

/// Takes what arrives.
pub(crate) trait Handler: Send {
    /// Takes one frame, or says what is wrong with it. Nothing else arrives meanwhile.
    fn take(&mut self, frame: Frame) -> impl Future<Output = Result<(), String>> + Send;
}

impl Link {
    pub(crate) fn new(timing: Timing) -> (Arc<Self>, Line) {
        let (line, standing) = mpsc::channel(LINE);
        let link = Self {
            urgent: Mutex::default(),
            wake: Notify::new(),
            freed: Notify::new(),
            line,
            end: watch::Sender::new(None),
            timing,
        };
        (Arc::new(link), Line(standing))
    }

    /// Sends something small before all that stands in line. Never waits; nobody gets it if the link is over.
    pub(crate) fn urgent(&self, frame: Vec<u8>) {
        if self.over().is_some() {
            return;
        }
        let mut urgent = self.lock();
        urgent.bytes += frame.len();
        urgent.frames.push_back(frame);
        let waiting = urgent.bytes;
        drop(urgent);
        if waiting > MOST_URGENT {
            self.end(LinkError::Behind { waiting });
        }
        self.wake.notify_one();
    }

    /// Sends an order before all that stands in line, once at most [`MOST_BEFORE`] is in front of it. Nobody gets it
    /// if the link is over.
    pub(crate) async fn order(&self, frame: Vec<u8>) {
        let mut freed = std::pin::pin!(self.freed.notified());
        loop {
            // Before the look, so that what is taken after it is not missed.
            freed.as_mut().enable();
            if self.lock().bytes <= MOST_BEFORE {
                return self.urgent(frame);
            }
            tokio::select! {
                () = freed.as_mut() => freed.set(self.freed.notified()),
                _ = self.ended() => return,
            }
        }
    }

    /// Sends a frame when its turn comes. Gives up once the link is over.
    pub(crate) async fn in_line(&self, frame: Vec<u8>) -> Result<(), LinkError> {
        tokio::select! {
            biased;
            sent = self.line.send(frame) => sent.map_err(|_| self.why()),
            error = self.ended() => Err(error),
        }
    }

    /// Ends it, for this reason if it is the first.
    pub(crate) fn end(&self, why: LinkError) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            end.get_or_insert(why);
            first
        });
    }

    /// Why it is over, if it is.
    pub(crate) fn over(&self) -> Option<LinkError> {
        self.end.borrow().clone()
    }

    fn why(&self) -> LinkError {
        self.over().unwrap_or(LinkError::Ended)
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) -> LinkError {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(LinkError::Ended),
            Err(_) => LinkError::Ended,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Urgent> {
        self.urgent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries everything both ways until its end, and says why that was.
    pub(crate) async fn carry(
        &self,
        reader: impl AsyncRead + Send,
        writer: impl AsyncWrite + Send,
        line: Line,
        handler: &mut impl Handler,
    ) -> LinkError {
        let reading = async {
            let mut source = Source {
                reader: Box::pin(reader),
                buffer: Vec::with_capacity(BLOCK),
                at: 0,
                max_silence: self.timing.max_silence,
            };
            source.meet().await?;
            loop {
                let frame = source.frame().await?;
                if frame.kind != Kind::Beat {
                    handler.take(frame).await.map_err(LinkError::Violated)?;
                }
            }
            #[expect(unreachable_code, reason = "it says what the block gives")]
            Ok::<(), LinkError>(())
        };
        let mut sink = Sink {
            writer: Box::pin(writer),
            max_silence: self.timing.max_silence,
        };
        // Whatever comes of it, the other side learns which version this is.
        let why = match sink.all(&preamble()).await {
            Err(why) => why,
            // In no order: neither is to starve the other.
            Ok(()) => tokio::select! {
                why = self.ended() => why,
                why = reading => why.err().unwrap_or(LinkError::Ended),
                why = self.write(&mut sink, line) => why,
            },
        };
        self.end(why);
        self.why()
    }

    /// Writes what there is to say, and signs of life.
    async fn write(&self, sink: &mut Sink<impl AsyncWrite + Send>, Line(mut line): Line) -> LinkError {
        let mut block = Vec::with_capacity(BLOCK + HEADER);
        loop {
            let next = match self.take_urgent().or_else(|| line.try_recv().ok()) {
                Some(next) => next,
                None => {
                    if let Err(why) = sink.flush().await {
                        return why;
                    }
                    tokio::select! {
                        biased;
                        () = self.wake.notified() => continue,
                        // This holds the sender of the line itself.
                        next = line.recv() => next.unwrap_or_default(),
                        () = tokio::time::sleep(self.timing.beat) => frame(Kind::Beat, 0, &[]),
                    }
                }
            };
            // Small ones go together.
            let mut large = next;
            if large.len() < PIECE / 4 {
                block.clear();
                block.append(&mut large);
                while block.len() < BLOCK / 2 {
                    match self.take_urgent().or_else(|| line.try_recv().ok()) {
                        Some(next) if next.len() < PIECE / 4 => block.extend_from_slice(&next),
                        Some(next) => {
                            large = next;
                            break;
                        }
                        None => break,
                    }
                }
                if let Err(why) = sink.all(&block).await {
                    return why;
                }
            }
            if let Err(why) = sink.all(&large).await {
                return why;
            }
        }
    }

    fn take_urgent(&self) -> Option<Vec<u8>> {
        let mut urgent = self.lock();
        let frame = urgent.frames.pop_front()?;
        urgent.bytes -= frame.len();
        drop(urgent);
        self.freed.notify_waiters();
        Some(frame)
    }
}

struct Source<R> {
    reader: std::pin::Pin<Box<R>>,
    buffer: Vec<u8>,
    at: usize,
    max_silence: Duration,
}

impl<R: AsyncRead> Source<R> {
    /// Learns the version of the other side.
    async fn meet(&mut self) -> Result<(), LinkError> {
        let mut first = Vec::new();
        while first.len() < PREAMBLE {
            if let Err(why) = self.more().await {
                return Err(match why {
                    LinkError::Ended if !first.is_empty() => foreign(&first),
                    why => why,
                });
            }
            let wanted = PREAMBLE - first.len();
            first.extend(self.buffered(wanted));
            if !preamble().starts_with(first.get(..8).unwrap_or(&first)) {
                first.extend(self.buffered(60));
                return Err(foreign(&first));
            }
        }
        let mut bytes = [0; PREAMBLE];
        bytes.copy_from_slice(&first);
        match version(&bytes) {
            Some(VERSION) => Ok(()),
            Some(theirs) => Err(LinkError::Version { theirs }),
            None => Err(foreign(&first)),
        }
    }

    /// Up to so many bytes that were read already.
    fn buffered(&mut self, most: usize) -> Vec<u8> {
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let taken = rest.get(..most.min(rest.len())).unwrap_or_default().to_vec();
        self.at += taken.len();
        taken
    }

    async fn frame(&mut self) -> Result<Frame, LinkError> {
        while self.buffer.len() - self.at < HEADER {
            self.more().await?;
        }
        let mut header = [0; HEADER];
        header.copy_from_slice(&self.buffered(HEADER));
        let Header { kind, call, length } = Header::read(header).map_err(LinkError::Violated)?;
        // Grows as the bytes come, whatever the length says.
        let mut body = self.buffered(length);
        if length <= PIECE {
            body.reserve_exact(length - body.len());
        }
        while body.len() < length {
            let mut rest = (&mut self.reader).take((length - body.len()) as u64);
            read(&mut rest, &mut body, self.max_silence).await?;
        }
        Ok(Frame { kind, call, body })
    }

    /// Reads more into the buffer.
    async fn more(&mut self) -> Result<(), LinkError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        read(&mut self.reader, &mut self.buffer, self.max_silence).await
    }
}

/// Appends what is there, once something is.
async fn read(
    reader: &mut (impl AsyncRead + Unpin),
    into: &mut Vec<u8>,
    max_silence: Duration,
) -> Result<(), LinkError> {
    match timeout(max_silence, reader.read_buf(into)).await {
        Ok(Ok(0)) => Err(LinkError::Ended),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Ok(Err(error)) => Err(broken(&error)),
        Err(_) => Err(silent("said nothing", max_silence)),
    }
}

struct Sink<W> {
    writer: std::pin::Pin<Box<W>>,
    max_silence: Duration,
}

impl<W: AsyncWrite> Sink<W> {
    async fn all(&mut self, mut bytes: &[u8]) -> Result<(), LinkError> {
        while !bytes.is_empty() {
            match timeout(self.max_silence, self.writer.write(bytes)).await {
                Ok(Ok(0)) => return Err(LinkError::Ended),
                Ok(Ok(written)) => bytes = bytes.get(written..).unwrap_or_default(),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(broken(&error)),
                Err(_) => return Err(silent("took nothing", self.max_silence)),
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), LinkError> {
        match timeout(self.max_silence, self.writer.flush()).await {
            Ok(flushed) => flushed.map_err(|error| broken(&error)),
            Err(_) => Err(silent("took nothing", self.max_silence)),
        }
    }
}

fn foreign(first: &[u8]) -> LinkError {
    LinkError::Foreign(String::from_utf8_lossy(first).into_owned())
}

fn broken(error: &io::Error) -> LinkError {
    LinkError::Broken(error.to_string())
}

fn silent(what: &'static str, max_silence: Duration) -> LinkError {
    LinkError::Silent {
        what,
        for_ms: u64::try_from(max_silence.as_millis()).unwrap_or(u64::MAX),
    }
}
