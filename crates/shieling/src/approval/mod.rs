//! The only maker of [`Approved`]: what was judged, and asked about where that was wanted.
//!
//! It asks and remembers; it never starts anything, touches no file and lets nothing through that
//! the policy denied: such a command is not even asked about.
//!
//! ```text
//! verdict ─► deny ───────────────────────────────────────────► Refused::Denied
//!         ├► allow, and only asks are asked ─────────────────► Approved (by policy)
//!         └► ask, or everything is asked
//!               ├► a grant that was given earlier covers it ─► Approved (by grant)
//!               ├► nobody is to be asked, or nobody answers ─► Refused::Unanswered
//!               ├► more than can be shown ───────────────────► Refused::TooLong
//!               ├► no ───────────────────────────────────────► Refused::SaidNo
//!               └► yes ─┬► a file that it runs has changed ──► ask again
//!                       └► as it was ────────────────────────► Approved (by answer)
//! ```
#![forbid(unsafe_code)]

mod ask;
mod grant;
mod plain;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::policy::Decision;
use crate::request::{Digest, Request};
use crate::units::{ByteCount, Clock};

pub use ask::{Answer, Approver, Asking, Callback, Case, Nobody, Question};
use grant::Grants;
pub use grant::{Limits, Scope};

/// How often a command is asked about anew because a file that it runs has changed in between.
const ROUNDS: usize = 3;

/// How long an answer is waited for unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The number of a grant, unlike any other of the same [`Approvals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GrantId(u64);

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whose yes a command starts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The policy allowed it and nobody was to be asked.
    Policy,
    /// An approver said yes to this very start.
    Answer,
    /// A yes that was given earlier covers it.
    Grant,
}

impl Basis {
    /// Its name, as it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Answer => "answer",
            Self::Grant => "grant",
        }
    }
}

/// A request that policy let through, and a person too where that was wanted.
///
/// Not `Clone`, no way to change it: one grant starts one thing, exactly as judged.
///
/// ```compile_fail
/// fn twice<T>(approved: shieling::approval::Approved<T>) {
///     drop(approved.clone());
/// }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Approved<T> {
    request: T,
    grant: GrantId,
    basis: Basis,
    files: Vec<(PathBuf, Digest)>,
}

impl<T> Approved<T> {
    /// What was approved.
    pub fn request(&self) -> &T {
        &self.request
    }

    /// The yes that it starts on.
    pub fn grant(&self) -> GrantId {
        self.grant
    }

    /// Whose yes that was.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// The files that the text runs, as they were when the yes was given; none where the policy
    /// alone decided, since nobody has looked at them then.
    pub fn files(&self) -> &[(PathBuf, Digest)] {
        &self.files
    }

    /// Uses the approval up.
    pub fn into_request(self) -> T {
        self.request
    }
}

/// Who is asked, and about what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every command that no grant covers.
    Always,
    /// What the policy wants to be asked: `--approval policy`.
    #[serde(rename = "policy")]
    OnAsk,
    /// Nothing; what the policy wants to be asked is refused.
    Never,
}

/// Why a command was not approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The policy denied it; nobody was asked.
    #[error("the policy denies it")]
    Denied,
    /// It needs a yes, and nobody is to be asked.
    #[error("it needs a yes, and nobody is to be asked here")]
    NobodyToAsk,
    /// It needs a yes, and nobody was there to give it.
    #[error("it needs a yes, and nobody answered")]
    Unanswered,
    /// The approver said no.
    #[error("the approver said no{}", if .because.is_empty() { String::new() } else { format!(": {}", .because) })]
    SaidNo {
        /// The approver's words.
        because: String,
    },
    /// More than can be shown of it would have to be judged, so that nobody was asked.
    #[error("it is too long to be shown whole (more than {most}), and nobody is asked about what they cannot see")]
    TooLong {
        /// How much could be shown.
        most: ByteCount,
    },
    /// A file that it runs was changed during each question.
    #[error("files that it runs were changed each time between the yes and the start")]
    KeepsChanging {
        /// Those that changed last.
        files: Vec<PathBuf>,
    },
}

