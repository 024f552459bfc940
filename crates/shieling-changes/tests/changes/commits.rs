//! What a command makes of a workspace is what is committed, also where names and kinds are unusual.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use shieling_changes::{Action, ChangesError, Choice, DiffLimits, State, Surroundings};
use shieling_testkit::prerequisite;

use crate::support::{Place, os, sh, tree};

/// A workspace, a script, and what changes by it: one line for each path in the order of the scan.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("new file", "", "echo x > a", "+a"),
    ("modified", "echo x > a", "echo y > a", "~a"),
    (
        "rewritten with the same content",
        "echo x > a",
        "echo x > b; mv b a",
        "",
    ),
    ("deleted", "echo x > a", "rm a", "-a"),
    ("mode", "echo x > a", "chmod 700 a", "~a"),
    ("mode of a directory", "mkdir -m 755 a; touch a/x", "chmod 700 a", "~a"),
    ("new tree", "", "mkdir -p a/b; touch a/b/c a/d", "+a +a/b +a/b/c +a/d"),
    ("deleted tree", "mkdir -p a/b; touch a/b/c", "rm -r a", "-a -a/b -a/b/c"),
    (
        "directory made anew",
        "mkdir a; touch a/x a/y",
        "rm -r a; mkdir a; touch a/y a/z",
        "-a/x +a/z",
    ),
    (
        "directory becomes a file",
        "mkdir -p a/b; touch a/b/c",
        "rm -r a; echo x > a",
        "~a -a/b -a/b/c",
    ),
    (
        "file becomes a directory",
        "echo x > a",
        "rm a; mkdir a; touch a/x",
        "~a +a/x",
    ),
    (
        "directory becomes a link",
        "mkdir -p a b; touch a/x",
        "rm -r a; ln -s b a",
        "~a -a/x",
    ),
    (
        "link becomes a directory",
        "mkdir b; touch b/x; ln -s b a",
        "rm a; mkdir a; touch a/y",
        "~a +a/y",
    ),
    ("link points elsewhere", "ln -s x a", "ln -sfn y a", "~a"),
    (
        "links change places",
        "mkdir c d; ln -s c a; ln -s d b",
        "mv a t; mv b a; mv t b",
        "~a ~b",
    ),
    (
        "file and directory change places",
        "mkdir a; touch a/x; echo x > b",
        "mv a t; mv b a; mv t b",
        "~a -a/x ~b +b/x",
    ),
    ("renamed", "mkdir a; echo x > a/x", "mv a b", "-a -a/x +b +b/x"),
    ("made and removed", "", "mkdir a; touch a/x; rm -r a", ""),
    ("removed and made again", "echo x > a", "rm a; echo x > a", ""),
    (
        "a whiteout in a directory that is new again",
        "mkdir -p a/b; touch a/b/x",
        "rm a/b/x; rmdir a/b; mkdir a/b",
        "-a/b/x",
    ),
    (
        "closed to its owner",
        "",
        "mkdir a; echo x > a/x; chmod 0 a/x; chmod 0 a",
        "+a +a/x",
    ),
    (
        "read-only directory is moved",
        "mkdir a",
        "mkdir a/b; touch a/b/x; chmod 555 a/b",
        "+a/b +a/b/x",
    ),
    (
        "hard links that are new",
        "",
        "echo x > a; ln a b; mkdir c; ln a c/d",
        "+a +b +c +c/d",
    ),
    (
        "a new name for an old file",
        "echo x > a",
        "ln a b; echo y >> a",
        "~a +b",
    ),
    (
        "large and sparse",
        "",
        "truncate -s 1G a; echo x | dd of=a bs=1 seek=500000000 conv=notrunc 2>/dev/null",
        "+a",
    ),
    (
        "prefix of another name",
        "mkdir a; touch a/x 'a b'",
        "rm -r a 'a b'; touch 'a b' a",
        "~a -a/x",
    ),
];

#[test]
fn a_commit_leaves_what_the_command_would_have_left() {
    for (what, setup, script, expected) in CASES {
        let place = Place::new(setup);
        let direct = Place::new(setup);
        let before = place.tree();
        sh(&direct.workspace, script);
        let mut set = place.stage(script);
        let mut lines = Vec::new();
        set.for_each(&mut |change| {
            let sign = match change.action {
                Action::Added => "+",
                Action::Modified => "~",
                Action::Deleted => "-",
                Action::Touched => return Ok(()),
            };
            lines.push(format!("{sign}{}", change.path.display()));
            Ok(())
        })
        .unwrap();
        let expected: Vec<&str> = match expected.contains("a b") {
            true => vec![*expected],
            false => expected.split(' ').filter(|line| !line.is_empty()).collect(),
        };
        assert_eq!(lines, expected, "{what}");
        assert_eq!(place.tree(), before, "{what}: staged only");
        let done = place.commit(&mut set);
        assert_eq!(place.tree(), direct.tree(), "{what}");
        // An ordinary user looks into what is closed by opening it, which is a change that undoing would lose.
        if done.id.is_none() || *what == "closed to its owner" {
            continue;
        }
        place.store.undo(&mut set, &Surroundings::default()).unwrap();
        assert_eq!(place.tree(), before, "{what}: undone");
        assert_eq!(set.state(), State::Undone);
        place.commit(&mut set);
        assert_eq!(place.tree(), direct.tree(), "{what}: applied again");
    }
}

