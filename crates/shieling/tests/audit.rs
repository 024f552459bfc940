//! The audit log: what was written is there, in order, and every change to it is noticed.
#![expect(clippy::disallowed_methods, reason = "a test tampers with its own log")]

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use shieling::audit::{Defect, Durability, LogFile, LogHead, LogSettings, Record, RecordKind, Sink, SinkFn, verify};
use shieling::request::{Command, Digest};
use shieling::units::ByteCount;
use shieling_testkit::Workspace;

fn record(text: &str) -> Record {
    let variables = [("TOKEN".to_owned(), "hunter2".to_owned())].into();
    let command = Command::new(text, "/work")
        .expect("a command")
        .with_variables(variables);
    Record::new(
        RecordKind::Intent,
        "run-1".to_owned(),
        1.5,
        &command,
        "local",
        Digest::of(b"policy"),
    )
}

fn log(workspace: &Workspace) -> LogFile {
    LogFile::open(workspace.path("audit.jsonl"), LogSettings::default()).expect("a new log")
}

/// A log of so many records.
fn written(records: usize) -> (Workspace, PathBuf) {
    let workspace = Workspace::new();
    let log = log(&workspace);
    for index in 0..records {
        log.append(&record(&format!("echo {index}"))).expect("room for it");
    }
    let path = log.path().to_owned();
    (workspace, path)
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .expect("the log")
        .lines()
        .map(str::to_owned)
        .collect()
}

fn put(path: &Path, lines: &[String]) {
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("the log");
}

#[test]
fn a_log_that_nobody_touched_verifies_and_tells_its_head() {
    let (_workspace, path) = written(5);
    let summary = verify(&path, None).expect("whole");
    assert_eq!(summary.records, 5);
    let head = summary.head.expect("five lines have a last one");
    assert_eq!(head.digest, Digest::of(lines(&path)[4].as_bytes()));
    assert_eq!(head.to_string().parse(), Ok(head));
    verify(&path, Some(head)).expect("the head is in it");
}

#[test]
fn each_line_carries_the_digest_of_the_exact_bytes_before() {
    let (_workspace, path) = written(3);
    let mut before = "0".repeat(64);
    for (index, line) in lines(&path).iter().enumerate() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value["seq"], index + 1);
        assert_eq!(value["prev"], before);
        before = Digest::of(line.as_bytes()).to_string();
    }
}

