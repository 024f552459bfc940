//! Clients of other protocols against their real servers, which run on this host's loopback.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::outside::go_client;
use crate::place::{PATH, Place, Server, has};

/// How long a server may take until it listens.
const START: Duration = Duration::from_secs(30);

/// A user without rights, for servers that refuse to be root's.
const NOBODY: &str = "65534";

/// A server in a process of its own, which ends with this.
struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    /// Starts a server that listens on a port of the loopback, and waits until it does.
    fn start(port: u16, command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut daemon = Self {
            child: child.expect("the server is installed"),
            port,
        };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = daemon.child.try_wait().expect("our own child");
            assert!(ended.is_none() && began.elapsed() < START, "{command:?}: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    fn place(&self) -> Place {
        Place::open(&[&format!("host.internal:{}", self.port)])
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // PostgreSQL's processes and memory are given back only on a signal that it handles.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of the loopback at which nothing listens.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound").port()
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", "/");
    command
}

/// Whether Debian's Python has a module, which is skipped like a program.
fn has_module(module: &str) -> bool {
    let found = has("python3")
        && program("/usr/bin/python3")
            .args(["-c", &format!("import {module}")])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
    if !found {
        shieling_testkit::prerequisite::skip(format!("python3-{module}"));
    }
    found
}

/// Whether this process runs as a user with a name, which some programs need.
#[expect(
    clippy::print_stderr,
    reason = "says what is not tried, and that is no missing program"
)]
fn has_a_name() -> bool {
    if shieling_testkit::is_user() {
        eprintln!("skipped as a user without a name, as whom neither ssh nor PostgreSQL starts");
    }
    !shieling_testkit::is_user()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn redis_cli_reaches_redis() {
    if !has("redis-server") || !has("redis-cli") {
        return;
    }
    let data = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let mut command = program("redis-server");
    command
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
        ])
        .arg(data.path());
    let redis = Daemon::start(port, &mut command);
    let place = redis.place();
    let client = format!("redis-cli -h host.internal -p {port}");
    assert_eq!(place.prints(&format!("{client} set a b; {client} get a")), "OK\nb");
    // Many commands on one connection, without waiting for the answers in between.
    let piped = place.prints(&format!("seq 10000 | sed 's/^/incrby sum /' | {client} | tail -n 1"));
    assert_eq!(piped, "50005000");
}

/// The directory of PostgreSQL's programs.
fn postgres() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    found.retain(|programs| programs.join("initdb").exists());
    found.sort();
    found.pop()
}

#[test]
fn psql_reaches_postgresql() {
    let Some(programs) = postgres() else {
        shieling_testkit::prerequisite::skip("postgresql");
        return;
    };
    if !has_a_name() {
        return;
    }
    let data = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(0o777)).expect("our own directory");
    let cluster = data.path().join("cluster");
    let by_user = |name: &str| {
        let path = programs.join(name);
        if !is_root() {
            return program(path.to_str().expect("a path in UTF-8"));
        }
        let mut command = program("setpriv");
        command
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .arg(path);
        command
    };
    let made = by_user("initdb")
        .arg("-D")
        .arg(&cluster)
        .args(["-A", "trust", "-U", "tester", "--no-sync"])
        .output()
        .expect("it is there");
    assert!(made.status.success(), "{made:?}");
    let port = free_port();
    let mut command = by_user("postgres");
    command
        .arg("-D")
        .arg(&cluster)
        .args([
            "-p",
            &port.to_string(),
            "-k",
            "",
            "-F",
            "-c",
            "listen_addresses=127.0.0.1",
        ])
        .stderr(Stdio::null());
    let server = Daemon::start(port, &mut command);
    let place = server.place();
    let psql = programs.join("psql");
    let query = |text: &str| {
        format!(
            "for i in $(seq 100); do {} -h host.internal -p {port} -U tester -d postgres -Atc '{text}' 2> error && exit; \
             grep -q 'starting up' error || break; sleep 0.1; done; cat error >&2; false",
            psql.display()
        )
    };
    assert_eq!(place.prints(&query("select 40 + 2")), "42");
    let rows = place.prints(&format!("({}) | tail -n 1", query("select generate_series(1, 100000)")));
    assert_eq!(rows, "100000");
}

