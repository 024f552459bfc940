//! Results in the default style.

use shieling::outcome::{LimitHit, LimitedResource, Outcome, Status};
use shieling::output::plain_text;
use shieling::session::{AskHumanResponse, Listing, Screen, ViewResponse};
use shieling::units::{ByteCount, spoken};

use super::context::{CallContext, add, address};
use crate::tools::Tool;
use crate::visible;

pub(super) fn outcome(outcome: &Outcome, context: &CallContext) -> String {
    let mut text = streams(outcome);
    let left = goes_on(outcome, context);
    for line in status(outcome, outcome.truncated, context).into_iter().chain(left) {
        add(&mut text, &format!("[{line}]"));
    }
    if let (Status::Failed, Some(error)) = (outcome.status, &outcome.error) {
        add(&mut text, &visible::visible(error));
    }
    if text.is_empty() {
        text.push_str("[no output]");
    }
    text
}

pub(super) fn view(view: &ViewResponse, context: &CallContext) -> String {
    let mut text = String::new();
    if view.missed_bytes > 0 {
        let missed = ByteCount::bytes(view.missed_bytes);
        let line = match kept(&view.outcome, context) {
            Some(kept) => format!("[{missed} of older output is not shown; {kept}]\n"),
            None => format!("[{missed} of older output is no longer kept]\n"),
        };
        add(&mut text, &line);
    }
    match &view.screen {
        Some(shown) => text.push_str(&screen(shown)),
        None => text.push_str(&streams(&view.outcome)),
    }
    let job = &context.job;
    let now = match view.outcome.status {
        Status::Running if text.is_empty() => format!("job {job} runs, and has written nothing new"),
        Status::Running => format!("job {job} runs"),
        Status::Exited => format!(
            "job {job} has ended: exit code {}",
            view.outcome.exit_code.unwrap_or_default()
        ),
        _ => format!("job {job} has ended"),
    };
    add(&mut text, &format!("[{now}]"));
    // What is missing at the beginning was said above. A view shows the output from its cursor on, not the beginning of all.
    if view.outcome.truncated && view.missed_bytes == 0 && view.screen.is_none() {
        let whole = kept(&view.outcome, context).map_or_else(String::new, |kept| format!("; {kept}"));
        add(&mut text, &format!("[the middle of this output is left out{whole}]"));
    }
    if view.outcome.status != Status::Running {
        for line in status(&view.outcome, false, context)
            .iter()
            .filter(|line| !line.starts_with("exit code"))
        {
            add(&mut text, &format!("[{line}]"));
        }
    }
    if let Some(next) = context.more {
        add(&mut text, &format!("[more: cursor {next}]"));
    }
    text
}

pub(super) fn killed(view: &ViewResponse, context: &CallContext) -> String {
    let mut text = self::view(view, context);
    // Processes that are left are reported with the end of the job.
    if view.outcome.survivors == 0 {
        add(&mut text, "[no process of it is left]");
    }
    // A job that was killed is seldom viewed again, so this is where its output can still be found.
    if let (Some(id), Some(kept)) = (&view.outcome.output_id, kept(&view.outcome, context))
        && !text.contains(id)
    {
        add(&mut text, &format!("[{kept}]"));
    }
    text
}

/// Words a screen.
fn screen(screen: &Screen) -> String {
    let mut text = screen.text.trim_end().to_owned();
    let at = match screen.cursor {
        Some((line, column)) => format!(
            "cursor at line {}, column {}",
            line.saturating_add(1),
            column.saturating_add(1)
        ),
        None => "cursor hidden".to_owned(),
    };
    let size = format!("screen of {} lines, {} columns", screen.size.rows, screen.size.columns);
    add(&mut text, &format!("[{size}; {at}]"));
    text
}

/// Words a listing.
pub(crate) fn listing(listing: &Listing) -> String {
    let mut text = String::new();
    for session in &listing.sessions {
        let busy = session
            .job
            .as_ref()
            .map_or("idle".to_owned(), |job| format!("busy with {job}"));
        let cwd = visible::line(&session.cwd.to_string_lossy(), 300);
        add(&mut text, &format!("session {}  {cwd}  {busy}", session.session));
    }
    for job in &listing.jobs {
        let status = match (job.status, job.exit_code) {
            (Status::Exited, Some(code)) => format!("exited {code}"),
            (status, _) => name(status).to_owned(),
        };
        let command = visible::line(&job.command, 100);
        let unseen = match job.unseen_bytes {
            0 => String::new(),
            bytes => format!(", {} not seen yet", ByteCount::bytes(bytes)),
        };
        let person = if job.person { ", a person has its keyboard" } else { "" };
        add(
            &mut text,
            &format!("job {}  {status}{unseen}{person}  `{command}`", job.job),
        );
    }
    if text.is_empty() {
        text.push_str("[no sessions and no jobs]");
    }
    text
}

