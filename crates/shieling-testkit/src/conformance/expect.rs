//! Checks that compare actual with expected values.

use std::fmt::Debug;

use shieling::environment::FileError;
use shieling::files::FilesError;
use shieling::outcome::Outcome;
use shieling::session::JobError;

use super::CheckFailure;
use super::report::Checked;

/// Checks that both values are equal.
pub(crate) fn same<S, E>(what: &str, seen: S, expected: E) -> Checked
where
    S: PartialEq<E> + Debug,
    E: Debug,
{
    if seen == expected {
        Ok(())
    } else {
        Err(CheckFailure::new(format!("{what}: {expected:?}"), format!("{seen:?}")))
    }
}

/// Checks a condition.
pub(crate) fn holds(expected: &str, so: bool, seen: &str) -> Checked {
    if so {
        Ok(())
    } else {
        Err(CheckFailure::new(expected, seen))
    }
}

/// Checks that an operation was refused in this way.
pub(crate) fn refused<T: Debug, E: Debug>(what: &str, seen: Result<T, E>, so: impl FnOnce(&E) -> bool) -> Checked {
    match seen {
        Err(error) if so(&error) => Ok(()),
        other => Err(CheckFailure::new(what, format!("{other:?}"))),
    }
}

/// Checks that an operation was refused, and did not fail for another reason.
pub(crate) fn is_typed(error: &FilesError) -> bool {
    !matches!(error, FilesError::Fault(_) | FilesError::File(FileError::Io { .. }))
}

/// Formats an error for a report.
pub(crate) trait DescribeError {
    fn described(&self) -> String;
}

impl DescribeError for Outcome {
    fn described(&self) -> String {
        let head = |text: &str| text.chars().take(300).collect::<String>();
        let mut told = format!(
            "{} {:?}, stdout {:?}, stderr {:?}",
            self.status.name(),
            self.exit_code,
            head(&self.stdout),
            head(&self.stderr),
        );
        if let Some(error) = &self.error {
            told.push_str(&format!(", error {error:?}"));
        }
        if let Some(denial) = &self.denial {
            told.push_str(&format!(", denial {denial:?}"));
        }
        told
    }
}

impl From<FilesError> for CheckFailure {
    fn from(error: FilesError) -> Self {
        Self::new("an answer", format!("{error:?}"))
    }
}

impl From<JobError> for CheckFailure {
    fn from(error: JobError) -> Self {
        Self::new("an answer", format!("{error:?}"))
    }
}

impl From<std::io::Error> for CheckFailure {
    fn from(error: std::io::Error) -> Self {
        Self::new("to reach what lies outside", format!("{error:?}"))
    }
}
