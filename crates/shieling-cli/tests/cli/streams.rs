//! What `exec` passes on: standard input, whole outputs, and a terminal.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling_testkit::{Marker, leftovers, prerequisite};

use crate::support::Shieling;

fn exec(options: &[&str], command: &str) -> Shieling {
    Shieling::in_workspace()
        .args(["exec"])
        .args(options.iter().copied())
        .args(["--", command])
}

/// Starts it with pipes for what it writes.
fn started(shieling: &Shieling, input: Stdio) -> Child {
    shieling
        .command()
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

const LOCAL: [&str; 3] = ["--env", "local", "--approval=policy"];

#[test]
fn a_pipe_reaches_the_command_in_every_environment() {
    for options in [&[][..], &LOCAL, &["--env", "memory"]] {
        let ran = exec(options, "cat").input("one\ntwo").run();
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Some(0), "one\ntwo"),
            "{options:?} {ran}"
        );
    }
    let ran = exec(&["--json"], "wc -c").input("12345").run();
    assert!(ran.stdout.contains(r#""stdout":"5\n""#), "{ran}");
}

#[test]
fn a_megabyte_passes_through_and_the_reader_may_stop_early() {
    let text = "0123456789abcde\n".repeat(1 << 16);
    for (command, expected) in [
        ("cat | md5sum | wc -l", "1\n"),
        ("head -n 1", "0123456789abcde\n"),
        ("true", ""),
    ] {
        let ran = exec(&[], command).input(&text).run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), expected), "{command}");
    }
    let ran = exec(&[], "cat").input(&text).run();
    assert!(ran.stdout == text, "{} bytes of {}", ran.stdout.len(), text.len());
}

#[test]
fn without_input_the_command_finds_an_end_of_file() {
    let ran = exec(&["--no-stdin"], "cat; echo end").input("not for it").run();
    assert_eq!(ran.stdout, "end\n");
}

#[test]
fn what_was_not_read_of_a_file_is_there_for_the_next_reader() {
    let shieling = exec(&[], "read line; echo \"$line\"");
    let path = shieling.workspace().join("lines");
    std::fs::write(&path, "one\ntwo\nthree\n").expect("writable");
    let mut file = File::open(&path).expect("just written");
    let mut read = || {
        let stdin = Stdio::from(file.try_clone().expect("a descriptor"));
        let output = shieling.command().stdin(stdin).output().expect("it starts");
        (
            String::from_utf8(output.stdout).expect("text"),
            file.stream_position().expect("a file"),
        )
    };
    assert_eq!(read(), ("one\n".to_owned(), 4));
    assert_eq!(read(), ("two\n".to_owned(), 8));
    let mut rest = String::new();
    file.read_to_string(&mut rest).expect("readable");
    assert_eq!(rest, "three\n");
}

#[test]
fn a_directory_or_a_writable_file_as_input_opens_nothing() {
    let shieling = exec(
        &[],
        "ls /proc/self/fd/0/ 2>&1; echo more >&0; chmod 777 /dev/fd/0 2>&1; cat",
    );
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("canary"), "").expect("writable");
    let directory = File::open(outside.path()).expect("a directory");
    let output = shieling
        .command()
        .stdin(Stdio::from(directory))
        .output()
        .expect("it starts");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("canary"));
    let path = outside.path().join("file");
    std::fs::write(&path, "content").expect("writable");
    let before = std::fs::metadata(&path).expect("there").permissions();
    let file = File::options().read(true).write(true).open(&path).expect("there");
    shieling.command().stdin(Stdio::from(file)).output().expect("it starts");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "content");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions(), before);
}

#[test]
fn an_input_that_never_ends_does_not_keep_a_command_that_ended() {
    let shieling = exec(&[], "echo done");
    let mut child = started(&shieling, Stdio::piped());
    let kept = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"done\n");
    drop(kept);
}

#[test]
fn output_is_copied_whole_however_long_it_is_and_only_a_given_limit_cuts_it() {
    let whole: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let ran = exec(&[], "seq 1 200000; echo end >&2").run();
    assert!(ran.stdout == whole, "{} bytes of {}", ran.stdout.len(), whole.len());
    assert_eq!(ran.stderr, "end\n");
    let ran = exec(&["--max-output", "20"], "seq 1 200000").run();
    assert!(ran.stdout.contains("bytes left out"), "{ran}");
}

#[test]
fn a_slow_reader_holds_the_command_up_and_loses_nothing() {
    // More than all pipes and queues on the way hold.
    const BYTES: usize = 16 << 20;
    let shieling = exec(&[], "head -c 16777216 /dev/zero; echo written >&2");
    let mut child = started(&shieling, Stdio::null());
    let mut output = child.stdout.take().expect("a pipe");
    let mut first = [0; 1];
    output.read_exact(&mut first).expect("it has begun");
    let waits = rustix::event::poll(
        &mut [rustix::event::PollFd::new(
            child.stderr.as_ref().expect("a pipe"),
            rustix::event::PollFlags::IN,
        )],
        Some(&rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 300_000_000,
        }),
    );
    assert_eq!(waits, Ok(0), "it ended although nobody read what it wrote");
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).expect("readable");
    assert_eq!(rest.len() + 1, BYTES);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_reader_that_does_not_read_does_not_stop_the_clock() {
    let marker = Marker::new();
    let (first, second) = marker.text().split_at(10);
    // In two parts, so that the command carries the mark and its `exec` does not.
    let command = format!("first={first}; exec -a \"$first\"{second} yes");
    let shieling = exec(&["--timeout", "3s"], &command);
    let mut child = started(&shieling, Stdio::null());
    let is_running = || !leftovers(&marker).is_empty();
    wait_until("the command runs", is_running);
    // Nothing of its output is read before it has ended.
    wait_until("the command is ended", || !is_running());
    let (mut output, mut said) = (child.stdout.take().expect("a pipe"), String::new());
    std::io::copy(&mut output, &mut std::io::sink()).expect("readable");
    let mut errors = child.stderr.take().expect("a pipe");
    errors.read_to_string(&mut said).expect("text");
    assert!(said.starts_with("timed out"), "{said}");
    assert_eq!(child.wait().expect("it ends").code(), Some(124));
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "still not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_syntax_error_is_said_in_bashs_words() {
    for options in [&[][..], &LOCAL, &["--readonly"]] {
        let ran = exec(options, "echo $(").run();
        assert_eq!(ran.exit, Some(2), "{options:?} {ran}");
        assert!(
            ran.stderr.contains("unexpected EOF") || ran.stderr.contains("syntax error"),
            "{ran}"
        );
        assert!(!ran.stderr.contains("not approved"), "{ran}");
    }
}

