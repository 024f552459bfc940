//! Where a text that is read stands in the command text that the user gave.

use brush_parser::SourceSpan;

use crate::policy::verdict::Span;

/// Maps positions of a text to the bytes of the whole command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// The text is the stretch of the command that starts at this byte.
    From(usize),
    /// The text was unescaped or put together: all of it is said to stand here.
    Within(Span),
}

impl Place {
    /// The place of these bytes of the text.
    pub(super) fn span(self, start: usize, end: usize) -> Span {
        match self {
            Self::From(offset) => Span::new(offset + start, offset + end),
            Self::Within(span) => span,
        }
    }

    /// The place of a text that starts at this byte of the present one.
    pub(super) fn inner(self, start: usize) -> Self {
        match self {
            Self::From(offset) => Self::From(offset + start),
            Self::Within(span) => Self::Within(span),
        }
    }
}

/// A text with its place, and the way from the parser's character numbers to bytes.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) place: Place,
    /// The byte at which each character starts; empty for ASCII, where they are the same.
    bytes: Vec<usize>,
    length: usize,
}

impl Source {
    pub(super) fn new(text: &str, place: Place) -> Self {
        let bytes = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(at, _)| at).collect()
        };
        Self { place, bytes, length: text.len() }
    }

    /// The byte at which a character starts.
    fn byte(&self, index: usize) -> usize {
        if self.bytes.is_empty() {
            index.min(self.length)
        } else {
            self.bytes.get(index).copied().unwrap_or(self.length)
        }
    }

    /// The bytes, in this text, of a place that the parser counts in characters.
    pub(super) fn range(&self, span: &SourceSpan) -> (usize, usize) {
        (self.byte(span.start.index), self.byte(span.end.index))
    }

    /// The place of one character.
    pub(super) fn character(&self, index: usize) -> Span {
        self.place.span(self.byte(index), self.byte(index + 1))
    }

    /// The place, in the whole command, of what the parser found.
    pub(super) fn span(&self, span: &SourceSpan) -> Span {
        let (start, end) = self.range(span);
        self.place.span(start, end)
    }

    /// All of it.
    pub(super) fn whole(&self) -> Span {
        self.place.span(0, self.length)
    }
}
