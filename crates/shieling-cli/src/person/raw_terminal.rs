//! The person's terminal in raw mode, while a job is drawn on it. One thread both reads and writes it and never blocks
//! on only one of them, so that a stopped terminal delays nothing else.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::termios::{OptionalActions, Termios};
use shieling::session::{Renderer, TerminalSize};
use tokio::sync::{Notify, mpsc};

/// The size of one read, in bytes.
const READ_BYTES: usize = 4 * 1024;

/// The number of reads that may wait for the job; further keys stay in the terminal's own queue.
const MAX_PENDING_READS: usize = 16;

/// A terminal in raw mode. Dropping it restores the previous modes.
#[derive(Debug)]
pub(super) struct RawTerminal {
    terminal: Arc<File>,
    saved: Termios,
    output: Arc<PendingOutput>,
    /// Wakes the thread when written to, ends it when closed.
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Bytes that are not written to the terminal yet.
#[derive(Debug, Default)]
struct PendingOutput {
    bytes: Mutex<Vec<u8>>,
    written: Notify,
}

impl PendingOutput {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RawTerminal {
    /// Puts a terminal into raw mode and starts its thread. The receiver yields the keys, until the terminal closes.
    /// The descriptor must not be shared: it is made non-blocking.
    pub(super) fn new(terminal: File) -> io::Result<(Self, mpsc::Receiver<Vec<u8>>)> {
        let terminal = Arc::new(terminal);
        let saved = rustix::termios::tcgetattr(&terminal)?;
        let (woken, wake) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::io::ioctl_fionbio(&terminal, true)?;
        let (keys, typed) = mpsc::channel(MAX_PENDING_READS);
        let mut this = Self {
            terminal: Arc::clone(&terminal),
            saved,
            output: Arc::default(),
            wake: Some(wake),
            thread: None,
        };
        let mut raw = this.saved.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        this.show(Renderer::ENTER.into());
        let output = Arc::clone(&this.output);
        this.thread = Some(std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            // An error means that the terminal is gone; dropping `keys` tells the receiver.
            let _ = copy(&terminal, &output, &keys, &woken);
        })?);
        Ok((this, typed))
    }

    /// Reads the size of the terminal; `None` if it has none.
    pub(super) fn size(&self) -> Option<TerminalSize> {
        let size = rustix::termios::tcgetwinsize(&self.terminal).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some(TerminalSize {
            rows: size.ws_row,
            columns: size.ws_col,
        })
    }

    /// Whether all output has been written.
    pub(super) fn is_idle(&self) -> bool {
        self.output.bytes().is_empty()
    }

    /// Waits until output may have been written completely.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn idle(&self) {
        self.output.written.notified().await;
    }

    /// Appends bytes to the output.
    pub(super) fn show(&self, bytes: Vec<u8>) {
        self.output.bytes().extend(bytes);
        if let Some(wake) = &self.wake {
            // A full pipe has woken the thread already.
            let _ = rustix::io::write(wake, &[0]);
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // It ends at once, since `wake` is closed, and returns nothing.
            let _ = thread.join();
        }
        // Unwritten frames are dropped. Errors are ignored: a stopped or closed terminal takes no more bytes.
        let _ = rustix::io::write(&self.terminal, Renderer::LEAVE.as_bytes());
        let _ = rustix::termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.saved);
    }
}

/// Writes output and reads keys, until the terminal closes or the `RawTerminal` is dropped.
fn copy(terminal: &File, output: &PendingOutput, keys: &mpsc::Sender<Vec<u8>>, woken: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let mut wanted = PollFlags::empty();
        if keys.capacity() > 0 {
            wanted |= PollFlags::IN;
        }
        if !output.bytes().is_empty() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [PollFd::new(woken, PollFlags::IN), PollFd::new(terminal, wanted)];
        // No event reports that `keys` has room again, so it is polled for while full.
        let timeout = (keys.capacity() == 0).then_some(rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        });
        rustix::io::retry_on_intr(|| poll(&mut fds, timeout.as_ref()))?;
        let [wake, terminal_is] = fds.map(|fd| fd.revents());
        if wake.contains(PollFlags::HUP) {
            return Ok(());
        }
        if wake.contains(PollFlags::IN) {
            // The bytes only wake this thread.
            let _ = rustix::io::read(woken, buffer.as_mut_slice());
        }
        if terminal_is.contains(PollFlags::OUT) {
            let mut bytes = output.bytes();
            match rustix::io::write(terminal, &bytes) {
                Ok(count) => drop(bytes.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            if bytes.is_empty() {
                output.written.notify_one();
            }
        }
        if terminal_is.intersects(PollFlags::IN) {
            match rustix::io::read(terminal, buffer.as_mut_slice()) {
                Ok(0) => return Ok(()),
                // There is room: this is the only sender.
                Ok(count) => drop(keys.try_send(buffer[..count].to_vec())),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        } else if terminal_is.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Ok(());
        }
    }
}
