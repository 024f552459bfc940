//! Standard input that arrives while a text runs. Whatever reads it takes its turn, and leaves what it
//! does not take for the next.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::record::Record;

/// How much is read at once.
const PIECE: usize = 64 * 1024;
/// No waiting.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The input of one text.
pub(super) struct Input {
    from: Source,
    /// How much is held at most.
    most: usize,
    held: Mutex<Held>,
    /// Told when something is left that somebody else may be waiting for.
    left: Notify,
}

/// Where it comes from: what can be waited for, or what is there at once, as a file.
enum Source {
    Waiting(AsyncFd<OwnedFd>),
    There(OwnedFd),
}

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    ended: bool,
}

impl Input {
    /// Takes a descriptor over. Nothing is read before somebody wants it.
    ///
    /// # Panics
    /// Outside a runtime with I/O.
    pub(super) fn new(from: OwnedFd, most: usize) -> Self {
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe for the sake of other types: an `OwnedFd` stays what it is"
        )]
        let registered = AsyncFd::try_with_interest(from, tokio::io::Interest::READABLE);
        let from = match registered {
            Ok(waiting) => Source::Waiting(waiting),
            // The kernel has nothing to wait for at files and directories.
            Err(refused) => Source::There(refused.into_parts().0),
        };
        Self {
            from,
            most,
            held: Mutex::default(),
            left: Notify::new(),
        }
    }

    /// The next bytes, as soon as there are any; none at its end.
    ///
    /// # Cancel safety
    /// Cancel safe: what was not given is given later.
    pub(super) async fn piece(&self) -> io::Result<Vec<u8>> {
        loop {
            let other = self.left.notified();
            {
                let mut held = self.held();
                if held.ended || !held.bytes.is_empty() {
                    return Ok(std::mem::take(&mut held.bytes));
                }
            }
            self.more(other).await?;
        }
    }

    /// The next record, or at the end of the input what is left.
    ///
    /// # Cancel safety
    /// Cancel safe: a record is taken whole or not at all.
    pub(super) async fn record(&self, record: &Record) -> io::Result<Vec<u8>> {
        loop {
            let other = self.left.notified();
            if let Some(taken) = self.taken(record) {
                return Ok(taken);
            }
            self.more(other).await?;
        }
    }

    /// What has come of a record by now, which is not the whole of it.
    pub(super) fn begun(&self) -> Vec<u8> {
        std::mem::take(&mut self.held().bytes)
    }

    /// Whether a read would wait for nothing.
    pub(super) fn is_ready(&self) -> bool {
        let held = self.held();
        held.ended || !held.bytes.is_empty() || readable(self.descriptor()).unwrap_or(true)
    }

    fn taken(&self, record: &Record) -> Option<Vec<u8>> {
        let mut held = self.held();
        let length = match record.end(&held.bytes) {
            Some(length) => length,
            None if held.ended => held.bytes.len(),
            None => return None,
        };
        let rest = held.bytes.split_off(length);
        let taken = std::mem::replace(&mut held.bytes, rest);
        if !held.bytes.is_empty() {
            self.left.notify_waiters();
        }
        Some(taken)
    }

    /// Reads once, or has somebody else do so.
    async fn more(&self, other: tokio::sync::futures::Notified<'_>) -> io::Result<()> {
        let waiting = match &self.from {
            Source::Waiting(waiting) => waiting,
            Source::There(from) => return self.read(from.as_fd()),
        };
        tokio::select! {
            () = other => Ok(()),
            ready = waiting.readable() => {
                let mut ready = ready?;
                // Others may have read, here or in another process that has the same pipe.
                if !readable(self.descriptor())? {
                    ready.clear_ready();
                    return Ok(());
                }
                self.read(self.descriptor())
            }
        }
    }

    fn read(&self, from: BorrowedFd<'_>) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        let read = match rustix::io::read(from, &mut piece[..]) {
            Ok(read) => read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut held = self.held();
        held.ended |= read == 0;
        if held.bytes.len() + read > self.most {
            let why = "more input than memory holds";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        held.bytes.extend_from_slice(&piece[..read]);
        self.left.notify_waiters();
        Ok(())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.from {
            Source::Waiting(waiting) => waiting.get_ref().as_fd(),
            Source::There(from) => from.as_fd(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether reading would not block: the descriptor is somebody else's too, and stays as it was made.
fn readable(descriptor: BorrowedFd<'_>) -> io::Result<bool> {
    let mut waiting = [PollFd::new(&descriptor, PollFlags::IN)];
    match poll(&mut waiting, Some(&NOW)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
