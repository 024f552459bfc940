//! What is asked on the command line, as the kernel enforces it: each with its neighbour, that works.

use std::os::unix::fs::FileExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use shieling_testkit::prerequisite;

use crate::support::{Ran, Shieling};

fn exec(options: &[&str], command: &str) -> Shieling {
    exec_in(Shieling::in_workspace(), options, command)
}

fn exec_in(shieling: Shieling, options: &[&str], command: &str) -> Shieling {
    shieling
        .args(["exec"])
        .args(options.iter().copied())
        .args(["--", command])
}

fn ok(ran: &Ran) -> bool {
    ran.exit == Some(0)
}

#[test]
fn without_a_word_commands_run_in_a_sandbox_that_lacks_nothing() {
    let shieling = exec(&["--json"], "pwd; touch inside && touch /usr/outside");
    let ran = shieling.run();
    let outcome = ran.outcome();
    assert_eq!(outcome["environment"], "sandbox", "{ran}");
    assert_eq!(outcome["confinement"]["missing"], Value::Array(Vec::new()), "{ran}");
    let enforced = outcome["confinement"]["enforced"].as_array().expect("a list");
    for layer in ["user", "mount", "pid", "network", "landlock", "seccomp"] {
        assert!(enforced.iter().any(|held| held == layer), "{layer}: {ran}");
    }
    assert_eq!(outcome["stdout"], "[PLACE]/work\n", "{ran}");
    assert!(
        outcome["stderr"]
            .as_str()
            .is_some_and(|text| text.contains("Read-only file system")),
        "{ran}"
    );
    assert!(shieling.workspace().join("inside").exists());
}

#[test]
fn readonly_is_held_by_the_kernel_where_the_text_cannot_be_judged() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let write = "python3 -c \"open('x', 'w')\"";
    let shieling = exec(&["--readonly"], write);
    let ran = shieling.run();
    assert!(ran.stderr.contains("Read-only file system"), "{ran}");
    assert!(!shieling.workspace().join("x").exists());
    let shieling = exec(&[], write);
    assert!(ok(&shieling.run()) && shieling.workspace().join("x").exists());
}

#[test]
fn hidden_files_do_not_exist_and_others_do() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let place = || {
        Shieling::in_workspace()
            .file(".env", "SECRET=1\n")
            .file("main.c", "int SECRET;\n")
    };
    let search = "grep -r SECRET . ; python3 -c \"print(open('.e' + 'nv').read())\"";
    let ran = exec_in(place(), &["--ignore", ".env"], search).run();
    assert_eq!(ran.stdout, "./main.c:int SECRET;\n", "{ran}");
    assert!(ran.stderr.contains("No such file or directory"), "{ran}");
    let ran = exec_in(place(), &[], search).run();
    assert!(ran.stdout.contains("SECRET=1"), "{ran}");
}

#[test]
fn only_what_is_allowed_is_there_to_execute() {
    let run = "x=touch; $x made; echo done";
    let shieling = exec(&["--allow", "echo"], run);
    let ran = shieling.run();
    assert!(!shieling.workspace().join("made").exists(), "{ran}");
    let shieling = exec(&["--allow", "echo", "--allow", "touch"], run);
    let ran = shieling.run();
    assert!(shieling.workspace().join("made").exists(), "{ran}");
}

#[test]
fn more_can_be_read_if_it_is_asked_for() {
    for (options, seen) in [
        (&[][..], false),
        (&["--read", "../shown"], true),
        (&["--read", "../work/../shown"], true),
        (&["--read", "../other"], false),
    ] {
        let shieling = Shieling::in_workspace();
        for name in ["shown", "other"] {
            let directory = shieling.workspace().join("..").join(name);
            std::fs::create_dir(&directory).expect("it can be made");
            std::fs::write(directory.join("file"), name).expect("it can be written");
        }
        let ran = exec_in(shieling, options, "cat ../shown/file && ! touch ../shown/new").run();
        assert_eq!(ok(&ran), seen, "{options:?}: {ran}");
    }
    let ran = exec(&["--read", "../absent"], "true").run();
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(ran.stderr.contains("absent"), "{ran}");
}

#[test]
fn a_loopback_is_there_unless_none_is_asked_for_and_nothing_else_is() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let serve =
        "import socket as s; l = s.create_server(('127.0.0.1', 0)); s.create_connection(l.getsockname()); print('met')";
    let none: &[&str] = &["--network", "none"];
    for (options, met) in [(none, false), (&["--network", "loopback"], true), (&[], true)] {
        let ran = exec(options, &format!("python3 -c \"{serve}\"")).run();
        assert_eq!(ran.stdout == "met\n", met, "{options:?}: {ran}");
        let ran = exec(options, "cat /proc/net/dev | tail -n +3 | cut -d: -f1").run();
        assert_eq!(ran.stdout.trim(), "lo", "{options:?}: {ran}");
    }
}

