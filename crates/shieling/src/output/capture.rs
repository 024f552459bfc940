//! The head and the tail of a stream, in memory that does not grow with it.

use std::task::{Context, Poll};

use super::grouped;
use super::ring::Ring;
use super::spill::{OutputId, SpillTo, Spilled, Spiller};
use crate::units::ByteCount;

/// One of a command's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout = 0,
    /// Standard error.
    Stderr = 1,
}

/// Receives output as it arrives.
pub trait Tee: Send + Sync {
    /// Takes the next bytes of a stream. Must not block for long: a command's deadline waits for it.
    fn bytes(&mut self, stream: Stream, bytes: &[u8]);

    /// Whether more of a stream is wanted now. Default: always.
    ///
    /// While it is not ready, the stream is not read: its pipe fills, and the command waits as it would for
    /// a slow reader. The deadline is kept meanwhile. Up to 2 MiB can still arrive after the last `Ready`,
    /// and what is left in the pipes when every process has ended is passed on without asking.
    fn poll_ready(&self, _stream: Stream, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// Collects both streams of one command: the first half of `keep` bytes and the last half of each.
///
/// Memory is at most two times `keep`, and less for less output.
#[derive(Debug)]
pub struct Capture {
    streams: [Ends; 2],
    to: Option<SpillTo>,
    spiller: Option<Spiller>,
}

impl Capture {
    /// Keeps so much of each stream. Once one of them has more, the whole output goes to `spill`.
    pub fn new(keep: ByteCount, spill: Option<&SpillTo>) -> Self {
        Self {
            streams: [Ends::new(keep), Ends::new(keep)],
            to: spill.cloned(),
            spiller: None,
        }
    }

    /// Takes the next bytes of a stream.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let ends = &mut self.streams[stream as usize];
        if let Some(spiller) = &mut self.spiller {
            spiller.write(stream, bytes);
        } else if let Some(to) = &self.to
            && ends.total + bytes.len() as u64 > ends.keep() as u64
        {
            // Up to now, what is kept of both streams is all there was.
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

    /// How much both streams have given.
    pub fn total(&self) -> u64 {
        self.streams.iter().map(|ends| ends.total).sum()
    }

    /// How much one stream has given.
    pub fn stream_total(&self, stream: Stream) -> u64 {
        self.streams[stream as usize].total
    }

    /// What is kept of a stream so far.
    pub fn so_far(&self, stream: Stream) -> Captured {
        Captured(self.streams[stream as usize].clone())
    }

    /// The key of the whole output, if it is more than is kept and goes to a file.
    pub fn output_id(&self) -> Option<&OutputId> {
        self.spiller.as_ref().and_then(Spiller::id)
    }

    /// What was kept of standard output and standard error, and where all of it is.
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

/// What was kept of one stream.
#[derive(Debug, Clone)]
pub struct Captured(Ends);

impl Captured {
    /// How many bytes there were in all.
    pub fn total(&self) -> u64 {
        self.0.total
    }

    /// How many of them are not here.
    pub fn left_out(&self) -> u64 {
        self.0.total - self.0.head.len() as u64 - self.0.tail.len() as u64
    }

    /// Whether any is not here.
    pub fn truncated(&self) -> bool {
        self.left_out() > 0
    }

    /// The first bytes, at most half of what is kept. If nothing was left out, the tail follows them.
    pub fn head(&self) -> &[u8] {
        &self.0.head
    }

    /// The last bytes, in two parts, without those in the head.
    pub fn tail(&self) -> (&[u8], &[u8]) {
        self.0.tail.parts()
    }

    /// The bytes: all of them, or the head, a marker line and the tail, both cut between characters.
    ///
    /// The marker says how many bytes it stands for, the ones lost by cutting included.
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

    /// [`Self::to_bytes`] as text, with each invalid sequence replaced by U+FFFD.
    pub fn text(&self) -> String {
        match String::from_utf8(self.to_bytes()) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

/// The length of `bytes` without a character that its end cuts through.
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

/// How many bytes at the beginning continue a character that is not here.
pub(crate) fn partial_character(bytes: &[u8]) -> usize {
    let continuing = bytes
        .iter()
        .take(4)
        .take_while(|&&byte| (0x80..=0xBF).contains(&byte))
        .count();
    // Four in a row continue nothing; that is no UTF-8 and stays as it is.
    if continuing < 4 { continuing } else { 0 }
}

/// The first bytes of a stream and a ring of its last ones.
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
