//! Staged changes that wait for a person: shown as what they are, asked about as other changes of files are, and
//! recorded with the answer.

use std::path::PathBuf;
use std::sync::Arc;

use super::held_back::answer_of;
use super::{Shieling, refusal};
use crate::environment::{Environment, Review};
use crate::files::FilesError;
use crate::outcome::{Accepted, ChangeMode, ChangeState, Changes, HeldBack, Outcome, ReviewAnswer};
use crate::request::{Digest, FileOp, Operation, Request as _};
use crate::session::Job;
use crate::units::ByteCount;

/// How many of the changes that were held back are named after a change of files.
const HELD_BACK_SHOWN: usize = 3;

impl Shieling {
    /// Asks a person about what a command staged, if it waits for that, and says in its outcome what became of it.
    pub(super) async fn review(&self, outcome: &mut Outcome) {
        let Some(changes) = &mut outcome.changes else { return };
        let reviewed = self.review_changes(changes).await;
        let asked = self.ask_about_held_back(changes).await;
        if let Some(error) = reviewed.or(asked) {
            outcome.error.get_or_insert(error);
        }
    }

    /// Asks a person about what a job's command left, once it has ended: what waits, and what was held back. The command
    /// may have ended while no call waited for it, so each call about the job comes here. A person is asked once.
    pub(super) async fn review_end(&self, job: &Arc<Job>) {
        // Without a person to ask, a later call may have one.
        if !self.approvals.can_ask() {
            return;
        }
        if let Some(mut claim) = job.claim_review() {
            self.review(&mut claim.outcome).await;
            claim.done();
        }
    }

    /// Commits what a change of these files left staged, or asks about it, and says what became of it.
    pub(super) async fn settle(&self, changed: &[PathBuf]) -> Option<String> {
        let environment = Arc::clone(&self.environment);
        let mut changes = tokio::task::spawn_blocking(move || environment.settle()).await.ok()??;
        let reviewed = self.review_changes(&mut changes).await;
        let error = reviewed.or(self.ask_about_held_back(&mut changes).await);
        let state = match (changes.state, &changes.id) {
            (ChangeState::Committed, _) => error,
            (ChangeState::Discarded, _) => {
                return Some("staged: seen by commands, and removed with the sandbox".to_owned());
            }
            (ChangeState::Waiting, Some(id)) => {
                let answer = changes
                    .answer
                    .map_or_else(String::new, |answer| format!("{}; ", answer.text()));
                Some(format!(
                    "staged: {answer}it waits in the change set {id} until a person applies it"
                ))
            }
            (ChangeState::Waiting | ChangeState::Conflict, _) => {
                let first = changes.conflicts.first();
                Some(first.map_or_else(
                    || "staged, and not committed".to_owned(),
                    |conflict| format!("staged, and not committed: {}; {}", conflict.because, conflict.instead),
                ))
            }
        };
        // A staged set holds what commands before it have made as well.
        let is_of_these = |held: &&HeldBack| {
            let path = self.workspace.join(&held.path);
            changes.mode == ChangeMode::Direct || changed.iter().any(|changed| path.starts_with(changed))
        };
        let of_these: Vec<&HeldBack> = changes.held_back.iter().filter(is_of_these).collect();
        let held = of_these.iter().take(HELD_BACK_SHOWN);
        let held = held.map(|held| format!("held back: {}", held.text()));
        let more = of_these.len().saturating_sub(HELD_BACK_SHOWN);
        let more = (more > 0).then(|| format!("{more} more were held back"));
        let accepted = changes.accepted.iter().map(Accepted::text);
        let all: Vec<String> = state.into_iter().chain(accepted).chain(held).chain(more).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    async fn review_changes(&self, changes: &mut Changes) -> Option<String> {
        let waits = changes.mode == ChangeMode::Review && changes.state == ChangeState::Waiting;
        if !waits || !self.approvals.can_ask() {
            return None;
        }
        let environment = Arc::clone(&self.environment);
        let reviewed = tokio::task::spawn_blocking(move || environment.review()).await.ok()??;
        let Review { paths, diff, is_cut } = match reviewed {
            Ok(review) => review,
            Err(error) => return Some(error),
        };
        let mut undecided = Undecided(Some(Arc::clone(&self.environment)));
        let cut_at = is_cut.then(|| ByteCount::bytes(diff.len() as u64));
        let op = FileOp::new(Operation::CommitChanges, &self.workspace, &[], paths)
            .with_content(Digest::of(diff.as_bytes()))
            .with_change(diff)
            .with_change_cut(cut_at);
        let question = op.digest();
        // What lies behind the end of a diff that is cut is not in its digest.
        if !is_cut && self.questions.was_asked(question) {
            changes.answer = Some(ReviewAnswer::Refused);
            undecided.0 = None;
            let environment = Arc::clone(&self.environment);
            tokio::task::spawn_blocking(move || environment.decide(false))
                .await
                .ok();
            return None;
        }
        let because = refusal::required(op.text(), "staged changes are reviewed before they are committed");
        let (mut entry, approved) = self.ask_about_changes(op, vec![because]).await;
        undecided.0 = None;
        changes.answer = approved.as_ref().err().and_then(answer_of);
        if changes.answer == Some(ReviewAnswer::Refused) {
            self.questions.is_new(question);
        }
        let yes = approved.is_ok();
        let environment = Arc::clone(&self.environment);
        let holds = environment.confinement();
        let decided = tokio::task::spawn_blocking(move || {
            if yes {
                entry.starting();
            }
            let decided = environment.decide(yes);
            if yes {
                let ended = match &decided {
                    Some(Err(error)) => Err(FilesError::Fault(error.clone())),
                    Some(Ok(_)) | None => Ok(None),
                };
                let recorded = entry.ended_files(ended.as_ref().copied(), holds);
                if let Err(error) = recorded {
                    return Some(Err(format!("the commit could not be recorded: {error}")));
                }
            }
            decided
        });
        match decided.await.ok()?? {
            Ok(committed) => {
                *changes = committed;
                None
            }
            Err(error) => Some(error),
        }
    }
}

/// A copy that a person is asked about, which is forgotten if nobody waits for the answer any more.
struct Undecided(Option<Arc<dyn Environment>>);

impl Drop for Undecided {
    fn drop(&mut self) {
        if let Some(environment) = self.0.take() {
            let _ = environment.decide(false);
        }
    }
}
