//! The wording of everything that people and models read on stderr: failures, refusals, ends.
//!
//! The library states facts; this module alone turns them into sentences of one house style: what
//! happened on the first line, then `rule`, `because`, `stopped`, `output`, `instead`.

use std::fmt;
use std::time::Duration;

use shieling::outcome::{
    ChangeMode, ChangeState, ChangeTotals, Changes, Denial, HeldBack, HintKind, Layer, LimitHit, LimitedResource,
    NetworkSummary, Outcome, ReviewAnswer, Status,
};
use shieling::policy::{Decision, Reason};
use shieling::request::Command;
use shieling::units::{ByteCount, spoken};

use crate::escape::{self, Escaped};
use crate::signals::NoSignals;
use crate::state;

/// Something is wrong with the request, or Shieling failed: nothing was started.
pub(crate) const FAILED: u8 = 125;
/// The command was denied, or needed an approval that nobody gave.
pub(crate) const REFUSED: u8 = 126;
/// The command's time was over.
pub(crate) const TIMED_OUT: u8 = 124;

/// How many characters of a command stand in a headline.
const HEADLINE: usize = 160;

/// Why nothing was started: what is wrong, then lines with their labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    what: String,
    lines: Vec<(&'static str, String)>,
}

impl From<NoSignals> for Failure {
    fn from(error: NoSignals) -> Self {
        Self::new(error.to_string())
    }
}

impl Failure {
    /// What is wrong, lower case, without a full stop.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            lines: Vec::new(),
        }
    }

    /// What is wrong, escaped and without the lines that follow.
    pub(crate) fn what(&self) -> String {
        escape::line(&self.what)
    }

    /// One more line, such as `instead`.
    pub(crate) fn with(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.lines.push((label, text.into()));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Parts of it come from files and options that strangers wrote.
        write!(f, "error: {}", Escaped::new(&self.what).text)?;
        let mut lines = self.lines.iter();
        lines.try_for_each(|(label, text)| write!(f, "\n{label:<8} {}", Escaped::new(text).text))
    }
}

/// With which status `exec` exits.
pub(crate) fn exit_status(outcome: &Outcome) -> u8 {
    match outcome.status {
        // A status is a byte to the kernel; the library cannot see a larger one.
        Status::Exited => match outcome.exit_code.map_or(FAILED, |code| code.to_le_bytes()[0]) {
            // Who goes by the status would take the work for done.
            0 if outcome.changes.as_ref().is_some_and(is_uncommitted) => FAILED,
            code => code,
        },
        Status::Signalled | Status::OutOfMemory | Status::OutputLimit => outcome
            .signal
            .map_or(137, |signal| 128_u8.wrapping_add(signal.to_le_bytes()[0])),
        Status::TimedOut => TIMED_OUT,
        Status::Denied | Status::NeedsApproval | Status::RateLimited => REFUSED,
        Status::Running | Status::Lost | Status::Failed => FAILED,
    }
}

/// Whether changes that were to be committed were not. What is held back is no such case: the rest is committed.
fn is_uncommitted(changes: &Changes) -> bool {
    changes.mode == ChangeMode::Commit && matches!(changes.state, ChangeState::Waiting | ChangeState::Conflict)
}

