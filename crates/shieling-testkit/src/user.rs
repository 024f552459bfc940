//! Runs the tests of this program again in another process: as an ordinary user, or a single one.
#![expect(clippy::disallowed_methods, reason = "a test program is copied and run")]
#![expect(clippy::print_stderr, reason = "what the copy told is shown")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user id and a group id without names.
const USER: &str = "47111";
/// Set in the copy of the test program that runs as that user.
const AGAIN: &str = "SHIELING_TEST_AS_USER";

/// Set in the process that runs a single test.
const ALONE: &str = "SHIELING_TEST_ALONE";

/// Runs one test of this program in a process of its own. Returns whether this is that process.
///
/// For tests that count the resources of the whole process, such as descriptors or children, which other tests of the
/// program would change. `test` is the name that `--exact` accepts.
///
/// # Panics
/// If the test fails there, or no test has this name.
pub fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let done = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("a test program can be started again");
    let said = String::from_utf8_lossy(&done.stdout);
    let passed = done.status.success() && said.contains("test result: ok. 1 passed");
    assert!(passed, "alone: {}\n{said}", String::from_utf8_lossy(&done.stderr));
    false
}

/// Returns whether this process was started by [`again_as_user`].
pub fn is_user() -> bool {
    std::env::var_os(AGAIN).is_some()
}

/// Runs this test program again as an unprivileged user without a name, with these arguments, which select tests.
/// Does nothing in that process, or if this process is not run by root, in which case the tests run as an ordinary
/// user anyway.
///
/// # Panics
/// If a test fails, or none runs.
pub fn again_as_user(arguments: &[&str]) {
    again_as_user_with(arguments, &[]);
}

/// Does what [`again_as_user`] does, with copies of programs that only this user may be able to read. Each path is in the
/// variable beside it.
///
/// # Panics
/// As [`again_as_user`] does.
pub fn again_as_user_with(arguments: &[&str], programs: &[(&str, PathBuf)]) {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_user() || !is_root {
        return;
    }
    // The directory of this program may not be accessible to other users.
    let folder = tempfile::tempdir().expect("a temporary directory");
    // Copied by another process: a program cannot be executed while it is open for writing, and processes that other
    // tests start would briefly inherit our descriptor.
    let copied = |program: &Path, name: &str| {
        let copy = folder.path().join(name);
        let copied = Command::new("cp").arg(program).arg(&copy).status();
        assert!(copied.expect("cp is there").success(), "there is no room for a copy");
        copy
    };
    let copy = copied(&std::env::current_exe().expect("it runs"), "tests");
    let programs = programs
        .iter()
        .map(|(variable, program)| (*variable, copied(program, variable)));
    let variables: Vec<(&str, PathBuf)> = programs.collect();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("our own directory");
    let done = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(&copy)
        .args(arguments)
        .arg("--nocapture")
        .current_dir(folder.path())
        .env(AGAIN, "1")
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .envs(variables)
        .output()
        .expect("setpriv is there");
    let (told, said) = (
        String::from_utf8_lossy(&done.stderr),
        String::from_utf8_lossy(&done.stdout),
    );
    let passed = said.contains("test result: ok") && !said.contains(" 0 passed");
    assert!(done.status.success() && passed, "as an ordinary user: {told}\n{said}");
    eprintln!("as an ordinary user:\n{told}");
}
