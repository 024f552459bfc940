//! One call of a program on the tree: its arguments, its lookups, and its messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bashkit::ExecutionBudget;
use shieling::environment::Kind;

use crate::tree::{Follow, Id, LockedTree, NodeInfo, TreeError};

/// The largest number of file lookups in one call: links can make a small tree endless.
pub(super) const MOST_LOOKS: u32 = 1_000_000;

/// The number of lookups between two checks for an interruption.
pub(super) const LOOKS_APART: u32 = 32;

/// A call of one of the programs.
pub(super) struct Invocation<'a> {
    pub(super) letters: String,
    pub(super) value: Option<String>,
    pub(super) operands: Vec<String>,
    pub(super) cwd: &'a Path,
    pub(super) inside: LockedTree<'a>,
    /// Sources of `cp` that are not files of the tree: devices, and pipes of the shell.
    pub(super) foreign: BTreeMap<String, Vec<u8>>,
    /// The largest file that it may write.
    pub(super) largest: Option<u64>,
    /// The number of remaining lookups.
    pub(super) looks: u32,
    pub(super) budget: Option<ExecutionBudget>,
    pub(super) out: String,
    /// The error messages, one per line.
    pub(super) failures: Vec<String>,
}

impl Invocation<'_> {
    pub(super) fn has(&self, letters: &str) -> bool {
        self.letters.contains(|letter| letters.contains(letter))
    }

    /// Returns the last of these options that was given.
    pub(super) fn last(&self, letters: &str) -> Option<char> {
        self.letters.chars().rev().find(|letter| letters.contains(*letter))
    }

    /// Returns the path of an operand.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.cwd.join(name)
    }

    /// Returns the node of an operand. One with a trailing slash must be a directory.
    pub(super) fn look(&mut self, name: &str, links: Follow) -> Result<(Id, NodeInfo), TreeError> {
        if name.is_empty() {
            return Err(TreeError::NotFound);
        }
        let unwanted = |budget: &ExecutionBudget| budget.check().is_err();
        if self.looks.is_multiple_of(LOOKS_APART) && self.budget.as_ref().is_some_and(unwanted) {
            self.looks = 0;
        }
        self.looks = self.looks.checked_sub(1).ok_or(TreeError::Loop)?;
        let directory = name.ends_with('/');
        let links = if directory { Follow::All } else { links };
        let id = self.inside.find(&self.cwd.join(name), links)?;
        let about = self.inside.about(id)?;
        if directory && about.kind != Kind::Directory {
            return Err(TreeError::NotADirectory);
        }
        Ok((id, about))
    }

    /// Returns whether an operand is a directory.
    pub(super) fn is_directory(&mut self, name: &str) -> bool {
        self.look(name, Follow::All)
            .is_ok_and(|(_, about)| about.kind == Kind::Directory)
    }

    /// Processes each operand, and continues after errors.
    pub(super) fn each(&mut self, mut act: impl FnMut(&mut Self, &str) -> Result<(), String>) -> Result<(), String> {
        if self.operands.is_empty() {
            return Err("missing operand".to_owned());
        }
        for name in std::mem::take(&mut self.operands) {
            if let Err(why) = act(self, &name) {
                self.failures.push(why);
            }
        }
        Ok(())
    }

    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.has("v") {
            self.out.push_str(&line());
            self.out.push('\n');
        }
    }

    /// Returns sources and destinations, from `-t`, `-T` and the operands.
    pub(super) fn places(&mut self) -> Result<Vec<(String, String)>, String> {
        let mut operands = std::mem::take(&mut self.operands);
        let first = operands.first().cloned().ok_or("missing file operand")?;
        let plain = self.has("T");
        if plain && operands.len() > 2 {
            return Err(format!("extra operand '{}'", operands[2]));
        }
        let (into, named) = match self.value.take() {
            Some(into) => (into, true),
            None => (operands.pop().unwrap_or_default(), false),
        };
        if operands.is_empty() {
            return Err(format!("missing destination file operand after '{first}'"));
        }
        let directory = self.is_directory(&into);
        if !directory && (named || operands.len() > 1) {
            let why = self.look(&into, Follow::All).err().unwrap_or(TreeError::NotADirectory);
            return Err(format!("target '{into}': {}", said(why)));
        }
        let pair = |from: String| {
            let last = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let to = if directory && !plain {
                within(&into, last)
            } else {
                into.clone()
            };
            (from, to)
        };
        Ok(operands.into_iter().map(pair).collect())
    }
}

/// Returns the system's message for an error.
pub(super) fn said(fault: TreeError) -> String {
    fault.to_io().to_string()
}

/// Formats the path of an entry in a directory.
pub(super) fn within(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.strip_suffix('/').unwrap_or(directory))
}

/// Returns the names in a directory.
pub(super) fn names(call: &mut Invocation<'_>, name: &str, id: Id) -> Result<Vec<(Arc<str>, Id)>, String> {
    let path = call.path(name);
    let listed = call.inside.walk(&path, Follow::All);
    let listed = listed.and_then(|walked| call.inside.list(id, &walked.path));
    listed.map_err(|fault| format!("cannot access '{name}': {}", said(fault)))
}
