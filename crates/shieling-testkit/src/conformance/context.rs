//! The context of a case: an environment with a façade, and operations on both.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::approval::{Answer, AnswerFuture, Approver, Mode, Question, Scope};
use shieling::environment::{Ability, Capabilities};
use shieling::outcome::Outcome;
use shieling::request::Command;
use shieling::session::{JobId, JobRequest, OnTimeout, SessionName};
use shieling::{Builder, SessionHandle, Shieling};

use super::expect::{DescribeError as _, holds, same};
use super::report::Checked;
use super::step::{Need, Step, Text};
use super::{CheckFailure, EnvironmentFactory, OutsideDirectory, Requirements, TestEnvironment, Unmet};
use crate::{Marker, leftovers};

/// The largest time for closing a façade, and for the end of what it leaves.
const CLOSING: Duration = Duration::from_secs(20);

/// The tolerance for calls beyond their deadline on a busy machine.
pub(crate) const BEYOND: Duration = Duration::from_secs(20);

/// An approver that allows everything, such as what a policy cannot decide.
struct Yes;

impl Approver for Yes {
    fn ask<'a>(&'a self, _question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async { Answer::Yes(Scope::Once) })
    }
}

/// The context of one case.
pub(crate) struct Context {
    pub(crate) shieling: Arc<Shieling>,
    pub(crate) factory: Arc<dyn EnvironmentFactory>,
    pub(crate) can: Capabilities,
    place: TestEnvironment,
    marker: Marker,
    /// The timeout for events.
    timeout: Duration,
}

impl Context {
    /// Builds the façade over an environment.
    ///
    /// # Errors
    /// [`Unmet::Refused`] if the environment refuses the policy.
    pub(crate) fn new(
        factory: Arc<dyn EnvironmentFactory>,
        place: TestEnvironment,
        requirements: &Requirements,
        configure: fn(Builder) -> Builder,
        timeout: Duration,
    ) -> Result<Self, Unmet> {
        let policy = requirements.policy.clone();
        let builder = Shieling::builder(Arc::clone(&place.environment), policy, &place.workspace)
            .approver(Arc::new(Yes))
            .approval(Mode::OnAsk);
        let shieling = configure(builder).build();
        Ok(Self {
            shieling: Arc::new(shieling.map_err(|error| Unmet::Refused(error.to_string()))?),
            factory,
            can: place.environment.capabilities(),
            place,
            marker: Marker::new(),
            timeout: timeout.min(CLOSING),
        })
    }

    /// Returns whether the environment meets a need.
    pub(crate) fn meets(&self, need: Need) -> bool {
        match need {
            Need::Can(ability) => self.can(ability),
            Need::Hides => self.shieling.enforced().hidden,
            Need::EnforcesReadonly => self.shieling.enforced().readonly,
            Need::EnforcesAllow => self.shieling.enforced().programs,
            Need::Limits(limit) => self.can.limits.contains(&limit),
            Need::Gives(network) => self.can.networks.contains(&network),
            Need::OutsideDirectory => self.place.outside.is_some(),
            // Probed once, in an environment without a policy.
            Need::Program(_) => true,
        }
    }

    pub(crate) fn can(&self, ability: Ability) -> bool {
        self.can.abilities.contains(&ability)
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.place.workspace
    }

    pub(crate) fn place(&self) -> &TestEnvironment {
        &self.place
    }

    /// Returns access to the directory beside the workspace.
    pub(crate) fn outside(&self) -> Result<&dyn OutsideDirectory, CheckFailure> {
        let outside = self.place.outside.as_deref();
        outside.ok_or_else(|| CheckFailure::new("a place outside", "none"))
    }

