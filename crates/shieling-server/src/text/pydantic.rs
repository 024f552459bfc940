//! Results in the style of pydantic-ai's environment toolset.

use shieling::outcome::{Outcome, Status};

use super::context::{CallContext, add, cut_short, merged};
use super::plain;

pub(super) fn outcome(outcome: &Outcome, context: &CallContext) -> String {
    let mut text = merged(outcome);
    match (outcome.status, outcome.exit_code) {
        (Status::Exited | Status::TimedOut, Some(code)) => {
            if outcome.truncated {
                add(&mut text, "[output truncated]");
            }
            if let Some(line) = cut_short(outcome) {
                add(&mut text, &line);
            }
            if outcome.status == Status::TimedOut {
                add(&mut text, "[Command timed out]");
            }
            add(&mut text, &format!("Exit code: {code}"));
            text
        }
        // The original has no text for results without an exit code.
        _ => plain::outcome(outcome, context),
    }
}
