//! A terminal emulator that computes the screen of a program from its output. It keeps no scrollback and has no side
//! effects: no bell, no clipboard, no files.
//!
//! The output is untrusted. The emulator takes a bounded amount of memory (32 bytes for each of at most 500 × 1000
//! cells, twice because of the alternate screen), and if it panics, the screen becomes blank and the job goes on.
//! Four bytes of output can clear the screen, which takes 3 µs for 24 × 80 cells and 1 ms for the largest screen.
//! Callers with other work to do should therefore pass the output in small pieces.

use std::fmt;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::keys::KeyMode;
use super::{Screen, TerminalSize};

/// The longest title, in characters.
const TITLE: usize = 200;

/// The largest size of pending replies, in bytes. A program that sends more queries does not read the replies.
const REPLIES: usize = 4 * 1024;

/// A terminal that consists of a screen only.
pub(crate) struct Emulator {
    parser: vt100::Parser<TerminalState>,
    size: TerminalSize,
    repeat: RepeatLimiter,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// Creates an empty screen. A size outside of the bounds of [`TerminalSize`] is clamped.
    pub(crate) fn new(size: TerminalSize) -> Self {
        let size = size.clamped();
        Self {
            parser: parser(size),
            size,
            repeat: RepeatLimiter::default(),
        }
    }

    /// Processes output of the program.
    pub(crate) fn output(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (piece, rest, instead) = self.repeat.next(bytes, self.size.columns);
            self.feed(piece);
            if let Some(instead) = instead {
                self.feed(instead.as_bytes());
            }
            bytes = rest;
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.process(bytes))).is_err() {
            self.reset();
        }
    }

    fn reset(&mut self) {
        self.parser = parser(self.size);
        self.parser
            .process(b"[the screen could not be computed any further and begins anew here]\r\n");
    }

    /// Resizes the screen. A size outside of the bounds of [`TerminalSize`] is clamped.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.size = size.clamped();
        let (rows, columns) = lengths(self.size);
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.set_size(rows, columns))).is_err() {
            self.reset();
        }
    }

    /// Returns the contents of the screen.
    pub(crate) fn screen(&self) -> Screen {
        let screen = self.parser.screen();
        let lines = || -> Vec<String> {
            screen
                .rows(0, self.size.columns)
                .map(|line| line.trim_end().to_owned())
                .collect()
        };
        let mut lines = catch_unwind(AssertUnwindSafe(lines)).unwrap_or_default();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        Screen {
            size: self.size,
            text: lines.join("\n"),
            cursor: (!screen.hide_cursor()).then(|| {
                let (row, column) = cursor(screen);
                (row, column.min(self.size.columns - 1))
            }),
            alternate: screen.alternate_screen(),
            title: self.parser.callbacks().title.clone(),
        }
    }

    /// Returns the emulator's full state, for a renderer.
    pub(super) fn terminal(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Returns the sequences that reproduce this screen on another terminal, whatever that shows.
    pub(crate) fn drawn(&self) -> Vec<u8> {
        let screen = self.parser.screen();
        let which = if screen.alternate_screen() { "\x1b[?1049h" } else { "" };
        let drawn = catch_unwind(AssertUnwindSafe(|| screen.state_formatted()));
        format!("\x1bc{which}{}", drawn.unwrap_or_default()).into_bytes()
    }

    /// Returns the modes for the encoding of keys.
    pub(crate) fn mode(&self) -> KeyMode {
        let screen = self.parser.screen();
        KeyMode {
            terminal: true,
            cursor: screen.application_cursor(),
            keypad: screen.application_keypad(),
        }
    }

    /// Takes the pending replies to queries of the program.
    pub(crate) fn replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }
}

fn parser(size: TerminalSize) -> vt100::Parser<TerminalState> {
    let (rows, columns) = lengths(size);
    vt100::Parser::new_with_callbacks(rows, columns, 0, TerminalState::default())
}

fn lengths(size: TerminalSize) -> (NonZeroU16, NonZeroU16) {
    let length = |length| NonZeroU16::new(length).unwrap_or(NonZeroU16::MIN);
    // The emulator panics if a wide character does not fit into a line.
    (length(size.rows), length(size.columns.max(2)))
}

