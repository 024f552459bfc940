//! What was held back, put to a person: shown with its reasons and its diff, moved into the workspace by a yes, and left
//! where it is by anything else.
//!
//! ```text
//! held back ─► nobody can be asked at this moment, or they were asked about this very change before ─► stays, with its id
//!           └► shown ─► no, no answer ─────────────────────────────────────────────────────────────► stays, and is told
//!                    └► yes ─► it is what was shown ─► accepted
//!                           └► it, or the workspace, was changed meanwhile ────────────────────────► stays, and is told
//! ```
//!
//! It decides nothing: a yes is the approver's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Shieling;
use super::entry::Entry;
use crate::approval::Approved;
use crate::environment::{AcceptError, HeldBackReview};
use crate::files::FilesError;
use crate::outcome::{Accepted, ChangeMode, Changes, HeldBack, Layer, PATHS_TOLD, ReviewAnswer, Status};
use crate::policy::{Decision, Reason, Verdict};
use crate::request::{FileOp, Operation, Request as _};
use crate::units::ByteCount;

/// How many questions are asked after one command. Of more, a person is told where they are kept.
const QUESTIONS: usize = 8;

/// What one question is about.
#[derive(Debug)]
struct Subject {
    /// What is shown, at its path and below.
    top: HeldBack,
    /// All of it that was held back, with its reasons.
    reasons: Vec<(PathBuf, String)>,
}

/// What can be asked about: what lies below another path of the same set is shown with that.
fn subjects(held_back: &[HeldBack]) -> Vec<Subject> {
    let mut kept: Vec<&HeldBack> = held_back.iter().filter(|held| held.id.is_some()).collect();
    kept.sort_by(|one, other| (&one.id, &one.path).cmp(&(&other.id, &other.path)));
    let mut subjects: Vec<Subject> = Vec::new();
    for held in kept {
        let reason = (held.path.clone(), held.because.clone());
        match subjects.last_mut() {
            Some(last) if last.top.id == held.id && held.path.starts_with(&last.top.path) => last.reasons.push(reason),
            _ => subjects.push(Subject {
                top: held.clone(),
                reasons: vec![reason],
            }),
        }
    }
    subjects
}

impl Shieling {
    /// Asks about what was held back, if that is to be and somebody is there, and says what became of it. Gives what went
    /// wrong, which leaves it held back.
    pub(super) async fn ask_about_held_back(&self, changes: &mut Changes) -> Option<String> {
        if !self.questions.is_on_about_held_back
            || changes.held_back.iter().all(|held| held.id.is_none())
            || !self.approvals.can_ask()
        {
            return None;
        }
        let mut failed = None;
        let mut questions = 0;
        for subject in subjects(&changes.held_back) {
            if questions == QUESTIONS {
                break;
            }
            let environment = Arc::clone(&self.environment);
            let top = subject.top.clone();
            let looked = tokio::task::spawn_blocking(move || environment.review_held_back(&top)).await;
            // What cannot be shown is told with the way to look at it, as before.
            let Ok(Some(Ok(reviewed))) = looked else { continue };
            let op = self.operation(&reviewed);
            if !self.questions.is_new(op.digest()) {
                continue;
            }
            questions += 1;
            let reasons = subject.reasons.iter().map(|(path, because)| reason(path, because));
            let (entry, approved) = self.ask_about_changes(op, reasons.collect()).await;
            let answer = match approved {
                Ok(approved) => match self.accept(reviewed, approved, entry, &mut failed).await {
                    Ok(accepted) => {
                        told_accepted(changes, &subject, accepted);
                        continue;
                    }
                    Err(AcceptError::Changed) => Some(ReviewAnswer::Changed),
                    Err(AcceptError::Failed(why)) => {
                        failed.get_or_insert(why);
                        Some(ReviewAnswer::Failed)
                    }
                },
                Err(error) => answer_of(&error),
            };
            let of_it = |held: &&mut HeldBack| held.id == subject.top.id && held.path.starts_with(&subject.top.path);
            changes
                .held_back
                .iter_mut()
                .filter(of_it)
                .for_each(|held| held.answer = answer);
            if answer == Some(ReviewAnswer::Unanswered) {
                break;
            }
        }
        failed
    }

    fn operation(&self, reviewed: &HeldBackReview) -> FileOp {
        let review = &reviewed.review;
        let cut_at = review.is_cut.then(|| ByteCount::bytes(review.diff.len() as u64));
        FileOp::new(Operation::AcceptHeldBack, &self.workspace, &[], review.paths.clone())
            .with_content(reviewed.digest)
            .with_change(review.diff.clone())
            .with_change_cut(cut_at)
    }

    /// Asks whether changes that were made already may go into the workspace.
    pub(super) async fn ask_about_changes(
        &self,
        op: FileOp,
        reasons: Vec<Reason>,
    ) -> (Entry, Result<Approved<FileOp>, FilesError>) {
        let mut verdict = Verdict {
            decision: Decision::Ask,
            reasons,
            commands: Vec::new(),
            effects: Vec::new(),
        };
        let policy = self.policy.judge_file(&op);
        verdict.decision = verdict.decision.max(policy.decision);
        verdict.reasons.extend(policy.reasons);
        let mut entry = self.entry(&op);
        entry.of_files(&op);
        let approved = self.approve_files(op, &verdict, false, &mut entry).await;
        (entry, approved)
    }

