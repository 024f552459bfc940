//! Operations on jobs: view, input, end, wait.
//!
//! Input to a running program cannot be judged, because it is unknown which program reads it. Where the environment
//! enforces the whole policy, no judgement is needed. Elsewhere input requires approval, as the shell command that it
//! would be if a shell read it. The record has the amount of input and its named keys, never its text, which may be a
//! password.

use std::time::Duration;

use super::authorize::{Unauthorized, announce};
use super::entry::Entry;
use super::{Shieling, lookup, refusal};
use crate::approval::Mode;
use crate::audit::{InputRecord, MAX_KEYS};
use crate::outcome::{Outcome, Status};
use crate::policy::{Decision, Reason, Verdict};
use crate::request::{Command, MAX_COMMAND_BYTES};
use crate::session::{
    Attachment, Job, JobError, JobId, JobInfo, JobInput, TakeOver as _, TerminalSize, ViewRequest, ViewResponse,
    WaitFor,
};

/// Keys that can only end a program, which [`Shieling::kill`] may do without approval.
const ENDING: &[&str] = &["C-c", "C-d", "C-\\"];

impl Shieling {
    /// Returns the new output of a job. If its command has ended while no call waited for it, a person is first asked
    /// about the changes that it left, where they are to be; so they are by each of the calls below that return its
    /// outcome.
    ///
    /// Without a cursor, this is the output since the last view: the first and last bytes of each stream, as many as the
    /// command keeps. With a cursor, it is the next bytes of both streams together, and `cursor` continues after them.
    ///
    /// # Errors
    /// [`JobError::Unknown`], and [`JobError::NoTerminal`] for the screen of a job without a terminal.
    /// # Cancel safety
    /// Cancel safe: output that was not returned stays new.
    pub async fn view(&self, ask: ViewRequest) -> Result<ViewResponse, JobError> {
        let job = self.jobs.find(&ask.job)?;
        job.await_view(&ask).await?;
        self.review_end(&job).await;
        Ok(job.look(ask.cursor, ask.screen))
    }

    /// Marks the output of a view as new again, for a view that its caller was no longer there to receive. Does nothing if
    /// another view has returned more since, or the job is unknown.
    pub fn unview(&self, job: &JobId, view: &ViewResponse) {
        if let Ok(job) = self.jobs.find(job) {
            job.unview(view);
        }
    }

    /// Returns output as [`view`](Self::view) does, for another viewer: it stays new for the owner of the job.
    ///
    /// # Errors
    /// Those of [`view`](Self::view).
    /// # Cancel safety
    /// Cancel safe.
    pub async fn peek(&self, ask: ViewRequest) -> Result<ViewResponse, JobError> {
        self.jobs.find(&ask.job)?.peek(&ask).await
    }

    /// Gives a job's keyboard to a person without asking. Other input is refused until the attachment is dropped.
    ///
    /// # Errors
    /// [`JobError::Unknown`], [`JobError::NoTerminal`], [`JobError::Ended`], [`JobError::PersonHolds`].
    pub fn attach(&self, job: &JobId) -> Result<Attachment, JobError> {
        let job = self.jobs.find(job)?;
        let attachment = job.attach()?;
        job.mark("a person took the keyboard");
        Ok(attachment)
    }

