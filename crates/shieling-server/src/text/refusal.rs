//! Refusals, which read the same in every style: what was refused, by which rule, why, and what to do instead.

use shieling::outcome::{Denial, Layer, Outcome, Status};
use shieling::policy::{Decision, Reason};
use shieling::units::spoken;

use super::context::CallContext;
use crate::tools::Tool;
use crate::visible;

/// The length of a command or an object in a message.
const SHOWN: usize = 200;

/// Words why nothing was started.
pub(crate) fn refusal(outcome: &Outcome, command: &str, context: &CallContext) -> String {
    let shown = visible::line(command, SHOWN);
    let Some(denial) = &outcome.denial else {
        return format!("denied: `{shown}`; nothing was started");
    };
    let mut lines = vec![headline(outcome.status, denial, &shown, &outcome.environment)];
    reasons(&mut lines, denial, context);
    if let Some(error) = &outcome.error {
        lines.push(format!("and      {}", visible::line(error, 1_000)));
    }
    lines.join("\n")
}

/// Words why a file operation was refused.
pub(crate) fn of_files(status: Status, denial: &Denial, action: &str, context: &CallContext) -> String {
    let shown = visible::line(action, SHOWN);
    let mut lines = vec![match (status, denial.layer) {
        _ if denial.is_for_length() => format!("not asked about: `{shown}` is too long for that, and was not done"),
        (Status::RateLimited, _) => format!("rate limited: `{shown}` was not done, too much was done before it"),
        (Status::NeedsApproval, _) => format!("not approved: `{shown}` was not done, since nobody said yes"),
        (_, Layer::Approval) => format!("denied: `{shown}` was refused by the person asked, and not done"),
        (_, Layer::Environment | Layer::Policy | Layer::Rate) => format!("denied: `{shown}` was not done"),
    }];
    reasons(&mut lines, denial, context);
    lines.join("\n")
}

/// Words why a call that has failed before was refused.
pub(crate) fn repeated(denial: &Denial) -> String {
    let mut lines = vec!["not done: the same call has failed too often, and was not tried again".to_owned()];
    reasons(&mut lines, denial, &CallContext::default());
    lines.join("\n")
}

/// Words the reasons of a stage, and the time to wait.
fn reasons(lines: &mut Vec<String>, denial: &Denial, context: &CallContext) {
    for reason in &denial.reasons {
        lines.push(format!("because  {}", sentence(reason)));
        lines.push(format!(
            "rule     {} ({})",
            visible::line(&reason.rule, SHOWN),
            decision(reason.decision)
        ));
        if is_busy(denial.layer, reason) {
            lines.push(format!("instead  {}", once_free(context)));
        } else if let Some(instead) = &reason.instead {
            lines.push(format!("instead  {}", visible::line(instead, 1_000)));
        }
    }
    if let Some(ms) = denial.retry_after_ms {
        lines.push(format!("retry    in {}", spoken(std::time::Duration::from_millis(ms))));
    }
}

fn headline(status: Status, denial: &Denial, shown: &str, environment: &str) -> String {
    match (status, denial.layer) {
        _ if denial.is_for_length() => format!("not asked about: `{shown}` is too long for that, and was not started"),
        (Status::RateLimited, _) => format!("rate limited: `{shown}` was not started, too many were started before it"),
        (Status::NeedsApproval, _) => format!("not approved: `{shown}` was not started, since nobody said yes"),
        (_, Layer::Approval) => format!("denied: `{shown}` was refused by the person asked, and not started"),
        (_, Layer::Environment) if denial.reasons.iter().any(|reason| is_busy(denial.layer, reason)) => {
            format!("busy: the session of `{shown}` runs another command; nothing was started")
        }
        (_, Layer::Environment) => {
            format!("denied: `{environment}` cannot run `{shown}` as asked; nothing was started")
        }
        (_, Layer::Policy | Layer::Rate) => format!("denied: `{shown}` was not started"),
    }
}

/// Returns whether the library refused a command because its session is busy.
fn is_busy(layer: Layer, reason: &Reason) -> bool {
    layer == Layer::Environment && reason.rule == "session"
}

/// Words what can be done while a session is busy, with the tools of the dialect.
fn once_free(context: &CallContext) -> String {
    let ways = [
        (Tool::ShellWait, "wait for its end with"),
        (Tool::ShellView, "look at it with"),
        (Tool::ShellKill, "end it with"),
    ];
    let mut ways: Vec<String> = ways
        .into_iter()
        .filter_map(|(tool, does)| Some(format!("{does} {}", context.tool(tool)?)))
        .collect();
    if context.names_sessions() {
        ways.push("use another `session`".to_owned());
    }
    match ways.split_last() {
        None => "try again once it has ended".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{}, or {last}", rest.join(", ")),
    }
}

fn sentence(reason: &Reason) -> String {
    let because = visible::line(&reason.because, 1_000);
    if reason.object.is_empty() {
        because
    } else {
        format!("`{}`: {because}", visible::line(&reason.object, SHOWN))
    }
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}