/// What is to be told on stderr about how a command ended; empty if its status says it all.
/// `memory` is the limit on its memory, if there was one.
pub(crate) fn end(outcome: &Outcome, command: &Command, memory: Option<ByteCount>) -> String {
    let mut lines = Lines::default();
    let shown = escape::headline(command.text(), HEADLINE);
    match outcome.status {
        Status::Exited => {}
        Status::Signalled => {
            let signal = outcome.signal.map_or_else(|| "a signal".to_owned(), signal_name);
            lines.first(format!("ended by {signal}: `{shown}` after {}", spoken(outcome.took())));
        }
        Status::TimedOut => {
            let allowed = command.deadline();
            lines.first(format!(
                "timed out: `{shown}` ran {} of an allowed {}",
                spoken(outcome.took()),
                spoken(allowed)
            ));
            lines.add("stopped", stopped(outcome, command.grace()));
        }
        Status::OutOfMemory => {
            let limit = memory.map_or_else(
                || "the memory limit".to_owned(),
                |limit| format!("the limit of {limit}"),
            );
            lines.first(format!("out of memory: `{shown}` was ended at {limit}"));
            lines.add(
                "because",
                "all processes of the environment together, with the files in its /tmp, may not use more",
            );
            // Otherwise told below, with who was killed.
            if outcome.limits_hit.is_empty() {
                let more = memory.map_or_else(|| "SIZE".to_owned(), |limit| plain(limit.get().saturating_mul(2)));
                lines.add(
                    "instead",
                    format!("do less at once (fewer jobs, smaller parts), or allow more with `--memory {more}`"),
                );
            }
        }
        Status::OutputLimit => lines.first(format!("too much output: `{shown}` was ended by the output limit")),
        Status::Denied | Status::NeedsApproval | Status::RateLimited => match &outcome.denial {
            Some(denial) => refusal(&mut lines, outcome, denial, &shown),
            None => lines.first(format!("denied: `{shown}`")),
        },
        Status::Running => lines.first(format!("still running: `{shown}`")),
        Status::Lost => {
            let what = match outcome.survivors {
                0 => "has ended with it",
                _ => "may still be running",
            };
            lines.first(format!(
                "lost: contact to `{}` is gone; `{shown}` {what}",
                outcome.environment
            ));
        }
        Status::Failed => lines.first(format!("error: `{shown}` could not be started")),
    }
    if let Some(error) = &outcome.error {
        lines.add("because", escape::line(error));
    }
    if outcome.status != Status::TimedOut {
        left_behind(&mut lines, outcome);
    }
    for hit in &outcome.limits_hit {
        let (label, told) = limit_hit(hit);
        lines.add(label, told);
        lines.add(
            "instead",
            format!("{}, or allow more with `{}`", less(hit.limit), hit.instead),
        );
    }
    for hint in &outcome.hints {
        lines.add(
            "because",
            format!("{}; {}", escape::line(&hint.because), escape::line(&hint.instead)),
        );
    }
    if let Some(network) = &outcome.network {
        self::network(&mut lines, network);
    }
    held_back(
        &mut lines,
        outcome.changes.iter().flat_map(|changes| &changes.held_back),
    );
    for accepted in outcome.changes.iter().flat_map(|changes| &changes.accepted) {
        lines.add("accepted", escape::line(&accepted.text()));
    }
    if let Some(changes) = &outcome.changes {
        staged(&mut lines, changes);
    }
    if outcome.truncated {
        output(&mut lines, outcome, command);
    }
    let no_network = outcome.was_refused_a_host() || outcome.hints.iter().any(|hint| hint.kind == HintKind::Network);
    // More time would not bring what cannot be reached.
    if outcome.status == Status::TimedOut && !no_network {
        let more = command.deadline().saturating_mul(2);
        lines.add(
            "instead",
            format!("allow more with `--timeout {}`", spoken(more).replace(' ', "")),
        );
    }
    lines.0
}

fn stopped(outcome: &Outcome, grace: Duration) -> String {
    let how = format!("SIGTERM, then SIGKILL for what was left after {}", spoken(grace));
    match (outcome.ended_processes, outcome.survivors) {
        (0, 0) => format!("{how}; no process was left behind"),
        (ended, 0) => format!("{how}; {} remained and {} ended", processes(ended), were(ended)),
        (_, survivors) => format!("{how}; {} could not be ended and may still run", processes(survivors)),
    }
}

fn left_behind(lines: &mut Lines, outcome: &Outcome) {
    let (ended, survivors) = (outcome.ended_processes, outcome.survivors);
    if ended > 0 {
        lines.add(
            "stopped",
            format!(
                "{} still ran when the command had ended, and {} ended",
                processes(ended),
                were(ended)
            ),
        );
    }
    if survivors > 0 {
        lines.add(
            "left",
            format!("{} could not be ended and may still run", processes(survivors)),
        );
    }
}

