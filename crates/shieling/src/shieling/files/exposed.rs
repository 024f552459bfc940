//! What an environment itself makes of a change of files, which the policy cannot know.

use std::path::Path;

use crate::environment::Environment;
use crate::policy::{Decision, Reason, Span};
use crate::request::FileOp;

/// Where nothing keeps them from it, changes of what the user's own tools run code from are asked about.
/// What lies in a directory that is removed or moved goes with that.
pub(super) fn reasons(op: &FileOp, environment: &dyn Environment) -> Vec<Reason> {
    let name = environment.name();
    let mut reasons: Vec<Reason> = Vec::new();
    let mut outermost: Option<&Path> = None;
    for touched in op.touched().iter().filter(|touched| touched.access.changes()) {
        let span = Span::new(touched.span.start, touched.span.end);
        let told = reasons.iter().any(|reason| reason.span == Some(span));
        // A directory is asked for itself and all below it, which follows it.
        let below = outermost.is_some_and(|outermost| touched.path.starts_with(outermost));
        if told || below || !environment.exposes(&touched.path, op.workspace()) {
            outermost = if below { outermost } else { Some(&touched.path) };
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
