//! A terminal for a shell inside of another: a pair of terminals made here, bytes copied between it and
//! the person's own, which is raw meanwhile and itself again afterwards, however this ends.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::termios::{OptionalActions, Termios};
use shieling::session::Pty;

/// The size of one read.
const READ: usize = 16 * 1024;

/// The person's terminal, raw: keys come as they are pressed, and mean nothing to us. Dropping it
/// makes it what it was.
#[derive(Debug)]
struct Raw {
    saved: Termios,
}

impl Raw {
    fn new() -> io::Result<Self> {
        let saved = rustix::termios::tcgetattr(io::stdin())?;
        let mut raw = saved.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { saved })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // If it is gone, there is nothing to restore.
        let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.saved);
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
        let copying = std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            // Its errors are ends: of the shell, or of the person's terminal, of which others tell.
            let _ = copy(&master, &off);
        })?;
        let inner = Self {
            ours,
            theirs: Some(theirs),
            on: Some(on),
            copying: Some(copying),
            _raw: raw,
        };
        inner.resize();
        Ok(inner)
    }

    /// The end that is the shell's, once.
    pub(crate) fn take(&mut self) -> Option<OwnedFd> {
        self.theirs.take()
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
fn copy(ours: &OwnedFd, off: &OwnedFd) -> Result<(), Errno> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut buffer = vec![0; READ];
    let mut typed = VecDeque::new();
    let mut reading = true;
    loop {
        let to_shell = if typed.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        // While the shell does not read, neither do we: what is not yet read is the terminal's to keep.
        let watched = if typed.is_empty() && reading { 3 } else { 2 };
        let mut fds = [
            PollFd::from_borrowed_fd(ours.as_fd(), to_shell),
            PollFd::from_borrowed_fd(off.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds[..watched], None))?;
        let [shell, off, person] = fds.map(|fd| fd.revents());
        if shell.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match rustix::io::read(ours, buffer.as_mut_slice()) {
                // The kernel's word for: nobody has the other end open.
                Ok(0) | Err(Errno::IO) => return Ok(()),
                Ok(count) => write_all(&stdout, &buffer[..count])?,
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
