//! Hosts that lack something, as a filter of system calls makes them look: a sandbox is refused there
//! with the layer that is missing, nothing runs, and `doctor` says the same.

use serde_json::Value;
use shieling_testkit::prerequisite;

use crate::support::{Ran, Shieling};

/// The hosts of `degraded.py`; the layer that is missing on each, what `exec` says of it, and whether
/// the lesser tier works there.
const HOSTS: [(&str, &[&str], &str, bool); 6] = [
    ("no-landlock", &["landlock"], "Landlock is missing", false),
    ("no-user-namespaces", &["user"], "namespaces cannot be made", true),
    (
        "no-network-namespaces",
        &["network"],
        "its network cannot be set up",
        true,
    ),
    ("no-seccomp", &["seccomp"], "", false),
    ("no-mount-calls", &["mount"], "its view of files cannot be built", true),
    ("docker", &["user"], "namespaces cannot be made", true),
];

fn on(host: &str, shieling: &Shieling) -> Ran {
    shieling.run_through("degraded.py", &[host])
}

fn exec(options: &[&str]) -> Shieling {
    Shieling::in_workspace()
        .without_state()
        .args(["exec"])
        .args(options.iter().copied())
        .args(["--", "touch canary; echo ran"])
}

fn canary(shieling: &Shieling) -> bool {
    shieling.workspace().join("canary").exists()
}

fn doctor(host: &str) -> (Option<i32>, Value) {
    let ran = on(
        host,
        &Shieling::in_workspace().without_state().args(["doctor", "--json"]),
    );
    let told = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"));
    (ran.exit, told)
}

fn state<'a>(report: &'a Value, layer: &str) -> &'a str {
    let layers = report["layers"].as_array().expect("a list");
    let found = layers.iter().find(|found| found["layer"] == layer);
    found
        .and_then(|found| found["state"].as_str())
        .expect("a layer with its state")
}

#[test]
fn a_host_without_a_layer_starts_nothing_and_names_it() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (host, _, says, landlock) in HOSTS {
        let shieling = exec(&[]);
        let ran = on(host, &shieling);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{host}: {ran}");
        assert!(!canary(&shieling), "{host}");
        assert!(
            ran.stderr.starts_with("error: the sandbox cannot be started here: "),
            "{host}: {ran}"
        );
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains("nothing was started\n"),
            "{host}: {ran}"
        );
        // The way on is offered where it is one.
        assert_eq!(ran.stderr.contains("`--isolation landlock`"), landlock, "{host}: {ran}");
        let lesser = exec(&["--isolation", "landlock"]);
        let ran = on(host, &lesser);
        assert_eq!(
            (ran.exit == Some(0), canary(&lesser)),
            (landlock, landlock),
            "{host}: {ran}"
        );
    }
}

#[test]
fn the_neighbour_that_lacks_nothing_works() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let shieling = exec(&[]);
    let ran = on("full", &shieling);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran}");
    assert!(canary(&shieling));
    let (exit, report) = doctor("full");
    assert_eq!((exit, &report["works"]), (Some(0), &Value::Bool(true)), "{report}");
    assert_eq!(state(&report, "sandbox"), "ok", "{report}");
}

#[test]
fn an_outcome_on_such_a_host_says_that_it_failed_and_nothing_is_enforced() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (host, ..) in HOSTS {
        let shieling = exec(&["--json"]);
        let ran = on(host, &shieling);
        let outcome = ran.outcome();
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert_eq!(outcome["status"], "failed", "{ran}");
        assert_eq!(outcome["confinement"]["enforced"], Value::Array(Vec::new()), "{ran}");
        assert!(!canary(&shieling), "{host}");
    }
}

#[test]
fn doctor_says_what_is_missing_there_and_what_is_not() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (host, missing, _, landlock) in HOSTS {
        let (exit, report) = doctor(host);
        assert_eq!(
            (exit, &report["works"]),
            (Some(1), &Value::Bool(false)),
            "{host}: {report}"
        );
        assert_eq!(state(&report, "sandbox"), "missing", "{host}: {report}");
        assert!(
            missing.iter().any(|layer| state(&report, layer) == "missing"),
            "{host}: {report}"
        );
        let expected = if landlock { "ok" } else { "missing" };
        assert_eq!(state(&report, "sandbox.landlock"), expected, "{host}: {report}");
        assert_eq!(state(&report, "local"), "ok", "{host}: {report}");
        let filtered = report["host"]["filtered"].as_bool();
        assert_eq!(filtered, Some(true), "{host}: {report}");
        assert!(
            report["causes"].as_array().is_some_and(|causes| !causes.is_empty()),
            "{host}: {report}"
        );
    }
    // What was made before the refusal is told from what nobody came to.
    let (_, report) = doctor("no-landlock");
    assert_eq!(
        (state(&report, "mount"), state(&report, "seccomp")),
        ("ok", "unknown"),
        "{report}"
    );
    let (_, report) = doctor("no-user-namespaces");
    assert_eq!(
        (state(&report, "mount"), state(&report, "seccomp")),
        ("unknown", "ok"),
        "{report}"
    );
    let (_, report) = doctor("no-network-namespaces");
    assert_eq!(
        (state(&report, "user"), state(&report, "mount")),
        ("ok", "ok"),
        "{report}"
    );
}

#[test]
fn local_works_on_every_host() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (host, ..) in HOSTS {
        let shieling = exec(&["--env", "local", "--approval", "policy"]);
        assert_eq!(on(host, &shieling).exit, Some(0), "{host}");
        assert!(canary(&shieling), "{host}");
    }
}
