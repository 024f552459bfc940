//! Whole transcripts of the command, as a person or a model would see them, reviewed like code.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::{Ran, Shieling, begun};

/// `exec` in `local`, where the policy is the one that decides.
fn exec(options: &[&str], command: &str) -> Shieling {
    exec_in(Shieling::in_workspace(), options, command)
}

fn exec_in(shieling: Shieling, options: &[&str], command: &str) -> Shieling {
    let shieling = shieling.args(["exec", "--env", "local"]);
    let asked = if options.contains(&"--approval") {
        &[][..]
    } else {
        &["--approval", "policy"]
    };
    shieling
        .args(asked.iter().chain(options).copied())
        .args(["--", command])
}

/// A repository with one commit, in which nothing depends on who runs the test.
fn repository() -> Shieling {
    let shieling = Shieling::in_workspace().file("notes.txt", "one\ntwo\n");
    let made = shieling
        .in_bash(
            "git init -q . && git add notes.txt && \
             git -c user.name=A -c user.email=a@example.com commit -q -m 'notes: begin'",
        )
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .status()
        .expect("git is there");
    assert!(made.success());
    shieling
}

fn page(cases: &[(&[&str], &str)]) -> String {
    let mut page = String::new();
    for (options, command) in cases {
        let ran = exec(options, command).run();
        page.push_str(&format!(
            "$ shieling exec {} -- {command:?}\n{ran}\n",
            options.join(" ")
        ));
    }
    page
}

