//! Comparing what was seen with what was expected.

use std::fmt::Debug;

use shieling::environment::FileError;
use shieling::files::FilesError;
use shieling::outcome::Outcome;
use shieling::session::JobError;

use super::Wrong;
use super::case::Checked;

/// Both are the same.
pub(crate) fn same<S, E>(what: &str, seen: S, expected: E) -> Checked
where
    S: PartialEq<E> + Debug,
    E: Debug,
{
    if seen == expected {
        Ok(())
    } else {
        Err(Wrong::new(format!("{what}: {expected:?}"), format!("{seen:?}")))
    }
}

/// It is so.
pub(crate) fn holds(expected: &str, so: bool, seen: &str) -> Checked {
    if so { Ok(()) } else { Err(Wrong::new(expected, seen)) }
}

/// It is refused, and in this way.
pub(crate) fn refused<T: Debug, E: Debug>(what: &str, seen: Result<T, E>, so: impl FnOnce(&E) -> bool) -> Checked {
    match seen {
        Err(error) if so(&error) => Ok(()),
        other => Err(Wrong::new(what, format!("{other:?}"))),
    }
}

/// A refusal, and no fault of the environment's.
pub(crate) fn is_typed(error: &FilesError) -> bool {
    !matches!(error, FilesError::Fault(_) | FilesError::File(FileError::Io { .. }))
}

/// What a report shows of it.
pub(crate) trait Tells {
    fn tells(&self) -> String;
}

impl Tells for Outcome {
    fn tells(&self) -> String {
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

impl From<FilesError> for Wrong {
    fn from(error: FilesError) -> Self {
        Self::new("an answer", format!("{error:?}"))
    }
}

impl From<JobError> for Wrong {
    fn from(error: JobError) -> Self {
        Self::new("an answer", format!("{error:?}"))
    }
}

impl From<std::io::Error> for Wrong {
    fn from(error: std::io::Error) -> Self {
        Self::new("to reach what lies outside", format!("{error:?}"))
    }
}
