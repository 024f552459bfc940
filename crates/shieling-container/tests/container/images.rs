//! Images of all kinds, each with a clear result.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use shieling::environment::Environment as _;
use shieling::request::Digest;
use shieling_container::{Choice, Container, ContainerError, Preset, Progress, Pull, Run};

use super::support::{BUSYBOX, EMPTY, FOREIGN, Kind, engine, packed, run, state, turn};

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

/// The address of a server that has one image, `test:1`, or all of it but the content of its layer.
fn registry(is_whole: bool) -> SocketAddr {
    let (mut config, mut layer) = (Vec::new(), Vec::new());
    let image = packed(if is_whole { BUSYBOX } else { EMPTY });
    for entry in tar::Archive::new(&image[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let into = match entry.path().unwrap().to_str() {
            Some("config.json") => &mut config,
            Some("layer.tar") => &mut layer,
            _ => continue,
        };
        entry.read_to_end(into).unwrap();
    }
    // Not the image that the engine has already.
    let mut new: Value = serde_json::from_slice(&config).unwrap();
    new["author"] = json!(if is_whole { "whole" } else { "broken" });
    let config = new.to_string().into_bytes();
    let digest = |bytes: &[u8]| format!("sha256:{}", Digest::of(bytes));
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": kind,
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "size": config.len(),
            "digest": digest(&config),
        },
        "layers": [{
            "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
            "size": layer.len(),
            "digest": digest(&layer),
        }],
    });
    let manifest = manifest.to_string().into_bytes();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = vec![0; 8192];
            let read = stream.read(&mut request).unwrap_or(0);
            let line = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = line.split(' ').nth(1).unwrap_or_default();
            let (status, body) = if path == "/v2/" {
                ("200 OK", &b"{}"[..])
            } else if path.contains("/manifests/") {
                ("200 OK", &manifest[..])
            } else if path.ends_with(&digest(&config)) {
                ("200 OK", &config[..])
            } else if path.ends_with(&digest(&layer)) && is_whole {
                ("200 OK", &layer[..])
            } else {
                ("404 Not Found", &[][..])
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nDocker-Distribution-Api-Version: registry/2.0\r\n\
                 Docker-Content-Digest: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                digest(body),
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            if !line.starts_with("HEAD") {
                let _ = stream.write_all(body);
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_pulled_with_progress_and_a_pull_that_breaks_off_says_why() {
    let _turn = turn().await;
    // Podman speaks no plain HTTP with a registry, unless its settings name that.
    let Some(engine) = engine(Kind::Docker) else { return };
    let pull = async |image: String, pull: Pull| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = Arc::clone(&told);
        let progress: Progress = Arc::new(move |line: &str| tells.lock().unwrap().push(line.to_owned()));
        let mut options = engine.options(&image);
        options.run = Run::Image { image, pull };
        let opened = Container::open(options, Choice::Auto, &engine.surroundings(), &state(), Some(progress)).await;
        let told = told.lock().unwrap().clone();
        (opened, told)
    };
    let image = format!("{}/test:1", registry(true));
    let (opened, told) = pull(image.clone(), Pull::Auto).await;
    let container = Arc::new(opened.unwrap());
    assert_eq!(
        told.first(),
        Some(&format!("pulling `{image}` into docker")),
        "{told:?}"
    );
    for part in ["Pulling fs layer", "Pull complete", "Downloaded newer image"] {
        assert!(told.iter().any(|line| line.contains(part)), "{part}: {told:?}");
    }
    assert!(told.len() < 30, "{told:?}");
    assert_eq!(run(&container, "echo pulled").await.stdout, "pulled\n");
    container.close().await;
    // It is there now, and pulled again where that is asked.
    let (opened, told) = pull(image.clone(), Pull::Auto).await;
    assert_eq!((opened.is_ok(), told.len()), (true, 0), "{told:?}");
    let (opened, told) = pull(image, Pull::Always).await;
    assert!(
        opened.is_ok() && told.iter().any(|line| line.contains("up to date")),
        "{told:?}"
    );

    // It breaks off in the middle: the manifest is there, and the layer is not.
    let image = format!("{}/test:1", registry(false));
    let (opened, _) = pull(image.clone(), Pull::Always).await;
    let error = opened.unwrap_err();
    assert!(matches!(error, ContainerError::NoImage { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .contains(&format!("there is no image `{image}`: it cannot be pulled:")),
        "{error}"
    );
    assert!(error.instead().unwrap().contains("--pull auto"), "{error}");
}
