//! Questions about connections that no rule decides.
//!
//! Whoever answers is the caller's: this module has the question, the answers and the wait for one.

use std::future::Future;
use std::pin::Pin;

use crate::rule::{HostRule, Protocol};

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection that a program in the sandbox has opened and that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The name, or the address where a range is to be asked about.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// The rule that would allow it from now on, as `--allow-host` and `shieling.toml` take it.
    pub rule: HostRule,
    /// The reason, where a rule asks.
    pub because: Option<String>,
}

/// The answer to an [`Attempt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Refused, with a reason, which may be empty. As all answers that refuse, it stands for
    /// [`Limits::refusal_remembered`](crate::Limits::refusal_remembered).
    No(String),
    /// Refused, since nobody is there who could answer.
    Nobody,
    /// Refused, since nobody answered in time.
    NoAnswer,
    /// Refused, since the question cannot be shown whole.
    TooLong,
    /// Allowed for this connection, and for others to the same host and port that wait with it.
    Once,
    /// Allowed until the gateway ends.
    Session,
    /// Allowed until the gateway ends; the asker has the rule kept for later.
    Always,
}

/// Who answers, when no rule decides or a rule says [`Decision::Ask`](crate::Decision::Ask).
pub trait Asker: Send + Sync {
    /// Returns the answer. Dropped after [`Limits::answer_wait`](crate::Limits::answer_wait), which refuses.
    ///
    /// At most one question about a host and port is open at a time.
    fn ask(&self, attempt: Attempt) -> BoxFuture<'_, Answer>;
}
