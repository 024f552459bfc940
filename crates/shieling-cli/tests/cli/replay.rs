//! `shieling log replay`: on a terminal of its own, and as text.

use serde_json::json;
use shieling_testkit::prerequisite;

use crate::support::Shieling;

const HEADER: &str = r#"{"version": 2, "width": 40, "height": 10, "title": "demo"}"#;

/// A hostile recording: it would set the title, fill the clipboard, ask for the cursor, and switch modes.
fn recording(events: &[(f64, &str, &str)]) -> String {
    let mut text = format!("{HEADER}\n");
    for event in events {
        text.push_str(&format!("{}\n", json!(event)));
    }
    text
}

const EVENTS: [(f64, &str, &str); 7] = [
    (0.0, "m", "command: make \u{1b}[2Jcheck"),
    (0.1, "o", "\u{1b}[1mone\u{1b}[m\r\n 10%\r100%\r\n"),
    (
        0.2,
        "o",
        "\u{1b}]0;owned\u{7}\u{1b}]52;c;cm0K\u{7}\u{1b}[6n\u{1b}[?1000h",
    ),
    (0.3, "m", "input: 8 bytes"),
    (0.4, "i", "hunter2\r"),
    (0.5, "r", "60x20"),
    (0.6, "o", "the last \u{202e}line"),
];

fn replay(text: &str, options: &[&str]) -> Shieling {
    Shieling::in_workspace()
        .file("a.cast", text)
        .args(["log", "replay", "a.cast"])
        .args(options.iter().copied())
}

#[test]
fn as_text_it_reads_as_it_was_seen() {
    let text = recording(&EVENTS);
    for options in [&[][..], &["--as-text"]] {
        let ran = replay(&text, options).run();
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{ran}");
        assert_eq!(ran.stdout, "one\n100%\nthe last \u{202e}line\n");
    }
    let ran = replay(&text, &["--marks"]).run();
    assert_eq!(
        ran.stdout,
        "[0.0 s] command: make \\x1b[2Jcheck\none\n100%\n[0.3 s] input: 8 bytes\nthe last \u{202e}line\n"
    );
}

#[test]
fn on_a_terminal_it_is_drawn_and_the_terminal_is_given_back() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let shieling = replay(&recording(&EVENTS), &["--marks", "--speed", "2"]);
    let told = shieling.typed(&json!([["last", ""]]));
    let output = told["output"].as_str().expect("a text");
    assert_eq!(told["status"], 0, "{told}");
    for seen in [
        "one",
        "100%",
        "command: make \\x1b[2Jcheck",
        "input: 8 bytes",
        "\u{1b}[?1049h",
    ] {
        assert!(output.contains(seen), "{seen:?}: {told}");
    }
    for hidden in ["owned", "cm0K", "\u{1b}[6n", "\u{1b}[?1000h", "hunter2", "\u{7}"] {
        assert!(!output.contains(hidden), "{hidden:?}: {told}");
    }
    let (_, after) = output.split_once("\u{1b}[?1049l").expect("it was given back");
    assert_eq!(after, "one\r\n100%\r\nthe last \\u{202e}line\r\n");
}

#[test]
fn it_keeps_its_time_and_a_signal_ends_it_with_the_terminal_given_back() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let long = recording(&[(0.0, "o", "begun"), (1_000.0, "o", "never")]);
    for (signal, status) in [("SIGINT", 130), ("SIGTERM", 143)] {
        let told = replay(&long, &[]).typed(&json!([["begun", {"signal": signal}]]));
        let output = told["output"].as_str().expect("a text");
        assert_eq!(told["status"], status, "{told}");
        assert!(output.contains("\u{1b}[?1049l") && !output.contains("never"), "{told}");
    }
    for options in [&["--idle", "100ms"][..], &["--speed", "1000", "--idle", "50s"]] {
        let told = replay(&long, options).typed(&json!([["never", ""]]));
        assert_eq!(told["status"], 0, "{told}");
    }
}

#[test]
fn a_terminal_that_is_too_small_is_told() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let text = recording(&[(0.0, "o", "x")]).replace("\"width\": 40", "\"width\": 102");
    let told = replay(&text, &[]).typed(&json!([["error", ""]]));
    assert_eq!(told["status"], 125, "{told}");
    let output = told["output"].as_str().expect("a text");
    assert!(output.contains("102 × 10") && output.contains("--as-text"), "{told}");
    assert!(!output.contains("\u{1b}[?1049h"), "{told}");
}

#[test]
fn an_id_is_looked_up_where_recordings_are_and_is_never_a_path() {
    let id = "20261121T070754Z-0123456789abcdef0123";
    let shieling = Shieling::in_workspace().args(["log", "replay", id]);
    let ran = shieling.run();
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(ran.stderr.contains("state/shieling/recordings/"), "{ran}");

    let directory = shieling.workspace().with_file_name("state").join("shieling/recordings");
    std::fs::create_dir_all(&directory).expect("it can be made");
    std::fs::write(directory.join(format!("{id}.cast")), recording(&EVENTS)).expect("it can be written");
    let ran = shieling.run();
    assert_eq!(ran.exit, Some(0), "{ran}");
    assert!(ran.stdout.contains("100%"), "{ran}");
    let ran = shieling.again(["log", "replay", &format!("../{id}")]);
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(!ran.stderr.contains("recordings"), "{ran}");
}

#[test]
fn what_is_no_recording_and_what_cannot_be_meant_are_told() {
    for (text, options, what) in [
        (
            "{\"version\": 1}\n",
            &[][..],
            "a.cast:1: this is no asciicast of version 2",
        ),
        (
            "{\"version\": 2, \"width\": 80, \"height\": 24}\nx\n",
            &[],
            "a.cast:2: this is no event",
        ),
        ("", &["--speed", "0"], "a speed is a number from 0.01 to 1000"),
        ("", &["--speed", "NaN"], "a speed is a number"),
        ("", &["--idle", "soon"], "a duration such as"),
        ("", &["--as-text", "--idle", "1s"], "cannot be used with"),
    ] {
        let ran = replay(text, options).run();
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert!(ran.stderr.contains(what), "{ran}");
    }
}
