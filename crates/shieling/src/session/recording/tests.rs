#![expect(clippy::disallowed_methods, reason = "tests look at the files that were recorded")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::units::ByteCount;

fn place() -> (tempfile::TempDir, RecordingSettings) {
    let outside = tempfile::tempdir().expect("a temporary directory can be made");
    let to = RecordingSettings::new(outside.path().join("recordings"));
    (outside, to)
}

fn header(title: &str) -> RecordingHeader<'_> {
    RecordingHeader {
        title,
        size: TerminalSize::default(),
        terminal: true,
        variables: [Some("xterm-256color"), Some("/bin/bash")],
    }
}

fn begun(to: &RecordingSettings) -> Recording {
    Recording::begin(to, &header("make check")).expect("it can be written")
}

fn path(to: &RecordingSettings, id: &RecordingId) -> std::path::PathBuf {
    to.directory.join(id.file_name())
}

/// The header and the events of a recording that `act` made.
fn list_recordings(to: &RecordingSettings, act: impl FnOnce(&mut Recording)) -> (Value, Vec<(String, String)>) {
    let mut recording = begun(to);
    let file = path(to, recording.id());
    act(&mut recording);
    assert_eq!(recording.error(), None);
    drop(recording);
    read(&file)
}

fn read(file: &Path) -> (Value, Vec<(String, String)>) {
    let text = fs::read_to_string(file).expect("it is there");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let header = lines.next().expect("a header");
    let mut last = 0.0;
    let events = lines.map(|event| {
        let time = event[0].as_f64().expect("a time");
        assert!(time >= last, "{event}");
        last = time;
        let text = |at: usize| event[at].as_str().expect("a text").to_owned();
        (text(1), text(2))
    });
    let events = events.collect();
    (header, events)
}

fn pairs(events: &[(String, String)]) -> Vec<(&str, &str)> {
    events
        .iter()
        .map(|(kind, text)| (kind.as_str(), text.as_str()))
        .collect()
}

#[test]
fn a_recording_is_an_asciicast_with_marks() {
    let (_outside, to) = place();
    let (header, events) = list_recordings(&to, |recording| {
        recording.mark("command: make check");
        recording.output(Stream::Stdout, b"\x1b[1mok\x1b[m\r\n");
        recording.input(b"hunter2\r");
        recording.input(b"y");
        recording.resize(TerminalSize { rows: 40, columns: 120 });
        recording.output(Stream::Stderr, b"warning\r\n");
    });
    assert_eq!(
        (
            &header["version"],
            &header["width"],
            &header["height"],
            &header["title"]
        ),
        (&json!(2), &json!(80), &json!(24), &json!("make check"))
    );
    assert_eq!(header["env"], json!({"TERM": "xterm-256color", "SHELL": "/bin/bash"}));
    assert!(header["timestamp"].as_u64().is_some() && header["shieling"].is_object());
    assert_eq!(
        pairs(&events),
        [
            ("m", "command: make check"),
            ("o", "\u{1b}[1mok\u{1b}[m\r\n"),
            ("m", "input: 8 bytes"),
            ("m", "input: 1 byte"),
            ("r", "120x40"),
            ("o", "warning\r\n"),
        ]
    );
}

#[test]
fn what_was_typed_is_in_no_recording() {
    let (_outside, to) = place();
    let mut recording = begun(&to);
    let file = path(&to, recording.id());
    recording.input(b"hunter2\r");
    drop(recording);
    let text = fs::read_to_string(file).expect("it is there");
    assert!(text.contains("input: 8 bytes") && !text.contains("hunter2"), "{text}");
}

#[test]
fn characters_that_come_in_pieces_stay_whole_in_each_stream() {
    let (_outside, to) = place();
    let (_, events) = list_recordings(&to, |recording| {
        let (one, two) = ("日".as_bytes(), "é".as_bytes());
        recording.output(Stream::Stdout, &one[..1]);
        recording.output(Stream::Stderr, &two[..1]);
        recording.output(Stream::Stdout, &one[1..]);
        recording.output(Stream::Stderr, &two[1..]);
        recording.output(Stream::Stdout, b"a\xff\xc3");
        recording.output(Stream::Stdout, b"b");
        recording.output(Stream::Stdout, b"\xf0\x9f");
    });
    assert_eq!(
        pairs(&events),
        [
            ("o", "日"),
            ("o", "é"),
            ("o", "a\u{fffd}"),
            ("o", "\u{fffd}b"),
            ("o", "\u{fffd}"),
        ]
    );
}

