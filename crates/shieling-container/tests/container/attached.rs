//! A container of somebody else's, in which nothing is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use shieling::environment::Environment as _;
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling_container::{ContainerError, Options};

use super::support::{BUSYBOX, Engine, Kind, command, engine, facade, run, turn, until};

fn options(id: &str) -> Options {
    let mut options = Options::attached(id);
    options.workdir = "/".into();
    options
}

/// What lies at the places where the agent program may be put.
async fn left(engine: &Engine, id: &str) -> Vec<String> {
    let list = "/bin/busybox find / -name '.shieling*' -not -path '/proc/*'";
    let made = json!({ "AttachStdout": true, "Cmd": ["/bin/busybox", "sh", "-c", list] });
    let made = engine.json("POST", &format!("/containers/{id}/exec"), Some(&made));
    let path = format!("/exec/{}/start", made["Id"].as_str().unwrap());
    let begin = json!({ "Detach": false }).to_string();
    let (_, said) = engine.api("POST", &path, Some(("application/json", begin.as_bytes())));
    said.split('/')
        .filter(|part| part.contains("shieling"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_run_in_a_container_of_somebody_else_and_nothing_is_left_there() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        // As it was made, with a user of its own, and read-only with a place in memory.
        let ways: [fn(&mut serde_json::Value); 3] = [
            |_| {},
            |body| body["User"] = json!("1000:1000"),
            |body| {
                body["HostConfig"]["ReadonlyRootfs"] = json!(true);
                body["HostConfig"]["Tmpfs"] = json!({ "/tmp": "rw,exec,mode=1777" });
            },
        ];
        for (at, way) in ways.into_iter().enumerate() {
            let id = engine.waiting(BUSYBOX, way);
            let container = Arc::new(engine.open(options(&id)).await.unwrap());
            let outcome = run(&container, "echo $OF_THE_IMAGE; id -u").await;
            let user = if at == 1 { "1000" } else { "0" };
            assert_eq!(outcome.stdout, format!("yes\n{user}\n"), "{kind:?} {at}: {outcome:?}");
            let late = command(&container, "sleep 300")
                .with_deadline(Duration::from_millis(300))
                .unwrap();
            let outcome = facade(&container, Policy::open()).run(late, None).await;
            assert_eq!(outcome.status, Status::TimedOut);
            container.close().await;
            until("all of it has ended there", || engine.processes(&id).len() == 1).await;
            assert_eq!(left(engine, &id).await, Vec::<String>::new(), "{kind:?} {at}");
            engine.remove(&id);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_told_of_a_container_is_what_it_has() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(engine) = engine(kind) else { continue };
        let shares: fn(&mut serde_json::Value) = |body| {
            for namespace in ["PidMode", "IpcMode", "NetworkMode"] {
                body["HostConfig"][namespace] = json!("host");
            }
        };
        for (way, has_own) in [(shares, false), (|_| {}, true)] {
            let id = engine.waiting(BUSYBOX, way);
            let container = Arc::new(engine.open(options(&id)).await.unwrap());
            container.start().await.unwrap();
            let enforced = container.confinement().enforced;
            for layer in ["pid", "ipc", "network"] {
                let told = enforced.iter().any(|one| one == layer);
                assert_eq!(told, has_own, "{kind:?} {layer}: {enforced:?}");
            }
            let network = if has_own { "none" } else { "host" };
            assert_eq!(container.network().as_deref(), Some(network), "{kind:?}");
            container.close().await;
            engine.remove(&id);
        }
    }
}

/// Weakness C24: what was stopped was another process, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_stopped_ends_in_the_container() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let id = engine.waiting(BUSYBOX, |_| {});
    let container = Arc::new(engine.open(options(&id)).await.unwrap());
    let library = Arc::new(facade(&container, Policy::open()));
    let running = tokio::spawn({
        let (library, text) = (Arc::clone(&library), command(&container, "sleep 400 & sleep 401"));
        async move { library.run(text, None).await }
    });
    let sleeps = || {
        engine
            .processes(&id)
            .iter()
            .filter(|words| words.starts_with("sleep 40"))
            .count()
    };
    until("both sleep", || sleeps() == 2).await;
    running.abort();
    until("neither sleeps", || sleeps() == 0).await;
    container.close().await;
    engine.remove(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_attached_to_is_told() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let error = engine.open(options("absent")).await.unwrap_err();
    assert!(matches!(error, ContainerError::NotRunning { .. }), "{error:?}");
    let id = engine.waiting(BUSYBOX, |_| {});
    let mut limited = options(&id);
    limited.memory = Some(1 << 30);
    let error = engine.open(limited).await.unwrap_err();
    assert!(matches!(error, ContainerError::Options { .. }), "{error:?}");
    engine.api("POST", &format!("/containers/{id}/pause"), None);
    let error = engine.open(options(&id)).await.unwrap_err();
    assert!(error.to_string().contains("paused"), "{error:?}");
    engine.api("POST", &format!("/containers/{id}/kill"), None);
    until("it is stopped", || {
        engine.json("GET", &format!("/containers/{id}/json"), None)["State"]["Running"] == false
    })
    .await;
    let error = engine.open(options(&id)).await.unwrap_err();
    assert!(matches!(error, ContainerError::NotRunning { .. }), "{error:?}");
    engine.remove(&id);
    // One that takes no program.
    let id = engine.waiting(BUSYBOX, |body| body["HostConfig"]["ReadonlyRootfs"] = json!(true));
    let container = engine.open(options(&id)).await.unwrap();
    let begun = Instant::now();
    let error = container.start().await.unwrap_err();
    assert!(matches!(error, ContainerError::Agent { .. }), "{error:?}");
    // Each place that cannot be written to was waited for this long.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(left(engine, &id).await, Vec::<String>::new());
    engine.remove(&id);
    // One that takes it, and lets nothing be executed.
    let id = engine.waiting(BUSYBOX, |body| {
        body["HostConfig"]["ReadonlyRootfs"] = json!(true);
        body["HostConfig"]["Tmpfs"] = json!({ "/tmp": "rw,noexec,mode=1777" });
        body["HostConfig"]["ShmSize"] = json!(1 << 20);
    });
    let container = engine.open(options(&id)).await.unwrap();
    let error = container.start().await.unwrap_err();
    assert!(matches!(error, ContainerError::Agent { .. }), "{error:?}");
    assert_eq!(left(engine, &id).await, Vec::<String>::new());
    engine.remove(&id);
}

/// What a start leaves that is killed before the program has removed itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_start_has_left_is_removed_by_the_next_and_nothing_else_is() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(engine) = engine(kind) else { continue };
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        for user in ["0:0", "1000:1000"] {
            let id = engine.waiting(BUSYBOX, |body| body["User"] = json!(user));
            let program = shieling_remote::agent::Program::carried().unwrap();
            let program = program.bytes();
            let mut archive = tar::Builder::new(Vec::new());
            let mut put = |name: &str, content: &[u8], at: u64| {
                for (path, kind, content) in [
                    (format!(".shieling-{name}/"), tar::EntryType::Directory, &[][..]),
                    (format!(".shieling-{name}/agent"), tar::EntryType::Regular, content),
                ] {
                    let mut header = tar::Header::new_gnu();
                    header.set_entry_type(kind);
                    header.set_mode(0o755);
                    header.set_mtime(at);
                    header.set_size(content.len() as u64);
                    archive.append_data(&mut header, path, content).unwrap();
                }
            };
            put("1-0", program, 0);
            put("2-0", &program[..1000], now - 3600);
            put("3-0", b"something else", 0);
            put("4-0", program, now);
            let archive = archive.into_inner().unwrap();
            let path = format!("/containers/{id}/archive?path=/");
            let (status, said) = engine.api("PUT", &path, Some(("application/x-tar", &archive)));
            assert_eq!(status, 200, "{said}");
            let container = Arc::new(engine.open(options(&id)).await.unwrap());
            assert_eq!(run(&container, "echo here").await.stdout, "here\n");
            container.close().await;
            let mut found = left(engine, &id).await;
            found.sort();
            let ends = |name: &char| name.is_ascii_alphanumeric() || ".-".contains(*name);
            let found: Vec<String> = found
                .iter()
                .map(|name| name.chars().take_while(ends).collect())
                .collect();
            assert_eq!(found, [".shieling-3-0", ".shieling-4-0"], "{kind:?} {user}");
            engine.remove(&id);
        }
    }
}
