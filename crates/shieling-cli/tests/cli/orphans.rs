//! Nothing goes on without `shieling mcp`, however that ends: its shells, its jobs, what they have left
//! running in sessions of their own, the processes of its sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling_testkit::random::Random;
use shieling_testkit::{Marker, leftovers};

use crate::support::Shieling;

/// How long what is left may take to go.
const GONE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// As by a crash, or by the kernel for want of memory.
    Killed,
    Terminated,
    HungUp,
    /// The client closes its end.
    Closed,
}

/// A server whose answers nobody reads.
struct Server {
    _place: Shieling,
    child: Child,
    stdin: ChildStdin,
    next: u64,
}

impl Server {
    fn start(environment: &str) -> Self {
        let place = Shieling::in_workspace().args(["mcp", "--env", environment, "--approval", "policy"]);
        let mut child = place
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let stdin = child.stdin.take().expect("piped");
        let mut server = Self {
            _place: place,
            child,
            stdin,
            next: 1,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        server.request("initialize", hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }

    fn request(&mut self, method: &str, params: Value) {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn shell(&mut self, arguments: Value) {
        self.request("tools/call", json!({"name": "shell", "arguments": arguments}));
    }

    /// Ends it so, and waits for that.
    fn end(self, how: End) {
        let Self {
            mut child,
            stdin,
            _place,
            ..
        } = self;
        let mut stdin = Some(stdin);
        let pid = rustix::process::Pid::from_child(&child);
        let signal = match how {
            End::Killed => Some(rustix::process::Signal::KILL),
            End::Terminated => Some(rustix::process::Signal::TERM),
            End::HungUp => Some(rustix::process::Signal::HUP),
            End::Closed => None,
        };
        match signal {
            Some(signal) => rustix::process::kill_process(pid, signal).expect("it runs"),
            None => drop(stdin.take()),
        }
        let begun = Instant::now();
        while child.try_wait().expect("it is ours").is_none() {
            if begun.elapsed() > Duration::from_secs(8) {
                child.kill().expect("it is ours");
                child.wait().expect("it ends");
                panic!("the server goes on after {how:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(stdin);
    }
}

/// All processes of the trees that marked ones stand in, each with the time of its start, which tells one
/// number's bearers apart. The trees hang on the system's first process, and not on the server.
fn trees(marker: &Marker) -> BTreeSet<(u32, String)> {
    let stat = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        (fields[0] != "Z").then(|| (fields[1].parse::<u32>().unwrap_or(0), fields[19].to_owned()))
    };
    let all: BTreeMap<u32, (u32, String)> = std::fs::read_dir("/proc")
        .expect("Linux with /proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect();
    let parent = |pid: u32| all.get(&pid).map(|(parent, _)| *parent).filter(|parent| *parent > 1);
    let root = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).last();
    let roots: BTreeSet<u32> = leftovers(marker).into_iter().filter_map(root).collect();
    let inside = |pid: &u32| root(*pid).is_some_and(|root| roots.contains(&root));
    all.iter()
        .filter(|(pid, _)| inside(pid))
        .map(|(pid, (_, start))| (*pid, start.clone()))
        .collect()
}

fn lives((pid, start): &(u32, String)) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|text| {
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        let mut fields = after.split_whitespace();
        fields.next() != Some("Z") && fields.nth(18) == Some(start)
    })
}

/// What is left of those, and of those with the mark, once it has had its time.
fn left(marker: &Marker, before: &BTreeSet<(u32, String)>) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let mut pids: Vec<u32> = before.iter().filter(|one| lives(one)).map(|(pid, _)| *pid).collect();
        pids.extend(leftovers(marker));
        if pids.is_empty() || begun.elapsed() > GONE {
            let line = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            return pids
                .iter()
                .map(|pid| format!("{pid} {}", line(pid).replace('\0', " ")))
                .collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Commands that hold on to life in all the ways that we know, and how many processes they mark.
fn stubborn(mark: &str) -> (Vec<Value>, usize) {
    let sleep = |name: &str| format!("exec -a {mark}{name} sleep 1000");
    let commands = vec![
        json!({"command": sleep("job"), "background": true}),
        json!({"command": sleep("terminal"), "tty": true, "background": true}),
        json!({"command": format!("trap '' HUP TERM INT; {}", sleep("deaf")), "background": true}),
        json!({"command": format!("(setsid bash -c '{}' &); true", sleep("daemon")), "session": "daemons"}),
        json!({"command": format!("({}) & disown", sleep("disowned")), "session": "disowned"}),
        json!({"command": format!("({})", sleep("running")), "session": "running", "timeout_ms": 600_000}),
        json!({"command": format!("({})", sleep("left")), "session": "left", "timeout_ms": 50}),
    ];
    let marked = commands.len();
    (commands, marked)
}

fn ends_with_everything(environment: &str, how: End) {
    let marker = Marker::new();
    let mut server = Server::start(environment);
    let (commands, marked) = stubborn(marker.text());
    for command in commands {
        server.shell(command);
    }
    let begun = Instant::now();
    while leftovers(&marker).len() < marked {
        let there = leftovers(&marker).len();
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{there} of {marked} have started"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = trees(&marker);
    assert!(before.len() > marked, "{before:?}");
    server.end(how);
    let left = left(&marker, &before);
    assert!(left.is_empty(), "{environment}, {how:?}: {left:#?}");
}

#[test]
fn nothing_is_left_of_local_however_the_server_ends() {
    for how in [End::Killed, End::Terminated, End::HungUp, End::Closed] {
        ends_with_everything("local", how);
    }
}

#[test]
fn nothing_is_left_of_a_sandbox_however_the_server_ends() {
    for how in [End::Killed, End::Terminated, End::HungUp, End::Closed] {
        ends_with_everything("sandbox", how);
    }
}

#[test]
fn nothing_is_left_whenever_the_server_is_killed() {
    let mut random = Random::new(0x5eed);
    for turn in 0..16 {
        let environment = if turn % 2 == 0 { "local" } else { "sandbox" };
        let marker = Marker::new();
        let mut server = Server::start(environment);
        for command in stubborn(marker.text()).0 {
            server.shell(command);
        }
        let moment = u64::try_from(random.below(400)).expect("small");
        std::thread::sleep(Duration::from_millis(moment));
        let before = trees(&marker);
        server.end(End::Killed);
        let left = left(&marker, &before);
        assert!(left.is_empty(), "{environment} after {moment} ms: {left:#?}");
    }
}
