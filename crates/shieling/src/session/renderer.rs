//! Draws one terminal on another one. The output of a program never reaches the other terminal: an emulator computes
//! the screen, and the renderer draws it with sequences of its own.
//!
//! A recording, or a job that a person looks at, therefore cannot set a title, fill the clipboard, send queries or
//! produce input, whatever the program writes.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::screen::Emulator;
use super::{Screen, TerminalSize};

/// Whether the keys that a person presses go to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTarget {
    /// They do not: the other terminal keeps its modes.
    Viewer,
    /// They do: the other terminal gets the program's modes for keys, pasting and the mouse.
    Program,
}

/// Draws a program's terminal on another one.
///
/// ```
/// use shieling::session::{KeyTarget, Renderer, TerminalSize};
///
/// let mut renderer = Renderer::new(TerminalSize::default(), KeyTarget::Viewer);
/// renderer.output(b"\x1b]0;a title\x07\x1b[6nhello");
/// let drawn = String::from_utf8_lossy(&renderer.render()).into_owned();
/// assert!(drawn.contains("hello") && !drawn.contains("a title") && !drawn.contains("[6n"));
/// ```
pub struct Renderer {
    emulator: Emulator,
    keys: KeyTarget,
    /// The contents of the other terminal; `None` if they are unknown.
    drawn: Option<vt100::Screen>,
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer")
            .field("emulator", &self.emulator)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Renderer {
    /// Prepares the other terminal, whose present contents are saved.
    pub const ENTER: &str = "\x1b[?1049h\x1b[m\x1b[H\x1b[2J";

    /// Restores the contents, the cursor and the modes of the other terminal.
    pub const LEAVE: &str = "\x1b[m\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\
                             \x1b[?1006l\x1b[0 q\x1b[?25h\x1b[?1049l";

    /// Creates a renderer with an empty screen.
    pub fn new(size: TerminalSize, keys: KeyTarget) -> Self {
        Self {
            emulator: Emulator::new(size),
            keys,
            drawn: None,
        }
    }

    /// Processes output of the program.
    pub fn output(&mut self, bytes: &[u8]) {
        self.emulator.output(bytes);
        // The program's own terminal replies to queries; the other terminal must not.
        drop(self.emulator.replies());
    }

    /// Resizes the program's terminal.
    pub fn resize(&mut self, size: TerminalSize) {
        self.emulator.resize(size);
        self.drawn = None;
    }

    /// Returns the contents of the program's screen.
    pub fn screen(&self) -> Screen {
        self.emulator.screen()
    }

    /// Returns the sequences that bring the other terminal up to date.
    pub fn render(&mut self) -> Vec<u8> {
        let now = self.emulator.terminal();
        let draw = || match (&self.drawn, self.keys) {
            (Some(before), KeyTarget::Viewer) => now.contents_diff(before),
            (Some(before), KeyTarget::Program) => now.state_diff(before),
            (None, KeyTarget::Viewer) => now.contents_formatted(),
            (None, KeyTarget::Program) => now.state_formatted(),
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

    const SIZE: TerminalSize = TerminalSize { rows: 4, columns: 12 };

    /// What a terminal shows that was drawn on.
    fn seen(drawn: &[u8]) -> Screen {
        let mut other = Emulator::new(SIZE);
        other.output(drawn);
        other.screen()
    }

    #[test]
    fn what_is_drawn_looks_the_same_and_does_nothing_else() {
        let mut renderer = Renderer::new(SIZE, KeyTarget::Viewer);
        let mut all = Vec::new();
        for piece in [
            "one\r\n\x1b[31mtwo\x1b[m",
            "\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b[6n\x1b[c\x1b[?1000h\x1b[?2004h\x1b[21t\x1b[5i",
            "\x1bP+q544e\x1b\\\x1b_G\x1b\\\x05\x07\x1bc",
            "\x1b[?1049h\x1b[2;3Hvi 日本\x1b[?25l",
        ] {
            renderer.output(piece.as_bytes());
            all.extend(renderer.render());
        }
        let (there, here) = (seen(&all), renderer.screen());
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
        let mut renderer = Renderer::new(SIZE, KeyTarget::Program);
        renderer.output(b"\x1b[?1h\x1b[?2004h");
        let text = String::from_utf8(renderer.render()).expect("it is text");
        assert!(text.contains("\x1b[?1h") && text.contains("\x1b[?2004h"), "{text:?}");
        for mode in ["\x1b[?1l", "\x1b[?2004l", "\x1b[?1003l", "\x1b[?25h"] {
            assert!(Renderer::LEAVE.contains(mode), "{mode:?}");
        }
    }

    #[test]
    fn a_terminal_that_changes_its_size_is_drawn_anew() {
        let mut renderer = Renderer::new(TerminalSize { rows: 2, columns: 5 }, KeyTarget::Viewer);
        renderer.output(b"hello");
        drop(renderer.render());
        renderer.resize(SIZE);
        renderer.output(b" you");
        assert_eq!(seen(&renderer.render()).text, "hello you");
    }

    proptest! {
        #[test]
        fn only_what_is_to_be_seen_is_drawn(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 1..10)
        ) {
            let mut renderer = Renderer::new(SIZE, KeyTarget::Viewer);
            for piece in &pieces {
                renderer.output(piece);
                let drawn = String::from_utf8(renderer.render()).expect("it is text");
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
