//! Strict reading of where HTTP/1 requests begin and end (RFC 9112), beside the HTTP library's own reading.
//!
//! The library accepts what senders must not write: a line that ends with LF alone, `Content-Length` beside
//! `Transfer-Encoding`. It writes such requests anew, in one form. Another server may read them otherwise, so they are
//! refused instead. [`Framing`] changes no byte and keeps no body: it counts the heads that it has read, and names the
//! first request whose framing is invalid. It never allows what the library refuses.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest line that is kept, in bytes. The library refuses longer heads.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    RequestLine,
    Header,
    /// So many bytes of a body with a length.
    Body(u64),
    ChunkSize,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    Trailer,
    /// Nothing: the framing is invalid, or the connection has left HTTP.
    Stopped,
}

/// The framing of the requests on one connection.
#[derive(Debug)]
pub(crate) struct Framing {
    part: Part,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// How many heads are complete.
    heads: u64,
    length: Option<u64>,
    /// Whether the last transfer coding is `chunked`, where there is one.
    chunked: Option<bool>,
    fault: Option<&'static str>,
}

impl Framing {
    pub(crate) fn new() -> Self {
        Self {
            part: Part::RequestLine,
            line: Vec::new(),
            heads: 0,
            length: None,
            chunked: None,
            fault: None,
        }
    }

    /// Checks the request with this number, counted from 1.
    ///
    /// # Errors
    ///
    /// What is wrong with its framing, or with the framing of an earlier one.
    pub(crate) fn check(&self, number: u64) -> Result<(), &'static str> {
        if number <= self.heads {
            return Ok(());
        }
        Err(self.fault.unwrap_or("the end of the request before it is unclear"))
    }

    /// Stops reading. Further requests fail their check.
    pub(crate) fn stop(&mut self) {
        self.part = Part::Stopped;
        self.line = Vec::new();
    }

    fn fail(&mut self, fault: &'static str) {
        self.fault = Some(fault);
        self.stop();
    }

    /// Reads what the client has sent.
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.part {
                Part::Stopped => return,
                Part::Body(left) => {
                    let left = skip(&mut bytes, left);
                    self.part = if left == 0 { Part::RequestLine } else { Part::Body(left) };
                }
                Part::Chunk(left) => {
                    let left = skip(&mut bytes, left);
                    self.part = if left == 0 { Part::ChunkEnd } else { Part::Chunk(left) };
                }
                Part::RequestLine | Part::Header | Part::ChunkSize | Part::ChunkEnd | Part::Trailer => {
                    let end = memchr::memchr(b'\n', bytes);
                    let (now, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
                    bytes = rest;
                    self.line.extend_from_slice(now);
                    if self.line.len() > LINE_BYTES_MAX {
                        self.fail("a line of the request is too long");
                    } else if end.is_some() {
                        self.end_line();
                    }
                }
            }
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        match line.strip_suffix(b"\r\n") {
            None => self.fail("a line of the request ends with LF alone"),
            Some(text) if text.contains(&b'\r') => self.fail("a line of the request contains CR"),
            Some(text) => self.take(text),
        }
        if self.part != Part::Stopped {
            line.clear();
            self.line = line;
        }
    }

    /// Takes one line without its end.
    fn take(&mut self, line: &[u8]) {
        match self.part {
            // Empty lines before a request are allowed.
            Part::RequestLine if line.is_empty() => {}
            Part::RequestLine => self.part = Part::Header,
            Part::Header if line.is_empty() => self.end_head(),
            Part::Header => self.header(line),
            Part::ChunkSize => match chunk_size(line) {
                Some(0) => self.part = Part::Trailer,
                Some(size) => self.part = Part::Chunk(size),
                None => self.fail("the size of a chunk is not well-formed"),
            },
            Part::ChunkEnd if line.is_empty() => self.part = Part::ChunkSize,
            Part::ChunkEnd => self.fail("a chunk is longer than its size"),
            Part::Trailer if line.is_empty() => self.part = Part::RequestLine,
            Part::Trailer if line.starts_with(b" ") || line.starts_with(b"\t") => {
                self.fail("a trailer is folded over two lines");
            }
            Part::Trailer | Part::Body(_) | Part::Chunk(_) | Part::Stopped => {}
        }
    }

    fn header(&mut self, line: &[u8]) {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return self.fail("a header is folded over two lines");
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            return self.fail("a header has no colon");
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let Some(length) = number(value, 10) else {
                return self.fail("`Content-Length` is no number");
            };
            if self.length.is_some_and(|other| other != length) {
                return self.fail("two `Content-Length` headers differ");
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            self.chunked = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        }
    }

    fn end_head(&mut self) {
        let part = match (self.chunked.take(), self.length.take()) {
            (Some(_), Some(_)) => return self.fail("the request has `Content-Length` and `Transfer-Encoding`"),
            (Some(false), None) => return self.fail("the last `Transfer-Encoding` is not `chunked`"),
            (Some(true), None) => Part::ChunkSize,
            (None, None | Some(0)) => Part::RequestLine,
            (None, Some(length)) => Part::Body(length),
        };
        self.heads += 1;
        self.part = part;
    }
}

