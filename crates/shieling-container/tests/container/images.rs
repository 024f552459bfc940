//! Images of all kinds, each with a clear result.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use shieling::environment::Environment as _;
use shieling_container::{ContainerError, Preset, Pull, Run};

use super::support::{BUSYBOX, EMPTY, FOREIGN, Kind, engine, run, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entrypoints_and_health_checks_of_images_do_not_run() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let container = Arc::new(engine.open(engine.options(BUSYBOX)).await.unwrap());
        let outcome = run(&container, "echo works; cat /etc/os-release").await;
        assert_eq!(
            outcome.stdout, "works\nPRETTY_NAME=\"a box of programs\"\n",
            "{kind:?}: {outcome:?}"
        );
        assert_eq!(container.shell().unwrap().file_name().unwrap(), "sh");
        assert!(container.os_release().unwrap().contains("a box of programs"));
        let id = container.id().unwrap();
        let state = engine.json("GET", &format!("/containers/{id}/json"), None);
        assert!(
            state["State"]["Health"]["Status"]
                .as_str()
                .is_none_or(|status| status.is_empty() || status == "none"),
            "{state}"
        );
        container.close().await;
    }
}

/// The address of a server that has no images. Podman asks three times more, for seconds, where nobody answers.
fn not_a_registry() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_that_are_missing_or_foreign_are_told_apart() {
    let _turn = turn().await;
    let registry = not_a_registry();
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let mut options = engine.options("localhost/shieling-test:absent");
        let error = engine.open(options.clone()).await.unwrap_err();
        assert!(matches!(error, ContainerError::NoImage { .. }), "{kind:?}: {error:?}");
        options.run = Run::Image {
            image: format!("{registry}/shieling-test:absent"),
            pull: Pull::Auto,
        };
        let error = engine.open(options).await.unwrap_err();
        assert!(matches!(error, ContainerError::NoImage { .. }), "{kind:?}: {error:?}");
        assert!(error.to_string().contains("cannot be pulled"), "{error}");
        let error = engine.open(engine.options(FOREIGN)).await.unwrap_err();
        assert!(
            matches!(error, ContainerError::Architecture { .. }),
            "{kind:?}: {error:?}"
        );
        let error = engine.open(engine.options("not a name")).await.unwrap_err();
        assert!(matches!(error, ContainerError::Options { .. }), "{kind:?}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_without_a_shell_runs_programs_with_their_arguments() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let mut options = engine.options(EMPTY);
    options.volumes.push(shieling_container::Volume {
        source: "/bin/busybox".into(),
        target: "/echo".into(),
        readonly: true,
    });
    let container = Arc::new(engine.open(options).await.unwrap());
    container.start().await.unwrap();
    assert_eq!(container.shell(), None);
    let outcome = run(&container, "/echo 'two  words'").await;
    assert_eq!(outcome.stdout, "two  words\n", "{outcome:?}");
    for text in ["absent", "/echo a | /echo b"] {
        let outcome = run(&container, text).await;
        assert_ne!(outcome.exit_code, Some(0), "{text}: {outcome:?}");
    }
    container.close().await;
    assert_eq!(engine.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plain_preset_is_what_the_engine_does() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let mut options = engine.options(BUSYBOX);
        options.preset = Preset::Plain;
        let container = Arc::new(engine.open(options).await.unwrap());
        let outcome = run(
            &container,
            "id -u; touch /root/x && echo written; echo $HOME; grep -c : /proc/net/dev",
        )
        .await;
        assert_eq!(outcome.stdout, "0\nwritten\n/root\n1\n", "{kind:?}: {outcome:?}");
        container.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_the_engine_does_not_have_is_named() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let mut options = engine.options(BUSYBOX);
    options.runtime = Some("absent".to_owned());
    let container = engine.open(options).await.unwrap();
    let error = container.start().await.unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
    assert_eq!(engine.containers(), Vec::<String>::new());
}
