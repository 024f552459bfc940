//! Moves a process and everything that descends from it into groups, while they go on forking.
//!
//! Refuses to stop anything: what is moved has children that are born moved, so each pass has only
//! the children of those to find that were not seen before.

#![expect(
    clippy::disallowed_methods,
    reason = "control groups and processes are told about in files"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::group::Why;

/// How many passes are tried. A process that is always replaced by its child could go on for ever.
const PASSES: usize = 500;

/// Whether this kernel tells a process's children (`CONFIG_PROC_CHILDREN`).
pub(super) fn can_list(proc: &Path) -> bool {
    fs::read(proc.join("thread-self/children")).is_ok()
}

/// Calls `take` for `root` and all its descendants, once each, until two passes in a row saw the same
/// processes alive.
///
/// One pass is not enough: the children of a process that ends in the middle move to an ancestor whose
/// list was read before. Had anything ended between two equal passes, they would not be equal.
pub(super) fn everyone(proc: &Path, root: i32, take: impl Fn(i32) -> Result<(), Why>) -> Result<(), Why> {
    let mut taken = BTreeSet::new();
    let mut before = BTreeMap::new();
    for _ in 0..PASSES {
        let mut seen = BTreeMap::new();
        let mut next = vec![root];
        while let Some(process) = next.pop() {
            // First moved, then read: a child that is not in the list is born in the group.
            if !taken.contains(&process) {
                match take(process) {
                    Err(why) if why.errno == libc::ESRCH && process != root => continue,
                    other => other?,
                }
                taken.insert(process);
            }
            let directory = proc.join(process.to_string());
            let tasks = fs::read_dir(directory.join("task")).into_iter().flatten().flatten();
            for task in tasks {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                next.extend(
                    children
                        .split_whitespace()
                        .filter_map(|child| child.parse::<i32>().ok()),
                );
            }
            seen.insert(process, alive(&directory));
        }
        if seen.get(&root) != Some(&true) {
            return Err(Why::none(format!(
                "process {root} has ended, or `{}` hides it",
                proc.display()
            )));
        }
        if seen == before {
            return Ok(());
        }
        before = seen;
    }
    Err(Why::none(format!(
        "processes of {root} replaced each other faster than they could be moved"
    )))
}

/// Whether a process runs: not gone, and no zombie.
fn alive(directory: &Path) -> bool {
    let stat = fs::read(directory.join("stat")).unwrap_or_default();
    // The name before it may hold anything, `)` too.
    let state = stat.rsplit(|&byte| byte == b')').next().and_then(|rest| rest.get(1));
    state.is_some_and(|state| !b"ZX".contains(state))
}
