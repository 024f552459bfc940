//! Engines that accept requests and answer one of them never, or none any more: each call ends in bounded time with the
//! engine, the request, the limit and what to do, and `close` says what may be left.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use shieling::environment::Environment as _;
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling_container::{Choice, Container, ContainerError, Options, Surroundings};
use shieling_testkit::extent;
use tempfile::{TempDir, tempdir};

use super::support::{BUSYBOX, Engine, Kind, command, engine, facade, run, state, turn, until};

/// How long engines may take in these tests; a sixth of it for what they answer from memory.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(3);

/// As [`ENGINE_TIMEOUT`], of engines that do something.
const LOADED: Duration = Duration::from_secs(9);

/// A part of the request line that is never answered.
type Hangs = Arc<Mutex<Option<&'static str>>>;

/// The header of a request, up to its empty line.
fn header(stream: &UnixStream) -> Option<String> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut header = String::new();
    while !header.ends_with("\r\n\r\n") {
        if reader.read_line(&mut header).ok()? == 0 {
            return None;
        }
    }
    Some(header)
}

/// Accepts connections for as long as this program runs, each on a thread of its own. What hangs keeps its connection,
/// and is counted.
fn serve(
    listener: UnixListener,
    hangs: Hangs,
    answer: impl Fn(UnixStream, String) + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let answer = Arc::new(answer);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        let kept = Arc::new(Mutex::new(Vec::new()));
        for stream in listener.incoming().flatten() {
            let (hangs, answer, kept) = (Arc::clone(&hangs), Arc::clone(&answer), Arc::clone(&kept));
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let Some(header) = header(&stream) else { return };
                let line = header.lines().next().unwrap_or_default();
                if hangs.lock().unwrap().is_some_and(|part| line.contains(part)) {
                    kept.lock().unwrap().push(stream);
                    counted.fetch_add(1, Ordering::Relaxed);
                } else {
                    answer(stream, header);
                }
            });
        }
    });
    count
}

/// An engine of words that were written before.
struct Fake {
    place: TempDir,
    hangs: Arc<AtomicUsize>,
}

impl Fake {
    fn new(podman: bool, hangs: &'static str, refuses: &'static str) -> Self {
        let place = tempdir().unwrap();
        let listener = UnixListener::bind(place.path().join("s")).unwrap();
        let hanging = serve(listener, Arc::new(Mutex::new(Some(hangs))), move |stream, header| {
            answer(stream, &header, podman, refuses);
        });
        Self { place, hangs: hanging }
    }

    fn address(&self) -> String {
        format!("unix://{}", self.place.path().join("s").display())
    }

    async fn open(&self, mut options: Options) -> Result<Container, ContainerError> {
        options.engine_timeout = ENGINE_TIMEOUT;
        let surroundings = Surroundings {
            docker_host: Some(self.address()),
            ..Surroundings::default()
        };
        Container::open(options, Choice::Auto, &surroundings, &state(), None).await
    }
}

