//! The person's terminal while a job has it: raw, with the job drawn on it. One thread reads and
//! writes it, never waiting for either alone, so that a stopped terminal holds up nothing else.

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

/// The size of one read.
const READ: usize = 4 * 1024;

/// How many reads wait to be typed into the job. What a person types beyond is read later.
const TYPED: usize = 16;

/// The terminal, lent. Dropping it gives it back as it was.
#[derive(Debug)]
pub(super) struct Lent {
    terminal: Arc<File>,
    saved: Termios,
    page: Arc<Page>,
    /// Written to when there is something to show; closed to end.
    wake: Option<OwnedFd>,
    copying: Option<JoinHandle<()>>,
}

/// What is still to be written.
#[derive(Debug, Default)]
struct Page {
    bytes: Mutex<Vec<u8>>,
    written: Notify,
}

impl Page {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent {
    /// Takes a terminal that was opened for this alone, and gives what is typed there until it is gone.
    pub(super) fn new(terminal: File) -> io::Result<(Self, mpsc::Receiver<Vec<u8>>)> {
        let terminal = Arc::new(terminal);
        let saved = rustix::termios::tcgetattr(&terminal)?;
        let (woken, wake) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::io::ioctl_fionbio(&terminal, true)?;
        let (keys, typed) = mpsc::channel(TYPED);
        let mut lent = Self {
            terminal: Arc::clone(&terminal),
            saved,
            page: Arc::default(),
            wake: Some(wake),
            copying: None,
        };
        let mut raw = lent.saved.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        lent.show(Renderer::ENTER.into());
        let page = Arc::clone(&lent.page);
        lent.copying = Some(std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            // Its errors are ends of the terminal, which the receiver of keys sees.
            let _ = copy(&terminal, &page, &keys, &woken);
        })?);
        Ok((lent, typed))
    }

    /// How large it is.
    pub(super) fn size(&self) -> Option<TerminalSize> {
        let size = rustix::termios::tcgetwinsize(&self.terminal).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some(TerminalSize {
            rows: size.ws_row,
            columns: size.ws_col,
        })
    }

    /// Whether all that was to be shown is written.
    pub(super) fn is_idle(&self) -> bool {
        self.page.bytes().is_empty()
    }

    /// Waits until it may be idle. Cancel safe.
    pub(super) async fn idle(&self) {
        self.page.written.notified().await;
    }

    /// Shows this after all before.
    pub(super) fn show(&self, bytes: Vec<u8>) {
        self.page.bytes().extend(bytes);
        if let Some(wake) = &self.wake {
            // A pipe that is full wakes it as well.
            let _ = rustix::io::write(wake, &[0]);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(copying) = self.copying.take() {
            // It waits for nothing but us, and has nothing to say.
            let _ = copying.join();
        }
        // Frames that were not written are for nobody. A terminal that is stopped takes nothing now, and
        // one that is gone needs nothing.
        let _ = rustix::io::write(&self.terminal, Renderer::LEAVE.as_bytes());
        let _ = rustix::termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.saved);
    }
}

/// Writes the page and reads keys until the terminal or whoever holds it is gone.
fn copy(terminal: &File, page: &Page, keys: &mpsc::Sender<Vec<u8>>, woken: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = vec![0; READ];
    loop {
        let mut wanted = PollFlags::empty();
        if keys.capacity() > 0 {
            wanted |= PollFlags::IN;
        }
        if !page.bytes().is_empty() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [PollFd::new(woken, PollFlags::IN), PollFd::new(terminal, wanted)];
        // While nobody takes the keys, it looks again now and then.
        let patience = (keys.capacity() == 0).then_some(rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        });
        rustix::io::retry_on_intr(|| poll(&mut fds, patience.as_ref()))?;
        let [wake, terminal_is] = fds.map(|fd| fd.revents());
        if wake.contains(PollFlags::HUP) {
            return Ok(());
        }
        if wake.contains(PollFlags::IN) {
            // Only that something came counts.
            let _ = rustix::io::read(woken, buffer.as_mut_slice());
        }
        if terminal_is.contains(PollFlags::OUT) {
            let mut bytes = page.bytes();
            match rustix::io::write(terminal, &bytes) {
                Ok(count) => drop(bytes.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            if bytes.is_empty() {
                page.written.notify_one();
            }
        }
        if terminal_is.intersects(PollFlags::IN) {
            match rustix::io::read(terminal, buffer.as_mut_slice()) {
                Ok(0) => return Ok(()),
                // There is room: nobody else sends.
                Ok(count) => drop(keys.try_send(buffer[..count].to_vec())),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        } else if terminal_is.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Ok(());
        }
    }
}
