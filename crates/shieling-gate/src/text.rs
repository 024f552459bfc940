//! Small questions about bytes and names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The longest piece of a tree's text in a message, in characters.
const LONGEST: usize = 120;

/// Bytes from the tree as they stand in a message: bounded, without control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut chars = text.chars();
    let mut shown = String::new();
    for char in chars.by_ref().take(LONGEST) {
        match is_control(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// As [`shown`], of a path.
pub(crate) fn shown_path(path: &Path) -> String {
    shown(path.as_os_str().as_bytes())
}

/// Whether a name changes how text is shown.
pub(crate) fn is_controlled(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) && String::from_utf8_lossy(bytes).chars().any(is_control)
}

/// Whether a character changes how text is shown: control characters, and those that reverse its direction.
fn is_control(char: char) -> bool {
    char.is_control() || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a word can name no path and no option: letters, digits, `_`, `-`, `.` and `+`, beginning with a letter or digit.
pub(crate) fn is_plain_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "_-.+".contains(char))
}

/// Whether a word is a version, several of them, or an alias of one (`lts/*`, `3.12.1`, `^1.2`), and no path.
pub(crate) fn is_version(text: &str) -> bool {
    let text = text.strip_prefix("lts/").unwrap_or(text);
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || " _-.+*^~=,@".contains(char);
    !text.is_empty() && !text.starts_with(['-', '.']) && !text.contains("..") && text.chars().all(is_allowed)
}
