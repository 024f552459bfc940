//! The head of a log, which identifies its last line.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::request::Digest;
use crate::units::UnitError;

/// The number and the digest of the last line of a log, written `17:<64 hex digits>`.
///
/// If it is stored elsewhere, it reveals later whether the log was truncated or rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHead {
    /// The number of the line, counted from 1.
    pub seq: u64,
    /// The SHA-256 of the line, without its newline.
    pub digest: Digest,
}

impl fmt::Display for LogHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.digest)
    }
}

impl Serialize for LogHead {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for LogHead {
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
