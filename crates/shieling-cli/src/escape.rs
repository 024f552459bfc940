//! Text of strangers, made safe to look at.
//!
//! A command may hold terminal escapes that repaint the screen, bidirectional controls that show
//! its parts in another order, and characters that do not show at all. Before anybody is shown a
//! command, those become visible: `\x1b`, `\u{202e}`. What is shown is never fed to a shell.

use std::fmt::Write as _;

use shieling::policy::Span;

/// A text with its deceptive characters made visible, and the way from the old bytes to the new.
#[derive(Debug)]
pub(crate) struct Escaped {
    /// The visible text. Newlines and tabs stay.
    pub(crate) text: String,
    /// For each character that grew: where it ended in the old text, and in the new one.
    shifts: Vec<(usize, usize)>,
    /// The old text's length.
    length: usize,
}

impl Escaped {
    /// Escapes `text`, keeping newlines and tabs.
    pub(crate) fn new(text: &str) -> Self {
        let mut new = String::with_capacity(text.len());
        let mut shifts = Vec::new();
        for (at, c) in text.char_indices() {
            if deceives(c) && !matches!(c, '\n' | '\t') {
                shifts.push((at, new.len()));
                push(&mut new, c);
                shifts.push((at + c.len_utf8(), new.len()));
            } else {
                new.push(c);
            }
        }
        Self {
            text: new,
            shifts,
            length: text.len(),
        }
    }

    /// Where a stretch of the old text stands in the new one. What lies outside is drawn in.
    pub(crate) fn span(&self, span: Span) -> Span {
        let start = self.position(span.start);
        Span::new(start, self.position(span.end).max(start))
    }

    fn position(&self, old: usize) -> usize {
        let old = old.min(self.length);
        let index = self.shifts.partition_point(|(from, _)| *from <= old);
        let (from, to) = match index {
            0 => (0, 0),
            index => self.shifts[index - 1],
        };
        let mut at = (to + (old - from)).min(self.text.len());
        // A span may start inside a character, or inside one that grew; a drawing cannot.
        if let Some((_, next)) = self.shifts.get(index) {
            at = at.min(*next);
        }
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// The text on one line, newlines and tabs escaped too.
pub(crate) fn line(text: &str) -> String {
    let mut new = String::with_capacity(text.len());
    for c in text.chars() {
        if deceives(c) { push(&mut new, c) } else { new.push(c) }
    }
    new
}

/// The text on one line, at most `limit` characters of it, for a headline.
pub(crate) fn headline(text: &str, limit: usize) -> String {
    let visible = line(text);
    match visible.char_indices().nth(limit) {
        None => visible,
        Some((end, _)) => format!("{}…", &visible[..end]),
    }
}

fn push(new: &mut String, c: char) {
    match c {
        '\n' => new.push_str("\\n"),
        '\t' => new.push_str("\\t"),
        '\r' => new.push_str("\\r"),
        // Writing to a string cannot fail.
        c if (c as u32) < 0x80 => {
            let _ = write!(new, "\\x{:02x}", c as u32);
        }
        c => {
            let _ = write!(new, "\\u{{{:x}}}", c as u32);
        }
    }
}

/// Whether a character acts on a terminal, reorders its neighbours, does not show, or passes for a
/// blank that is none.
fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deceptive_characters_become_visible() {
        for (text, visible) in [
            ("ls -la", "ls -la"),
            ("echo é 日本", "echo é 日本"),
            ("a\x1b[2Jb", "a\\x1b[2Jb"),
            ("a\rb\x07\x7f", "a\\rb\\x07\\x7f"),
            ("rm \u{202e}txt", "rm \\u{202e}txt"),
            ("a\u{200b}b\u{a0}c\u{e0041}", "a\\u{200b}b\\u{a0}c\\u{e0041}"),
            ("a\u{9b}31m", "a\\u{9b}31m"),
        ] {
            assert_eq!(Escaped::new(text).text, visible);
            assert_eq!(line(text), visible);
        }
        assert_eq!(line("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(Escaped::new("a\nb\tc").text, "a\nb\tc");
    }

    #[test]
    fn spans_follow_their_text() {
        let text = "é\x1b[1m && rm \u{202e}x; ls";
        let escaped = Escaped::new(text);
        for part in ["é", "\x1b", "[1m", "rm", "\u{202e}", "x", "; ls"] {
            let start = text.find(part).unwrap();
            let span = escaped.span(Span::new(start, start + part.len()));
            assert_eq!(&escaped.text[span.start..span.end], line(part), "{part:?}");
        }
    }

    #[test]
    fn a_span_that_cuts_or_leaves_the_text_is_drawn_in() {
        let text = "é\u{202e}x";
        let escaped = Escaped::new(text);
        for start in 0..12 {
            for end in 0..12 {
                let span = escaped.span(Span::new(start, end));
                assert!(escaped.text.get(span.start..span.end).is_some(), "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_headline_has_a_bound() {
        assert_eq!(headline("abc", 3), "abc");
        assert_eq!(headline("abcd", 3), "abc…");
        assert_eq!(headline("日本語x", 3), "日本語…");
    }
}
