//! Pairs of terminals: one end for the program, one for us. Starts nothing and reads no keys of people.
//!
//! Linux: a pair of `/dev/ptmx`, this host's or a sandbox's own, whose other end is opened by the kernel
//! itself (`TIOCGPTPEER`), so that no path of a possibly foreign `/dev/pts` is trusted.

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

use super::Size;
use crate::process::watch_both;

const FLAGS: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

/// A pair of terminals.
#[derive(Debug)]
pub struct Pair {
    /// What is written here is typed there, and what is printed there is read here.
    pub ours: OwnedFd,
    /// The terminal of the program, to be its standard streams.
    pub theirs: OwnedFd,
}

impl Pair {
    /// A new pair of this size, in the modes that a terminal has when somebody logs in, and for UTF-8:
    /// one Backspace takes back a character, not a byte.
    ///
    /// ```
    /// use shieling::session::{Pair, Size};
    ///
    /// let pair = Pair::open(Size::default())?;
    /// rustix::io::write(&pair.ours, b"typed\n")?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// A size that no terminal can have, and no more terminals.
    pub fn open(size: Size) -> io::Result<Self> {
        Self::of(rustix::pty::openpt(FLAGS)?, size)
    }

    /// As [`open`](Self::open), where an environment has terminals of its own from what it has given for that
    /// ([`Environment::terminals`]): the program's end has a name there.
    ///
    /// [`Environment::terminals`]: crate::environment::Environment::terminals
    ///
    /// # Errors
    /// As those of `open`, and what is no new terminal.
    pub fn open_in(terminals: Option<OwnedFd>, size: Size) -> io::Result<Self> {
        match terminals {
            Some(ours) => Self::of(ours, size),
            None => Self::open(size),
        }
    }

    fn of(ours: OwnedFd, size: Size) -> io::Result<Self> {
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

/// Makes a terminal so large, given by either end; the program in its foreground is told (SIGWINCH).
///
/// # Errors
/// A size that no terminal can have, and what is no terminal.
pub(crate) fn resize(terminal: &impl AsFd, size: Size) -> io::Result<()> {
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

/// Our end of a pair, read and written without blocking.
#[derive(Debug)]
pub(crate) struct Terminal {
    ours: AsyncFd<OwnedFd>,
}

impl Terminal {
    /// Takes our end.
    ///
    /// # Errors
    /// What cannot be watched.
    /// # Panics
    /// Outside a tokio runtime with I/O.
    pub(crate) fn new(ours: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(Self {
            ours: watch_both(ours)?,
        })
    }

    /// Reads what was printed; 0 once nobody has the other end open any more.
    ///
    /// # Errors
    /// Those of the system.
    /// # Cancel safety
    /// Cancel safe.
    #[cfg(test)]
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.ours.async_io(Interest::READABLE, |ours| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::read(ours, &mut *buffer))?)
        });
        match read.await {
            // The kernel's word for: nobody has the other end open.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            read => read,
        }
    }

    /// Types some of these bytes: how many, which is fewer if the program does not read.
    ///
    /// # Errors
    /// Those of the system.
    /// # Cancel safety
    /// Cancel safe.
    #[cfg(test)]
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = self.ours.async_io(Interest::WRITABLE, |ours| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::write(ours, bytes))?)
        });
        write.await
    }

    /// Waits until there may be something to read.
    ///
    /// # Errors
    /// Those of the runtime.
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.ours.readable().await.map(drop)
    }

    /// Waits until there may be room to write.
    ///
    /// # Errors
    /// Those of the runtime.
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.ours.writable().await.map(drop)
    }

    /// Reads what is there now. Once nobody has the other end open any more, that is an error.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::WouldBlock`] if there is nothing.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ours
            .try_io(Interest::READABLE, |ours| Ok(rustix::io::read(ours, &mut *buffer)?))
    }

    /// Types as many of these bytes as there is room for now.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::WouldBlock`] if there is none.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.ours
            .try_io(Interest::WRITABLE, |ours| Ok(rustix::io::write(ours, bytes)?))
    }

    /// How large it is.
    pub(crate) fn size(&self) -> Size {
        let size = rustix::termios::tcgetwinsize(self.ours.get_ref());
        size.map_or_else(
            |_| Size::default(),
            |size| Size {
                rows: size.ws_row,
                columns: size.ws_col,
            },
        )
    }

    /// Makes it so large.
    ///
    /// # Errors
    /// As [`resize`].
    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        resize(self.ours.get_ref(), size)
    }

    /// Whether what is typed is shown, which it is not while a password is asked for.
    #[cfg(test)]
    pub(crate) fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(self.ours.get_ref());
        modes.is_ok_and(|modes| modes.local_modes.contains(LocalModes::ECHO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(rows: u16, columns: u16) -> Size {
        Size { rows, columns }
    }

    #[test]
    fn a_new_terminal_has_its_size_and_the_modes_of_a_login() {
        let pair = Pair::open(size(33, 101)).expect("there are terminals");
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
        let pair = Pair::open(Size::default()).expect("there are terminals");
        for wrong in [size(0, 80), size(24, 0), size(501, 80), size(24, 1_001)] {
            assert!(Pair::open(wrong).is_err());
            let error = resize(&pair.ours, wrong).expect_err("it is refused").to_string();
            assert!(error.contains("1 to 500 lines"), "{error}");
        }
        resize(&pair.theirs, Size::LARGEST).expect("it is the largest");
        let got = rustix::termios::tcgetwinsize(&pair.ours).expect("it is a terminal");
        assert_eq!((got.ws_row, got.ws_col), (500, 1_000));
    }

    #[tokio::test]
    async fn what_is_typed_is_read_and_echoed_until_the_other_end_is_gone() {
        let pair = Pair::open(Size::default()).expect("there are terminals");
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
