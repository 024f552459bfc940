//! `--env container` with real engines: what a person, a script and an agent see of it, and that nothing is left.

use std::io::Read as _;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use shieling_remote::agent::Program;
use shieling_testkit::prerequisite;

use crate::afterwards::program;
use crate::mcp::Server;
use crate::support::{Ran, Shieling};

#[path = "../../../shieling-container/tests/container/engines.rs"]
#[expect(dead_code, reason = "the tests of the environment itself look at more")]
#[allow(clippy::unwrap_used, reason = "what helps tests fails as tests do")]
mod engines;

use engines::{BUSYBOX, Engine, Kind, TOOLS, engine, has_groups_of_second_version, number, turn};

/// An invocation whose engine is one of the tests' own. A rootless one is used as its user.
struct Invocation {
    engine: &'static Engine,
    shieling: Shieling,
}

impl Invocation {
    fn of(engine: &'static Engine) -> Self {
        let shieling = Shieling::in_workspace()
            .variable("DOCKER_HOST", &format!("unix://{}", engine.socket.display()))
            .variable("TERM", "dumb");
        Self { engine, shieling }
    }

    /// The words for a container of this image that this engine can make.
    fn words(&self, what: &str, image: &str, options: &[&str]) -> Vec<String> {
        let mut words = vec![what, "--env", "container", "--image", image, "--pull", "never"];
        if image == TOOLS {
            words.extend(["--volume", "/usr:/usr:ro"]);
        }
        if self.engine.kind == Kind::Rootless && !has_groups_of_second_version() {
            words.push("--unlimited");
        }
        words.extend(options);
        words.into_iter().map(str::to_owned).collect()
    }

    fn command(&self, what: &str, image: &str, options: &[&str]) -> Command {
        let words = self.words(what, image, options);
        let plain = self.shieling.command_of(words);
        let Some((uid, gid)) = user(self.engine) else {
            return plain;
        };
        let place = self.shieling.workspace().join("..");
        for entry in ["", "work", "home", "config", "state"] {
            chown(place.join(entry), Some(uid), Some(gid)).expect("we are root");
        }
        let mut command = Command::new("setpriv");
        command
            .args([
                format!("--reuid={uid}"),
                format!("--regid={gid}"),
                "--init-groups".to_owned(),
            ])
            .arg(program())
            .args(plain.get_args())
            .current_dir(self.shieling.workspace())
            .env_clear()
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    fn run(&self, options: &[&str]) -> Ran {
        self.fed("", options)
    }

    fn fed(&self, input: &str, options: &[&str]) -> Ran {
        let mut child = self
            .command("exec", BUSYBOX, options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        // It may not read its input.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
        drop(stdin);
        let output: Output = child.wait_with_output().expect("it ends");
        self.shieling.ran(&output)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.shieling.workspace().join(name), text).expect("room");
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.shieling.workspace().join(name)).ok()
    }
}

/// The user and the group of this host whose engine it is; nothing if that is root.
fn user(engine: &Engine) -> Option<(u32, u32)> {
    (engine.kind == Kind::Rootless).then(|| (number("-u"), number("-g")))
}

