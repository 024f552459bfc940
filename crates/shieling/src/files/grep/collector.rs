//! Collects the lines of one file that can become part of the response.

use grep_matcher::Matcher as _;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::super::GrepMode;
use super::plan::Plan;
use super::unsearched::Unsearched;

/// The longest line, in characters.
const WIDEST: usize = 1_000;

/// The number of bytes before a match that are kept of a longer line.
const LEAD: usize = 200;

/// The position of a line relative to a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinePosition {
    Before,
    Match,
    After,
}

/// A line that was found.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) place: LinePosition,
    pub(super) number: u64,
    pub(super) text: String,
}

/// How many more results fit into the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remaining {
    pub(super) matches: u64,
    pub(super) bytes: usize,
    /// Accepts the next match whatever its size, so that every response makes progress.
    pub(super) first: bool,
}

/// Collects the lines of a file.
pub(super) struct LineCollector<'a> {
    plan: &'a Plan,
    room: Remaining,
    /// The last line that an earlier response contained.
    resumed: u64,
    pub(super) lines: Vec<Line>,
    pub(super) matched: u64,
    /// Whether there is another match that did not fit.
    pub(super) more: bool,
}

impl<'a> LineCollector<'a> {
    pub(super) fn new(plan: &'a Plan, resumed: u64, room: Remaining) -> Self {
        Self {
            plan,
            room,
            resumed,
            lines: Vec::new(),
            matched: 0,
            more: false,
        }
    }

    /// Adds the line, or the lines, of a match. Returns whether more are wanted.
    pub(super) fn matching(&mut self, number: u64, line: &[u8]) -> bool {
        match self.plan.mode {
            GrepMode::Files => {
                self.matched = 1;
                return false;
            }
            GrepMode::Count => {
                self.matched += 1;
                return true;
            }
            GrepMode::Content if number <= self.resumed => return true,
            GrepMode::Content => {}
        }
        if self.matched == self.room.matches || (self.room.bytes == 0 && !self.room.first) {
            self.more = true;
            return false;
        }
        self.matched += 1;
        self.room.first = false;
        let at = if line.len() > WIDEST { self.start(line) } else { 0 };
        self.take(LinePosition::Match, number, line, at);
        true
    }

    /// Adds a context line.
    pub(super) fn beside(&mut self, place: LinePosition, number: u64, line: &[u8]) {
        // The lines after a match of an earlier response were part of that response.
        let known = number <= self.resumed || (place == LinePosition::After && self.matched == 0);
        if self.plan.mode == GrepMode::Content && !known {
            self.take(place, number, line, 0);
        }
    }

    fn take(&mut self, place: LinePosition, number: u64, line: &[u8], at: usize) {
        let text = shorten(line, at);
        self.room.bytes = self.room.bytes.saturating_sub(text.len());
        self.lines.push(Line { place, number, text });
    }

    /// Returns where a match begins in its lines.
    fn start(&self, line: &[u8]) -> usize {
        let found = self.plan.matcher.find(line).unwrap_or(None);
        found.map_or(0, |found| found.start())
    }
}

impl Sink for &mut LineCollector<'_> {
    type Error = Unsearched;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Unsearched> {
        Ok(self.matching(found.line_number().unwrap_or_default(), found.bytes()))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Unsearched> {
        let place = match line.kind() {
            SinkContextKind::Before => LinePosition::Before,
            SinkContextKind::After | SinkContextKind::Other => LinePosition::After,
        };
        self.beside(place, line.line_number().unwrap_or_default(), line.bytes());
        Ok(true)
    }
}

/// Returns a line without its line end; of a long one, the part around a position.
fn shorten(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let widest = WIDEST * 4;
    if line.len() <= widest {
        let whole = String::from_utf8_lossy(line);
        if whole.len() <= WIDEST || whole.chars().count() <= WIDEST {
            return whole.into_owned();
        }
    }
    let mut from = if at < WIDEST - LEAD { 0 } else { at - LEAD };
    while from > 0 && line.get(from).is_some_and(|byte| byte & 0xC0 == 0x80) && from + 3 > at - LEAD {
        from -= 1;
    }
    let window = String::from_utf8_lossy(&line[from..line.len().min(from + widest)]);
    let mut text = String::with_capacity(window.len() + 2 * '…'.len_utf8());
    if from > 0 {
        text.push('…');
    }
    let end = window.char_indices().nth(WIDEST).map_or(window.len(), |(end, _)| end);
    text.push_str(&window[..end]);
    if end < window.len() || from + widest < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_its_match_between_characters() {
        let cases = [
            ("short\r\n".to_owned(), 0, "short".to_owned()),
            ("é".repeat(1_000), 0, "é".repeat(1_000)),
            ("é".repeat(1_001), 0, format!("{}…", "é".repeat(1_000))),
            ("a".repeat(5_000), 0, format!("{}…", "a".repeat(1_000))),
            (
                format!("{}x", "a".repeat(5_000)),
                5_000,
                format!("…{}x", "a".repeat(200)),
            ),
            (
                format!("b{}x", "é".repeat(5_000)),
                10_001,
                format!("…{}x", "é".repeat(100)),
            ),
        ];
        for (line, at, expected) in cases {
            assert_eq!(shorten(line.as_bytes(), at), expected, "{at}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_never_break_the_cut() {
        assert_eq!(shorten(b"a\xffb\n", 0), "a\u{fffd}b");
        for at in [0, 900, 4_000, 9_999] {
            let text = shorten(&[0x80; 10_000], at);
            assert!(text.chars().count() <= 1_002, "{at}");
        }
    }
}
