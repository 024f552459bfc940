//! Texts without what people and models get wrong: blanks, the kind of quotes, and case.

/// A text without blanks, in lower case, with one kind of quotes, and where its lines are.
pub(super) struct Squeezed {
    /// It.
    pub(super) text: String,
    /// Where each line begins in `text`.
    starts: Vec<usize>,
    /// Where each line begins in the original.
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

    /// How many lines there are.
    pub(super) fn lines(&self) -> usize {
        self.starts.len()
    }

    /// A line; nothing beyond the last.
    pub(super) fn line(&self, at: usize) -> &str {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.text.len());
        self.starts.get(at).map_or("", |start| &self.text[*start..end])
    }

    /// The line in which the byte at `place` of the squeezed text is.
    pub(super) fn line_at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place) - 1
    }

    /// These lines of the original, as many of them as there are.
    pub(super) fn window<'a>(&self, original: &'a str, first: usize, last: usize) -> &'a str {
        let place = |line: usize| self.original.get(line).copied().unwrap_or(original.len());
        &original[place(first)..place(last + 1)]
    }
}

/// A character without its case, and a quote or a dash as it is typed.
fn plain(c: char) -> char {
    match c {
        '\'' | '`' | '´' | '‘' | '’' | '‚' | '‛' | '“' | '”' | '„' | '«' | '»' => '"',
        '‐' | '‑' | '–' | '—' | '−' => '-',
        c if c.is_ascii() => c.to_ascii_lowercase(),
        c => c.to_lowercase().next().unwrap_or(c),
    }
}

/// How much of a line is compared, in bytes.
const COMPARED: usize = 2_000;

/// The pairs of neighbouring bytes that a line has.
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

    /// How much a line is like this one, from 0 to 1: twice the share of common pairs in all of them.
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
