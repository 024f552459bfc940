//! Streams of a call for threads that may block: those that read and write files.

use std::io::{self, Read, Write};
use std::pin::Pin;

use tokio::io::{AsyncRead as _, ReadBuf};

use crate::carry::Outlet;
use crate::flow::Incoming;
use crate::frame::{HEADER, Kind, PIECE, frame, room, seal};
use crate::park::wait;

/// Reads what arrives. Comes to its end with the stream, and with the link.
pub(crate) struct BlockingReader(pub(crate) Incoming);

impl Read for BlockingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        wait(std::future::poll_fn(|cx| {
            Pin::new(&mut self.0).poll_read(cx, &mut buffer)
        }))?;
        Ok(buffer.filled().len())
    }
}

/// Sends a stream, as far as the reader grants it. What is written is sent once a piece is full, or with a flush.
pub(crate) struct BlockingWriter {
    outlet: Outlet,
    /// The next frame, behind the room for its header.
    piece: Vec<u8>,
}

impl BlockingWriter {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self {
            outlet,
            piece: room(PIECE),
        }
    }

    /// Sends what is left, and the end of the stream.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.flush()?;
        let Outlet {
            link, call, channel, ..
        } = &self.outlet;
        wait(link.in_line(frame(Kind::End(*channel), *call, &[]))).map_err(io::Error::other)
    }
}

impl Write for BlockingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = PIECE + HEADER - self.piece.len();
        let taken = bytes.get(..bytes.len().min(left)).unwrap_or_default();
        self.piece.extend_from_slice(taken);
        if self.piece.len() == PIECE + HEADER {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Outlet {
            link,
            call,
            channel,
            credit,
        } = &self.outlet;
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the other side takes no more of it");
        while self.piece.len() > HEADER {
            let allowed = wait(credit.some()).ok_or_else(closed)?;
            let length = (self.piece.len() - HEADER).min(allowed);
            let rest = self.piece.split_off(HEADER + length);
            let piece = std::mem::replace(&mut self.piece, room(PIECE));
            self.piece.extend_from_slice(&rest);
            credit.take(length);
            let piece = seal(piece, Kind::Data(*channel), *call);
            wait(link.in_line(piece)).map_err(io::Error::other)?;
        }
        Ok(())
    }
}
