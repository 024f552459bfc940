//! How commands and containers end, and that nothing is left of them.

use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use shieling::environment::Environment as _;
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling_testkit::First;

use super::support::{BUSYBOX, Kind, TOOLS, command, engine, facade, run, state, turn, until};

/// Weakness M23: what had timed out went on in the container.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_times_out_is_gone_inside_and_outside() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let container = Arc::new(engine.open(engine.options(TOOLS)).await.unwrap());
        container.start().await.unwrap();
        let id = container.id().unwrap();
        let text = "setsid sleep 300 & (trap '' TERM; sleep 301) & echo on; sleep 302";
        let late = command(&container, text)
            .with_deadline(Duration::from_millis(700))
            .unwrap();
        let begun = Instant::now();
        let outcome = facade(&container, Policy::open()).run(late, None).await;
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        assert_eq!(
            (outcome.status, outcome.survivors),
            (Status::TimedOut, 0),
            "{outcome:?}"
        );
        assert_eq!(outcome.stdout, "on\n");
        let left = engine.processes(&id);
        assert!(
            !left.iter().any(|words| words.contains("sleep 30")),
            "{kind:?}: {left:?}"
        );
        container.close().await;
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");
    }
}

/// Weakness M24: a container that had died was never made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_is_killed_ends_in_lost_and_the_next_command_has_another() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let container = Arc::new(engine.open(engine.options(TOOLS)).await.unwrap());
        let library = Arc::new(facade(&container, Policy::open()));
        let session = library.session("main".parse().unwrap());
        let outcome = session.run(command(&container, "exit 3")).await;
        assert_eq!(outcome.exit_code, Some(3), "{outcome:?}");
        let id = container.id().unwrap();
        let (mut first, printed) = First::new();
        let running = tokio::spawn({
            let (library, text) = (Arc::clone(&library), command(&container, "echo begun; sleep 60"));
            async move { library.run(text, Some(&mut first)).await }
        });
        printed.await.expect("it prints something");
        let begun = Instant::now();
        engine.remove(&id);
        let outcome = running.await.unwrap();
        assert_eq!(outcome.survivors, 0, "{kind:?}: {outcome:?}");
        let told = outcome.error.as_deref().unwrap_or_default();
        assert!(
            told.contains("the next command gets another one"),
            "{kind:?}: {outcome:?}"
        );
        let enforced = &outcome.confinement.enforced;
        assert!(enforced.iter().any(|layer| layer == "capabilities"), "{outcome:?}");
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (Status::Lost, "begun\n"),
            "{kind:?}: {outcome:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        let outcome = run(&container, "echo again").await;
        assert_eq!(outcome.stdout, "again\n", "{kind:?}: {outcome:?}");
        container.close().await;
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");
    }
}

/// Set in the process that is killed.
const KILLED: &str = "SHIELING_TEST_KILLED_WITH";
/// Where it finds the agent program.
const STATE: &str = "SHIELING_TEST_STATE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_process_that_was_killed() {
    if let Some(socket) = std::env::var_os(KILLED) {
        let mut options = shieling_container::Options::image(BUSYBOX);
        options.unlimited = true;
        let surroundings = shieling_container::Surroundings {
            docker_host: Some(format!("unix://{}", socket.to_string_lossy())),
            ..shieling_container::Surroundings::default()
        };
        let state = PathBuf::from(std::env::var_os(STATE).unwrap());
        let choice = shieling_container::Choice::Auto;
        let container = shieling_container::Container::open(options, choice, &surroundings, &state, None).await;
        let container = Arc::new(container.unwrap());
        let outcome = run(&container, "sleep 600").await;
        panic!("its command ended: {outcome:?}");
    }
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let name = "container::ends::nothing_is_left_of_a_process_that_was_killed";
        let mut child = Program::new(std::env::current_exe().unwrap())
            // What fails in it is seen.
            .args(["--exact", name, "--nocapture"])
            .env(KILLED, &engine.socket)
            .env(STATE, state())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let sleeps = || {
            let ids = engine.containers();
            ids.iter()
                .any(|id| engine.processes(id).iter().any(|words| words == "sleep 600"))
        };
        until("the other process runs its command", sleeps).await;
        child.kill().unwrap();
        child.wait().unwrap();
        until("its container is gone", || engine.containers().is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_start_removes_what_is_ours_and_orphaned_and_nothing_else() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Podman) else { return };
    let first = Arc::new(engine.open(engine.options(BUSYBOX)).await.unwrap());
    first.start().await.unwrap();
    let id = first.id().unwrap();
    let label = engine.json("GET", &format!("/containers/{id}/json"), None)["Config"]["Labels"]["dev.shieling.owner"]
        .as_str()
        .unwrap()
        .to_owned();
    // The same process as it was never started.
    let (rest, started) = label.rsplit_once(' ').unwrap();
    let dead = format!("{rest} {}", started.parse::<u64>().unwrap() + 1);
    let elsewhere = format!("another-boot{}", dead.trim_start_matches(|c| c != ' '));
    let made = |owner: &str| engine.waiting(BUSYBOX, |body| body["Labels"] = json!({ "dev.shieling.owner": owner }));
    let (orphan, foreign) = (made(&dead), made(&elsewhere));
    let second = engine.open(engine.options(BUSYBOX)).await.unwrap();
    second.start().await.unwrap();
    let is_there = |id: &str| engine.api("GET", &format!("/containers/{id}/json"), None).0 == 200;
    assert!(!is_there(&orphan), "an orphan is left");
    assert!(is_there(&foreign), "a container of another host was removed");
    assert!(is_there(&id), "a container that is in use was removed");
    engine.remove(&foreign);
    second.close().await;
    first.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_that_are_given_up_leave_no_container() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    for after_ms in [1, 30, 80, 150, 250, 400] {
        let container = engine.open(engine.options(BUSYBOX)).await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(after_ms), container.start()).await;
        drop(container);
    }
    until("containers of starts that were given up are gone", || {
        engine.containers().is_empty()
    })
    .await;
}