/// Writes a file that only its owner reads.
fn secret_file(path: &Path, text: &[u8]) {
    std::fs::write(path, text).expect("our own file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("our own file");
}

#[test]
fn git_clones_and_pushes_over_ssh() {
    if !["git", "ssh", "ssh-keygen", "sshd"].iter().all(|name| has(name)) || !has_a_name() {
        return;
    }
    let outside = tempfile::tempdir().expect("a directory");
    let at = |name: &str| outside.path().join(name).display().to_string();
    for key in ["host", "client"] {
        let made = program("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])
            .status();
        assert!(made.is_ok_and(|status| status.success()), "a key is made");
    }
    std::fs::copy(at("client.pub"), at("authorized")).expect("our own file");
    if is_root() {
        std::fs::create_dir_all("/run/sshd").expect("root's");
    }
    let port = free_port();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n",
        at("host"),
        at("authorized")
    );
    std::fs::write(at("config"), config).expect("our own file");
    let made = program("git")
        .args(["init", "-q", "--bare", "-b", "main", &at("there.git")])
        .status();
    assert!(made.is_ok_and(|status| status.success()), "a repository is made");
    let sshd = Daemon::start(
        port,
        program("/usr/sbin/sshd")
            .args(["-D", "-f", &at("config")])
            .stderr(Stdio::null()),
    );
    let place = sshd.place();
    let key = std::fs::read(at("client")).expect("our own file");
    secret_file(&place.workspace.path().join("key"), &key);
    let user = String::from_utf8(program("id").arg("-un").output().expect("it is there").stdout).expect("a name");
    let there = format!("ssh://{}@host.internal:{port}{}", user.trim(), at("there.git"));
    let printed = place.prints(&format!(
        "export GIT_SSH_COMMAND='ssh -i key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known'; \
         git -c init.defaultBranch=main init -q one && cp -p key one/key && cd one && echo text > file && git add file && \
         git -c user.name=a -c user.email=a@b commit -qm first && git push -q {there} HEAD:main && \
         git clone -q {there} two && cat two/file"
    ));
    assert_eq!(printed, "text");
}

#[test]
fn pythons_http_clients_need_no_variable() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    let url = format!("http://{}/", server.host());
    for (module, text) in [
        (
            "requests",
            format!("import requests\nwith requests.Session() as s: print([s.get('{url}').text for _ in range(3)][2])"),
        ),
        ("httpx", format!("import httpx\nprint(httpx.get('{url}').text)")),
        (
            "aiohttp",
            format!(
                "import aiohttp, asyncio\nasync def main():\n  async with aiohttp.ClientSession() as s:\n    \
                 async with s.get('{url}') as r: print(await r.text())\nasyncio.run(main())"
            ),
        ),
    ] {
        if has_module(module) {
            std::fs::write(place.workspace.path().join("client.py"), &text).expect("our own file");
            assert_eq!(place.prints("/usr/bin/python3 client.py"), "served", "{module}");
        }
    }
}

#[test]
fn a_websocket_stays_open_in_both_directions() {
    if !has_module("websockets") {
        return;
    }
    let port = free_port();
    let server = format!(
        "import asyncio, websockets\nasync def echo(socket, *path):\n  async for message in socket: await socket.send(message[::-1])\n\
         async def main():\n  async with websockets.serve(echo, '127.0.0.1', {port}): await asyncio.Future()\nasyncio.run(main())"
    );
    let server = Daemon::start(
        port,
        program("/usr/bin/python3").args(["-c", &server]).stderr(Stdio::null()),
    );
    let place = server.place();
    let client = format!(
        "import asyncio, websockets\nasync def main():\n  async with websockets.connect('ws://host.internal:{port}/') as s:\n    \
         for text in ['one', 'x' * 500000 + 'y']:\n      await s.send(text)\n      assert await s.recv() == text[::-1]\n    \
         print('both')\nasyncio.run(main())"
    );
    std::fs::write(place.workspace.path().join("client.py"), client).expect("our own file");
    assert_eq!(place.prints("/usr/bin/python3 client.py"), "both");
}

#[test]
fn http_2_passes() {
    if !has("node") || !has("curl") {
        return;
    }
    let port = free_port();
    let server = format!(
        "require('http2').createServer((q, r) => {{ r.end(q.httpVersion + q.url) }}).listen({port}, '127.0.0.1')"
    );
    let server = Daemon::start(port, program("node").args(["-e", &server]));
    let place = server.place();
    let url = format!("http://host.internal:{port}");
    assert_eq!(
        place.prints(&format!("curl -sS --http2-prior-knowledge {url}/a")),
        "2.0/a"
    );
    // A hundred streams on one connection.
    let client = format!(
        "const c = require('http2').connect('{url}'); let left = 100, sum = 0; \
         for (let i = 0; i < 100; i++) {{ const s = c.request({{ ':path': '/' + i }}); let t = ''; \
         s.on('data', d => t += d); s.on('end', () => {{ sum += Number(t.slice(4)); if (!--left) {{ console.log(sum); c.close() }} }}) }}"
    );
    std::fs::write(place.workspace.path().join("client.js"), client).expect("our own file");
    assert_eq!(place.prints("node client.js"), "4950");
}

#[test]
fn gos_own_resolver_and_http_client_need_no_variable() {
    let Some(client) = go_client() else { return };
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    std::fs::copy(client, place.workspace.path().join("get")).expect("our own file");
    let url = format!("http://{}/", server.host());
    let printed = place.prints(&format!("./get {url} -; GODEBUG=netdns=go ./get {url} -"));
    assert_eq!(printed, "servedserved");
}