#[test]
fn names_of_variables_are_recorded_and_values_are_not() {
    let (_workspace, path) = written(1);
    let text = fs::read_to_string(path).expect("the log");
    assert!(
        text.contains(r#""variables":["TOKEN"]"#) && !text.contains("hunter2"),
        "{text}"
    );
}

#[test]
fn every_kind_of_tampering_is_noticed_at_the_first_line_that_shows_it() {
    type Tamper = fn(&mut Vec<String>);
    let cases: [(&str, Tamper, u64, &str); 12] = [
        (
            "edited",
            |l| l[2] = l[2].replace("echo 2", "echo x"),
            3,
            "was edited: its content does not fit its check sum",
        ),
        (
            "edited at the end",
            |l| l[4] = l[4].replace("echo 4", "echo x"),
            5,
            "was edited: its content does not fit its check sum",
        ),
        (
            "blank added",
            |l| l[2].push(' '),
            3,
            "was edited: its content does not fit its check sum",
        ),
        ("not JSON any more", |l| l[1].truncate(30), 2, "is no record"),
        ("emptied", |l| l[1].clear(), 2, "is no record"),
        (
            "removed",
            |l| drop(l.remove(2)),
            3,
            "has number 4 where 3 is next: lines were removed, inserted or reordered",
        ),
        (
            "first removed",
            |l| drop(l.remove(0)),
            1,
            "has number 2 where 1 is next: lines were removed, inserted or reordered",
        ),
        (
            "repeated",
            |l| l.insert(2, l[1].clone()),
            3,
            "has number 2 where 3 is next: lines were removed, inserted or reordered",
        ),
        (
            "swapped",
            |l| l.swap(1, 3),
            2,
            "has number 4 where 2 is next: lines were removed, inserted or reordered",
        ),
        (
            "edited with a new check sum",
            |l| l[2] = reforged(&l[2], "echo 2", "echo x"),
            4,
            "does not follow from the line before it: one of the two was rewritten",
        ),
        (
            "removed and renumbered",
            |l| {
                l.remove(2);
                l[2] = reforged(&l[2], r#""seq":4"#, r#""seq":3"#);
            },
            3,
            "does not follow from the line before it: one of the two was rewritten",
        ),
        (
            "a record of another log",
            |l| l[3] = lines(&written(5).1)[3].replace("run-1", "run-2"),
            4,
            "was edited: its content does not fit its check sum",
        ),
    ];
    for (name, tamper, line, why) in cases {
        let (_workspace, path) = written(5);
        let mut lines = lines(&path);
        tamper(&mut lines);
        put(&path, &lines);
        let broken = verify(&path, None).expect_err(name);
        assert_eq!((broken.line, broken.why.to_string().as_str()), (line, why), "{name}");
    }
}

/// What somebody does who knows the format.
fn reforged(line: &str, from: &str, to: &str) -> String {
    let (content, _) = line.rsplit_once(",\"check\":").expect("every line has one");
    let content = content.replace(from, to);
    let check = Digest::of(content.as_bytes());
    format!("{content},\"check\":\"{check}\"}}")
}

#[test]
fn a_log_that_was_cut_off_or_rewritten_is_noticed_with_a_head_noted_before() {
    let (_workspace, path) = written(5);
    let head = verify(&path, None).expect("whole").head;
    let mut all = lines(&path);
    all.truncate(3);
    put(&path, &all);
    verify(&path, None).expect("a shorter chain is a chain");
    let broken = verify(&path, head).expect_err("the head is gone");
    assert!(matches!(broken.why, Defect::CutOff) && broken.line == 4, "{broken}");

    let (_other, path) = written(5);
    let broken = verify(&path, head).expect_err("another log, with other times");
    assert!(matches!(broken.why, Defect::Rewritten) && broken.line == 5, "{broken}");
}

#[test]
fn a_log_that_has_grown_since_the_head_was_noted_still_holds_it() {
    let workspace = Workspace::new();
    let log = log(&workspace);
    log.append(&record("one")).expect("room");
    let noted: LogHead = log.head().expect("one line");
    log.append(&record("two")).expect("room");
    assert_eq!(verify(log.path(), Some(noted)).expect("grown").records, 2);
}

#[test]
fn an_empty_log_is_whole_unless_a_head_is_expected() {
    let workspace = Workspace::new();
    let log = log(&workspace);
    assert_eq!(verify(log.path(), None).expect("empty").head, None);
    let head = LogHead {
        seq: 1,
        digest: Digest::of(b""),
    };
    assert!(matches!(
        verify(log.path(), Some(head)).expect_err("cut off").why,
        Defect::CutOff
    ));
    assert!(matches!(
        verify(&workspace.path("none"), None).expect_err("no file").why,
        Defect::Unreadable(_)
    ));
}

#[test]
fn nothing_that_a_command_holds_can_forge_a_line_or_reach_a_terminal() {
    let workspace = Workspace::new();
    let log = log(&workspace);
    let nasty = "echo '\"}\n{\"seq\":9}\r\u{1b}[2J\u{7f}\u{85}\u{9b}31m\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}'";
    log.append(&record(nasty)).expect("room");
    log.append(&record("true")).expect("room");
    let text = fs::read_to_string(log.path()).expect("UTF-8");
    assert_eq!(text.lines().count(), 2);
    assert!(
        text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)),
        "{}",
        text.escape_debug()
    );
    let value: serde_json::Value = serde_json::from_str(&lines(log.path())[0]).expect("JSON");
    assert_eq!(
        value["command"], nasty,
        "escaping changes how it is written and not what it says"
    );
    verify(log.path(), None).expect("whole");
}