/// What a command can do about a limit.
fn less(limit: LimitedResource) -> &'static str {
    match limit {
        LimitedResource::Memory | LimitedResource::Pids => "do less at once (fewer jobs, smaller parts)",
        LimitedResource::FileSize => "write smaller files",
    }
}

/// A limit that was reached, with its label.
fn limit_hit(hit: &LimitHit) -> (&'static str, String) {
    let times = hit.times.unwrap_or(0);
    match hit.limit {
        LimitedResource::Memory => {
            let named: Vec<String> = hit
                .killed
                .iter()
                .map(|one| {
                    let bytes = ByteCount::bytes(one.bytes);
                    format!("{} (pid {}, {bytes})", escape::line(&one.name), one.pid)
                })
                .collect();
            let named_count = u64::try_from(named.len()).unwrap_or(u64::MAX);
            let who = match (named.is_empty(), times.saturating_sub(named_count)) {
                (true, 0 | 1) => "a process was killed".to_owned(),
                (true, more) => format!("{more} processes were killed"),
                (false, 0) => format!(
                    "{} {} killed",
                    named.join(", "),
                    were(u32::try_from(named.len()).unwrap_or(2))
                ),
                (false, more) => format!("{} and {more} more were killed", named.join(", ")),
            };
            let peak = hit.peak.map_or_else(String::new, |peak| {
                format!("; together they had up to {}", ByteCount::bytes(peak))
            });
            let limit = ByteCount::bytes(hit.bound);
            ("memory", format!("the limit of {limit} was reached, and {who}{peak}"))
        }
        LimitedResource::Pids => {
            let refused = match times {
                0 => "more were refused".to_owned(),
                1 => "1 more was refused".to_owned(),
                times => format!("{times} more were refused"),
            };
            let limit = hit.bound;
            (
                "pids",
                format!("the limit of {limit} processes and threads was reached, and {refused}"),
            )
        }
        LimitedResource::FileSize => {
            let limit = ByteCount::bytes(hit.bound);
            (
                "files",
                format!("no file may become larger than the limit of {limit}, and a write beyond it failed"),
            )
        }
    }
}

/// What was held back at the end of a sandbox, after the last outcome.
pub(crate) fn held_back_at_end(held: &[HeldBack]) -> String {
    let mut lines = Lines::default();
    held_back(&mut lines, held);
    lines.0
}

/// What became of changes that came into the workspace at the end, with what went wrong.
pub(crate) fn settled_at_end(changes: &Changes, error: Option<String>) -> String {
    let mut lines = Lines::default();
    if let Some(error) = error {
        lines.add("error", escape::line(&error));
    }
    held_back(&mut lines, &changes.held_back);
    staged(&mut lines, changes);
    if let (ChangeState::Committed, Some(totals), Some(id)) = (changes.state, changes.totals, &changes.id) {
        let id = escape::line(id);
        lines.add("changes", format!("{totals}; `shieling undo {id}` takes them back"));
    }
    lines.0
}

/// What may be left where commands ran.
pub(crate) fn left_at_end(left: &str) -> String {
    let mut lines = Lines::default();
    lines.add("error", escape::line(left));
    lines.0
}

/// What was refused of a network that is opened by name, and what a person has allowed for always.
fn network(lines: &mut Lines, network: &NetworkSummary) {
    for denied in &network.denied {
        let host = escape::line(&denied.host);
        let port = denied.port.map_or_else(String::new, |port| format!(":{port}"));
        lines.add("refused", format!("`{host}{port}`: {}", escape::line(&denied.because)));
        if let Some(instead) = &denied.instead {
            lines.add("instead", escape::line(instead));
        }
    }
    for rule in &network.always {
        let rule = escape::line(rule);
        lines.add("keep", format!("in your own shieling.toml: allow-host = [\"{rule}\"]"));
    }
}

