//! Texts normalised for comparison: without blanks, with one kind of quotes, in lower case.

/// A normalised text, with the positions of its lines.
pub(super) struct Squeezed {
    /// The normalised text.
    pub(super) text: String,
    /// The start of each line in `text`.
    starts: Vec<usize>,
    /// The start of each line in the original.
    original: Vec<usize>,
}

impl Squeezed {
    pub(super) fn new(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let (mut starts, mut begins) = (Vec::new(), Vec::new());
        let mut at = 0;
        for line in original.split_inclusive('\n') {
            starts.push(text.len());
            begins.push(at);
            at += line.len();
            text.extend(line.chars().filter(|c| !c.is_whitespace()).map(plain));
        }
        Self {
            text,
            starts,
            original: begins,
        }
    }

    /// Returns the number of lines.
    pub(super) fn lines(&self) -> usize {
        self.starts.len()
    }

    /// Returns a line; it is empty beyond the last.
    pub(super) fn line(&self, at: usize) -> &str {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.text.len());
        self.starts.get(at).map_or("", |start| &self.text[*start..end])
    }

    /// Returns the line that contains a byte of the normalised text.
    pub(super) fn line_at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place) - 1
    }

    /// Returns these lines of the original, as far as they exist.
    pub(super) fn window<'a>(&self, original: &'a str, first: usize, last: usize) -> &'a str {
        let place = |line: usize| self.original.get(line).copied().unwrap_or(original.len());
        &original[place(first)..place(last + 1)]
    }
}

/// Normalises a character: its case, and typographic quotes and dashes.
fn plain(c: char) -> char {
    match c {
        '\'' | '`' | '´' | '‘' | '’' | '‚' | '‛' | '“' | '”' | '„' | '«' | '»' => '"',
        '‐' | '‑' | '–' | '—' | '−' => '-',
        c if c.is_ascii() => c.to_ascii_lowercase(),
        c => c.to_lowercase().next().unwrap_or(c),
    }
}

/// The part of a line that is compared, in bytes.
const COMPARED: usize = 2_000;

/// The pairs of neighbouring bytes in a line.
pub(super) struct Pairs {
    has: Vec<bool>,
    count: usize,
}

impl Pairs {
    pub(super) fn of(line: &str) -> Self {
        let mut has = vec![false; 1 << 16];
        let bytes = &line.as_bytes()[..line.len().min(COMPARED)];
        for pair in bytes.windows(2) {
            has[usize::from(u16::from_le_bytes([pair[0], pair[1]]))] = true;
        }
        Self {
            has,
            count: bytes.len().saturating_sub(1),
        }
    }

    /// Returns the similarity of two lines, from 0 to 1: twice the number of common pairs, divided by the number of
    /// all pairs.
    pub(super) fn like(&self, line: &str) -> f64 {
        let bytes = &line.as_bytes()[..line.len().min(COMPARED)];
        let all = self.count + bytes.len().saturating_sub(1);
        if all == 0 {
            return 0.0;
        }
        let common = bytes
            .windows(2)
            .filter(|pair| self.has[usize::from(u16::from_le_bytes([pair[0], pair[1]]))])
            .count();
        2.0 * common.min(self.count) as f64 / all as f64
    }
}