#[test]
fn a_pipeline_that_only_reads_runs_under_readonly() {
    let shieling = repository();
    let index = |of: &Shieling| {
        std::fs::metadata(of.workspace().join(".git/index"))
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = index(&shieling);
    // A file that looks changed is what makes git rewrite its index while it reads.
    let touched = shieling.in_bash("touch -d '2020-01-01' notes.txt").status().unwrap();
    assert!(touched.success());
    let ran = exec_in(
        shieling,
        &["--readonly"],
        "git log --oneline | cut -d' ' -f2- | head -5; git status --short; git diff --stat; wc -l < notes.txt",
    );
    let transcript = ran.run();
    assert_eq!(index(&ran), before, "the index was rewritten");
    insta::assert_snapshot!(transcript, @r"
    exit: 0
    --- stdout
    notes: begin
    2
    --- stderr
    ");
}

#[test]
fn a_refusal_says_what_rule_why_and_what_instead() {
    insta::assert_snapshot!(page(&[
        (&["--readonly"], "rm notes.txt"),
        (&["--readonly"], "git log > log.txt"),
        (&["--deny", "git push"], "cd src && /usr/bin/git -C . push --force"),
        (&["--allow", "git log"], "git log | sort"),
        (&["--ignore", ".env"], "cat .env"),
    ]));
}

#[test]
fn without_somebody_to_ask_a_question_is_126() {
    insta::assert_snapshot!(page(&[
        (&["--readonly"], "python3 -c 'print(1)'"),
        (&["--approval", "always"], "true"),
        (&["--approval", "never", "--acknowledge-unsafe", "--readonly"], "make"),
    ]));
}

#[test]
fn hidden_files_that_cannot_be_hidden_are_asked_about() {
    let shieling = || {
        Shieling::in_workspace()
            .file(".env", "SECRET=1")
            .file("main.c", "int x;")
    };
    let ignored = exec_in(shieling(), &["--ignore", ".env"], "grep -r SECRET .");
    let page = format!(
        "{}\n{}",
        ignored.run(),
        exec_in(shieling(), &["--ignore", "*.pem"], "grep -r int .").run()
    );
    insta::assert_snapshot!(page);
}

#[test]
fn a_timeout_keeps_what_was_printed_and_ends_everything() {
    let before = Instant::now();
    let ran = exec(
        &["--timeout", "300ms"],
        "echo partial; (setsid sleep 77.25 &) ; sleep 77.25",
    )
    .run();
    assert!(before.elapsed() < Duration::from_secs(10));
    insta::assert_snapshot!(ran);
}

#[test]
fn what_is_left_in_the_background_is_ended_and_told() {
    insta::assert_snapshot!(exec(&[], "sleep 77.5 & echo started").run(), @r"
    exit: 0
    --- stdout
    started
    --- stderr
    stopped  1 process still ran when the command had ended, and was ended
    ");
}

#[test]
fn the_status_is_the_commands_own() {
    for (command, status) in [
        ("true", 0),
        ("false", 1),
        ("exit 124", 124),
        ("exit 255", 255),
        ("no-such-program-here", 127),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("kill -INT $$", 130),
    ] {
        assert_eq!(exec(&[], command).run().exit, Some(status), "{command}");
    }
}

#[test]
fn a_signal_is_told_by_its_name() {
    let ran = exec(&[], "kill -SEGV $$").run();
    assert_eq!(ran.exit, Some(139));
    assert!(
        ran.stderr.starts_with("ended by SIGSEGV: `kill -SEGV $$` after "),
        "{ran}"
    );
}

#[test]
fn long_output_keeps_head_and_tail_and_the_whole_of_it_can_be_read() {
    let shieling = exec(&["--max-output", "60"], "seq 1000");
    let ran = shieling.run();
    assert_eq!(ran.exit, Some(0));
    assert!(ran.stdout.contains("bytes left out"), "{ran}");
    assert!(
        ran.stdout.starts_with("1\n2\n") && ran.stdout.ends_with("999\n1000\n"),
        "{ran}"
    );
    let id = ran
        .stderr
        .split("shieling log output ")
        .nth(1)
        .expect("the id is told")
        .trim()
        .to_owned();
    let whole = shieling.again(["log", "output", &id]);
    assert_eq!(whole.stdout, (1..=1000).map(|n| format!("{n}\n")).collect::<String>());
    let piece = shieling.again(["log", "output", &id, "--cursor", "4", "--limit", "6"]);
    assert_eq!(
        (piece.stdout.as_str(), piece.stderr.as_str()),
        ("3\n4\n5\n", "output   goes on at --cursor 10\n")
    );
    let unknown = shieling.again(["log", "output", "0123456789abcdef0123"]);
    assert_eq!((unknown.exit, unknown.stdout.as_str()), (Some(125), ""));
}

#[test]
fn json_is_one_outcome_object_for_every_end() {
    let mut page = String::new();
    for (options, command) in [
        (&[][..], "printf 'a\\xffb'; echo err >&2; exit 3"),
        (&["--readonly"], "touch x"),
        (&["--readonly"], "python3 x.py"),
        (&["--timeout", "200ms"], "echo partial; sleep 77.75"),
        (&[], "kill -9 $$"),
    ] {
        let shieling = Shieling::in_workspace()
            .args(["exec", "--json", "--env", "local", "--approval", "policy"])
            .args(options.iter().copied())
            .args(["--", command]);
        let ran = shieling.run();
        assert_eq!(ran.stdout.matches('\n').count(), 1, "{ran}");
        page.push_str(&format!("$ {command}\n{}", ran.stdout.replace(',', ",\n  ")));
        page.push_str(&format!("exit {:?}, stderr {:?}\n\n", ran.exit, ran.stderr));
    }
    insta::assert_snapshot!(page);
}

#[test]
fn what_cannot_be_started_is_125_before_anything_starts() {
    let mut page = String::new();
    for (options, command) in [
        (&["--policy", "strictest"][..], "ls"),
        (&["--policy", "absent.toml"], "ls"),
        (&["--policy", "failing.toml"], "ls"),
        (&["--policy", "broken.toml"], "ls"),
        (&["--allow", "git log | sort"], "ls"),
        (&["--ignore", "[z-a]"], "ls"),
        (&["--timeout", "0"], "ls"),
        (&["--workspace", "absent"], "ls"),
        (&["--workspace", "failing.toml"], "ls"),
        (&["--shell", "/no/bash"], "ls"),
        (&["--audit", "absent/audit.jsonl"], "ls"),
        (&[], "  "),
    ] {
        let shieling = Shieling::in_workspace()
            .file(
                "failing.toml",
                "[[rule]]\nid = \"no-force\"\ndecision = \"deny\"\ncommand = \"git push --force\"\n\
                 match = [\n    \"git push --force\",\n    \"git push\",\n]\n",
            )
            .file("broken.toml", "[[rule]]\ndecision = \"perhaps\"\n");
        let ran = exec_in(shieling, options, command).run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{options:?}: {ran}");
        page.push_str(&format!(
            "$ shieling exec {} -- {command:?}\n{}\n",
            options.join(" "),
            ran.stderr
        ));
    }
    insta::assert_snapshot!(page);
}

#[test]
fn policy_check_shows_rule_example_and_line() {
    let shieling = Shieling::in_workspace()
        .file(
            "good.toml",
            "[[rule]]\nid = \"push\"\ndecision = \"ask\"\ncommand = \"git push\"\nmatch = [\"git -C x push\"]\n\
             not_match = [\"git pull\"]\n",
        )
        .file(
            "bad.toml",
            "[[rule]]\nid = \"push\"\ndecision = \"ask\"\ncommand = \"git push\"\nnot_match = [\"cd x; git push\"]\n",
        );
    let page: Vec<Ran> = [
        &["policy", "check", "good.toml"][..],
        &["policy", "check", "bad.toml"],
        &["policy", "show", "nothing"],
        &["policy", "show", "readonly"],
    ]
    .map(|args| shieling.again(args.iter().copied()))
    .into();
    insta::assert_snapshot!(page.iter().map(Ran::to_string).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_long_command_works() {
    // About as long as one argument of a program can be.
    for length in [60_000, 120_000] {
        let text = format!("x='{}'; echo ${{#x}}", "y".repeat(length));
        let ran = exec(&[], &text).run();
        let told = format!("{length}\n");
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Some(0), told.as_str()),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_workspace_that_goes_away_meanwhile_is_no_hang() {
    let ran = exec(
        &["--approval", "never", "--acknowledge-unsafe"],
        "rmdir \"$PWD\" && echo gone; ls",
    )
    .run();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), "gone\n"), "{ran}");
}

#[test]
fn a_shell_that_cannot_run_is_125() {
    let shieling = Shieling::in_workspace().file("shell", "not a program");
    let path = shieling.workspace().join("shell");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = exec_in(shieling, &["--shell", &path.to_string_lossy()], "echo no").run();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{ran}");
}

#[test]
fn the_log_has_an_intent_and_an_outcome_and_shows_what_was_changed() {
    let shieling = exec(&["--readonly", "--audit", "../audit.jsonl"], "echo one");
    assert_eq!(shieling.run().exit, Some(0));
    let denied = [
        "exec",
        "--env",
        "local",
        "--readonly",
        "--approval",
        "policy",
        "--audit",
        "../audit.jsonl",
        "rm x",
    ];
    assert_eq!(shieling.again(denied).exit, Some(126));
    let shown = shieling.again(["log", "show", "../audit.jsonl"]);
    let what: Vec<String> = shown
        .stdout
        .lines()
        .map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        what,
        [
            "intent allow echo one",
            "outcome exited 0 echo one",
            "denied by policy rm x"
        ],
        "{shown}"
    );
    assert_eq!(shieling.again(["log", "verify", "../audit.jsonl"]).exit, Some(0));
    let log = shieling.workspace().join("../audit.jsonl");
    let edited = std::fs::read_to_string(&log).unwrap().replace("echo one", "echo two");
    std::fs::write(&log, edited).unwrap();
    let broken = shieling.again(["log", "verify", "../audit.jsonl"]);
    assert_eq!(broken.exit, Some(1), "{broken}");
    assert!(
        broken.stdout.starts_with("broken: ../audit.jsonl:1 was edited"),
        "{broken}"
    );
}

#[test]
fn why_judges_as_each_environment_would() {
    let judged = |env: &str, options: &[&str], command: &str| {
        let shieling = Shieling::in_workspace()
            .args(["why", "--env", env])
            .args(options.iter().copied());
        shieling.args([command]).run().exit
    };
    for (options, command, local, sandbox, memory, container) in [
        (&["--readonly"][..], "ls", 0, 0, 0, 0),
        (&["--readonly"], "python3 x.py", 3, 0, 0, 0),
        (&["--readonly"], "rm x", 4, 4, 4, 4),
        (&["--allow", "ls"], "$x", 3, 0, 0, 3),
        (&["--allow", "ls"], "rm x", 4, 4, 4, 4),
        (&["--ignore", ".env"], "cat .e*", 3, 0, 0, 3),
        (&["--deny", "rm"], "$x", 3, 3, 3, 3),
    ] {
        let statuses = ["local", "sandbox", "memory", "container"].map(|env| judged(env, options, command));
        assert_eq!(
            statuses,
            [local, sandbox, memory, container].map(Some),
            "{options:?} {command}"
        );
    }
    let json = Shieling::in_workspace()
        .args(["why", "--json", "--readonly", "echo hi > x"])
        .run();
    insta::assert_snapshot!(json);
}

#[test]
fn why_without_an_environment_tells_what_holds_where_exec_runs() {
    let judged = |options: &[&str]| {
        let shieling = Shieling::in_workspace().args(["why"]).args(options.iter().copied());
        shieling.args(["--readonly", "python3", "x.py", "--json"]).run()
    };
    let ran = judged(&[]);
    assert_eq!(ran.exit, Some(3), "{ran}");
    let told = "judged   for `--env local`; for `--env sandbox`, where `exec` runs it: allow\n";
    assert!(ran.stdout.ends_with(told), "{ran}");
    let object: serde_json::Value = serde_json::from_str(&judged(&["--json"]).stdout).expect("an object");
    assert_eq!(object["environment"], "local");
    assert_eq!(
        object["exec"],
        serde_json::json!({"environment": "sandbox", "decision": "allow"})
    );
    let named = Shieling::in_workspace()
        .user_config("env = 'sandbox'")
        .args(["why", "--readonly", "python3", "x.py"])
        .run();
    assert!(named.exit == Some(0) && !named.stdout.contains("judged"), "{named}");
}

#[test]
fn why_says_that_what_bash_cannot_read_either_is_not_asked_about() {
    let ran = Shieling::in_workspace().args(["why", "echo ("]).run();
    assert!(
        ran.exit == Some(3) && ran.stdout.contains("it gives bash's error, and runs nothing"),
        "{ran}"
    );
}

#[test]
fn why_knows_what_the_sandbox_protects_as_exec_does() {
    // Without a place to keep what is taken back, names are protected by mounts.
    for (text, is_kept) in [
        ("git branch -m renamed", false),
        ("git branch -m renamed", true),
        ("rm -r sub", false),
        ("rm -r sub", true),
        ("git log --oneline", false),
    ] {
        let shieling = |verb: &'static str| {
            let shieling = Shieling::in_workspace().args([verb, "--env", "sandbox"]);
            if is_kept { shieling } else { shieling.without_state() }
        };
        let prepared = |shieling: Shieling| {
            let made = shieling.in_bash("git init -q . && git init -q sub").status();
            assert!(made.expect("it runs").success());
            shieling.args(text.split(' ').collect::<Vec<_>>()).run()
        };
        let (why, exec) = (prepared(shieling("why")), prepared(shieling("exec")));
        let denied = why.exit == Some(4);
        assert_eq!(denied, exec.exit == Some(126), "{text}: {why}{exec}");
        assert_eq!(denied, !is_kept && text != "git log --oneline", "{text}: {why}");
        for ran in [why, exec] {
            let told = format!("{}{}", ran.stdout, ran.stderr);
            assert_eq!(told.contains("protected"), denied, "{text}: {told}");
        }
    }
}

fn tell(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("it is not reaped");
}

#[test]
fn ending_shieling_ends_the_command() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let shieling = exec(&[], "exec setsid --wait sh -c 'echo $$; exec sleep 88.5'");
        let (mut child, _stdout, pid) = begun(shieling.command());
        tell(&child, signal);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + signal.as_raw()), "{:?}", status.signal());
        let gone = || !std::path::Path::new(&format!("/proc/{}/exe", pid.trim())).exists();
        let before = Instant::now();
        while !gone() && before.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(gone(), "{pid}");
    }
}

