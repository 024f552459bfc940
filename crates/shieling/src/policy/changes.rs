//! Rules about what commands change, added and removed in a staged workspace. They are judged by what was changed and
//! not by any text, so that they hold whatever program made the change.
//!
//! A rule with `changes`, `adds` or `deletes` holds those paths back. With `max_files` or `max_bytes` it holds them back
//! only once there is more of them; such a rule without paths is about all. The strictest rule wins. Where a file has a
//! rule that allows changes and is not `default = "allow"`, all that none allows is held back.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use shieling_changes::{Action, Matcher, Rule};

use super::meaning::paths::Hidden;
use super::verdict::Decision;

/// The changes that one rule is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changed {
    /// Changed in any way.
    pub(super) changes: Option<Hidden>,
    /// Not there before.
    pub(super) adds: Option<Hidden>,
    /// Not there any more.
    pub(super) deletes: Option<Hidden>,
    /// More files than this.
    pub(super) max_files: Option<u64>,
    /// More bytes than this.
    pub(super) max_bytes: Option<u64>,
}

impl Changed {
    fn is_about(&self, action: Action, path: &Path, is_directory: bool) -> bool {
        if self.changes.is_none() && self.adds.is_none() && self.deletes.is_none() {
            return true;
        }
        let named = |patterns: &Option<Hidden>| {
            patterns
                .as_ref()
                .is_some_and(|patterns| patterns.hides_entry(path, is_directory))
        };
        named(&self.changes)
            || match action {
                Action::Added => named(&self.adds),
                Action::Deleted => named(&self.deletes),
                Action::Modified | Action::Touched => false,
            }
    }

    /// Whether an example is one of these: `adds PATH`, `changes PATH` or `deletes PATH`.
    pub(super) fn means(&self, example: &str) -> Result<bool, String> {
        let (action, path) = example
            .split_once(' ')
            .and_then(|(word, path)| {
                let action = match word {
                    "adds" => Action::Added,
                    "changes" => Action::Modified,
                    "deletes" => Action::Deleted,
                    _ => return None,
                };
                Some((action, path.trim()))
            })
            .filter(|(_, path)| !path.is_empty() && !path.starts_with('/'))
            .ok_or("write `adds PATH`, `changes PATH` or `deletes PATH`, with a path relative to the workspace")?;
        Ok(self.is_about(action, Path::new(path.trim_end_matches('/')), path.ends_with('/')))
    }
}

/// One rule of a file, as it is compiled from it.
#[derive(Debug)]
pub(super) struct ChangeRule<'a> {
    /// Its name, with its place in the file.
    pub(super) name: String,
    pub(super) changed: &'a Changed,
    pub(super) decision: Decision,
    pub(super) because: String,
    pub(super) instead: Option<&'a str>,
}

impl Matcher for Changed {
    fn matches(&self, action: Action, path: &Path, is_directory: bool) -> bool {
        // What stands in the place of a directory hides, and as a link shows other files as, what is in it.
        self.is_about(action, path, is_directory) || !is_directory && self.is_about(action, &path.join("x"), false)
    }

    fn is_same(&self, other: &dyn Matcher) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// What no rule allows.
#[derive(Debug, PartialEq)]
struct Others {
    allowed: Vec<Changed>,
}

impl Matcher for Others {
    fn matches(&self, action: Action, path: &Path, is_directory: bool) -> bool {
        let mut allowed = self.allowed.iter();
        // A directory is held back with all in it, of which some may be allowed.
        !is_directory && !allowed.any(|changed| changed.is_about(action, path, is_directory))
    }

    fn is_same(&self, other: &dyn Matcher) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// The rules of one file, for a staged workspace.
pub(super) fn compiled(file: &str, default: Decision, rules: &[ChangeRule<'_>]) -> Vec<Rule> {
    let allows = |rule: &&ChangeRule<'_>| rule.decision == Decision::Allow;
    let allowed: Vec<Changed> = rules.iter().filter(allows).map(|rule| rule.changed.clone()).collect();
    let mut all: Vec<Rule> = rules
        .iter()
        .filter(|rule| rule.decision != Decision::Allow)
        .map(|rule| Rule {
            name: rule.name.clone(),
            matcher: Arc::new(rule.changed.clone()),
            max_files: rule.changed.max_files,
            max_bytes: rule.changed.max_bytes,
            asks: rule.decision == Decision::Ask,
            because: rule.because.clone(),
            instead: rule.instead.unwrap_or(INSTEAD).to_owned(),
        })
        .collect();
    if default != Decision::Allow && !allowed.is_empty() {
        all.push(Rule {
            name: format!("{file} (default)"),
            matcher: Arc::new(Others { allowed }),
            max_files: None,
            max_bytes: None,
            asks: default == Decision::Ask,
            because: "no rule allows that it is changed".to_owned(),
            instead: INSTEAD.to_owned(),
        });
    }
    all
}

const INSTEAD: &str = "leave it as it is, or tell the user why it should change";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, RuleFile};