#[test]
fn lines_of_a_pipe_begin_at_the_left() {
    let (_outside, to) = place();
    let header = RecordingHeader {
        terminal: false,
        ..header("ls")
    };
    let mut recording = Recording::begin(&to, &header).expect("it can be written");
    let file = path(&to, recording.id());
    recording.output(Stream::Stdout, b"a\nb\n");
    drop(recording);
    assert_eq!(pairs(&read(&file).1), [("o", "a\r\nb\r\n")]);
}

#[test]
fn a_recording_that_reaches_its_bound_says_so_and_stops() {
    let (_outside, mut to) = place();
    to.per_recording = ByteCount::kib(64);
    let (_, events) = list_recordings(&to, |recording| {
        for _ in 0..100 {
            recording.output(Stream::Stdout, &[b'x'; 1_000]);
        }
        recording.mark("after");
    });
    let (kind, text) = events.last().expect("there are events");
    assert_eq!(
        (kind.as_str(), text.as_str()),
        ("m", "cut off: a recording takes at most 64 KiB")
    );
    assert!(events.len() > 55 && events.len() < 70, "{}", events.len());
    for entry in fs::read_dir(&to.directory).expect("it is there").flatten() {
        assert!(entry.metadata().expect("it is there").len() <= 64 * 1024);
    }
}

#[test]
fn recordings_are_for_their_owner_alone() {
    let (_outside, to) = place();
    fs::create_dir_all(&to.directory).expect("it can be made");
    let recording = begun(&to);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(&to.directory), 0o700);
    assert_eq!(mode(&path(&to, recording.id())), 0o600);
}

#[test]
fn the_oldest_recordings_go_and_those_being_written_stay() {
    let (_outside, mut to) = place();
    to.per_recording = ByteCount::kib(64);
    to.in_all = ByteCount::kib(200);
    let full = || {
        let mut recording = begun(&to);
        for _ in 0..60 {
            recording.output(Stream::Stdout, &[b'x'; 1_000]);
        }
        recording
    };
    let being_written = begun(&to);
    let ids: Vec<RecordingId> = (1..5)
        .map(|second| {
            let id = full().id().clone();
            // The file system's clock is too coarse to tell them apart.
            let file = fs::OpenOptions::new()
                .append(true)
                .open(path(&to, &id))
                .expect("it is there");
            let time = UNIX_EPOCH + std::time::Duration::from_secs(second);
            file.set_modified(time).expect("it is ours");
            id
        })
        .collect();
    let there: Vec<bool> = ids.iter().map(|id| path(&to, id).exists()).collect();
    assert_eq!(there, [false, false, true, true]);
    assert!(path(&to, being_written.id()).exists());
    let second = begun(&to);
    let third = begun(&to);
    assert!(path(&to, second.id()).exists() && path(&to, third.id()).exists());
    // Nothing is left that could go: the newest is cut off at once, and nothing is refused.
    let (_, events) = list_recordings(&to, |recording| recording.output(Stream::Stdout, b"unseen"));
    let mark = "cut off: all recordings together take at most 200 KiB, which those being written have taken";
    assert_eq!(pairs(&events), [("m", mark)]);
}

