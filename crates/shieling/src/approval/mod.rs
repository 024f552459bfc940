//! Approval of requests: the only code that creates an [`Approved`].
//!
//! It asks an approver and remembers the grants. It starts nothing, touches no file, and never asks about a request
//! that the policy denied.
//!
//! ```text
//! verdict ─► deny ───────────────────────────────────────────► Refused::Denied
//!         ├► allow, and only asks are asked ─────────────────► Approved (by policy)
//!         └► ask, or everything is asked
//!               ├► an earlier grant covers it ───────────────► Approved (by grant)
//!               ├► asking is off, or there is no answer ─────► Refused::Unanswered
//!               ├► too long to be shown whole ───────────────► Refused::TooLong
//!               ├► no ───────────────────────────────────────► Refused::SaidNo
//!               └► yes ─┬► a file that it runs has changed ──► ask again
//!                       └► as it was ────────────────────────► Approved (by answer)
//! ```
#![forbid(unsafe_code)]

mod scope;
mod question;
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

use grant::Grants;
pub use question::{Answer, AnswerFuture, ApprovalContext, Approver, ApproverFn, NoApprover, Question};
pub use scope::{GrantId, GrantLimits, Scope};

/// The number of times that a request is asked about because files that it runs changed after the answer.
const ROUNDS: usize = 3;

/// The default time limit for an answer.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The basis of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The policy allowed the request without asking.
    Policy,
    /// An approver allowed this very start.
    Answer,
    /// An earlier grant covers the request.
    Grant,
}

impl Basis {
    /// Returns the name, as it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Answer => "answer",
            Self::Grant => "grant",
        }
    }
}

/// A request that the policy let through, and an approver too where that was required.
///
/// It is neither `Clone` nor mutable: one grant starts one thing, exactly as it was judged.
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
    /// Returns the request.
    pub fn request(&self) -> &T {
        &self.request
    }

    /// Returns the grant that it starts on.
    pub fn grant(&self) -> GrantId {
        self.grant
    }

    /// Returns the basis of the approval.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Returns the files that the text runs, in the state that was approved. It is empty if the policy alone decided,
    /// since the files were not read then.
    pub fn files(&self) -> &[(PathBuf, Digest)] {
        &self.files
    }

    /// Consumes the approval and returns the request.
    pub fn into_request(self) -> T {
        self.request
    }
}

/// Which requests an approver is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every request that no grant covers.
    Always,
    /// Those that the policy asks about: `--approval policy`.
    #[serde(rename = "policy")]
    OnAsk,
    /// None. Requests that the policy asks about are refused.
    Never,
}

/// Why a request was not approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The policy denies it; no approver was asked.
    #[error("the policy denies it")]
    Denied,
    /// It needs an approval, and asking is off.
    #[error("it needs a yes, and nobody is to be asked here")]
    NobodyToAsk,
    /// It needs an approval, and no approver answered.
    #[error("it needs a yes, and nobody answered")]
    Unanswered,
    /// The approver refused.
    #[error("the approver said no{}", if .because.is_empty() { String::new() } else { format!(": {}", .because) })]
    SaidNo {
        /// The approver's reason; may be empty.
        because: String,
    },
    /// The request is too long to be shown whole, so no approver was asked.
    #[error("it is too long to be shown whole (more than {most}), and nobody is asked about what they cannot see")]
    TooLong {
        /// The number of bytes that could be shown.
        most: ByteCount,
    },
    /// Files that the request runs changed after every answer.
    #[error("files that it runs were changed each time between the yes and the start")]
    KeepsChanging {
        /// The files that changed last.
        files: Vec<PathBuf>,
    },
}

/// Approves requests, and keeps the grants that cover more than one start. Shared by reference.
pub struct Approvals {
    mode: Mode,
    approver: Arc<dyn Approver>,
    clock: Arc<dyn Clock>,
    timeout: Duration,
    grants: Mutex<Grants>,
    next: AtomicU64,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals")
            .field("mode", &self.mode)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Approvals {
    /// Creates a set of approvals without grants. The time limit for an answer is 10 minutes.
    pub fn new(mode: Mode, approver: Arc<dyn Approver>, clock: Arc<dyn Clock>) -> Self {
        Self {
            mode,
            approver,
            clock,
            timeout: DEFAULT_TIMEOUT,
            grants: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// Sets the time limit for an answer. After it, the question counts as unanswered.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns which requests an approver is asked about.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns whether a question can be asked and answered at this moment ([`Approver::is_there`]).
    pub fn can_ask(&self) -> bool {
        self.mode != Mode::Never && self.approver.is_there()
    }

    /// Approves a request.
    ///
    /// `files` returns the files that the text runs, with their digests. It is called before the question and again
    /// right after the answer, so that what was approved is what starts. It cannot see a change between that call and
    /// the moment at which the shell opens the file; only an environment in which no other process can write excludes
    /// that.
    ///
    /// # Errors
    /// [`Refused`]. Nothing was started, and no grant was used up.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the question and grants nothing.
    ///
    /// # Panics
    /// Outside of a tokio runtime with timers, if an approver has to be asked.
    pub async fn approve<R: Request>(
        &self,
        request: R,
        case: &ApprovalContext<'_>,
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
            let answer = tokio::time::timeout(self.timeout, self.approver.ask(&question)).await;
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

    /// Grants an unanswered question in retrospect: the next request within the scope needs no answer.
    pub fn grant(&self, question: &Question, scope: Scope) -> GrantId {
        let grant = self.number();
        self.held(|grants, now| grants.keep(grant, question, scope, 0, now));
        grant
    }

    /// Revokes a grant. Returns whether it was still valid.
    pub fn revoke(&self, grant: GrantId) -> bool {
        self.held(|grants, now| grants.revoke(grant, now))
    }

    /// Revokes all grants.
    pub fn revoke_all(&self) {
        self.held(|grants, _| *grants = Grants::default());
    }

    fn number(&self) -> GrantId {
        GrantId::new(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn held<R>(&self, act: impl FnOnce(&mut Grants, std::time::Instant) -> R) -> R {
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut grants, self.clock.now())
    }
}

/// Returns the paths that are in only one of the lists, or whose digests differ.
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
