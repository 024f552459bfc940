//! Bytes of a process or a terminal, carried to and from the streams of a call.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt as _, Interest};

use crate::flow::{Credit, Incoming};
use crate::frame::{Channel, HEADER, Kind, PIECE, frame, room, seal};
use crate::link::{Link, LinkError};

/// One stream on its way out: to whom, and how much of it may go.
pub(crate) struct Outlet {
    pub(crate) link: Arc<Link>,
    pub(crate) call: u32,
    pub(crate) channel: Channel,
    pub(crate) credit: Arc<Credit>,
}

/// Where the bytes of a stream come from.
pub(crate) trait Spring {
    /// Appends at most so many bytes; none at the end.
    fn next(&mut self, into: &mut Vec<u8>, most: usize) -> impl Future<Output = io::Result<usize>> + Send;

    /// How much there is at this moment.
    fn waiting(&self) -> u64 {
        0
    }

    /// Appends what is there at this moment, whatever the runtime knows.
    fn now(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let _ = (into, most);
        Ok(0)
    }
}

/// Reads from what does not block. What has nothing at this moment is an error.
pub(crate) fn read_now(from: impl AsFd, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    let mut buffer = vec![0; most];
    let read = rustix::io::read(from, &mut buffer)?;
    into.extend_from_slice(buffer.get(..read).unwrap_or_default());
    Ok(read)
}

/// Any stream.
pub(crate) struct Stream<R>(pub(crate) R);

impl<R: AsyncRead + Unpin + Send> Spring for Stream<R> {
    async fn next(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        (&mut self.0).take(most as u64).read_buf(into).await
    }
}

impl Outlet {
    /// Sends all that a spring gives, and its end. Stops where nobody reads any more.
    pub(crate) async fn send(&self, mut from: impl Spring) -> Result<(), LinkError> {
        while let Some(allowed) = self.credit.some().await {
            let most = allowed.min(PIECE);
            let mut piece = room(most.min(8 * 1024));
            let read = tokio::select! {
                biased;
                read = from.next(&mut piece, most) => read,
                () = self.credit.closed() => break,
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            self.credit.take(piece.len() - HEADER);
            let piece = seal(piece, Kind::Data(self.channel), self.call);
            self.link.in_line(piece).await?;
        }
        self.link.in_line(frame(Kind::End(self.channel), self.call, &[])).await
    }
}

#[allow(
    deprecated,
    reason = "an `OwnedFd` stays the same open descriptor, which is all that the other way asks for, in `unsafe`"
)]
fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// Reads what is there at this moment, or says `EAGAIN`, whatever the flags of the descriptor: others may hold it too,
/// and may have read what was there.
fn read_if_there(from: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    // For the kernel, that offset is the place where the descriptor stands.
    const HERE: u64 = u64::MAX;
    match rustix::io::preadv2(&from, &mut [IoSliceMut::new(buffer)], HERE, ReadWriteFlags::NOWAIT) {
        // Not every kind of file can be asked so. The next best is to look before.
        Err(Errno::OPNOTSUPP | Errno::SPIPE | Errno::INVAL | Errno::NOSYS) => {
            let mut asked = [PollFd::new(&from, PollFlags::IN)];
            match poll(&mut asked, Some(&Timespec::default()))? {
                0 => Err(Errno::AGAIN),
                _ => rustix::io::read(from, buffer),
            }
        }
        read => read,
    }
}

/// A descriptor of any kind that is read: what cannot be waited for is always ready.
pub(crate) enum Given {
    /// A pipe, a socket, a terminal. Its flags are left as they are: others may hold it, too.
    Watched(AsyncFd<OwnedFd>),
    /// A file.
    Ready(OwnedFd),
}

impl Given {
    pub(crate) fn new(given: OwnedFd) -> io::Result<Self> {
        let copy = rustix::io::fcntl_dupfd_cloexec(&given, 3)?;
        Ok(match watch(given, Interest::READABLE) {
            Ok(watched) => Self::Watched(watched),
            Err(_) => Self::Ready(copy),
        })
    }
}

