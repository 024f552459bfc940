//! What is known about a call besides its result, and the text that all styles share.

use std::path::PathBuf;
use std::time::Duration;

use shieling::outcome::{Outcome, Status};
use shieling::output::plain_text;
use shieling::session::ViewResponse;

use crate::tools::Tool;
use crate::toolset::Offered;

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
    pub(super) fn tool(&self, tool: Tool) -> Option<String> {
        self.offered.name_of(tool).map(|name| format!("`{name}`"))
    }

    /// Returns whether a call can name its session.
    pub(super) fn names_sessions(&self) -> bool {
        self.offered.takes(Tool::Shell, "session")
    }

    /// Returns whether keys can be passed by name.
    pub(super) fn presses_keys(&self) -> bool {
        self.offered.takes(Tool::ShellWrite, "keys")
    }
}

/// Returns both streams as plain text, one after the other.
pub(super) fn merged(outcome: &Outcome) -> String {
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
pub(super) fn left(view: &ViewResponse) -> Option<String> {
    let left = view.outcome.survivors;
    (left > 0).then(|| format!("{left} of its processes could not be ended and may still run"))
}

/// Words where a whole output can be read as a resource.
pub(super) fn address(id: &str) -> String {
    format!("the whole is the resource shieling://output/{id}")
}

/// Appends a line to `text`.
pub(super) fn add(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

pub(super) fn ended(status: Status) -> bool {
    status != Status::Running
}

/// Words that an output is cut and where the whole is, for styles without text for it.
pub(super) fn cut_short(outcome: &Outcome) -> Option<String> {
    let id = outcome.output_id.as_ref().filter(|_| outcome.truncated)?;
    Some(format!("[the output is cut; {}]", address(id)))
}
