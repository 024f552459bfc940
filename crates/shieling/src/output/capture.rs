//! Captures the head and the tail of a stream in bounded memory.

use std::task::{Context, Poll};

use super::grouped;
use super::ring::Ring;
use super::spill::{OutputId, SpillTo, Spilled, Spiller};
use super::stream::Stream;
use crate::units::ByteCount;

/// Receives output while it arrives.
pub trait Tee: Send + Sync {
    /// Processes the next bytes of a stream. It must not block for long: the command's deadline waits for it.
    fn bytes(&mut self, stream: Stream, bytes: &[u8]);

    /// Returns whether more of a stream can be processed now. Default: always.
    ///
    /// While it is pending, the stream is not read: its pipe fills, and the command waits as for any slow reader. The
    /// deadline still applies. Up to 2 MiB may arrive after the last `Ready`, and what is left in the pipes after the
    /// end of all processes is passed on without a check.
    fn poll_ready(&self, _stream: Stream, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// Captures both streams of a command: the first half of `keep` bytes and the last half of each.
///
/// Uses at most twice `keep` of memory, and less for less output.
#[derive(Debug)]
pub struct Capture {
    streams: [Ends; 2],
    to: Option<SpillTo>,
    spiller: Option<Spiller>,
}

impl Capture {
    /// Creates a capture that keeps this much of each stream. When a stream exceeds it, the whole output goes to
    /// `spill`.
    pub fn new(keep: ByteCount, spill: Option<&SpillTo>) -> Self {
        Self {
            streams: [Ends::new(keep), Ends::new(keep)],
            to: spill.cloned(),
            spiller: None,
        }
    }

    /// Appends the next bytes of a stream.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let ends = &mut self.streams[stream as usize];
        if let Some(spiller) = &mut self.spiller {
            spiller.write(stream, bytes);
        } else if let Some(to) = &self.to
            && ends.total + bytes.len() as u64 > ends.keep() as u64
        {
            // Until now nothing was dropped, so what is kept is the whole output.
            let mut spiller = Spiller::create(to);
            for each in [Stream::Stdout, Stream::Stderr] {
                let so_far = &self.streams[each as usize];
                spiller.write(each, &so_far.head);
                let (first, second) = so_far.tail.parts();
                spiller.write(each, first);
                spiller.write(each, second);
            }
            spiller.write(stream, bytes);
            self.spiller = Some(spiller);
        }
        self.streams[stream as usize].push(bytes);
    }

    /// Returns the total number of bytes of both streams.
    pub fn total(&self) -> u64 {
        self.streams.iter().map(|ends| ends.total).sum()
    }

    /// Returns the total number of bytes of a stream.
    pub fn stream_total(&self, stream: Stream) -> u64 {
        self.streams[stream as usize].total
    }

    /// Returns what is kept of a stream so far.
    pub fn so_far(&self, stream: Stream) -> Captured {
        Captured(self.streams[stream as usize].clone())
    }

    /// Returns the id of the whole output, if it is larger than what is kept and goes to a file.
    pub fn output_id(&self) -> Option<&OutputId> {
        self.spiller.as_ref().and_then(Spiller::id)
    }

    /// Returns what is kept of standard output and standard error, and where the whole output is.
    pub fn finish(self) -> (Captured, Captured, Option<Spilled>) {
        let totals = [self.streams[0].total, self.streams[1].total];
        let [stdout, stderr] = self.streams;
        (
            Captured(stdout),
            Captured(stderr),
            self.spiller.map(|spiller| spiller.finish(totals)),
        )
    }
}

/// The head and the tail of a stream.
#[derive(Debug, Clone)]
pub struct Captured(Ends);

impl Captured {
    /// Returns the total number of bytes.
    pub fn total(&self) -> u64 {
        self.0.total
    }

    /// Returns the number of bytes that are not kept.
    pub fn left_out(&self) -> u64 {
        self.0.total - self.0.head.len() as u64 - self.0.tail.len() as u64
    }

    /// Returns whether any byte is not kept.
    pub fn truncated(&self) -> bool {
        self.left_out() > 0
    }

    /// Returns the first bytes, at most half of what is kept. If nothing was dropped, the tail continues them.
    pub fn head(&self) -> &[u8] {
        &self.0.head
    }

    /// Returns the last bytes in two parts, without those of the head.
    pub fn tail(&self) -> (&[u8], &[u8]) {
        self.0.tail.parts()
    }

