//! Pseudoterminals. Starts no process.
//!
//! On Linux, both ends come from `/dev/ptmx` of this host or of a sandbox. The kernel opens the program's end itself
//! (`TIOCGPTPEER`), so that no path in a possibly foreign `/dev/pts` is trusted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

#[cfg(test)]
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
#[cfg(test)]
use rustix::termios::LocalModes;
use rustix::termios::{InputModes, OptionalActions, Winsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::TerminalSize;
use crate::process::watch_both;

const FLAGS: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

/// Both ends of a pseudoterminal.
#[derive(Debug)]
pub struct Pty {
    /// The controlling end: bytes written here are the program's input, and its output is read here.
    pub ours: OwnedFd,
    /// The program's end, for its standard streams.
    pub theirs: OwnedFd,
}

impl Pty {
    /// Opens a pseudoterminal of this size, in the modes of a login terminal. Line editing works on UTF-8: one
    /// Backspace removes a character, not a byte.
    ///
    /// ```
    /// use shieling::session::{Pty, TerminalSize};
    ///
    /// let pair = Pty::open(TerminalSize::default())?;
    /// rustix::io::write(&pair.ours, b"typed\n")?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// If the size is out of bounds, or the system has no more pseudoterminals.
    pub fn open(size: TerminalSize) -> io::Result<Self> {
        Self::of(rustix::pty::openpt(FLAGS)?, size)
    }

    /// Like [`open`](Self::open), but takes the controlling end from an environment that has pseudoterminals of its
    /// own ([`Environment::terminals`]), so that the program's end has a name there.
    ///
    /// [`Environment::terminals`]: crate::environment::Environment::terminals
    ///
    /// # Errors
    /// Those of `open`, and if `terminals` is not a new pseudoterminal.
    pub fn open_in(terminals: Option<OwnedFd>, size: TerminalSize) -> io::Result<Self> {
        match terminals {
            Some(ours) => Self::of(ours, size),
            None => Self::open(size),
        }
    }

    fn of(ours: OwnedFd, size: TerminalSize) -> io::Result<Self> {
        rustix::pty::grantpt(&ours)?;
        rustix::pty::unlockpt(&ours)?;
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, FLAGS)?;
        let mut modes = rustix::termios::tcgetattr(&theirs)?;
        modes.input_modes |= InputModes::IUTF8;
        rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &modes)?;
        resize(&ours, size)?;
        Ok(Self { ours, theirs })
    }
}

/// Resizes a terminal, given either end. The program in the foreground receives SIGWINCH.
///
/// # Errors
/// If the size is out of bounds, or the file is not a terminal.
pub(crate) fn resize(terminal: &impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = size
        .checked()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}

/// The controlling end of a pseudoterminal, read and written without blocking.
#[derive(Debug)]
pub(crate) struct Terminal {
    ours: AsyncFd<OwnedFd>,
}

impl Terminal {
    /// Registers the controlling end with the runtime.
    ///
    /// # Errors
    /// If the file cannot be registered.
    /// # Panics
    /// Outside a tokio runtime with I/O.
    pub(crate) fn new(ours: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(Self {
            ours: watch_both(ours)?,
        })
    }