/// Each engine that can be had here, one test after the other.
fn each(test: impl Fn(&'static Engine)) {
    of(&Kind::ALL, test);
}

fn of(kinds: &[Kind], test: impl Fn(&'static Engine)) {
    if let Err(error) = Program::carried() {
        return prerequisite::skip(error);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("it can be made");
    let _turn = runtime.block_on(turn());
    for kind in kinds {
        let Some(engine) = engine(*kind) else { continue };
        test(engine);
        none_is_left(engine);
    }
}

fn none_is_left(engine: &Engine) {
    until("no container is left", || engine.containers().is_empty());
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn streams_and_statuses_are_those_of_the_command_and_its_container_is_closed_and_removed() {
    each(|engine| {
        let kind = engine.kind;
        let here = Invocation::of(engine);
        here.write("note", "of the user\n");
        let text =
            "cat; cat note; id -u; pwd; echo told >&2; echo x >note; touch /x; grep CapEff /proc/self/status; exit 7";
        let ran = here.fed("from here\n", &["--", text]);
        assert_eq!(ran.exit, Some(7), "{kind:?}: {ran}");
        let expected = "from here\nof the user\n65534\n/workspace\nCapEff:\t0000000000000000\n";
        assert_eq!(ran.stdout, expected, "{kind:?}: {ran}");
        assert!(ran.stderr.starts_with("told\n"), "{kind:?}: {ran}");
        assert_eq!(
            ran.stderr.matches("Read-only file system").count(),
            2,
            "{kind:?}: {ran}"
        );
        assert_eq!(here.read("note").as_deref(), Some("of the user\n"));
        assert_eq!(
            engine.containers(),
            Vec::<String>::new(),
            "{kind:?}: gone with its last word"
        );

        for (text, status) in [("kill -9 $$", 137), ("absent-program", 127), ("sh -c 'exit 255'", 255)] {
            let ran = here.run(&["--", text]);
            assert_eq!(ran.exit, Some(status), "{kind:?}: {text}: {ran}");
        }
        let outcome = here.run(&["--json", "--", "echo out; echo err >&2"]).outcome();
        assert_eq!(
            (&outcome["environment"], &outcome["stdout"], &outcome["stderr"]),
            (&json!("container"), &json!("out\n"), &json!("err\n")),
            "{kind:?}: {outcome}"
        );
        let enforced = outcome["confinement"]["enforced"].to_string();
        for layer in [
            "capabilities",
            "seccomp",
            "network",
            "root.readonly",
            "workspace.readonly",
        ] {
            assert!(enforced.contains(layer), "{kind:?}: {layer}: {enforced}");
        }
        // More than a pipe holds, whole and in order.
        let ran = here.run(&["--", "i=0; while [ $i -lt 30000 ]; do echo $i; i=$((i+1)); done"]);
        assert_eq!((ran.stdout.lines().count(), ran.exit), (30_000, Some(0)), "{kind:?}");
    });
}

#[test]
fn a_timeout_and_each_signal_end_the_command_and_its_container() {
    each(|engine| {
        let kind = engine.kind;
        let here = Invocation::of(engine);
        let begun = Instant::now();
        let ran = here.run(&["--timeout", "1s", "--", "echo on; sleep 600 & sleep 601"]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(124), "on\n"), "{kind:?}: {ran}");
        assert!(
            ran.stderr.contains("timed out") && begun.elapsed() < Duration::from_secs(20),
            "{ran}"
        );
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");

        // In good order, against its will with the second signal, and with no word of ours.
        let tidies = "trap 'echo tidied; exit 9' TERM; echo on; while :; do sleep 0.1; done";
        let stays = "trap '' TERM; echo on; while :; do sleep 0.1; done";
        for (text, signals, status) in [
            (tidies, &[Signal::INT][..], Some(9)),
            (tidies, &[Signal::TERM], Some(9)),
            (stays, &[Signal::TERM, Signal::TERM], Some(143)),
            (tidies, &[Signal::KILL], None),
        ] {
            let (mut child, mut stdout, line) = crate::support::begun(here.command("exec", BUSYBOX, &["--", text]));
            assert_eq!(line, "on\n", "{kind:?}");
            let begun = Instant::now();
            let pid = Pid::from_child(&child);
            let ended = loop {
                for signal in signals {
                    kill_process(pid, *signal).expect("it is not reaped");
                    std::thread::sleep(Duration::from_millis(300));
                }
                if let Some(status) = child.try_wait().expect("ours") {
                    break status;
                }
            };
            assert_eq!(
                ended.code(),
                status,
                "{kind:?}: {signals:?} after {:?}",
                begun.elapsed()
            );
            let mut rest = String::new();
            stdout.read_to_string(&mut rest).expect("text");
            assert_eq!(rest.contains("tidied"), status == Some(9), "{kind:?}: {rest}");
            none_is_left(engine);
        }
    });
}

#[test]
fn a_copied_workspace_stays_as_it_is_or_takes_what_was_changed() {
    each(|engine| {
        let kind = engine.kind;
        let here = Invocation::of(engine);
        here.write("note", "one\n");
        if let Some((uid, gid)) = user(engine) {
            chown(here.shieling.workspace().join("note"), Some(uid), Some(gid)).expect("we are root");
        }
        let text = "cat note; echo two >note; echo new >new; cat note";
        let ran = here.run(&["--workspace-copy", "in", "--", text]);
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Some(0), "one\ntwo\n"),
            "{kind:?}: {ran}"
        );
        assert_eq!(
            (here.read("note").as_deref(), here.read("new")),
            (Some("one\n"), None),
            "{kind:?}"
        );

        let ran = here.run(&["--workspace-copy", "both", "--", text]);
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Some(0), "one\ntwo\n"),
            "{kind:?}: {ran}"
        );
        assert_eq!(
            (here.read("note").as_deref(), here.read("new").as_deref()),
            (Some("two\n"), Some("new\n"))
        );
        let outcome = here
            .run(&["--workspace-copy", "both", "--json", "--", "rm new; exit 3"])
            .outcome();
        assert_eq!(
            (&outcome["exit_code"], &outcome["changes"]["state"]),
            (&json!(3), &json!("committed")),
            "{kind:?}: {outcome}"
        );
        assert_eq!(here.read("new"), None, "{kind:?}");
        let refused = here.run(&["--workspace-copy", "both", "--readonly", "--", "true"]);
        assert_eq!(refused.exit, Some(125), "{refused}");
    });
}

