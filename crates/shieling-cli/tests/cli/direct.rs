//! Changes that go into the workspace at once, over sessions, jobs and file tools: what is judged, when, and as whose.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

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
fn what_a_job_makes_is_judged_with_later_commands_and_at_its_end() {
    let (mut server, place) = server();
    let text = "while :; do echo x >.git/hooks/pre-push; sleep 0.01; done";
    let (_, job) = server.shell(json!({"command": text, "background": true}));
    until("it is made", || hook(&place, "pre-push").exists());
    let (told, outcome) = server.shell(json!({"command": "echo x >.git/hooks/pre-commit; git config user.name x"}));
    assert!(held(&outcome).contains(&".git/hooks/pre-commit"), "{outcome}");
    assert!(told.contains("held back: `.git/hooks/pre-commit`"), "{told}");
    assert!(!hook(&place, "pre-commit").exists());
    assert!(fs::read_to_string(place.join(".git/config")).is_ok_and(|config| config.contains("name = x")));
    until("it is made again", || hook(&place, "pre-push").exists());
    server.tool("shell_kill", json!({"job": job["job"]}));
    assert!(!hook(&place, "pre-push").exists());
    server.end();
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
    let text = "while :; do echo x >.git/hooks/pre-push; sleep 0.01; done";
    server.shell(json!({"command": text, "background": true}));
    until("it is made", || hook(&place, "pre-push").exists());
    let (_shieling, exit, _, said) = server.end();
    assert_eq!(exit, Some(0), "{said}");
    assert!(!hook(&place, "pre-push").exists(), "{said}");
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
