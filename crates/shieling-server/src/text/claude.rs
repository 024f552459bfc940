//! Results in the style of Claude's `Bash`, `BashOutput` and `KillShell`.

use shieling::outcome::{Outcome, Status};
use shieling::output::plain_text;
use shieling::session::ViewResponse;
use shieling::units::spoken;

use super::context::{CallContext, add, cut_short, left, merged};
use super::plain;
use crate::visible;

pub(super) fn outcome(outcome: &Outcome, context: &CallContext) -> String {
    let job = outcome.job.as_deref().unwrap_or("?");
    match (outcome.status, outcome.exit_code) {
        (Status::Running, _) => {
            let mut text = merged(outcome);
            add(&mut text, &format!("Command running in background with ID: {job}"));
            text
        }
        (Status::Exited, code) if !outcome.truncated && !outcome.session_restarted && outcome.ended_processes == 0 => {
            let mut text = match code {
                Some(0) | None => String::new(),
                Some(code) => format!("Exit code {code}"),
            };
            let printed = merged(outcome);
            match (text.is_empty(), printed.is_empty()) {
                (true, true) => "(no output)".to_owned(),
                (true, false) => printed,
                (false, true) => text,
                (false, false) => {
                    add(&mut text, &printed);
                    text
                }
            }
        }
        (Status::TimedOut, _) => {
            let mut text = format!("Command timed out after {}", spoken(context.allowed));
            add(&mut text, &merged(outcome));
            if let Some(line) = cut_short(outcome) {
                add(&mut text, &line);
            }
            text
        }
        // The original has no text for this case.
        _ => plain::outcome(outcome, context),
    }
}

pub(super) fn view(view: &ViewResponse, context: &CallContext) -> String {
    let outcome = &view.outcome;
    let status = match (outcome.status, outcome.exit_code) {
        (Status::Running, _) => "running",
        (Status::Exited, Some(0)) => "completed",
        (Status::Exited, _) => "failed",
        _ => "killed",
    };
    let mut parts = vec![format!("<status>{status}</status>")];
    if let Some(code) = outcome.exit_code {
        parts.push(format!("<exit_code>{code}</exit_code>"));
    }
    for (name, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !text.is_empty() {
            parts.push(format!(
                "<{name}>\n{}\n</{name}>",
                plain_text(text).trim_end_matches('\n')
            ));
        }
    }
    if matches!(outcome.status, Status::Running | Status::Exited) {
        parts.extend(cut_short(outcome));
    } else {
        let end = plain::outcome(
            &Outcome {
                stdout: String::new(),
                stderr: String::new(),
                ..outcome.clone()
            },
            context,
        );
        parts.push(end);
    }
    parts.join("\n\n")
}

pub(super) fn killed(view: &ViewResponse, context: &CallContext) -> String {
    let job = &context.job;
    let mut text = format!(
        "Successfully killed shell: {job} ({})",
        visible::line(&view.command, 200)
    );
    if let Some(left) = left(view) {
        add(&mut text, &left);
    }
    if let Some(line) = cut_short(&view.outcome) {
        add(&mut text, &line);
    }
    text
}
