//! Makes untrusted text safe to display: characters that would repaint a screen, reorder text or be invisible are
//! escaped. The result is never passed to a shell.

use std::fmt::Write as _;

/// Escapes such characters as `\x1b` and `\u{202e}`. Newlines and tabs are kept.
pub(crate) fn visible(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes a text, joins its lines, and cuts it to `limit` characters.
pub(crate) fn line(text: &str, limit: usize) -> String {
    let shown = escaped(text, |_| false);
    match shown.char_indices().nth(limit) {
        Some((cut, _)) => format!("{}…", &shown[..cut]),
        None => shown,
    }
}

/// Cuts the middle out of a text of more than `limit` characters. A line gives the number of missing characters.
pub(crate) fn within(text: &str, limit: usize) -> String {
    let shown = visible(text);
    let count = shown.chars().count();
    if count <= limit {
        return shown;
    }
    let half = limit / 2;
    let head: String = shown.chars().take(half).collect();
    let tail: String = shown.chars().skip(count - half).collect();
    format!("{head}\n[… {} characters are not shown …]\n{tail}", count - 2 * half)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut new = String::with_capacity(text.len());
    for c in text.chars() {
        if !deceives(c) || stays(c) {
            new.push(c);
        } else if c.is_ascii() {
            // Writing to a String cannot fail.
            let _ = write!(new, "\\x{:02x}", u32::from(c));
        } else {
            let _ = write!(new, "\\u{{{:x}}}", u32::from(c));
        }
    }
    new
}

fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_becomes_visible() {
        assert_eq!(visible("a\u{1b}[2K\u{202e}b\n"), "a\\x1b[2K\\u{202e}b\n");
        assert_eq!(line("a\nb", 10), "a\\x0ab");
        assert_eq!(line("abcdef", 3), "abc…");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(within("abcdef", 6), "abcdef");
        assert_eq!(within("abcdefgh", 4), "ab\n[… 4 characters are not shown …]\ngh");
    }
}
