//! All of it again, for whom root runs the tests: as somebody with no power at all.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A user and a group without a name.
const USER: &str = "61235";

/// Set in the copy of this program that runs as that user.
const AGAIN: &str = "SHIELING_FILES_AS_USER";

/// Whether this is that copy.
pub(crate) fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

#[test]
fn and_as_an_ordinary_user_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Where this program stands, others may not be allowed to look.
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = folder.path().join("files_host");
    std::fs::copy(std::env::current_exe().expect("it runs"), &program).expect("room for a copy");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).expect("our own directory");
    let done = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(&program)
        .args(["--skip", "user::", "--nocapture"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env(AGAIN, "1")
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
