//! What an environment itself makes of a change of files, which the policy cannot know.

use std::path::Path;

use crate::environment::Environment;
use crate::policy::{Decision, Reason, Span};
use crate::request::{FileOp, Touched};

/// Where nothing keeps them from it, changes of what the user's own tools run code from are asked about:
/// also of what goes along, however deep, with a directory that is removed or moved. What would be moved
/// aside right after it was made is refused before.
pub(super) fn reasons(op: &FileOp, environment: &dyn Environment) -> Vec<Reason> {
    let name = environment.name();
    let changed: Vec<&Touched> = op.touched().iter().filter(|touched| touched.access.changes()).collect();
    let paths: Vec<&Path> = changed.iter().map(|touched| touched.path.as_path()).collect();
    let mut reasons: Vec<Reason> = Vec::new();
    for number in environment.holds_back(&paths) {
        let touched = changed[number];
        reasons.push(Reason {
            decision: Decision::Deny,
            rule: format!("environment {name}"),
            object: op.named(touched).escape_debug().to_string(),
            span: Some(Span::new(touched.span.start, touched.span.end)),
            because: "it was not there when the sandbox started, and tools of the user run code from there".to_owned(),
            instead: Some("write it elsewhere and tell the user, who can start with `--open-protected`".to_owned()),
        });
    }
    for number in environment.unprotected_paths(&paths, op.workspace()) {
        let touched = changed[number];
        let span = Span::new(touched.span.start, touched.span.end);
        // One is enough for all that goes with the same name.
        if reasons.iter().any(|reason| reason.span == Some(span)) {
            continue;
        }
        reasons.push(Reason {
            decision: Decision::Ask,
            rule: format!("environment {name}"),
            object: op.named(touched).escape_debug().to_string(),
            span: Some(span),
            because: format!("tools of the user run code from there, and `{name}` does not protect it"),
            instead: None,
        });
    }
    reasons
}