#[test]
fn letters_of_every_language_stay_readable() {
    let workspace = Workspace::new();
    let log = log(&workspace);
    log.append(&record("echo 'żółć 日本語 🦀'")).expect("room");
    assert!(
        fs::read_to_string(log.path())
            .expect("UTF-8")
            .contains("żółć 日本語 🦀")
    );
}

#[test]
fn a_log_is_continued_where_it_ended() {
    let (_workspace, path) = written(2);
    let log = LogFile::open(
        &path,
        LogSettings {
            durability: Durability::Disk,
            ..LogSettings::default()
        },
    )
    .expect("there");
    log.append(&record("echo again")).expect("room");
    assert_eq!(verify(&path, None).expect("whole").records, 3);
}

#[test]
fn a_last_line_longer_than_the_first_look_is_found_whole() {
    let workspace = Workspace::new();
    for size in [8_000, 8_192, 100_000, 900_000] {
        let log = log(&workspace);
        log.append(&record(&"x".repeat(size))).expect("room");
    }
    assert_eq!(verify(&workspace.path("audit.jsonl"), None).expect("whole").records, 4);
}

#[test]
fn a_torn_last_line_is_refused_and_the_remedy_works() {
    for torn in ["{\"seq\":4,\"pr".to_owned(), "x".repeat(100_000)] {
        let (_workspace, path) = written(3);
        let whole = fs::metadata(&path).expect("there").len();
        let text = fs::read(&path).expect("there");
        fs::write(&path, [&text[..], torn.as_bytes()].concat()).expect("ours");
        assert!(matches!(verify(&path, None).expect_err("torn").why, Defect::Torn));
        let error = LogFile::open(&path, LogSettings::default())
            .expect_err("torn")
            .to_string();
        assert!(error.contains(&format!("truncate -s {whole}")), "{error}");
        fs::File::options()
            .write(true)
            .open(&path)
            .expect("ours")
            .set_len(whole)
            .expect("ours");
        LogFile::open(&path, LogSettings::default())
            .expect("mended")
            .append(&record("on"))
            .expect("room");
        assert_eq!(verify(&path, None).expect("whole").records, 4);
    }
}

#[test]
fn a_last_line_that_is_no_record_is_not_continued() {
    let (_workspace, path) = written(3);
    let mut all = lines(&path);
    all[2] = all[2].replace("echo", "ohce");
    put(&path, &all);
    let error = LogFile::open(&path, LogSettings::default()).expect_err("edited");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
}

#[test]
fn a_log_that_is_moved_or_cut_while_in_use_takes_no_more_records() {
    let workspace = Workspace::new();
    let log = log(&workspace);
    log.append(&record("one")).expect("room");
    fs::rename(log.path(), workspace.path("old")).expect("ours");
    assert_eq!(
        log.append(&record("two")).expect_err("gone").kind(),
        io::ErrorKind::NotFound
    );
    fs::write(log.path(), "").expect("ours");
    assert_eq!(
        log.append(&record("two")).expect_err("another").kind(),
        io::ErrorKind::NotFound
    );
    fs::rename(workspace.path("old"), log.path()).expect("ours");
    log.append(&record("two")).expect("the same file is back");
    fs::File::options()
        .write(true)
        .open(log.path())
        .expect("ours")
        .set_len(0)
        .expect("ours");
    assert_eq!(
        log.append(&record("three")).expect_err("cut").kind(),
        io::ErrorKind::InvalidData
    );
}

#[test]
fn a_full_log_takes_no_more_records_and_stays_whole() {
    let workspace = Workspace::new();
    let settings = LogSettings {
        bound: ByteCount::bytes(2_000),
        ..LogSettings::default()
    };
    let log = LogFile::open(workspace.path("audit.jsonl"), settings).expect("new");
    let refused = (0..10)
        .find_map(|_| log.append(&record("true")).err())
        .expect("2,000 bytes are soon full");
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull, "{refused}");
    assert!(verify(log.path(), None).expect("whole").records >= 2);
}

