//! What a policy says of a request, with all its reasons.

use serde::Serialize;
use shieling_shell::Span;

/// The three answers, in rising strictness: the strictest reason wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may start.
    Allow,
    /// Somebody must be asked.
    Ask,
    /// It may not start.
    Deny,
}

/// Why a request is not simply allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What this reason asks for.
    pub decision: Decision,
    /// The rule that says so, such as `readonly` or `policy.toml:14 no-force-push`.
    pub rule: String,
    /// The part of the command that the rule is about, control characters escaped.
    pub object: String,
    /// Where that part stands in the command text.
    pub span: Option<Span>,
    /// Why, as a fact.
    pub because: String,
    /// What would be allowed instead, where the rule knows.
    pub instead: Option<String>,
}

/// A command that the text can launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandSeen {
    /// Its words after quote removal; a word that cannot be known shows as it is written.
    pub argv: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

/// What kind of thing a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectKind {
    /// It reads a file.
    Reads,
    /// It changes a file, a repository, a process, the clock or the like.
    Writes,
    /// It runs code that the text does not show.
    Runs,
    /// It talks to the network.
    Network,
    /// It does something that cannot be read from the text.
    Unknown,
}

/// One thing that a command does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectSeen {
    /// What kind.
    pub kind: EffectKind,
    /// To what.
    pub object: String,
    /// Where the text says so.
    pub span: Span,
}

/// The answer of a policy to one request.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The strictest of the reasons; allow where there is none.
    pub decision: Decision,
    /// The reasons against simply allowing it.
    pub reasons: Vec<Reason>,
    /// Every command that the text can launch.
    pub commands: Vec<CommandSeen>,
    /// Everything that those commands are known to do.
    pub effects: Vec<EffectSeen>,
}

/// The rule of a text that cannot be read.
pub(super) const UNREADABLE: &str = "unreadable";
/// The rule of hidden paths.
pub(crate) const IGNORE: &str = "ignore";

impl Verdict {
    /// Returns whether the text could not be read, so that it was judged as a whole.
    pub fn is_unreadable(&self) -> bool {
        self.has_reason_of(UNREADABLE)
    }

    /// Whether it uses a path that the policy hides, or may.
    pub(crate) fn may_use_hidden_paths(&self) -> bool {
        self.has_reason_of(IGNORE)
    }

    fn has_reason_of(&self, rule: &str) -> bool {
        self.reasons.iter().any(|reason| reason.rule == rule)
    }
}
