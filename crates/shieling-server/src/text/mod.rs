//! The text of results for models. The library provides facts; only this module words them.
//!
//! The output comes first and unchanged. A line in brackets follows if there is something that the output does not
//! say itself. A plain success has no such line.

mod context;
mod claude;
mod camel;
mod codex;
pub(crate) mod files;
mod plain;
mod pydantic;
mod refusal;

use shieling::outcome::{ChangeState, Changes, NetworkSummary, Outcome, ReviewAnswer};
use shieling::session::ViewResponse;

use crate::dialect::Style;
use crate::visible;
use context::add;

pub(crate) use context::CallContext;
pub(crate) use plain::{answer, chunk, listing};
pub(crate) use refusal::{refusal, repeated};

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
    for line in outcome.network.iter().flat_map(network) {
        add(&mut text, &format!("[{line}]"));
    }
    for held in outcome.changes.iter().flat_map(|changes| &changes.held_back) {
        add(
            &mut text,
            &format!("[held back: {}]", visible::line(&held.text(), 1_300)),
        );
    }
    for accepted in outcome.changes.iter().flat_map(|changes| &changes.accepted) {
        add(
            &mut text,
            &format!("[accepted: {}]", visible::line(&accepted.text(), 1_300)),
        );
    }
    if let Some(changes) = &outcome.changes {
        staged(&mut text, changes);
    }
    text
}

/// Words what was refused of a network that is opened by name, and what a person has allowed for always.
fn network(network: &NetworkSummary) -> Vec<String> {
    let refused = network.denied.iter().map(|denied| {
        let host = visible::line(&denied.host, 300);
        let port = denied.port.map_or_else(String::new, |port| format!(":{port}"));
        let because = visible::line(&denied.because, 500);
        let instead = denied.instead.as_deref().map_or_else(String::new, |instead| {
            format!("; instead: {}", visible::line(instead, 500))
        });
        format!("network: `{host}{port}` was refused: {because}{instead}")
    });
    let always = network.always.iter().map(|rule| {
        let rule = visible::line(rule, 300);
        format!(
            "network: allowed until the environment ends; to keep it, add `allow-host = [\"{rule}\"]` to the user's own shieling.toml"
        )
    });
    refused.chain(always).collect()
}

/// Appends what became of staged changes, unless they are where they were meant to be.
fn staged(text: &mut String, changes: &Changes) {
    for conflict in &changes.conflicts {
        let path = visible::line(&conflict.path.to_string_lossy(), 300);
        let (because, instead) = (
            visible::line(&conflict.because, 500),
            visible::line(&conflict.instead, 500),
        );
        add(text, &format!("[not committed: `{path}`: {because}; {instead}]"));
    }
    let counts = match changes.totals {
        Some(totals) if totals.added + totals.modified + totals.deleted == 0 => return,
        Some(totals) => totals.to_string(),
        // In a direct workspace nothing is counted.
        None if changes.state == ChangeState::Committed => return,
        None => "not counted".to_owned(),
    };
    let answer = ReviewAnswer::appended(changes.answer);
    match (changes.state, &changes.id) {
        (ChangeState::Committed, _) | (ChangeState::Conflict, None) => {}
        (ChangeState::Discarded, _) => add(
            text,
            &format!("[staged: {counts}, which commands see and the user's workspace does not get]"),
        ),
        (ChangeState::Waiting, None) => add(text, &format!("[staged: {counts}, not committed{answer}]")),
        (ChangeState::Waiting | ChangeState::Conflict, Some(id)) => add(
            text,
            &format!(
                "[staged: {counts}{answer}; commands see them, and they wait as the change set {id} until a person runs \
                 `shieling changes apply {id}`]"
            ),
        ),
    }
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

#[cfg(test)]
mod tests;
