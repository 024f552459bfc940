//! The cases, by group.

mod execution;
mod exit_codes;
mod streams;
mod encodings;
mod data;
mod input;
mod talking;
mod deadlines;
mod cancellation;
mod trees;
mod sessions;
mod jobs;
mod reading;
mod writing;
mod editing;
mod patching;
mod places;
mod searching;
mod confinement;
mod hidden;
mod readonly;
mod limits;
mod capabilities;
mod concurrency;
mod closed;
mod determinism;

use super::case::Case;

type Group = (&'static str, fn() -> Vec<Case>);

const GROUPS: &[Group] = &[
    ("execution", execution::cases),
    ("exit codes", exit_codes::cases),
    ("streams", streams::cases),
    ("encodings", encodings::cases),
    ("data", data::cases),
    ("input", input::cases),
    ("processes that are talked to", talking::cases),
    ("deadlines", deadlines::cases),
    ("cancellation", cancellation::cases),
    ("trees", trees::cases),
    ("sessions", sessions::cases),
    ("jobs", jobs::cases),
    ("reading", reading::cases),
    ("writing", writing::cases),
    ("editing", editing::cases),
    ("patching", patching::cases),
    ("places", places::cases),
    ("searching", searching::cases),
    ("confinement", confinement::cases),
    ("hidden", hidden::cases),
    ("readonly", readonly::cases),
    ("limits", limits::cases),
    ("capabilities", capabilities::cases),
    ("concurrency", concurrency::cases),
    ("closed", closed::cases),
    ("determinism", determinism::cases),
];

/// Returns all cases with their groups, in order.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Case)> {
    GROUPS
        .iter()
        .flat_map(|(group, cases)| cases().into_iter().map(move |case| (*group, case)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_at_least_180_cases_and_each_is_a_sentence_of_its_own() {
        let names: Vec<_> = all().map(|(_, case)| case.name).collect();
        let different: BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert!(names.len() >= 180, "{} cases", names.len());
        for name in names {
            assert!(name.contains(' ') && !name.ends_with('.'), "{name}");
        }
    }
}
