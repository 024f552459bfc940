//! What the gate answers.

use std::fmt;

/// The answer to one change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// It may stay, or leave a staged tree.
    Pass,
    /// It must not.
    HeldBack(HeldBack),
}

impl Decision {
    /// What is held back, if it is.
    pub fn held_back(&self) -> Option<&HeldBack> {
        match self {
            Self::Pass => None,
            Self::HeldBack(held) => Some(held),
        }
    }
}

/// A change that must not reach the user's tools, unless a person accepts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// The rule that holds it back.
    pub rule: RuleId,
    /// Why: what the tool of the user would do. Bounded, without control characters.
    pub because: String,
    /// What to do instead, for whoever made the change.
    pub instead: String,
    /// When a watcher has to act.
    pub act: Act,
    /// The same file without what is held back, where the rest of it is needed (the steps of a rebase) or is of use by
    /// itself (settings of git): it takes the place of the file, and of what was there before.
    pub rest: Option<Vec<u8>>,
}

impl HeldBack {
    /// With the time when a watcher has to act.
    pub(crate) fn acted_on(self, act: Act) -> Self {
        Self { act, ..self }
    }

    /// Held back since what it depends on cannot be read.
    pub fn unreadable(error: &std::io::Error) -> Self {
        Self {
            rule: RuleId("unreadable"),
            because: format!("what it depends on cannot be read: {error}"),
            instead: "make it readable, or have a person accept it".to_owned(),
            act: Act::OnceStill,
            rest: None,
        }
    }
}

/// When a watcher of a live tree has to revert a change. In a staged tree all mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// As soon as it is seen.
    AtOnce,
    /// Once it has stood still for a moment: it runs nothing as it is, and may be half written.
    OnceStill,
    /// Before the outcome is given, if it is still there: ordinary commands make it and remove it while they run
    /// (the state of `git rebase --exec`).
    BeforeOutcome,
    /// Once nothing runs that could use it: running programs need it, and it executes nothing (a socket, a named pipe).
    OnceIdle,
}

/// The name of a rule, such as `git.hook`. Names are stable: records and accepted sets hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub(crate) &'static str);

impl RuleId {
    /// The name.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}
