//! `shieling shell`, on a terminal.

use serde_json::{Value, json};
use shieling_testkit::prerequisite;

use crate::support::Shieling;

/// What came of a shell in which these steps were taken; nothing where there is no Python for it.
fn typed(options: &[&str], steps: &Value) -> Value {
    let shieling = Shieling::in_workspace()
        .args(["shell"])
        .args(options.iter().copied())
        .variable("TERM", "dumb")
        .without_state();
    let told = shieling.typed(steps);
    assert_eq!(told["was_raw"], json!(true), "{told}");
    told
}

fn output(told: &Value) -> &str {
    told["output"].as_str().expect("a text")
}

#[test]
fn a_person_sees_what_a_command_sees_and_the_status_is_the_shells() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let steps = json!([
        ["(sandbox) ", "echo $((40+2)); touch inside; touch /usr/outside\n"],
        ["outside", ""],
        ["(sandbox) ", "exit 3\n"],
    ]);
    let told = typed(&[], &steps);
    assert_eq!(told["status"], 3, "{told}");
    assert!(output(&told).contains("\n42\r\n"), "{told}");
    assert!(
        output(&told).contains("'/usr/outside': Read-only file system"),
        "{told}"
    );
    assert!(!output(&told).contains("'inside'"), "{told}");
}

#[test]
fn readonly_holds_for_a_person_too() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let steps = json!([["(sandbox) ", "touch inside\n"], ["Read-only file system", "exit\n"]]);
    assert_eq!(typed(&["--readonly"], &steps)["status"], 1);
}

#[test]
fn ctrl_c_reaches_the_program_in_the_foreground_and_not_shieling() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (options, prompt) in [
        (&[][..], "(sandbox) "),
        (&["--isolation", "landlock"], "(sandbox:landlock) "),
        (&["--env", "local"], "(local) "),
    ] {
        let steps = json!([
            [prompt, "sh -c 'echo go\"es\"; exec sleep 1000'\n"],
            ["goes", "\u{3}"],
            [
                prompt,
                "sleep 1000 & echo job\"s\": $(jobs -p | wc -l); kill %1; exit 4\n"
            ],
            ["jobs: 1", ""],
        ]);
        assert_eq!(typed(options, &steps)["status"], 4, "{options:?}");
    }
}

#[test]
fn the_window_has_its_size_and_gets_a_new_one() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let steps = json!([
        ["(sandbox) ", "stty size\n"],
        ["33 101", {"resize": [40, 120]}],
        // It waits there by itself, in the foreground, so that no key overtakes the news. Only once it is
        // back there: while `stty` runs, the news is for `stty`.
        [
            "(sandbox) ",
            "trap 'stty size; told=1' WINCH; stty size; echo rea''dy; until [ $told ]; do :; done\n"
        ],
        ["40 120", ""],
        ["ready", {"resize": [20, 50]}],
        ["20 50", "exit\n"],
    ]);
    assert_eq!(typed(&[], &steps)["status"], 0);
}

#[test]
fn a_signal_ends_the_shell_and_restores_the_terminal() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (signal, status) in [("SIGTERM", 143), ("SIGINT", 130)] {
        let steps = json!([["(sandbox) ", {"signal": signal}]]);
        assert_eq!(typed(&[], &steps)["status"], status, "{signal}");
    }
}

#[test]
fn what_a_shell_is_recorded_as_has_an_intent_and_an_end() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let audit = tempfile::tempdir().expect("a temporary directory can be made");
    let file = audit.path().join("audit.jsonl");
    let path = file.to_string_lossy().into_owned();
    let steps = json!([["(sandbox) ", "exit 5\n"]]);
    assert_eq!(typed(&["--audit", &path], &steps)["status"], 5);
    let text = std::fs::read_to_string(&file).expect("it was recorded");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("--noprofile --norc -i"), "{text}");
    let shown = Shieling::in_workspace().args(["log", "show", &path]).run();
    assert!(shown.stdout.contains("exited 5"), "{shown}");
}

#[test]
fn what_nobody_could_enforce_is_refused() {
    let mut page = String::new();
    for options in [
        &[][..],
        &["--deny", "rm"],
        &["--policy", "team.toml"],
        &["--approval", "always"],
        &["--rate", "3/10,10/60"],
        &["--max-output", "1KiB"],
        &["--env", "local", "--readonly"],
        &["--env", "local", "--ignore", ".env"],
        &["--env", "local", "--allow", "ls"],
        &["--env", "local", "--policy", "readonly"],
    ] {
        let ran = Shieling::in_workspace()
            .args(["shell"])
            .args(options.iter().copied())
            .run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{options:?}");
        page.push_str(&format!("$ shieling shell {}\n{}\n", options.join(" "), ran.stderr));
    }
    insta::assert_snapshot!(page);
}