#[test]
fn a_low_port_can_be_served_as_root_serves_it_outside() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let serve = "import socket as s; l = s.create_server(('127.0.0.1', 80)); \
                 s.create_connection(('127.0.0.1', 80)); print('met')";
    let ran = exec(&[], &format!("python3 -c \"{serve}\"")).run();
    assert_eq!(ran.stdout, "met\n", "{ran}");
}

#[test]
fn a_failure_for_want_of_a_network_names_the_option_and_no_more_time() {
    let ran = exec(&[], "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6").run();
    assert_eq!(ran.exit, Some(6), "{ran}");
    assert!(ran.stderr.contains("`--network host`"), "{ran}");
    let late = "echo 'npm error code EAI_AGAIN' >&2; sleep 30";
    let ran = exec(&["--timeout", "1s"], late).run();
    assert_eq!(ran.exit, Some(124), "{ran}");
    assert!(
        ran.stderr.contains("`--network host`") && !ran.stderr.contains("--timeout"),
        "{ran}"
    );
    let ran = exec(&["--timeout", "1s"], "sleep 30").run();
    assert!(
        ran.stderr.contains("--timeout") && !ran.stderr.contains("--network"),
        "{ran}"
    );
}

#[test]
fn a_process_that_died_of_the_memory_limit_is_told_whatever_the_status_is() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let eats = "python3 -c 'x = b\"x\" * (400 << 20)'";
    for (text, exit) in [
        (format!("{eats}; echo on"), 0),
        (format!("{eats} | cat"), 0),
        (format!("{eats}; exit 7"), 7),
        (format!("exec {eats}"), 137),
    ] {
        let ran = exec(&["--memory", "128MiB"], &text).run();
        assert_eq!(ran.exit, Some(exit), "{text}: {ran}");
        // On a busy machine it may die before anybody has seen its name.
        for told in ["the limit of 128 MiB was reached", "was killed", "`--memory 256MiB`"] {
            assert!(ran.stderr.contains(told), "{text}: {told}: {ran}");
        }
    }
    let ran = exec(&["--memory", "128MiB", "--json"], &format!("{eats}; true")).run();
    for told in [
        "\"limits_hit\":[{\"limit\":\"memory\",\"bound\":134217728",
        "\"instead\":\"--memory 256MiB\"",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {ran}");
    }
    let ran = exec(&["--memory", "128MiB"], "true").run();
    assert_eq!(ran.stderr, "", "{ran}");
}

#[test]
fn a_hidden_file_that_git_tracks_and_a_command_staged_is_told_with_what_takes_it_back() {
    let made = "git init -q . && git config user.name x && git config user.email x@example.org && mkdir keys && echo \
                SECRET > .env && echo KEY > keys/one && echo x > f && git add -A && git commit -qm first";
    for (text, cure) in [
        ("git add -A", "git reset -q"),
        ("echo y > f && git commit -qam second", "git reset -q HEAD~1"),
    ] {
        let shieling = exec(&["--ignore", ".env", "--ignore", "keys"], text);
        assert!(shieling.in_bash(made).status().expect("it runs").success());
        let ran = shieling.run();
        assert!(ran.stderr.contains("`.env`, `keys/one`"), "{text}: {ran}");
        assert!(ran.stderr.contains(&format!("`{cure}`")), "{text}: {ran}");
        let again = |text: &str| shieling.again(["exec", "--ignore", ".env", "--ignore", "keys", "--", text]);
        let cured = again(cure);
        assert!(
            cured.exit == Some(0) && !cured.stderr.contains(".env"),
            "{text}: {cured}"
        );
        let mut left = shieling
            .in_bash("git diff HEAD --exit-code .env keys && git ls-files -s .env keys | grep -c ^100644; cat .env");
        let left = String::from_utf8(left.output().expect("it runs").stdout).expect("text");
        assert_eq!(left, "2\nSECRET\n", "{text}");
        // What touches neither says nothing.
        let quiet = again("echo z > f && git add f && git commit -qm third");
        assert_eq!((quiet.exit, quiet.stderr.as_str()), (Some(0), ""), "{quiet}");
    }
}

