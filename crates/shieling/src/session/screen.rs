//! What stands on a terminal's screen, computed from what a program wrote. Keeps the screen and nothing
//! that scrolled off it; never acts on what it reads: no bell, no clipboard, no file.
//!
//! Its input is hostile. It takes a bounded amount of memory (32 bytes for each of at most 500 × 1000
//! cells, twice, since there is an alternate screen), and a fault of the emulator blanks the screen
//! instead of ending the job. Clearing a screen takes four bytes of input and time for each cell: 3 µs
//! for 24 × 80, 1 ms for the largest. So whoever has other things to do feeds it in small pieces.

use std::fmt;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::keys::Mode;
use super::{Screen, Size};

/// The longest title, in characters.
const TITLE: usize = 200;

/// How much of answers is kept until somebody takes them. Whoever asks more does not read the answers.
const REPLIES: usize = 4 * 1024;

/// A terminal of which only the screen exists.
pub(crate) struct Emulator {
    parser: vt100::Parser<Host>,
    size: Size,
    repeat: Repeat,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// An empty screen. A size outside the bounds of [`Size`] is drawn into them.
    pub(crate) fn new(size: Size) -> Self {
        let size = size.clamped();
        Self {
            parser: parser(size),
            size,
            repeat: Repeat::default(),
        }
    }

    /// The program wrote this.
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
            self.anew();
        }
    }

    fn anew(&mut self) {
        self.parser = parser(self.size);
        self.parser
            .process(b"[the screen could not be computed any further and begins anew here]\r\n");
    }

    /// It has this size from now on. One outside the bounds of [`Size`] is drawn into them.
    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size.clamped();
        let (rows, columns) = lengths(self.size);
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.set_size(rows, columns))).is_err() {
            self.anew();
        }
    }

    /// What a person would see.
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

    /// All that is known of it, for whoever draws it elsewhere.
    pub(super) fn terminal(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// What would make another terminal, whatever it shows, show the same.
    pub(crate) fn drawn(&self) -> Vec<u8> {
        let screen = self.parser.screen();
        let which = if screen.alternate_screen() { "\x1b[?1049h" } else { "" };
        let drawn = catch_unwind(AssertUnwindSafe(|| screen.state_formatted()));
        format!("\x1bc{which}{}", drawn.unwrap_or_default()).into_bytes()
    }

    /// How keys are to be sent.
    pub(crate) fn mode(&self) -> Mode {
        let screen = self.parser.screen();
        Mode {
            terminal: true,
            cursor: screen.application_cursor(),
            keypad: screen.application_keypad(),
        }
    }

    /// What the program asked, answered; each answer once.
    pub(crate) fn replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }
}

fn parser(size: Size) -> vt100::Parser<Host> {
    let (rows, columns) = lengths(size);
    vt100::Parser::new_with_callbacks(rows, columns, 0, Host::default())
}

fn lengths(size: Size) -> (NonZeroU16, NonZeroU16) {
    let length = |length| NonZeroU16::new(length).unwrap_or(NonZeroU16::MIN);
    // The emulator panics where a wide character has no place at all.
    (length(size.rows), length(size.columns.max(2)))
}

/// The cursor's line and column. After a character in the last column it waits behind it.
fn cursor(screen: &vt100::Screen) -> (u16, u16) {
    let ((row, column), (_, columns)) = (screen.cursor_position(), screen.size());
    (row, column.min(columns.get() - 1))
}

/// What is around the screen: the title, and the answers of a plain terminal to those questions that
/// programs wait for.
#[derive(Debug, Default)]
struct Host {
    title: String,
    replies: Vec<u8>,
}

impl Host {
    fn reply(&mut self, text: &str) {
        if self.replies.len() + text.len() <= REPLIES {
            self.replies.extend_from_slice(text.as_bytes());
        }
    }
}

impl vt100::Callbacks for Host {
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
            // What it is: a VT100 with advanced video, of no particular make.
            (None, None, 'c', 0) => self.reply("\x1b[?1;2c"),
            (Some(b'>'), None, 'c', 0) => self.reply("\x1b[>0;0;0c"),
            // How it is, and where the cursor stands.
            (None, None, 'n', 5) => self.reply("\x1b[0n"),
            (None, None, 'n', 6) => self.reply(&format!("\x1b[{row};{column}R")),
            (Some(b'?'), None, 'n', 6) => self.reply(&format!("\x1b[?{row};{column};1R")),
            // Whether it knows a mode: not this one.
            (Some(b'?'), Some(b'$'), 'p', mode) => self.reply(&format!("\x1b[?{mode};0$y")),
            // How large it is, in characters.
            (None, None, 't', 18) => {
                let (rows, columns) = screen.size();
                self.reply(&format!("\x1b[8;{rows};{columns}t"));
            }
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            // Light letters on a dark ground.
            [b"10", b"?"] => self.reply("\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
            [b"11", b"?"] => self.reply("\x1b]11;rgb:0000/0000/0000\x1b\\"),
            _ => {}
        }
    }
}

/// Keeps `ESC [ count b`, which repeats a character up to 65,535 times for ten bytes, to the length of
/// a line: that is what programs use it for, and more would let them buy seconds of our time cheaply.
#[derive(Debug, Clone, Copy, Default)]
enum Repeat {
    #[default]
    Text,
    Escape,
    /// In a control sequence, with its first parameter so far, and whether that is still being read.
    Sequence {
        count: u32,
        first: bool,
    },
}

impl Repeat {
    /// The bytes that can be fed as they are, those after them, and what is to be fed in between.
    fn next<'a>(&mut self, bytes: &'a [u8], columns: u16) -> (&'a [u8], &'a [u8], Option<String>) {
        for (at, &byte) in bytes.iter().enumerate() {
            *self = match (*self, byte) {
                (_, 0x1b) => Self::Escape,
                (Self::Escape, b'[') => Self::Sequence { count: 0, first: true },
                (Self::Sequence { count, first: true }, b'0'..=b'9') => Self::Sequence {
                    count: count.saturating_mul(10).saturating_add(u32::from(byte - b'0')),
                    first: true,
                },
                // CAN, in place of the sequence's last byte, drops it.
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
