//! Results in the style of CAMEL's TerminalToolkit, with the exit codes that it omits.

use shieling::outcome::{Outcome, Status};
use shieling::session::ViewResponse;
use shieling::units::spoken;

use super::context::{CallContext, add, cut_short, left, merged};
use super::plain;

pub(super) fn outcome(outcome: &Outcome, context: &CallContext) -> String {
    let id = context.alias.as_deref().unwrap_or("?");
    let mut text = merged(outcome);
    match (outcome.status, outcome.exit_code) {
        (Status::Exited, Some(0)) if text.is_empty() && !outcome.truncated => {
            "Command executed successfully (no output).".to_owned()
        }
        (Status::Exited, Some(0)) if !outcome.truncated => text,
        (Status::Running, _) if context.background => format!(
            "Session '{id}' started.\nYou can use:\n  - shell_view('{id}') to see its output\n  - \
             shell_write_to_process('{id}', '<command>') to send it input\n  - shell_kill_process('{id}') to end it"
        ),
        (Status::Running, _) => {
            add(
                &mut text,
                &format!(
                    "Command did not complete within {}. Process continues in background as session '{id}'.\nYou can \
                 use:\n  - shell_view('{id}') to see its output\n  - shell_kill_process('{id}') to end it",
                    spoken(context.allowed)
                ),
            );
            text
        }
        _ => plain::outcome(outcome, context),
    }
}

pub(super) fn view(view: &ViewResponse) -> String {
    let mut text = merged(&view.outcome);
    if let Some(line) = cut_short(&view.outcome) {
        add(&mut text, &line);
    }
    match (view.outcome.status, text.is_empty()) {
        (Status::Running, true) => "[No new output]\nSession is running but idle. Actions could take:\n  - wait, and \
             view it again\n  - send it input with shell_write_to_process\n  - end it with shell_kill_process"
            .to_owned(),
        (Status::Running, false) => text,
        (_, true) => "--- SESSION TERMINATED (no new output) ---".to_owned(),
        (_, false) => {
            add(&mut text, "\n--- SESSION TERMINATED ---");
            text
        }
    }
}

pub(super) fn written(view: &ViewResponse, context: &CallContext) -> String {
    let id = context.alias.as_deref().unwrap_or("?");
    match merged(&view.outcome) {
        text if text.is_empty() && view.outcome.status == Status::Running => {
            format!("Input sent to session '{id}' successfully (no output).")
        }
        _ => self::view(view),
    }
}

pub(super) fn killed(view: &ViewResponse, context: &CallContext) -> String {
    let id = context.alias.as_deref().unwrap_or("?");
    let mut text = format!("Process in session '{id}' has been terminated.");
    if let Some(left) = left(view) {
        add(&mut text, &format!("{left}."));
    }
    if let Some(line) = cut_short(&view.outcome) {
        add(&mut text, &line);
    }
    text
}

pub(super) fn unknown(id: &str) -> String {
    format!("Error: No session found with ID '{id}'.")
}

pub(super) fn taken(id: &str) -> String {
    format!(
        "Error: Session '{id}' already exists and is running. Use a different ID or kill the existing session first."
    )
}