#[test]
fn a_file_that_would_become_too_large_is_told_with_its_limit_whatever_the_status_is() {
    for (text, exit) in [
        ("head -c 3MB /dev/zero > f", 153),
        ("head -c 3MB /dev/zero > f; true", 0),
        ("trap '' XFSZ; head -c 3MB /dev/zero > f", 1),
        ("trap '' XFSZ; (head -c 3MB /dev/zero > f) 2>&1", 1),
    ] {
        for env in ["sandbox", "local"] {
            let options = ["--env", env, "--approval", "policy", "--file-size", "1MiB"];
            let ran = exec(&options, text).run();
            assert_eq!(ran.exit, Some(exit), "{env}: {text}: {ran}");
            for told in ["the limit of 1 MiB", "`--file-size 2MiB`"] {
                assert!(ran.stderr.contains(told), "{env}: {text}: {told}: {ran}");
            }
        }
    }
    let ran = exec(&["--file-size", "1MiB", "--json"], "head -c 3MB /dev/zero > f; true").run();
    let told = "\"limits_hit\":[{\"limit\":\"file_size\",\"bound\":1048576";
    assert!(ran.stdout.contains(told), "{ran}");
    let ran = exec(&["--file-size", "4MiB"], "head -c 3MB /dev/zero > f").run();
    assert_eq!(ran.stderr, "", "{ran}");
}

#[test]
fn a_directory_in_memory_that_is_full_is_told_with_what_it_holds() {
    // Memory that is a disk: 256 MiB of it.
    let ran = exec(&[], "head -c 300MB /dev/zero > /dev/shm/x").run();
    assert_eq!(ran.exit, Some(1), "{ran}");
    for told in ["`/dev/shm` holds 256 MiB", "`TMPDIR`"] {
        assert!(ran.stderr.contains(told), "{told}: {ran}");
    }
    let ran = exec(&["--json"], "head -c 300MB /dev/zero > /dev/shm/x").run();
    assert!(ran.stdout.contains("\"kind\":\"no_space\""), "{ran}");
}

#[test]
fn the_home_is_private_and_its_variables_say_where_it_is() {
    let shieling = exec(&[], "echo $HOME; touch ~/x && ls -A ~/.ssh");
    let secret = shieling.workspace().join("../home/.ssh");
    std::fs::create_dir(&secret).expect("it can be made");
    std::fs::write(secret.join("id"), "key").expect("it can be written");
    let ran = shieling.run();
    assert_eq!(ran.stdout, "[PLACE]/home\n", "{ran}");
    assert!(ran.stderr.contains("No such file or directory"), "{ran}");
    assert!(!shieling.workspace().join("../home/x").exists());
    let ran = exec(&["--set-env", "HOME=/tmp"], "echo ~").run();
    assert_eq!(ran.stdout, "/tmp\n", "{ran}");
}

#[test]
fn what_runs_code_later_is_taken_back_unless_it_is_opened() {
    let hook = "echo evil > .git/hooks/pre-commit";
    for (options, written) in [(&[][..], false), (&["--open-protected"], true)] {
        let shieling = exec(options, hook);
        assert!(
            shieling
                .in_bash("git init -q .")
                .status()
                .is_ok_and(|status| status.success())
        );
        let ran = shieling.run();
        assert!(
            ok(&ran) && ran.stderr.contains("held     ") != written,
            "{options:?}: {ran}"
        );
        assert_eq!(shieling.workspace().join(".git/hooks/pre-commit").exists(), written);
        assert!(ok(&shieling.again([
            "exec",
            "--",
            "git status --short && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m x"
        ])));
    }
}

#[test]
fn nothing_of_ours_stays_in_the_workspace() {
    let shieling = exec(&[], "true");
    assert!(ok(&shieling.run()));
    let left = std::fs::read_dir(shieling.workspace()).expect("it is there").count();
    assert_eq!(left, 0);
}

#[test]
fn running_out_of_memory_is_told_with_the_limit() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let ran = exec(&["--memory", "128MiB"], "python3 -c 'bytearray(1 << 30)'").run();
    // The rest says who was killed, with a number and a size of the day.
    let told: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with("memory ")).collect();
    assert_eq!(ran.exit, Some(137), "{ran}");
    insta::assert_snapshot!(told.join("\n"));
    let fits = exec(&["--memory", "512MiB"], "python3 -c 'bytearray(64 << 20)'").run();
    assert!(ok(&fits), "{fits}");
}

#[test]
fn the_number_of_processes_is_limited() {
    let many = "for i in $(seq 60); do sleep 5 & done 2> errors; wc -l < errors";
    let ran = exec(&["--pids", "20"], many).run();
    assert!(ran.stdout.is_empty() || ran.stdout.trim() != "0", "{ran}");
    let ran = exec(&["--pids", "200"], many).run();
    assert_eq!(ran.stdout.trim(), "0", "{ran}");
}

