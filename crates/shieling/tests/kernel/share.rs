//! Which texts are run, by whom, and side by side.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cases::{Case, Expected, corpus};

/// Set in the copy of this test that runs as an ordinary user.
const AS_USER: &str = "SHIELING_KERNEL_AS_USER";
/// A user and a group without a name.
const USER: &str = "61234";

/// The attacks of a file of the corpora.
pub(crate) fn attacks(file: &str) -> Vec<Case> {
    let attack = |case: &Case| case.file == file && case.expected != Expected::Allowed;
    corpus().into_iter().filter(attack).collect()
}

/// Those that are run here: all of them, or one in `every`.
pub(crate) fn share(cases: Vec<Case>, every: usize) -> Vec<Case> {
    if everything() {
        return cases;
    }
    let seed: usize = std::env::var("SHIELING_KERNEL_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let chosen = |(at, case): (usize, Case)| (at + seed).is_multiple_of(every).then_some(case);
    cases.into_iter().enumerate().filter_map(chosen).collect()
}

pub(crate) fn everything() -> bool {
    std::env::var("SHIELING_KERNEL").is_ok_and(|which| which == "all")
}

pub(crate) fn is_user() -> bool {
    std::env::var_os(AS_USER).is_some()
}

/// `one` for root, who runs everything, and `other` for the ordinary user, who comes after.
pub(crate) fn every(one: usize, other: usize) -> usize {
    if is_user() { other } else { one }
}

/// A text as it stands in a list.
pub(crate) fn line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// The texts of a list.
pub(crate) fn listed(list: &str) -> BTreeSet<String> {
    let texts = list.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    texts.map(str::to_owned).collect()
}

/// Works through the cases, two at a time; `start` makes what one worker needs.
pub(crate) fn side_by_side<W, R: Send>(
    cases: &[Case],
    start: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Case) -> R + Sync,
    end: impl Fn(W) + Sync,
) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut worker = start();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(&mut worker, case);
                    results.lock().expect("no worker panicked").push(result);
                }
                end(worker);
            });
        }
    });
    results.into_inner().expect("no worker panicked")
}

/// Runs this very test as an ordinary user.
pub(crate) fn again_as_user(test: &str) {
    if is_user() || !rustix::process::geteuid().is_root() {
        return;
    }
    // Where this program stands, others may not be allowed to look.
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = folder.path().join("kernel");
    std::fs::copy(std::env::current_exe().expect("it runs"), &program).expect("room for a copy");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("our own directory");
    let done = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(&program)
        .args(["--exact", test, "--nocapture"])
        .current_dir(folder.path())
        .env(AS_USER, "1")
        .env("HOME", folder.path())
        .output()
        .expect("setpriv is there");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && String::from_utf8_lossy(&done.stdout).contains("1 passed"),
        "as an ordinary user: {told}\n{}",
        String::from_utf8_lossy(&done.stdout)
    );
    eprintln!("as an ordinary user:\n{told}");
}