#[test]
fn what_was_hidden_in_a_copy_is_held_back_by_a_later_apply_as_well() {
    of(&[Kind::Docker], |engine| {
        let here = Invocation::of(engine);
        // A name that stands in the text would be denied.
        let text = "e=$(printf .%s env); echo theirs >$e; mkdir d; echo theirs >d/$e; echo new >new";
        let options = ["--workspace-copy", "both", "--ignore", ".env", "--json", "--", text];
        let outcome = here.run(&options).outcome();
        let changes = &outcome["changes"];
        assert_eq!(changes["state"], "committed", "{outcome}");
        let paths = |held: &serde_json::Value| -> Vec<String> {
            let held = held.as_array().expect("a list").iter();
            held.map(|held| held["path"].as_str().expect("a path").to_owned())
                .collect()
        };
        assert_eq!(paths(&changes["held_back"]), [".env", "d/.env"], "{outcome}");
        assert_eq!(here.read("new").as_deref(), Some("new\n"));
        let sets = here.shieling.again(["changes", "list", "--json"]).stdout;
        let sets: Vec<serde_json::Value> = sets
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let waits = sets.iter().find(|set| set["held_back"] != json!(0)).expect("a rest");
        let id = waits["id"].as_str().expect("an id");
        let shown = here.shieling.again(["changes", "show", id, "--json"]).stdout;
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(paths(&shown["held_back"]), [".env", "d/.env"], "{shown}");
        let applied = here.shieling.again(["changes", "apply", id]);
        assert!(applied.stdout.contains("`d/.env`: it is hidden"), "{applied}");
        assert_eq!((here.read(".env"), here.read("d/.env")), (None, None), "{applied}");
        let accepted = here
            .shieling
            .again(["changes", "apply", id, "--accept-held-back", "--only", "d/.env"]);
        assert_eq!(accepted.exit, Some(0), "{accepted}");
        assert_eq!(here.read("d/.env").as_deref(), Some("theirs\n"));
    });
}