#[test]
fn files_of_ours_are_kept_out_of_it() {
    let mut page = String::new();
    for (options, variable) in [
        (&["--audit", "audit.jsonl"][..], None),
        (&["--audit", "../link/audit.jsonl"], None),
        (&["--read", "..", "--audit", "../audit.jsonl"], None),
        (&["--isolation", "landlock"], Some("work/state")),
    ] {
        let mut shieling = exec(options, "touch canary");
        std::os::unix::fs::symlink("work", shieling.workspace().join("../link")).expect("linked");
        if let Some(state) = variable {
            let state = shieling.workspace().join("..").join(state);
            shieling = shieling.variable("XDG_STATE_HOME", &state.to_string_lossy());
        }
        let ran = shieling.run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{options:?}: {ran}");
        assert!(!shieling.workspace().join("canary").exists(), "{options:?}");
        page.push_str(&format!("$ shieling exec {}\n{}\n", options.join(" "), ran.stderr));
    }
    insta::assert_snapshot!(page.replace("work/../", ""));
    assert!(ok(&exec(&["--audit", "../audit.jsonl"], "true").run()));
    // With a view of its own, the directory of ours is hidden where it stands.
    let shieling = exec(&[], "ls -A state/shieling; echo x > state/shieling/mine");
    let state = shieling.workspace().join("state");
    let ran = shieling.variable("XDG_STATE_HOME", &state.to_string_lossy()).run();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{ran}");
}

#[test]
fn the_lesser_tier_says_what_it_lacks_and_refuses_what_it_cannot_do() {
    let ran = exec_in(
        Shieling::in_workspace().without_state(),
        &["--isolation", "landlock", "--json"],
        "touch inside && ! touch /var/outside",
    )
    .run();
    let outcome = ran.outcome();
    assert_eq!(outcome["exit_code"], 0, "{ran}");
    let missing = outcome["confinement"]["missing"].as_array().expect("a list");
    assert!(missing.iter().any(|layer| layer == "mount"), "{ran}");
    let mut page = String::new();
    for options in [
        &["--isolation", "landlock", "--ignore", ".env"][..],
        &["--isolation", "landlock", "--network", "loopback"],
    ] {
        let ran = exec_in(Shieling::in_workspace().without_state(), options, "true").run();
        assert_eq!(ran.exit, Some(125), "{ran}");
        page.push_str(&format!("$ shieling exec {}\n{}\n", options.join(" "), ran.stderr));
    }
    insta::assert_snapshot!(page);
}

#[test]
fn a_timeout_ends_everything_in_it() {
    let ran = exec(
        &["--timeout", "300ms"],
        "echo partial; (setsid sleep 77.25 &) ; sleep 77.25",
    )
    .run();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(124), "partial\n"), "{ran}");
}

#[test]
fn describe_starts_it_and_tells_its_limits() {
    let ran = Shieling::in_workspace()
        .args(["describe", "--memory", "1GiB", "--pids", "99"])
        .run();
    assert!(ok(&ran), "{ran}");
    for part in [
        "Environment  sandbox:",
        "Network      loopback",
        "1 GiB of memory, 99 processes",
        "seccomp",
        "60 s a command",
        "With `shieling exec` a command may take 10 min.",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran}");
    }
    let ran = Shieling::in_workspace().args(["describe", "--timeout", "90s"]).run();
    assert!(
        ran.stdout.contains("90 s a command") && !ran.stdout.contains("shieling exec"),
        "{ran}"
    );
}

#[test]
fn describe_finds_every_tool_that_is_there() {
    if !prerequisite::has(&["git", "python3", "make", "gcc"]) {
        return;
    }
    let ran = Shieling::in_workspace().args(["describe", "--json"]).run();
    let described: Value = serde_json::from_str(&ran.stdout).expect("an object");
    for tool in ["git", "python3", "make", "gcc"] {
        let found = described["tools"].as_array().expect("a list").iter();
        assert!(found.clone().any(|found| found["name"] == tool), "{tool}: {ran}");
    }
}

#[test]
fn a_hidden_file_is_not_committed_by_adding_all() {
    if !prerequisite::has(&["git"]) {
        return;
    }
    let place = Shieling::in_workspace()
        .file(".env", "SECRET=1\n")
        .file("Keys.PEM", "SECRET\n")
        .file("a [x].txt", "1\n");
    let add = "git init -q && git add -A && git ls-files && git status --short";
    let hidden = ["--ignore", ".env", "--ignore", "*.pem"];
    let ran = exec_in(place, &hidden, add).run();
    assert_eq!(ran.stdout, "a [x].txt\nA  \"a [x].txt\"\n", "{ran}");
}

#[test]
fn an_outcome_in_json_says_also_why_nothing_started() {
    for wrong in [["--workspace", "nowhere"], ["--policy", "nowhere.toml"]] {
        let ran = exec(&["--json", wrong[0], wrong[1]], "true").run();
        assert_eq!(ran.exit, Some(125), "{ran}");
        let outcome = ran.outcome();
        assert_eq!(outcome["status"], "failed", "{ran}");
        let error = outcome["error"].as_str().expect("why");
        assert!(ran.stderr.contains(error), "{ran}");
    }
}

