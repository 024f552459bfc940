//! The newest output of a job: both streams in the order of arrival, under one cursor. A reader always learns how
//! many of the bytes that it requested are no longer kept.
//!
//! A cursor is an offset in bytes from the beginning of all output. The first bytes of an incomplete character are
//! held back until the rest has arrived, so that no reader gets half of a character.

use std::collections::VecDeque;

use crate::output::{Ring, Stream, partial_character, whole_characters};
use crate::units::ByteCount;

/// The number of bytes that are kept of both streams together.
pub(super) const KEPT: ByteCount = ByteCount::kib(256);
/// The largest number of runs. A job that alternates between the streams for single bytes would otherwise need many
/// times the memory of its output.
const RUNS: usize = 4096;

/// The newest output of one job. Allocates no memory until there is output.
#[derive(Debug)]
pub(super) struct Log {
    ring: Ring,
    /// The stream of each run of bytes in the ring, oldest first.
    runs: VecDeque<StreamRun>,
    /// The number of bytes in the ring.
    kept: usize,
    /// The cursor after the newest byte.
    end: u64,
    /// For each stream, the first bytes of an incomplete character.
    incomplete: [Vec<u8>; 2],
}

/// Consecutive bytes of one stream.
#[derive(Debug, Clone, Copy)]
struct StreamRun {
    stream: Stream,
    length: usize,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Slice {
    /// The bytes of standard output and of standard error.
    pub(super) streams: [Vec<u8>; 2],
    /// The cursor after the slice.
    pub(super) next: u64,
    /// The number of bytes between the requested cursor and the slice, which are no longer kept.
    pub(super) missed: u64,
}

impl Log {
    /// Creates a log that keeps this many bytes.
    pub(super) fn new(keep: ByteCount) -> Self {
        Self {
            ring: Ring::new(keep.as_usize()),
            runs: VecDeque::new(),
            kept: 0,
            end: 0,
            incomplete: [Vec::new(), Vec::new()],
        }
    }

    /// Returns the cursor after the newest byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the cursor of the oldest byte that is kept.
    fn start(&self) -> u64 {
        self.end - self.kept as u64
    }

    /// Appends the next bytes of a stream.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let held = &mut self.incomplete[stream as usize];
        if bytes.len() < 4 {
            // Few bytes may be the middle of a character that began in an earlier write.
            held.extend_from_slice(bytes);
            let whole = whole_characters(held);
            let rest = held.split_off(whole);
            let whole = std::mem::replace(held, rest);
            self.append(stream, &whole);
        } else {
            let begun = std::mem::take(held);
            let (whole, rest) = bytes.split_at(whole_characters(bytes));
            held.extend_from_slice(rest);
            self.append(stream, &begun);
            self.append(stream, whole);
        }
    }

