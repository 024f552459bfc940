//! The suite over `local` and `sandbox`, as root also as an ordinary user.

use std::sync::Arc;
use std::time::Duration;

use shieling_testkit::conformance::{EnvironmentFactory, Suite};

use super::support::{Sandboxes, locals, pipes};

/// How many cases run at once. Most of their time is spent waiting for processes.
const AT_ONCE: usize = 10;

async fn conforming(maker: Arc<dyn EnvironmentFactory>) {
    let suite = match std::env::var("SHIELING_CONFORMANCE") {
        Ok(text) => Suite::new().only(text),
        Err(_) => Suite::new().at_once(AT_ONCE),
    };
    let report = suite.run(maker).await;
    eprintln!("{report}");
    for line in report.lines().iter().filter(|line| line.took > Duration::from_secs(5)) {
        eprintln!("slow      {}: {} ({:?})", line.group, line.name, line.took);
    }
    assert_eq!(report.failed().count(), 0, "{report}");
    assert!(report.passed() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_conforms() {
    conforming(locals()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sandbox_conforms() {
    conforming(Arc::new(Sandboxes)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_of_the_example_conforms() {
    conforming(pipes()).await;
}

#[test]
fn and_as_an_ordinary_user_too() {
    shieling_testkit::again_as_user(&["--exact", "conformance::ours::sandbox_conforms"]);
}