#[test]
fn what_tools_of_the_user_would_run_is_taken_back_and_told_and_can_be_accepted() {
    let tasks = r#"{"tasks":[{"command":"x","runOptions":{"runOn":"folderOpen"}}]}"#;
    let text = &format!("mkdir .vscode && echo '{tasks}' > .vscode/tasks.json && echo made");
    let shieling = exec(&["--json"], text);
    let ran = shieling.run();
    let changes = &ran.outcome()["changes"];
    assert_eq!(changes["mode"], "direct", "{ran}");
    let held = changes["held_back"].as_array().expect("a list");
    assert_eq!(
        (held.len(), &held[0]["path"]),
        (1, &Value::from(".vscode/tasks.json")),
        "{ran}"
    );
    let id = changes["id"].as_str().expect("an id");
    let instead = held[0]["instead"].as_str().unwrap_or_default();
    let apply = format!("shieling changes apply {id} --accept-held-back --only .vscode/tasks.json");
    assert!(instead.contains(&apply), "{ran}");
    assert!(!shieling.workspace().join(".vscode/tasks.json").exists());
    let shown = shieling.again(["changes", "show", id]);
    assert!(ok(&shown) && shown.stdout.contains("folderOpen"), "{shown}");
    let applied = shieling.again(apply.split(' ').skip(1));
    assert!(
        ok(&applied) && shieling.workspace().join(".vscode/tasks.json").exists(),
        "{applied}"
    );

    let ran = exec(&[], text).run();
    assert!(ok(&ran) && ran.stdout == "made\n", "{ran}");
    assert!(ran.stderr.starts_with("held     `.vscode/tasks.json`: "), "{ran}");
    let ran = exec(
        &["--json"],
        "mkdir .other .vscode; echo '{\"editor.tabSize\": 2}' >.vscode/settings.json",
    )
    .run();
    assert_eq!(ran.outcome()["changes"], Value::Null, "{ran}");
    let shieling = exec(&["--open-protected"], text);
    assert!(ok(&shieling.run()) && shieling.workspace().join(".vscode/tasks.json").exists());
}

