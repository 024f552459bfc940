//! `shell`: from arguments to a request to the library, and from the outcome to the result.

use std::sync::Arc;
use std::time::Duration;

use shieling::environment::Ability;
use shieling::outcome::{Outcome, Status};
use shieling::request::{Command, CommandError};
use shieling::session::{IdError, JobRequest, OnTimeout, SessionName, TerminalSize};
use shieling::units::ByteCount;

use super::Service;
use super::remedy::remedy;
use crate::approval::{PERSON, Person, Waiting};
use crate::arguments;
use crate::core::Workplace;
use crate::mcp::Reporter;
use crate::result::{CallResult, Retry};
use crate::text::{self, CallContext};

/// How long a program on a terminal may be silent before its call returns, if the call names no time: nobody can type
/// what it waits for before.
const SILENT: Duration = Duration::from_secs(5);

impl Service {
    pub(super) async fn shell(
        &self,
        workplace: &Workplace,
        asked: arguments::Shell,
        context: CallContext,
        person: &Arc<Person>,
        reporter: Option<Reporter>,
    ) -> CallResult {
        let keeps_sessions = workplace.core.capabilities().abilities.contains(&Ability::Sessions);
        let (session, mut call) = match call(&workplace.template, &asked, keeps_sessions) {
            Ok(call) => call,
            Err(wrong) => return CallResult::invalid(format!("{wrong}; nothing was started")),
        };
        let context = CallContext {
            allowed: call.command.deadline(),
            background: asked.background,
            own: asked.background || asked.tty,
            command: asked.command,
            ..context
        };
        person.says(asked.description);
        let reporting = reporter.map(|reporter| {
            let (progress, seen) = tokio::sync::watch::channel(shieling::session::Progress::default());
            call.progress = Some(progress);
            (reporter, seen)
        });
        let _waiting = Waiting::begin(person);
        let running = match asked.background {
            true => workplace.core.start(session, call),
            false => workplace.core.run(session, call),
        };
        let running = PERSON.scope(person.clone(), running);
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
        if let (Some(alias), Some(job)) = (&context.alias, &outcome.job) {
            self.assign_alias(alias, job);
        }
        result_of(&outcome, &context, person)
    }
}

fn result_of(outcome: &Outcome, context: &CallContext, person: &Person) -> CallResult {
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
        Some(denial) => Retry::after(outcome.status, denial, person.unanswered().as_ref()),
        None => Retry::MaySucceed,
    };
    CallResult {
        again,
        ..CallResult::new(text::outcome(outcome, context), outcome, error)
    }
}

/// Why a command cannot be requested.
#[derive(Debug, thiserror::Error)]
enum InvalidCommand {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("a session stands where its commands have led it: use `cd`, or run it with `session` \"\"")]
    Directory,
    #[error(
        "there are no sessions here: each command runs by itself, and nothing of it but files is there for the next; leave `session` out"
    )]
    NoSessions,
}

fn call(
    template: &Command,
    asked: &arguments::Shell,
    keeps_sessions: bool,
) -> Result<(Option<SessionName>, JobRequest), InvalidCommand> {
    let session = match asked.session.as_deref() {
        Some("") => None,
        None if !keeps_sessions => None,
        Some(_) if !keeps_sessions => return Err(InvalidCommand::NoSessions),
        name => Some(name.unwrap_or(arguments::MAIN_SESSION).parse::<SessionName>()?),
    };
    let cwd = match &asked.cwd {
        None => template.cwd().to_owned(),
        Some(_) if session.is_some() => return Err(InvalidCommand::Directory),
        Some(cwd) => template.cwd().join(cwd),
    };
    let deadline = asked.timeout_ms.map_or(template.deadline(), Duration::from_millis);
    let kept = asked.max_output_bytes.map_or(template.output_kept(), |bytes| {
        ByteCount::bytes(bytes.min(template.output_kept().get()))
    });
    // A text without a command does nothing, which bash expresses as `:`.
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
    let mut request = JobRequest::new(command).with_on_timeout(match asked.on_timeout {
        arguments::OnTimeout::Background => OnTimeout::Background,
        arguments::OnTimeout::Kill => OnTimeout::Kill,
    });
    request.id = asked.job.as_deref().map(str::parse).transpose()?;
    if asked.tty {
        request = request.with_terminal(TerminalSize {
            rows: asked.rows,
            columns: asked.columns,
        });
        request.background_when_silent = asked.timeout_ms.is_none().then_some(SILENT);
    }
    Ok((session, request))
}

/// Adds to a refusal that an approval would have helped, and how to get one.
pub(super) fn advise(outcome: &mut Outcome, person: &Person) {
    if outcome.status != Status::NeedsApproval {
        return;
    }
    let remedy = remedy(person.unanswered(), &outcome.environment);
    let Some(denial) = outcome.denial.as_mut().filter(|denial| !denial.is_for_length()) else {
        return;
    };
    if let Some(reason) = denial.reasons.iter_mut().rfind(|reason| reason.rule == "approval") {
        reason.instead.get_or_insert(remedy);
    }
}
