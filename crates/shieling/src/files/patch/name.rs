//! Parses file names in patches.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Returns the name at the beginning of a text, and the text after it. A name with special characters is quoted; one
/// without quotes extends to a tab or the end. Returns `None` if the quotes are malformed.
pub(super) fn first(text: &str) -> Option<(PathBuf, &str)> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find('\t').unwrap_or(text.len());
        return Some((PathBuf::from(&text[..end]), &text[end..]));
    };
    let mut name = Vec::new();
    let mut bytes = inner.bytes().enumerate();
    loop {
        let (at, byte) = bytes.next()?;
        match byte {
            b'"' => return Some((PathBuf::from(OsString::from_vec(name)), &inner[at + 1..])),
            b'\\' => name.push(match bytes.next()?.1 {
                b'a' => 0x07,
                b'b' => 0x08,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 0x0b,
                b'f' => 0x0c,
                b'r' => b'\r',
                quoted @ (b'"' | b'\\') => quoted,
                high @ b'0'..=b'3' => {
                    let mut digit = || {
                        bytes
                            .next()
                            .map(|(_, digit)| digit)
                            .filter(|digit| matches!(digit, b'0'..=b'7'))
                    };
                    (high - b'0') << 6 | (digit()? - b'0') << 3 | (digit()? - b'0')
                }
                _ => return None,
            }),
            plain => name.push(plain),
        }
    }
}

/// Returns both names of a `diff --git` line. Without quotes, they can only be separated if they are equal, with or
/// without a prefix up to the first slash.
pub(super) fn both(text: &str) -> Option<(PathBuf, PathBuf)> {
    if text.starts_with('"') {
        let (old, rest) = first(text)?;
        let (new, _) = first(rest.strip_prefix(' ')?)?;
        return Some((old, new));
    }
    if let Some((old, quoted)) = text.split_once(" \"") {
        let (new, _) = first(&text[text.len() - quoted.len() - 1..])?;
        return Some((PathBuf::from(old), new));
    }
    let behind = |name: &str| name.split_once('/').map(|(_, rest)| rest.to_owned());
    let halves = text.match_indices(' ').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let same = |(old, new): &(&str, &str)| old == new || (behind(old).is_some() && behind(old) == behind(new));
    halves
        .into_iter()
        .find(same)
        .map(|(old, new)| (PathBuf::from(old), PathBuf::from(new)))
}

/// Removes the prefixes that `git` adds: two different ones of these letters.
pub(super) fn bare(old: Option<PathBuf>, new: Option<PathBuf>) -> (Option<PathBuf>, Option<PathBuf>) {
    const SIDES: [&str; 6] = ["a", "b", "c", "i", "o", "w"];
    let side = |name: &PathBuf| {
        SIDES
            .into_iter()
            .find(|side| name.strip_prefix(side).is_ok_and(|rest| rest != ""))
    };
    let has_sides = match (&old, &new) {
        (Some(old), Some(new)) => matches!((side(old), side(new)), (Some(a), Some(b)) if a != b),
        (Some(only), None) | (None, Some(only)) => side(only).is_some(),
        (None, None) => false,
    };
    if !has_sides {
        return (old, new);
    }
    let strip = |name: Option<PathBuf>| name.map(|name| name.components().skip(1).collect());
    (strip(old), strip(new))
}
