//! Words written so that a shell reads back exactly them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;

use crate::screen::escaped;

// Not `shlex`: it writes `time` and `%1` bare, which a shell reads as its grammar and as a job.
/// One word. Bare where no shell sees anything but the word itself, otherwise in single quotes, in
/// which a shell reads nothing but the closing quote.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | ',' | '+' | '@' | '%');
    if !word.is_empty() && word.chars().all(plain) && !is_reserved(word) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Words that a shell takes for its grammar, or for job control, where a command stands.
fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "case"
            | "coproc"
            | "do"
            | "done"
            | "elif"
            | "else"
            | "esac"
            | "fi"
            | "for"
            | "function"
            | "if"
            | "in"
            | "select"
            | "then"
            | "time"
            | "until"
            | "while"
    ) || word.starts_with('%')
}

/// A name as one word that can be printed and pasted: what a terminal would not show, and bytes that are no UTF-8, stand
/// as escapes of `$'…'`, which bash and zsh read.
pub fn quoted_name(name: &OsStr) -> String {
    if let Some(text) = name.to_str()
        && !text.contains(char::is_control)
        && escaped(text) == text
    {
        return quoted(text).into_owned();
    }
    let mut word = String::from("$'");
    for byte in name.as_encoded_bytes() {
        match byte {
            b'\'' | b'\\' => {
                word.push('\\');
                word.push(char::from(*byte));
            }
            b' '..=b'~' => word.push(char::from(*byte)),
            // Two digits, behind which any character is one of its own.
            _ => {
                let _ = write!(word, "\\x{byte:02x}");
            }
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "bash itself is the judge of what it reads")]
    fn bash_reads_back_every_name_and_nothing_of_it_is_concealed() {
        for name in [
            &b"plain/name"[..],
            b"a b",
            b"docs;touch PWNED;#/.envrc",
            b"$(touch PWNED)/x",
            b"it's",
            b"a\xffb1",
            b"new\nline\x1b[31m",
            "a\u{202e}txt.sh".as_bytes(),
            b"back\\slash\x01'",
            "\u{e9}t\u{e9}".as_bytes(),
        ] {
            let word = quoted_name(OsStr::from_bytes(name));
            assert_eq!(escaped(&word), word);
            assert!(!word.contains(char::is_control), "{word}");
            let text = format!("printf %s {word}");
            let output = std::process::Command::new("bash").args(["-c", &text]).output().unwrap();
            assert_eq!(
                std::ffi::OsString::from_vec(output.stdout),
                OsStr::from_bytes(name),
                "{word}"
            );
        }
    }
}
