//! A place with a façade over it, and what cases do there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::approval::{Answer, Approver, Asking, Mode, Question, Scope};
use shieling::environment::{Ability, Capabilities};
use shieling::outcome::Outcome;
use shieling::request::Command;
use shieling::session::{Call, JobId, OnTimeout};

use super::case::{Case, Checked, Need, Step, Text};
use super::expect::{Tells as _, holds, same};
use super::{Maker, Outside, Place, Unmet, Wrong};
use crate::{Marker, leftovers};

/// How long the end of a façade may take, and the end of what it leaves, at most.
const CLOSING: Duration = Duration::from_secs(20);

/// How long a call may take beyond its time on a machine with much else to do.
pub(crate) const BEYOND: Duration = Duration::from_secs(20);

/// A person who agrees to everything, such as to what a policy cannot decide.
struct Yes;

impl Approver for Yes {
    fn ask<'a>(&'a self, _question: &'a Question) -> Asking<'a> {
        Box::pin(async { Answer::Yes(Scope::Once) })
    }
}

/// A place of one case.
pub(crate) struct At {
    pub(crate) shieling: Arc<Shieling>,
    pub(crate) maker: Arc<dyn Maker>,
    pub(crate) can: Capabilities,
    place: Place,
    marker: Marker,
    /// How long something that comes is waited for.
    patience: Duration,
}

impl At {
    /// # Errors
    /// [`Unmet::Refused`]: the environment cannot serve the policy of the case, and says so.
    pub(crate) fn new(maker: Arc<dyn Maker>, place: Place, case: &Case, patience: Duration) -> Result<Self, Unmet> {
        let policy = case.wishes.policy.clone();
        let builder = Shieling::builder(Arc::clone(&place.environment), policy, &place.workspace)
            .approver(Arc::new(Yes))
            .approval(Mode::OnAsk);
        let shieling = (case.builder)(builder).build();
        Ok(Self {
            shieling: Arc::new(shieling.map_err(|error| Unmet::Refused(error.to_string()))?),
            maker,
            can: place.environment.capabilities(),
            place,
            marker: Marker::new(),
            patience: patience.min(CLOSING),
        })
    }

    /// Whether it has this, as it stands.
    pub(crate) fn meets(&self, need: Need) -> bool {
        match need {
            Need::Can(ability) => self.can(ability),
            Need::Hides => self.shieling.enforced().hidden,
            Need::EnforcesReadonly => self.shieling.enforced().readonly,
            Need::EnforcesAllow => self.shieling.enforced().programs,
            Need::Limits(limit) => self.can.limits.contains(&limit),
            Need::Gives(network) => self.can.networks.contains(&network),
            Need::Outside => self.place.outside.is_some(),
            // Looked for once, in a place without a policy.
            Need::Program(_) => true,
        }
    }

    pub(crate) fn can(&self, ability: Ability) -> bool {
        self.can.abilities.contains(&ability)
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.place.workspace
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// What lies beside the workspace.
    pub(crate) fn outside(&self) -> Result<&dyn Outside, Wrong> {
        let outside = self.place.outside.as_deref();
        outside.ok_or_else(|| Wrong::new("a place outside", "none"))
    }

    /// A path of the workspace, absolute.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.place.workspace.join(relative)
    }

    /// A command in the workspace, with what every command of this place is given.
    pub(crate) fn command(&self, text: &str) -> Command {
        let mut variables = self.place.variables.clone();
        variables.extend([self.marker.variable(), ("LC_ALL".to_owned(), "C.UTF-8".to_owned())]);
        Command::new(text, &self.place.workspace)
            .expect("texts of ours are commands")
            .with_variables(variables)
            .with_grace(Duration::from_millis(100))
    }

    /// A command with this much time.
    pub(crate) fn within(&self, text: &str, milliseconds: u64) -> Command {
        self.command(text)
            .with_deadline(Duration::from_millis(milliseconds))
            .expect("more than zero")
    }

    /// Runs a text as a process of its own.
    pub(crate) async fn run(&self, text: &str) -> Outcome {
        self.shieling.run(self.command(text), None).await
    }

    /// What a text writes, which is expected to exit with 0.
    pub(crate) async fn says(&self, text: &str) -> Result<String, Wrong> {
        let outcome = self.run(text).await;
        holds(
            &format!("`{text}` exits with 0"),
            outcome.exit_code == Some(0),
            &outcome.tells(),
        )?;
        Ok(outcome.stdout)
    }

    /// A call in the session `main` whose command is ended once its time is over.
    pub(crate) fn call(&self, text: &str) -> Call {
        Call {
            on_timeout: OnTimeout::Kill,
            ..Call::new(self.within(text, 20_000))
        }
    }

    /// Runs a text in the session `main`.
    pub(crate) async fn shell(&self, text: &str) -> Outcome {
        self.shieling.shell(self.call(text)).await
    }

    /// Starts a job that can be written to.
    pub(crate) async fn job(&self, text: &str) -> Result<JobId, Wrong> {
        let call = Call {
            background: true,
            session: None,
            ..self.call(text)
        };
        self.started(call).await
    }

    /// Starts a job.
    pub(crate) async fn started(&self, call: Call) -> Result<JobId, Wrong> {
        let outcome = self.shieling.shell(call).await;
        let job = outcome.job.as_deref().and_then(|job| job.parse().ok());
        job.ok_or_else(|| Wrong::new("a job", outcome.tells()))
    }

    /// The processes that carry the mark of this place.
    pub(crate) fn left(&self) -> Vec<u32> {
        if self.can(Ability::Processes) {
            leftovers(&self.marker)
        } else {
            Vec::new()
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, so: impl Fn() -> bool + Send) -> Checked {
        let end = Instant::now() + self.patience;
        while Instant::now() < end {
            if so() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Wrong::new(what, format!("not so within {} s", self.patience.as_secs())))
    }

    /// Waits until a file of the workspace has something in it, as commands see it.
    pub(crate) async fn appears(&self, file: &str) -> Checked {
        let end = Instant::now() + self.patience;
        while Instant::now() < end {
            if self.run(&format!("test -s {file}")).await.exit_code == Some(0) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Wrong::new(
            format!("`{file}`"),
            format!("none within {} s", self.patience.as_secs()),
        ))
    }

    /// Waits until none of its processes is left.
    pub(crate) async fn nobody_left(&self) -> Checked {
        self.until("0 processes are left", || self.left().is_empty()).await
    }

    /// Ends everything; nothing of it may be left.
    pub(crate) async fn close(&self) -> Checked {
        let closing = tokio::time::timeout(self.patience, self.shieling.close()).await;
        let late = || {
            Wrong::new(
                "it can be closed",
                format!("not closed within {} s", self.patience.as_secs()),
            )
        };
        closing.map_err(|_| late())?;
        self.nobody_left().await
    }

    /// Whether a step does what is expected of it.
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
                let call = Call {
                    session: Some(session.parse().expect("a good name")),
                    on_timeout: OnTimeout::Kill,
                    ..Call::new(command)
                };
                self.shieling.shell(call).await
            }
        };
        let took = begun.elapsed();
        let of = |what: &str| format!("{what} of `{}`", step.text);
        let end = (outcome.status, step.code.and(outcome.exit_code));
        if end != (step.status, step.code) {
            let expected = format!("{} {:?}: {:?}", of("the end"), step.status, step.code);
            return Err(Wrong::new(expected, outcome.tells()));
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

    /// The text with the workspace's path.
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
        holds(&format!("{what}: {wanted}"), good, &outcome.tells())
    }
}
