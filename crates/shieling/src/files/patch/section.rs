//! The parsed form of a patch.

use std::path::PathBuf;

use crate::files::FilesError;

/// The part of a patch about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Its first line in the patch, counted from 1.
    pub(super) line: u64,
    /// The old file; `None` if the file is new.
    pub(super) from: Option<PathBuf>,
    /// The new file; `None` if the file is removed.
    pub(super) to: Option<PathBuf>,
    /// Whether the file is executable before and after, where the patch says so.
    pub(super) executable: (Option<bool>, Option<bool>),
    /// The changes, in the order of the file.
    pub(super) hunks: Vec<Hunk>,
    /// Whether the hunks of a removal contain the whole file.
    pub(super) tells_all: bool,
}

/// A changed part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// Its first line in the old file and in the new one, counted from 1.
    pub(super) at: Option<(u64, u64)>,
    /// Lines that precede it, in their order.
    pub(super) anchors: Vec<String>,
    /// Whether it is at the end of the file.
    pub(super) at_end: bool,
    /// Whether it does not say if the last line of the file has a line end.
    pub(super) loose_end: bool,
    pub(super) lines: Vec<Line>,
}

/// A line of a hunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) side: Side,
    pub(super) text: String,
    /// Whether it has a line end.
    pub(super) ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Old,
    New,
}

impl Section {
    /// Returns the section that reverses this one.
    pub(super) fn reversed(self) -> Self {
        let hunks = self.hunks.into_iter().map(|mut hunk| {
            hunk.at = hunk.at.map(|(old, new)| (new, old));
            for line in &mut hunk.lines {
                line.side = match line.side {
                    Side::Both => Side::Both,
                    Side::Old => Side::New,
                    Side::New => Side::Old,
                };
            }
            hunk
        });
        let (was, is) = self.executable;
        Self {
            from: self.to,
            to: self.from,
            executable: (is, was),
            hunks: hunks.collect(),
            ..self
        }
    }
}

/// Fails because a line of the patch is malformed.
pub(super) fn unreadable<T>(line: usize, why: impl Into<String>) -> Result<T, FilesError> {
    Err(FilesError::BadPatch {
        line: line as u64 + 1,
        why: why.into(),
    })
}