fn answer(mut stream: UnixStream, header: &str, podman: bool, refuses: &str) {
    let length = header.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse::<u64>().ok())?
    });
    let mut body = (&stream).take(length.unwrap_or(0));
    if std::io::copy(&mut body, &mut std::io::sink()).is_err() {
        return;
    }
    let line = header.lines().next().unwrap_or_default();
    let product = if podman { "Libpod-Api-Version: 4.3.1\r\n" } else { "" };
    let arch = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let is = |part: &str| line.contains(part);
    let (status, body) = if !refuses.is_empty() && is(refuses) {
        (
            "500 Internal Server Error",
            r#"{"message": "it was refused"}"#.to_owned(),
        )
    } else if is("/attach") || is("/exec/e1/start") {
        let upgraded = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
        // The streams are open, and nothing comes on them.
        if stream.write_all(upgraded.as_bytes()).is_ok() {
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        return;
    } else if is("/version") {
        ("200 OK", format!(r#"{{"Arch": "{arch}"}}"#))
    } else if is("/images/") && is("/json") {
        let image = format!(r#"{{"Id": "sha256:1", "Architecture": "{arch}", "Config": {{}}}}"#);
        ("200 OK", image)
    } else if is("/containers/create") {
        ("201 Created", r#"{"Id": "0123456789abcdef"}"#.to_owned())
    } else if is("/exec/e1/json") {
        ("200 OK", r#"{"Running": true, "Pid": 7}"#.to_owned())
    } else if is("/exec ") {
        ("201 Created", r#"{"Id": "e1"}"#.to_owned())
    } else if is("/containers/json") {
        ("200 OK", "[]".to_owned())
    } else if is("/containers/") && is("/json") {
        let found = r#"{"Id": "c", "Image": "sha256:1", "State": {"Running": true}, "Config": {}, "HostConfig": {}}"#;
        ("200 OK", found.to_owned())
    } else if is("DELETE") || is("/start") {
        ("204 No Content", String::new())
    } else {
        ("200 OK", "OK".to_owned())
    };
    let length = body.len();
    let said = format!(
        "HTTP/1.1 {status}\r\nApi-Version: 1.41\r\n{product}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // Whoever asked may not want to know any more.
    let _ = stream.write_all(said.as_bytes());
}

/// What hangs, in which way of running, and how the request is named.
struct Case {
    hangs: &'static str,
    refuses: &'static str,
    is_attached: bool,
    named: &'static str,
    limit: &'static str,
    /// What may be left.
    left: &'static str,
}

const CASES: [Case; 12] = {
    const fn own(hangs: &'static str, named: &'static str, limit: &'static str, left: &'static str) -> Case {
        Case {
            hangs,
            refuses: "",
            is_attached: false,
            named,
            limit,
            left,
        }
    }
    const fn attached(hangs: &'static str, named: &'static str, limit: &'static str, left: &'static str) -> Case {
        Case {
            is_attached: true,
            ..own(hangs, named, limit, left)
        }
    }
    const THEIRS: &str = "the agent program may be left in `/.shieling-";
    [
        own("/version", "for its version", "0.5 s", ""),
        own("/images/", "for an image", "0.5 s", ""),
        own(
            "/containers/create",
            "to make a container",
            "3 s",
            "the container `shieling-",
        ),
        own(
            "/attach",
            "to attach to a container",
            "0.5 s",
            "the container `0123456789ab`",
        ),
        own("/start", "to start a container", "3 s", "the container `0123456789ab`"),
        Case {
            refuses: "/start",
            ..own(
                "DELETE",
                "to start a container",
                "it was refused",
                "the container `0123456789ab`",
            )
        },
        Case {
            refuses: "/attach",
            ..own(
                "DELETE",
                "to attach to a container",
                "it was refused",
                "the container `0123456789ab`",
            )
        },
        attached("/containers/c/json", "to inspect a container", "0.5 s", ""),
        attached("PUT", "to copy a file into a container", "3 s", THEIRS),
        attached("/exec ", "to execute a program", "0.5 s", THEIRS),
        attached("/exec/e1/start", "to execute a program", "0.5 s", THEIRS),
        attached(
            "/exec/e1/json",
            "to inspect a program that it executes",
            "0.5 s",
            THEIRS,
        ),
    ]
};

async fn hangs(case: &Case, podman: bool) {
    let fake = Fake::new(podman, case.hangs, case.refuses);
    let options = match case.is_attached {
        true => Options::attached("c"),
        false => Options::image("x"),
    };
    let begun = Instant::now();
    let opened = fake.open(options).await;
    let (error, container) = match opened {
        Err(error) => (error, None),
        Ok(container) => (container.start().await.unwrap_err(), Some(container)),
    };
    let took = begun.elapsed();
    let text = error.to_string();
    let what = format!("{} (podman: {podman}) after {took:?}: {text}", case.hangs);
    assert!(took < ENGINE_TIMEOUT * 3, "{what}");
    for part in [case.named, case.limit, case.left] {
        assert!(text.contains(part), "{part}: {what}");
    }
    let name = if podman { "podman" } else { "docker" };
    if case.refuses.is_empty() {
        assert!(
            text.starts_with(&format!("{name} at `{}` has not answered", fake.address())),
            "{what}"
        );
        let instead = error.instead().unwrap();
        assert!(
            instead.contains(&format!("see whether `{name} ps` answers")),
            "{what}: {instead}"
        );
    }
    assert_eq!(text.contains("may be left"), !case.left.is_empty(), "{what}");
    if case.left.starts_with("the container") {
        assert!(error.instead().unwrap().contains("the next start removes"), "{what}");
    }
    let Some(container) = container else { return };
    assert_eq!(container.last_failure().unwrap().to_string(), text);
    let begun = Instant::now();
    container.close().await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{what}: {:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_that_an_engine_never_answers_ends_with_its_name_its_limit_and_the_cure() {
    let mut all = tokio::task::JoinSet::new();
    for case in &CASES {
        for podman in [false, true] {
            all.spawn(hangs(case, podman));
        }
    }
    all.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_gives_up_a_start_that_hangs_and_says_what_may_be_left() {
    let fake = Fake::new(false, "/containers/create", "");
    let container = Arc::new(fake.open(Options::image("x")).await.unwrap());
    let starting = [(); 2].map(|()| {
        let container = Arc::clone(&container);
        tokio::spawn(async move { container.start().await })
    });
    until("it starts", || fake.hangs.load(Ordering::Relaxed) > 0).await;
    let begun = Instant::now();
    container.close().await;
    // A sixth of the time, and neither of the two starts to its end.
    assert!(begun.elapsed() < ENGINE_TIMEOUT, "{:?}", begun.elapsed());
    for started in starting {
        assert_eq!(started.await.unwrap(), Err(ContainerError::Closed));
    }
    let left = container.left_at_close().unwrap();
    assert!(
        left.contains("may be left") && left.contains("label=dev.shieling"),
        "{left}"
    );
    assert_eq!(container.left_at_close(), None);
}

/// A daemon between us and an engine, of which requests can be made to hang.
fn relay(engine: &Path, at: &Path, hangs: Hangs) {
    let engine = engine.to_owned();
    serve(UnixListener::bind(at).unwrap(), hangs, move |stream, header| {
        let Ok(mut theirs) = UnixStream::connect(&engine) else {
            return;
        };
        if theirs.write_all(header.as_bytes()).is_err() {
            return;
        }
        let (Ok(ours), Ok(to)) = (stream.try_clone(), theirs.try_clone()) else {
            return;
        };
        let pass = |mut from: UnixStream, mut to: UnixStream| {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        };
        std::thread::spawn(move || pass(ours, to));
        pass(theirs, stream);
    });
}

/// Opens a container by way of something else that listens here.
async fn open_by(engine: &Engine, socket: &Path, engine_timeout: Duration) -> Arc<Container> {
    let mut options = engine.options(BUSYBOX);
    options.engine_timeout = engine_timeout;
    let surroundings = Surroundings {
        docker_host: Some(format!("unix://{}", socket.display())),
        ..Surroundings::default()
    };
    let container = Container::open(options, Choice::Auto, &surroundings, &state(), None).await;
    Arc::new(container.unwrap())
}

/// What is left by others holds no start up, and an engine that does not remove a container when all is closed is told.
async fn hangs_at_the_end(engine: &Engine) {
    let (place, hangs) = (tempdir().unwrap(), Hangs::default());
    relay(&engine.socket, &place.path().join("s"), Arc::clone(&hangs));
    *hangs.lock().unwrap() = Some("/containers/json");
    let container = open_by(engine, &place.path().join("s"), LOADED).await;
    let outcome = run(&container, "echo on").await;
    assert_eq!(outcome.stdout, "on\n", "{:?}: {outcome:?}", engine.kind);

    *hangs.lock().unwrap() = Some("DELETE");
    let id = container.id().unwrap();
    let begun = Instant::now();
    container.close().await;
    assert!(begun.elapsed() < LOADED * 2, "{:?}", begun.elapsed());
    let left = container.left_at_close().unwrap();
    for part in [&id[..12], "may be left", "to remove a container within 9 s", "rm -f"] {
        assert!(left.contains(part), "{:?}: {part}: {left}", engine.kind);
    }
    *hangs.lock().unwrap() = None;
}

async fn hangs_behind_a_start(engine: &Engine) {
    let (place, hangs) = (tempdir().unwrap(), Hangs::default());
    relay(&engine.socket, &place.path().join("s"), Arc::clone(&hangs));
    let container = open_by(engine, &place.path().join("s"), LOADED).await;
    *hangs.lock().unwrap() = Some("/json HTTP");
    let error = container.start().await.unwrap_err();
    assert!(
        error.to_string().contains("to inspect a container within 1.5 s"),
        "{error}"
    );
    *hangs.lock().unwrap() = None;
    container.close().await;
    assert_eq!(container.left_at_close(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_hangs_once_its_container_runs_is_told_and_nothing_is_left() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        if kind == Kind::Podman && !extent::is_full() {
            continue;
        }
        let Some(engine) = engine(kind) else { continue };
        tokio::join!(hangs_at_the_end(engine), hangs_behind_a_start(engine));
        until("a container ends with its agent", || engine.containers().is_empty()).await;
    }
}

/// Set in the process that is a daemon, to the socket of the engine, and to its own.
const ENGINE: &str = "SHIELING_TEST_RELAYS_TO";
const SOCKET: &str = "SHIELING_TEST_RELAYS_AT";

/// A daemon that can be stopped, and ends with this value.
struct Daemon {
    process: Child,
    socket: PathBuf,
    _place: TempDir,
}

impl Daemon {
    async fn before(engine: &Engine) -> Self {
        let place = tempdir().unwrap();
        let socket = place.path().join("s");
        let process = Program::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "container::hung::a_daemon_that_is_stopped_hangs_nothing",
                "--nocapture",
            ])
            .env(ENGINE, &engine.socket)
            .env(SOCKET, &socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let daemon = Self {
            process,
            socket,
            _place: place,
        };
        until("the daemon listens", || daemon.socket.exists()).await;
        daemon
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_stopped_hangs_nothing() {
    if let (Some(engine), Some(socket)) = (std::env::var_os(ENGINE), std::env::var_os(SOCKET)) {
        relay(Path::new(&engine), Path::new(&socket), Hangs::default());
        // Until the process that started it is gone.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let daemon = Daemon::before(engine).await;
    let container = open_by(engine, &daemon.socket, ENGINE_TIMEOUT).await;
    daemon.signal(Signal::STOP);
    let begun = Instant::now();
    let error = container.start().await.unwrap_err();
    assert!(begun.elapsed() < ENGINE_TIMEOUT * 2, "{:?}", begun.elapsed());
    assert!(error.to_string().contains("to make a container within 3 s"), "{error}");
    container.close().await;
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let since = seconds();
    daemon.signal(Signal::CONT);
    // It is made later than now, or never if the engine has not heard of it.
    until("what it made when it went on is gone", || {
        let filters = "%7B%22event%22%3A%5B%22destroy%22%5D%7D";
        let path = format!("/events?since={since}&until={}&filters={filters}", seconds());
        engine.api("GET", &path, None).1.contains("destroy")
    })
    .await;
    assert_eq!(engine.containers(), Vec::<String>::new());
    drop(daemon);
    if !extent::is_full() {
        return;
    }

    let daemon = Daemon::before(engine).await;
    let container = open_by(engine, &daemon.socket, ENGINE_TIMEOUT).await;
    container.start().await.unwrap();
    let id = container.id().unwrap();
    let library = facade(&container, Policy::open());
    let text = command(&container, "echo begun; sleep 600");
    let running = tokio::spawn(async move { library.run(text, None).await });
    until("the command runs", || {
        engine.processes(&id).iter().any(|words| words == "sleep 600")
    })
    .await;
    daemon.signal(Signal::STOP);
    let begun = Instant::now();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.status, Status::Lost, "{outcome:?}");
    // 15 s of silence, and what the engine is asked about the end.
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    let begun = Instant::now();
    container.close().await;
    assert!(
        begun.elapsed() < ENGINE_TIMEOUT + Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    let left = container.left_at_close().unwrap();
    assert!(left.contains(&id[..12]), "{left}");
    drop(daemon);
    until("a container ends with the daemon", || engine.containers().is_empty()).await;
}
