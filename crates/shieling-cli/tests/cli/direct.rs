//! Changes that go into the workspace at once, over sessions, jobs and file tools: what is judged, when, and as whose.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling_testkit::prerequisite;

use crate::mcp::Server;
use crate::support::Shieling;

fn server() -> (Server, std::path::PathBuf) {
    let shieling = Shieling::in_workspace().file("a", "1\n").args(["mcp"]);
    let mut server = Server::start(shieling, json!({}));
    let place = server.workspace();
    let (_, made) = server.shell(json!({"command": "git init -q ."}));
    assert_eq!(
        (&made["exit_code"], &made["changes"]),
        (&json!(0), &Value::Null),
        "{made}"
    );
    (server, place)
}

fn held(outcome: &Value) -> Vec<&str> {
    let held = outcome["changes"]["held_back"].as_array().into_iter().flatten();
    held.filter_map(|held| held["path"].as_str()).collect()
}

/// Waits until this is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn hook(place: &Path, name: &str) -> std::path::PathBuf {
    place.join(".git/hooks").join(name)
}

#[test]
fn what_a_job_makes_is_taken_back_while_it_runs_and_told_with_the_next_outcome() {
    let (mut server, place) = server();
    let text = "echo x >.git/hooks/pre-push; touch made; sleep 1000";
    let (_, job) = server.shell(json!({"command": text, "background": true}));
    until("it is made and gone", || {
        place.join("made").exists() && !hook(&place, "pre-push").exists()
    });
    let (told, outcome) = server.shell(json!({"command": "echo x >.git/hooks/pre-commit; git config user.name x"}));
    for name in [".git/hooks/pre-push", ".git/hooks/pre-commit"] {
        assert!(held(&outcome).contains(&name), "{outcome}");
        assert!(told.contains(&format!("held back: `{name}`")), "{told}");
    }
    assert!(outcome["changes"]["id"].is_string(), "{outcome}");
    assert!(!hook(&place, "pre-commit").exists());
    assert!(fs::read_to_string(place.join(".git/config")).is_ok_and(|config| config.contains("name = x")));
    server.tool("shell_kill", json!({"job": job["job"]}));
    server.end();
}

#[test]
fn a_hook_of_a_running_command_is_gone_while_it_runs_and_does_not_fire_when_the_user_commits() {
    let (mut server, place) = server();
    let canary = place.join("fired");
    let text = format!(
        "printf '#!/bin/sh\ntouch {}\n' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; touch made; sleep 1000",
        canary.display()
    );
    let (_, job) = server.shell(json!({"command": text, "background": true}));
    until("it is made", || place.join("made").exists());
    until("it is taken back", || !hook(&place, "pre-commit").exists());
    let status = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=u",
            "-c",
            "user.email=u@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ])
        .current_dir(&place)
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    assert!(!canary.exists());
    server.tool("shell_kill", json!({"job": job["job"]}));
    server.end();
}

#[test]
fn who_makes_it_again_and_again_is_ended_and_its_outcome_says_why() {
    let (mut server, place) = server();
    let began = Instant::now();
    // In the shell of the session itself, which no child shows.
    let (told, outcome) = server.shell(json!({"command": "while :; do echo x >.git/hooks/pre-push; done"}));
    assert!(began.elapsed() < Duration::from_secs(20), "{outcome}");
    assert!(told.contains("the command was ended"), "{told}");
    assert_ne!(outcome["exit_code"], json!(0), "{outcome}");
    assert!(!hook(&place, "pre-push").exists());
    let ran = Shieling::in_workspace()
        .args(["exec", "--json", "git init -q .; while :; do echo x >.envrc; done"])
        .run();
    let outcome = ran.outcome();
    assert!(
        outcome["changes"]["held_back"]
            .to_string()
            .contains("the command was ended"),
        "{outcome}"
    );
    server.end();
}

#[test]
fn an_ordinary_set_up_that_writes_one_file_four_times_is_not_ended() {
    // As `git lfs install --local` does: each is taken back before the next is written.
    let keys = ["lfs.clean", "lfs.smudge", "lfs.process", "other.clean"];
    let steps =
        keys.map(|key| format!("git config filter.{key} x; until ! git config filter.{key} >/dev/null; do :; done"));
    let text = format!("git init -q .; {}; echo over", steps.join("; "));
    let ran = Shieling::in_workspace().args(["exec", "--json", &text]).run();
    let outcome = ran.outcome();
    let said = outcome["changes"]["held_back"].to_string();
    assert!(
        outcome["exit_code"] == 0
            && outcome["stdout"]
                .as_str()
                .is_some_and(|stdout| stdout.ends_with("over\n")),
        "{outcome}"
    );
    assert!(
        said.contains("filter.lfs") && !said.contains("the command was ended"),
        "{outcome}"
    );
}

