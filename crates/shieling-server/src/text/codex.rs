//! Results in the style of Codex's `exec_command` and `write_stdin`.

use shieling::outcome::{Outcome, Status};

use super::context::{CallContext, cut_short, ended, merged};
use super::plain;

pub(super) fn outcome(outcome: &Outcome, context: &CallContext) -> String {
    let text = merged(outcome);
    let mut lines = vec![format!("Wall time: {:.4} seconds", outcome.took().as_secs_f64())];
    if ended(outcome.status) {
        match outcome.exit_code {
            Some(code) => lines.push(format!("Process exited with code {code}")),
            // The original has no text for results without an exit code.
            None => return plain::outcome(outcome, context),
        }
    } else if let Some(job) = &outcome.job {
        let number = job.strip_prefix('j').unwrap_or(job);
        lines.push(format!("Process running with session ID {number}"));
    }
    let bytes = outcome.stdout_bytes.saturating_add(outcome.stderr_bytes);
    if outcome.truncated {
        lines.push(format!("Original token count: {}", bytes.div_ceil(4)));
    }
    if outcome.status == Status::TimedOut {
        lines.push("The command timed out and was ended".to_owned());
    }
    lines.push("Output:".to_owned());
    lines.push(text);
    lines.extend(cut_short(outcome));
    lines.join("\n")
}