#[test]
fn a_repository_outside_is_shown_if_it_was_there_first_and_not_if_a_command_named_it() {
    let git = |place: &std::path::Path, text: &str| {
        let done = std::process::Command::new("bash")
            .args(["-c", text])
            .current_dir(place)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("bash");
        assert!(
            done.status.success(),
            "{text}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let commit = "git -c user.name=e -c user.email=e@e commit -q --allow-empty -m first";
    let main = format!("git init -q main && cd main && {commit} && cd ..");

    // A linked tree works from the first command to the last.
    let shieling = exec(&[], "git log --format=%s");
    let above = shieling.workspace().parent().expect("above").to_owned();
    git(
        &above,
        &format!("{main} && rmdir work && git -C main worktree add -q ../work"),
    );
    for _ in 0..2 {
        let ran = shieling.run();
        assert!(ok(&ran) && ran.stdout == "first\n", "{ran}");
    }
    let again = "git -c user.name=e -c user.email=e@e commit -q --allow-empty -m second";
    let ran = shieling.again(["exec", "--", again]);
    assert!(ok(&ran), "{ran}");

    // A stale entry names the place, and a command writes the other half.
    let shieling = exec(
        &["--open-protected"],
        "echo \"gitdir: $PWD/../main/.git/worktrees/work\" > .git",
    );
    let above = shieling.workspace().parent().expect("above").to_owned();
    git(
        &above,
        &format!("{main} && rmdir work && git -C main worktree add -q ../work && rm work/.git"),
    );
    assert!(ok(&shieling.run()));
    let pointer = std::fs::read_to_string(shieling.workspace().join(".git")).expect("it was written");
    assert!(pointer.contains("worktrees/work"), "{pointer}");
    let ran = shieling.again(["exec", "--", "ls ../main/.git"]);
    assert!(!ok(&ran) && ran.stderr.contains("which is not shown"), "{ran}");
    let ran = shieling.again(["exec", "--", "git log"]);
    assert!(!ok(&ran), "{ran}");
    let git = above.join("main/.git");
    let ran = shieling.again([
        "exec",
        "--read",
        &git.display().to_string(),
        "--",
        "git log --format=%s",
    ]);
    assert!(
        ok(&ran) && !ran.stderr.contains("which is not shown"),
        "a person names it: {ran}"
    );
}

#[test]
fn a_home_as_workspace_is_refused_with_the_cure_and_held_where_it_is_allowed() {
    let at_home = |options: &[&str], text: &str| {
        let shieling = exec(options, text).file(".bashrc", "mine\n");
        let home = shieling.workspace().display().to_string();
        std::fs::create_dir(shieling.workspace().join("project")).expect("it can be made");
        shieling.variable("HOME", &home)
    };
    let ran = at_home(&[], "true").run();
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(
        ran.stderr.contains("is a home directory") && ran.stderr.contains("--allow-home"),
        "{ran}"
    );
    let shieling = at_home(
        &["--allow-home"],
        "echo x > project/x; echo x > .profile; echo x > .bashrc; cat .bashrc",
    );
    let ran = shieling.run();
    assert_eq!(ran.stdout, "mine\n", "{ran}");
    assert!(shieling.workspace().join("project/x").exists());
    assert!(!shieling.workspace().join(".profile").exists());
    let ran = at_home(&["--allow-home", "--isolation", "landlock"], "true")
        .without_state()
        .run();
    assert!(
        ran.exit == Some(125) && ran.stderr.contains("--isolation landlock"),
        "{ran}"
    );
    let ran = at_home(&["--readonly"], "cat .bashrc").run();
    assert!(
        ran.exit == Some(125) && ran.stderr.contains("--allow-home"),
        "keys can be read: {ran}"
    );
    assert!(ok(&at_home(&["--readonly", "--allow-home"], "cat .bashrc").run()));
}

#[test]
fn a_policy_in_the_workspace_is_kept_and_said_and_where_it_is_not_that_is_said() {
    let shieling = exec(
        &["--policy", "./team.toml"],
        "echo > team.toml; rm -f shieling.toml; mv team.toml x; cat team.toml shieling.toml >/dev/null && echo kept",
    )
    .file("shieling.toml", "timeout = '20s'\n")
    .file("team.toml", "");
    let ran = shieling.run();
    assert_eq!(ran.stdout, "kept\n", "{ran}");
    let told = shieling.again(["describe", "--policy", "./team.toml"]);
    assert_eq!(told.stdout.matches("which commands cannot change").count(), 2, "{told}");
    let told = shieling.again(["exec", "--env", "local", "--approval", "policy", "--", "true"]);
    assert!(
        told.stderr.contains("shieling.toml` can be changed by commands"),
        "{told}"
    );
    let told = shieling.again(["exec", "--", "true"]);
    assert!(told.stderr.is_empty(), "{told}");
}

/// With a directory beside the workspace.
fn with_beside() -> Shieling {
    let shieling = Shieling::in_workspace();
    std::fs::create_dir(shieling.workspace().join("../lib")).expect("it can be made");
    shieling
}

#[test]
fn more_can_be_written_if_it_is_asked_for_and_is_told() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (options, written) in [
        (&[][..], false),
        (&["--write", "../lib"], true),
        (&["--write", "../lib", "--readonly"], false),
        (&["--write", "../lib", "--read", ".."], true),
        (&["--read", "../lib"], false),
    ] {
        let shieling = exec_in(with_beside(), options, "python3 -c \"open('../lib/x','w')\"");
        let ran = shieling.run();
        assert_eq!(
            shieling.workspace().join("../lib/x").exists(),
            written,
            "{options:?}: {ran}"
        );
        assert_eq!(ok(&ran), written, "{options:?}: {ran}");
    }
    let ran = with_beside().args(["describe", "--write", "../lib"]).run();
    assert!(ran.stdout.contains("Lasts        [PLACE]/lib, [PLACE]/work\n"), "{ran}");
    assert!(
        ran.stdout
            .contains("Private      /tmp, /var/tmp, /dev/shm, /run, [PLACE]/home\n"),
        "{ran}"
    );
}

#[test]
fn a_place_that_cannot_be_made_writable_is_refused_with_the_cure() {
    for (path, says) in [
        ("../absent", "make it first"),
        ("/", "system"),
        ("/etc", "system"),
        ("/usr/lib", "system"),
        ("../home", "--allow-home"),
        ("../home/.ssh", "not there|make it first"),
        ("../state/shieling", "records"),
        ("..", "records|home"),
        ("/tmp", "share"),
    ] {
        let shieling = Shieling::in_workspace();
        std::fs::create_dir(shieling.workspace().join("../state/shieling")).expect("it can be made");
        let ran = exec_in(shieling, &["--write", path], "true").run();
        assert_eq!(ran.exit, Some(125), "{path}: {ran}");
        assert!(says.split('|').any(|says| ran.stderr.contains(says)), "{path}: {ran}");
    }
    for env in ["local", "memory"] {
        for options in [["--write", "."], ["--home", "private"], ["--home", "persistent"]] {
            let ran = exec(&["--env", env, "--approval", "policy", options[0], options[1]], "true").run();
            assert_eq!(ran.exit, Some(125), "{env} {options:?}: {ran}");
            assert!(ran.stderr.contains("cannot be enforced"), "{env}: {ran}");
        }
    }
    for options in [["--write", "../lib"], ["--home", "persistent"]] {
        let ran = exec_in(
            with_beside(),
            &["--isolation", "landlock", options[0], options[1]],
            "true",
        )
        .run();
        assert_eq!(ran.exit, Some(125), "{options:?}: {ran}");
    }
    let shieling = with_beside().file("shieling.toml", "write = ['../lib']\n");
    let ran = exec_in(shieling, &[], "true").run();
    assert!(
        ran.exit == Some(125) && ran.stderr.contains("`write` may not be set here"),
        "{ran}"
    );
    let shieling = with_beside();
    let lib = shieling.workspace().join("../lib").canonicalize().expect("it is there");
    let shieling = shieling.user_config(&format!("write = ['{}']\n", lib.display()));
    assert!(ok(&exec_in(shieling, &[], "touch ../lib/x").run()));
}

#[test]
fn a_home_is_gone_or_kept_as_it_was_asked_for() {
    let shieling = Shieling::in_workspace();
    let run = |options: &[&str], text: &str| {
        let last = ["--", text];
        let words = ["exec"]
            .iter()
            .chain(options)
            .chain(&last)
            .map(|word| (*word).to_owned());
        shieling.ran(&shieling.command_of(words).output().expect("it starts"))
    };
    let kept = ["--home", "persistent"];
    assert!(ok(&run(&kept, "echo kept > ~/file; mkdir -p ~/.config/x")));
    assert_eq!(run(&kept, "cat ~/file").stdout, "kept\n");
    assert!(!ok(&run(&[], "cat ~/file")), "without a word it is another");
    let refused = run(
        &["--home", "persistent", "--readonly"],
        "python3 -c \"import os; open(os.path.expanduser('~/y'),'w')\"",
    );
    assert!(!ok(&refused), "{refused}");
    assert!(!shieling.workspace().join("../home/file").exists());
    let homes = shieling.workspace().join("../state/shieling/homes");
    let mode = std::os::unix::fs::PermissionsExt::mode(&homes.metadata().expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o700);
    let told = shieling.ran(
        &shieling
            .command_of(["describe", "--home", "persistent"].map(str::to_owned))
            .output()
            .expect("it starts"),
    );
    assert!(
        told.stdout.contains("kept in [PLACE]/state/shieling/homes/work-"),
        "{told}"
    );
    assert!(told.stdout.contains("The kept home holds"), "{told}");
}

#[test]
fn a_git_file_that_a_command_lays_in_a_writable_place_shows_no_repository_later() {
    if !prerequisite::has(&["git"]) {
        return;
    }
    let shieling = with_beside();
    let place = shieling.workspace().join("..").canonicalize().expect("it is there");
    let git = place.join("main/.git/worktrees/sub");
    std::fs::create_dir_all(&git).expect("it can be made");
    std::fs::create_dir_all(place.join("main/.git/objects")).expect("it can be made");
    let sub = place.join("lib/sub");
    for (path, text) in [
        (place.join("main/.git/HEAD"), "ref: refs/heads/main\n".to_owned()),
        (git.join("gitdir"), format!("{}\n", sub.join(".git").display())),
        (git.join("commondir"), "../..\n".to_owned()),
    ] {
        std::fs::write(path, text).expect("it can be written");
    }
    let run = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        shieling.ran(&shieling.command_of(words).output().expect("it starts"))
    };
    let lay = format!("mkdir ../lib/sub && echo 'gitdir: {}' > ../lib/sub/.git", git.display());
    let laid = run(&["exec", "--open-protected", "--write", "../lib", "--", &lay]);
    assert!(ok(&laid), "{laid}");
    let look = format!("ls {}", place.join("main/.git").display());
    let later = run(&["exec", "--workspace", "../lib/sub", "--", &look]);
    assert!(!ok(&later) && later.stderr.contains("is not shown"), "{later}");
}

