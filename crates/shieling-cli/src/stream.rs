//! One output stream of a command on its way to ours: byte for byte, and bounded.
//!
//! The first half of what may be shown goes out as it arrives; of the rest the last half is kept
//! and goes out at the end, after a line that says how much is missing in between.

use std::collections::VecDeque;
use std::io::{self, Write};

/// A writer that lets `keep` bytes through: the first half at once, the last half at the end.
#[derive(Debug)]
pub(crate) struct Bounded<W> {
    to: W,
    head: usize,
    tail: VecDeque<u8>,
    room: usize,
    left_out: u64,
    last: Option<u8>,
}

impl<W: Write> Bounded<W> {
    /// Lets `keep` bytes through to `to`.
    pub(crate) fn new(to: W, keep: usize) -> Self {
        let head = keep.div_ceil(2);
        Self {
            to,
            head,
            tail: VecDeque::new(),
            room: keep - head,
            left_out: 0,
            last: None,
        }
    }

    /// The writer.
    pub(crate) fn get_ref(&self) -> &W {
        &self.to
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// Those of the writer, which a broken pipe is among.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (now, later) = bytes.split_at(bytes.len().min(self.head));
        if !now.is_empty() {
            self.head -= now.len();
            self.last = now.last().copied();
            self.to.write_all(now)?;
            self.to.flush()?;
        }
        // What would be pushed out at once need not go in.
        let skipped = later.len().saturating_sub(self.room);
        let kept = &later[skipped..];
        let over = (self.tail.len() + kept.len()).saturating_sub(self.room);
        self.tail.drain(..over);
        self.tail.extend(kept);
        self.left_out += (skipped + over) as u64;
        Ok(())
    }

    /// Lets the rest through.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.left_out > 0 {
            let newline = if self.last.is_none_or(|byte| byte == b'\n') {
                ""
            } else {
                "\n"
            };
            writeln!(self.to, "{newline}[... {} bytes left out ...]", grouped(self.left_out))?;
        }
        let (first, second) = self.tail.as_slices();
        self.to.write_all(first)?;
        self.to.write_all(second)?;
        self.to.flush()
    }
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(keep: usize, pieces: &[&str]) -> String {
        let mut shown = Vec::new();
        let mut stream = Bounded::new(&mut shown, keep);
        for piece in pieces {
            stream.push(piece.as_bytes()).unwrap();
        }
        stream.finish().unwrap();
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn what_fits_goes_through_byte_for_byte() {
        for pieces in [&["0123456789"][..], &["0", "123", "", "456789"], &["01234", "56789"]] {
            assert_eq!(through(10, pieces), "0123456789", "{pieces:?}");
        }
        assert_eq!(through(1, &["x"]), "x");
        assert_eq!(through(10, &[]), "");
    }

    #[test]
    fn of_more_the_head_and_the_tail_remain() {
        let expected = "01234\n[... 90 bytes left out ...]\nvwxyz";
        let middle = "-".repeat(90);
        assert_eq!(through(10, &[&format!("01234{middle}vwxyz")]), expected);
        assert_eq!(through(10, &["01234", &middle, "vwxyz"]), expected);
        assert_eq!(through(10, &["012", &format!("34{middle}v"), "w", "xyz"]), expected);
        assert_eq!(through(1, &["xyz"]), "x\n[... 2 bytes left out ...]\n");
        assert_eq!(through(4, &["a\nbcde"]), "a\n[... 2 bytes left out ...]\nde");
    }

    #[test]
    fn the_head_does_not_wait_for_the_end() {
        let mut shown = Vec::new();
        let mut stream = Bounded::new(&mut shown, 10);
        stream.push(b"012").unwrap();
        drop(stream);
        assert_eq!(shown, b"012");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
