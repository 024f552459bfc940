//! Where a text that is read stands in the command text that the user gave.

use crate::span::Span;
use crate::syntax::tree::{Document, Range};

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

/// A parsed text: where it stands, and its here-documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) place: Place,
    pub(super) documents: &'a [Document],
}

impl Source<'_> {
    /// The place, in the whole command, of a stretch of this text.
    pub(super) fn span(&self, range: Range) -> Span {
        self.place.span(range.start, range.end)
    }
}
