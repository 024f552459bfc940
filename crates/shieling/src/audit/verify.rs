//! Whether a log is as it was written: every line whole, in its place, and after the one it follows.
#![expect(clippy::disallowed_methods, reason = "the audit log is one of the homes of std::fs")]

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::file::{MAX_LINE_BYTES, first_number, generation};
use super::line;
use crate::request::Digest;
use crate::units::UnitError;

/// The last line of a log at some time: its number and its digest, written `17:<64 hex digits>`.
///
/// Noted elsewhere, it shows later whether the log was cut off or rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of the line, from 1.
    pub seq: u64,
    /// The SHA-256 of the line without its newline.
    pub digest: Digest,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.digest)
    }
}

impl Serialize for Head {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Head {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let parsed = text.split_once(':').and_then(|(seq, hex)| {
            let mut digest = [0; 32];
            if hex.len() != 64 || !hex.is_ascii() {
                return None;
            }
            for (index, byte) in digest.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).ok()?;
            }
            Some(Self {
                seq: seq.parse().ok()?,
                digest: Digest(digest),
            })
        });
        parsed.ok_or_else(|| UnitError {
            text: text.to_owned(),
            expected: "the head of a log, a line's number and its SHA-256 such as `17:9f86…`",
        })
    }
}

/// A log that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many records it has.
    pub records: u64,
    /// The time of the first one, as it says.
    pub first: Option<String>,
    /// The time of the last one, as it says.
    pub last: Option<String>,
    /// The last line; none in an empty log.
    pub head: Option<Head>,
}

/// Where and how a log is broken.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    /// The file, which may be an older generation of the one that was asked about.
    pub path: PathBuf,
    /// The first line that cannot be trusted, from 1. Lines before it are as they were written.
    pub line: u64,
    /// How.
    pub why: Why,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// Its bytes are not those that were written.
    #[error("was edited: its content does not fit its check sum")]
    Edited,
    /// It is no record at all.
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
        /// The number after the line before.
        expected: u64,
        /// The number it has.
        found: u64,
    },
    /// It was written after another line than the one that stands before it.
    #[error("does not follow from the line before it: one of the two was rewritten")]
    Unlinked,
    /// The log ends before the head that was noted elsewhere.
    #[error("is missing: the log was cut off before the noted head")]
    CutOff,
    /// The noted head is older than what is kept.
    #[error("is the oldest record that is kept: the noted head was rotated away")]
    RotatedAway,
    /// The noted head is another line.
    #[error("is not the noted head: the log was rewritten from some line on")]
    Rewritten,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
}

/// Reads a whole log and checks every line, and that each follows the one before, across all generations
/// that stand beside it as `.1`, `.2` and so on. With `expected`, checks too that this head is in it.
///
/// An empty file is a whole log, unless a head is expected. The oldest generation may begin with any number:
/// what came before it was rotated away.
///
/// # Errors
/// The first line that is not as it was written.
pub fn verify(path: &Path, expected: Option<Head>) -> Result<Summary, Broken> {
    let unreadable = |error| Broken {
        path: path.to_path_buf(),
        line: 0,
        why: Why::Unreadable(error),
    };
    let current = locked(path).map_err(unreadable)?;
    // Nobody rotates while this lock is held.
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
    let mut summary = Summary {
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
        return Err(Broken {
            path: path.to_path_buf(),
            line: summary.records + 1,
            why: Why::CutOff,
        });
    }
    if expected.is_some_and(|expected| before_all.is_some_and(|first| expected.seq < first)) {
        return Err(Broken {
            path: path.to_path_buf(),
            line: 1,
            why: Why::RotatedAway,
        });
    }
    Ok(summary)
}

/// Checks the lines of one file after those of the generation before it.
fn read(
    path: &Path,
    mut reader: BufReader<std::fs::File>,
    rotated: bool,
    expected: Option<Head>,
    summary: &mut Summary,
    before_all: &mut Option<u64>,
) -> Result<(), Broken> {
    let mut text = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        let broken = |why| Broken {
            path: path.to_path_buf(),
            line: number,
            why,
        };
        text.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut text);
        if read.map_err(|error| broken(Why::Unreadable(error)))? == 0 {
            return Ok(());
        }
        if text.pop() != Some(b'\n') {
            let long = text.len() as u64 >= MAX_LINE_BYTES;
            return Err(broken(if long { Why::TooLong } else { Why::Torn }));
        }
        let line = std::str::from_utf8(&text).map_err(|_| broken(Why::NotARecord))?;
        let link = line::link(line).ok_or_else(|| broken(Why::NotARecord))?;
        if !line::is_intact(line) {
            return Err(broken(Why::Edited));
        }
        let first = before_all.get_or_insert(if rotated { link.seq } else { 1 });
        let next = summary.head.map_or(*first, |head| head.seq + 1);
        if link.seq != next {
            return Err(broken(Why::OutOfPlace {
                expected: next,
                found: link.seq,
            }));
        }
        let before = match summary.head {
            Some(head) => Some(head.digest),
            // Of the oldest that is kept, what it follows is gone.
            None => (link.seq == 1).then_some(Digest([0; 32])),
        };
        if before.is_some_and(|before| link.prev != before.to_string()) {
            return Err(broken(Why::Unlinked));
        }
        let head = line::head(line, link.seq);
        if expected.is_some_and(|expected| expected.seq == head.seq && expected != head) {
            return Err(broken(Why::Rewritten));
        }
        summary.first.get_or_insert_with(|| link.time.clone());
        summary.last = Some(link.time);
        summary.head = Some(head);
        summary.records += 1;
    }
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    // A pipe or a device would be waited for, or read as a log without lines.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    std::fs::File::open(path)
}

/// Opens the file that is written, and waits for a line that is just being written: only a record's length,
/// so a bare wait is bounded by the writers' own.
fn locked(path: &Path) -> io::Result<std::fs::File> {
    loop {
        let file = open(path)?;
        flock(&file, FlockOperation::LockShared)?;
        let (held, now) = (file.metadata()?, std::fs::metadata(path)?);
        // It may have been rotated while it was waited for.
        if (held.dev(), held.ino()) == (now.dev(), now.ino()) {
            return Ok(file);
        }
    }
}

/// Whether a file begins a chain: its first line has number 1, or is none that follows another.
fn begins(file: &std::fs::File) -> io::Result<bool> {
    Ok(first_number(file)?.unwrap_or(1) <= 1 && file.metadata()?.len() > 0)
}

/// Whether a file has the name of an older generation.
fn is_generation(path: &Path) -> bool {
    path.extension()
        .and_then(|number| number.to_str())
        .is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number > 0))
}
