//! A container for each command: what one leaves is not there for the next, and nothing of it is left, however it ended.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use shieling::environment::{Ability, Environment as _};
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling_container::{Container, ContainerError, Options, WorkspaceCopy};
use tempfile::tempdir;

use super::support::{BUSYBOX, Engine, Kind, TOOLS, command, engine, facade, read, run, turn, until, workspace};

fn alone(engine: &Engine, image: &str) -> Options {
    let mut options = engine.options(image);
    options.per_command = true;
    options
}

async fn opened(engine: &Engine, options: Options) -> Arc<Container> {
    Arc::new(engine.open(options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_command_has_a_new_container_with_the_same_limits() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let work = workspace();
        fs::write(work.path().join("note"), "of the user\n").unwrap();
        engine.give(work.path());
        let mut options = alone(engine, BUSYBOX);
        options.workspace = Some(work.path().to_owned());
        options.writable = true;
        let is_limited = !options.unlimited;
        if is_limited {
            options.memory = Some(64 << 20);
        }
        let container = opened(engine, options).await;
        let text = "cat /proc/sys/kernel/hostname; cat note; ls /tmp; echo more >/tmp/x; echo $$ >made; cat made; \
                    grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; sleep 300 &";
        let mut names = BTreeSet::new();
        for _ in 0..2 {
            let outcome = run(&container, text).await;
            assert_eq!(
                (outcome.exit_code, outcome.survivors),
                (Some(0), 0),
                "{kind:?}: {outcome:?}"
            );
            let mut lines = outcome.stdout.lines();
            names.insert(lines.next().unwrap().to_owned());
            let rest: Vec<_> = lines.collect();
            let made = read(&work, "made").unwrap();
            let expected = [
                "of the user",
                made.trim(),
                "CapEff:\t0000000000000000",
                "NoNewPrivs:\t1",
                "Seccomp:\t2",
            ];
            assert_eq!(rest, expected, "{kind:?}");
        }
        assert_eq!(names.len(), 2, "{kind:?}: {names:?}");
        if is_limited {
            let outcome = run(&container, "dd if=/dev/zero of=/dev/null bs=200M count=1").await;
            assert_eq!(outcome.status, Status::OutOfMemory, "{kind:?}: {outcome:?}");
            let enforced = outcome.confinement.enforced;
            assert!(enforced.iter().any(|layer| layer == "cgroup.memory"), "{enforced:?}");
        }
        // Its files are there by way of one more container, in which no command runs.
        let files = container.files().await.unwrap();
        drop(files);
        container.close().await;
        assert_eq!(container.left_at_close(), None);
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_container_is_removed_however_a_command_ends() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(engine) = engine(kind) else { continue };
        let container = opened(engine, alone(engine, TOOLS)).await;
        let gone = || engine.containers().is_empty();
        let sleeps = |what: &'static str| {
            move || {
                let ids = engine.containers();
                ids.iter()
                    .any(|id| engine.processes(id).iter().any(|words| words == what))
            }
        };
        // It starts one and removes it, and then knows what it is like.
        container.start().await.unwrap();
        assert_eq!(container.id(), None);
        assert!(container.shell().is_some() && gone());

        let late = command(&container, "setsid sleep 300 & sleep 301");
        let late = late.with_deadline(Duration::from_millis(700)).unwrap();
        let outcome = facade(&container, Policy::open()).run(late, None).await;
        assert_eq!(
            (outcome.status, outcome.survivors),
            (Status::TimedOut, 0),
            "{kind:?}: {outcome:?}"
        );
        until("a container ends with a command that timed out", gone).await;

        let running = tokio::spawn({
            let (library, text) = (facade(&container, Policy::open()), command(&container, "sleep 302"));
            async move { library.run(text, None).await }
        });
        until("a command runs", sleeps("sleep 302")).await;
        running.abort();
        until("a container ends with a command that was given up", gone).await;

        // Two at a time, one of which loses its container.
        let both = ["sleep 303", "sleep 1; echo fine"].map(|text| {
            let (library, text) = (facade(&container, Policy::open()), command(&container, text));
            tokio::spawn(async move { library.run(text, None).await })
        });
        until("a command runs", sleeps("sleep 303")).await;
        for id in engine.containers() {
            if engine.processes(&id).iter().any(|words| words == "sleep 303") {
                engine.remove(&id);
            }
        }
        let [lost, fine] = both;
        let (lost, fine) = (lost.await.unwrap(), fine.await.unwrap());
        assert_eq!((lost.status, lost.survivors), (Status::Lost, 0), "{kind:?}: {lost:?}");
        assert!(
            lost.error.as_deref().unwrap().contains("its container has ended"),
            "{lost:?}"
        );
        assert_eq!(fine.stdout, "fine\n", "{kind:?}: {fine:?}");
        until("both containers are gone", gone).await;

        let running = tokio::spawn({
            let (library, text) = (facade(&container, Policy::open()), command(&container, "sleep 304"));
            async move { library.run(text, None).await }
        });
        until("a command runs", sleeps("sleep 304")).await;
        container.close().await;
        assert!(gone(), "{kind:?}: closing ends what runs");
        let ended = running.await.unwrap();
        assert!(
            matches!(ended.status, Status::Signalled | Status::Lost),
            "{kind:?}: {ended:?}"
        );
        assert_eq!(container.left_at_close(), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_last_from_one_command_to_the_next_is_refused_by_name() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let work = tempdir().unwrap();
    fs::write(work.path().join("note"), "as it was").unwrap();
    let mut options = alone(engine, TOOLS);
    options.workspace = Some(work.path().to_owned());
    options.workspace_copy = Some(WorkspaceCopy::Both {
        sets: work.path().join("sets"),
        home: None,
        fixed: Vec::new(),
    });
    let error = engine.open(options.clone()).await.unwrap_err();
    assert!(error.to_string().contains("`per_command`"), "{error}");
    let mut attached = Options::attached("x");
    attached.per_command = true;
    let error = engine.open(attached).await.unwrap_err();
    assert!(error.to_string().contains("`--per-command`"), "{error}");

    // Each has a copy of its own.
    options.workspace_copy = Some(WorkspaceCopy::In);
    let container = opened(engine, options).await;
    for _ in 0..2 {
        let outcome = run(&container, "cat note && echo changed >note").await;
        assert_eq!(outcome.stdout, "as it was", "{outcome:?}");
    }
    let abilities = container.capabilities().abilities;
    for ability in [Ability::Sessions, Ability::ReadFiles, Ability::WriteFiles] {
        assert!(!abilities.contains(&ability), "{ability:?}");
    }
    assert!(container.files().await.is_err());
    let library = Arc::new(facade(&container, Policy::open()));
    let outcome = library
        .session("main".parse().unwrap())
        .run(command(&container, "true"))
        .await;
    let told = outcome.error.unwrap_or_default();
    assert!(told.contains("each command has a container of its own"), "{told}");
    container.close().await;

    // A start that is refused leaves none either, each time.
    let mut options = alone(engine, BUSYBOX);
    options.workspace = Some(work.path().to_owned());
    options.writable = true;
    let container = opened(engine, options).await;
    for _ in 0..2 {
        let outcome = run(&container, "true").await;
        assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
    }
    assert!(matches!(
        container.last_failure(),
        Some(ContainerError::NotWritable { .. })
    ));
    container.close().await;
    assert_eq!(engine.containers(), Vec::<String>::new());
}