fn typed(options: &[&str], command: &str, steps: &Value) -> Value {
    exec(options, command).variable("TERM", "dumb").typed(steps)
}

#[test]
fn on_a_terminal_the_command_has_one_with_its_size_its_keys_and_its_status() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let command = "stty size; test -t 0 && test -t 1 && test -t 2 && echo three; read line; echo \"got $line\"; exit 7";
    let told = typed(&[], command, &json!([["three", "hello\n"]]));
    assert_eq!(told["status"], 7, "{told}");
    let output = told["output"].as_str().expect("a text");
    assert!(output.contains("33 101") && output.contains("got hello"), "{told}");
    assert_eq!(told["was_raw"], json!(true), "{told}");
}

#[test]
fn with_landlock_alone_it_has_a_terminal_of_its_own_and_reaches_no_other() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let command = "own=$(tty); echo mine >\"$own\"; for n in {0..99}; do other=/dev/pts/$n; [ $other = $own ] || \
                   { : >$other && echo \"wrote to $other\"; } 2>/dev/null; done; stty size; read line; echo \"got $line\"";
    let told = typed(&["--isolation", "landlock"], command, &json!([["33 101", "hello\n"]]));
    assert_eq!(told["status"], 0, "{told}");
    let output = told["output"].as_str().expect("a text");
    assert!(output.contains("mine") && output.contains("got hello"), "{told}");
    assert!(!output.contains("wrote to"), "{told}");
}

#[test]
fn ctrl_c_ends_the_command_and_the_terminal_is_what_it_was() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let told = typed(&[], "echo rea''dy; exec sleep 1000", &json!([["ready", "\u{3}"]]));
    assert_eq!(told["status"], 130, "{told}");
    assert_eq!(told["restored"], json!(true), "{told}");
}

#[test]
fn a_question_is_answered_before_the_command_takes_the_terminal() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let steps = json!([["y = yes", "y\n"], ["ready", "hello\n"]]);
    let options = ["--env", "local", "--approval", "always"];
    let told = typed(&options, "echo rea''dy; read line; echo \"got $line\"", &steps);
    assert_eq!(told["status"], 0, "{told}");
    assert!(told["output"].as_str().expect("a text").contains("got hello"), "{told}");
}

#[test]
fn a_question_after_the_command_has_the_terminal_that_the_person_had() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    for (key, kept) in [("y\r", true), ("n\r", false)] {
        let shieling = exec(&["--changes", "review"], "echo 1 > made").variable("TERM", "dumb");
        let told = shieling.typed(&json!([["y = yes", key]]));
        assert_eq!(told["restored"], json!(true), "{told}");
        assert_eq!(shieling.workspace().join("made").exists(), kept, "{told}");
    }
}

#[test]
fn keys_answer_the_question_about_a_host_and_do_not_reach_the_command() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let options = ["--allow-host", "pypi.org"];
    let command =
        "read -t 0.1 line; curl -sS -m 20 https://example.org; echo \"rest $?\"; read line; echo \"got $line\"";
    let steps = json!([["n = no", "n\r"], ["rest", "hello\r"]]);
    let told = typed(&options, command, &steps);
    assert!(told["output"].as_str().expect("a text").contains("got hello"), "{told}");
}

#[test]
fn on_a_terminal_a_failure_is_explained_as_in_a_pipe() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let told = typed(&[], "touch /usr/bin/new", &json!([]));
    assert_eq!(told["status"], 1, "{told}");
    assert!(told["output"].as_str().expect("a text").contains("because"), "{told}");
}

#[test]
fn a_recorded_or_limited_command_has_no_terminal() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let told = typed(&["--max-output", "1KiB"], "test -t 1 || echo pipe", &json!([]));
    assert!(told["output"].as_str().expect("a text").contains("pipe"), "{told}");
}

#[test]
fn a_closed_reader_ends_the_command_as_in_any_pipe() {
    let shieling = exec(&[], "yes");
    let mut child = started(&shieling, Stdio::null());
    let mut output = child.stdout.take().expect("a pipe");
    let mut first = [0; 2];
    output.read_exact(&mut first).expect("it has begun");
    drop(output);
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
}

#[test]
fn input_typed_before_the_command_reads_waits_for_it() {
    // The input is at its end before the command begins to read.
    let shieling = exec(&[], "until [ -e written ]; do sleep 0.01; done; cat");
    let mut child = started(&shieling, Stdio::piped());
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"early\n").expect("it is passed on");
    drop(input);
    std::fs::write(shieling.workspace().join("written"), "").expect("ours");
    assert_eq!(child.wait_with_output().expect("it ends").stdout, b"early\n");
}
