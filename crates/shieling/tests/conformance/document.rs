//! `CONFORMANCE.md` names cases that there are.

use std::collections::BTreeSet;

use shieling_testkit::conformance::Suite;

/// How many cases the other suite has.
const THEIRS: usize = 40;

/// And how many weaknesses of file tools are mapped.
const OBSERVED: usize = 20;

#[test]
fn each_case_of_the_other_suite_is_covered_by_cases_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shieling-testkit/CONFORMANCE.md");
    let document = std::fs::read_to_string(path).expect("the document is there");
    let names: BTreeSet<_> = Suite::names().into_iter().map(|(_, name)| name).collect();
    let mut theirs = BTreeSet::new();
    let mut observed = 0;
    let header = |line: &str| line.ends_with("| Ours |") || line.starts_with("|---");
    for line in document.lines().filter(|line| line.starts_with("| ") && !header(line)) {
        let [their, ours] = line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("two columns: {line}");
        };
        if their.starts_with("`test_") {
            assert!(theirs.insert(their), "{their} stands there twice");
        } else {
            observed += 1;
        }
        for name in ours.split("; ") {
            assert!(names.contains(name), "there is no case `{name}`, for {their}");
        }
    }
    assert_eq!((theirs.len(), observed), (THEIRS, OBSERVED));
    assert!(names.len() > 300, "the document says so");
}