    /// Marks the end of the output: bytes that were held back are appended as they are.
    pub(super) fn finish(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = std::mem::take(&mut self.incomplete[stream as usize]);
            self.append(stream, &rest);
        }
    }

    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.ring.push(bytes);
        self.end += bytes.len() as u64;
        self.kept += bytes.len();
        match self.runs.back_mut().filter(|last| last.stream == stream) {
            Some(last) => last.length += bytes.len(),
            None => self.runs.push_back(StreamRun {
                stream,
                length: bytes.len(),
            }),
        }
        if self.runs.len() > RUNS {
            let first = self.runs.pop_front();
            self.kept -= first.map_or(0, |run| run.length);
        }
        let mut over = self.kept.saturating_sub(self.ring.len());
        self.kept -= over;
        while let Some(first) = self.runs.front_mut().filter(|_| over > 0) {
            let gone = over.min(first.length);
            first.length -= gone;
            over -= gone;
            if first.length == 0 {
                self.runs.pop_front();
            }
        }
    }

    /// Returns the output from a cursor on, at most `most` bytes and at least one character.
    pub(super) fn read(&self, from: u64, most: usize) -> Slice {
        let from = from.min(self.end);
        let start = self.start();
        let at = from.max(start);
        let mut slice = Slice {
            streams: [Vec::new(), Vec::new()],
            next: at,
            missed: at - from,
        };
        // The oldest bytes may be the rest of a character whose beginning is no longer kept.
        let mut cut = from <= start && start > 0;
        let mut skip = usize::try_from(at - start).unwrap_or(usize::MAX);
        let mut before = self.ring.len() - self.kept;
        let mut left = most.max(4);
        for run in &self.runs {
            let skipped = skip.min(run.length);
            skip -= skipped;
            let length = run.length - skipped;
            if length == 0 {
                before += run.length;
                continue;
            }
            let whole = length <= left;
            let (first, second) = self.ring.range(before + skipped, length.min(left));
            let mut piece = [first, second].concat();
            if !whole {
                piece.truncate(whole_characters(&piece));
            }
            slice.next += piece.len() as u64;
            left -= piece.len();
            if std::mem::take(&mut cut) {
                let partial = partial_character(&piece);
                piece.drain(..partial);
                slice.missed += partial as u64;
            }
            slice.streams[run.stream as usize].append(&mut piece);
            if !whole {
                break;
            }
            before += run.length;
        }
        slice
    }

    /// Returns the newest bytes of both streams, at most `most`.
    pub(super) fn newest(&self, most: usize) -> Vec<u8> {
        let (first, second) = self.ring.range(self.ring.len().saturating_sub(most), most);
        [first, second].concat()
    }

    /// Returns everything that is kept of one stream.
    pub(super) fn kept(&self, stream: Stream) -> Vec<u8> {
        let [stdout, stderr] = self.read(0, usize::MAX).streams;
        match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(slice: &Slice) -> [String; 2] {
        [0, 1].map(|at| String::from_utf8_lossy(&slice.streams[at]).into_owned())
    }

    #[test]
    fn a_reader_gets_what_is_new_and_is_told_what_is_gone() {
        let mut log = Log::new(ByteCount::bytes(8));
        log.push(Stream::Stdout, b"abcd");
        log.push(Stream::Stderr, b"EF");
        let first = log.read(0, 100);
        assert_eq!(
            (text(&first), first.next, first.missed),
            (["abcd".to_owned(), "EF".to_owned()], 6, 0)
        );
        assert_eq!(
            log.read(6, 100),
            Slice {
                next: 6,
                ..Slice::default()
            }
        );
        log.push(Stream::Stdout, b"ghijklm");
        let second = log.read(6, 100);
        assert_eq!(
            (text(&second)[0].as_str(), second.next, second.missed),
            ("ghijklm", 13, 0)
        );
        let all = log.read(0, 100);
        assert_eq!(
            (text(&all), all.next, all.missed),
            (["ghijklm".to_owned(), "F".to_owned()], 13, 5)
        );
        // A cursor from elsewhere is no way to read what is not there.
        assert_eq!(log.read(1_000, 100).next, 13);
    }

    #[test]
    fn half_a_character_waits_for_its_other_half_whatever_the_other_stream_does() {
        let mut log = Log::new(KEPT);
        log.push(Stream::Stdout, b"caf\xc3");
        log.push(Stream::Stderr, b"warning");
        let first = log.read(0, 100);
        assert_eq!(text(&first), ["caf", "warning"]);
        log.push(Stream::Stdout, b"\xa9");
        assert_eq!(text(&log.read(first.next, 100)), ["é", ""]);
        log.push(Stream::Stdout, b"\xe2");
        log.push(Stream::Stdout, b"\x82");
        log.finish();
        // The rest of the character never arrived: its first bytes are kept.
        assert_eq!(log.end(), 14);
    }

    #[test]
    fn two_streams_that_take_turns_byte_by_byte_stay_bounded() {
        let mut log = Log::new(KEPT);
        for _ in 0..100_000 {
            log.push(Stream::Stdout, b"o");
            log.push(Stream::Stderr, b"e");
        }
        assert!(log.runs.len() <= RUNS);
        let all = log.read(0, usize::MAX);
        assert_eq!(all.missed + all.streams.concat().len() as u64, 200_000);
        assert_eq!((all.streams[0].len(), all.streams[1].len()), (RUNS / 2, RUNS / 2));
    }

    proptest! {
        #[test]
        fn pages_put_together_are_what_was_written(
            keep in 4_u64..64,
            most in 1_usize..40,
            writes in proptest::collection::vec((any::<bool>(), "[aé€😀]{0,12}"), 0..30),
            cut in 1_usize..5,
        ) {
            let mut log = Log::new(ByteCount::bytes(keep));
            let mut written = [String::new(), String::new()];
            for (is_error, text) in &writes {
                let stream = if *is_error { Stream::Stderr } else { Stream::Stdout };
                written[stream as usize].push_str(text);
                // Reads cut anywhere.
                text.as_bytes().chunks(cut).for_each(|part| log.push(stream, part));
            }
            log.finish();
            let (mut cursor, mut missed, mut seen) = (0, 0, [String::new(), String::new()]);
            loop {
                let page = log.read(cursor, most);
                missed += page.missed;
                for (seen, bytes) in seen.iter_mut().zip(&page.streams) {
                    seen.push_str(std::str::from_utf8(bytes).expect("cut between characters"));
                }
                if page.next == cursor { break }
                cursor = page.next;
            }
            let total: usize = written.iter().map(String::len).sum();
            prop_assert_eq!(cursor, total as u64);
            prop_assert_eq!(missed as usize + seen.concat().len(), total);
            prop_assert!(written[0].ends_with(&seen[0]) && written[1].ends_with(&seen[1]));
            prop_assert!(total as u64 > keep || missed == 0);
        }
    }
}