#[test]
fn policies_are_judged_before_a_container_is_made_and_enforced_in_it() {
    of(&[Kind::Docker, Kind::Podman], |engine| {
        let kind = engine.kind;
        let here = Invocation::of(engine);
        let denied = here.run(&["--readonly", "--", "touch note"]);
        assert_eq!(denied.exit, Some(126), "{kind:?}: {denied}");
        let denied = here.run(&["--deny", "cat", "--", "echo a | cat"]);
        assert_eq!(
            (denied.exit, denied.stdout.as_str()),
            (Some(126), ""),
            "{kind:?}: {denied}"
        );
        assert!(denied.stderr.contains("denied"), "{denied}");
        // What reading does not decide is contained: the container lets nothing of this host change.
        let contained = here.run(&[
            "--readonly",
            "--writable",
            "--",
            "eval \"$(echo 'echo x >note')\"; echo on",
        ]);
        assert_eq!(contained.stdout, "on\n", "{kind:?}: {contained}");
        assert!(contained.stderr.contains("Read-only file system"), "{contained}");
        assert_eq!(here.read("note"), None);
        for options in [
            &["--isolation", "landlock"][..],
            &["--changes", "review"],
            &["--allow-host", "example.org"],
        ] {
            let refused = here.run(&[options, &["--", "true"]].concat());
            assert_eq!(refused.exit, Some(125), "{kind:?}: {options:?}: {refused}");
            assert!(refused.stderr.contains("nothing was started"), "{refused}");
        }
    });
}

