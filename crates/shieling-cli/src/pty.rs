//! A terminal for a shell inside of another: a pair of terminals made here, bytes copied between it and
//! the person's own, which is raw meanwhile and itself again afterwards, however this ends.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::termios::{OptionalActions, Termios};
use shieling::session::Pty;

/// The size of one read.
const READ: usize = 16 * 1024;

/// How much of what is shown is kept, to explain a failure.
const KEPT: usize = 16 * 1024;
/// How long it is waited until all is shown.
const SHOWING: Duration = Duration::from_millis(200);
/// How often it is looked whether the keys are ours again, while a person is asked.
const ASKED: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// The modes that the person's terminal had, while it is raw.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);
/// Held by whoever reads the person's terminal.
static READS: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The person's terminal, raw: keys come as they are pressed, and mean nothing to us. Dropping it
/// makes it what it was.
#[derive(Debug)]
struct Raw(());

impl Raw {
    fn new() -> io::Result<Self> {
        let saved = rustix::termios::tcgetattr(io::stdin())?;
        let mut raw = saved.clone();
        raw.make_raw();
        let mut kept = lock(&SAVED);
        rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        *kept = Some(saved);
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(saved) = lock(&SAVED).take() {
            // If it is gone, there is nothing to restore.
            let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &saved);
        }
    }
}

/// A question on the person's terminal: as long as this is there, keys are not copied, and the terminal is as the
/// person has it.
pub(crate) struct Asking {
    raw: Option<Termios>,
    _reads: MutexGuard<'static, ()>,
}

impl Asking {
    pub(crate) fn begin() -> Self {
        let reads = lock(&READS);
        let raw = lock(&SAVED).as_ref().and_then(|saved| {
            let raw = rustix::termios::tcgetattr(io::stdin()).ok()?;
            rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, saved).ok()?;
            Some(raw)
        });
        Self { raw, _reads: reads }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(raw) = &self.raw
            && lock(&SAVED).is_some()
        {
            let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, raw);
        }
    }
}

/// The pair, and the copying. Dropping it ends the copying and restores the person's terminal.
#[derive(Debug)]
pub(crate) struct Inner {
    ours: OwnedFd,
    theirs: Option<OwnedFd>,
    /// Closed to end the copying.
    on: Option<OwnedFd>,
    copying: Option<JoinHandle<()>>,
    /// The end of what was shown.
    shown: Arc<Mutex<VecDeque<u8>>>,
    /// Dropped last.
    _raw: Raw,
}

impl Inner {
    /// Makes a pair like the person's terminal, which is standard input, and begins to copy.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(crate) fn open(Pty { ours, theirs }: Pty) -> io::Result<Self> {
        let like = rustix::termios::tcgetattr(io::stdin())?;
        rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &like)?;
        // A descriptor of our own, so that no other process sees the change.
        rustix::io::ioctl_fionbio(&ours, true)?;
        let (off, on) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let master = ours.try_clone()?;
        let raw = Raw::new()?;
        let shown = Arc::default();
        let kept = Arc::clone(&shown);
        let copying = std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            // Its errors are ends: of the shell, or of the person's terminal, of which others tell.
            let _ = copy(&master, &off, &kept);
        })?;
        let inner = Self {
            ours,
            theirs: Some(theirs),
            on: Some(on),
            copying: Some(copying),
            shown,
            _raw: raw,
        };
        inner.resize();
        Ok(inner)
    }

    /// The end that is the shell's, once.
    pub(crate) fn take(&mut self) -> Option<OwnedFd> {
        self.theirs.take()
    }

    /// The end of what was shown, once everything that was written is; as text.
    pub(crate) fn shown(&self) -> String {
        let begun = Instant::now();
        let kept = loop {
            let kept = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            let is_over = self.copying.as_ref().is_none_or(JoinHandle::is_finished);
            let is_shown = rustix::io::ioctl_fionread(&self.ours).is_ok_and(|left| left == 0);
            // What a command has left running may write for ever.
            if is_over || is_shown || begun.elapsed() > SHOWING {
                break kept;
            }
            drop(kept);
            std::thread::sleep(Duration::from_millis(1));
        };
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }

    /// Makes it as large as the person's terminal is now; its programs are told.
    pub(crate) fn resize(&self) {
        resize(&self.ours);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop((self.theirs.take(), self.on.take()));
        if let Some(copying) = self.copying.take() {
            // It has nothing to say.
            let _ = copying.join();
        }
    }
}

/// Makes the inner terminal as large as the person's is now. Nobody is told if it is so already.
fn resize(ours: &OwnedFd) {
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdin()) {
        // It keeps its size if that cannot be set.
        let _ = rustix::termios::tcsetwinsize(ours, size);
    }
}

/// Copies until nobody has the other end open any more, or `off` is told so; what was written until
/// then is shown.
fn copy(ours: &OwnedFd, off: &OwnedFd, shown: &Mutex<VecDeque<u8>>) -> Result<(), Errno> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut buffer = vec![0; READ];
    let mut typed = VecDeque::new();
    let mut reading = true;
    let mut asked = false;
    loop {
        let to_shell = if typed.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        // While the shell does not read, neither do we: what is not yet read is the terminal's to keep.
        let watched = if typed.is_empty() && reading && !asked { 3 } else { 2 };
        let mut fds = [
            PollFd::from_borrowed_fd(ours.as_fd(), to_shell),
            PollFd::from_borrowed_fd(off.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        ];
        let most = asked.then_some(&ASKED);
        rustix::io::retry_on_intr(|| poll(&mut fds[..watched], most))?;
        asked = false;
        let [shell, off, person] = fds.map(|fd| fd.revents());
        if shell.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            let mut kept = shown.lock().unwrap_or_else(PoisonError::into_inner);
            match rustix::io::read(ours, buffer.as_mut_slice()) {
                // The kernel's word for: nobody has the other end open.
                Ok(0) | Err(Errno::IO) => return Ok(()),
                Ok(count) => {
                    kept.extend(&buffer[..count]);
                    let excess = kept.len().saturating_sub(KEPT);
                    kept.drain(..excess);
                    drop(kept);
                    write_all(&stdout, &buffer[..count])?;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        } else if !off.is_empty() {
            return Ok(());
        }
        if shell.contains(PollFlags::OUT) {
            let (first, _) = typed.as_slices();
            match rustix::io::write(ours, first) {
                Ok(count) => drop(typed.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        if person.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            // What is typed now is the answer to a question.
            let Ok(_reads) = READS.try_lock() else {
                asked = true;
                continue;
            };
            match rustix::io::read(&stdin, buffer.as_mut_slice()) {
                Ok(0) => reading = false,
                Ok(count) => {
                    // What is typed after a change of the size finds it changed: the signal that tells us of it
                    // may be on its way still.
                    resize(ours);
                    typed.extend(&buffer[..count]);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => reading = false,
            }
        }
    }
}

fn write_all(to: &io::Stdout, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Somebody has made it so, and somebody else may read it slowly.
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::new(to, PollFlags::OUT)];
                rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
