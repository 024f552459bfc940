//! Cycles between the files of one crate: files that cannot be read, tested or moved one without the other.
//!
//! There are none, but for those in [`KNOWN`], which are still to be broken. That list can only shrink: a file that
//! joins a known cycle is a finding, and so is an entry whose files no longer form one.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::modules::Arrow;

/// The cycles that are still to be broken, each as the files of it, sorted.
const KNOWN: &[&[&str]] = &[
    &[
        "crates/shieling-jail/src/view/cover.rs",
        "crates/shieling-jail/src/view/layer.rs",
        "crates/shieling-jail/src/view/mod.rs",
    ],
    &[
        "crates/shieling-py/src/answer.rs",
        "crates/shieling-py/src/approver.rs",
        "crates/shieling-py/src/call.rs",
        "crates/shieling-py/src/process.rs",
    ],
    &[
        "crates/shieling-remote/src/near/file.rs",
        "crates/shieling-remote/src/near/job.rs",
        "crates/shieling-remote/src/near/mod.rs",
        "crates/shieling-remote/src/near/shell.rs",
    ],
    &[
        "crates/shieling-shell/src/carried.rs",
        "crates/shieling-shell/src/program/apply.rs",
        "crates/shieling-shell/src/program/awk.rs",
        "crates/shieling-shell/src/program/code.rs",
        "crates/shieling-shell/src/program/find_program.rs",
        "crates/shieling-shell/src/program/sed.rs",
        "crates/shieling-shell/src/program/special.rs",
        "crates/shieling-shell/src/program/walks.rs",
        "crates/shieling-shell/src/reader/launch.rs",
        "crates/shieling-shell/src/reader/mod.rs",
        "crates/shieling-shell/src/reader/shells.rs",
        "crates/shieling-shell/src/reading.rs",
        "crates/shieling-shell/src/variables.rs",
    ],
];

/// Reports every cycle of one crate that is not known, and every known one that is not there as it is listed.
/// `root` is the folder of the crate's sources.
pub(super) fn check(root: &str, arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    let known: Vec<&[&str]> = KNOWN
        .iter()
        .copied()
        .filter(|files| files.iter().all(|file| file.starts_with(root)))
        .collect();
    check_against(&known, arrows, findings);
}

fn check_against(known: &[&[&str]], arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    let cycles = cycles(arrows);
    for cycle in &cycles {
        if !known.contains(&&cycle[..]) {
            let inside = |file: &str| cycle.contains(&file);
            let arrows: Vec<String> = arrows
                .iter()
                .filter(|arrow| inside(&arrow.from) && inside(&arrow.to))
                .map(|arrow| format!("\n      {} uses `{}` of {}", arrow.from, arrow.name, arrow.to))
                .collect();
            findings.push(Finding {
                path: cycle[0].to_owned(),
                line: 1,
                what: format!("{} files use each other in a cycle", cycle.len()),
                instead: format!(
                    "move what they share into a file below them, or pass it in{}",
                    arrows.concat()
                ),
            });
        }
    }
    for files in known.iter().filter(|files| !cycles.iter().any(|cycle| cycle == *files)) {
        findings.push(Finding {
            path: files[0].to_owned(),
            line: 1,
            what: "this cycle is no longer as it is listed".to_owned(),
            instead: "shorten its entry in xtask/src/tidy/cycles.rs, or remove it".to_owned(),
        });
    }
}

/// The groups of two or more files that reach each other, each sorted.
fn cycles(arrows: &BTreeSet<Arrow>) -> Vec<Vec<&str>> {
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows {
        uses.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|file| (*file, reach(file, &uses))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut cycles: Vec<Vec<&str>> = Vec::new();
    for file in uses.keys().filter(|file| reaches(file, file)) {
        if !cycles.iter().any(|cycle| cycle.contains(file)) {
            let cycle = uses.keys().filter(|other| reaches(file, other) && reaches(other, file));
            cycles.push(cycle.copied().collect());
        }
    }
    cycles
}

/// All files that `file` uses, directly or through others.
fn reach<'a>(file: &str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![file];
    while let Some(next) = waiting.pop() {
        for used in uses.get(next).into_iter().flatten() {
            if reached.insert(*used) {
                waiting.push(used);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(pairs: &[(&str, &str)]) -> BTreeSet<Arrow> {
        let arrow = |(from, to): &(&str, &str)| Arrow {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            name: "x".to_owned(),
            through: Vec::new(),
        };
        pairs.iter().map(arrow).collect()
    }

    fn findings(known: &[&[&str]], pairs: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Vec::new();
        check_against(known, &arrows(pairs), &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_cycle_of_any_length_is_found_once() {
        let none = Vec::<String>::new();
        assert_eq!(findings(&[], &[("a", "b"), ("b", "c"), ("a", "c")]), none);
        assert_eq!(
            findings(&[], &[("a", "b"), ("b", "a")]),
            ["2 files use each other in a cycle"]
        );
        let ring = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")];
        assert_eq!(findings(&[], &ring), ["3 files use each other in a cycle"]);
    }

    #[test]
    fn a_known_cycle_may_stand_but_neither_grow_nor_stay_listed_once_it_is_broken() {
        let known: &[&[&str]] = &[&["a", "b"]];
        let pair = [("a", "b"), ("b", "a")];
        assert_eq!(findings(known, &pair), Vec::<String>::new());
        let grown = [("a", "b"), ("b", "c"), ("c", "a")];
        assert_eq!(findings(known, &grown).len(), 2);
        assert_eq!(
            findings(known, &[("a", "b")]),
            ["this cycle is no longer as it is listed"]
        );
    }
}