#[test]
fn a_log_is_for_its_owner_alone_and_reached_by_no_link() {
    let (workspace, path) = written(1);
    assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
    symlink(&path, workspace.path("link")).expect("ours");
    LogFile::open(workspace.path("link"), LogSettings::default()).expect_err("a link");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("ours");
    let error = LogFile::open(&path, LogSettings::default()).expect_err("anybody may write");
    assert!(error.to_string().contains("chmod go-w"), "{error}");
    LogFile::open(workspace.root(), LogSettings::default()).expect_err("a directory");
    LogFile::open("/dev/null", LogSettings::default()).expect_err("a device");
}

#[test]
fn writers_at_the_same_time_lose_nothing_and_keep_one_chain() {
    let workspace = Workspace::new();
    let shared = log(&workspace);
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let (shared, workspace) = (&shared, &workspace);
            scope.spawn(move || {
                // Half of them share one opening, the others behave like further processes.
                let own = log(workspace);
                let log = if writer % 2 == 0 { shared } else { &own };
                for index in 0..20 {
                    log.append(&record(&format!("echo {writer} {index}"))).expect("room");
                }
            });
        }
    });
    assert_eq!(verify(shared.path(), None).expect("whole").records, 120);
    let text = fs::read_to_string(shared.path()).expect("UTF-8");
    for writer in 0..6 {
        for index in 0..20 {
            assert_eq!(text.matches(&format!("\"echo {writer} {index}\"")).count(), 1);
        }
    }
}

#[test]
fn a_function_can_be_a_sink() {
    let seen = Mutex::new(Vec::new());
    let sink = SinkFn(|record: &Record| {
        seen.lock().expect("no panic").push(record.command.clone());
        Ok(())
    });
    sink.append(&record("true")).expect("it takes all");
    assert_eq!(*seen.lock().expect("no panic"), ["true"]);
}

/// A log that is rotated after a few records.
fn small(workspace: &Workspace) -> LogFile {
    let settings = LogSettings {
        bound: ByteCount::bytes(2_000),
        generations: 3,
        ..LogSettings::default()
    };
    LogFile::open(workspace.path("audit.jsonl"), settings).expect("it opens")
}

#[test]
fn a_log_that_keeps_generations_never_fills_up_and_its_chain_goes_on_across_them() {
    let workspace = Workspace::new();
    let log = small(&workspace);
    for index in 0..40 {
        log.append(&record(&format!("echo {index}"))).expect("it is rotated");
    }
    let path = workspace.path("audit.jsonl");
    let size = |number: u32| fs::metadata(workspace.path(&format!("audit.jsonl.{number}"))).map(|found| found.len());
    assert!((1..=3).all(|number| size(number).is_ok_and(|size| size <= 2_000)));
    assert!(size(4).is_err(), "the oldest goes");
    assert_eq!(
        fs::metadata(workspace.path("audit.jsonl.1")).expect("there").mode() & 0o777,
        0o600
    );
    let whole = verify(&path, None).expect("each follows the one before");
    let head = whole.head.expect("it is not empty");
    assert!(head.seq == 40 && whole.records < 40 && whole.records > 5, "{whole:?}");
    verify(&path, Some(head)).expect("the head is in it");
    let one = verify(&workspace.path("audit.jsonl.1"), None).expect("by itself, with those before it");
    let noted = one.head.expect("it is full");
    verify(&path, Some(noted)).expect("an older head is in it");
    assert_eq!(log.head(), Some(head));
    // What was noted before the oldest cannot be looked for any more, and that is said.
    let gone = LogHead { seq: 1, ..head };
    assert!(matches!(
        verify(&path, Some(gone)).expect_err("rotated away").why,
        Defect::RotatedAway
    ));
}