    /// Does what a person said yes to, and records how that ended. If it cannot be recorded, it is done all the same,
    /// and `failed` says why.
    async fn accept(
        &self,
        reviewed: HeldBackReview,
        approved: Approved<FileOp>,
        mut entry: Entry,
        failed: &mut Option<String>,
    ) -> Result<Changes, AcceptError> {
        let environment = Arc::clone(&self.environment);
        let holds = environment.confinement();
        let accepted = tokio::task::spawn_blocking(move || {
            entry.starting();
            drop(approved.into_request());
            let accepted = environment.accept_held_back(&reviewed);
            let ended = match &accepted {
                Ok(_) => Ok(None),
                Err(error) => Err(FilesError::Fault(error.to_string())),
            };
            let recorded = entry.ended_files(ended.as_ref().copied(), holds);
            (accepted, recorded.err().map(|error| error.to_string()))
        });
        let (accepted, unrecorded) = accepted
            .await
            .unwrap_or_else(|error| (Err(AcceptError::Failed(error.to_string())), None));
        if let Some(error) = unrecorded {
            failed.get_or_insert(format!("what was accepted could not be recorded: {error}"));
        }
        accepted
    }
}

fn reason(path: &Path, because: &str) -> Reason {
    Reason {
        decision: Decision::Ask,
        rule: "held-back".to_owned(),
        object: path.to_string_lossy().into_owned(),
        span: None,
        because: because.to_owned(),
        instead: None,
    }
}

/// What an answer that is no yes was. Nothing if nobody was asked.
pub(super) fn answer_of(error: &FilesError) -> Option<ReviewAnswer> {
    let FilesError::Refused { status, denial } = error else {
        return None;
    };
    match (status, denial.layer) {
        (Status::Denied, Layer::Approval) => Some(ReviewAnswer::Refused),
        (Status::NeedsApproval, Layer::Approval) if !denial.is_for_length() => Some(ReviewAnswer::Unanswered),
        _ => None,
    }
}

/// Moves what was accepted from the one list to the other.
fn told_accepted(changes: &mut Changes, subject: &Subject, accepted: Changes) {
    let Some(id) = accepted.id else { return };
    let top = &subject.top;
    let before = changes.held_back.len();
    changes
        .held_back
        .retain(|held| !(held.id == top.id && held.path.starts_with(&top.path)));
    let taken = before - changes.held_back.len();
    let named = subject.reasons.iter().map(|(path, _)| Accepted {
        path: path.clone(),
        id: id.clone(),
    });
    changes.accepted.extend(named);
    // The set that was named first is gone once nothing is held back in it.
    if changes.mode == ChangeMode::Direct && changes.id == top.id {
        let next = changes.held_back.iter().find_map(|held| held.id.clone());
        changes.id = next.or_else(|| Some(id.clone()));
    }
    changes.id.get_or_insert(id);
    let lists = [
        (&mut changes.added, accepted.added),
        (&mut changes.modified, accepted.modified),
        (&mut changes.deleted, accepted.deleted),
    ];
    for (list, more) in lists {
        if let (Some(list), Some(more)) = (list, more) {
            let room = PATHS_TOLD.saturating_sub(list.len());
            let new: Vec<PathBuf> = more
                .into_iter()
                .filter(|path| !list.contains(path))
                .take(room)
                .collect();
            list.extend(new);
        }
    }
    if let (Some(list), Some(more)) = (&mut changes.renamed, accepted.renamed) {
        let room = PATHS_TOLD.saturating_sub(list.len());
        list.extend(more.into_iter().take(room));
    }
    if let Some(totals) = &mut changes.totals {
        totals.held_back = totals.held_back.saturating_sub(taken as u64);
        if changes.mode == ChangeMode::Commit {
            let more = accepted.totals.unwrap_or_default();
            totals.added += more.added;
            totals.modified += more.modified;
            totals.deleted += more.deleted;
            totals.renamed += more.renamed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: Option<&str>, path: &str) -> HeldBack {
        HeldBack::new(path, "why", "instead").with_id(id.map(str::to_owned))
    }

    #[test]
    fn what_lies_in_a_directory_is_asked_about_with_it_and_what_is_kept_nowhere_is_not_asked_about() {
        let all = [
            held(Some("b"), "d/x"),
            held(Some("a"), "d/x"),
            held(Some("a"), "d"),
            held(None, "d/y"),
            held(Some("a"), "dd"),
        ];
        let subjects = subjects(&all);
        let told: Vec<_> = subjects
            .iter()
            .map(|subject| {
                (
                    subject.top.id.as_deref(),
                    subject.top.path.to_str(),
                    subject.reasons.len(),
                )
            })
            .collect();
        let expected = [
            (Some("a"), Some("d"), 2),
            (Some("a"), Some("dd"), 1),
            (Some("b"), Some("d/x"), 1),
        ];
        assert_eq!(told, expected);
    }
}
