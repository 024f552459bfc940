//! Our standard input on its way to the command.
//!
//! The command never gets our own descriptor: through that of a directory or of a file it could reach what
//! stands outside of its environment, or change its mode. It gets a pipe, and a thread copies. Reading ahead is
//! bounded by that pipe (64 KiB) and one piece. What the command has not read of a regular file is given back:
//! the next reader of our standard input goes on where the command stopped. Of a pipe nothing can be given back.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

/// The device number of `/dev/null`: major 1, minor 3.
const NULL: u64 = 0x103;

/// The most that is read at once, in bytes.
const PIECE: usize = 64 * 1024;

/// How often it is looked whether we are in the foreground again, from the background of a terminal.
const BACKGROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// How long it is waited for the copying to stop. It can take longer only where somebody else reads from the
/// same pipe or terminal, and has taken what we were about to read.
const STOPPING: Duration = Duration::from_millis(100);

/// What the command is given as its standard input.
#[derive(Debug)]
pub(crate) enum Fed {
    /// An end of file.
    Nothing,
    /// This end of a pipe, which is fed as long as the other is there.
    From(OwnedFd, Feed),
}

/// The copying. Dropping it ends that, and gives back what was not read.
#[derive(Debug)]
pub(crate) struct Feed {
    /// The command's end of the pipe, if what is left in it can be given back. Held only then: with it the pipe
    /// never seems to be without a reader.
    left: Option<OwnedFd>,
    /// Closed to end the copying.
    on: Option<OwnedFd>,
    /// How many bytes were read of our standard input and not put into the pipe, once the copying has ended.
    kept: Mutex<mpsc::Receiver<usize>>,
}

/// Begins to pass our standard input on.
///
/// # Errors
/// A pipe or a thread cannot be made.
pub(crate) fn pass_on() -> io::Result<Fed> {
    let stat = rustix::fs::fstat(io::stdin())?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::CharacterDevice && stat.st_rdev == NULL {
        return Ok(Fed::Nothing);
    }
    let (read, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // A descriptor of our own, so that no other process sees the change.
    rustix::io::ioctl_fionbio(&to, true)?;
    let (off, on) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let left = (kind == FileType::RegularFile).then(|| read.try_clone()).transpose()?;
    let (tell, kept) = mpsc::channel();
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let kept = copy(to, &off);
        // Nobody waits any more if it took too long.
        let _ = tell.send(kept);
    })?;
    let (on, kept) = (Some(on), Mutex::new(kept));
    Ok(Fed::From(read, Feed { left, on, kept }))
}

impl Drop for Feed {
    fn drop(&mut self) {
        drop(self.on.take());
        let Some(left) = &self.left else {
            return;
        };
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Ok(kept) = kept.recv_timeout(STOPPING) else {
            return;
        };
        let unread = rustix::io::ioctl_fionread(left).unwrap_or(0) + kept as u64;
        if let Ok(back @ 1..) = i64::try_from(unread) {
            // A file that has been cut meanwhile ends where it ends.
            let _ = rustix::fs::seek(io::stdin(), SeekFrom::Current(-back));
        }
    }
}

/// Copies until our standard input is at its end, nobody reads the pipe, or `off` is told so. Gives how much was
/// read and not passed on; the pipe is closed then, which is the command's end of file.
fn copy(to: OwnedFd, off: &OwnedFd) -> usize {
    let stdin = io::stdin();
    let mut buffer = vec![0; PIECE];
    let mut piece = 0..0;
    loop {
        let reads = piece.is_empty();
        // A reader in the background of a terminal is stopped instead of being given anything.
        let foreground = !stdin.is_terminal()
            || rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp());
        let wanted = if reads { PollFlags::empty() } else { PollFlags::OUT };
        let mut fds = [
            PollFd::from_borrowed_fd(off.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(to.as_fd(), wanted),
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        ];
        let watched = if reads && foreground { 3 } else { 2 };
        let again = (reads && !foreground).then_some(&BACKGROUND);
        if rustix::io::retry_on_intr(|| poll(&mut fds[..watched], again)).is_err() {
            return piece.len();
        }
        let [off, pipe, input] = fds.map(|fd| fd.revents());
        if !off.is_empty() || pipe.intersects(PollFlags::ERR | PollFlags::HUP) {
            return piece.len();
        }
        if pipe.contains(PollFlags::OUT) {
            match rustix::io::write(&to, &buffer[piece.clone()]) {
                Ok(count) => piece.start += count,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return piece.len(),
            }
        } else if watched == 3 && !input.is_empty() {
            match rustix::io::read(&stdin, buffer.as_mut_slice()) {
                Ok(0) => return 0,
                Ok(count) => piece = 0..count,
                Err(Errno::AGAIN | Errno::INTR) => {}
                // What cannot be read, such as a directory, is an end of file.
                Err(_) => return 0,
            }
        }
    }
}