/// Words a person's answer.
pub(crate) fn answer(answer: &AskHumanResponse) -> String {
    match answer {
        AskHumanResponse::Answer { text } => text.clone(),
        AskHumanResponse::TookOver { changed } if changed.is_empty() => {
            "[the person took the keyboard and has given it back; nothing changed]".to_owned()
        }
        AskHumanResponse::TookOver { changed } => {
            format!(
                "[the person took the keyboard and has given it back]\n{}",
                changed.join("\n")
            )
        }
        AskHumanResponse::Declined => "[the person does not want to answer]".to_owned(),
        AskHumanResponse::Nobody => {
            "[nobody is there to answer: decide yourself, or say what you need at the end]".to_owned()
        }
    }
}

/// Words a part of a whole output.
pub(crate) fn chunk(text: &str, next: u64, end: bool, context: &CallContext) -> String {
    let mut shown = plain_text(text);
    let more = context.tool(Tool::ShellOutput).unwrap_or_default();
    let line = if end {
        "[the end]".to_owned()
    } else {
        format!("[more: {more} with `cursor` {next}]")
    };
    add(&mut shown, &line);
    shown
}

fn streams(outcome: &Outcome) -> String {
    let mut text = plain_text(&outcome.stdout);
    if !outcome.stderr.is_empty() {
        add(&mut text, "[stderr]\n");
        text.push_str(&plain_text(&outcome.stderr));
    }
    text
}

/// Words everything about an end, or about the present state, besides the output; with `is_cut`, also how much of that is
/// missing.
fn status(outcome: &Outcome, is_cut: bool, context: &CallContext) -> Vec<String> {
    let mut lines = Vec::new();
    let took = spoken(outcome.took());
    match outcome.status {
        Status::Exited => {
            if let Some(code) = outcome.exit_code.filter(|code| *code != 0) {
                lines.push(format!("exit code {code}"));
            }
        }
        Status::Signalled => {
            let signal = outcome.signal.map_or_else(|| "a signal".to_owned(), signal);
            lines.push(format!("ended by {signal} after {took}"));
        }
        Status::TimedOut => {
            let stays = outcome.session.is_some() && !outcome.session_restarted && !context.own;
            let session = if stays { "; the session stays as it was" } else { "" };
            let allowed = spoken(context.allowed);
            lines.push(format!("timed out: it ran {took} of an allowed {allowed} and was ended{session}"));
        }
        Status::OutOfMemory => lines.push(format!(
            "out of memory: it was ended at the limit after {took}; do less at once, in smaller parts"
        )),
        Status::OutputLimit => lines.push(format!(
            "too much output: it was ended by the output limit after {took}; write to a file, or narrow it with `head`, `tail` or `grep`"
        )),
        Status::Running => lines.push(running(outcome, context)),
        Status::Lost => lines.push(format!(
            "lost: contact to `{}` is gone, and the command {}",
            outcome.environment,
            match outcome.survivors {
                0 => "has ended with it",
                _ => "may still be running",
            }
        )),
        Status::Failed => lines.push("failed: nothing was started".to_owned()),
        Status::Denied | Status::NeedsApproval | Status::RateLimited => lines.push(name(outcome.status).to_owned()),
    }
    // An error at the start has lines of its own.
    if outcome.status != Status::Failed {
        lines.extend(outcome.error.as_ref().map(|error| visible::visible(error)));
    }
    if is_cut {
        lines.push(cut(outcome, context));
    }
    if outcome.ended_processes > 0 && outcome.status != Status::Running {
        // Only a command that ended by itself can have left processes behind.
        let left = if outcome.status == Status::Exited {
            " that it had left behind"
        } else {
            ""
        };
        let what = match outcome.ended_processes {
            1 => format!("1 process{left} was ended"),
            count => format!("{count} processes{left} were ended"),
        };
        lines.push(what);
    }
    if outcome.survivors > 0 && outcome.status != Status::Running {
        lines.push(format!(
            "{} of its processes could not be ended and may still run",
            outcome.survivors
        ));
    }
    if outcome.session_restarted {
        lines.push(format!(
            "it ended the session's shell; a new one stands in {} with the same exported variables, without functions, aliases and options",
            visible::line(&outcome.cwd.to_string_lossy(), 300)
        ));
        if outcome.environment == "container" {
            lines.push("where the container itself had ended, files outside of mounted directories, such as `/tmp`, and jobs are gone, too".to_owned());
        }
    }
    lines
}

