//! The names of sessions and jobs. Callers choose them, so they are validated on entry, and never become part of a
//! path.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// An invalid name of a session or job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot name a {what}: 1 to {LONGEST} letters, digits, `.`, `_` and `-`, of which the first is a letter or digit", escaped(.text))]
pub struct IdError {
    what: &'static str,
    text: String,
}

/// Escapes and shortens an invalid name for display.
fn escaped(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_default).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

fn checked(what: &'static str, text: &str) -> Result<String, IdError> {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if first && rest && text.len() <= LONGEST {
        Ok(text.to_owned())
    } else {
        Err(IdError {
            what,
            text: text.to_owned(),
        })
    }
}

/// The name of a session: 1 to 64 letters, digits, `.`, `_` and `-`, of which the first is a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionName(String);

/// The name of a job: `j1`, `j2`, …, or one that the caller chose, in the form of a [`SessionName`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct JobId(String);

impl Default for SessionName {
    /// Returns `main`.
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl JobId {
    /// Returns the default name of the job with this number.
    pub fn numbered(number: u64) -> Self {
        Self(format!("j{number}"))
    }
}

impl FromStr for SessionName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        checked("session", text).map(Self)
    }
}

impl FromStr for JobId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        checked("job", text).map(Self)
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_no_paths() {
        for good in ["main", "a", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(
                good.parse::<SessionName>().map(|name| name.to_string()).as_deref(),
                Ok(good)
            );
        }
        for bad in [
            "",
            ".",
            "..",
            "../../evil",
            "a/b",
            "-x",
            "_x",
            "a b",
            "a\n",
            "é",
            &"x".repeat(65),
        ] {
            let error = bad.parse::<JobId>().expect_err(bad).to_string();
            assert!(error.contains("cannot name a job") && !error.contains('\n'), "{error}");
        }
    }
}
