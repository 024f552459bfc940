//! Whether a log is as it was written: every line whole, in its place, and after the one it follows.
#![expect(clippy::disallowed_methods, reason = "the audit log is one of the homes of std::fs")]

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::{file::MAX_LINE_BYTES, line};
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
    /// The noted head is another line.
    #[error("is not the noted head: the log was rewritten from some line on")]
    Rewritten,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
}

/// Reads a whole log and checks every line. With `expected`, checks too that this head is in it.
///
/// An empty file is a whole log, unless a head is expected.
///
/// # Errors
/// The first line that is not as it was written.
pub fn verify(path: &Path, expected: Option<Head>) -> Result<Summary, Broken> {
    let unreadable = |line| {
        move |error| Broken {
            line,
            why: Why::Unreadable(error),
        }
    };
    // A pipe or a device would be waited for, or read as a log without lines.
    if !std::fs::metadata(path).map_err(unreadable(0))?.is_file() {
        return Err(unreadable(0)(std::io::Error::other("it is no file")));
    }
    let file = std::fs::File::open(path).map_err(unreadable(0))?;
    // A shared lock waits for a line that is just being written; only a record's length, so a bare
    // wait is bounded by the writers' own.
    flock(&file, FlockOperation::LockShared).map_err(|error| unreadable(0)(error.into()))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut summary = Summary {
        records: 0,
        first: None,
        last: None,
        head: None,
    };
    let mut text = Vec::new();
    loop {
        let number = summary.records + 1;
        let broken = |why| Broken { line: number, why };
        text.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut text);
        if read.map_err(unreadable(number))? == 0 {
            break;
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
        if link.seq != number {
            return Err(broken(Why::OutOfPlace {
                expected: number,
                found: link.seq,
            }));
        }
        let before = summary.head.map_or(Digest([0; 32]), |head| head.digest);
        if link.prev != before.to_string() {
            return Err(broken(Why::Unlinked));
        }
        let head = line::head(line, number);
        if expected.is_some_and(|expected| expected.seq == number && expected != head) {
            return Err(broken(Why::Rewritten));
        }
        summary.first.get_or_insert_with(|| link.time.clone());
        summary.last = Some(link.time);
        summary.head = Some(head);
        summary.records = number;
    }
    if expected.is_some_and(|expected| expected.seq > summary.records) {
        return Err(Broken {
            line: summary.records + 1,
            why: Why::CutOff,
        });
    }
    Ok(summary)
}
