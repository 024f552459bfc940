//! Quantities with units: bytes, durations in text form, and the clock.
//!
//! Deadlines and rate limits use the monotonic clock only, since wall clocks jump.

mod time;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

pub use time::{civil, rfc3339, spoken};

/// A number of bytes. Its text form is `64KiB`, `4GiB`, `10MB` or `512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct ByteCount(u64);

impl ByteCount {
    /// Creates a count of bytes.
    pub const fn bytes(count: u64) -> Self {
        Self(count)
    }

    /// Creates a count of kibibytes (1,024 bytes).
    pub const fn kib(count: u64) -> Self {
        Self(count * 1024)
    }

    /// Creates a count of mebibytes (1,048,576 bytes).
    pub const fn mib(count: u64) -> Self {
        Self(count * 1024 * 1024)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of bytes as an index into memory. Saturates on 32-bit machines.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        for (size, name) in STEPS {
            if self.0 >= size {
                let whole = self.0 / size;
                let tenth = (self.0 % size) * 10 / size;
                return if tenth == 0 {
                    write!(f, "{whole} {name}")
                } else {
                    write!(f, "{whole}.{tenth} {name}")
                };
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// A malformed quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct UnitError {
    /// The text.
    pub text: String,
    /// The expected form.
    pub expected: &'static str,
}

// Not `bytesize`: it also accepts fractions and other units, and rounds (`1.5MiB`, `1 EiB`). A limit is a whole number.
impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            text: text.to_owned(),
            expected: "a size such as `64KiB`, `10MB`, `4GiB` or `4096`",
        };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let count: u64 = trimmed[..digits].parse().map_err(|_| error())?;
        let factor: u64 = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "kb" => 1_000,
            "m" | "mib" => 1 << 20,
            "mb" => 1_000_000,
            "g" | "gib" => 1 << 30,
            "gb" => 1_000_000_000,
            _ => return Err(error()),
        };
        count.checked_mul(factor).map(Self).ok_or_else(error)
    }
}

// Not `humantime`: it accepts sequences and months, and neither fractions nor numbers without a unit, which mean seconds.
/// Parses a duration such as `30s`, `2m`, `500ms` or `1h`. A number without a unit is in seconds.
///
/// # Errors
/// If the text is malformed or the duration too long. Zero is valid here.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError {
        text: text.to_owned(),
        expected: "a duration such as `30s`, `2m`, `500ms` or `1h`",
    };
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(trimmed.len());
    let number: f64 = trimmed[..digits].parse().map_err(|_| error())?;
    let seconds = match trimmed[digits..].trim() {
        "" | "s" | "sec" | "secs" => number,
        "ms" => number / 1_000.0,
        "m" | "min" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err(error()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| error())
}

/// A source of monotonic time. Tests provide their own.
pub trait Clock: Send + Sync {
    /// Returns the current monotonic time.
    fn now(&self) -> Instant;
}

/// The monotonic clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("64KiB", 65_536),
            ("4GiB", 4 << 30),
            ("10MB", 10_000_000),
            ("512", 512),
            ("1k", 1_024),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
        for text in ["", "KiB", "-1", "1.5MiB", "64 bananas", "99999999999GiB"] {
            assert!(text.parse::<ByteCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ms) in [
            ("30s", 30_000),
            ("2m", 120_000),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("7", 7_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1 fortnight", "1e400"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