#[test]
fn what_keeps_a_container_from_starting_is_told_with_what_to_do() {
    let tried = |host: &str, options: &[&str]| {
        let begun = Instant::now();
        let words = ["exec", "--env", "container", "--image", "x"];
        let ran = Shieling::in_workspace()
            .variable("DOCKER_HOST", host)
            .args(words)
            .args(options.iter().copied())
            .args(["--", "true"])
            .run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{host}: {ran}");
        assert!(ran.stderr.contains("nothing was started"), "{ran}");
        (ran.stderr, begun.elapsed())
    };
    let (told, _) = tried("unix:///nowhere/docker.sock", &[]);
    for part in [
        "no container engine answers",
        "DOCKER_HOST",
        "there is no such socket",
        "start Docker or Podman",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let place = tempfile::tempdir().expect("room");
    let _hangs = UnixListener::bind(place.path().join("s")).expect("room");
    let (told, took) = tried(&format!("unix://{}/s", place.path().display()), &[]);
    for part in [
        "has not answered the request for a sign of life within 5 s",
        "start Docker or Podman",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(took < Duration::from_secs(20), "{took:?}");
    of(&[Kind::Docker], |engine| {
        let here = Invocation::of(engine);
        let absent = here.run(&["--image", "localhost/absent:1", "--", "true"]);
        assert_eq!(absent.exit, Some(125), "{absent}");
        let missing = here
            .command("exec", "localhost/absent:1", &["--", "true"])
            .output()
            .expect("it starts");
        let missing = here.shieling.ran(&missing);
        assert_eq!(missing.exit, Some(125), "{missing}");
        assert!(
            missing.stderr.contains("there is no image `localhost/absent:1`") && missing.stderr.contains("--pull auto"),
            "{missing}"
        );
    });
}

#[test]
fn a_person_works_in_a_container_on_a_terminal() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    of(&[Kind::Docker, Kind::Podman], |engine| {
        let here = Invocation::of(engine);
        let steps = json!([
            ["$ ", "echo $((40+2)); touch /outside; tty\n"],
            ["outside", ""],
            ["$ ", "sh -c \"echo rea''dy; exec sleep 600\"\n"],
            ["ready", "\u{3}"],
            ["$ ", "exit 3\n"],
        ]);
        let words = here.words("shell", TOOLS, &[]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let told = crate::support::told(here.shieling.beside(&words, &steps));
        assert_eq!(told["status"], 3, "{:?}: {told}", engine.kind);
        let output = told["output"].as_str().expect("a text");
        assert!(
            output.contains("\n42\r\n") && output.contains("Read-only file system"),
            "{output}"
        );
    });
}

/// An agent's server of this engine.
fn server(engine: &'static Engine, options: &[&str]) -> Server {
    let here = Invocation::of(engine);
    let command = here.command("mcp", TOOLS, options);
    Server::start_by(here.shieling, command, json!({}))
}

#[test]
fn an_agent_works_in_a_container_which_ends_with_its_server() {
    each(|engine| {
        let kind = engine.kind;
        let mut of = server(engine, &[]);
        let (text, _) = of.shell(json!({"command": "cd /tmp; x=3; echo kept >file; id -u"}));
        assert_eq!(text, "65534\n", "{kind:?}");
        let (text, outcome) = of.shell(json!({"command": "pwd; echo $x; cat file; touch /workspace/x; exit 5"}));
        assert!(text.starts_with("/tmp\n3\nkept\n"), "{kind:?}: {text}");
        assert_eq!(outcome["exit_code"], 5, "{kind:?}: {outcome}");
        let (_, exit, ..) = of.end();
        assert_eq!(exit, Some(0), "{kind:?}");
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");

        let mut of = server(engine, &[]);
        let (text, _) = of.shell(json!({"command": "echo on", "session": ""}));
        assert_eq!(text, "on\n", "{kind:?}");
        let pid = i32::try_from(of.pid()).ok().and_then(Pid::from_raw).expect("a number");
        kill_process(pid, Signal::KILL).expect("it runs");
        none_is_left(engine);
    });
}

#[test]
fn an_agent_has_a_new_container_for_each_command_where_that_is_asked() {
    of(&[Kind::Docker, Kind::Podman], |engine| {
        let kind = engine.kind;
        let mut of = server(engine, &["--per-command"]);
        let text = "cat /tmp/x; echo left >/tmp/x; cat note; cat /proc/sys/kernel/hostname";
        std::fs::write(of.workspace().join("note"), "of the user\n").expect("room");
        let mut names = std::collections::BTreeSet::new();
        for call in [json!({"command": text}), json!({"command": text, "session": ""})] {
            let (_, outcome) = of.shell(call);
            assert_eq!(outcome["session"], json!(null), "{kind:?}: {outcome}");
            let stdout = outcome["stdout"]
                .as_str()
                .unwrap_or_else(|| panic!("{kind:?}: {outcome}"));
            let name = stdout
                .strip_prefix("of the user\n")
                .unwrap_or_else(|| panic!("{kind:?}: {outcome}"));
            names.insert(name.to_owned());
        }
        assert_eq!(names.len(), 2, "{kind:?}: {names:?}");
        for name in ["main", "other"] {
            let (told, _) = of.shell(json!({"command": "true", "session": name}));
            assert!(told.contains("there are no sessions here"), "{kind:?}: {told}");
        }
        let (_, exit, ..) = of.end();
        assert_eq!(exit, Some(0), "{kind:?}");
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");
        let here = Invocation::of(engine);
        let refused = here.run(&["--per-command", "--workspace-copy", "both", "--", "true"]);
        assert_eq!(refused.exit, Some(125), "{refused}");
        assert!(
            refused
                .stderr
                .contains("`--per-command` does not go with `--workspace-copy`"),
            "{refused}"
        );
    });
}

/// The value of a field of `/proc/PID/status`, in KiB.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_flood_of_output_does_not_grow_what_shieling_holds() {
    of(&[Kind::Docker, Kind::Podman], |engine| {
        let here = Invocation::of(engine);
        let peak = |text: &str| {
            let mut child = here
                .command("exec", BUSYBOX, &["--max-output", "64KiB", "--json", "--", text])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            let status = Path::new("/proc").join(child.id().to_string()).join("status");
            let mut stdout = child.stdout.take().expect("piped");
            let reading = std::thread::spawn(move || {
                let mut text = String::new();
                stdout.read_to_string(&mut text).expect("text");
                text
            });
            let mut peak = 0;
            while child.try_wait().expect("ours").is_none() {
                let now = std::fs::read_to_string(&status).unwrap_or_default();
                peak = peak.max(field(&now, "VmHWM").unwrap_or(0));
                std::thread::sleep(Duration::from_millis(5));
            }
            let text = reading.join().expect("no panic");
            let outcome: Value = serde_json::from_str(&text).expect("an outcome");
            assert_eq!(outcome["exit_code"], 0, "{outcome}");
            peak
        };
        let (little, much) = (peak("echo on"), peak("dd if=/dev/zero bs=1M count=300 2>/dev/null"));
        assert!(
            much < little + (24 << 10),
            "{:?}: {much} KiB after {little} KiB",
            engine.kind
        );
    });
}