fn held_back<'a>(lines: &mut Lines, held: impl IntoIterator<Item = &'a HeldBack>) {
    for held in held {
        lines.add("held", escape::line(&held.text()));
    }
}

/// What became of staged changes, unless they are where they were meant to be.
fn staged(lines: &mut Lines, changes: &Changes) {
    for conflict in &changes.conflicts {
        let path = escape::line(&conflict.path.to_string_lossy());
        let because = escape::line(&conflict.because);
        lines.add("conflict", format!("`{path}`: {because}"));
    }
    let totals = changes.totals.unwrap_or_default();
    let counts = match changes.totals {
        Some(totals) => totals.to_string(),
        None => "not counted".to_owned(),
    };
    let answer = ReviewAnswer::appended(changes.answer);
    match (changes.state, &changes.id) {
        (ChangeState::Committed, _) => {}
        (ChangeState::Discarded, _) if totals == ChangeTotals::default() => {}
        (ChangeState::Discarded, _) => lines.add("changes", format!("{counts}: discarded")),
        (ChangeState::Waiting | ChangeState::Conflict, None) => {
            lines.add("changes", format!("{counts}: not committed{answer}"))
        }
        (ChangeState::Waiting | ChangeState::Conflict, Some(id)) => {
            let id = escape::line(id);
            lines.add("changes", format!("{counts}: waiting as {id}{answer}"));
            lines.add(
                "instead",
                format!("see `shieling changes show {id}`, and `shieling changes apply {id}` or `discard {id}`"),
            );
        }
    }
}

fn output(lines: &mut Lines, outcome: &Outcome, command: &Command) {
    let keep = command.output_kept();
    let total = |bytes: u64| shieling::units::ByteCount::bytes(bytes);
    let which: Vec<String> = [("stdout", outcome.stdout_bytes), ("stderr", outcome.stderr_bytes)]
        .into_iter()
        .filter(|(_, bytes)| *bytes > keep.get())
        .map(|(name, bytes)| format!("{} of {name}", total(bytes)))
        .collect();
    let mut text = format!("kept {keep} of {}, first and last half", which.join(" and of "));
    match &outcome.output_id {
        Some(id) => {
            let all = outcome.stdout_bytes.saturating_add(outcome.stderr_bytes) <= state::WHOLE.get();
            let how_much = if all {
                "all".to_owned()
            } else {
                format!("the first {}", state::WHOLE)
            };
            text.push_str(&format!("; {how_much} of it: shieling log output {}", escape::line(id)));
        }
        None => text.push_str(&format!(
            "; keep more with `--max-output {}`",
            plain(keep.get().saturating_mul(4))
        )),
    }
    lines.add("output", text);
}

/// A size as an option takes it.
fn plain(bytes: u64) -> String {
    shieling::units::ByteCount::bytes(bytes).to_string().replace(' ', "")
}