#[test]
fn a_command_that_is_told_to_stop_ends_in_good_order() {
    let started = |env: &str, text: &str| {
        let options = [
            "exec",
            "--env",
            env,
            "--approval",
            "never",
            "--acknowledge-unsafe",
            "--",
            text,
        ];
        let shieling = Shieling::in_workspace().args(options);
        let (child, stdout, line) = begun(shieling.command());
        assert_eq!(line, "up\n");
        (shieling, child, stdout)
    };
    let waits = "trap 'echo tidied; exit 7' TERM; echo up; while :; do sleep 0.02; done";
    for env in ["sandbox", "local"] {
        for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
            let (_shieling, mut child, mut stdout) = started(env, waits);
            tell(&child, signal);
            let mut rest = String::new();
            std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
            let status = child.wait().unwrap();
            assert_eq!((rest.as_str(), status.code()), ("tidied\n", Some(7)), "{env}");
        }
        // One that does not listen is ended by the second signal, before its time is over.
        let (_shieling, mut child, stdout) = started(env, "trap '' TERM; echo up; exec sleep 88.5");
        drop(stdout);
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            tell(&child, rustix::process::Signal::TERM);
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(status.code(), Some(143), "{env}: {:?}", begun.elapsed());
    }
}

#[test]
fn describe_and_doctor_tell_what_is_here() {
    let described = Shieling::in_workspace()
        .args(["describe", "--env", "local", "--readonly"])
        .run();
    assert_eq!(described.exit, Some(0), "{described}");
    for part in [
        "Environment  local:",
        "Shell        bash",
        "[PLACE]/work",
        "readonly: nothing may change",
    ] {
        assert!(described.stdout.contains(part), "{described}");
    }
    let json = Shieling::in_workspace()
        .args(["describe", "--env", "local", "--json"])
        .run();
    let data: serde_json::Value = serde_json::from_str(&json.stdout).expect("one JSON object");
    assert_eq!(
        (data["environment"].as_str(), data["asking"].as_str()),
        (Some("local"), Some("always")),
        "{json}"
    );
    let doctor = Shieling::in_workspace().args(["doctor"]).run();
    assert_eq!(doctor.exit, Some(0), "{doctor}");
    for layer in ["sandbox", "user", "seccomp", "limit.memory", "local"] {
        assert!(doctor.stdout.contains(&format!("\n{layer:<16} ok ")), "{doctor}");
    }
}
