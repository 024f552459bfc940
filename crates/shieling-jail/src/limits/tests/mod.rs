//! Tests of the limits: against trees of plain files, against this host's kernel as root, and as an
//! ordinary user in namespaces of its own.

#![expect(clippy::disallowed_methods, reason = "tests make files and start processes")]

mod fake;
mod group;
mod user;

/// Says that a test cannot run here, and why; which is a failure where everything is to be run.
fn skipped(why: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "prerequisite missing: {why}"
    );
    eprintln!("skipped: {why}");
}

/// As pid 1 gets them.
fn kills(enforcement: &super::Enforcement) -> super::Kills {
    let counter = enforcement
        .counter()
        .map(|counter| counter.try_clone_to_owned().unwrap());
    enforcement.held().kills(counter).unwrap()
}