impl Spring for Given {
    async fn next(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let mut buffer = vec![0; most];
        let read = match self {
            Self::Ready(file) => rustix::io::read(file, &mut buffer)?,
            Self::Watched(watched) => loop {
                let mut ready = watched.readable().await?;
                match read_if_there(ready.get_inner(), &mut buffer) {
                    Err(Errno::AGAIN) => ready.clear_ready(),
                    read => break read?,
                }
            },
        };
        into.extend_from_slice(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// One end of a terminal.
#[derive(Clone)]
pub(crate) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    pub(crate) fn new(end: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&end, true)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        Ok(Self(Arc::new(watch(end, both)?)))
    }

    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(self.0.get_ref().as_fd()).ok()?;
        Some((size.ws_row, size.ws_col))
    }

    /// It, without keeping it open.
    pub(crate) fn weak(&self) -> Weak<AsyncFd<OwnedFd>> {
        Arc::downgrade(&self.0)
    }

    /// It, if it is still open.
    pub(crate) fn of(weak: &Weak<AsyncFd<OwnedFd>>) -> Option<Self> {
        weak.upgrade().map(Self)
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        if (1..=500).contains(&rows)
            && let Ok(mut size) = rustix::termios::tcgetwinsize(self.0.get_ref().as_fd())
        {
            (size.ws_row, size.ws_col) = (rows, columns.clamp(1, 1_000));
            // A terminal that is gone has no size.
            let _ = rustix::termios::tcsetwinsize(self.0.get_ref().as_fd(), size);
        }
    }

    /// Writes what arrives, until its end or the terminal's.
    pub(crate) async fn write(&self, mut incoming: Incoming) {
        let mut buffer = vec![0; PIECE];
        while let Ok(read @ 1..) = incoming.read(&mut buffer).await {
            let mut rest = buffer.get(..read).unwrap_or_default();
            while !rest.is_empty() {
                let written = self
                    .0
                    .async_io(Interest::WRITABLE, |end| Ok(rustix::io::write(end, rest)?));
                match written.await {
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        }
    }
}

impl Spring for Terminal {
    async fn next(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let mut buffer = vec![0; most];
        let read = self
            .0
            .async_io(Interest::READABLE, |end| Ok(rustix::io::read(end, &mut buffer)?));
        // `EIO` is the kernel's word for: nobody has the other end open.
        let read = read.await?;
        into.extend_from_slice(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }

    fn waiting(&self) -> u64 {
        rustix::io::ioctl_fionread(self.0.get_ref()).unwrap_or(0)
    }

    fn now(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        read_now(self.0.get_ref(), into, most)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_has_nothing_is_not_waited_for_though_it_blocks() {
        let (read, mut write) = std::io::pipe().expect("a pipe");
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let mut buffer = [0; 8];
        assert_eq!(read_if_there(&read, &mut buffer), Err(Errno::AGAIN));
        assert_eq!(read_if_there(&near, &mut buffer), Err(Errno::AGAIN));
        write.write_all(b"abc").expect("there is room");
        far.write_all(b"defg").expect("there is room");
        assert_eq!(read_if_there(&read, &mut buffer), Ok(3));
        assert_eq!(read_if_there(&near, &mut buffer), Ok(4));
        drop((write, far));
        assert_eq!(read_if_there(&read, &mut buffer), Ok(0));
        assert_eq!(read_if_there(&near, &mut buffer), Ok(0));
    }

    /// So it is the kernel that says so, and nobody can come between a look and a read.
    #[test]
    fn a_pipe_is_asked_without_a_look_before() {
        let (read, _write) = std::io::pipe().expect("a pipe");
        let asked = rustix::io::preadv2(
            &read,
            &mut [IoSliceMut::new(&mut [0; 8])],
            u64::MAX,
            ReadWriteFlags::NOWAIT,
        );
        // Linux before 5.5 knows it for files alone.
        assert!(matches!(asked, Err(Errno::AGAIN | Errno::OPNOTSUPP)), "{asked:?}");
    }
}