#[test]
fn names_are_bytes() {
    let place = Place::new("touch $'old\\nname' $'\\xff\\xfe'; mkdir $'d\\xff'; touch $'d\\xff/ x'");
    let script = "rm $'old\\nname'; mv $'\\xff\\xfe' $'\\xfe'; echo x > $'d\\xff/ x'; touch -- -rf $'\\e[31m'";
    let mut set = place.stage(script);
    let diff = set.diff(&[], DiffLimits::default()).unwrap();
    assert!(
        !diff.text.contains('\u{1b}') && diff.text.contains("old\\nname"),
        "{}",
        diff.text
    );
    // Names that would change what a terminal shows are held back, and nothing else.
    let done = place.commit(&mut set);
    assert_eq!(done.judged.held_back, 1, "{:?}", done.judged.held);
    for (name, is_there) in [
        (&b"old\nname"[..], false),
        (b"\xff\xfe", false),
        (b"\xfe", true),
        (b"-rf", true),
        (b"\x1b[31m", false),
    ] {
        assert_eq!(place.workspace.join(os(name)).exists(), is_there, "{name:?}");
    }
    assert_eq!(fs::read(place.workspace.join(os(b"d\xff/ x"))).unwrap(), b"x\n");
}

#[test]
fn marks_of_the_overlay_do_not_come_along() {
    let place = Place::new("mkdir a; touch a/x b; chmod 444 b");
    let mut set = place.stage("rm -r a; mkdir a; touch a/y; chmod 600 b; chmod 444 b; mv b c; mkdir d; touch d/z");
    place.commit(&mut set);
    let output = std::process::Command::new("getfattr")
        .args(["-R", "-h", "-d", "-m", "-", "."])
        .current_dir(&place.workspace)
        .output();
    if let Ok(output) = output {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.contains("overlay"), "{text}");
    }
    assert!(place.workspace.join("d/z").exists() && place.workspace.join("c").exists());
}

#[test]
fn holes_stay_holes() {
    let place = Place::new("");
    let script =
        "truncate -s 64M a; echo x | dd of=a bs=1 seek=32000000 conv=notrunc 2>/dev/null; touch -d 2001-01-01 a";
    let mut set = place.stage(script);
    // A part is copied, and not moved.
    let choice = Choice {
        only: vec!["a".into()],
        ..Choice::default()
    };
    place.commit_with(&mut set, &choice);
    let data = fs::metadata(place.workspace.join("a")).unwrap();
    assert_eq!(data.len(), 64 << 20);
    assert!(data.blocks() * 512 < 1 << 20, "{} blocks", data.blocks());
    assert_eq!(data.mtime(), 978_307_200);
}

#[test]
fn a_part_is_applied_and_the_rest_waits() {
    let place = Place::new("echo 1 > a; echo 1 > b; mkdir -p d/e; touch d/e/x d/y");
    let mut set = place.stage("echo 2 > a; echo 2 > b; rm -r d; mkdir -p n/m; touch n/m/x n/y; ln n/y n/z");
    let id = set.id().to_owned();
    let only = |paths: &[&str]| Choice {
        only: paths.iter().map(PathBuf::from).collect(),
        ..Choice::default()
    };
    let part = place.commit_with(&mut set, &only(&["a", "d/e", "n/m/x"]));
    assert_ne!(part.id.as_deref(), Some(&*id));
    assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"2\n");
    assert_eq!(fs::read(place.workspace.join("b")).unwrap(), b"1\n");
    assert!(place.workspace.join("d/y").exists() && !place.workspace.join("d/e").exists());
    assert!(place.workspace.join("n/m/x").exists() && !place.workspace.join("n/y").exists());
    assert!(place.store.get(&id).unwrap().summary().is_live, "somebody has it");
    drop(set);
    let mut rest = place.store.get(&id).unwrap();
    let mut left = Vec::new();
    rest.for_each(&mut |change| {
        left.push(change.path.display().to_string());
        Ok(())
    })
    .unwrap();
    assert_eq!(left, ["b", "d", "d/y", "n/y", "n/z"]);
    place.commit(&mut rest);
    assert!(!place.workspace.join("d").exists());
    let links = |name: &str| fs::metadata(place.workspace.join(name)).unwrap().ino();
    assert_eq!(links("n/y"), links("n/z"));
    // The part is undone by its own id.
    let mut part = place.store.get(&part.id.unwrap()).unwrap();
    let refused = place.store.undo(&mut part, &Surroundings::default()).unwrap_err();
    assert!(matches!(refused, ChangesError::ChangedSince { .. }), "{refused}");
    place.store.undo(&mut rest, &Surroundings::default()).unwrap();
    place.store.undo(&mut part, &Surroundings::default()).unwrap();
    assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"1\n");
    assert!(place.workspace.join("d/e/x").exists() && !place.workspace.join("n").exists());
}

