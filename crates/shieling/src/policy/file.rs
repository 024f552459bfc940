//! What a policy says of an operation on files. Here nothing has to be read from a text: the paths are
//! those that would be touched, with no link in them, so that nothing is ever in doubt.
//!
//! | part | reading | changing |
//! |---|---|---|
//! | readonly | passes | denied, in every environment |
//! | allow list | passes | asked: an entry names a command, and never grants a write |
//! | deny list | passes | passes |
//! | ignore list | denied, for whoever has not been told that there is nothing | denied |
//! | rules | by `reads` | by `reads` and `writes`; by `default`, where no `writes` of a rule allows it |
//!
//! The patterns are about the workspace: outside of it they match nothing. The `default` of a rule file
//! is about commands and changes; reading passes it, as it passes an allow list.

use std::path::Path;

use shieling_shell::Span;

use super::meaning::Finding;
use super::verdict::Decision::{Allow, Ask, Deny};
use super::verdict::{EffectKind, EffectSeen, IGNORE, Verdict};
use super::{Part, Policy, of_reasons, reason};
use crate::request::{FileOp, Touched};

impl Policy {
    /// Judges an operation on files: pure, and the same for the same operation.
    ///
    /// ```
    /// use shieling::policy::{Decision, Policy};
    /// use shieling::request::{Access, FileOp, Operation};
    ///
    /// let paths = vec![(Access::Write, "/work/a".into())];
    /// let write = FileOp::new(Operation::WriteFile, "/work", &[], paths);
    /// assert_eq!(Policy::open().judge_file(&write).decision, Decision::Allow);
    /// assert_eq!(Policy::open().with_readonly().judge_file(&write).decision, Decision::Deny);
    /// ```
    pub fn judge_file(&self, op: &FileOp) -> Verdict {
        let mut reasons = Vec::new();
        for (rule, finding) in self.parts.iter().flat_map(|part| judge_part(part, op)) {
            let reason = reason(rule, finding);
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let mut effects = Vec::new();
        for touched in op.touched() {
            let effect = EffectSeen {
                kind: if touched.access.changes() {
                    EffectKind::Writes
                } else {
                    EffectKind::Reads
                },
                object: shieling_shell::escaped(op.named(touched)),
                span: span(touched),
            };
            // All that is in a directory goes by its name.
            if !effects.contains(&effect) {
                effects.push(effect);
            }
        }
        of_reasons(reasons, Vec::new(), effects)
    }

    /// Whether there is a rule about what is read.
    pub(crate) fn has_rules_of_reading(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Rules(rules) => rules.is_about_reading(),
            Part::Readonly | Part::Allow(_) | Part::Deny(_) | Part::Ignore(_) => false,
        })
    }
}

fn judge_part(part: &Part, op: &FileOp) -> Vec<(String, Finding)> {
    let each = |rule: &str, say: &dyn Fn(&Touched) -> Option<Finding>| -> Vec<(String, Finding)> {
        let found = op.touched().iter().filter_map(say);
        found.map(|finding| (rule.to_owned(), finding)).collect()
    };
    let changed = |touched: &Touched, decision, because: &str| {
        let changes = touched.access.changes();
        changes.then(|| Finding::new(decision, op.named(touched), span(touched), because))
    };
    match part {
        Part::Readonly => each("readonly", &|touched| {
            let because = "it writes, and nothing may change here";
            Some(changed(touched, Deny, because)?.instead("show the change instead of making it"))
        }),
        Part::Allow(_) => each("allow", &|touched| {
            changed(touched, Ask, "no entry of an allow list grants a change of files")
        }),
        Part::Deny(_) => Vec::new(),
        Part::Ignore(hidden) => each(IGNORE, &|touched| {
            let hides = within(op, touched).is_some_and(|inside| match touched.directory {
                Some(directory) => hidden.hides_entry(inside, directory),
                // What stands there by now is neither seen nor changed by either kind of pattern. Of what is
                // read, who looked knew what it is.
                None => {
                    hidden.hides_entry(inside, false) || touched.access.changes() && hidden.hides_entry(inside, true)
                }
            });
            hides.then(|| Finding::new(Deny, op.named(touched), span(touched), "this path is hidden"))
        }),
        Part::Rules(rules) => {
            let found = op.touched().iter().flat_map(|touched| {
                let inside = within(op, touched);
                rules.judge_path(touched.access, inside, op.named(touched), span(touched))
            });
            found.filter(|(_, finding)| finding.decision != Allow).collect()
        }
    }
}

/// The path below the workspace, if it lies there.
fn within<'a>(op: &FileOp, touched: &'a Touched) -> Option<&'a Path> {
    touched.path.strip_prefix(op.workspace()).ok()
}

fn span(touched: &Touched) -> Span {
    Span::new(touched.span.start, touched.span.end)
}

#[cfg(test)]
mod tests;
