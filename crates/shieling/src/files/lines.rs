//! Extracts a range of lines from a file that is read in pieces, without holding the whole file.
//!
//! ```text
//! before ──first line──► within ──limit, or no room──► after      lines are only counted
//!                          └────a line without room──► cutting ──its end──► after
//! ```

use super::encoding::Encoding;

/// The lines to extract.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    /// The first line, counted from 0.
    pub(super) first: u64,
    /// The largest number of lines.
    pub(super) limit: u64,
    /// The largest number of bytes of the file.
    pub(super) room: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Within,
    Cutting,
    After,
}

/// Extracts a range of lines.
#[derive(Debug)]
pub(super) struct Lines {
    encoding: Encoding,
    range: Range,
    phase: Phase,
    /// The number of complete lines so far.
    ended: u64,
    /// Whether an incomplete line follows.
    open: bool,
    kept: Vec<u8>,
    /// The end of each line in `kept`.
    ends: Vec<usize>,
    /// The number of bytes that the only line in `kept` lacks.
    cut: u64,
}

/// The lines that were extracted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Their bytes.
    pub(super) bytes: Vec<u8>,
    /// The end of each line in `bytes`.
    pub(super) ends: Vec<usize>,
    /// The number of bytes that were cut from the last line, which is then the only one.
    pub(super) cut: u64,
    /// The number of lines that were read in total.
    pub(super) lines: u64,
}

impl Lines {
    /// Creates an extractor. The encoding determines the form of a line end.
    pub(super) fn new(encoding: Encoding, range: Range) -> Self {
        let phase = if range.first == 0 { Phase::Within } else { Phase::Before };
        Self {
            encoding,
            range,
            phase,
            ended: 0,
            open: false,
            kept: Vec::new(),
            ends: Vec::new(),
            cut: 0,
        }
    }

    /// Returns whether the whole range has been found.
    pub(super) fn is_satisfied(&self) -> bool {
        self.phase == Phase::After
    }

    /// Processes the next piece of the file, which consists of whole units.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        let mut at = 0;
        while at < piece.len() {
            if self.phase == Phase::After {
                self.ended += self.encoding.count_ends(&piece[at..]);
                self.open = self.encoding.line_start(piece, piece.len()) < piece.len();
                return;
            }
            let end = self.encoding.line_end(piece, at);
            let part = &piece[at..end.unwrap_or(piece.len())];
            at += part.len();
            self.open = end.is_none();
            match self.phase {
                Phase::Before | Phase::After => {}
                Phase::Within => self.keep(part),
                Phase::Cutting => self.cut += part.len() as u64,
            }
            if end.is_some() {
                self.end_line();
            }
        }
    }

    /// Keeps a part of the current line, if there is room for it.
    fn keep(&mut self, part: &[u8]) {
        let room = self.range.room - self.kept.len();
        if part.len() <= room {
            self.kept.extend_from_slice(part);
            return;
        }
        if let Some(whole) = self.ends.last() {
            self.kept.truncate(*whole);
            self.phase = Phase::After;
            return;
        }
        self.kept.extend_from_slice(&part[..room]);
        self.cut = (part.len() - room) as u64;
        self.phase = Phase::Cutting;
    }

    fn end_line(&mut self) {
        self.ended += 1;
        match self.phase {
            Phase::Before if self.ended == self.range.first => self.phase = Phase::Within,
            Phase::Within => {
                self.ends.push(self.kept.len());
                if self.ends.len() as u64 == self.range.limit {
                    self.phase = Phase::After;
                }
            }
            Phase::Cutting => {
                self.ends.push(self.kept.len());
                self.phase = Phase::After;
            }
            Phase::Before | Phase::After => {}
        }
    }

    /// Returns the lines, after the last piece or once the range is complete. Text after the last line end counts as
    /// a line.
    pub(super) fn finish(mut self) -> Kept {
        let lines = self.ended + u64::from(self.open);
        if self.open && matches!(self.phase, Phase::Within | Phase::Cutting) {
            self.ends.push(self.kept.len());
        }
        Kept {
            bytes: self.kept,
            ends: self.ends,
            cut: self.cut,
            lines,
        }
    }
}
