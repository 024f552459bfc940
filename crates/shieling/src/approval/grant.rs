//! Grants: approvals that cover more than one start. Their scope, their number of uses, and their lifetime.
//!
//! Every grant is bound to one policy and one environment. It is also bound to:
//!
//! | scope | text | directory and variables | files that the text runs | session |
//! |---|---|---|---|---|
//! | once, exact | same | same | same, unchanged | any |
//! | prefix | each command begins with the words, see [`plain`](super::plain) | same | only those seen, unchanged | any |
//! | session | the same programs, for the same rules | same | only those seen, unchanged | same |
//!
//! A grant for a session covers a later text only if the text is plain (see [`plain`](super::plain)), launches no
//! program that the first text did not launch, and is asked about for reasons that the first question showed.
//! Anything else leads to a new question.
//!
//! A grant for a command never covers a file operation, or the reverse. For file operations, a prefix grant covers
//! one start, and a session grant covers the same operation for the same rules: approving edits does not approve a
//! git hook.
//!
//! A request that the policy denies is never covered, since it is refused before the grants are consulted.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::plain::{is_plain, is_plain_word};
use super::question::Question;
use super::scope::{GrantId, GrantLimits, Scope};
use crate::policy::{Decision, Reason};
use crate::request::{Digest, RequestKind};

/// The largest number of grants. Beyond it the oldest is dropped, which only leads to another question.
const MAX_HELD: usize = 1_024;

/// The valid grants.
#[derive(Debug, Default)]
pub(super) struct Grants {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    id: GrantId,
    covers: Covers,
    kind: RequestKind,
    environment: String,
    policy: Digest,
    uses: u32,
    until: Instant,
}

/// What a grant covers, from narrow to wide. The narrowest grant that covers a request is used first.
#[derive(Debug)]
enum Covers {
    Exact {
        command: Digest,
        files: Vec<(PathBuf, Digest)>,
    },
    Prefix {
        words: Vec<String>,
        place: Digest,
        reasons: Vec<Reason>,
        files: Vec<(PathBuf, Digest)>,
    },
    Session {
        session: Option<String>,
        programs: BTreeSet<String>,
        place: Digest,
        reasons: Vec<Reason>,
        files: Vec<(PathBuf, Digest)>,
    },
}

impl Covers {
    fn width(&self) -> u8 {
        match self {
            Self::Exact { .. } => 0,
            Self::Prefix { .. } => 1,
            Self::Session { .. } => 2,
        }
    }

    fn covers(&self, question: &Question) -> bool {
        match self {
            Self::Exact { command, files } => *command == question.command_digest && *files == question.files,
            Self::Prefix {
                words,
                place,
                reasons,
                files,
            } => {
                let first: Vec<&str> = words.first().map(String::as_str).into_iter().collect();
                *place == question.place
                    && begins_with(question, words)
                    && question
                        .verdict
                        .reasons
                        .iter()
                        .all(|reason| was_said_yes_to(reason, reasons, &first))
                    && question.files.iter().all(|file| files.contains(file))
            }
            Self::Session {
                session,
                programs,
                place,
                reasons,
                files,
            } => {
                *session == question.session
                    // File operations name absolute paths, so the working directory does not matter.
                    && (question.kind == RequestKind::Files || *place == question.place)
                    && question.programs().is_some_and(|launched| launched.is_subset(programs))
                    && question.verdict.reasons.iter().all(|reason| match question.kind {
                        RequestKind::Command => {
                            let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
                            was_said_yes_to(reason, reasons, &programs)
                        }
                        RequestKind::Files | RequestKind::Network => {
                            reasons.iter().any(|seen| seen.rule == reason.rule)
                        }
                    })
                    && question.files.iter().all(|file| files.contains(file))
            }
        }
    }
}

impl Grants {
    /// Uses one start of the narrowest grant that covers the question.
    pub(super) fn take(&mut self, question: &Question, now: Instant) -> Option<GrantId> {
        self.held.retain(|held| now < held.until);
        let (index, _) = self
            .held
            .iter()
            .enumerate()
            .filter(|(_, held)| {
                held.kind == question.kind
                    && held.environment == question.environment
                    && held.policy == question.policy_digest
                    && held.covers.covers(question)
            })
            .min_by_key(|(_, held)| held.covers.width())?;
        let held = self.held.get_mut(index)?;
        let id = held.id;
        held.uses -= 1;
        if held.uses == 0 {
            self.held.remove(index);
        }
        Some(id)
    }

    /// Keeps what is left of a grant after `used` starts.
    pub(super) fn keep(&mut self, id: GrantId, question: &Question, scope: Scope, used: u32, now: Instant) {
        let exact = || Covers::Exact {
            command: question.command_digest,
            files: question.files.clone(),
        };
        let once = GrantLimits {
            uses: NonZeroU32::MIN,
            ..GrantLimits::default()
        };
        let (covers, limits) = match scope {
            Scope::Once => (exact(), once),
            Scope::Always => (exact(), GrantLimits::default()),
            Scope::Exact(limits) => (exact(), limits),
            Scope::Prefix(words, limits) if begins_with(question, &words) => {
                let (place, files) = (question.place, question.files.clone());
                (
                    Covers::Prefix {
                        words,
                        place,
                        reasons: question.verdict.reasons.clone(),
                        files,
                    },
                    limits,
                )
            }
            Scope::Prefix(..) => (exact(), once),
            Scope::Session(limits) => match question.programs() {
                Some(programs) => {
                    let covers = Covers::Session {
                        session: question.session.clone(),
                        programs,
                        place: question.place,
                        reasons: question.verdict.reasons.clone(),
                        files: question.files.clone(),
                    };
                    (covers, limits)
                }
                None => (exact(), once),
            },
        };
        let uses = limits.uses.get().saturating_sub(used);
        // A time that the clock cannot represent is beyond the lifetime of any process.
        let until = now
            .checked_add(limits.lasts)
            .unwrap_or(now + Duration::from_secs(u64::from(u32::MAX)));
        if uses == 0 || until <= now {
            return;
        }
        if self.held.len() == MAX_HELD {
            self.held.remove(0);
        }
        let (environment, policy) = (question.environment.clone(), question.policy_digest);
        self.held.push(Held {
            id,
            covers,
            kind: question.kind,
            environment,
            policy,
            uses,
            until,
        });
    }

    pub(super) fn revoke(&mut self, id: GrantId, now: Instant) -> bool {
        self.held.retain(|held| now < held.until);
        let before = self.held.len();
        self.held.retain(|held| held.id != id);
        self.held.len() < before
    }
}

/// Returns whether every command of a plain text begins with these words.
fn begins_with(question: &Question, words: &[String]) -> bool {
    question.kind == RequestKind::Command
        && !words.is_empty()
        && words.iter().all(|word| is_plain_word(word))
        && is_plain(&question.text)
        && !question.verdict.commands.is_empty()
        && question
            .verdict
            .commands
            .iter()
            .all(|command| command.argv.starts_with(words))
}

/// Returns whether the approver has seen a reason before: the same one, or the same rule about another command of the
/// same programs. Another rule, or the same rule about another file, is a new reason.
fn was_said_yes_to(reason: &Reason, seen: &[Reason], programs: &[&str]) -> bool {
    let program = reason.object.split_whitespace().next();
    let about_a_program = program.is_some_and(|program| programs.contains(&program));
    reason.decision == Decision::Ask
        && seen
            .iter()
            .any(|seen| seen.rule == reason.rule && (seen.object == reason.object || about_a_program))
}
