//! What a rule reports.

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) instead: String,
}
