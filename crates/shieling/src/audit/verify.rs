//! Verification of a log: every line is complete, in its place, and follows the line before.
#![expect(clippy::disallowed_methods, reason = "the audit log is one of the homes of std::fs")]

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::file::{MAX_LINE_BYTES, first_number, generation};
use super::head::LogHead;
use super::line;
use crate::request::Digest;

/// The result for an intact log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LogSummary {
    /// The number of records.
    pub records: u64,
    /// The recorded time of the first one.
    pub first: Option<String>,
    /// The recorded time of the last one.
    pub last: Option<String>,
    /// The last line; `None` in an empty log.
    pub head: Option<LogHead>,
}

/// The result for a log that is not intact.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
#[non_exhaustive]
pub struct BrokenLog {
    /// The file, which may be an older generation of the requested one.
    pub path: PathBuf,
    /// The first line that cannot be trusted, counted from 1. The lines before it are intact.
    pub line: u64,
    /// The defect.
    pub why: Defect,
}

/// A defect of a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// Its bytes were changed.
    #[error("was edited: its content does not fit its check sum")]
    Edited,
    /// It is not a record.
    #[error("is no record")]
    NotARecord,
    /// The file ends within it.
    #[error("is torn: the file ends within it")]
    Torn,
    /// It is longer than any line that is written.
    #[error("is longer than {MAX_LINE_BYTES} bytes, which no record is")]
    TooLong,
    /// Its number is not the next one.
    #[error("has number {found} where {expected} is next: lines were removed, inserted or reordered")]
    OutOfPlace {
        /// The next number.
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// It does not follow the line before it.
    #[error("does not follow from the line before it: one of the two was rewritten")]
    Unlinked,
    /// The log ends before the expected head.
    #[error("is missing: the log was cut off before the noted head")]
    CutOff,
    /// The expected head is older than the oldest generation.
    #[error("is the oldest record that is kept: the noted head was rotated away")]
    RotatedAway,
    /// The line with the number of the expected head is a different one.
    #[error("is not the noted head: the log was rewritten from some line on")]
    Rewritten,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
}

/// Verifies every line of a log and its link to the line before, across all generations `.1`, `.2` and so on. With
/// `expected`, also verifies that the log contains this head.
///
/// An empty file is intact, unless a head is expected. The oldest generation may begin with any number, since the
/// earlier ones were removed.
///
/// # Errors
/// The first line that is not intact.
pub fn verify(path: &Path, expected: Option<LogHead>) -> Result<LogSummary, BrokenLog> {
    let unreadable = |error| BrokenLog {
        path: path.to_path_buf(),
        line: 0,
        why: Defect::Unreadable(error),
    };
    let current = locked(path).map_err(unreadable)?;
    // While this lock is held, no process rotates the log.
    let mut files = vec![(path.to_path_buf(), current)];
    if !begins(&files[0].1).map_err(unreadable)? {
        for number in 1.. {
            let older = generation(path, number);
            match open(&older) {
                Ok(file) => files.push((older, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(unreadable(error)),
            }
        }
    }
    let rotated = files.len() > 1 || is_generation(path);
    let mut summary = LogSummary {
        records: 0,
        first: None,
        last: None,
        head: None,
    };
    let mut before_all = None;
    for (path, file) in files.into_iter().rev() {
        let reader = BufReader::with_capacity(64 * 1024, file);
        read(&path, reader, rotated, expected, &mut summary, &mut before_all)?;
    }
    let last = summary.head.map_or(0, |head| head.seq);
    if expected.is_some_and(|expected| expected.seq > last) {
        return Err(BrokenLog {
            path: path.to_path_buf(),
            line: summary.records + 1,
            why: Defect::CutOff,
        });
    }
    if expected.is_some_and(|expected| before_all.is_some_and(|first| expected.seq < first)) {
        return Err(BrokenLog {
            path: path.to_path_buf(),
            line: 1,
            why: Defect::RotatedAway,
        });
    }
    Ok(summary)
}

/// Verifies the lines of one file, which follow those of the previous generation.
fn read(
    path: &Path,
    mut reader: BufReader<std::fs::File>,
    rotated: bool,
    expected: Option<LogHead>,
    summary: &mut LogSummary,
    before_all: &mut Option<u64>,
) -> Result<(), BrokenLog> {
    let mut text = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        let broken = |why| BrokenLog {
            path: path.to_path_buf(),
            line: number,
            why,
        };
        text.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut text);
        if read.map_err(|error| broken(Defect::Unreadable(error)))? == 0 {
            return Ok(());
        }
        if text.pop() != Some(b'\n') {
            let long = text.len() as u64 >= MAX_LINE_BYTES;
            return Err(broken(if long { Defect::TooLong } else { Defect::Torn }));
        }
        let line = std::str::from_utf8(&text).map_err(|_| broken(Defect::NotARecord))?;
        let link = line::link(line).ok_or_else(|| broken(Defect::NotARecord))?;
        if !line::is_intact(line) {
            return Err(broken(Defect::Edited));
        }
        let first = before_all.get_or_insert(if rotated { link.seq } else { 1 });
        let next = summary.head.map_or(*first, |head| head.seq + 1);
        if link.seq != next {
            return Err(broken(Defect::OutOfPlace {
                expected: next,
                found: link.seq,
            }));
        }
        let before = match summary.head {
            Some(head) => Some(head.digest),
            // The line before the oldest generation no longer exists.
            None => (link.seq == 1).then_some(Digest([0; 32])),
        };
        if before.is_some_and(|before| link.prev != before.to_string()) {
            return Err(broken(Defect::Unlinked));
        }
        let head = line::head(line, link.seq);
        if expected.is_some_and(|expected| expected.seq == head.seq && expected != head) {
            return Err(broken(Defect::Rewritten));
        }
        summary.first.get_or_insert_with(|| link.time.clone());
        summary.last = Some(link.time);
        summary.head = Some(head);
        summary.records += 1;
    }
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    // Opening a pipe or a device could block, or yield a log without lines.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    std::fs::File::open(path)
}

/// Opens and locks the current file. This may wait for a record that is being written, which takes as long as one
/// write.
fn locked(path: &Path) -> io::Result<std::fs::File> {
    loop {
        let file = open(path)?;
        flock(&file, FlockOperation::LockShared)?;
        let (held, now) = (file.metadata()?, std::fs::metadata(path)?);
        // The file may have been rotated during the wait.
        if (held.dev(), held.ino()) == (now.dev(), now.ino()) {
            return Ok(file);
        }
    }
}

/// Returns whether a file begins a chain: its first line has number 1, or follows no other line.
fn begins(file: &std::fs::File) -> io::Result<bool> {
    Ok(first_number(file)?.unwrap_or(1) <= 1 && file.metadata()?.len() > 0)
}

/// Returns whether the path is that of an older generation.
fn is_generation(path: &Path) -> bool {
    path.extension()
        .and_then(|number| number.to_str())
        .is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number > 0))
}
