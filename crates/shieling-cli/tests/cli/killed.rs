//! What commands wrote and Shieling had not judged when it was killed (`kill -9`): taken back all the same, and kept.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::mcp::Server;
use crate::support::Shieling;

/// What a command writes, in a repository.
const WRITES: &str = "printf '#!/bin/sh\\n' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; \
                      printf '[core]\\n\\tfsmonitor = ./x\\n' >>.git/config; echo x >.envrc; \
                      echo 'echo x' >deep/.git/hooks/post-checkout; mkdir .vscode; \
                      echo '{\"a.path\": \"./x\"}' >.vscode/settings.json; echo fine >kept";

/// A process that is killed at the end of a test, whatever comes of that.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until this is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn sh(place: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(place)
        .output()
        .expect("sh is there");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A place with two repositories, of this user if that is another.
fn place(user: Option<u32>) -> Shieling {
    let shieling = Shieling::in_workspace();
    let script = "git init -q .; git init -q deep; (echo '#!/bin/sh'; seq 20000) >.git/hooks/pre-push; chmod 755 .git/hooks/pre-push";
    sh(&shieling.workspace(), script);
    if let Some(user) = user {
        sh(&shieling.workspace(), &format!("chown -R {user}:{user} .."));
    }
    shieling
}

fn of(user: Option<u32>, mut command: Command) -> Command {
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
}

/// Has the command go on while Shieling is stopped, which sees nothing of it, and kills Shieling then.
fn kill(place: &Path, pid: u32) {
    until("it is ready", || place.join("ready").exists());
    // Its fourth descriptor is what it was told: the user's hook alone is longer.
    let told = |settler: &u32| fs::metadata(format!("/proc/{settler}/fd/4")).map_or(0, |told| told.len());
    until("what goes on knows what was there", || {
        settlers(pid).iter().any(|settler| told(settler) > 100_000)
    });
    sh(place, &format!("kill -STOP {pid}"));
    // Each of its threads stops by itself, and one that still runs would take back what is written now.
    let is_stopped = |thread: &Path| {
        let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    };
    until("all of it is stopped", || {
        let threads = fs::read_dir(format!("/proc/{pid}/task"))
            .expect("it is there")
            .flatten();
        threads.into_iter().all(|thread| is_stopped(&thread.path()))
    });
    sh(place, "touch go");
    until("it has written", || place.join("made").exists());
    assert!(place.join(".git/hooks/pre-commit").exists() && place.join(".envrc").exists());
    sh(place, &format!("kill -KILL {pid}"));
}

fn is_taken_back(shieling: &Shieling, user: Option<u32>) {
    let place = shieling.workspace();
    let gone = [
        ".git/hooks/pre-commit",
        ".envrc",
        "deep/.git/hooks/post-checkout",
        ".vscode/settings.json",
    ];
    until("it is taken back", || {
        gone.iter().all(|path| !place.join(path).exists())
    });
    until("settings are as they were", || {
        fs::read_to_string(place.join(".git/config")).is_ok_and(|config| !config.contains("fsmonitor"))
    });
    assert!(place.join("kept").exists() && place.join(".git/hooks/pre-push").exists());
    // The last is kept before it is taken back, and the set is finished after that.
    until("it is listed", || {
        let listed = of(user, shieling.command_of(["changes", "list"].map(str::to_owned))).output();
        let listed = listed.expect("the binary starts").stdout;
        String::from_utf8_lossy(&listed).contains("held back")
    });
}

fn texts() -> String {
    format!("touch ready; while [ ! -e go ]; do sleep 0.01; done; {WRITES}; touch made; sleep 1000")
}

fn users() -> Vec<Option<u32>> {
    let is_root = sh(Path::new("/"), "id -u").trim() == "0";
    if is_root { vec![None, Some(65_534)] } else { vec![None] }
}

#[test]
fn what_a_killed_exec_had_not_judged_is_taken_back() {
    for user in users() {
        let shieling = place(user);
        let mut command = of(user, shieling.command_of(["exec".to_owned(), texts()]));
        let mut child = Killed(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts"),
        );
        kill(&shieling.workspace(), child.0.id());
        child.0.wait().expect("it ends");
        is_taken_back(&shieling, user);
    }
}

