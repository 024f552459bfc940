//! From a verdict to an approval: for commands, input to jobs and operations on files. The intent is recorded before
//! anybody is asked, and the approval before anything starts.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::Shieling;
use super::entry::Entry;
use crate::approval::{ApprovalContext, Approved, Refused};
use crate::policy::{Decision, Verdict};
use crate::request::{Digest, Request};

/// Why nothing may start.
pub(super) enum Unauthorized {
    /// The refusal is to be recorded, in the words of whoever asked.
    Refused(Refused),
    /// The intent or the approval could not be recorded.
    Unrecorded(io::Error),
    /// All was closed before the answer came.
    Closed,
}

/// Records the intent, unless the verdict is a denial.
pub(super) fn announce(verdict: &Verdict, entry: &mut Entry) -> Result<(), Unauthorized> {
    if verdict.decision == Decision::Deny {
        entry.judged(verdict);
        return Err(Unauthorized::Refused(Refused::Denied));
    }
    entry.intent(verdict).map_err(Unauthorized::Unrecorded)
}

impl Shieling {
    /// Has an announced request approved, by a person where that is needed, and records the approval. `files` are those
    /// that the approval is bound to.
    pub(super) async fn authorize<R: Request>(
        &self,
        request: R,
        verdict: &Verdict,
        session: Option<&str>,
        entry: &mut Entry,
        files: impl Fn(&R) -> Vec<(PathBuf, Digest)>,
    ) -> Result<Approved<R>, Unauthorized> {
        let case = ApprovalContext {
            verdict,
            policy: self.policy_digest,
            environment: self.environment.name(),
            session,
        };
        let approved = self.approvals.approve(request, &case, files).await;
        let approved = approved.map_err(Unauthorized::Refused)?;
        if self.closed.load(Ordering::Acquire) {
            return Err(Unauthorized::Closed);
        }
        entry.approved(&approved).map_err(Unauthorized::Unrecorded)?;
        Ok(approved)
    }
}