/// Drops at most `left` bytes, and returns how many are left after that.
fn skip(bytes: &mut &[u8], left: u64) -> u64 {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    *bytes = &bytes[count..];
    left - count as u64
}

/// Reads a number of digits alone: no sign, no space.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().all(|byte| char::from(byte).is_digit(radix));
    digits.then(|| u64::from_str_radix(text, radix).ok()).flatten()
}

/// Reads the size of a chunk, which an extension may follow.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    number(size.trim_ascii_end(), 16)
}

/// A stream whose requests are read by a [`Framing`] too.
pub(crate) struct Framed<S> {
    pub(crate) stream: S,
    pub(crate) framing: Arc<Mutex<Framing>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let ready = Pin::new(&mut self.stream).poll_read(context, buffer);
        if ready.is_ready() {
            let mut framing = self.framing.lock().expect("no panic while held");
            framing.read(&buffer.filled()[before..]);
        }
        ready
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The heads that were read, and the fault, whole and byte by byte.
    fn read(text: &str) -> (u64, Option<&'static str>) {
        let mut whole = Framing::new();
        whole.read(text.as_bytes());
        let mut parts = Framing::new();
        for byte in text.as_bytes() {
            parts.read(std::slice::from_ref(byte));
        }
        assert_eq!(
            (whole.heads, whole.fault, whole.part),
            (parts.heads, parts.fault, parts.part),
            "{text:?}"
        );
        (whole.heads, whole.fault)
    }

    #[test]
    fn requests_with_and_without_bodies_are_counted() {
        for (text, heads) in [
            ("", 0),
            ("GET / HTTP/1.1\r\nHost: a\r\n", 0),
            ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
            ("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 2),
            (
                "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                2,
            ),
            (
                "POST / HTTP/1.1\r\ncontent-length:4\r\nContent-Length: 4\r\n\r\na\nb\nGET / HTTP/1.1\r\n\r\n",
                2,
            ),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;x=y\r\na\nb\r\nA \r\n0123456789\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                2,
            ),
        ] {
            assert_eq!(read(text), (heads, None), "{text:?}");
        }
    }

    #[test]
    fn invalid_framing_is_named() {
        for (headers, fault) in [
            ("A: b\nC: d", "a line of the request ends with LF alone"),
            ("A: b\rC: d", "a line of the request contains CR"),
            ("A: b\r\n c", "a header is folded over two lines"),
            ("A: b\r\n\tc", "a header is folded over two lines"),
            ("A", "a header has no colon"),
            (
                "Content-Length: 5\r\nContent-Length: 6",
                "two `Content-Length` headers differ",
            ),
            ("Content-Length: +5", "`Content-Length` is no number"),
            ("Content-Length: 5, 5", "`Content-Length` is no number"),
            ("Content-Length:", "`Content-Length` is no number"),
            ("Content-Length: 99999999999999999999", "`Content-Length` is no number"),
            (
                "Content-Length: 0\r\nTransfer-Encoding: chunked",
                "the request has `Content-Length` and `Transfer-Encoding`",
            ),
            (
                "TRANSFER-ENCODING: chunked\r\nCONTENT-LENGTH: 5",
                "the request has `Content-Length` and `Transfer-Encoding`",
            ),
            (
                "Transfer-Encoding: chunked, identity",
                "the last `Transfer-Encoding` is not `chunked`",
            ),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
                "the last `Transfer-Encoding` is not `chunked`",
            ),
        ] {
            let first = "GET / HTTP/1.1\r\n\r\n";
            let text = format!("{first}POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n{first}");
            assert_eq!(read(&text), (1, Some(fault)), "{text:?}");
        }
    }

    #[test]
    fn after_an_invalid_body_no_request_passes() {
        for body in [
            "x\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "3\nabc\r\n0\r\n\r\n",
            "0\r\nA: b\r\n c\r\n\r\n",
            "-1\r\n",
        ] {
            let mut framing = Framing::new();
            let head = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            framing.read(format!("{head}{body}GET / HTTP/1.1\r\n\r\n").as_bytes());
            assert_eq!(
                (framing.check(1).is_ok(), framing.check(2).is_ok()),
                (true, false),
                "{body:?}"
            );
        }
    }

    #[test]
    fn a_line_without_an_end_takes_bounded_memory() {
        let mut framing = Framing::new();
        for _ in 0..100 {
            framing.read(&[b'a'; 4096]);
        }
        assert!(framing.check(1).is_err());
        assert_eq!(framing.line.capacity(), 0);
    }
}