    /// Returns all bytes, or the head, a marker line and the tail, both cut at character boundaries.
    ///
    /// The marker contains the number of bytes that it replaces, including those lost by cutting at a boundary.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (first, second) = self.tail();
        let tail = [first, second].concat();
        if !self.truncated() {
            return [self.head(), &tail].concat();
        }
        let head = &self.head()[..whole_characters(self.head())];
        let tail = &tail[partial_character(&tail)..];
        let left_out = self.0.total - head.len() as u64 - tail.len() as u64;
        let newline = if head.is_empty() || head.ends_with(b"\n") {
            ""
        } else {
            "\n"
        };
        let marker = format!("{newline}[... {} bytes left out ...]\n", grouped(left_out));
        [head, marker.as_bytes(), tail].concat()
    }

    /// Returns [`Self::to_bytes`] as text. Invalid sequences become U+FFFD.
    pub fn text(&self) -> String {
        match String::from_utf8(self.to_bytes()) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

/// Returns the length of `bytes` without an incomplete character at the end.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    for (at, &byte) in bytes.iter().enumerate().skip(from).rev() {
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return bytes.len(),
        };
        return if at + length > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

/// Returns the number of bytes at the beginning that belong to an incomplete character.
pub(crate) fn partial_character(bytes: &[u8]) -> usize {
    let continuing = bytes
        .iter()
        .take(4)
        .take_while(|&&byte| (0x80..=0xBF).contains(&byte))
        .count();
    // Four continuation bytes in a row are not UTF-8, and are kept as they are.
    if continuing < 4 { continuing } else { 0 }
}

/// The first bytes of a stream, and a ring of its last ones.
#[derive(Debug, Clone)]
struct Ends {
    total: u64,
    head: Vec<u8>,
    head_limit: usize,
    tail: Ring,
}

impl Ends {
    fn new(keep: ByteCount) -> Self {
        let keep = keep.as_usize();
        Self {
            total: 0,
            head: Vec::new(),
            head_limit: keep / 2,
            tail: Ring::new(keep - keep / 2),
        }
    }

    fn keep(&self) -> usize {
        self.head_limit.saturating_add(self.tail.limit())
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.push(rest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(keep: u64, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(ByteCount::bytes(keep), None);
        for chunk in chunks {
            capture.push(Stream::Stdout, chunk);
        }
        capture.finish().0
    }

    #[test]
    fn output_within_the_limit_is_kept_as_it_was() {
        let output = captured(10, &[b"01234", b"", b"56789"]);
        assert_eq!(output.text(), "0123456789");
        assert!(!output.truncated());
    }

    #[test]
    fn head_and_tail_stand_around_a_line_that_counts_what_is_missing() {
        let output = captured(8, &[b"head", b"in between", b"tail"]);
        assert_eq!(output.text(), "head\n[... 10 bytes left out ...]\ntail");
        assert_eq!((output.total(), output.left_out()), (18, 10));
        assert_eq!(
            captured(8, &[b"abc\ndefghijk\nxyz"]).text(),
            "abc\n[... 8 bytes left out ...]\n\nxyz"
        );
    }

    #[test]
    fn the_smallest_limit_keeps_the_last_byte() {
        assert_eq!(captured(1, &[b"abc"]).text(), "[... 2 bytes left out ...]\nc");
    }

    #[test]
    fn a_cut_never_goes_through_a_character() {
        // Each is two bytes; both halves of five bytes end within one.
        let output = captured(10, &["ééééééééé".as_bytes()]);
        assert_eq!(output.text(), "éé\n[... 10 bytes left out ...]\néé");
        // What is no UTF-8 is replaced and stays.
        assert_eq!(captured(100, &[b"a\xff\xfeb"]).text(), "a\u{fffd}\u{fffd}b");
        assert_eq!(captured(8, &[&[0x80; 20]]).head().len(), 4);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_the_beginning_and_the_end(
            keep in 1_u64..40,
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 0..12),
        ) {
            let all = chunks.concat();
            let output = captured(keep, &chunks.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let tail = { let (a, b) = output.tail(); [a, b].concat() };
            prop_assert_eq!(output.total(), all.len() as u64);
            prop_assert!(all.starts_with(output.head()));
            prop_assert!(all.ends_with(&tail));
            prop_assert_eq!(output.head().len() + tail.len(), all.len().min(usize::try_from(keep).expect("small")));
        }

        #[test]
        fn any_text_cut_anywhere_is_still_text(text in "\\PC{0,60}", keep in 1_u64..80) {
            let kept = captured(keep, &[text.as_bytes()]).text();
            let whole = !kept.contains(char::REPLACEMENT_CHARACTER) || text.contains(char::REPLACEMENT_CHARACTER);
            prop_assert!(whole);
        }
    }
}
