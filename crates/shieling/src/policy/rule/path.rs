//! What the rules say of a path that an operation on files touches.

use std::path::Path;

use shieling_shell::Span;

use super::{Rule, RuleFile};
use crate::policy::meaning::Finding;
use crate::policy::verdict::Decision;
use crate::request::Access;

impl RuleFile {
    /// Whether a rule is about what is read.
    pub(in crate::policy) fn is_about_reading(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.decision != Decision::Allow && rule.reads.is_some())
    }

    /// What they say of touching this path, which is `inside` the workspace if it lies there, and is
    /// called `object` where it is asked for.
    pub(in crate::policy) fn judge_path(
        &self,
        access: Access,
        inside: Option<&Path>,
        object: &str,
        span: Span,
    ) -> Vec<(String, Finding)> {
        let matching = |rule: &&Rule| inside.is_some_and(|inside| rule.is_about(access, inside));
        let mut all: Vec<_> = self
            .rules
            .iter()
            .filter(|rule| rule.decision != Decision::Allow)
            .filter(matching)
            .map(|rule| {
                let mut finding = Finding::new(rule.decision, object, span, rule.because());
                finding.instead = rule.instead.clone();
                (format!("{}:{} ({})", self.name, rule.line, rule.id), finding)
            })
            .collect();
        let allowed = || {
            self.rules
                .iter()
                .filter(matching)
                .any(|rule| rule.decision == Decision::Allow)
        };
        if self.default != Decision::Allow && access.changes() && all.is_empty() && !allowed() {
            let because = "no rule allows that it is changed";
            all.push((
                format!("{} (default)", self.name),
                Finding::new(self.default, object, span, because),
            ));
        }
        all
    }
}

impl Rule {
    fn is_about(&self, access: Access, inside: &Path) -> bool {
        let patterns = if access.changes() { &self.writes } else { &self.reads };
        // Whether it is a directory is not known; below one that matches, all does.
        patterns
            .as_ref()
            .is_some_and(|patterns| patterns.hides_entry(inside, true))
    }
}
