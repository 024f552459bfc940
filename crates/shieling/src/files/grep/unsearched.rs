//! The reasons why a file, or a part of it, was not searched.

use std::io;

use grep_searcher::SinkError;

use crate::environment::FileError;

/// Why a file, or the rest of it, was not searched.
#[derive(Debug)]
pub(super) enum Unsearched {
    TooLarge {
        size: u64,
        limit: u64,
    },
    /// A line is too long.
    Line,
    /// The pattern takes much longer on this text than on ordinary text.
    Slow,
    Stopped,
    Failed(FileError),
}

impl SinkError for Unsearched {
    // The searcher itself reports one error: a line that exceeds its buffer.
    fn error_message<T: std::fmt::Display>(_: T) -> Self {
        Self::Line
    }

    fn error_io(error: io::Error) -> Self {
        match error.downcast::<Broken>() {
            Ok(Broken(why)) => why,
            Err(_) => Self::Line,
        }
    }
}

/// Carries [`Unsearched`] through an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("the rest of the file could not be read")]
pub(super) struct Broken(pub(super) Unsearched);
