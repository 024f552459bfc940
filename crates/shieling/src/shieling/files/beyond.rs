//! What an environment itself, and whole directories, make of a change of files: what the policy cannot
//! see from the paths that are touched.

use std::path::{Path, PathBuf};

use crate::environment::{Environment, Kind, Links, Node};
use crate::policy::{Decision, Reason, Span};
use crate::request::{Access, FileOp, Operation, Touched};

use super::sight::Sight;

/// How many entries of directories that are removed or moved are looked at.
const ENTRIES: usize = 20_000;

/// How deep they are looked into.
const DEEPEST: usize = 200;

/// How many reasons there are at most.
const REASONS: usize = 64;

/// Where nothing keeps them from it, changes of what the user's own tools run code from are asked about.
pub(super) fn exposed(op: &FileOp, environment: &dyn Environment) -> Vec<Reason> {
    let changed = op.touched().iter().filter(|touched| touched.access.changes());
    changed
        .filter(|touched| environment.exposes(&touched.path, op.workspace()))
        .map(|touched| {
            let name = environment.name();
            let because = format!("tools of the user run code from there, and `{name}` does not protect it");
            asking(op, touched, format!("environment {name}"), because)
        })
        .collect()
}

/// What the policy says of all that goes with a directory that is removed or moved, wherever it goes.
pub(super) fn inside(op: &FileOp, sight: &Sight) -> Vec<Reason> {
    let removed = || op.touched().iter().filter(|touched| touched.access == Access::Remove);
    if let Some(removed) = removed().find(|removed| sight.holds_own(&removed.path)) {
        let because = "Shieling's own files are in it".to_owned();
        let reason = asking(op, removed, "shieling".to_owned(), because);
        return vec![Reason {
            decision: Decision::Deny,
            ..reason
        }];
    }
    if !sight.policy.is_about_paths() {
        return Vec::new();
    }
    let targets = op.touched().iter().filter(|touched| touched.access == Access::Write);
    let mut look = Look {
        op,
        sight,
        to: match op.operation() {
            Operation::MoveFile => targets.map(|touched| touched.path.clone()).next(),
            Operation::ReadFile
            | Operation::WriteFile
            | Operation::EditFile
            | Operation::ApplyPatch
            | Operation::ListFiles
            | Operation::Glob
            | Operation::Grep
            | Operation::Stat
            | Operation::DeleteFile => None,
        },
        left: ENTRIES,
        reasons: Vec::new(),
    };
    for removed in removed() {
        let Ok(node) = sight.files.node(&removed.path, Links::Keep) else {
            continue;
        };
        if !look.walk(node.as_ref(), removed, 0) {
            let because = "there is more in it than can be looked at, and the policy may be about some of that";
            look.reasons
                .push(asking(op, removed, "files".to_owned(), because.to_owned()));
        }
    }
    look.reasons
}

struct Look<'a> {
    op: &'a FileOp,
    sight: &'a Sight,
    to: Option<PathBuf>,
    left: usize,
    reasons: Vec<Reason>,
}

impl Look<'_> {
    /// Judges all that is in a directory. Says whether it could be looked at.
    fn walk(&mut self, node: &dyn Node, removed: &Touched, depth: usize) -> bool {
        if node.meta().is_ok_and(|meta| meta.kind != Kind::Directory) {
            return true;
        }
        let Ok(entries) = node.entries() else { return false };
        if depth == DEEPEST || entries.len() > self.left {
            return false;
        }
        self.left -= entries.len();
        let mut complete = true;
        for entry in entries {
            let path = node.path().join(&entry.name);
            self.judge(&path, removed, entry.kind == Kind::Directory);
            if self.reasons.len() >= REASONS {
                return true;
            }
            if entry.kind == Kind::Directory
                && let Ok(child) = node.child(&entry.name)
            {
                complete &= self.walk(child.as_ref(), removed, depth + 1);
            }
        }
        complete
    }

    fn judge(&mut self, path: &Path, removed: &Touched, is_directory: bool) {
        if self.sight.is_ignored(path, is_directory) {
            // Which one is not told. That there is one is: whoever asked could not else know what to do.
            let because = "there are hidden files in it, which would go with it";
            let reason = asking(self.op, removed, "ignore".to_owned(), because.to_owned());
            return self.add(reason);
        }
        let mut paths = vec![(Access::Remove, path.to_owned())];
        if let (Some(to), Ok(rest)) = (&self.to, path.strip_prefix(&removed.path)) {
            paths.push((Access::Write, to.join(rest)));
        }
        let part = FileOp::new(self.op.operation(), self.op.workspace(), &[], paths);
        for mut reason in self.sight.policy.judge_file(&part).reasons {
            reason.span = Some(Span::new(removed.span.start, removed.span.end));
            self.add(reason);
        }
    }

    fn add(&mut self, reason: Reason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

fn asking(op: &FileOp, touched: &Touched, rule: String, because: String) -> Reason {
    Reason {
        decision: Decision::Ask,
        rule,
        object: op.named(touched).to_owned(),
        span: Some(Span::new(touched.span.start, touched.span.end)),
        because,
        instead: None,
    }
}
