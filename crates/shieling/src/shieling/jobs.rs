//! What can be done with jobs: looking at them, typing into them, ending them, waiting for them.
//!
//! What is typed into a program that runs cannot be judged, since nobody knows what reads it. Where the
//! environment enforces all that the policy says, it needs no judgement. Elsewhere it is at least asked
//! about, as the shell command that it would be if a shell read it. Either way it is recorded that something was
//! typed, and how much; what it was is in no log, since it may be a password.

use std::time::Duration;

use super::entry::Entry;
use super::{Shieling, lookup, refusal};
use crate::approval::{ApprovalContext, Mode, Refused};
use crate::audit::{InputRecord, MAX_KEYS};
use crate::outcome::Outcome;
use crate::policy::{Decision, Reason, Verdict};
use crate::request::{Command, MAX_COMMAND_BYTES};
use crate::session::{
    Attachment, Job, JobError, JobId, JobInfo, JobInput, TakeOver as _, TerminalSize, ViewRequest, ViewResponse,
    WaitFor,
};

/// Keys that can only end something, as [`Shieling::kill`] can without asking.
const ENDING: &[&str] = &["C-c", "C-d", "C-\\"];

impl Shieling {
    /// What is new of a job.
    ///
    /// What is new is shown as much as the command keeps of each stream, first and last. From a
    /// cursor on, it is the next so many bytes of both streams together, and `cursor` leads on.
    ///
    /// # Errors
    /// [`JobError::Unknown`], and [`JobError::NoTerminal`] for a screen that is not there.
    /// # Cancel safety
    /// Cancel safe: what was not given counts as not seen.
    pub async fn view(&self, ask: ViewRequest) -> Result<ViewResponse, JobError> {
        self.jobs.find(&ask.job)?.view(&ask).await
    }

    /// As [`view`](Self::view), for somebody besides whoever the job belongs to: what is new for them
    /// stays new.
    ///
    /// # Errors
    /// Those of [`view`](Self::view).
    /// # Cancel safety
    /// Cancel safe.
    pub async fn peek(&self, ask: ViewRequest) -> Result<ViewResponse, JobError> {
        self.jobs.find(&ask.job)?.peek(&ask).await
    }

    /// Puts a job's keyboard into the hands of a person, who was not asked. What is typed into it
    /// otherwise is refused until the attachment is dropped.
    ///
    /// # Errors
    /// [`JobError::Unknown`], [`JobError::NoTerminal`], [`JobError::Ended`], [`JobError::PersonHolds`].
    pub fn attach(&self, job: &JobId) -> Result<Attachment, JobError> {
        let job = self.jobs.find(job)?;
        let attachment = job.attach()?;
        job.mark("a person took the keyboard");
        Ok(attachment)
    }

    /// Types into a job, and gives the output that followed within `wait`: once there is some, and
    /// then none for 200 ms.
    ///
    /// # Errors
    /// [`JobError`]; nothing was written, but for [`JobError::Full`].
    /// # Cancel safety
    /// What was written stays written; the rest is not written.
    pub async fn write(&self, job: &JobId, input: JobInput, wait: Duration) -> Result<ViewResponse, JobError> {
        let job = self.jobs.find(job)?;
        let mut entry = self.typing(&job, &input).await?;
        entry.starting();
        let view = job.write(&input, wait).await;
        let outcome = match &view {
            Ok(view) => view.outcome.clone(),
            Err(error) => {
                let mut outcome = job.outcome();
                // A text that was given as the name of a key is no less secret.
                outcome.error = Some(match error {
                    JobError::UnknownKey { .. } => "there is no such key".to_owned(),
                    error => error.to_string(),
                });
                outcome
            }
        };
        // It is written already, and the record of the intent stands.
        let recorded = entry.ended(&outcome);
        view.map(|mut view| {
            if let Err(error) = recorded {
                let told = format!("it was written, and that could not be recorded: {error}");
                view.outcome.error.get_or_insert(told);
            }
            view
        })
    }

    /// The outcome of a job's command, with the head and tail of all that it printed: once it has ended, or after
    /// this time, then `running`. Nothing counts as seen by it.
    ///
    /// # Errors
    /// [`JobError::Unknown`].
    /// # Cancel safety
    /// Cancel safe.
    pub async fn job_outcome(&self, job: &JobId, wait: Duration) -> Result<Outcome, JobError> {
        let job = self.jobs.find(job)?;
        Ok(match tokio::time::timeout(wait, job.ended()).await {
            Ok(outcome) => outcome,
            Err(_) => job.outcome(),
        })
    }

    /// Ends a job with all its processes. The end of one that has ended already is given again.
    ///
    /// # Errors
    /// [`JobError::Unknown`].
    /// # Cancel safety
    /// Cancel safe: the job goes on ending.
    pub async fn kill(&self, job: &JobId) -> Result<ViewResponse, JobError> {
        let job = self.jobs.find(job)?;
        job.kill().await;
        job.view(&ViewRequest::new(job.id().clone())).await
    }

    /// Makes a job's terminal so large.
    ///
    /// # Errors
    /// [`JobError::Unknown`], [`JobError::Ended`], [`JobError::NoTerminal`].
    pub fn resize(&self, job: &JobId, size: TerminalSize) -> Result<(), JobError> {
        self.jobs.find(job)?.resize(size)
    }

