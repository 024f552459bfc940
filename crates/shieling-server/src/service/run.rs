//! `shell`: from the arguments to a call of the library, and from its outcome to what is given.

use std::sync::Arc;
use std::time::Duration;

use shieling::outcome::{Outcome, Status};
use shieling::request::{Command, CommandError};
use shieling::session::{Call, IdError, OnTimeout, Size};
use shieling::units::ByteCount;

use super::{Given, Service};
use crate::approval::{PERSON, Person, Silence};
use crate::arguments;
use crate::core::Workplace;
use crate::mcp::Reporter;
use crate::repeats::Again;
use crate::text::{self, About};

impl Service {
    pub(super) async fn shell(
        &self,
        workplace: &Workplace,
        asked: arguments::Shell,
        about: About,
        person: &Arc<Person>,
        reporter: Option<Reporter>,
    ) -> Given {
        let mut call = match call(&workplace.template, &asked) {
            Ok(call) => call,
            Err(wrong) => return Given::senseless(format!("{wrong}; nothing was started")),
        };
        let about = About {
            allowed: call.command.deadline(),
            background: asked.background,
            own: asked.background || asked.tty,
            command: asked.command,
            ..about
        };
        person.says(asked.description);
        let reporting = reporter.map(|reporter| {
            let (progress, seen) = tokio::sync::watch::channel(shieling::session::Progress::default());
            call.progress = Some(progress);
            (reporter, seen)
        });
        let running = PERSON.scope(person.clone(), workplace.core.shell(call));
        let mut outcome = match reporting {
            None => running.await,
            Some((reporter, seen)) => tokio::select! {
                outcome = running => outcome,
                never = reporter.report(seen) => match never {},
            },
        };
        if outcome.status == Status::Failed
            && let Err(why) = (workplace.prepare)().await
        {
            outcome.error = Some(why);
        }
        advise(&mut outcome, person);
        if let (Some(alias), Some(job)) = (&about.alias, &outcome.job) {
            self.name(alias, job);
        }
        given(&outcome, &about, person)
    }
}

/// The outcome of something that never began.
pub(super) fn nothing(status: Status, environment: &str) -> Outcome {
    Outcome::blank(status, "", environment)
}

fn given(outcome: &Outcome, about: &About, person: &Person) -> Given {
    let error = match outcome.status {
        Status::Denied | Status::NeedsApproval | Status::RateLimited | Status::Lost | Status::Failed => true,
        Status::Exited
        | Status::Signalled
        | Status::TimedOut
        | Status::OutOfMemory
        | Status::OutputLimit
        | Status::Running => false,
    };
    let again = match &outcome.denial {
        Some(denial) => Again::after(outcome.status, denial, person.silence().as_ref()),
        None => Again::MaySucceed,
    };
    Given {
        again,
        ..Given::new(text::outcome(outcome, about), outcome, error)
    }
}

/// Why a command cannot be asked for as it stands.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("a session stands where its commands have led it: use `cd`, or run it with `session` \"\"")]
    Directory,
}

fn call(template: &Command, asked: &arguments::Shell) -> Result<Call, Wrong> {
    let session = match asked.session.as_str() {
        "" => None,
        name => Some(name.parse()?),
    };
    let cwd = match &asked.cwd {
        None => template.cwd().to_owned(),
        Some(_) if session.is_some() => return Err(Wrong::Directory),
        Some(cwd) => template.cwd().join(cwd),
    };
    let deadline = asked.timeout_ms.map_or(template.deadline(), Duration::from_millis);
    let kept = asked.max_output_bytes.map_or(template.output_kept(), |bytes| {
        ByteCount::bytes(bytes.min(template.output_kept().get()))
    });
    // A text without a command is one that does nothing, and bash has one.
    let text = if asked.command.trim().is_empty() {
        ":"
    } else {
        asked.command.as_str()
    };
    let command = Command::new(text, cwd)?
        .with_variables(template.variables().clone())
        .with_deadline(deadline)?
        .with_grace(template.grace())
        .with_output_kept(kept)?
        .with_file_size(template.file_size());
    Ok(Call {
        session,
        on_timeout: match asked.on_timeout {
            arguments::OnTimeout::Background => OnTimeout::Background,
            arguments::OnTimeout::Kill => OnTimeout::Kill,
        },
        background: asked.background,
        terminal: asked.tty.then_some(Size {
            rows: asked.rows,
            columns: asked.columns,
        }),
        id: asked.job.as_deref().map(str::parse).transpose()?,
        ..Call::new(command)
    })
}

/// Says in a refusal that a yes would have helped, and how there could be one.
pub(super) fn advise(outcome: &mut Outcome, person: &Person) {
    if outcome.status != Status::NeedsApproval {
        return;
    }
    let remedy = remedy(person.silence(), &outcome.environment);
    let Some(denial) = outcome.denial.as_mut().filter(|denial| !denial.is_for_length()) else {
        return;
    };
    if let Some(reason) = denial.reasons.iter_mut().rfind(|reason| reason.rule == "approval") {
        reason.instead.get_or_insert(remedy);
    }
}

pub(super) fn remedy(silence: Option<Silence>, environment: &str) -> String {
    let asked_less = if environment == "local" {
        "start the server with `--env sandbox`, where commands are contained and only what the policy cannot decide is asked, or with `--approval policy`"
    } else {
        "start the server with a policy that decides it (`--allow PREFIX`, or a rule in `--policy FILE`), or without `--approval always`"
    };
    match silence {
        None => format!(
            "use a command that the policy allows by itself; or {asked_less}, and with a client that can ask a person (MCP elicitation)"
        ),
        Some(Silence::NoWay) => {
            format!("this client cannot ask a person: use one that has MCP elicitation, or {asked_less}")
        }
        Some(Silence::Dismissed) => {
            "the person closed the question without an answer: tell them what you need, and try again when they agree"
                .to_owned()
        }
        Some(Silence::Unreadable) => {
            "the client's answer was none of those offered, so it counts as none: try again, or use another client"
                .to_owned()
        }
        Some(Silence::Failed(why)) => {
            format!("the client did not put the question ({why}): try again, or {asked_less}")
        }
    }
}
