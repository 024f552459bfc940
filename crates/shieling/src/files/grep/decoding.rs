//! Decodes a large file as it is read. Text in ASCII is passed on as it is, until the first other bytes tell the encoding.

use std::io::{self, Read};

use encoding_rs::Decoder;

use super::super::encoding::{Encoding, SAMPLE, first_strange};

/// The number of bytes that are read at once.
const PIECE: usize = SAMPLE;

/// A reader of UTF-8 over a reader of bytes.
pub(super) struct Decoding<R> {
    inner: R,
    state: State,
    /// Bytes that were read and not decoded yet.
    raw: Vec<u8>,
    /// Text that was decoded and not given yet, from `given` on.
    text: Vec<u8>,
    given: usize,
    is_ended: bool,
}

enum State {
    /// All bytes so far were ASCII.
    Ascii,
    /// The bytes are UTF-8 and need no decoding.
    Plain,
    Legacy(Decoder),
}

impl State {
    fn of(encoding: Encoding) -> Self {
        if encoding.is_utf8() {
            Self::Plain
        } else {
            Self::Legacy(encoding.decoder())
        }
    }
}

impl<R: Read> Decoding<R> {
    /// Creates a reader. Without an encoding, it is detected by the first bytes outside of ASCII.
    pub(super) fn new(inner: R, encoding: Option<Encoding>) -> Self {
        Self {
            inner,
            state: encoding.map_or(State::Ascii, State::of),
            raw: Vec::new(),
            text: Vec::new(),
            given: 0,
            is_ended: false,
        }
    }

    /// Reads until `raw` has this many bytes, or the end is reached.
    fn fill(&mut self, least: usize) -> io::Result<()> {
        let mut filled = self.raw.len();
        self.raw.resize(least.max(filled), 0);
        while filled < least && !self.is_ended {
            match self.inner.read(&mut self.raw[filled..]) {
                Ok(0) => self.is_ended = true,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.raw.truncate(filled);
        Ok(())
    }

    /// Reads and decodes the next piece.
    fn refill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.given = 0;
        self.fill(PIECE)?;
        if let State::Ascii = self.state {
            match first_strange(&self.raw) {
                Some(at) => {
                    self.fill(at + SAMPLE)?;
                    self.state = State::of(Encoding::of_sample(&self.raw[at..]));
                }
                None => {
                    std::mem::swap(&mut self.text, &mut self.raw);
                    return Ok(());
                }
            }
        }
        match &mut self.state {
            State::Ascii | State::Plain => std::mem::swap(&mut self.text, &mut self.raw),
            State::Legacy(decoder) => {
                let room = decoder.max_utf8_buffer_length(self.raw.len()).unwrap_or(PIECE);
                self.text.resize(room, 0);
                let (_, read, written, _) = decoder.decode_to_utf8(&self.raw, &mut self.text, self.is_ended);
                self.text.truncate(written);
                self.raw.drain(..read);
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Decoding<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            if self.is_ended && self.raw.is_empty() {
                return Ok(0);
            }
            self.refill()?;
        }
        let length = into.len().min(self.text.len() - self.given);
        into[..length].copy_from_slice(&self.text[self.given..self.given + length]);
        self.given += length;
        Ok(length)
    }
}