    fn parse(text: &str) -> Result<RuleFile, String> {
        RuleFile::parse("p.toml", text).map_err(|error| error.to_string())
    }

    fn rules(text: &str) -> Vec<Rule> {
        Policy::open().with_rules(parse(text).expect("it parses")).changes()
    }

    fn held(rules: &[Rule], action: Action, path: &str) -> bool {
        rules
            .iter()
            .any(|rule| rule.matcher.matches(action, Path::new(path), false))
    }

    #[test]
    fn a_rule_is_about_what_its_patterns_name_and_how_it_changed() {
        let rules = rules(
            "[[rule]]\ndecision = \"deny\"\nchanges = \".github/**\"\nadds = \"*.exe\"\ndeletes = [\"migrations/**\"]\n\
             match = [\"changes .github/w/a.yml\", \"adds x/a.exe\", \"deletes migrations/1.sql\", \"adds .github/b\"]\n\
             not_match = [\"changes a.exe\", \"adds migrations/2.sql\", \"changes src/a\"]",
        );
        use Action::{Added, Deleted, Modified};
        for (action, path, is_held) in [
            (Modified, ".github/a", true),
            (Deleted, ".github/a", true),
            (Added, "deep/er/a.exe", true),
            (Modified, "a.exe", false),
            (Deleted, "migrations/1", true),
            (Added, "migrations/1", false),
            (Added, "src/.github/a", false),
            (Modified, ".github", true),
            (Modified, "migrations", false),
            (Deleted, "migrations", true),
        ] {
            assert_eq!(held(&rules, action, path), is_held, "{action:?} {path}");
        }
    }

    #[test]
    fn what_no_rule_allows_is_held_back_by_default_and_the_strictest_rule_wins() {
        let rules = rules(
            "default = \"ask\"\n[[rule]]\ndecision = \"allow\"\nchanges = [\"src/**\", \"!src/keys/**\"]\n\
             [[rule]]\ndecision = \"deny\"\nchanges = \"*.rs\"",
        );
        for (path, is_held) in [
            ("src/a", false),
            ("src/a.rs", true),
            ("src/keys/k", true),
            ("a.rs", true),
            ("README", true),
        ] {
            assert_eq!(held(&rules, Action::Modified, path), is_held, "{path}");
        }
        let directory = |path: &str| {
            let mut rules = rules.iter();
            rules.any(|rule| rule.matcher.matches(Action::Added, Path::new(path), true))
        };
        assert!(!directory("src"), "what is allowed lies in it");
        // Nothing is allowed where no rule is about changes, and nothing is held back.
        assert!(
            Policy::open()
                .with_rules(parse("default = \"deny\"\n[[rule]]\ndecision = \"allow\"\ncommand = \"ls\"").unwrap())
                .changes()
                .is_empty()
        );
    }

    #[test]
    fn what_means_nothing_is_an_error_of_its_line() {
        for (rule, said) in [
            ("changes = \"a\"\ncommand = \"ls\"", "make it two rules"),
            ("changes = \"a\"\nconnects = \"a.org\"", "make it two rules"),
            ("max_bytes = \"3 apples\"", "p.toml:3"),
            ("changes = \"./a/**\"", "matches nothing"),
            ("adds = []", "matches nothing"),
            ("changes = \"a\"\nmatch = [\"a\"]", "write `adds PATH`"),
            ("changes = \"a\"\nmatch = [\"adds b\"]", "should match"),
            ("changes = \"a\"\nnot_match = [\"adds a\"]", "should not match"),
        ] {
            let wrong = parse(&format!("[[rule]]\ndecision = \"deny\"\n{rule}")).unwrap_err();
            assert!(wrong.contains(said), "{rule}: {wrong}");
        }
        let allowed = parse("[[rule]]\ndecision = \"allow\"\nmax_files = 3").unwrap_err();
        assert!(allowed.contains("`deny` or `ask`"), "{allowed}");
    }
}
