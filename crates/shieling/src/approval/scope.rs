//! The scope of an approval: what it covers besides the request in question, how often, and for how long.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Serialize;

/// The number of a grant, unique within one [`Approvals`](crate::approval::Approvals).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GrantId(u64);

impl GrantId {
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The bounds of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantLimits {
    /// The number of starts, including the one that was asked about.
    pub uses: NonZeroU32,
    /// The lifetime from the answer, on the monotonic clock.
    pub lasts: Duration,
}

impl Default for GrantLimits {
    /// Returns 100 starts within an hour.
    fn default() -> Self {
        Self {
            uses: const { NonZeroU32::new(100).expect("100 is not 0") },
            lasts: Duration::from_secs(3_600),
        }
    }
}

/// How much an approval covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Only this start.
    Once,
    /// The same command again.
    Exact(GrantLimits),
    /// Commands of which every part begins with these words. If that is not true of the command in question, or the
    /// request is not a command, the approval covers only this start.
    Prefix(Vec<String>, GrantLimits),
    /// From now on, until the environment ends. For connections to a host: the line that keeps it for later is told
    /// with the outcome. For other requests it covers the same request again.
    Always,
    /// In the same session, commands that launch only [the same programs](crate::approval::Question::programs) and are asked about for
    /// the same reasons. If the text is not plain, the approval covers only this start.
    Session(GrantLimits),
}