#[test]
fn a_work_tree_that_goes_with_the_private_home_is_told_of() {
    if !prerequisite::has(&["git"]) {
        return;
    }
    let begin = "git init -q . && git -c user.name=e -c user.email=e@e commit -q --allow-empty -m first";
    for (tree, is_private) in [("../tree", true), ("tree", false)] {
        let shieling = exec(&[], &format!("{begin} && git worktree add {tree}"));
        let above = shieling.workspace().parent().expect("above").display().to_string();
        let ran = shieling.variable("HOME", &above).run();
        assert!(ok(&ran), "{ran}");
        assert_eq!(
            ran.stderr.contains("/tree` lies in the private home"),
            is_private,
            "{ran}"
        );
    }
}

#[test]
fn root_is_told_whose_a_file_is_that_it_cannot_change() {
    let shieling = exec(&[], "echo x > theirs/new");
    let theirs = shieling.workspace().join("theirs");
    std::fs::create_dir(&theirs).expect("made");
    if std::os::unix::fs::chown(&theirs, Some(47_113), None).is_err() {
        prerequisite::skip("root, to give a directory away");
        return;
    }
    let ran = shieling.run();
    assert!(
        !ok(&ran)
            && ran
                .stderr
                .contains("`[PLACE]/work/theirs` belongs to another user (47113)"),
        "{ran}"
    );
    let ran = shieling.again(["exec", "--", "echo x > ours"]);
    assert!(ok(&ran) && !ran.stderr.contains("belongs"), "{ran}");
}

