//! Prerequisites of tests beyond those in the README, mostly programs. If one is missing, the test reports it and is
//! skipped; with `CI=true` it fails.
//!
//! Tests must not check prerequisites by themselves: a test that skips silently looks as if it passed.

#![expect(clippy::disallowed_methods, reason = "what is installed is looked for here")]

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;

/// The directories that are searched for programs, as in sandboxes and in the tests' own commands.
const DIRECTORIES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Returns whether missing prerequisites are failures.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Reports that a test, or a part of it, is skipped because of a missing prerequisite.
///
/// # Panics
/// If `CI` is `true`.
#[track_caller]
pub fn skip(missing: impl Display) {
    assert!(!is_ci(), "prerequisite missing: {missing}");
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    // `eprintln!` is captured in tests that pass.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {missing}");
}

/// Returns whether all of these programs are installed. Calls [`skip`] for those that are not.
///
/// # Panics
/// As [`skip`] does.
#[must_use]
#[track_caller]
pub fn has(programs: &[&str]) -> bool {
    let missing: Vec<String> = programs
        .iter()
        .filter(|program| !is_installed(program))
        .map(|program| format!("`{program}` is not installed"))
        .collect();
    if !missing.is_empty() {
        skip(missing.join(", "));
    }
    missing.is_empty()
}

/// Returns whether a program is installed, for optional parts of a test. For required programs use [`has`].
pub fn is_installed(program: &str) -> bool {
    DIRECTORIES
        .iter()
        .any(|directory| Path::new(directory).join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::is_installed;

    #[test]
    fn a_shell_is_installed_and_a_name_without_a_program_is_not() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no-such-program-as-this"));
    }
}
