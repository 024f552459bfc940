//! Streams within a link: what has arrived and was not read yet, and how much more may be sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, ReadBuf};

use crate::frame::{Channel, Kind, frame};
use crate::link::Link;

/// Pieces up to this size together are held as one.
const SMALL: usize = 8 * 1024;

/// What has arrived of one stream. At most one window of it, or whoever sends breaks the protocol.
pub(crate) struct Inbox {
    link: Arc<Link>,
    call: u32,
    channel: Channel,
    window: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    pieces: VecDeque<Vec<u8>>,
    /// How much of the first one was read.
    at: usize,
    /// How much more may arrive.
    allowed: usize,
    /// How much was read and not allowed anew.
    read: usize,
    ended: bool,
    /// Whoever used it has gone: what still arrives is for nobody.
    left: bool,
    unread: bool,
    /// How much has arrived, was read, and was read before the reader last asked for more.
    arrived: u64,
    taken: u64,
    passed_on: u64,
    waker: Option<Waker>,
    /// Who waits until the reader has passed on what has arrived.
    watcher: Option<Waker>,
}

impl Inbox {
    /// One for which the sender was granted this much.
    pub(crate) fn new(link: &Arc<Link>, call: u32, channel: Channel, window: usize) -> Arc<Self> {
        Arc::new(Self {
            link: Arc::clone(link),
            call,
            channel,
            window,
            held: Mutex::new(Held {
                allowed: window,
                ..Held::default()
            }),
        })
    }

    /// Takes what has arrived, or says what is wrong with it.
    pub(crate) fn push(&self, piece: Vec<u8>) -> Result<(), String> {
        let mut held = self.lock();
        if held.left {
            return Ok(());
        }
        if held.ended {
            return Err("bytes of a stream after its end".to_owned());
        }
        held.allowed = held
            .allowed
            .checked_sub(piece.len())
            .ok_or_else(|| "more of a stream than it was allowed".to_owned())?;
        if held.unread {
            return Ok(());
        }
        held.arrived += piece.len() as u64;
        match held.pieces.back_mut() {
            // Many small ones would take more memory than what is in them.
            Some(last) if last.len() + piece.len() <= SMALL => last.extend_from_slice(&piece),
            _ => held.pieces.push_back(piece),
        }
        wake(held);
        Ok(())
    }

    /// How much has arrived.
    pub(crate) fn arrived(&self) -> u64 {
        self.lock().arrived
    }

