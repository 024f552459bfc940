//! How a stage's no becomes part of an outcome.

use crate::approval::Refused;
use crate::outcome::{Denial, Layer, Status};
use crate::policy::{Decision, Reason, Span, Verdict};
use crate::rate::RateLimitExceeded;
use crate::request::{Request, RequestKind};
use crate::session::{Job, RunningCommand, SessionName};

/// Too many commands in too short a time.
pub(super) fn too_soon(refused: RateLimitExceeded) -> (Status, Denial) {
    let reason = Reason {
        decision: Decision::Deny,
        rule: format!("rate {}", refused.window),
        object: String::new(),
        span: None,
        because: refused.to_string(),
        instead: Some("wait, or join several commands into one".to_owned()),
    };
    let denial = Denial {
        layer: Layer::Rate,
        decision: Decision::Deny,
        reasons: vec![reason],
        retry_after_ms: Some(refused.retry_after_ms()),
    };
    (Status::RateLimited, denial)
}

/// No yes. `by_environment` says that the policy alone would have allowed it.
pub(super) fn unapproved(
    refused: &Refused,
    verdict: &Verdict,
    request: &impl Request,
    by_environment: bool,
) -> (Status, Denial) {
    let (status, layer, decision) = match refused {
        Refused::Denied if by_environment => (Status::Denied, Layer::Environment, Decision::Deny),
        Refused::Denied => (Status::Denied, Layer::Policy, Decision::Deny),
        Refused::SaidNo { .. } => (Status::Denied, Layer::Approval, Decision::Deny),
        Refused::NobodyToAsk | Refused::Unanswered if by_environment => {
            (Status::NeedsApproval, Layer::Environment, Decision::Ask)
        }
        Refused::NobodyToAsk | Refused::Unanswered | Refused::TooLong { .. } | Refused::KeepsChanging { .. } => {
            (Status::NeedsApproval, Layer::Approval, Decision::Ask)
        }
    };
    let mut reasons = verdict.reasons.clone();
    if *refused != Refused::Denied {
        reasons.push(Reason {
            decision,
            rule: match refused {
                Refused::TooLong { .. } => Denial::LENGTH,
                Refused::Denied
                | Refused::SaidNo { .. }
                | Refused::NobodyToAsk
                | Refused::Unanswered
                | Refused::KeepsChanging { .. } => "approval",
            }
            .to_owned(),
            object: match refused {
                Refused::KeepsChanging { files } => {
                    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
                    names.join(", ").escape_debug().to_string()
                }
                Refused::Denied
                | Refused::SaidNo { .. }
                | Refused::NobodyToAsk
                | Refused::Unanswered
                | Refused::TooLong { .. } => match request.kind() {
                    RequestKind::Command => "the whole command",
                    RequestKind::Files | RequestKind::Network => "the whole operation",
                }
                .to_owned(),
            },
            span: Some(Span::new(0, request.text().len())),
            because: refused.to_string(),
            instead: matches!(refused, Refused::TooLong { .. }).then(|| in_parts(request).to_owned()),
        });
    }
    (
        status,
        Denial {
            layer,
            decision,
            reasons,
            retry_after_ms: None,
        },
    )
}

/// How what is too long for one question can be asked about.
fn in_parts(request: &impl Request) -> &'static str {
    match request.kind() {
        RequestKind::Command => "make it several commands, each short enough to be shown whole",
        RequestKind::Files | RequestKind::Network => {
            "make the change in several steps, each small enough to be shown whole"
        }
    }
}

/// A yes is wanted whatever the policy says.
pub(super) fn required(text: &str, because: &str) -> Reason {
    Reason {
        decision: Decision::Ask,
        rule: "approval".to_owned(),
        object: text[..text.floor_char_boundary(200)].escape_debug().to_string(),
        span: Some(Span::new(0, text.len())),
        because: because.to_owned(),
        instead: None,
    }
}

/// What could not be recorded does not start.
pub(super) fn unrecorded(error: &std::io::Error) -> (Status, Denial) {
    let because = format!("it cannot be recorded: {error}");
    not_now(
        "recordings",
        String::new(),
        because,
        "end what is being recorded, or record nothing",
    )
}

/// Nothing can be sent to the programs of this environment.
pub(super) fn no_input(environment: &str) -> (Status, Denial) {
    not_now(
        "input",
        environment.to_owned(),
        format!("a command in `{environment}` cannot be written to while it runs"),
        "run the command with its input in its text, or use another environment",
    )
}

/// It was closed.
pub(super) fn closed() -> (Status, Denial) {
    let because = "it was closed, and nothing is begun in it any more".to_owned();
    not_now("closed", String::new(), because, "open another one")
}

/// The environment cannot do it as things stand.
pub(super) fn not_now(rule: &str, object: String, because: String, instead: &str) -> (Status, Denial) {
    let reason = Reason {
        decision: Decision::Deny,
        rule: rule.to_owned(),
        object,
        span: None,
        because,
        instead: Some(instead.to_owned()),
    };
    let denial = Denial {
        layer: Layer::Environment,
        decision: Decision::Deny,
        reasons: vec![reason],
        retry_after_ms: None,
    };
    (Status::Denied, denial)
}

/// The name is another job's.
pub(super) fn other_job(job: &Job) -> (Status, Denial) {
    let text = job.command().text();
    let shown = text[..text.floor_char_boundary(100)].escape_debug();
    not_now(
        "job",
        job.id().to_string(),
        format!("job `{}` is another call's: it runs `{shown}`", job.id()),
        "give this call a name of its own, or none; a name repeats the call that it was first given to",
    )
}

/// The session is busy. Who serves a model knows the rule's name, and words the way on in the names
/// of its own tools.
pub(super) fn busy(session: &SessionName, busy: Option<&RunningCommand>) -> (Status, Denial) {
    let (object, because) = match busy {
        Some(RunningCommand { job, command, .. }) => {
            let shown = &command[..command.floor_char_boundary(100)];
            let shown = shown.escape_debug();
            (
                job.to_string(),
                format!("session `{session}` is busy: job `{job}` runs `{shown}` in it"),
            )
        }
        None => (
            session.to_string(),
            format!("session `{session}` is busy with another command"),
        ),
    };
    not_now(
        "session",
        object,
        because,
        "wait for the end of what runs, end it, or use another session",
    )
}
