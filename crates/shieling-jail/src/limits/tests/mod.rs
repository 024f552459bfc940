//! Tests of the limits: against trees of plain files, against this host's kernel as root, and as an
//! ordinary user in namespaces of its own.

#![expect(clippy::disallowed_methods, reason = "tests make files and start processes")]

mod fake;
mod group;
mod user;

use shieling_testkit::prerequisite;

/// Whether there is the Python that these tests' processes are written in.
fn python() -> bool {
    prerequisite::has(&["python3"])
}

/// As pid 1 gets them.
fn kills(enforcement: &super::Enforcement) -> super::OomCounter {
    let files: Vec<_> = enforcement
        .counters()
        .iter()
        .map(|counter| counter.try_clone_to_owned().unwrap())
        .collect();
    enforcement.held().kills(&files).unwrap()
}