fn refusal(lines: &mut Lines, outcome: &Outcome, denial: &Denial, shown: &str) {
    match outcome.status {
        Status::RateLimited => {
            lines.first(format!(
                "rate limited: `{shown}` was not started, too many were started before it"
            ));
            if let Some(ms) = denial.retry_after_ms {
                lines.add("instead", format!("try again in {}", spoken(Duration::from_millis(ms))));
            }
            return;
        }
        _ if denial.is_for_length() => {
            lines.first(format!(
                "not asked about: `{shown}` is too long for that, and was not started"
            ));
        }
        Status::NeedsApproval => lines.first(format!("not approved: `{shown}` was not started, nobody said yes")),
        _ => {
            if denial.layer == Layer::Approval {
                lines.first(format!("denied: `{shown}` was refused by the person asked"));
            } else if denial.layer == Layer::Environment {
                lines.first(format!(
                    "denied: `{}` cannot run `{shown}` as asked",
                    outcome.environment
                ));
            }
        }
    }
    // That nobody said yes stands in the first line; what is left are the reasons to ask.
    // Nor does a plain no say more than that line.
    let said = |reason: &Reason| outcome.status == Status::NeedsApproval || reason.because == "the approver said no";
    let nobody = |reason: &Reason| reason.rule == "approval" && reason.object == "the whole command" && said(reason);
    let reasons = denial.reasons.iter().filter(|reason| !nobody(reason));
    for reason in reasons {
        if lines.0.is_empty() || reason.decision == Decision::Deny {
            lines.first(format!("denied: {}", sentence(reason)));
        } else {
            lines.add("because", sentence(reason));
        }
        lines.add(
            "rule",
            format!("{} ({})", escape::line(&reason.rule), decision(reason.decision)),
        );
        if let Some(instead) = &reason.instead {
            lines.add("instead", escape::line(instead));
        }
    }
    if outcome.status == Status::NeedsApproval && outcome.confinement.missing.iter().any(|layer| layer == "sandbox") {
        lines.add(
            "because",
            "the machine where it would run can have no sandbox, so nothing would confine it there",
        );
    }
    if outcome.status == Status::NeedsApproval && !denial.is_for_length() {
        let by_policy = denial.reasons.iter().any(|reason| reason.rule != "approval");
        lines.add(
            "instead",
            if by_policy {
                "run it from a terminal and answer there, or ask for something that the policy decides"
            } else {
                "run it from a terminal and answer there, or be asked about less with `--approval policy`"
            },
        );
    }
}

/// A reason as a sentence: the object and the fact about it.
pub(crate) fn sentence(reason: &Reason) -> String {
    if reason.object.is_empty() {
        escape::line(&reason.because)
    } else {
        format!(
            "`{}`: {}",
            escape::headline(&reason.object, HEADLINE),
            escape::line(&reason.because)
        )
    }
}

