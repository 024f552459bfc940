//! The recorded part of input to a job: its length, but not the text.
//!
//! Any input may be a password: the program that reads it is not known, and the terminal's echo flag does not tell
//! reliably. Reasons and files are omitted as well, since they quote the input.

use std::fmt;

use serde::Serialize;

/// The largest number of keys in a record; the others are counted.
pub const MAX_KEYS: usize = 64;

/// Recorded input to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InputRecord {
    /// The job.
    pub job: String,
    /// The number of bytes of text, including keys that produce text.
    pub bytes: u64,
    /// The names of the first [`MAX_KEYS`] other keys, in the order after the text.
    pub keys: Vec<String>,
    /// The number of further keys.
    pub keys_omitted: usize,
}

impl fmt::Display for InputRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.bytes == 1 { "" } else { "s" };
        write!(f, "typed {} byte{plural} into job {}", self.bytes, self.job)?;
        if !self.keys.is_empty() {
            write!(f, ", then {}", self.keys.join(" "))?;
        }
        if self.keys_omitted > 0 {
            write!(f, " and {} more", self.keys_omitted)?;
        }
        Ok(())
    }
}
