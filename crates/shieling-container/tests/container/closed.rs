//! What a container closes, tried from inside and by its effect.

use std::sync::Arc;

use shieling::environment::Environment as _;
use shieling::outcome::Status;
use shieling_container::{ContainerError, Reach, User};

use super::support::{BUSYBOX, Engine, Kind, TOOLS, engine, read, run, turn, workspace};

async fn a_default_container(engine: &Engine) {
    let work = workspace();
    let mut options = engine.options(BUSYBOX);
    options.workspace = Some(work.path().to_owned());
    let container = Arc::new(engine.open(options).await.unwrap());
    let text = "id -u; id -g; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; \
                touch /x; touch /workspace/x; touch /tmp/x && echo tmp; cat /proc/net/dev | grep -c :; \
                echo $OF_THE_IMAGE $HOME; cat /proc/1/environ /proc/1/mem";
    let outcome = run(&container, text).await;
    let expected = "65534\n65534\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n\
                    tmp\n1\nyes /tmp\n";
    assert_eq!(outcome.stdout, expected, "{outcome:?}");
    assert_eq!(
        outcome.stderr.matches("Read-only file system").count(),
        2,
        "{}",
        outcome.stderr
    );
    // What runs there does not reach into the agent.
    assert_eq!(outcome.stderr.matches("/proc/1/").count(), 2, "{}", outcome.stderr);
    let confinement = container.confinement();
    for layer in [
        "user",
        "capabilities",
        "no_new_privileges",
        "seccomp",
        "network",
        "root.readonly",
        "workspace.readonly",
    ] {
        assert!(
            confinement.enforced.iter().any(|name| name == layer),
            "{layer}: {confinement:?}"
        );
    }
    assert_eq!(read(&work, "x"), None);
    container.close().await;
    assert_eq!(engine.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_container_is_closed() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        a_default_container(engine).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_processes_are_limited_and_an_excess_is_told() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(engine) = engine(kind) else { continue };
        let mut options = engine.options(BUSYBOX);
        options.memory = Some(64 << 20);
        options.pids = Some(24);
        options.cpu_thousandths = Some(500);
        let container = Arc::new(engine.open(options).await.unwrap());
        let outcome = run(&container, "echo before; dd if=/dev/zero of=/dev/null bs=200M count=1").await;
        assert_eq!(outcome.status, Status::OutOfMemory, "{kind:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "before\n");
        let outcome = run(
            &container,
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 9 & done",
        )
        .await;
        assert!(outcome.stderr.contains("fork"), "{kind:?}: {outcome:?}");
        let outcome = run(&container, "echo after").await;
        assert_eq!(outcome.stdout, "after\n", "{kind:?}: {outcome:?}");
        for layer in ["cgroup.memory", "cgroup.pids", "cgroup.cpu"] {
            let confinement = container.confinement();
            assert!(
                confinement.enforced.iter().any(|name| name == layer),
                "{layer}: {confinement:?}"
            );
        }
        container.close().await;
    }
}

/// Files in memory belong to nobody whom the kernel could kill for them; it killed the agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_in_memory_that_exceed_the_limit_end_the_command_and_not_the_container() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(engine) = engine(kind) else { continue };
        for (memory, file) in [(64 << 20, "/tmp/x"), (48 << 20, "/tmp/x"), (40 << 20, "/dev/shm/x")] {
            let mut options = engine.options(BUSYBOX);
            options.memory = Some(memory);
            let container = Arc::new(engine.open(options).await.unwrap());
            let text = format!("cat /proc/self/oom_score_adj; dd if=/dev/zero of={file} bs=1M count=100");
            let outcome = run(&container, &text).await;
            assert_eq!(
                outcome.status,
                Status::OutOfMemory,
                "{kind:?} {memory} {file}: {outcome:?}"
            );
            assert!(outcome.stdout.starts_with("1000\n"), "{outcome:?}");
            assert_eq!(outcome.survivors, 0, "{outcome:?}");
            container.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_ignores_a_limit_starts_nothing() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Rootless) else { return };
    let mut options = engine.options(BUSYBOX);
    if !options.unlimited {
        // This host's rootless engine limits.
        return;
    }
    options.unlimited = false;
    let container = engine.open(options).await.unwrap();
    let error = container.start().await.unwrap_err();
    assert!(
        matches!(
            error,
            ContainerError::NotApplied {
                what: "the limit on memory",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.instead().unwrap().contains("--unlimited"));
    assert_eq!(engine.containers(), Vec::<String>::new());
}

/// Weakness M25: the user of the container could not write a directory that was mounted to be written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_its_user_cannot_write_is_refused_with_the_cure() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let work = tempfile::tempdir().unwrap();
    let mut options = engine.options(BUSYBOX);
    options.workspace = Some(work.path().to_owned());
    options.writable = true;
    let container = engine.open(options.clone()).await.unwrap();
    let error = container.start().await.unwrap_err();
    assert!(matches!(error, ContainerError::NotWritable { .. }), "{error:?}");
    assert!(error.instead().unwrap().contains("--user keep"));

    options.user = Some(User::Keep);
    let container = Arc::new(engine.open(options).await.unwrap());
    let outcome = run(&container, "touch here && id -u").await;
    assert_eq!(outcome.stdout, "0\n", "{outcome:?}");
    assert!(read(&work, "here").is_some());
    container.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_network_and_engine_sockets_are_not_given_unasked() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let mut options = engine.options(TOOLS);
    options.network = Reach::Host;
    let error = engine.open(options).await.unwrap_err();
    assert!(matches!(error, ContainerError::Unsafe { .. }), "{error:?}");
    // The directory in which this very engine has its socket, of which only DOCKER_HOST tells.
    let mut options = engine.options(BUSYBOX);
    options.workspace = Some(engine.place.clone());
    let error = engine.open(options).await.unwrap_err();
    assert!(matches!(error, ContainerError::Unsafe { .. }), "{error:?}");
}

/// What the layers of a default container refuse, each tried from inside. Its own loopback shows that a connection would
/// be noticed.
const TRIES: &str = r#"
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, done):
    try:
        print(what, "done" if done() else os.strerror(ctypes.get_errno()))
    except OSError as error:
        print(what, error.strerror)