#[test]
fn what_only_a_sandbox_obeys_is_told_in_local() {
    let local = ["exec", "--env", "local", "--approval", "never", "--acknowledge-unsafe"];
    let shieling = Shieling::in_workspace().args(local).args(["--", "true"]);
    let ran = shieling.run();
    assert!(ok(&ran) && !ran.stderr.contains("no effect"), "{ran}");
    let ran = shieling.user_config("open-protected = true\n").run();
    assert!(
        ok(&ran) && ran.stderr.contains("`open-protected` has no effect in `local`"),
        "{ran}"
    );
}

/// The processes that descend from this one, each with the name of its program.
fn below(ancestor: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let children = |pid: u32| {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let pids: Vec<u32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        pids
    };
    let mut next = children(ancestor);
    while let Some(pid) = next.pop() {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        found.push((pid, name.trim().to_owned()));
        next.extend(children(pid));
    }
    found
}

/// Whether these bytes stand in what a process can write to of its memory, as far as we may read it.
fn knows(pid: u32, bytes: &[u8]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Ok(memory) = std::fs::File::open(format!("/proc/{pid}/mem")) else {
        return false;
    };
    maps.lines().any(|line| {
        let mut fields = line.split_whitespace();
        let (Some(range), Some(rights)) = (fields.next(), fields.next()) else {
            return false;
        };
        let range = range
            .split_once('-')
            .map(|(start, end)| [start, end].map(|at| u64::from_str_radix(at, 16)));
        let Some([Ok(start), Ok(end)]) = range.filter(|_| rights.starts_with("rw")) else {
            return false;
        };
        let mut read = vec![0; usize::try_from(end - start).unwrap_or(0)];
        let length = memory.read_at(&mut read, start).unwrap_or(0);
        read[..length].windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn what_keeps_a_sandbox_does_not_know_how_shieling_was_started() {
    let (argument, variable) = ("one_of_the_arguments", "one-of-the-variables");
    let shieling = Shieling::in_workspace().variable("OF_THE_CALLER", variable).args([
        "exec",
        "--pass-env",
        argument,
        "--",
        "touch begun; read line",
    ]);
    let mut child = shieling.command().stdin(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while !shieling.workspace().join("begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the command has not begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ours: Vec<(u32, String)> = below(child.id())
        .into_iter()
        .filter(|(_, name)| name == "shieling-jail")
        .collect();
    assert!(ours.len() >= 3, "a monitor, pid 1 and a supervisor: {ours:?}");
    for secret in [argument, variable] {
        assert!(knows(child.id(), secret.as_bytes()), "shieling itself knows {secret}");
    }
    for (pid, _) in ours {
        assert!(!knows(pid, variable.as_bytes()), "{pid} knows a variable");
        // The supervisor has what was ordered, and its command has no such argument.
        assert!(!knows(pid, argument.as_bytes()), "{pid} knows an argument");
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
        assert_eq!(line.split(|&byte| byte == 0).next(), Some(b"shieling-jail".as_slice()));
    }
    drop(child.stdin.take());
    child.wait().expect("it ends");
}

#[test]
fn a_workspace_whose_name_is_no_text_is_worked_in_and_hides_as_any_other() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt as _;

    let shieling = Shieling::in_workspace();
    let odd = shieling.workspace().join(OsStr::from_bytes(b"a \xff"));
    std::fs::create_dir(&odd).expect("it can be made");
    std::fs::write(odd.join(".env"), "secret").expect("it can be written");
    let words = ["exec", "--ignore", ".env", "--workspace"].map(OsString::from);
    let shieling = shieling
        .args(words)
        .args([odd.clone().into_os_string(), "--".into()])
        .args(["echo made > new; cat new; grep -rs secret .; echo looked"]);
    let ran = shieling.run();
    assert_eq!((ran.exit, &*ran.stdout), (Some(0), "made\nlooked\n"), "{ran}");
    assert!(odd.join("new").exists());
}
