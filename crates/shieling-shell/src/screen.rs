//! Checks before parsing: size, nesting, and characters that conceal text.

use crate::span::Span;

/// The longest text that is parsed.
const MAX_TEXT: usize = 256 * 1024;
/// How deeply a text may nest.
const MAX_NESTING: usize = 100;

/// The reason why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The offending part; the whole text if it exceeds a limit.
    pub span: Span,
    /// Why, as a fact.
    pub because: String,
}

impl Unreadable {
    pub(crate) fn whole(text: &str, because: impl Into<String>) -> Self {
        Self {
            span: Span::new(0, text.len()),
            because: because.into(),
        }
    }
}

/// Refuses texts that must not be parsed.
pub(crate) fn screen(text: &str) -> Result<(), Unreadable> {
    if text.len() > MAX_TEXT {
        return Err(Unreadable::whole(
            text,
            format!("it is {} bytes long; more than {MAX_TEXT} are not read", text.len()),
        ));
    }
    for (at, character) in text.char_indices() {
        if let Some(because) = concealing(character) {
            return Err(Unreadable {
                span: Span::new(at, at + character.len_utf8()),
                because: because.to_owned(),
            });
        }
    }
    let depth = nesting(text);
    if depth > MAX_NESTING {
        return Err(Unreadable::whole(
            text,
            format!("it is nested about {depth} levels deep; the limit is {MAX_NESTING}"),
        ));
    }
    Ok(())
}

/// Returns why a character makes a text look different from what it is, if it does.
fn concealing(character: char) -> Option<&'static str> {
    match character {
        '\t' | '\n' => None,
        '\0' => Some("it holds a NUL byte, at which programs would cut it off"),
        '\r' => Some("it holds a carriage return, which a terminal shows as nothing and bash takes as part of a word"),
        '\u{1b}' | '\u{9b}' => Some("it holds a terminal escape sequence"),
        '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{80}'..='\u{9f}' => Some("it holds a control character"),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}' => {
            Some("it holds a bidirectional control, which makes it read otherwise than it runs")
        }
        '\u{2028}' | '\u{2029}' => Some("it holds a Unicode line separator, which is no line end to the shell"),
        _ => None,
    }
}

/// Tells whether a character is invisible, or looks like a blank without being one to the shell.
///
/// Such a character is harmless in data, but not in a word that decides what runs.
pub(crate) fn invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00a0}' | '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200d}' | '\u{202f}' | '\u{205f}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// An upper bound of how deeply the parser will recurse, counted without parsing.
///
/// Quotes are ignored, so that no reading of quotes can hide depth: brackets in a long quoted text
/// count as well, which matters only beyond a hundred of them that are never closed. Keywords count
/// where a command can start, so that prose in a here-document does not.
fn nesting(text: &str) -> usize {
    let (mut brackets, mut most_brackets) = (0_usize, 0_usize);
    let (mut keywords, mut most_keywords) = (0_usize, 0_usize);
    let mut command_position = true;
    // Words behind which a command may stand that is not the next word: `function f case …`.
    let mut grace = 0_usize;
    let mut word_start = None;
    for (at, byte) in text.bytes().chain(std::iter::once(b'\n')).enumerate() {
        match byte {
            b'(' | b'{' | b'[' => {
                brackets += 1;
                most_brackets = most_brackets.max(brackets);
            }
            b')' | b'}' | b']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        let ends_word = matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'`');
        if !ends_word {
            word_start.get_or_insert(at);
            continue;
        }
        if let Some(start) = word_start.take() {
            let word = text.get(start..at).unwrap_or_default();
            let in_position = command_position || grace > 0;
            grace = grace.saturating_sub(1);
            command_position = in_position
                && match word {
                    "if" | "while" | "until" | "for" | "case" | "select" => {
                        keywords += 1;
                        most_keywords = most_keywords.max(keywords);
                        !matches!(word, "for" | "case" | "select")
                    }
                    "then" | "do" | "else" | "elif" | "!" | "{" => true,
                    "function" | "coproc" | "time" => {
                        grace = 2;
                        true
                    }
                    "fi" | "done" | "esac" => {
                        keywords = keywords.saturating_sub(1);
                        true
                    }
                    _ => false,
                };
        }
        if !matches!(byte, b' ' | b'\t') {
            command_position = true;
        }
    }
    most_brackets + most_keywords
}

/// Returns the text with invisible and control characters escaped.
pub fn escaped(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n')) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if concealing(character).is_some() || (character != ' ' && invisible(character)) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}
