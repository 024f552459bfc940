//! Rules of the caller about changes, beside those of the gate.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::node::{Kind, Node};
use crate::scan::{Action, Change};

/// What [`Held::rule`](crate::Held::rule) says of a change that a rule of the caller holds back.
pub const RULE: &str = "policy";

/// Says which changes a rule is about.
pub trait Matcher: Any + Send + Sync + fmt::Debug {
    /// Whether it is about this change of a path, relative to the workspace. A directory that matches is held back with
    /// all that is below it.
    fn matches(&self, action: Action, path: &Path, is_directory: bool) -> bool;

    /// Whether the other one is about the same changes. Default: no, so that a rule equals its clones alone.
    fn is_same(&self, other: &dyn Matcher) -> bool {
        let _ = other;
        false
    }
}

/// Holds changes back: all that match, or, with a bound, all that match once there is more of it.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name, for messages.
    pub name: String,
    /// Which changes it is about.
    pub matcher: Arc<dyn Matcher>,
    /// They are held back only if they are more files than this; directories are not counted.
    pub max_files: Option<u64>,
    /// They are held back only if what was added and modified has more bytes than this.
    pub max_bytes: Option<u64>,
    /// Whether a person may decide: not held back where one is asked about the whole set.
    pub asks: bool,
    /// Why.
    pub because: String,
    /// What to do instead.
    pub instead: String,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            name,
            matcher,
            max_files,
            max_bytes,
            asks,
            because,
            instead,
        } = self;
        (name, max_files, max_bytes, asks, because, instead)
            == (
                &other.name,
                &other.max_files,
                &other.max_bytes,
                &other.asks,
                &other.because,
                &other.instead,
            )
            && (Arc::ptr_eq(matcher, &other.matcher) || matcher.is_same(&*other.matcher))
    }
}

impl Rule {
    fn is_bounded(&self) -> bool {
        self.max_files.is_some() || self.max_bytes.is_some()
    }

    fn is_about(&self, change: &Change) -> bool {
        let is_directory = [&change.new, &change.old]
            .into_iter()
            .flatten()
            .next()
            .is_some_and(Node::is_directory);
        change.action != Action::Touched && self.matcher.matches(change.action, &change.path, is_directory)
    }

    fn reason(&self, because: String) -> Reason {
        Reason {
            because,
            instead: self.instead.clone(),
        }
    }
}

/// Why a change is held back, and what to do instead.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) because: String,
    pub(crate) instead: String,
}

/// What rules have seen of one set.
#[derive(Debug)]
pub(crate) struct Tally<'r> {
    rules: &'r [Rule],
    /// Files and bytes, by rule.
    seen: Vec<(u64, u64)>,
}

impl<'r> Tally<'r> {
    pub(crate) fn new(rules: &'r [Rule]) -> Self {
        Self {
            rules,
            seen: vec![(0, 0); rules.len()],
        }
    }

    /// Counts a change, and says why it is held back whatever else changes.
    pub(crate) fn add(&mut self, change: &Change) -> Option<Reason> {
        let mut reason = None;
        for (rule, (files, bytes)) in self.rules.iter().zip(&mut self.seen) {
            if !rule.is_about(change) {
                continue;
            }
            if !rule.is_bounded() {
                reason = reason.or_else(|| Some(rule.reason(format!("{}: {}", rule.name, rule.because))));
                continue;
            }
            let node = change.new.as_ref().or(change.old.as_ref());
            *files += u64::from(node.is_some_and(|node| !node.is_directory()));
            let new = change.new.as_ref().filter(|new| new.kind == Kind::File);
            *bytes = bytes.saturating_add(new.map_or(0, |new| new.size));
        }
        reason
    }

    /// Whether a rule's bound is exceeded, so that [`Self::beyond`] has something to say.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded().next().is_some()
    }

    /// Why a change is held back, now that all were counted.
    pub(crate) fn beyond(&self, change: &Change) -> Option<Reason> {
        let (rule, what) = self.exceeded().find(|(rule, _)| rule.is_about(change))?;
        Some(rule.reason(format!("{}: {} ({what})", rule.name, rule.because)))
    }

    fn exceeded(&self) -> impl Iterator<Item = (&'r Rule, String)> + '_ {
        self.rules.iter().zip(&self.seen).filter_map(|(rule, &(files, bytes))| {
            let over = |is: u64, most: Option<u64>, unit: &str| {
                let most = most.filter(|most| is > *most)?;
                Some(format!("it changes {is} {unit}, and `max_{unit}` is {most}"))
            };
            let what = over(files, rule.max_files, "files").or_else(|| over(bytes, rule.max_bytes, "bytes"))?;
            Some((rule, what))
        })
    }
}
