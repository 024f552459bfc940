//! `shell_view`, `shell_write`, `shell_wait`, `shell_kill`: calls about existing jobs.

use std::sync::Arc;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use serde_json::json;
use shieling::outcome::{Outcome, Status};
use shieling::session::{JobError, JobId, JobInput, TerminalSize, Until, ViewRequest, ViewResponse, WaitFor};

use super::remedy::remedy;
use crate::approval::{PERSON, Person};
use crate::arguments;
use crate::core::Workplace;
use crate::dialect::Conversion;
use crate::result::{CallResult, Retry};
use crate::text::{self, CallContext};
use crate::tools::Tool;

/// The largest compiled regular expression, in bytes.
const EXPRESSION: usize = 1 << 20;

pub(super) async fn view(
    workplace: &Workplace,
    asked: arguments::ShellView,
    context: CallContext,
    person: &Arc<Person>,
) -> CallResult {
    let filter = match asked.filter.as_deref().map(expression).transpose() {
        Ok(filter) => filter,
        Err(wrong) => return CallResult::invalid(wrong),
    };
    let job = match job(&asked.job) {
        Ok(job) => job,
        Err(wrong) => return wrong,
    };
    let mut context = of(context, &job);
    match (asked.rows, asked.columns) {
        (None, None) => {}
        (Some(rows), Some(columns)) => {
            if let Err(error) = workplace.core.resize(&job, TerminalSize { rows, columns }) {
                return refused(workplace, error, "", &context);
            }
        }
        _ => return CallResult::invalid("a terminal has a size in both directions: give `rows` and `columns`"),
    }
    let ask = ViewRequest {
        job: job.clone(),
        cursor: asked.cursor,
        wait: Duration::from_millis(asked.wait_ms),
        until: match asked.until {
            arguments::Until::Output => Until::Output,
            arguments::Until::Quiet => Until::Quiet,
            arguments::Until::Exit => Until::Exit,
        },
        screen: asked.screen,
    };
    // A person may be asked about what the job left.
    match PERSON.scope(person.clone(), workplace.core.view(ask)).await {
        Ok(mut view) => {
            if let Some(filter) = filter {
                view.outcome.stdout = only(&filter, &view.outcome.stdout);
                view.outcome.stderr = only(&filter, &view.outcome.stderr);
            }
            cut(&mut view, asked.max_output_bytes);
            if asked.cursor.is_some() {
                context.more = Some(view.cursor).filter(|next| written(workplace, &job) > *next);
            }
            CallResult::new(text::view(&view, &context), &view, false)
        }
        Err(error) => refused(workplace, error, "", &context),
    }
}

pub(super) async fn write(
    workplace: &Workplace,
    asked: arguments::ShellWrite,
    context: CallContext,
    person: &Arc<Person>,
) -> CallResult {
    let job = match job(&asked.job) {
        Ok(job) => job,
        Err(wrong) => return wrong,
    };
    let context = of(context, &job);
    let wait = Duration::from_millis(asked.wait_ms);
    let input = JobInput {
        enter: asked.enter.unwrap_or(asked.text.is_some()),
        text: asked.text.unwrap_or_default(),
        keys: asked.keys,
    };
    let typed = input.text.clone();
    let done = if input == JobInput::default() {
        // Writing nothing is valid: some models do so to see new output.
        let wait = ViewRequest {
            wait,
            ..ViewRequest::new(job)
        };
        PERSON.scope(person.clone(), workplace.core.view(wait)).await
    } else {
        PERSON
            .scope(person.clone(), workplace.core.write(&job, input, wait))
            .await
    };
    match done {
        Ok(mut view) => {
            cut(&mut view, asked.max_output_bytes);
            CallResult::new(text::written(&view, &context), &view, false)
        }
        Err(JobError::Refused(denial)) => {
            let unanswered = person.unanswered();
            let mut denial = *denial;
            let again = Retry::after(Status::Denied, &denial, unanswered.as_ref());
            if !denial.is_for_length()
                && let Some(reason) = denial.reasons.iter_mut().rfind(|reason| reason.rule == "approval")
            {
                reason.instead.get_or_insert_with(|| remedy(unanswered, ""));
            }
            CallResult {
                again,
                ..refused(workplace, JobError::Refused(Box::new(denial)), &typed, &context)
            }
        }
        Err(error) => refused(workplace, error, &typed, &context),
    }
}

pub(super) async fn wait(
    workplace: &Workplace,
    asked: arguments::ShellWait,
    context: CallContext,
    person: &Arc<Person>,
) -> CallResult {
    let job = match job(&asked.job) {
        Ok(job) => job,
        Err(wrong) => return wrong,
    };
    let context = of(context, &job);
    let what = match (asked.pattern, asked.port) {
        (None, None) => WaitFor::Exit,
        (Some(pattern), None) => WaitFor::Pattern(pattern),
        (None, Some(port)) => WaitFor::Port(port),
        (Some(_), Some(_)) => {
            return CallResult::invalid("one thing can be waited for: give `pattern` or `port`, not both");
        }
    };
    let said = match &what {
        WaitFor::Exit => "its end",
        WaitFor::Pattern(_) => "the pattern",
        WaitFor::Port(_) => "the port",
    };
    let budget = Duration::from_millis(asked.timeout_ms);
    let waited = workplace.core.wait_for(&job, what, budget);
    match PERSON.scope(person.clone(), waited).await {
        Ok((met, view)) => {
            let came = if met { "came" } else { "did not come" };
            let text = format!("[{said} {came}]\n{}", text::view(&view, &context));
            let mut value = serde_json::to_value(&view).unwrap_or_default();
            if let Some(object) = value.as_object_mut() {
                object.insert("met".to_owned(), met.into());
            }
            CallResult::new(text, &value, false)
        }
        Err(error) => refused(workplace, error, "", &context),
    }
}