    /// Reads output of the program. Returns 0 once no process has the other end open.
    ///
    /// # Errors
    /// Errors of the system.
    /// # Cancel safety
    /// Cancel safe.
    #[cfg(test)]
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.ours.async_io(Interest::READABLE, |ours| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::read(ours, &mut *buffer))?)
        });
        match read.await {
            // Linux reports this way that no process has the other end open.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            read => read,
        }
    }

    /// Writes input for the program. Returns the number of bytes written, which is smaller if the program does not
    /// read.
    ///
    /// # Errors
    /// Errors of the system.
    /// # Cancel safety
    /// Cancel safe.
    #[cfg(test)]
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = self.ours.async_io(Interest::WRITABLE, |ours| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::write(ours, bytes))?)
        });
        write.await
    }

    /// Waits until there may be output to read.
    ///
    /// # Errors
    /// Errors of the runtime.
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.ours.readable().await.map(drop)
    }

    /// Waits until the terminal may accept input.
    ///
    /// # Errors
    /// Errors of the runtime.
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.ours.writable().await.map(drop)
    }

    /// Reads the output that is available. Fails once no process has the other end open.
    ///
    /// # Errors
    /// Errors of the system; [`io::ErrorKind::WouldBlock`] if no output is available.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ours
            .try_io(Interest::READABLE, |ours| Ok(rustix::io::read(ours, &mut *buffer)?))
    }

    /// Writes as much input as the terminal accepts now.
    ///
    /// # Errors
    /// Errors of the system; [`io::ErrorKind::WouldBlock`] if it accepts none.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.ours
            .try_io(Interest::WRITABLE, |ours| Ok(rustix::io::write(ours, bytes)?))
    }

    /// Returns the size of the terminal.
    pub(crate) fn size(&self) -> TerminalSize {
        let size = rustix::termios::tcgetwinsize(self.ours.get_ref());
        size.map_or_else(
            |_| TerminalSize::default(),
            |size| TerminalSize {
                rows: size.ws_row,
                columns: size.ws_col,
            },
        )
    }

    /// Resizes the terminal.
    ///
    /// # Errors
    /// Those of [`resize`].
    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        resize(self.ours.get_ref(), size)
    }

    /// Returns whether input is echoed. It is not while a program asks for a password.
    #[cfg(test)]
    pub(crate) fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(self.ours.get_ref());
        modes.is_ok_and(|modes| modes.local_modes.contains(LocalModes::ECHO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(rows: u16, columns: u16) -> TerminalSize {
        TerminalSize { rows, columns }
    }

    #[test]
    fn a_new_terminal_has_its_size_and_the_modes_of_a_login() {
        let pair = Pty::open(size(33, 101)).expect("there are terminals");
        let got = rustix::termios::tcgetwinsize(&pair.theirs).expect("it is one");
        assert_eq!((got.ws_row, got.ws_col), (33, 101));
        let modes = rustix::termios::tcgetattr(&pair.theirs).expect("it is one");
        assert!(modes.input_modes.contains(InputModes::IUTF8 | InputModes::ICRNL));
        assert!(
            modes
                .local_modes
                .contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
        );
        for end in [&pair.ours, &pair.theirs] {
            let flags = rustix::io::fcntl_getfd(end).expect("it is open");
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
    }

    #[test]
    fn a_size_that_no_terminal_has_is_refused() {
        let pair = Pty::open(TerminalSize::default()).expect("there are terminals");
        for wrong in [size(0, 80), size(24, 0), size(501, 80), size(24, 1_001)] {
            assert!(Pty::open(wrong).is_err());
            let error = resize(&pair.ours, wrong).expect_err("it is refused").to_string();
            assert!(error.contains("1 to 500 lines"), "{error}");
        }
        resize(&pair.theirs, TerminalSize::LARGEST).expect("it is the largest");
        let got = rustix::termios::tcgetwinsize(&pair.ours).expect("it is a terminal");
        assert_eq!((got.ws_row, got.ws_col), (500, 1_000));
    }

    #[tokio::test]
    async fn what_is_typed_is_read_and_echoed_until_the_other_end_is_gone() {
        let pair = Pty::open(TerminalSize::default()).expect("there are terminals");
        let terminal = Terminal::new(pair.ours).expect("it can be watched");
        assert_eq!(terminal.write(b"hi\r").await.expect("it takes it"), 3);
        let mut line = [0; 16];
        let read = rustix::io::read(&pair.theirs, &mut line).expect("a line was typed");
        assert_eq!(&line[..read], b"hi\n");
        assert!(terminal.echoes());
        let mut modes = rustix::termios::tcgetattr(&pair.theirs).expect("it is one");
        modes.local_modes -= LocalModes::ECHO;
        rustix::termios::tcsetattr(&pair.theirs, OptionalActions::Now, &modes).expect("it can be set");
        assert!(!terminal.echoes());
        drop(pair.theirs);
        let (mut shown, mut buffer) = (Vec::new(), [0; 16]);
        loop {
            match terminal.read(&mut buffer).await.expect("it can be read") {
                0 => break,
                count => shown.extend_from_slice(&buffer[..count]),
            }
        }
        assert_eq!(shown, b"hi\r\n");
        assert_eq!(terminal.read(&mut buffer).await.expect("its end stays"), 0);
    }
}
