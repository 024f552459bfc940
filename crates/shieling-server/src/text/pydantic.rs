//! As pydantic-ai's environment toolset answers.

use shieling::outcome::{Outcome, Status};

use super::{About, add, merged, plain};

pub(super) fn outcome(outcome: &Outcome, about: &About) -> String {
    let mut text = merged(outcome);
    match (outcome.status, outcome.exit_code) {
        (Status::Exited | Status::TimedOut, Some(code)) => {
            if outcome.truncated {
                add(&mut text, "[output truncated]");
            }
            if let Some(line) = super::cut_short(outcome) {
                add(&mut text, &line);
            }
            if outcome.status == Status::TimedOut {
                add(&mut text, "[Command timed out]");
            }
            add(&mut text, &format!("Exit code: {code}"));
            text
        }
        // What has no exit code is told as we tell it.
        _ => plain::outcome(outcome, about),
    }
}