    /// Waits until so much was passed on by a reader that asks for more only once it has passed on what it has, or
    /// until that reader is gone.
    pub(crate) fn poll_passed_on(&self, cx: &mut Context<'_>, so_much: u64) -> Poll<()> {
        let mut held = self.lock();
        if held.unread || held.passed_on >= so_much {
            return Poll::Ready(());
        }
        held.watcher = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nothing more arrives.
    pub(crate) fn end(&self) {
        let mut held = self.lock();
        held.ended = true;
        wake(held);
    }

    /// Nothing more is wanted, whatever arrives: its reader comes to an end with what is there.
    pub(crate) fn leave(&self) {
        let mut held = self.lock();
        held.ended = true;
        held.left = true;
        wake(held);
    }

    /// A reader of it. There is one.
    pub(crate) fn reader(self: &Arc<Self>) -> Incoming {
        Incoming(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut held: MutexGuard<'_, Held>) {
    let waker = held.waker.take();
    drop(held);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Reads a stream. Once it is dropped, the sender is told that nobody reads any more.
pub(crate) struct Incoming(Arc<Inbox>);

impl AsyncRead for Incoming {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let inbox = &self.0;
        let mut held = inbox.lock();
        held.passed_on = held.taken;
        let watcher = held.watcher.take();
        let before = buffer.filled().len();
        while buffer.remaining() > 0 {
            let at = held.at;
            let Some(piece) = held.pieces.front() else { break };
            let rest = piece.get(at..).unwrap_or_default();
            let taken = rest.len().min(buffer.remaining());
            buffer.put_slice(rest.get(..taken).unwrap_or_default());
            if taken == rest.len() {
                held.at = 0;
                held.pieces.pop_front();
            } else {
                held.at += taken;
            }
        }
        let taken = buffer.filled().len() - before;
        held.taken += taken as u64;
        held.read += taken;
        let read = if taken == 0 && buffer.remaining() > 0 && !held.ended {
            held.waker = Some(cx.waker().clone());
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        };
        let granted = if held.read >= inbox.window / 2 && !held.ended {
            std::mem::take(&mut held.read)
        } else {
            0
        };
        held.allowed += granted;
        drop(held);
        watcher.into_iter().for_each(Waker::wake);
        if granted > 0 {
            let granted = u32::try_from(granted).unwrap_or(u32::MAX).to_le_bytes();
            inbox
                .link
                .urgent(frame(Kind::Credit(inbox.channel), inbox.call, &granted));
        }
        read
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let mut held = self.0.lock();
        held.unread = true;
        held.pieces.clear();
        let (ended, watcher) = (held.ended, held.watcher.take());
        drop(held);
        watcher.into_iter().for_each(Waker::wake);
        if !ended {
            let closed = frame(Kind::Closed(self.0.channel), self.0.call, &[]);
            self.0.link.urgent(closed);
        }
    }
}

/// How much more may be sent of one stream. One task asks for it.
#[derive(Default)]
pub(crate) struct Credit(Mutex<Granted>);

#[derive(Default)]
struct Granted {
    left: usize,
    closed: bool,
    waker: Option<Waker>,
}

impl Credit {
    pub(crate) fn new(granted: usize) -> Arc<Self> {
        let credit = Self::default();
        credit.grant(granted);
        Arc::new(credit)
    }

    /// So much more may be sent.
    pub(crate) fn grant(&self, more: usize) {
        let mut granted = self.lock();
        granted.left = granted.left.saturating_add(more);
        let waker = granted.waker.take();
        drop(granted);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Nothing more is wanted.
    pub(crate) fn close(&self) {
        let mut granted = self.lock();
        granted.closed = true;
        let waker = granted.waker.take();
        drop(granted);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether nothing more may be sent for now.
    pub(crate) fn is_spent(&self) -> bool {
        self.lock().left == 0
    }

    /// Waits until something may be sent, and says how much; nothing once it is closed.
    pub(crate) async fn some(&self) -> Option<usize> {
        poll_fn(|cx| {
            let mut granted = self.lock();
            match (granted.closed, granted.left) {
                (true, _) => Poll::Ready(None),
                (false, 0) => {
                    granted.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
                (false, left) => Poll::Ready(Some(left)),
            }
        })
        .await
    }

    /// Waits until nothing more is wanted.
    pub(crate) async fn closed(&self) {
        poll_fn(|cx| {
            let mut granted = self.lock();
            if granted.closed {
                return Poll::Ready(());
            }
            granted.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// So much was sent.
    pub(crate) fn take(&self, sent: usize) {
        let mut granted = self.lock();
        granted.left = granted.left.saturating_sub(sent);
    }

    fn lock(&self) -> MutexGuard<'_, Granted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::link::Timing;

    #[tokio::test]
    async fn what_was_read_counts_as_passed_on_once_more_is_asked_for() {
        let (link, _line) = Link::new(Timing::default());
        let inbox = Inbox::new(&link, 1, Channel::Output, 1024);
        let mut reader = inbox.reader();
        let passed_on = async |so_much| poll_fn(|cx| Poll::Ready(inbox.poll_passed_on(cx, so_much).is_ready())).await;
        inbox.push(b"eof\n".to_vec()).expect("it is allowed");
        let before = inbox.arrived();
        assert!(!passed_on(before).await);
        let mut buffer = [0; 16];
        assert_eq!(reader.read(&mut buffer).await.expect("it is there"), 4);
        // It is in the buffer, and nowhere else yet.
        assert!(!passed_on(before).await);
        let mut more = ReadBuf::new(&mut buffer);
        let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut reader).poll_read(cx, &mut more).is_pending()));
        assert!(read.await);
        assert!(passed_on(before).await);
        // What follows is not waited for, and with its reader nobody is.
        inbox.push(b"more".to_vec()).expect("it is allowed");
        assert!(passed_on(before).await && !passed_on(u64::MAX).await);
        drop(reader);
        assert!(passed_on(u64::MAX).await);
    }
}