#[test]
fn a_generation_that_was_changed_removed_or_exchanged_is_noticed() {
    type Tamper = fn(&Workspace);
    let cases: [(&str, Tamper); 5] = [
        ("edited", |w| {
            let path = w.path("audit.jsonl.1");
            let mut all = lines(&path);
            all[0] = all[0].replace("echo", "true");
            put(&path, &all);
        }),
        ("shortened", |w| {
            let path = w.path("audit.jsonl.1");
            let mut all = lines(&path);
            all.pop();
            put(&path, &all);
        }),
        ("removed", |w| fs::remove_file(w.path("audit.jsonl.1")).expect("ours")),
        ("exchanged", |w| {
            fs::rename(w.path("audit.jsonl.1"), w.path("x")).expect("ours");
            fs::rename(w.path("audit.jsonl.2"), w.path("audit.jsonl.1")).expect("ours");
            fs::rename(w.path("x"), w.path("audit.jsonl.2")).expect("ours");
        }),
        ("begun anew", |w| {
            let path = w.path("audit.jsonl");
            let all = lines(&path);
            put(&path, &all[1..]);
        }),
    ];
    for (what, tamper) in cases {
        let workspace = Workspace::new();
        let log = small(&workspace);
        for index in 0..40 {
            log.append(&record(&format!("echo {index}"))).expect("it is rotated");
        }
        while lines(log.path()).len() < 2 {
            log.append(&record("echo more")).expect("it is rotated");
        }
        tamper(&workspace);
        assert!(verify(log.path(), None).is_err(), "{what}");
    }
}

#[test]
fn writers_of_a_log_that_is_rotated_lose_nothing_and_keep_one_chain() {
    let workspace = Workspace::new();
    let settings = LogSettings {
        bound: ByteCount::kib(8),
        generations: 1_000,
        ..LogSettings::default()
    };
    let path = workspace.path("audit.jsonl");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let log = LogFile::open(&path, settings).expect("it opens");
                for index in 0..50 {
                    log.append(&record(&format!("echo {index}"))).expect("room");
                }
            });
        }
    });
    let whole = verify(&path, None).expect("one chain");
    assert_eq!((whole.records, whole.head.expect("not empty").seq), (200, 200));
    // One that has written nothing for a while goes on after what the others have written.
    let (idle, busy) = (
        LogFile::open(&path, settings).expect("it opens"),
        LogFile::open(&path, settings).expect("it opens"),
    );
    for _ in 0..60 {
        busy.append(&record("echo busy")).expect("room");
    }
    idle.append(&record("echo idle"))
        .expect("it finds the file that is written now");
    assert_eq!(
        verify(&path, None).expect("one chain").head.expect("not empty").seq,
        261
    );
}

#[test]
fn a_rotation_that_was_interrupted_is_taken_up_again() {
    let workspace = Workspace::new();
    let path = workspace.path("audit.jsonl");
    let log = small(&workspace);
    for index in 0..3 {
        log.append(&record(&format!("echo {index}"))).expect("room");
    }
    let seq = log.head().expect("not empty").seq;
    // Before the new file was made, and before anything was written to it.
    fs::rename(&path, workspace.path("audit.jsonl.1")).expect("ours");
    for made in [false, true] {
        if made {
            fs::rename(&path, workspace.path("audit.jsonl.1")).expect("ours");
            fs::write(&path, "").expect("ours");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        }
        small(&workspace).append(&record("echo next")).expect("it goes on");
    }
    log.append(&record("echo old")).expect("who had it open goes on too");
    let whole = verify(&path, None).expect("one chain");
    assert_eq!(whole.head.expect("not empty").seq, seq + 3);
}

#[test]
fn a_log_that_cannot_be_written_says_which_file_and_what_to_do() {
    let workspace = Workspace::new();
    let full = LogSettings {
        bound: ByteCount::bytes(100),
        ..LogSettings::default()
    };
    let log = LogFile::open(workspace.path("audit.jsonl"), full).expect("new");
    let refused = log.append(&record("true")).expect_err("it is full").to_string();
    assert!(
        refused.contains("audit.jsonl") && refused.contains("--audit FILE"),
        "{refused}"
    );
    let refused = LogFile::open("/dev/full", LogSettings::default())
        .expect_err("no file")
        .to_string();
    assert!(refused.contains("/dev/full"), "{refused}");
}