#[test]
fn an_undo_that_would_lose_something_is_refused() {
    let place = Place::new("echo 1 > a; mkdir d older; touch older/p");
    for later in [
        "echo 3 > a",
        "touch n/user",
        "mv older n/",
        "rm a",
        "touch gone",
        "chmod 700 d",
    ] {
        let place_before = place.tree();
        let mut set = place.stage("echo 2 > a; mkdir n; touch n/x; touch gone; rm gone; chmod 750 d");
        place.commit(&mut set);
        // Later than the commit by the clock of the file system.
        std::thread::sleep(std::time::Duration::from_millis(12));
        sh(&place.workspace, later);
        let changed = place.tree();
        match place.store.undo(&mut set, &Surroundings::default()) {
            Err(ChangesError::ChangedSince { paths }) => {
                assert!(!paths.is_empty(), "{later}");
                assert_eq!(place.tree(), changed, "{later}");
            }
            // What nobody committed is nobody's business.
            Ok(()) => assert_eq!(later, "touch gone"),
            Err(error) => panic!("{later}: {error}"),
        }
        place.store.discard(set).unwrap();
        sh(
            &place.workspace,
            "rm -rf n gone; mkdir -p older; touch older/p; echo 1 > a; chmod 755 d",
        );
        assert_eq!(place.tree(), place_before);
    }
}

#[test]
fn a_set_of_many_files_is_committed_by_few_moves() {
    let place = Place::new("mkdir old; for n in {1..500}; do echo $n > old/$n; done");
    let mut set = place.stage(
        "mkdir new; cd new; for d in {1..20}; do mkdir $d; for n in {1..500}; do : > $d/$n; done; done; rm -r ../old",
    );
    let done = place.commit(&mut set);
    assert_eq!((done.judged.counts.added, done.judged.counts.deleted), (10_021, 501));
    assert_eq!(done.judged.added.len(), 200, "the list is cut and the number is exact");
    assert_eq!(tree(&place.workspace).len(), 10_021);
    // Two steps, and a note of each directory in the one.
    let size = fs::metadata(set.path().join("plan")).unwrap().len();
    assert!(size < 300 + 20 * 32, "{size}");
}

#[test]
fn deep_directories_are_refused_by_name_and_can_be_discarded() {
    let place = Place::new("");
    let set = place.stage("for n in {1..400}; do mkdir d; cd d; done; touch x");
    let refused = set.for_each(&mut |_| Ok(())).unwrap_err();
    assert!(
        matches!(refused, ChangesError::TooDeep { levels: 256, .. }),
        "{refused}"
    );
    let path = set.path().to_path_buf();
    place.store.discard(set).unwrap();
    assert!(!path.exists());
    assert_eq!(
        fs::read_dir(path.parent().unwrap())
            .unwrap()
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with(".moved")
            })
            .count(),
        0
    );
}

#[test]
fn sets_survive_and_are_listed() {
    let place = Place::new("echo 1 > a");
    let set = place.stage("echo 2 > a");
    let id = set.id().to_owned();
    drop(set);
    let listed = place.store.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0].id, listed[0].state, listed[0].is_live),
        (&id, State::Waiting, false)
    );
    assert_eq!(listed[0].command.as_deref(), Some("echo 2 > a"));
    let mut set = place.store.get(&id).unwrap();
    let diff = set.diff(&[], DiffLimits::default()).unwrap();
    assert_eq!(diff.text, "modified file a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n");
    place.commit(&mut set);
    assert!(matches!(
        place.store.get("../../etc"),
        Err(ChangesError::Unknown { .. })
    ));
    assert!(matches!(
        place
            .store
            .commit(&mut set, &Choice::default(), &Default::default(), None),
        Err(ChangesError::WrongState { .. })
    ));
    assert!(Path::new(&place.workspace).join("a").exists());
}