/// Answers the question whether a command may start, and remembers the answers that go further
/// than one start. Shared by reference.
pub struct Approvals {
    mode: Mode,
    approver: Arc<dyn Approver>,
    clock: Arc<dyn Clock>,
    patience: Duration,
    grants: Mutex<Grants>,
    next: AtomicU64,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals")
            .field("mode", &self.mode)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Approvals {
    /// Without any grant. An answer is waited for 10 minutes.
    pub fn new(mode: Mode, approver: Arc<dyn Approver>, clock: Arc<dyn Clock>) -> Self {
        Self {
            mode,
            approver,
            clock,
            patience: PATIENCE,
            grants: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// The same, and an answer is waited for this long; then nobody has answered.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Who is asked, and about what.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Approves a request, or says why not.
    ///
    /// `files` looks up the files that the text runs, with their digests. It is called before a
    /// question and again right after the yes: what somebody said yes to is what starts. A change in
    /// the instant after that, before the shell opens the file, is beyond this; only an environment
    /// in which nobody else can write excludes it.
    ///
    /// # Errors
    /// [`Refused`]. Nothing of it can be started, and no grant was used up.
    ///
    /// # Cancel safety
    /// Dropping the future drops the question with it; nothing was granted.
    ///
    /// # Panics
    /// Outside a tokio runtime with timers, if somebody has to be asked.
    pub async fn approve<R: Request>(
        &self,
        request: R,
        case: &Case<'_>,
        files: impl Fn(&R) -> Vec<(PathBuf, Digest)>,
    ) -> Result<Approved<R>, Refused> {
        let asked = match (case.verdict.decision, self.mode) {
            (Decision::Deny, _) => return Err(Refused::Denied),
            (Decision::Allow, Mode::OnAsk | Mode::Never) => false,
            (Decision::Ask, _) | (Decision::Allow, Mode::Always) => true,
        };
        if !asked {
            return Ok(Approved {
                request,
                grant: self.number(),
                basis: Basis::Policy,
                files: Vec::new(),
            });
        }
        let mut question = Question::new(&request, case, files(&request));
        if let Some(grant) = self.held(|grants, now| grants.take(&question, now)) {
            return Ok(Approved {
                request,
                grant,
                basis: Basis::Grant,
                files: question.files,
            });
        }
        if self.mode == Mode::Never {
            return Err(Refused::NobodyToAsk);
        }
        if let Some(most) = request.change_cut_at() {
            return Err(Refused::TooLong { most });
        }
        for _ in 0..ROUNDS {
            let answer = tokio::time::timeout(self.patience, self.approver.ask(&question)).await;
            let scope = match answer.unwrap_or(Answer::Nobody) {
                Answer::Yes(scope) => scope,
                Answer::No(because) => return Err(Refused::SaidNo { because }),
                Answer::Nobody => return Err(Refused::Unanswered),
                Answer::TooLong { most } => return Err(Refused::TooLong { most }),
            };
            let found = files(&request);
            if found == question.files {
                let grant = self.number();
                self.held(|grants, now| grants.keep(grant, &question, scope, 1, now));
                return Ok(Approved {
                    request,
                    grant,
                    basis: Basis::Answer,
                    files: found,
                });
            }
            question.changed = difference(&question.files, &found);
            question.files = found;
        }
        Err(Refused::KeepsChanging {
            files: question.changed,
        })
    }

    /// Grants what a question asked for, after it was left unanswered: the next attempt that the
    /// scope covers needs no answer any more.
    pub fn grant(&self, question: &Question, scope: Scope) -> GrantId {
        let grant = self.number();
        self.held(|grants, now| grants.keep(grant, question, scope, 0, now));
        grant
    }

    /// Takes a grant back. Says whether there was anything left of it.
    pub fn revoke(&self, grant: GrantId) -> bool {
        self.held(|grants, now| grants.revoke(grant, now))
    }

    /// Takes back everything that was granted.
    pub fn revoke_all(&self) {
        self.held(|grants, _| *grants = Grants::default());
    }

    fn number(&self) -> GrantId {
        GrantId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn held<R>(&self, act: impl FnOnce(&mut Grants, std::time::Instant) -> R) -> R {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut grants, self.clock.now())
    }
}

/// The paths that are in one list and not, with the same digest, in the other.
fn difference(before: &[(PathBuf, Digest)], after: &[(PathBuf, Digest)]) -> Vec<PathBuf> {
    let missing = |here: &[(PathBuf, Digest)], there: &[(PathBuf, Digest)]| -> Vec<PathBuf> {
        here.iter()
            .filter(|file| !there.contains(file))
            .map(|(path, _)| path.clone())
            .collect()
    };
    let mut changed = missing(before, after);
    changed.extend(missing(after, before));
    changed.sort();
    changed.dedup();
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_appeared_or_disappeared_is_named_once() {
        let file = |path: &str, content: &str| (PathBuf::from(path), Digest::of(content.as_bytes()));
        let before = [file("same", "1"), file("changed", "1"), file("gone", "1")];
        let after = [file("same", "1"), file("changed", "2"), file("new", "1")];
        let expected: Vec<PathBuf> = ["changed", "gone", "new"].map(PathBuf::from).into();
        assert_eq!(difference(&before, &after), expected);
    }
}
