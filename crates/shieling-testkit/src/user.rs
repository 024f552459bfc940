//! Tests of this program once more in another process: as an ordinary user, or one of them alone.
#![expect(clippy::disallowed_methods, reason = "a test program is copied and run")]
#![expect(clippy::print_stderr, reason = "what the copy told is shown")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

/// A user and a group without a name.
const USER: &str = "47111";
/// Set in the copy of a test program that runs as that user.
const AGAIN: &str = "SHIELING_TEST_AS_USER";

/// Set in the process that runs one test alone.
const ALONE: &str = "SHIELING_TEST_ALONE";

/// Runs one test of this program in a process of its own, and returns whether this is that process.
///
/// For tests that count what the whole process holds, its descriptors or children, which other tests of
/// the same program would change. `test` is the name that `--exact` takes.
///
/// # Panics
/// If the test fails there, or there is none of that name.
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

/// Whether this is a copy that [`again_as_user`] runs.
pub fn is_user() -> bool {
    std::env::var_os(AGAIN).is_some()
}

/// Runs this very test program again as a user without a name and without any power, with these
/// arguments, which select its tests. Does nothing in that copy, nor for whom is no root: then the
/// tests run as an ordinary user anyway.
///
/// # Panics
/// If one of them fails, or if none of them runs.
pub fn again_as_user(arguments: &[&str]) {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_user() || !is_root {
        return;
    }
    // Where this program stands, others may not be allowed to look.
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = std::env::current_exe().expect("it runs");
    let copy = folder.path().join("tests");
    // By another process: a program is not executed while anybody has it open for writing, and what other
    // tests of this process start meanwhile would hold our descriptor for a moment.
    let copied = Command::new("cp")
        .arg(&program)
        .arg(&copy)
        .status()
        .expect("cp is there");
    assert!(copied.success(), "there is no room for a copy");
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