#[test]
fn forty_that_are_being_written_count_as_what_they_have_written() {
    let (_outside, mut to) = place();
    let mut open: Vec<Recording> = (0..40).map(|_| begun(&to)).collect();
    for recording in &mut open {
        recording.output(Stream::Stdout, b"as usual");
    }
    for recording in open {
        let file = path(&to, recording.id());
        drop(recording);
        assert_eq!(pairs(&read(&file).1), [("o", "as usual")]);
    }
    // Together they are bounded all the same, whichever of them write.
    to.in_all = ByteCount::mib(4);
    let mut open: Vec<Recording> = (0..40).map(|_| begun(&to)).collect();
    for recording in &mut open {
        for _ in 0..300 {
            recording.output(Stream::Stdout, &[b'x'; 1_000]);
        }
    }
    let sizes = fs::read_dir(&to.directory).expect("it is there").flatten();
    let total: u64 = sizes.map(|entry| entry.metadata().expect("it is there").len()).sum();
    assert!(total < 4 * 1024 * 1024 && total > 2 * 1024 * 1024, "{total}");
    let cut = open.iter().filter(|recording| recording.file.is_none()).count();
    assert!(cut > 20 && cut < 40, "{cut}");
    assert!(open[0].file.is_some() && open.iter().all(|recording| recording.error().is_none()));
}

#[test]
fn what_is_not_ours_is_never_removed() {
    let (_outside, mut to) = place();
    to.per_recording = ByteCount::kib(64);
    to.in_all = ByteCount::kib(128);
    fs::create_dir(&to.directory).expect("it can be made");
    let foreign = json!({"version": 2, "width": 80, "height": 24}).to_string() + &"\n".repeat(100_000);
    let ours = json!({"version": 2, "shieling": {}}).to_string() + &"\n".repeat(100_000);
    let named = "20200101T000000Z-0123456789abcdef0123.cast";
    let elsewhere = to.directory.with_file_name("elsewhere");
    for (name, text) in [
        ("app.log", &ours),
        ("foo.cast", &ours),
        ("20200101T000000Z-0123456789abcdef0123.cast.bak", &ours),
        ("20200101T000000Z-0123456789abcdef012X.cast", &ours),
        (named, &foreign),
    ] {
        fs::write(to.directory.join(name), text).expect("it can be written");
    }
    fs::write(&elsewhere, &ours).expect("it can be written");
    let link = to.directory.join("20200101T000000Z-0123456789abcdef0124.cast");
    symlink(&elsewhere, &link).expect("it can be made");
    let directory = to.directory.join("20200101T000000Z-0123456789abcdef0125.cast");
    fs::create_dir(&directory).expect("it can be made");
    let mine = to.directory.join("20200101T000000Z-0123456789abcdef0126.cast");
    fs::write(&mine, &ours).expect("it can be written");

    drop(begun(&to));
    assert!(!mine.exists(), "this one is ours, and too much");
    for name in ["app.log", "foo.cast", named] {
        assert!(to.directory.join(name).exists(), "{name}");
    }
    assert!(link.exists() && elsewhere.exists() && directory.exists());
    assert_eq!(fs::read_dir(&to.directory).expect("it is there").count(), 8);
}

#[test]
fn a_name_is_never_a_path() {
    let good = "20261121T070754Z-0123456789abcdef0123";
    assert_eq!(
        good.parse::<RecordingId>().map(|id| id.file_name()),
        Ok(format!("{good}.cast"))
    );
    for wrong in [
        "",
        "..",
        "../20261121T070754Z-0123456789abcdef0123",
        "20261121T070754Z-0123456789abcdef012/",
        "20261121T070754Z-0123456789ABCDEF0123",
        "20261121T070754Z-0123456789abcdef01234",
        "20261121T070754Z-0123456789abcdef0123.cast",
        "2026-11-21T07:07:54Z-0123456789abcdef",
        "é0261121T070754Z-0123456789abcdef012",
    ] {
        assert_eq!(wrong.parse::<RecordingId>(), Err(RecordingIdError), "{wrong}");
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_told() {
    let (outside, mut to) = place();
    to.directory = "/proc/nowhere".into();
    assert!(Recording::begin(&to, &header("ls")).is_err());
    let target = outside.path().join("target");
    fs::create_dir(&target).expect("it can be made");
    to.directory = outside.path().join("link");
    symlink(&target, &to.directory).expect("it can be made");
    let error = Recording::begin(&to, &header("ls")).expect_err("a link may lead anywhere");
    assert!(error.to_string().contains("is a link"), "{error}");
}
