//! How a stage's no becomes part of an outcome.

use crate::approval::Refused;
use crate::outcome::{Denial, Layer, Status};
use crate::policy::{Decision, Reason, Span, Verdict};
use crate::rate::TooSoon;
use crate::request::Command;

/// Too many commands in too short a time.
pub(super) fn too_soon(refused: TooSoon) -> (Status, Denial) {
    let reason = Reason {
        decision: Decision::Deny,
        rule: format!("rate {}", refused.window),
        object: String::new(),
        span: None,
        because: refused.to_string(),
        instead: Some("wait, or join several commands into one".to_owned()),
    };
    let denial = Denial {
        layer: Layer::Rate,
        decision: Decision::Deny,
        reasons: vec![reason],
        retry_after_ms: Some(refused.retry_after_ms()),
    };
    (Status::RateLimited, denial)
}

/// No yes. `by_environment` says that the policy alone would have allowed it.
pub(super) fn unapproved(
    refused: &Refused,
    verdict: &Verdict,
    command: &Command,
    by_environment: bool,
) -> (Status, Denial) {
    let (status, layer, decision) = match refused {
        Refused::Denied => (Status::Denied, Layer::Policy, Decision::Deny),
        Refused::SaidNo { .. } => (Status::Denied, Layer::Approval, Decision::Deny),
        Refused::NobodyToAsk | Refused::Unanswered if by_environment => {
            (Status::NeedsApproval, Layer::Environment, Decision::Ask)
        }
        Refused::NobodyToAsk | Refused::Unanswered | Refused::KeepsChanging { .. } => {
            (Status::NeedsApproval, Layer::Approval, Decision::Ask)
        }
    };
    let mut reasons = verdict.reasons.clone();
    if *refused != Refused::Denied {
        reasons.push(Reason {
            decision,
            rule: "approval".to_owned(),
            object: match refused {
                Refused::KeepsChanging { files } => {
                    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
                    names.join(", ").escape_debug().to_string()
                }
                Refused::Denied | Refused::SaidNo { .. } | Refused::NobodyToAsk | Refused::Unanswered => {
                    "the whole command".to_owned()
                }
            },
            span: Some(Span::new(0, command.text().len())),
            because: refused.to_string(),
            instead: None,
        });
    }
    (
        status,
        Denial {
            layer,
            decision,
            reasons,
            retry_after_ms: None,
        },
    )
}
