//! The suite over `local` and `sandbox`, as root also as an ordinary user.

use std::sync::Arc;
use std::time::Duration;

use shieling_testkit::conformance::{Maker, Suite};

use super::support::{Sandboxes, locals};

/// What `memory` does not hold to, with the reason. Each line is to go.
#[cfg(feature = "memory")]
const MEMORY_DIFFERS: &[(&str, &str)] = &[(
    "streams can be swapped",
    "it refuses two streams that change places, with 125",
)];

/// How many cases run at once. Most of their time is spent waiting for processes.
const AT_ONCE: usize = 10;

async fn conforming(maker: Arc<dyn Maker>, differs: &[(&str, &str)]) {
    let suite = match std::env::var("SHIELING_CONFORMANCE") {
        Ok(text) => Suite::new().only(text),
        Err(_) => Suite::new().at_once(AT_ONCE),
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

#[test]
fn and_as_an_ordinary_user_too() {
    shieling_testkit::again_as_user(&["--exact", "conformance::ours::sandbox_conforms"]);
}
