//! The errors of file operations. An operation that fails has changed nothing.

use std::path::PathBuf;

use crate::environment::FileError;
use crate::outcome::{Denial, Status};

use super::FileHash;

/// A part of a file that resembles the text that was searched for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Candidate {
    /// The number of its first line, counted from 1.
    pub line: u64,
    /// Its text, at most 400 characters.
    pub text: String,
    /// The difference, if a few words describe it: `only the indentation differs`.
    pub differs: Option<String>,
}

/// A file operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The environment reported an error.
    #[error(transparent)]
    File(#[from] FileError),
    /// The operation was refused or was not approved.
    #[error("it was not allowed")]
    Refused {
        /// `denied`, `needs_approval` or `rate_limited`.
        status: Status,
        /// The reasons.
        denial: Denial,
    },
    /// An argument is invalid.
    #[error("{argument}: {why}")]
    Argument {
        /// The name of the argument.
        argument: &'static str,
        /// What is wrong with it, and what would be valid.
        why: String,
    },
    /// The requested line is beyond the end of the file.
    #[error("line {offset} is beyond the end: `{}` has {lines} line{}", path.display(), if *lines == 1 { "" } else { "s" })]
    BeyondEnd {
        /// The file.
        path: PathBuf,
        /// The requested line, counted from 0.
        offset: u64,
        /// The number of lines in the file.
        lines: u64,
    },
    /// The file is not in the expected state.
    #[error("`{}` has changed since it was read", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// Its present state.
        now: FileHash,
        /// The change since the expected state as a unified diff, if that content is still known.
        diff: Option<String>,
    },
    /// The file does not contain the text to replace.
    #[error("the text to replace is not in `{}`", path.display())]
    NoMatch {
        /// The file.
        path: PathBuf,
        /// The most similar parts of the file, at most 3, best first.
        nearest: Vec<Candidate>,
    },
    /// The file contains the text to replace more than once.
    #[error("the text to replace is {count} times in `{}`", path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// The number of occurrences.
        count: u64,
        /// The lines of the first 20 occurrences, counted from 1.
        lines: Vec<u64>,
    },
    /// The file is not text.
    #[error("`{}` is not text: {why}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// What is not text in it.
        why: String,
    },
    /// The file is larger than the operation supports.
    #[error("`{}` has {size} bytes, and {limit} are the most that can be {done} at once", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
        /// The operation, as a past participle.
        done: &'static str,
    },
    /// The patch is malformed.
    #[error("the patch cannot be read: line {line}: {why}")]
    BadPatch {
        /// The line of the patch, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A hunk of the patch does not match the file.
    #[error("hunk {hunk} of the patch does not fit `{}`: {why}", path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// The number of the hunk, counted from 1.
        hunk: u64,
        /// What does not match.
        why: String,
        /// The most similar parts of the file.
        nearest: Vec<Candidate>,
    },
    /// An internal fault: the environment did not start, or the log is full.
    #[error("{0}")]
    Fault(String),
}

impl FilesError {
    /// Returns the stable name of the error for programs: `not_found`, `no_match`, `stale` and so on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Refused { status, .. } => status.name(),
            Self::Argument { .. } => "argument",
            Self::BeyondEnd { .. } => "beyond_end",
            Self::Stale { .. } => "stale",
            Self::NoMatch { .. } => "no_match",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NotText { .. } => "not_text",
            Self::TooLarge { .. } => "too_large",
            Self::BadPatch { .. } => "bad_patch",
            Self::Misfit { .. } => "misfit",
            Self::Fault(_) => "fault",
        }
    }

    /// Returns whether a different request may succeed.
    pub fn is_correctable(&self) -> bool {
        match self {
            Self::File(error) => !matches!(error, FileError::Io { .. } | FileError::Full { .. }),
            Self::Refused { status, denial } => *status == Status::RateLimited || denial.is_for_length(),
            Self::Fault(_) => false,
            Self::Argument { .. }
            | Self::BeyondEnd { .. }
            | Self::Stale { .. }
            | Self::NoMatch { .. }
            | Self::Ambiguous { .. }
            | Self::NotText { .. }
            | Self::TooLarge { .. }
            | Self::BadPatch { .. }
            | Self::Misfit { .. } => true,
        }
    }
}