/// Returns the row and the column of the cursor. After a character in the last column it stays behind that character.
fn cursor(screen: &vt100::Screen) -> (u16, u16) {
    let ((row, column), (_, columns)) = (screen.cursor_position(), screen.size());
    (row, column.min(columns.get() - 1))
}

/// The state beside the screen: the title, and the replies of a plain terminal to the queries that programs wait for.
#[derive(Debug, Default)]
struct TerminalState {
    title: String,
    replies: Vec<u8>,
}

impl TerminalState {
    fn reply(&mut self, text: &str) {
        if self.replies.len() + text.len() <= REPLIES {
            self.replies.extend_from_slice(text.as_bytes());
        }
    }
}

impl vt100::Callbacks for TerminalState {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        let title = String::from_utf8_lossy(title);
        self.title = title.chars().filter(|c| !c.is_control()).take(TITLE).collect();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let parameter = parameters.first().and_then(|values| values.first()).copied();
        let parameter = parameter.unwrap_or_default();
        let (row, column) = cursor(screen);
        let (row, column) = (u32::from(row) + 1, u32::from(column) + 1);
        match (first, second, last, parameter) {
            // Device attributes: a VT100 with advanced video.
            (None, None, 'c', 0) => self.reply("\x1b[?1;2c"),
            (Some(b'>'), None, 'c', 0) => self.reply("\x1b[>0;0;0c"),
            // Device status, and the position of the cursor.
            (None, None, 'n', 5) => self.reply("\x1b[0n"),
            (None, None, 'n', 6) => self.reply(&format!("\x1b[{row};{column}R")),
            (Some(b'?'), None, 'n', 6) => self.reply(&format!("\x1b[?{row};{column};1R")),
            // Whether a mode is supported: it is not.
            (Some(b'?'), Some(b'$'), 'p', mode) => self.reply(&format!("\x1b[?{mode};0$y")),
            // The size in characters.
            (None, None, 't', 18) => {
                let (rows, columns) = screen.size();
                self.reply(&format!("\x1b[8;{rows};{columns}t"));
            }
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            // Foreground colour: light on dark.
            [b"10", b"?"] => self.reply("\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
            [b"11", b"?"] => self.reply("\x1b]11;rgb:0000/0000/0000\x1b\\"),
            _ => {}
        }
    }
}

/// Limits `ESC [ count b`, which repeats a character up to 65,535 times for ten bytes, to the length of a line.
/// Programs use it for no more, and a larger count would make the emulator work for seconds.
#[derive(Debug, Clone, Copy, Default)]
enum RepeatLimiter {
    #[default]
    Text,
    Escape,
    /// In a control sequence: the first parameter so far, and whether it is still being read.
    Sequence {
        count: u32,
        first: bool,
    },
}

impl RepeatLimiter {
    /// Splits the bytes into those to process as they are and the rest, with bytes to insert between them.
    fn next<'a>(&mut self, bytes: &'a [u8], columns: u16) -> (&'a [u8], &'a [u8], Option<String>) {
        for (at, &byte) in bytes.iter().enumerate() {
            *self = match (*self, byte) {
                (_, 0x1b) => Self::Escape,
                (Self::Escape, b'[') => Self::Sequence { count: 0, first: true },
                (Self::Sequence { count, first: true }, b'0'..=b'9') => Self::Sequence {
                    count: count.saturating_mul(10).saturating_add(u32::from(byte - b'0')),
                    first: true,
                },
                // CAN in place of the last byte of a sequence discards the sequence.
                (Self::Sequence { count, .. }, b'b') if count > u32::from(columns) => {
                    *self = Self::Text;
                    return (&bytes[..at], &bytes[at + 1..], Some(format!("\x18\x1b[{columns}b")));
                }
                (Self::Text | Self::Escape, _) | (Self::Sequence { .. }, 0x40..=0x7e | 0x18 | 0x1a) => Self::Text,
                (Self::Sequence { count, first }, byte) => Self::Sequence {
                    count,
                    // Control characters do not end a parameter.
                    first: first && byte < 0x20,
                },
            };
        }
        (bytes, &[], None)
    }
}

#[cfg(test)]
mod tests;
