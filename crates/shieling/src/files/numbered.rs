//! The text form of a read file for models.

use std::fmt::Write as _;

use super::{FileContent, ReadResponse};
use crate::units::ByteCount;

impl ReadResponse {
    /// Formats the lines as `cat -n` does, counted from 1: the number in six columns, a tab, and the line unchanged,
    /// including carriage returns. Remarks begin with `…`: where to read on, what was cut from a line, that the last
    /// line has no line end. A file that is not text is described.
    #[must_use]
    pub fn numbered(&self) -> String {
        self.numbered_from(0)
    }

    /// Like [`numbered`](Self::numbered), for a caller that counts lines from `first` (0 or 1): remarks give offsets
    /// in that count.
    #[must_use]
    pub fn numbered_from(&self, first: u64) -> String {
        match &self.content {
            FileContent::Text {
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
                if !encoding.starts_with("utf-") && !text.is_ascii() {
                    let name = encoding.trim_end_matches("-lossy");
                    foot(&format!("… the encoding is guessed: {name}"));
                }
                if encoding.ends_with("-lossy") {
                    foot("… bytes that are no text are shown as \u{fffd}; an edit elsewhere keeps them");
                }
                out
            }
            FileContent::Image { mime, .. } => format!("… {mime}, {}\n", ByteCount::bytes(self.size)),
            FileContent::Whole { .. } => format!("… the whole file, {}\n", ByteCount::bytes(self.size)),
            FileContent::Binary { format, why } => {
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