#[test]
fn git_works_as_ever_beside_the_watch() {
    let text = "git init -q .; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a \
                GIT_COMMITTER_EMAIL=a@example.org GIT_EDITOR=true; \
                for n in $(seq 12); do echo $n >f$n; git add .; git commit -qm c$n; done; \
                git rebase -q -x 'test -e f1' HEAD~5 && git stash list && echo x >f1 && git stash -q && git stash pop -q && \
                git worktree add -q ../work/tree HEAD~1 && (cd tree && git commit -q --allow-empty -m t) && \
                git worktree remove tree && git clone -q . copy && git -C copy branch -m other && git init -q sub && \
                git -C sub commit -q --allow-empty -m s && git -c protocol.file.allow=always submodule add -q ./sub mod && \
                git config user.name n && mkfifo pipe && (echo through >pipe & cat pipe) && rm pipe";
    let ran = Shieling::in_workspace().args(["exec", "--json", text]).run();
    let outcome = ran.outcome();
    assert_eq!(
        (&outcome["exit_code"], &outcome["changes"]),
        (&json!(0), &Value::Null),
        "{outcome}"
    );
}

#[test]
fn what_the_user_changes_between_commands_stays_and_what_a_command_left_running_makes_does_not() {
    let (mut server, place) = server();
    server.shell(json!({"command": "true"}));
    fs::write(hook(&place, "post-commit"), "the user's").expect("written");
    let (_, outcome) = server.shell(json!({"command": "git config user.name x"}));
    assert_eq!(held(&outcome), [""; 0], "{outcome}");
    assert_eq!(
        fs::read_to_string(hook(&place, "post-commit")).ok().as_deref(),
        Some("the user's")
    );
    // It has ended before the next command begins.
    let left = "(sleep 0.1; echo x >.git/hooks/commit-msg; touch over) </dev/null >/dev/null 2>&1 &";
    let (_, outcome) = server.shell(json!({"command": left}));
    assert_eq!(held(&outcome), [""; 0], "{outcome}");
    until("it is over", || place.join("over").exists());
    std::thread::sleep(Duration::from_millis(50));
    let (_, outcome) = server.shell(json!({"command": "true"}));
    assert_eq!(held(&outcome), [".git/hooks/commit-msg"], "{outcome}");
    assert!(!hook(&place, "commit-msg").exists() && hook(&place, "post-commit").exists());
    server.end();
}

#[test]
fn what_a_file_tool_writes_is_judged_as_well() {
    let (mut server, place) = server();
    let (told, _) = server.tool("write_file", json!({"path": ".envrc", "content": "x"}));
    assert!(told.contains("held back"), "{told}");
    assert!(!place.join(".envrc").exists());
    server.tool(
        "write_file",
        json!({"path": ".vscode/settings.json", "content": "{\"editor.tabSize\": 2}"}),
    );
    assert!(place.join(".vscode/settings.json").exists());
    server.end();
}

#[test]
fn what_runs_on_at_the_end_of_the_server_is_judged_with_it() {
    let (mut server, place) = server();
    // Of a rebase that goes on, git takes it away itself.
    let todo = ".git/rebase-merge/git-rebase-todo";
    let text = format!("mkdir .git/rebase-merge; echo 'exec ./x' >{todo}; touch made; sleep 1000");
    server.shell(json!({"command": text, "background": true}));
    until("it is made", || place.join("made").exists());
    std::thread::sleep(Duration::from_millis(50));
    assert!(place.join(todo).exists());
    let (_shieling, exit, _, said) = server.end();
    assert_eq!(exit, Some(0), "{said}");
    assert_eq!(fs::read_to_string(place.join(todo)).ok().as_deref(), Some(""), "{said}");
}

#[test]
fn two_sandboxes_of_one_workspace_put_back_what_was_there() {
    let (mut one, place) = server();
    fs::write(hook(&place, "post-commit"), "the user's").expect("written");
    let (_, outcome) = one.shell(json!({"command": "true"}));
    assert_eq!(held(&outcome), [""; 0], "{outcome}");
    let mut command = one.shieling.command();
    command.current_dir(&place);
    let mut other = Server::start_by(Shieling::in_workspace(), command, json!({}));
    for server in [&mut one, &mut other] {
        let (_, outcome) = server.shell(json!({"command": "echo x >.git/hooks/post-commit"}));
        assert_eq!(held(&outcome), [".git/hooks/post-commit"], "{outcome}");
        assert_eq!(
            fs::read_to_string(hook(&place, "post-commit")).ok().as_deref(),
            Some("the user's")
        );
    }
    other.end();
    one.end();
}