/// Words a limit that was reached while a command ran.
pub(super) fn limit_hit(hit: &LimitHit) -> String {
    let what = match hit.limit {
        LimitedResource::Memory => {
            let named: Vec<String> = hit
                .killed
                .iter()
                .map(|one| format!("{} (pid {})", visible::line(&one.name, 60), one.pid))
                .collect();
            let killed = match (named.is_empty(), hit.times) {
                (false, _) => named.join(", "),
                (true, None | Some(0 | 1)) => "a process".to_owned(),
                (true, Some(times)) => format!("{times} processes"),
            };
            let (limit, peak) = (ByteCount::bytes(hit.bound), hit.peak.map(ByteCount::bytes));
            let peak = peak.map_or_else(String::new, |peak| format!(" (peak {peak})"));
            format!("out of memory: killed at the limit of {limit}{peak} of all processes together: {killed}")
        }
        LimitedResource::Pids => {
            let limit = hit.bound;
            format!("too many processes: no more could be started at the limit of {limit} processes and threads")
        }
        LimitedResource::FileSize => {
            let limit = ByteCount::bytes(hit.bound);
            format!("file too large: a write failed at the limit of {limit} for each file")
        }
    };
    let less = match hit.limit {
        LimitedResource::Memory | LimitedResource::Pids => "do less at once, in smaller parts",
        LimitedResource::FileSize => "write smaller files",
    };
    format!("{what}; {less}, or a person can start with `{}`", hit.instead)
}

fn running(outcome: &Outcome, context: &CallContext) -> String {
    let job = outcome.job.as_deref().unwrap_or("?");
    let after = if context.background {
        format!("runs in the background as job {job}")
    } else {
        format!("still running after {}, goes on as job {job}", spoken(outcome.took()))
    };
    // A command in a session has no input but can be interrupted; a fresh process can be neither written to nor
    // interrupted.
    let typing = match (context.own, &outcome.session) {
        (true, _) => Some("types into it"),
        (false, Some(_)) if context.presses_keys() => Some("with the key `C-c` breaks it off"),
        (false, _) => None,
    };
    with_tools(after, typing, context)
}

/// Words that a command of a session has ended, and that what it started in the background has not.
fn goes_on(outcome: &Outcome, context: &CallContext) -> Option<String> {
    let has_ended = matches!(outcome.status, Status::Exited | Status::Signalled);
    // A job that the caller has named is known by its name after its end, too.
    let job = outcome
        .job
        .as_deref()
        .filter(|_| has_ended && context.alias.is_none())?;
    outcome.session.as_ref()?;
    let after = format!("what it started in the background goes on as job {job}");
    Some(with_tools(after, None, context))
}

/// A line about a running job, with the tools for it.
fn with_tools(line: String, typing: Option<&str>, context: &CallContext) -> String {
    let ways: Vec<String> = [
        (Tool::ShellView, Some("shows what is new")),
        (Tool::ShellWrite, typing),
        (Tool::ShellKill, Some("ends it")),
    ]
    .into_iter()
    .filter_map(|(tool, does)| Some(format!("{} {}", context.tool(tool)?, does?)))
    .collect();
    if ways.is_empty() {
        line
    } else {
        format!("{line}: {}", ways.join(", "))
    }
}

/// Words how much is missing, and how it can be read.
fn cut(outcome: &Outcome, context: &CallContext) -> String {
    let total = ByteCount::bytes(outcome.stdout_bytes.saturating_add(outcome.stderr_bytes));
    let whole = kept(outcome, context).unwrap_or_else(|| "narrow it with `head`, `tail` or `grep`".to_owned());
    format!("the output is cut: {total} in all, its start and end are shown; {whole}")
}

/// Words where the whole output is kept, if it is.
fn kept(outcome: &Outcome, context: &CallContext) -> Option<String> {
    let id = outcome.output_id.as_ref()?;
    Some(match context.tool(Tool::ShellOutput) {
        Some(tool) => format!("the whole is output {id}, read it with {tool}"),
        None => address(id),
    })
}

/// Returns the name of a status, as in outcomes.
fn name(status: Status) -> &'static str {
    match status {
        Status::Exited => "exited",
        Status::Signalled => "signalled",
        Status::TimedOut => "timed out",
        Status::OutOfMemory => "out of memory",
        Status::OutputLimit => "output limit",
        Status::Denied => "denied",
        Status::NeedsApproval => "needs approval",
        Status::RateLimited => "rate limited",
        Status::Running => "running",
        Status::Lost => "lost",
        Status::Failed => "failed",
    }
}

/// Returns the names of common signals; other signals have only a number.
fn signal(signal: i32) -> String {
    let name = shieling::outcome::signal_name(signal);
    name.map_or_else(
        || format!("signal {signal}"),
        |name| format!("signal {signal} ({name})"),
    )
}
