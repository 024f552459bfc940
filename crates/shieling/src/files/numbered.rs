//! What was read, as a model is shown it.

use std::fmt::Write as _;

use super::{FileRead, Seen};
use crate::units::ByteCount;

impl FileRead {
    /// The lines as `cat -n` numbers them, counted from 1: the number in six columns, a tab, and the
    /// line as it is, carriage returns too. What follows begins with `…`: how to read on, what of a
    /// line was left out, that the last line has no end. Something that is no text is named.
    #[must_use]
    pub fn numbered(&self) -> String {
        self.numbered_from(0)
    }

    /// The same for whoever counts `offset` so that it is `first` at the first line (0 or 1): it is told
    /// with which one to read on.
    #[must_use]
    pub fn numbered_from(&self, first: u64) -> String {
        match &self.seen {
            Seen::Text {
                text,
                offset,
                lines,
                total_lines,
                next_offset,
                cut_bytes,
                encoding,
            } => {
                let mut out = String::with_capacity(text.len() + text.len() / 4 + 64);
                for (number, line) in (offset + 1..).zip(text.split_inclusive('\n')) {
                    write!(out, "{number:>6}\t{line}").expect("a text takes whatever is written to it");
                }
                let mut foot = |line: &str| {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(line);
                    out.push('\n');
                };
                if *cut_bytes > 0 {
                    foot(&format!(
                        "… line {} is cut: {cut_bytes} more bytes of it are not shown",
                        offset + lines
                    ));
                }
                match (next_offset, total_lines) {
                    (Some(next), Some(total)) => {
                        let left = total - next;
                        let s = if left == 1 { "" } else { "s" };
                        foot(&format!("… {left} more line{s}; read on with offset={}", next + first));
                    }
                    (Some(next), None) => foot(&format!("… more lines; read on with offset={}", next + first)),
                    (None, _) if *lines == 0 => foot("… the file is empty"),
                    (None, _) if *cut_bytes == 0 && !text.ends_with('\n') => {
                        foot("… no line end after the last line");
                    }
                    (None, _) => {}
                }
                if encoding.ends_with("-lossy") {
                    foot("… bytes that are no text are shown as \u{fffd}; an edit elsewhere keeps them");
                }
                out
            }
            Seen::Image { mime, .. } => format!("… {mime}, {}\n", ByteCount::bytes(self.size)),
            Seen::Whole { .. } => format!("… the whole file, {}\n", ByteCount::bytes(self.size)),
            Seen::Binary { format, why } => {
                let mut out = format!("… no text: {}", ByteCount::bytes(self.size));
                for said in [format, why].into_iter().flatten() {
                    out.push_str(", ");
                    out.push_str(said);
                }
                out.push('\n');
                out
            }
        }
    }
}
