//! The policy: pure judgement of a request, with its reasons.
//!
//! No I/O, no async, no clock: the same request and facts always get the same verdict, so that it
//! can be replayed from the record.

mod verdict;

pub use verdict::{CommandSeen, Decision, EffectKind, EffectSeen, Reason, Span, Verdict};