#[test]
fn what_a_job_wrote_before_its_server_was_killed_is_taken_back_and_what_the_user_wrote_before_stays() {
    for user in users() {
        let shieling = place(user);
        let place = shieling.workspace();
        let command = of(user, shieling.command_of(["mcp".to_owned()]));
        let mut server = Server::start_by(shieling, command, json!({}));
        server.shell(json!({"command": "true"}));
        fs::write(place.join(".git/hooks/commit-msg"), "the user's").expect("written");
        let (_, outcome) = server.shell(json!({"command": "true"}));
        assert!(place.join(".git/hooks/commit-msg").exists(), "{user:?}: {outcome}");
        server.shell(json!({"command": texts(), "background": true}));
        kill(&place, server.pid());
        is_taken_back(&server.shieling, user);
        let users = fs::read_to_string(place.join(".git/hooks/commit-msg"));
        assert_eq!(users.ok().as_deref(), Some("the user's"), "{user:?}");
    }
}

#[test]
fn what_the_user_writes_while_nothing_runs_stays_when_the_server_is_killed() {
    let shieling = place(None);
    let place = shieling.workspace();
    let command = shieling.command_of(["mcp".to_owned()]);
    let mut server = Server::start_by(shieling, command, json!({}));
    server.shell(json!({"command": "true"}));
    fs::write(place.join(".git/hooks/commit-msg"), "the user's").expect("written");
    let pid = server.pid();
    until("what goes on has started", || settlers(pid).len() == 1);
    let settler = settlers(pid);
    sh(&place, &format!("kill -KILL {pid}"));
    until("it ends", || {
        settler.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
    assert!(place.join(".git/hooks/commit-msg").exists());
}

#[test]
fn nothing_is_left_once_all_is_settled() {
    let shieling = place(None);
    let place = shieling.workspace();
    let command = shieling.command_of(["mcp".to_owned()]);
    let mut server = Server::start_by(shieling, command, json!({}));
    server.shell(json!({"command": "true"}));
    until("what goes on has started", || settlers(server.pid()).len() == 1);
    let settler = settlers(server.pid());
    let (_shieling, exit, _, _) = server.end();
    assert_eq!(exit, Some(0));
    until("it ends", || {
        settler.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
    assert!(place.exists());
}

#[test]
fn nothing_is_committed_of_a_command_whose_supervisor_was_killed_and_what_it_made_waits() {
    for user in users() {
        let shieling = place(user);
        let text = "echo half >half; rm .git/hooks/pre-push; echo ready; sleep 1000";
        let words = ["exec", "--changes", "commit", text].map(str::to_owned);
        let mut command = of(user, shieling.command_of(words));
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Killed(command.spawn().expect("it starts"));
        let mut said = BufReader::new(child.0.stdout.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        assert_eq!(line, "ready\n", "{user:?}");
        let supervisors = children(child.0.id(), b"shieling-jail\0");
        let [supervisor] = supervisors[..] else {
            panic!("one supervisor: {supervisors:?}")
        };
        sh(&shieling.workspace(), &format!("kill -KILL {supervisor}"));
        assert_eq!(child.0.wait().expect("it ends").code(), Some(125));
        assert!(!shieling.workspace().join("half").exists(), "{user:?}");
        assert!(shieling.workspace().join(".git/hooks/pre-push").exists(), "{user:?}");
        let of_sets = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned());
            let done = of(user, shieling.command_of(words))
                .output()
                .expect("the binary starts");
            String::from_utf8_lossy(&done.stdout).into_owned()
        };
        let listed = of_sets(&["changes", "list"]);
        assert!(listed.contains("waiting"), "{user:?}: {listed}");
        let id = listed.split_whitespace().next().expect("an id");
        of_sets(&["changes", "apply", id]);
        assert!(shieling.workspace().join("half").exists(), "{user:?}");
    }
}

/// The processes that go on if this one is killed.
fn settlers(host: u32) -> Vec<u32> {
    children(host, b"shieling-settle\0")
}

/// The processes that this one started under a name.
fn children(host: u32, name: &[u8]) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("it is there").filter_map(Result::ok);
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_one = |pid: &u32| {
        let parent = format!("PPid:\t{host}\n");
        let is_child = fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains(&parent));
        is_child && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.starts_with(name))
    };
    numbers.filter(is_one).collect()
}