#[test]
fn a_named_pipe_of_a_session_is_held_back_once_nothing_uses_it() {
    let (mut server, place) = server();
    let (said, outcome) = server.shell(json!({"command": "mkfifo one; ls"}));
    assert_eq!(held(&outcome), ["one"], "{said}");
    assert!(!place.join("one").exists(), "{said}");
    // What is left in the background writes into it later.
    let (said, outcome) = server.shell(json!({"command": "mkfifo two go; (read -r go <go; echo through >two) & true"}));
    assert_eq!(held(&outcome), [""; 0], "{said}");
    assert!(
        said.contains("[what it started in the background goes on as job "),
        "{said}"
    );
    let (said, outcome) = server.shell(json!({"command": "echo x >go; cat two"}));
    assert!(said.starts_with("through\n"), "{said}");
    let mut held: Vec<String> = held(&outcome).into_iter().map(String::from).collect();
    if held.is_empty() {
        // The subshell had not ended yet.
        let (_, outcome) = server.shell(json!({"command": "true"}));
        held = self::held(&outcome).into_iter().map(String::from).collect();
    }
    held.sort_unstable();
    assert_eq!(held, ["go", "two"], "{said}");
    server.end();
}

#[test]
fn a_file_tool_leaves_the_named_pipe_of_what_runs_in_the_background() {
    let (mut server, place) = server();
    // Its streams are closed, so that no job tells of it.
    let (_, outcome) = server.shell(json!({"command": "mkfifo pipe; (cat <pipe >got) >/dev/null 2>&1 &"}));
    assert_eq!(held(&outcome), [""; 0], "{outcome}");
    let (written, _) = server.tool("write_file", json!({"path": "b", "content": "x"}));
    assert!(
        !written.contains("held back") && place.join("pipe").exists(),
        "{written}"
    );
    let (said, _) =
        server.shell(json!({"command": "echo through >pipe; while ! grep through got; do sleep 0.02; done"}));
    assert!(said.starts_with("through\n"), "{said}");
    server.end();
    assert!(!place.join("pipe").exists());
}

#[test]
fn a_file_tool_names_what_was_held_back_of_its_own_change() {
    let hooks = [".git/hooks/pre-commit", ".git/hooks/pre-push"];
    for mode in ["direct", "commit"] {
        let shieling = Shieling::in_workspace()
            .file("a", "1\n")
            .args(["mcp", "--changes", mode]);
        let mut server = Server::start(shieling, json!({}));
        server.shell(json!({"command": "git init -q ."}));
        let (written, _) = server.tool("write_file", json!({"path": hooks[0], "content": "x"}));
        assert!(
            written.contains(&format!("[held back: `{}` is a hook", hooks[0])),
            "{mode}: {written}"
        );
        let (moved, given) = server.tool("move_file", json!({"from": "a", "to": hooks[1]}));
        assert!(
            moved.contains(&format!("[held back: `{}` is a hook", hooks[1])),
            "{mode}: {moved}"
        );
        assert!(
            given["note"].as_str().is_some_and(|note| note.starts_with("held back")),
            "{given}"
        );
        let (other, _) = server.tool("write_file", json!({"path": "b", "content": "x"}));
        assert!(!other.contains("held back"), "{mode}: {other}");
        server.end();
    }
}

#[test]
fn what_the_user_changes_while_nothing_runs_stays_when_the_server_ends() {
    let (mut server, place) = server();
    server.shell(json!({"command": "true"}));
    fs::write(hook(&place, "pre-commit"), "mine").expect("it can be written");
    let _shieling = server.end();
    assert_eq!(
        fs::read_to_string(hook(&place, "pre-commit")).ok().as_deref(),
        Some("mine")
    );
}

#[test]
fn what_the_user_changes_before_the_first_command_stays() {
    let shieling = Shieling::in_workspace().file("a", "1\n").args(["mcp"]);
    let mut server = Server::start(shieling, json!({}));
    let place = server.workspace();
    server.tool("read_file", json!({"path": "a"}));
    fs::write(place.join(".envrc"), "mine").expect("it can be written");
    let (_, outcome) = server.shell(json!({"command": "true"}));
    assert_eq!(held(&outcome), Vec::<&str>::new(), "{outcome}");
    let _shieling = server.end();
    assert_eq!(fs::read_to_string(place.join(".envrc")).ok().as_deref(), Some("mine"));
}