    /// Returns the absolute path of a file in the workspace.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.place.workspace.join(relative)
    }

    /// Creates a command in the workspace, with the environment's variables.
    pub(crate) fn command(&self, text: &str) -> Command {
        let mut variables = self.place.variables.clone();
        variables.extend([self.marker.variable(), ("LC_ALL".to_owned(), "C.UTF-8".to_owned())]);
        Command::new(text, &self.place.workspace)
            .expect("texts of ours are commands")
            .with_variables(variables)
            .with_grace(Duration::from_millis(100))
    }

    /// Creates a command with this deadline.
    pub(crate) fn within(&self, text: &str, milliseconds: u64) -> Command {
        self.command(text)
            .with_deadline(Duration::from_millis(milliseconds))
            .expect("more than zero")
    }

    /// Runs a text in a new process.
    pub(crate) async fn run(&self, text: &str) -> Outcome {
        self.shieling.run(self.command(text), None).await
    }

    /// Returns the output of a text that must exit with 0.
    pub(crate) async fn says(&self, text: &str) -> Result<String, CheckFailure> {
        let outcome = self.run(text).await;
        holds(
            &format!("`{text}` exits with 0"),
            outcome.exit_code == Some(0),
            &outcome.described(),
        )?;
        Ok(outcome.stdout)
    }

    /// Creates a request whose command is ended at its deadline.
    pub(crate) fn call(&self, text: &str) -> JobRequest {
        JobRequest::new(self.within(text, 20_000)).with_on_timeout(OnTimeout::Kill)
    }

    /// Returns the session `main`.
    pub(crate) fn session(&self) -> SessionHandle<'_> {
        self.shieling.session(SessionName::default())
    }

    /// Runs a text in the session `main`.
    pub(crate) async fn shell(&self, text: &str) -> Outcome {
        self.session().run(self.call(text)).await
    }

    /// Starts a job that accepts input.
    pub(crate) async fn job(&self, text: &str) -> Result<JobId, CheckFailure> {
        self.started(self.call(text)).await
    }

    /// Starts a job in a process of its own.
    pub(crate) async fn started(&self, call: JobRequest) -> Result<JobId, CheckFailure> {
        Self::job_of(&self.shieling.start_job(call).await)
    }

    /// Returns the job of an outcome.
    pub(crate) fn job_of(outcome: &Outcome) -> Result<JobId, CheckFailure> {
        let job = outcome.job.as_deref().and_then(|job| job.parse().ok());
        job.ok_or_else(|| CheckFailure::new("a job", outcome.described()))
    }

    /// Returns the processes with the marker of this context.
    pub(crate) fn left(&self) -> Vec<u32> {
        if self.can(Ability::Processes) {
            leftovers(&self.marker)
        } else {
            Vec::new()
        }
    }

    /// Waits for a condition.
    pub(crate) async fn until(&self, what: &str, so: impl Fn() -> bool + Send) -> Checked {
        let end = Instant::now() + self.timeout;
        while Instant::now() < end {
            if so() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(CheckFailure::new(
            what,
            format!("not so within {} s", self.timeout.as_secs()),
        ))
    }

    /// Waits until a file of the workspace is not empty, as seen by commands.
    pub(crate) async fn appears(&self, file: &str) -> Checked {
        let end = Instant::now() + self.timeout;
        while Instant::now() < end {
            if self.run(&format!("test -s {file}")).await.exit_code == Some(0) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(CheckFailure::new(
            format!("`{file}`"),
            format!("none within {} s", self.timeout.as_secs()),
        ))
    }

    /// Waits until none of its processes is left.
    pub(crate) async fn nobody_left(&self) -> Checked {
        self.until("0 processes are left", || self.left().is_empty()).await
    }

    /// Closes the façade, and checks that no process is left.
    pub(crate) async fn close(&self) -> Checked {
        let closing = tokio::time::timeout(self.timeout, self.shieling.close()).await;
        let late = || {
            CheckFailure::new(
                "it can be closed",
                format!("not closed within {} s", self.timeout.as_secs()),
            )
        };
        closing.map_err(|_| late())?;
        self.nobody_left().await
    }

    /// Runs a step, and checks its result.
    pub(crate) async fn step(&self, step: &Step) -> Checked {
        let begun = Instant::now();
        let milliseconds = u64::try_from(step.deadline.as_millis()).unwrap_or(u64::MAX);
        let command = self.within(&self.filled(&step.text), milliseconds);
        let command = match step.directory {
            "" => command,
            below => Command::new(command.text(), self.path(below))
                .expect("an absolute path")
                .with_variables(command.variables().clone())
                .with_deadline(step.deadline)
                .expect("more than zero"),
        };
        let outcome = match step.session {
            None => self.shieling.run(command, None).await,
            Some(session) => {
                let session = self.shieling.session(session.parse().expect("a good name"));
                let request = JobRequest::new(command).with_on_timeout(OnTimeout::Kill);
                session.run(request).await
            }
        };
        let took = begun.elapsed();
        let of = |what: &str| format!("{what} of `{}`", step.text);
        let end = (outcome.status, step.code.and(outcome.exit_code));
        if end != (step.status, step.code) {
            let expected = format!("{} {:?}: {:?}", of("the end"), step.status, step.code);
            return Err(CheckFailure::new(expected, outcome.described()));
        }
        self.stream(&of("stdout"), &step.stdout, &outcome.stdout, &outcome)?;
        self.stream(&of("stderr"), &step.stderr, &outcome.stderr, &outcome)?;
        if let Some(restarted) = step.restarted {
            same(&of("`session_restarted`"), outcome.session_restarted, restarted)?;
        }
        if let Some(cwd) = step.cwd {
            same(&of("the directory"), outcome.cwd.as_path(), self.path(cwd))?;
        }
        if let Some(bytes) = step.bytes {
            same(&of("the bytes"), (outcome.stdout_bytes, outcome.stderr_bytes), bytes)?;
        }
        same(&of("the survivors"), outcome.survivors, 0)?;
        let bound = step.deadline.saturating_add(BEYOND);
        holds(
            &format!("an answer within {bound:?}"),
            took <= bound,
            &format!("{took:?}"),
        )
    }

    /// Inserts the workspace's path into a text.
    fn filled(&self, text: &str) -> String {
        text.replace("{W}", &self.place.workspace.to_string_lossy())
    }

    fn stream(&self, what: &str, expected: &Text, seen: &str, outcome: &Outcome) -> Checked {
        let filled = |text: &str| self.filled(text);
        let (good, wanted) = match expected {
            Text::Is(text) => (seen == filled(text), format!("{:?}", filled(text))),
            Text::Has(texts) => (
                texts.iter().all(|text| seen.contains(&filled(text))),
                format!("{texts:?} in it"),
            ),
            Text::Any => (true, String::new()),
        };
        holds(&format!("{what}: {wanted}"), good, &outcome.described())
    }
}
