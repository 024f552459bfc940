//! The text of results for models. The library provides facts; only this module words them.
//!
//! The output comes first and unchanged. A line in brackets follows if there is something that the output does not
//! say itself. A plain success has no such line.

mod claude;
mod camel;
mod codex;
pub(crate) mod files;
mod plain;
mod pydantic;
mod refusal;

use std::path::PathBuf;
use std::time::Duration;

use shieling::outcome::{Outcome, Status};
use shieling::output::plain_text;
use shieling::session::ViewResponse;

use crate::dialect::Style;
use crate::tools::Tool;
use crate::toolset::Offered;
use crate::visible;

pub(crate) use plain::{answer, chunk, listing};
pub(crate) use refusal::{refusal, repeated};

/// What is known about a call besides its result.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallContext {
    /// The offered tools, by their names in the dialect.
    pub(crate) offered: Offered,
    /// The directory that relative paths refer to.
    pub(crate) workspace: PathBuf,
    /// The text of the command.
    pub(crate) command: String,
    /// The deadline of the command.
    pub(crate) allowed: Duration,
    /// The job that the call is about.
    pub(crate) job: String,
    /// The caller's name for the job.
    pub(crate) alias: Option<String>,
    /// Whether the command was to run in the background from the start.
    pub(crate) background: bool,
    /// The cursor of the next part, if the call read from a cursor and there is more.
    pub(crate) more: Option<u64>,
    /// Whether the job is known to be a process of its own, with an input or a terminal: it accepts input, and its
    /// end does not affect a session.
    pub(crate) own: bool,
}

impl CallContext {
    /// Returns the name of a tool in the dialect, in backticks; `None` if it is not offered.
    fn tool(&self, tool: Tool) -> Option<String> {
        self.offered.name_of(tool).map(|name| format!("`{name}`"))
    }

    /// Returns whether a call can name its session.
    fn names_sessions(&self) -> bool {
        self.offered.takes(Tool::Shell, "session")
    }

    /// Returns whether keys can be passed by name.
    fn presses_keys(&self) -> bool {
        self.offered.takes(Tool::ShellWrite, "keys")
    }
}

/// Words an outcome or a refusal.
pub(crate) fn outcome(outcome: &Outcome, context: &CallContext) -> String {
    if outcome.denial.is_some() {
        return refusal(outcome, &context.command, context);
    }
    let text = match context.offered.style() {
        Style::Default => plain::outcome(outcome, context),
        Style::Codex => codex::outcome(outcome, context),
        Style::Claude => claude::outcome(outcome, context),
        Style::Camel => camel::outcome(outcome, context),
        Style::Pydantic => pydantic::outcome(outcome, context),
    };
    with_held_back(text, outcome)
}

/// Appends a line to `text` for each limit that was reached, each thing that was held back, and each explanation of
/// an error. No style has text of its own for these.
fn with_held_back(mut text: String, outcome: &Outcome) -> String {
    for hit in &outcome.limits_hit {
        add(&mut text, &format!("[{}]", plain::limit_hit(hit)));
    }
    for hint in &outcome.hints {
        let (because, instead) = (visible::line(&hint.because, 500), visible::line(&hint.instead, 500));
        add(&mut text, &format!("[{because}; {instead}]"));
    }
    for held in outcome.changes.iter().flat_map(|changes| &changes.held_back) {
        let path = visible::line(&held.path.to_string_lossy(), 300);
        let (because, instead) = (visible::line(&held.because, 500), visible::line(&held.instead, 500));
        add(&mut text, &format!("[held back: `{path}`: {because}; {instead}]"));
    }
    text
}

/// Words the new output of a job.
pub(crate) fn view(view: &ViewResponse, context: &CallContext) -> String {
    let text = match context.offered.style() {
        Style::Default | Style::Pydantic => plain::view(view, context),
        Style::Codex => codex::outcome(&view.outcome, context),
        Style::Claude => claude::view(view, context),
        Style::Camel => camel::view(view),
    };
    with_held_back(text, &view.outcome)
}

/// Words the output that followed an input.
pub(crate) fn written(view: &ViewResponse, context: &CallContext) -> String {
    match context.offered.style() {
        Style::Camel => with_held_back(camel::written(view, context), &view.outcome),
        Style::Default | Style::Pydantic | Style::Codex | Style::Claude => self::view(view, context),
    }
}

/// Words the end of a job.
pub(crate) fn killed(view: &ViewResponse, context: &CallContext) -> String {
    let text = match context.offered.style() {
        Style::Default | Style::Pydantic | Style::Codex => plain::killed(view, context),
        Style::Claude => claude::killed(view, context),
        Style::Camel => camel::killed(view, context),
    };
    with_held_back(text, &view.outcome)
}

/// Words the error that the caller's name refers to no job.
pub(crate) fn unknown_alias(alias: &str) -> String {
    camel::unknown(alias)
}

/// Words the error that the caller's name is in use.
pub(crate) fn taken_alias(alias: &str) -> String {
    camel::taken(alias)
}

/// Returns both streams as plain text, one after the other.
fn merged(outcome: &Outcome) -> String {
    let mut text = plain_text(&outcome.stdout);
    if !outcome.stderr.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&plain_text(&outcome.stderr));
    }
    text
}

/// Words the processes of a job that could not be ended, if any.
fn left(view: &ViewResponse) -> Option<String> {
    let left = view.outcome.survivors;
    (left > 0).then(|| format!("{left} of its processes could not be ended and may still run"))
}

/// Words where a whole output can be read as a resource.
fn address(id: &str) -> String {
    format!("the whole is the resource shieling://output/{id}")
}

/// Words that an output is cut and where the whole is, for styles without text for it.
fn cut_short(outcome: &Outcome) -> Option<String> {
    let id = outcome.output_id.as_ref().filter(|_| outcome.truncated)?;
    Some(format!("[the output is cut; {}]", address(id)))
}

/// Appends a line to `text`.
fn add(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

fn ended(status: Status) -> bool {
    status != Status::Running
}

#[cfg(test)]
mod tests;