#[test]
fn a_remedy_can_be_pasted_whatever_the_name_is() {
    let names = ["docs;touch PWNED;#", "$(touch PWNED)", "a b", "it's"];
    for name in names {
        let quoted = name.replace('\'', "'\\''");
        let command = format!("mkdir '{quoted}' && echo x > '{quoted}/.envrc'");
        let shieling = Shieling::in_workspace().args(["exec", "--json", &command]);
        let outcome = shieling.run().outcome();
        let instead = outcome["changes"]["held_back"][0]["instead"]
            .as_str()
            .unwrap_or_default();
        let remedy = instead
            .rsplit("with `shieling")
            .next()
            .unwrap_or_default()
            .trim_end_matches('`');
        let words = format!("printf '%s\\n' {remedy}");
        let output = shieling.in_bash(&words).output().expect("bash runs");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.lines().next_back(),
            Some(&*format!("{name}/.envrc")),
            "{instead}"
        );
        assert!(!shieling.workspace().join("PWNED").exists(), "{instead}");
    }
}

/// Writes through a mapping whose page is dirty already: no stamp changes and no event comes.
const MAPPED: &str = r##"
import mmap, os, sys, time
path = sys.argv[1]
old = open(path, "rb").read()
fd = os.open(path, os.O_RDWR)
mapped = mmap.mmap(fd, len(old))
mapped[0] = mapped[0]
time.sleep(0.15)
os.close(fd)
time.sleep(0.1)
open(os.path.dirname(path) + "/beside", "w").close()
time.sleep(0.3)
new = b"[core]\n\tfsmonitor = touch fired\n"
mapped[:] = new + b"#" * (len(old) - len(new) - 1) + b"\n"
"##;

#[test]
fn what_is_written_through_a_mapping_of_which_nothing_tells_is_taken_back() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let mut server = Server::start(
        Shieling::in_workspace().file("mapped.py", MAPPED).args(["mcp"]),
        json!({}),
    );
    let place = server.workspace();
    let name = "x".repeat(80);
    server.shell(json!({"command": format!("git init -q . && git config user.name {name}")}));
    let (_, outcome) = server.shell(json!({"command": "python3 mapped.py .git/config"}));
    assert_eq!(outcome["exit_code"], 0, "{outcome}");
    assert_eq!(held(&outcome), [".git/config"], "{outcome}");
    let config = fs::read_to_string(place.join(".git/config")).unwrap();
    assert!(config.contains(&name) && !config.contains("fsmonitor"), "{config}");
    server.end();
}

#[test]
fn what_was_there_under_an_odd_name_stays_whatever_a_command_does_with_it() {
    let shieling = Shieling::in_workspace().args([
        "exec",
        "chmod -R u+w .; for f in */*; do echo more >> \"$f\"; done; touch pipe; chmod 600 pipe; echo new > $'a\\tb'",
    ]);
    let place = shieling.workspace();
    for name in ["Icon\r", "line\nbreak", "tab\there", "turn\u{202e}ed", "plain"] {
        let directory = place.join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(name), "mine\n").unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, place.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let ran = shieling.run();
    for name in ["Icon\r", "line\nbreak", "tab\there", "turn\u{202e}ed", "plain"] {
        let text = fs::read_to_string(place.join(name).join(name));
        assert_eq!(text.ok().as_deref(), Some("mine\nmore\n"), "{name:?}: {ran}");
    }
    assert!(place.join("pipe").exists(), "{ran}");
    // A new one is held back.
    assert!(
        !place.join("a\tb").exists() && ran.stderr.contains("control characters"),
        "{ran}"
    );
}

#[test]
fn what_takes_the_place_of_a_file_that_is_not_remembered_is_taken_back() {
    let (mut server, place) = server();
    let refs = place.join(".git/packed-refs");
    server.shell(json!({"command": "git config user.name x; echo '# pack-refs with: peeled' > .git/packed-refs"}));
    assert!(refs.exists());
    for text in ["mkfifo .git/packed-refs", "ln -s ~/.bashrc .git/packed-refs"] {
        let (_, outcome) = server.shell(json!({"command": format!("rm -f .git/packed-refs; {text}")}));
        assert_eq!(held(&outcome), [".git/packed-refs"], "{text}: {outcome}");
        let there = fs::symlink_metadata(&refs);
        assert!(there.is_err() || there.unwrap().is_file(), "{text}: {outcome}");
    }
    server.end();
}