/// The word for a decision.
pub(crate) fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// The names of the signals that end commands in practice; the rest go by number.
fn signal_name(signal: i32) -> String {
    shieling::outcome::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

fn processes(count: u32) -> String {
    if count == 1 {
        "1 process".to_owned()
    } else {
        format!("{count} processes")
    }
}

fn were(count: u32) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Headlines and labelled lines, each ended by a newline.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn first(&mut self, text: String) {
        self.0.push_str(&text);
        self.0.push('\n');
    }

    fn add(&mut self, label: &str, text: impl AsRef<str>) {
        self.first(format!("{label:<8} {}", text.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: Status) -> Outcome {
        Outcome {
            duration_ms: 1_234.0,
            ..Outcome::blank(status, "/w", "local")
        }
    }

    fn reason(decision: Decision) -> Reason {
        Reason {
            decision,
            rule: "team.toml:14 no-force".to_owned(),
            object: "git push --force \u{1b}[2K".to_owned(),
            span: Some(shieling::policy::Span::new(0, 3)),
            because: "rewrites a shared branch".to_owned(),
            instead: Some("git push --force-with-lease".to_owned()),
        }
    }

    fn refused(status: Status, layer: Layer, reasons: Vec<Reason>) -> Outcome {
        let decision = reasons
            .iter()
            .map(|reason| reason.decision)
            .max()
            .unwrap_or(Decision::Ask);
        Outcome {
            denial: Some(Denial {
                layer,
                decision,
                reasons,
                retry_after_ms: Some(2_500),
            }),
            ..outcome(status)
        }
    }

    fn told(outcome: &Outcome) -> String {
        let command = Command::new("cargo test", "/w").unwrap();
        format!(
            "{}exit {}\n\n",
            end(outcome, &command, Some(ByteCount::mib(4096))),
            exit_status(outcome)
        )
    }

    #[test]
    fn a_command_that_ended_by_itself_needs_no_words() {
        for code in [0, 1, 124, 255] {
            let ended = Outcome {
                exit_code: Some(code),
                ..outcome(Status::Exited)
            };
            assert_eq!(told(&ended), format!("exit {code}\n\n"));
        }
    }

    #[test]
    fn changes_that_were_not_committed_make_the_status_of_success_a_failure() {
        let with = |mode, state, code| {
            let mut changes = Changes::direct();
            (changes.mode, changes.state) = (mode, state);
            Outcome {
                exit_code: Some(code),
                changes: Some(changes),
                ..outcome(Status::Exited)
            }
        };
        for (mode, state, code, expected) in [
            (ChangeMode::Commit, ChangeState::Committed, 0, 0),
            (ChangeMode::Commit, ChangeState::Conflict, 0, FAILED),
            (ChangeMode::Commit, ChangeState::Waiting, 0, FAILED),
            (ChangeMode::Commit, ChangeState::Conflict, 3, 3),
            (ChangeMode::Review, ChangeState::Waiting, 0, 0),
            (ChangeMode::Discard, ChangeState::Discarded, 0, 0),
        ] {
            assert_eq!(exit_status(&with(mode, state, code)), expected, "{mode:?} {state:?}");
        }
    }

    #[test]
    fn every_other_end_is_told() {
        let page: String = [
            Outcome {
                signal: Some(11),
                exit_code: Some(139),
                ..outcome(Status::Signalled)
            },
            Outcome {
                exit_code: Some(0),
                ended_processes: 2,
                ..outcome(Status::Exited)
            },
            Outcome {
                exit_code: Some(0),
                survivors: 1,
                ..outcome(Status::Exited)
            },
            Outcome {
                duration_ms: 60_003.0,
                exit_code: Some(124),
                ..outcome(Status::TimedOut)
            },
            Outcome {
                duration_ms: 60_003.0,
                ended_processes: 2,
                truncated: true,
                stdout_bytes: 4_300_000,
                output_id: Some("7f3c".to_owned()),
                ..outcome(Status::TimedOut)
            },
            Outcome {
                survivors: 1,
                ..outcome(Status::TimedOut)
            },
            Outcome {
                exit_code: Some(0),
                truncated: true,
                stdout_bytes: 70_000,
                stderr_bytes: 90_000,
                ..outcome(Status::Exited)
            },
            outcome(Status::OutOfMemory),
            Outcome {
                survivors: 1,
                ..outcome(Status::Lost)
            },
            Outcome {
                error: Some("no shell\u{1b}".to_owned()),
                ..outcome(Status::Failed)
            },
        ]
        .iter()
        .map(told)
        .collect();
        insta::assert_snapshot!(page);
    }

    #[test]
    fn what_was_held_back_is_told_with_its_place() {
        let mut held = Outcome {
            exit_code: Some(0),
            ..outcome(Status::Exited)
        };
        held.add_held_back(vec![HeldBack::new(
            ".vscode\u{1b}",
            "it was not there",
            "it was moved to `.vscode.held-back`",
        )]);
        let line = "held     `.vscode\\x1b`: it was not there; it was moved to `.vscode.held-back`\n";
        assert_eq!(told(&held), format!("{line}exit 0\n\n"));
        let changes = held.changes.expect("just added");
        assert_eq!(held_back_at_end(&changes.held_back), line);
        assert_eq!(held_back_at_end(&[]), "");
    }

    #[test]
    fn every_refusal_says_who_why_and_what_now() {
        let page: String = [
            refused(Status::Denied, Layer::Policy, vec![reason(Decision::Deny)]),
            refused(
                Status::Denied,
                Layer::Policy,
                vec![reason(Decision::Deny), reason(Decision::Ask)],
            ),
            refused(Status::Denied, Layer::Approval, vec![reason(Decision::Ask)]),
            refused(Status::NeedsApproval, Layer::Approval, vec![reason(Decision::Ask)]),
            refused(Status::NeedsApproval, Layer::Approval, Vec::new()),
            refused(Status::RateLimited, Layer::Rate, Vec::new()),
        ]
        .iter()
        .map(told)
        .collect();
        insta::assert_snapshot!(page);
    }
}