def connects(address):
    with socket.socket() as s:
        s.settimeout(2)
        s.connect(address)
    return True
tried("mount", lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)
tried("add_key", lambda: libc.syscall(ADD_KEY, b"user", b"x", b"x", 1, -4) != -1)
tried("chown", lambda: os.chown("/tmp", 0, 0) or True)
tried("setuid", lambda: os.setuid(0) or True)
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) is not None)
tried("host", lambda: connects(("127.0.0.1", PORT)))
tried("outside", lambda: connects(("192.0.2.1", 80)))
with socket.socket() as listens:
    listens.bind(("127.0.0.1", 0))
    listens.listen()
    tried("itself", lambda: connects(listens.getsockname()))
tried("unshare", lambda: libc.unshare(0x10000000) == 0)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_layer_of_a_default_container_has_its_effect() {
    let _turn = turn().await;
    let listens = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listens.local_addr().unwrap().port();
    // It listens, also for the network that a container does not have.
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    let add_key = if cfg!(target_arch = "x86_64") { "248" } else { "217" };
    let script = TRIES.replace("PORT", &port.to_string()).replace("ADD_KEY", add_key);
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let work = workspace();
        std::fs::write(work.path().join("tries.py"), &script).unwrap();
        let mut options = engine.options(TOOLS);
        options.workspace = Some(work.path().to_owned());
        let container = Arc::new(engine.open(options).await.unwrap());
        let outcome = run(&container, "python3 tries.py").await;
        let expected = "mount Operation not permitted\nadd_key Operation not permitted\nchown Operation not permitted\n\
                        setuid Operation not permitted\nraw Operation not permitted\n\
                        host Connection refused\noutside Network is unreachable\nitself done\n\
                        unshare Operation not permitted\n";
        // Podman's filter lets a user make namespaces, and keys, which it may have by itself.
        let lines = |text: &str| -> Vec<String> {
            let own = ["unshare", "add_key"];
            let lines = text
                .lines()
                .filter(|line| kind == Kind::Docker || !own.iter().any(|name| line.starts_with(name)));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(lines(&outcome.stdout), lines(expected), "{kind:?}: {outcome:?}");
        container.close().await;
    }
}