#[test]
fn the_oldest_committed_sets_make_room_and_what_waits_stays() {
    let place = Place::new("");
    let waits = place.stage("touch waits");
    let id = waits.id().to_owned();
    drop(waits);
    for number in 0..70 {
        let mut set = place.stage(&format!("echo {number} > a"));
        place.commit(&mut set);
    }
    let left = place.store.list().unwrap();
    let committed = left.iter().filter(|set| set.state == State::Committed).count();
    assert!((50..=66).contains(&committed), "{committed} sets");
    assert!(left.iter().any(|set| set.id == id), "what waits is kept");
    let newest = left.iter().find(|set| set.state == State::Committed).unwrap();
    let mut newest = place.store.get(&newest.id).unwrap();
    place.store.undo(&mut newest, &Surroundings::default()).unwrap();
    assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"68\n");
}

#[test]
fn attributes_of_a_file_are_a_change() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let place = Place::new("echo 1 > a; echo 1 > b; python3 -c 'import os; os.setxattr(\"b\", \"user.old\", b\"1\")'");
    let mut set = place
        .stage("python3 -c 'import os; os.setxattr(\"a\", \"user.new\", b\"1\"); os.removexattr(\"b\", \"user.old\")'");
    let done = place.commit(&mut set);
    assert_eq!(done.judged.counts.modified, 2);
    sh(
        &place.workspace,
        "python3 -c 'import os; assert os.getxattr(\"a\", \"user.new\") == b\"1\"; assert not os.listxattr(\"b\")'",
    );
}

#[test]
fn holes_are_nothing_of_a_limit_and_are_not_read() {
    use shieling_changes::{Limits, Store};
    // As long as the file system takes it: to read it would take hours.
    let place = Place::new("truncate -s 9T old 2>/dev/null || truncate -s 1T old");
    let size = fs::metadata(place.workspace.join("old")).unwrap().len();
    let script =
        format!("truncate -s {size} hole; echo end >> hole; echo x > x; chmod 700 old; chmod 644 old; touch old");
    let mut set = place.stage(&script);
    assert!(set.diff(&[], DiffLimits::default()).unwrap().text.contains("hole"));
    let limits = (Limits::default(), DiffLimits::default());
    let show = || place.store.show(&set, &["hole".into()], None, limits).unwrap().unwrap();
    assert_eq!(show().fingerprint, show().fingerprint);
    let before = show().fingerprint;
    let upper = set.upper().join("hole");
    sh(
        &place.root,
        &format!(
            "printf X | dd of={} bs=1 seek=4096 conv=notrunc status=none",
            upper.display()
        ),
    );
    assert_ne!(show().fingerprint, before, "what is written in a hole is seen");
    let done = place.commit(&mut set);
    assert_eq!(done.judged.added, [Path::new("hole"), Path::new("x")]);
    assert_eq!(fs::metadata(place.workspace.join("hole")).unwrap().len(), size + 4);
    // What is held counts, and the message says of what there is too much.
    let small = Limits {
        entries: 100,
        bytes: 1 << 20,
    };
    let store = Store::open(&place.root.join("store"), small).unwrap();
    let mut set = place.stage("head -c 200000 /dev/urandom > a; head -c 1900000 /dev/urandom > b; echo z > z");
    let refused = store.commit(&mut set, &Choice::default(), &Surroundings::default(), None);
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("more than the 1 MiB") && text.contains("`b` with 1.8 MiB"),
        "{text}"
    );
}

#[test]
fn what_is_more_than_a_set_may_hold_leaves_no_copy_and_a_look_ends_when_it_is_to() {
    use shieling_changes::{Limits, Mode, Stop, Store};
    let place = Place::new("");
    let limits = Limits {
        entries: 20,
        bytes: 1 << 30,
    };
    let store = Store::open(&place.root.join("store"), limits).unwrap();
    let mut set = store.create(&place.workspace, Mode::Commit).unwrap();
    place.run_in(&set, "touch {10..40}");
    let none = std::collections::BTreeSet::from([set.path().to_path_buf()]);
    let sets = || -> std::collections::BTreeSet<_> {
        let found = fs::read_dir(place.root.join("store"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        found.filter(|path| path.is_dir()).collect()
    };
    let commit =
        |set: &mut shieling_changes::ChangeSet| store.commit(set, &Choice::default(), &Surroundings::default(), None);
    let refused = commit(&mut set).unwrap_err();
    assert!(matches!(refused, ChangesError::TooMany { limit: 20 }), "{refused:?}");
    assert_eq!(sets(), none);
    let stop: &Stop = store.stop();
    stop.at(std::time::Instant::now());
    let stopped = commit(&mut set).unwrap_err();
    assert!(matches!(stopped, ChangesError::Stopped), "{stopped:?}");
    assert_eq!(sets(), none);
    assert_eq!(fs::read_dir(&place.workspace).unwrap().count(), 0);
}