pub(super) async fn kill(
    workplace: &Workplace,
    asked: &arguments::ShellKill,
    context: CallContext,
    person: &Arc<Person>,
) -> CallResult {
    let job = match job(&asked.job) {
        Ok(job) => job,
        Err(wrong) => return wrong,
    };
    let context = of(context, &job);
    match PERSON.scope(person.clone(), workplace.core.kill(&job)).await {
        Ok(view) => CallResult::new(text::killed(&view, &context), &view, false),
        Err(error) => refused(workplace, error, "", &context),
    }
}

/// Returns the number of bytes that a job has written.
fn written(workplace: &Workplace, job: &JobId) -> u64 {
    let jobs = workplace.core.list().jobs;
    let found = jobs.iter().find(|info| info.job == *job);
    found.map_or(0, |info| info.output_bytes)
}

fn of(context: CallContext, job: &JobId) -> CallContext {
    CallContext {
        job: job.to_string(),
        // The job's kind of process is not known, so nothing is said about its session.
        own: true,
        ..context
    }
}

fn job(name: &str) -> Result<JobId, CallResult> {
    name.parse()
        .map_err(|error: shieling::session::IdError| CallResult::invalid(error.to_string()))
}

fn refused(workplace: &Workplace, error: JobError, typed: &str, context: &CallContext) -> CallResult {
    let denial = match error {
        JobError::Refused(denial) => denial,
        JobError::Ended { job, status } => {
            let jobs = workplace.core.list().jobs;
            let code = jobs.iter().find(|info| info.job == job).and_then(|info| info.exit_code);
            let code = code.map_or(String::new(), |code| format!(", exit code {code}"));
            let how = status.name().replace('_', " ");
            return CallResult::failure(format!(
                "job `{job}` has ended ({how}{code}); its output can still be viewed"
            ));
        }
        JobError::NoInput { job } => {
            let instead = start_with(&["background", "tty"], "to write to it", context);
            return CallResult::failure(format!(
                "job `{job}` reads from nowhere: its standard input is at its end{instead}"
            ));
        }
        JobError::NoTerminal { job, what } => {
            let instead = start_with(&["tty"], &format!("for {what}"), context);
            return CallResult::failure(format!("job `{job}` has no terminal{instead}"));
        }
        error => return CallResult::failure(error.to_string()),
    };
    let shown = Outcome {
        denial: Some(*denial),
        ..Outcome::blank(Status::Denied, "", "")
    };
    let value = json!({"status": shown.status, "error": "it was not approved", "denial": shown.denial});
    CallResult::new(text::refusal(&shown, typed, context), &value, true)
}

/// Words which of these arguments of ours would have helped at the start, by their names in the dialect. Those that the
/// caller does not have are left out.
fn start_with(names: &[&str], why: &str, context: &CallContext) -> String {
    let offered = &context.offered;
    let ways: Vec<String> = names
        .iter()
        .filter(|name| offered.takes(Tool::Shell, name))
        .map(|name| match offered.argument(Tool::Shell, name) {
            Some(argument) if argument.how == Conversion::Not => format!("`{}` false", argument.name),
            Some(argument) => format!("`{}`", argument.name),
            None => format!("`{name}`"),
        })
        .collect();
    if ways.is_empty() {
        return String::new();
    }
    format!("; start it with {} {why}", ways.join(" or "))
}

fn expression(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(EXPRESSION)
        .build()
        .map_err(|error| format!("`filter` cannot be used: {error}"))
}

/// Returns the matching lines.
fn only(filter: &Regex, text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| filter.is_match(line.trim_end_matches('\n')))
        .collect()
}

/// Cuts the middle out of output longer than `most` bytes.
fn cut(view: &mut ViewResponse, most: Option<u64>) {
    let Some(most) = most.and_then(|most| usize::try_from(most).ok()) else {
        return;
    };
    for text in [&mut view.outcome.stdout, &mut view.outcome.stderr] {
        if text.len() > most {
            let head = text.floor_char_boundary(most / 2);
            let tail = text.ceil_char_boundary(text.len() - most / 2);
            let missing = tail - head;
            *text = format!(
                "{}\n[... {missing} bytes left out ...]\n{}",
                &text[..head],
                &text[tail..]
            );
            view.outcome.truncated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::toolset::Offered;

    #[test]
    fn advice_names_the_arguments_of_the_dialect() {
        let said = |dialect| {
            let context = CallContext {
                offered: Offered::all(Dialect::named(dialect).expect("there is such a dialect")),
                ..CallContext::default()
            };
            start_with(&["background", "tty"], "to write to it", &context)
        };
        assert_eq!(said("default"), "; start it with `background` or `tty` to write to it");
        assert_eq!(said("codex"), "; start it with `tty` to write to it");
        assert_eq!(said("camel"), "; start it with `block` false to write to it");
        assert_eq!(said("claude"), "; start it with `run_in_background` to write to it");
    }
}
