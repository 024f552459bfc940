//! Tests in a network of their own: the test's binary starts itself once more within new namespaces.

use std::process::Command;
use std::time::Duration;

use shieling_testkit::prerequisite;

/// Set in the inner process.
const INSIDE: &str = "SHIELING_GATEWAY_TEST_INSIDE";

/// What makes the network of a test. `$0` is the test's binary, `$1` the test's name.
const SETUP: &str = "
set -e
ip link set lo up
ip addr add 198.18.0.1/15 dev lo
ip addr add 93.184.0.1/16 dev lo
ip addr add 10.9.0.1/16 dev lo
mount -t tmpfs none /mnt
echo nameserver 198.18.0.1 > /mnt/resolv.conf
mount --bind /mnt/resolv.conf /etc/resolv.conf
exec \"$0\" --exact \"$1\" --nocapture --include-ignored --test-threads 1
";

/// Declares tests that run in a network of their own.
macro_rules! space_tests {
    ($($(#[$attribute:meta])* async fn $name:ident() $body:block)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                $crate::gateway::space::enter(concat!(module_path!(), "::", stringify!($name)), async || $body);
            }
        )*
    };
}

/// Runs a test in a network of its own.
pub(crate) fn enter<F: Future<Output = ()>>(path: &str, test: impl FnOnce() -> F) {
    let (_, name) = path.split_once("::").unwrap();
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let finished = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), test()).await });
        assert!(finished.is_ok(), "the test did not end");
        return;
    }
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--net", "--mount"])
            .args(arguments)
            .env(INSIDE, "1");
        command.output()
    };
    // Some machines let users make no namespaces, or have no iproute2.
    let possible = unshare(&["ip", "link", "set", "lo", "up"]).is_ok_and(|output| output.status.success());
    if !possible {
        prerequisite::skip("`unshare`, `ip`, and namespaces of users");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let output = unshare(&["sh", "-c", SETUP, program.to_str().unwrap(), name]).unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    if text.contains("figure:") || text.contains("skipped:") {
        eprintln!("{text}");
    }
}