    /// Sends input to a job. Returns the output that follows within `wait`: once there is some, and then none for 200 ms.
    ///
    /// # Errors
    /// [`JobError`]. Nothing was written, except for [`JobError::Full`].
    /// # Cancel safety
    /// Dropping the future stops writing. What was written stays written.
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
        // The input is already written, and its intent recorded.
        let recorded = entry.ended(&outcome);
        let mut view = view?;
        if view.outcome.status != Status::Running {
            self.review_end(&job).await;
            job.tell_review(&mut view.outcome);
        }
        if let Err(error) = recorded {
            let told = format!("it was written, and that could not be recorded: {error}");
            view.outcome.error.get_or_insert(told);
        }
        Ok(view)
    }

    /// Waits for the end of a job's command and returns its outcome, with the head and tail of its whole output. After
    /// `wait`, the status is `running`. New output stays new.
    ///
    /// # Errors
    /// [`JobError::Unknown`].
    /// # Cancel safety
    /// Cancel safe.
    pub async fn job_outcome(&self, job: &JobId, wait: Duration) -> Result<Outcome, JobError> {
        let job = self.jobs.find(job)?;
        let _ = tokio::time::timeout(wait, job.ended()).await;
        self.review_end(&job).await;
        Ok(job.outcome())
    }

    /// Ends a job with all of its processes. If it has already ended, returns its end again.
    ///
    /// # Errors
    /// [`JobError::Unknown`].
    /// # Cancel safety
    /// Cancel safe: the end continues in the background.
    pub async fn kill(&self, job: &JobId) -> Result<ViewResponse, JobError> {
        let job = self.jobs.find(job)?;
        job.kill().await;
        self.review_end(&job).await;
        Ok(job.look(None, false))
    }

    /// Resizes a job's terminal.
    ///
    /// # Errors
    /// [`JobError::Unknown`], [`JobError::Ended`], [`JobError::NoTerminal`].
    pub fn resize(&self, job: &JobId, size: TerminalSize) -> Result<(), JobError> {
        self.jobs.find(job)?.resize(size)
    }

    /// Waits for a condition, until the job ends and for at most `budget`. Returns whether the condition holds, and the new
    /// output.
    ///
    /// # Errors
    /// [`JobError::Unknown`], [`JobError::Pattern`], and [`JobError::OwnNetwork`] for a port of a loopback device that
    /// this process does not share.
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait_for(
        &self,
        job: &JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Result<(bool, ViewResponse), JobError> {
        let job = self.jobs.find(job)?;
        let met = match what {
            WaitFor::Exit => job.wait_for_exit(budget).await,
            WaitFor::Pattern(pattern) => job.wait_for_pattern(&pattern, budget).await?,
            // Probing the port from inside would run an unapproved process there.
            WaitFor::Port(_) if !self.environment.shares_network() => {
                return Err(JobError::OwnNetwork { job: job.id().clone() });
            }
            WaitFor::Port(port) => job.wait_for_port(port, budget).await,
        };
        self.review_end(&job).await;
        Ok((met, job.look(None, false)))
    }

    /// Returns the jobs, oldest first.
    pub(super) fn jobs_now(&self) -> Vec<JobInfo> {
        self.jobs.list()
    }

    /// Has the input approved and its intent recorded.
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
        let unauthorized = |entry: &mut Entry, why| {
            let unrecorded = |error: std::io::Error| JobError::Unrecorded(error.to_string());
            match why {
                Unauthorized::Refused(no) => {
                    let (_, denial) = refusal::unapproved(&no, &verdict, &command, false);
                    match entry.refused(&denial) {
                        Ok(()) => JobError::Refused(Box::new(denial)),
                        Err(error) => unrecorded(error),
                    }
                }
                Unauthorized::Unrecorded(error) => unrecorded(error),
                Unauthorized::Closed => JobError::Closed,
            }
        };
        announce(&verdict, &mut entry).map_err(|why| unauthorized(&mut entry, why))?;
        // Also where everything is asked about, keys that can only end a program are not.
        if verdict.decision == Decision::Allow {
            return Ok(entry);
        }
        let session = job.session().map(ToString::to_string);
        let files = |command: &Command| lookup::files(&verdict, command, &self.workspace, &self.place());
        let approved = self.authorize(command.clone(), &verdict, session.as_deref(), &mut entry, files);
        drop(approved.await.map_err(|why| unauthorized(&mut entry, why))?);
        job.mark("approved");
        Ok(entry)
    }

    /// Judges the input: allowed, or at least to be asked about.
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

/// Returns what the log may contain about the input.
fn typed(job: &Job, input: &JobInput) -> InputRecord {
    let (bytes, named) = input.described();
    InputRecord {
        job: job.id().to_string(),
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        keys: named.iter().take(MAX_KEYS).map(|&name| name.to_owned()).collect(),
        keys_omitted: named.len().saturating_sub(MAX_KEYS),
    }
}

/// Returns the input as shell text. Keys without a character are listed in a comment.
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
