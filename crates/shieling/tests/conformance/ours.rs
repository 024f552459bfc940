//! The suite over `local` and `sandbox`, as root also as an ordinary user.

use std::sync::Arc;
use std::time::Duration;

use shieling_testkit::conformance::{Maker, Suite};

use super::support::{Sandboxes, locals};

/// Set in the copy of this test that runs as an ordinary user.
const AS_USER: &str = "SHIELING_CONFORMANCE_AS_USER";
/// A user and a group without a name.
const USER: &str = "47111";

/// What `memory` does not hold to, with the reason. Each line is to go.
#[cfg(feature = "memory")]
const MEMORY_DIFFERS: &[(&str, &str)] = &[
    (
        "streams can be swapped",
        "it refuses two streams that change places, with 125",
    ),
    (
        "names of files can be any text",
        "its files refuse control characters in names",
    ),
    (
        "of more output than is kept, the first and the last stay, and the rest is counted",
        "its seq stops at 100,000 lines",
    ),
    (
        "the mask of new files stays",
        "it refuses another mask than 0022, with 125",
    ),
];

async fn conforming(maker: Arc<dyn Maker>, differs: &[(&str, &str)]) {
    let suite = match std::env::var("SHIELING_CONFORMANCE") {
        Ok(text) => Suite::new().only(text),
        Err(_) => Suite::new(),
    };
    let report = suite.run(maker).await;
    eprintln!("{report}");
    for line in report.lines().iter().filter(|line| line.took > Duration::from_secs(5)) {
        eprintln!("slow      {}: {} ({:?})", line.group, line.name, line.took);
    }
    let failed: Vec<_> = report.failed().map(|(line, _)| line.name).collect();
    let new = failed
        .iter()
        .filter(|name| differs.iter().all(|(known, _)| known != *name));
    assert_eq!(new.count(), 0, "{report}");
    let whole = std::env::var_os("SHIELING_CONFORMANCE").is_none();
    let holds = differs.iter().find(|(known, _)| !failed.contains(known));
    assert!(!whole || holds.is_none(), "{holds:?} holds now: its line is to go");
    assert!(report.passed() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_conforms() {
    conforming(locals(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sandbox_conforms() {
    conforming(Arc::new(Sandboxes), &[]).await;
}

#[cfg(feature = "memory")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_conforms() {
    conforming(Arc::new(super::support::Memories), MEMORY_DIFFERS).await;
}

#[tokio::test]
async fn and_as_an_ordinary_user_too() {
    if std::env::var_os(AS_USER).is_some() || !rustix::process::geteuid().is_root() {
        return;
    }
    // Where this program stands, others may not be allowed to look.
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = folder.path().join("conformance");
    std::fs::copy(std::env::current_exe().expect("it runs"), &program).expect("room for a copy");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).expect("our own directory");
    let done = std::process::Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(&program)
        .args(["--exact", "conformance::ours::sandbox_conforms", "--nocapture"])
        .current_dir(folder.path())
        .env(AS_USER, "1")
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .output()
        .expect("setpriv is there");
    let (told, said) = (
        String::from_utf8_lossy(&done.stderr),
        String::from_utf8_lossy(&done.stdout),
    );
    assert!(
        done.status.success() && said.contains("1 passed"),
        "as an ordinary user: {told}\n{said}"
    );
    eprintln!("as an ordinary user: {told}");
}
