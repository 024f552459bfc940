//! What a model reads of a result. Facts come from the library; this alone puts them into words.
//!
//! What was printed comes first and as it is; a line in brackets follows where there is something to
//! say that the output does not say itself. A plain success has no such line.

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
use shieling::session::View;

use crate::dialect::Voice;
use crate::tools::Tool;
use crate::toolset::Offered;
use crate::visible;

pub(crate) use plain::{answer, chunk, listing};
pub(crate) use refusal::{refusal, repeated};

/// What is known of a call besides its result.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// The tools that are there, as the dialect that was spoken calls them.
    pub(crate) offered: Offered,
    /// What relative paths are relative to.
    pub(crate) workspace: PathBuf,
    /// The command's text.
    pub(crate) command: String,
    /// The time that it was allowed.
    pub(crate) allowed: Duration,
    /// The job that was asked about.
    pub(crate) job: String,
    /// The caller's own name for the job.
    pub(crate) alias: Option<String>,
    /// Whether it was to go on in the background from the start.
    pub(crate) background: bool,
    /// The cursor of the next page, for a job that was looked at from a given byte on and has more.
    pub(crate) more: Option<u64>,
    /// Whether it is known to run as a process of its own, with an input or a terminal: what is typed
    /// reaches it, and its end says nothing of a session.
    pub(crate) own: bool,
}

impl About {
    /// What a tool is called here, in backticks; nothing if there is none.
    fn tool(&self, tool: Tool) -> Option<String> {
        self.offered.name_of(tool).map(|name| format!("`{name}`"))
    }

    /// Whether a call can say in which session it runs.
    fn names_sessions(&self) -> bool {
        self.offered.takes(Tool::Shell, "session")
    }

    /// Whether keys can be pressed by their names.
    fn presses_keys(&self) -> bool {
        self.offered.takes(Tool::ShellWrite, "keys")
    }
}

/// What ran, or was refused.
pub(crate) fn outcome(outcome: &Outcome, about: &About) -> String {
    if outcome.denial.is_some() {
        return refusal(outcome, &about.command, about);
    }
    let text = match about.offered.voice() {
        Voice::Default => plain::outcome(outcome, about),
        Voice::Codex => codex::outcome(outcome, about),
        Voice::Claude => claude::outcome(outcome, about),
        Voice::Camel => camel::outcome(outcome, about),
        Voice::Pydantic => pydantic::outcome(outcome, about),
    };
    with_held_back(text, outcome)
}

/// `text` with a line for each limit that was reached, each thing that was held back, and for what explains an
/// error: no voice has words of its own for it.
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

/// What is new of a job.
pub(crate) fn view(view: &View, about: &About) -> String {
    let text = match about.offered.voice() {
        Voice::Default | Voice::Pydantic => plain::view(view, about),
        Voice::Codex => codex::outcome(&view.outcome, about),
        Voice::Claude => claude::view(view, about),
        Voice::Camel => camel::view(view),
    };
    with_held_back(text, &view.outcome)
}

/// What followed on what was typed.
pub(crate) fn written(view: &View, about: &About) -> String {
    match about.offered.voice() {
        Voice::Camel => with_held_back(camel::written(view, about), &view.outcome),
        Voice::Default | Voice::Pydantic | Voice::Codex | Voice::Claude => self::view(view, about),
    }
}

/// A job that was ended.
pub(crate) fn killed(view: &View, about: &About) -> String {
    let text = match about.offered.voice() {
        Voice::Default | Voice::Pydantic | Voice::Codex => plain::killed(view, about),
        Voice::Claude => claude::killed(view, about),
        Voice::Camel => camel::killed(view, about),
    };
    with_held_back(text, &view.outcome)
}

/// That the caller's own name for a job is none.
pub(crate) fn unknown_alias(alias: &str) -> String {
    camel::unknown(alias)
}

/// That the caller's own name for a job is taken.
pub(crate) fn taken_alias(alias: &str) -> String {
    camel::taken(alias)
}

/// Both streams as they would stand on paper, one after the other.
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

/// What of a job could not be ended, if anything.
fn left(view: &View) -> Option<String> {
    let left = view.outcome.survivors;
    (left > 0).then(|| format!("{left} of its processes could not be ended and may still run"))
}

/// Where a whole output can be read without a tool.
fn address(id: &str) -> String {
    format!("the whole is the resource shieling://output/{id}")
}

/// That an output is cut and where the whole is, if both is so; for voices that have no words for it.
fn cut_short(outcome: &Outcome) -> Option<String> {
    let id = outcome.output_id.as_ref().filter(|_| outcome.truncated)?;
    Some(format!("[the output is cut; {}]", address(id)))
}

/// `text` with one more line.
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
