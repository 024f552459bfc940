//! Why something asked of files was not done. Nothing has changed then.

use std::path::PathBuf;

use crate::environment::FileError;
use crate::outcome::{Denial, Status};

use super::FileHash;

/// A place in a file that is like what was looked for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Candidate {
    /// Its first line, counted from 1.
    pub line: u64,
    /// What stands there, at most 400 characters of it.
    pub text: String,
    /// What is different, if it can be said in a few words: `only the indentation differs`.
    pub differs: Option<String>,
}

/// Why something asked of files was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The file itself says no.
    #[error(transparent)]
    File(#[from] FileError),
    /// It was refused, or nobody said yes.
    #[error("it was not allowed")]
    Refused {
        /// `denied`, `needs_approval` or `rate_limited`.
        status: Status,
        /// Why.
        denial: Denial,
    },
    /// What was asked makes no sense.
    #[error("{argument}: {why}")]
    Argument {
        /// Which argument.
        argument: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// There are fewer lines than that.
    #[error("line {offset} is beyond the end: `{}` has {lines} line{}", path.display(), if *lines == 1 { "" } else { "s" })]
    BeyondEnd {
        /// The file.
        path: PathBuf,
        /// The line that was asked for, counted from 0.
        offset: u64,
        /// How many there are.
        lines: u64,
    },
    /// The file is not in the state that was expected.
    #[error("`{}` has changed since it was read", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// Its state now.
        now: FileHash,
        /// What changed since the state that was expected, as a unified diff, if that is remembered.
        diff: Option<String>,
    },
    /// The text to replace is not there.
    #[error("the text to replace is not in `{}`", path.display())]
    NoMatch {
        /// The file.
        path: PathBuf,
        /// What is most like it, the likest first; at most 3.
        nearest: Vec<Candidate>,
    },
    /// The text to replace is there more than once.
    #[error("the text to replace is {count} times in `{}`", path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// How often.
        count: u64,
        /// The lines at which it begins, counted from 1; the first 20.
        lines: Vec<u64>,
    },
    /// The file is not text.
    #[error("`{}` is not text: {why}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file is larger than what can be done with it at once.
    #[error("`{}` has {size} bytes, and {limit} are the most that can be {done} at once", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
        /// What cannot be done.
        done: &'static str,
    },
    /// A patch that cannot be read.
    #[error("the patch cannot be read: line {line}: {why}")]
    BadPatch {
        /// The line of the patch, counted from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A patch that does not fit the files.
    #[error("hunk {hunk} of the patch does not fit `{}`: {why}", path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// Which hunk, counted from 1.
        hunk: u64,
        /// Why.
        why: String,
        /// Where it would nearly fit.
        nearest: Vec<Candidate>,
    },
    /// Shieling itself could not do what it should: the environment did not start, the log is full.
    #[error("{0}")]
    Fault(String),
}

impl FilesError {
    /// Which it is, for programs: `not_found`, `no_match`, `stale` and so on. A name once given stays.
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

    /// Whether whoever asked can do something about it by asking otherwise.
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
