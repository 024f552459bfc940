//! What some tests need beyond what the README asks for: programs above all. Where
//! something is missing, the test says what, and is skipped; where `CI` is `true`, that is a failure.
//!
//! No test looks for such things by itself: a test that does not say what it misses looks as if it passed.

#![expect(clippy::disallowed_methods, reason = "what is installed is looked for here")]

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;

/// Where programs are looked for, as sandboxes and the tests' own commands do.
const DIRECTORIES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Whether nothing may be missing.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Says that a test, or a part of it, does not run because this is missing.
///
/// # Panics
/// Where `CI` is `true`.
#[track_caller]
pub fn skip(missing: impl Display) {
    assert!(!is_ci(), "prerequisite missing: {missing}");
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    // Not `eprintln!`, whose text the harness keeps of a test that passes.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {missing}");
}

/// Whether all of these programs are installed. If not, [`skip`] has named the ones that are not.
///
/// # Panics
/// As [`skip`].
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

/// Whether there is such a program. For what a test does in addition where it is there; what it cannot do
/// without, it asks [`has`] for.
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
