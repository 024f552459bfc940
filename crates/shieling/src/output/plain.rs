//! Converts terminal output to plain text: the final text, without the sequences that produced it.

/// Converts `text` to what it would look like when printed.
///
/// Escape sequences (CSI, OSC and other strings, single ones) are removed. A carriage return lets the rest of its
/// line overwrite the beginning, so that a progress bar becomes its last state; `\r\n` is a line end and is kept.
/// Backspaces move back. Tabs and line feeds are kept; other control characters are shown as `\x07`, since they may
/// change what a terminal or a reader sees.
///
/// The result is at most four times as long as the text.
pub fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut line = Line::default();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                line.flush(&mut plain);
                plain.push('\n');
            }
            '\r' => {
                let mut returns = 1;
                while chars.next_if_eq(&'\r').is_some() {
                    returns += 1;
                }
                if chars.peek() == Some(&'\n') {
                    line.flush(&mut plain);
                    // `\r\n` ended the line; further carriage returns had no effect.
                    plain.push('\r');
                } else if returns > 0 {
                    line.at = 0;
                }
            }
            '\u{8}' => line.at = line.at.saturating_sub(1),
            '\u{1b}' => escape(&mut chars, &mut line),
            '\u{9b}' => control_sequence(&mut chars, &mut line),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => string(&mut chars),
            '\t' => line.put(c),
            c if c.is_control() => {
                for shown in format!("\\x{:02x}", u32::from(c)).chars() {
                    line.put(shown);
                }
            }
            c => line.put(c),
        }
    }
    line.flush(&mut plain);
    plain
}

/// The current line, and the position in it.
#[derive(Default)]
struct Line {
    chars: Vec<char>,
    at: usize,
}

impl Line {
    fn put(&mut self, c: char) {
        match self.chars.get_mut(self.at) {
            Some(place) => *place = c,
            None => self.chars.push(c),
        }
        self.at += 1;
    }

    fn flush(&mut self, to: &mut String) {
        to.extend(self.chars.drain(..));
        self.at = 0;
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Processes what follows an ESC.
fn escape(chars: &mut Chars<'_>, line: &mut Line) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            control_sequence(chars, line);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            string(chars);
        }
        // Intermediates and one final byte, such as the choice of a character set.
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Processes parameters, intermediates and a final byte. An incomplete sequence ends where it breaks off.
fn control_sequence(chars: &mut Chars<'_>, line: &mut Line) {
    let mut parameters = String::new();
    while let Some(c) = chars.next_if(|c| matches!(c, ' '..='?')) {
        parameters.push(c);
    }
    match (chars.next_if(|c| matches!(c, '@'..='~')), parameters.as_str()) {
        // Progress bars erase the rest of the line, or all of it, to clean up.
        (Some('K'), "" | "0") => line.chars.truncate(line.at),
        (Some('K'), "2") => {
            let at = line.at;
            line.chars.clear();
            line.chars.resize(at, ' ');
        }
        // To the first column.
        (Some('G'), "" | "0" | "1") => line.at = 0,
        _ => {}
    }
}

/// Skips a string up to BEL or ST, or up to the line end if it is not terminated.
fn string(chars: &mut Chars<'_>) {
    while let Some(&c) = chars.peek() {
        match c {
            '\n' => return,
            '\u{7}' | '\u{9c}' => {
                chars.next();
                return;
            }
            '\u{1b}' => {
                chars.next();
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {
                chars.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminal_output_reads_as_it_was_last_seen() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            (
                "\u{1b}[1;31mred\u{1b}[0m and \u{1b}[38;2;1;2;3mtrue\u{1b}[m",
                "red and true",
            ),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;https://example.org\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Btext\u{1b}=\u{1b}>", "text"),
            ("\u{9b}31mred", "red"),
            (" 10%\r 50%\r100%\n", "100%\n"),
            ("long state\rshort\n", "shortstate\n"),
            ("long state\r\u{1b}[Kshort\n", "short\n"),
            ("busy\u{1b}[2K\rdone", "done"),
            ("one\r\ntwo\r\n", "one\r\ntwo\r\n"),
            ("one\r\r\n", "one\r\n"),
            ("abc\u{8}\u{8}X", "aXc"),
            ("bell\u{7} nul\0", "bell\\x07 nul\\x00"),
            ("broken \u{1b}[12", "broken "),
            ("broken \u{1b}]0;never closed\nnext", "broken \nnext"),
            ("ends with \u{1b}", "ends with "),
            ("déjà \u{1b}[1mvu\u{1b}[0m ✓", "déjà vu ✓"),
        ];
        for (raw, plain) in cases {
            assert_eq!(plain_text(raw), plain, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn plain_text_controls_no_terminal(text in "[\\x00-\\x1f\\x7f-\\x9f a-c\\[\\];0-9é]{0,60}") {
            let plain = plain_text(&text);
            prop_assert!(plain.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t')), "{plain:?}");
            prop_assert!(plain.len() <= 4 * text.len());
        }
    }
}
