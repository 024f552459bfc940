//! Cycles between the files of one crate: files that cannot be read, tested or moved one without the other.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::modules::Arrow;

/// Reports every cycle.
pub(super) fn check(arrows: &BTreeSet<Arrow>, findings: &mut Vec<Finding>) {
    for cycle in cycles(arrows) {
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

    fn findings(pairs: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Vec::new();
        check(&arrows(pairs), &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_cycle_of_any_length_is_found_once() {
        let none = Vec::<String>::new();
        assert_eq!(findings(&[("a", "b"), ("b", "c"), ("a", "c")]), none);
        assert_eq!(
            findings(&[("a", "b"), ("b", "a")]),
            ["2 files use each other in a cycle"]
        );
        let ring = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")];
        assert_eq!(findings(&ring), ["3 files use each other in a cycle"]);
    }
}
