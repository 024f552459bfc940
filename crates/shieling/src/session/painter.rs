//! Shows one terminal on another. What a program wrote never reaches the other terminal: its screen is
//! computed, and only what is to be seen of it is drawn there, in sequences that are made here.
//!
//! So a recording, or a job that a person looks at, can set no title, fill no clipboard, ask no
//! question and type nothing, whatever it writes.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::screen::Emulator;
use super::{Screen, Size};

/// Whether keys that a person presses go to the program that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyboard {
    /// They do not: the other terminal keeps its modes.
    Ours,
    /// They do: the other terminal gets the program's modes for keys, pasting and the mouse.
    Theirs,
}

/// A terminal to be shown on another one.
///
/// ```
/// use shieling::session::{Keyboard, Painter, Size};
///
/// let mut painter = Painter::new(Size::default(), Keyboard::Ours);
/// painter.output(b"\x1b]0;a title\x07\x1b[6nhello");
/// let drawn = String::from_utf8_lossy(&painter.paint()).into_owned();
/// assert!(drawn.contains("hello") && !drawn.contains("a title") && !drawn.contains("[6n"));
/// ```
pub struct Painter {
    emulator: Emulator,
    keyboard: Keyboard,
    /// What stands on the other terminal; none if nobody knows.
    drawn: Option<vt100::Screen>,
}

impl fmt::Debug for Painter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Painter")
            .field("emulator", &self.emulator)
            .field("keyboard", &self.keyboard)
            .finish_non_exhaustive()
    }
}

impl Painter {
    /// What makes the other terminal ready: its own lines are kept aside meanwhile.
    pub const ENTER: &str = "\x1b[?1049h\x1b[m\x1b[H\x1b[2J";

    /// What gives the other terminal back: its lines, its cursor, and its modes.
    pub const LEAVE: &str = "\x1b[m\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\
                             \x1b[?1006l\x1b[0 q\x1b[?25h\x1b[?1049l";

    /// A terminal of this size, empty.
    pub fn new(size: Size, keyboard: Keyboard) -> Self {
        Self {
            emulator: Emulator::new(size),
            keyboard,
            drawn: None,
        }
    }

    /// Its program wrote this.
    pub fn output(&mut self, bytes: &[u8]) {
        self.emulator.output(bytes);
        // Whoever asks is answered by its own terminal, not by the one that it is shown on.
        drop(self.emulator.replies());
    }

    /// It has this size now.
    pub fn resize(&mut self, size: Size) {
        self.emulator.resize(size);
        self.drawn = None;
    }

    /// What is to be seen.
    pub fn screen(&self) -> Screen {
        self.emulator.screen()
    }

    /// What draws on the other terminal what has changed since the last time.
    pub fn paint(&mut self) -> Vec<u8> {
        let now = self.emulator.terminal();
        let draw = || match (&self.drawn, self.keyboard) {
            (Some(before), Keyboard::Ours) => now.contents_diff(before),
            (Some(before), Keyboard::Theirs) => now.state_diff(before),
            (None, Keyboard::Ours) => now.contents_formatted(),
            (None, Keyboard::Theirs) => now.state_formatted(),
        };
        match catch_unwind(AssertUnwindSafe(draw)) {
            Ok(drawn) => {
                self.drawn = Some(now.clone());
                drawn.into_bytes()
            }
            Err(_) => {
                self.drawn = None;
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: Size = Size { rows: 4, columns: 12 };

    /// What a terminal shows that was drawn on.
    fn seen(drawn: &[u8]) -> Screen {
        let mut other = Emulator::new(SIZE);
        other.output(drawn);
        other.screen()
    }

    #[test]
    fn what_is_drawn_looks_the_same_and_does_nothing_else() {
        let mut painter = Painter::new(SIZE, Keyboard::Ours);
        let mut all = Vec::new();
        for piece in [
            "one\r\n\x1b[31mtwo\x1b[m",
            "\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b[6n\x1b[c\x1b[?1000h\x1b[?2004h\x1b[21t\x1b[5i",
            "\x1bP+q544e\x1b\\\x1b_G\x1b\\\x05\x07\x1bc",
            "\x1b[?1049h\x1b[2;3Hvi 日本\x1b[?25l",
        ] {
            painter.output(piece.as_bytes());
            all.extend(painter.paint());
        }
        let (there, here) = (seen(&all), painter.screen());
        assert_eq!((there.text, there.cursor), (here.text, here.cursor));
        let text = String::from_utf8(all).expect("it is text");
        for effect in [
            "\x1b]", "\x1bP", "\x1b_", "\x07", "\x05", "\x1bc", "[6n", "[c", "1000", "2004", "1049",
        ] {
            assert!(!text.contains(effect), "{effect:?} in {text:?}");
        }
    }

    #[test]
    fn a_program_that_gets_the_keys_gets_its_modes() {
        let mut painter = Painter::new(SIZE, Keyboard::Theirs);
        painter.output(b"\x1b[?1h\x1b[?2004h");
        let text = String::from_utf8(painter.paint()).expect("it is text");
        assert!(text.contains("\x1b[?1h") && text.contains("\x1b[?2004h"), "{text:?}");
        for mode in ["\x1b[?1l", "\x1b[?2004l", "\x1b[?1003l", "\x1b[?25h"] {
            assert!(Painter::LEAVE.contains(mode), "{mode:?}");
        }
    }

    #[test]
    fn a_terminal_that_changes_its_size_is_drawn_anew() {
        let mut painter = Painter::new(Size { rows: 2, columns: 5 }, Keyboard::Ours);
        painter.output(b"hello");
        drop(painter.paint());
        painter.resize(SIZE);
        painter.output(b" you");
        assert_eq!(seen(&painter.paint()).text, "hello you");
    }

    proptest! {
        #[test]
        fn only_what_is_to_be_seen_is_drawn(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..10)
        ) {
            let mut painter = Painter::new(SIZE, Keyboard::Ours);
            for piece in &pieces {
                painter.output(piece);
                let drawn = String::from_utf8(painter.paint()).expect("it is text");
                let mut rest = drawn.as_str();
                while let Some(at) = rest.find('\x1b') {
                    // Saving where the cursor is, and going back there.
                    if let Some(after) = rest[at + 1..].strip_prefix(['7', '8']) {
                        rest = after;
                        continue;
                    }
                    let after = rest[at + 1..].strip_prefix('[');
                    prop_assert!(after.is_some(), "{:?}", drawn);
                    let after = after.unwrap_or_default();
                    let last = after.find(|c: char| ('@'..='~').contains(&c));
                    let last = last.map(|at| &after[at..=at]).unwrap_or_default();
                    let drawing = !last.is_empty() && "ABCDHJKXmhl".contains(last);
                    prop_assert!(drawing, "{:?}", drawn);
                    rest = after;
                }
                let acts = drawn.contains(|c: char| c.is_control() && !matches!(c, '\x1b' | '\r' | '\n' | '\x08'));
                prop_assert!(!acts, "{:?}", drawn);
            }
        }
    }
}
