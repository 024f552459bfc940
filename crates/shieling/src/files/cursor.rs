//! Cursors: where the next request continues after an incomplete response.
//!
//! A cursor is a path as text. Since file names need not be UTF-8, bytes that are not are written as `%` and two
//! digits, and `%` itself as `%25`; all other characters are literal.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use super::FilesError;

/// Formats a path as a cursor.
pub(super) fn written(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Parses a cursor into a relative path without `..`.
///
/// # Errors
/// [`FilesError::Argument`] if it is not a cursor.
pub(super) fn read(argument: &'static str, text: &str) -> Result<PathBuf, FilesError> {
    let wrong = || FilesError::Argument {
        argument,
        why: format!(
            "`{}` is no place to go on after; give `next` of the answer before as it is",
            brief(text)
        ),
    };
    let path = PathBuf::from(OsString::from_vec(bytes(text).ok_or_else(wrong)?));
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    if path.as_os_str().is_empty() || !path.components().all(normal) || raw(&path).contains(&0) {
        return Err(wrong());
    }
    Ok(path)
}

/// Parses a cursor into a file name.
///
/// # Errors
/// [`FilesError::Argument`] if it is not a cursor.
pub(super) fn read_name(argument: &'static str, text: &str) -> Result<OsString, FilesError> {
    let path = read(argument, text)?;
    if path.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Err(FilesError::Argument {
            argument,
            why: format!(
                "`{}` is a path; give `next` of the answer before, which is a name",
                brief(text)
            ),
        });
    }
    Ok(path.into_os_string())
}

/// Checks the requested number of results.
///
/// # Errors
/// [`FilesError::Argument`] for 0 and for more than `most`.
pub(super) fn bounded(argument: &'static str, asked: u64, most: u64) -> Result<u64, FilesError> {
    if (1..=most).contains(&asked) {
        return Ok(asked);
    }
    Err(FilesError::Argument {
        argument,
        why: format!("{asked} is not possible: from 1 to {most} can be had at once, and `next` says where to go on"),
    })
}

/// Returns the bytes of a path below the root of a walk.
pub(super) fn raw(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

/// Returns the beginning of a text, for a message.
pub(super) fn brief(text: &str) -> String {
    let mut brief: String = text.chars().take(60).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_name_comes_back_from_its_cursor(name in proptest::collection::vec(1_u8.., 1..40)) {
            prop_assume!(!name.contains(&b'/') && name != b"." && name != b"..");
            let read = read_name("after", &written(&name)).unwrap();
            prop_assert_eq!(read.as_encoded_bytes(), &name[..]);
        }

        #[test]
        fn no_text_that_a_model_makes_up_breaks_the_reading_of_cursors(text in ".{0,40}") {
            if let Ok(path) = read("after", &text) {
                prop_assert!(path.is_relative());
                prop_assert!(!path.components().any(|part| part == Component::ParentDir));
            }
        }
    }

    #[test]
    fn an_ordinary_path_is_its_own_cursor() {
        assert_eq!(written("src/größe.rs".as_bytes()), "src/größe.rs");
        assert_eq!(written(b"100%/\xff"), "100%25/%FF");
    }

    #[test]
    fn what_is_no_cursor_is_refused_with_what_would_be_right() {
        for text in ["", "/etc/passwd", "..", "a/../../b", "%", "%zz", "%+1", "a%00", "."] {
            let error = read("after", text).unwrap_err().to_string();
            assert!(
                error.starts_with("after: ") && error.contains("`next`"),
                "{text}: {error}"
            );
        }
        assert!(read_name("after", "a/b").unwrap_err().to_string().contains("is a path"));
    }

    #[test]
    fn a_number_of_results_that_cannot_be_had_is_refused_with_those_that_can() {
        assert_eq!(bounded("limit", 1, 10).unwrap(), 1);
        assert_eq!(bounded("limit", 10, 10).unwrap(), 10);
        for asked in [0, 11, u64::MAX] {
            let error = bounded("limit", asked, 10).unwrap_err().to_string();
            assert!(error.contains("from 1 to 10"), "{error}");
        }
    }
}
