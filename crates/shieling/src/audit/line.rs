//! Encodes a record as one line, in which no character can move a cursor, or hide or reverse text.

use std::fmt::Write as _;

use serde::Serialize;

use super::{LogHead, Record};
use crate::request::Digest;

/// Separates the content of a line from its checksum.
const CHECK: &str = ",\"check\":\"";

#[derive(Serialize)]
struct Numbered<'a> {
    seq: u64,
    prev: Digest,
    #[serde(flatten)]
    record: &'a Record,
}

/// Encodes a record without a newline.
///
/// `prev` is the digest of the whole line before, which forms the chain. `check` is the digest of this line up to the
/// checksum. It does not stop an attacker, who can recompute it, but lets [`verify`](super::verify) name the line
/// that was edited, which `prev` alone cannot.
pub(super) fn encode(record: &Record, seq: u64, prev: Digest) -> serde_json::Result<String> {
    let mut line = escape(&serde_json::to_string(&Numbered { seq, prev, record })?);
    let closing = line.pop();
    debug_assert_eq!(closing, Some('}'), "a struct is a JSON object");
    let check = Digest::of(line.as_bytes());
    line.push_str(CHECK);
    write!(line, "{check}\"}}").expect("writing to a string cannot fail");
    Ok(line)
}

/// Returns whether the checksum of a line matches its content.
pub(super) fn is_intact(line: &str) -> bool {
    line.rsplit_once(CHECK).is_some_and(|(content, rest)| {
        rest.strip_suffix("\"}") == Some(Digest::of(content.as_bytes()).to_string().as_str())
    })
}

/// The position of a line in the chain.
pub(super) struct Link {
    pub(super) seq: u64,
    pub(super) prev: String,
    pub(super) time: String,
}

/// Reads the position of a line; `None` if it is not a record.
pub(super) fn link(line: &str) -> Option<Link> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(Link {
        seq: value.get("seq")?.as_u64()?,
        prev: value.get("prev")?.as_str()?.to_owned(),
        time: value.get("time")?.as_str()?.to_owned(),
    })
}

/// Returns the head of a log that ends with this line.
pub(super) fn head(line: &str, seq: u64) -> LogHead {
    LogHead {
        seq,
        digest: Digest::of(line.as_bytes()),
    }
}

/// Escapes characters in JSON text that could deceive a terminal or a reader as `\uXXXX`. The meaning does not
/// change, since such characters occur only in strings.
///
/// JSON requires this for the C0 controls only. Also escaped are DEL, the C1 controls (which a terminal may obey),
/// line and paragraph separators, characters that change the direction of text or are invisible, and tag characters,
/// in which text can hide.
pub fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if is_deceptive(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_deceptive(character: char) -> bool {
    matches!(
        character,
        '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
