//! Why a text does not parse, and the bound on its depth.

/// How deeply texts, groups and expansions may nest.
pub(super) const MAX_DEPTH: usize = 120;

/// A text that does not parse, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The byte at which it was noticed.
    pub(crate) at: usize,
}

pub(crate) type Result<T> = std::result::Result<T, SyntaxError>;