    /// Waits until something is so, at most for `budget`, and not beyond the end of the job. Whether
    /// it is, and what is new of the job then.
    ///
    /// # Errors
    /// [`JobError::Unknown`], [`JobError::Pattern`], and [`JobError::OwnNetwork`] for a port of a
    /// loopback device that only the job has.
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait_for(
        &self,
        job: &JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Result<(bool, ViewResponse), JobError> {
        let job = self.jobs.find(job)?;
        match what {
            WaitFor::Exit => Ok(job.wait_for_exit(budget).await),
            WaitFor::Pattern(pattern) => job.wait_for_pattern(&pattern, budget).await,
            // Nothing unapproved may run in there to look from inside.
            WaitFor::Port(_) if !self.shares_network() => Err(JobError::OwnNetwork { job: job.id().clone() }),
            WaitFor::Port(port) => Ok(job.wait_for_port(port, budget).await),
        }
    }

    /// The jobs, oldest first.
    pub(super) fn jobs_now(&self) -> Vec<JobInfo> {
        self.jobs.list()
    }

    /// Whether commands here see the same loopback device as this process.
    fn shares_network(&self) -> bool {
        match self.environment.name() {
            "local" => true,
            "sandbox" => !self
                .environment
                .confinement()
                .enforced
                .iter()
                .any(|layer| layer == "network"),
            _ => false,
        }
    }

    /// Has it approved that this is typed, and recorded.
    async fn typing(&self, job: &Job, input: &JobInput) -> Result<Entry, JobError> {
        let text = as_text(input);
        let command = Command::new(text, job.command().cwd())
            .map_err(|_| JobError::TooLong {
                bytes: input.text.len(),
                most: MAX_COMMAND_BYTES,
            })?
            .with_variables(job.command().variables().clone());
        let mut entry = self.entry(&command);
        entry.typing(command.text(), typed(job, input));
        let verdict = self.judge_typing(job, input, &command);
        let refused = |refused| refusal::unapproved(&refused, &verdict, &command, false).1;
        let unrecorded = |error: std::io::Error| JobError::Unrecorded(error.to_string());
        if verdict.decision == Decision::Deny {
            entry.judged(&verdict);
            let denial = refused(Refused::Denied);
            entry.refused(&denial).map_err(unrecorded)?;
            return Err(JobError::Refused(Box::new(denial)));
        }
        entry.intent(&verdict).map_err(unrecorded)?;
        if verdict.decision == Decision::Allow {
            return Ok(entry);
        }
        let session = job.session().map(ToString::to_string);
        let case = ApprovalContext {
            verdict: &verdict,
            policy: self.policy_digest,
            environment: self.environment.name(),
            session: session.as_deref(),
        };
        let files = |command: &Command| lookup::files(&verdict, command, &self.workspace, &self.place());
        match self.approvals.approve(command.clone(), &case, files).await {
            Ok(approved) => entry.approved(&approved).map_err(unrecorded)?,
            Err(no) => {
                let denial = refused(no);
                entry.refused(&denial).map_err(unrecorded)?;
                return Err(JobError::Refused(Box::new(denial)));
            }
        }
        job.mark("approved");
        Ok(entry)
    }

    /// What is to be said of typing this: allowed, or at least asked.
    fn judge_typing(&self, job: &Job, input: &JobInput, command: &Command) -> Verdict {
        let contained = self.is_contained();
        let ending = input.text.is_empty()
            && !input.enter
            && !input.keys.is_empty()
            && input.keys.iter().all(|key| ENDING.contains(&key.as_str()));
        let free = ending || (contained && self.approvals.mode() != Mode::Always);
        let reason = |decision, because: String| Reason {
            decision,
            rule: "typed".to_owned(),
            object: format!("job {}", job.id()),
            span: None,
            because,
            instead: None,
        };
        if free {
            return Verdict {
                decision: Decision::Allow,
                reasons: vec![reason(Decision::Allow, "it is typed into a running program".to_owned())],
                commands: Vec::new(),
                effects: Vec::new(),
            };
        }
        let mut verdict = self.judge(command);
        verdict.decision = verdict.decision.max(Decision::Ask);
        verdict.reasons.push(reason(
            Decision::Ask,
            "what a running program makes of what is typed into it cannot be judged".to_owned(),
        ));
        verdict
    }
}

/// What a log may hold of what is typed.
fn typed(job: &Job, input: &JobInput) -> InputRecord {
    let (bytes, named) = input.described();
    InputRecord {
        job: job.id().to_string(),
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        keys: named.iter().take(MAX_KEYS).map(|&name| name.to_owned()).collect(),
        keys_omitted: named.len().saturating_sub(MAX_KEYS),
    }
}

/// What is typed, as a shell would read it. Keys without a character stand in a comment.
fn as_text(input: &JobInput) -> String {
    let mut text = input.text.replace('\0', "\u{2400}");
    let mut named = Vec::new();
    for key in &input.keys {
        if key.chars().count() == 1 {
            text.push_str(key);
        } else {
            named.push(key.as_str());
        }
    }
    if text.trim().is_empty() && named.is_empty() {
        named.push(if input.enter { "Enter" } else { "nothing" });
    }
    if !named.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("# keys: ");
        text.push_str(&named.join(" ").replace(|c: char| c.is_control(), "\u{fffd}"));
    }
    text
}

#[cfg(test)]
mod tests;
