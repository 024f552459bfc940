//! Sets that are filled from a copy of the workspace, which no overlay has seen.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use shieling_changes::{ChangeSet, ChangesError, Choice, Limits, Mode, Node, State, Surroundings};

use super::support::{Place, sh};

/// A set that knows what the workspace is now.
fn copied(place: &Place) -> ChangeSet {
    fn record(recorder: &mut shieling_changes::CopyRecorder, root: &Path, at: &Path) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let found = rustix::fs::statx(CWD, &path, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME).unwrap();
            let node = Node::from(&found);
            recorder.record(path.strip_prefix(root).unwrap(), Some(node)).unwrap();
            if path.is_dir() && !path.is_symlink() {
                record(recorder, root, &path);
            }
        }
    }
    let mut set = place.store.create(&place.workspace, Mode::Commit).unwrap();
    let mut recorder = set.record_copy().unwrap();
    record(&mut recorder, &place.workspace, &place.workspace);
    recorder.finish().unwrap();
    set
}

const SETUP: &str =
    "mkdir -p d/e r/s; echo one >a; echo two >d/b; echo three >d/e/c; echo four >r/s/f; echo five >k; chmod 2755 d";

#[test]
fn what_differs_from_the_copy_goes_into_the_workspace() {
    let place = Place::new(SETUP);
    let mut set = copied(&place);
    // The copy could not have the bits of `d`.
    sh(
        &set.upper(),
        "mkdir d; echo changed >d/b; echo new >n; mkdir -m 700 m; echo x >m/x",
    );
    for gone in ["r", "r/s", "r/s/f", "a"] {
        set.put_gone(Path::new(gone)).unwrap();
    }
    set.filled().unwrap();
    let done = place.commit(&mut set);
    assert!(done.id.is_some(), "{done:?}");
    assert_eq!((done.judged.conflicting, done.judged.held_back), (0, 0), "{done:?}");
    assert_eq!(done.judged.modified, [Path::new("d/b")]);
    sh(
        &place.workspace,
        "test ! -e r && test ! -e a && grep -q changed d/b && grep -q new n && grep -q x m/x && grep -q five k && \
         test $(stat -c %a d) = 2755 && test $(stat -c %a m) = 700",
    );
    assert_eq!(set.state(), State::Committed);
}

/// Each is a change of the user's while commands worked on a copy.
#[test]
fn what_the_user_changed_meanwhile_is_a_conflict_and_nothing_is_committed() {
    let changes = [
        ("changed", "echo mine >a", "echo theirs >a", None),
        (
            "same size and time",
            "touch -r a ../t; echo ONE >a; touch -r ../t a",
            "echo theirs >a",
            None,
        ),
        ("deleted", "rm a", "echo theirs >a", None),
        ("made as well", "echo mine >n", "echo theirs >n", None),
        (
            "made as well, with an old time",
            "echo mine >n; touch -d 2001-01-01 n",
            "echo theirs >n",
            None,
        ),
        ("changed what is gone", "echo mine >a", "true", Some("a")),
        ("made within what is gone", "echo mine >r/new", "true", Some("r")),
        ("changed within what is gone", "echo mine >r/s/f", "true", Some("r")),
        ("made a directory", "mkdir n; echo mine >n/x", "echo theirs >n", None),
        ("replaced by a link", "rm a; ln -s k a", "echo theirs >a", None),
    ];
    for (what, user, command, gone) in changes {
        let place = Place::new(SETUP);
        let mut set = copied(&place);
        sh(&place.workspace, user);
        let before = place.tree();
        sh(&set.upper(), command);
        if let Some(gone) = gone {
            set.put_gone(Path::new(gone)).unwrap();
        }
        set.filled().unwrap();
        let done = place.commit(&mut set);
        assert!(done.id.is_none() && done.judged.conflicting > 0, "{what}: {done:?}");
        assert!(place.tree() == before, "{what}");
        assert_eq!(set.state(), State::Conflict, "{what}");
    }
}

#[test]
fn what_was_not_in_the_copy_is_not_removed_with_its_directory() {
    let place = Place::new(SETUP);
    // As a socket is left out of a copy.
    let mut set = place.store.create(&place.workspace, Mode::Commit).unwrap();
    let mut recorder = set.record_copy().unwrap();
    for path in ["r", "r/s"] {
        let at = place.workspace.join(path);
        let found = rustix::fs::statx(CWD, &at, AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
        recorder.record(Path::new(path), Some(Node::from(&found))).unwrap();
    }
    recorder.finish().unwrap();
    set.put_gone(Path::new("r")).unwrap();
    set.filled().unwrap();
    let done = place.commit(&mut set);
    let conflicts: Vec<_> = done.judged.conflicts.iter().map(|conflict| &*conflict.path).collect();
    assert_eq!(conflicts, [Path::new("r/s/f")]);
    sh(&place.workspace, "grep -q four r/s/f");
}

#[test]
fn a_directory_that_became_a_file_takes_what_was_in_it() {
    let place = Place::new(SETUP);
    let mut set = copied(&place);
    sh(&set.upper(), "echo file >r; mkdir k; echo x >k/x; chmod 640 k/x");
    for gone in ["r/s", "r/s/f"] {
        set.put_gone(Path::new(gone)).unwrap();
    }
    set.filled().unwrap();
    let done = place.commit(&mut set);
    assert!(done.id.is_some(), "{done:?}");
    sh(&place.workspace, "grep -q file r && grep -q x k/x");
    let mode = fs::metadata(place.workspace.join("k/x")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn a_set_that_is_not_filled_is_neither_listed_as_waiting_nor_applied() {
    let place = Place::new(SETUP);
    let set = copied(&place);
    let id = set.id().to_owned();
    sh(&set.upper(), "echo half >n");
    let state = || place.store.list().unwrap().first().map(|set| (set.state, set.is_live));
    assert_eq!(state(), Some((State::Incomplete, true)));
    let apply = || {
        let set = place.store.get(&id).unwrap();
        place
            .store
            .apply(set, &Choice::default(), &Surroundings::default())
            .unwrap_err()
    };
    let error = apply();
    assert!(
        matches!(error, ChangesError::Incomplete { is_live: true, .. }),
        "{error}"
    );
    // As by a kill.
    drop(set);
    assert_eq!(state(), Some((State::Incomplete, false)));
    let error = apply();
    assert!(
        matches!(error, ChangesError::Incomplete { is_live: false, .. }),
        "{error}"
    );
    assert!(!place.workspace.join("n").exists());
    // Nothing else in the workspace is kept from being done.
    let mut next = copied(&place);
    sh(&next.upper(), "echo whole >n");
    next.filled().unwrap();
    assert!(place.commit(&mut next).id.is_some());
    place.store.discard(place.store.get(&id).unwrap()).unwrap();
}

#[test]
fn a_set_whose_process_was_killed_before_it_was_filled_vanishes() {
    let place = Place::new(SETUP);
    let sets = || place.store.list().unwrap().len();
    let set = copied(&place);
    assert_eq!(sets(), 1);
    drop(set);
    assert_eq!(sets(), 0);
    let path = copied(&place).path().to_owned();
    assert!(path.exists());
    drop(place.store.create(&place.workspace, Mode::Commit).unwrap());
    assert!(!path.exists());
}

#[test]
fn directories_keep_their_modes_where_something_in_them_is_gone() {
    let place = Place::new("mkdir -p d/e m; touch d/x d/y d/e/z m/x m/y; chmod 555 d/e d; chmod 755 m");
    let mut set = copied(&place);
    // As commands changed it, before what is gone is told.
    sh(&set.upper(), "mkdir -m 700 m");
    for gone in ["d/y", "d/e/z", "m/y"] {
        set.put_gone(Path::new(gone)).unwrap();
    }
    set.filled().unwrap();
    assert!(place.commit(&mut set).id.is_some());
    sh(
        &place.workspace,
        "set -e; test \"$(stat -c %a d d/e m)\" = \"$(printf '555\\n555\\n700')\"; test -e d/x && test ! -e d/y && test ! -e d/e/z",
    );
    sh(&place.workspace, "chmod 755 d d/e");
}

#[test]
fn attributes_of_a_file_that_is_replaced_stay() {
    let place = Place::new("echo a >a");
    let a = place.workspace.join("a");
    if rustix::fs::setxattr(&a, "user.k", b"v", rustix::fs::XattrFlags::empty()).is_err() {
        shieling_testkit::prerequisite::skip("the file system has no attributes");
        return;
    }
    sh(&place.workspace, "chmod 440 a");
    let mut set = copied(&place);
    sh(&set.upper(), "echo b >a; chmod 440 a");
    set.filled().unwrap();
    assert!(place.commit(&mut set).id.is_some());
    let mut value = [0; 8];
    let count = rustix::fs::getxattr(&a, "user.k", &mut value).unwrap();
    assert_eq!(
        (&value[..count], fs::read_to_string(&a).unwrap().as_str()),
        (&b"v"[..], "b\n")
    );
    assert_eq!(fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o440);
}

#[test]
fn as_root_what_comes_back_belongs_to_whom_it_belonged_and_what_is_new_to_the_owner_of_its_directory() {
    if !rustix::process::geteuid().is_root() {
        shieling_testkit::prerequisite::skip("only root gives files away");
        return;
    }
    // With something that is held back, all else is copied once more.
    for held in [
        "",
        "; mkdir -p .git/hooks; echo '#!/bin/sh' >.git/hooks/post-commit; chmod 755 .git/hooks/post-commit",
    ] {
        let place = Place::new(
            "git init -q .; rm -rf .git/hooks; mkdir d; echo a >a; ln -s a l; chown -h 1234:1235 a l d; chmod 600 a; \
             chmod 2755 d",
        );
        let mut set = copied(&place);
        let changes =
            "echo b >a; chmod 600 a; ln -s b l; mkdir -p d/n/m; chmod 755 d; echo x >d/n/m/x; chmod 750 d/n; echo >top";
        sh(&set.upper(), &format!("{changes}{held}"));
        set.filled().unwrap();
        let done = place.commit(&mut set);
        assert!(done.id.is_some(), "{done:?}");
        assert_eq!(done.judged.held_back > 0, !held.is_empty(), "{done:?}");
        sh(
            &place.workspace,
            "set -e; test \"$(stat -c %u:%g a l d d/n d/n/m d/n/m/x | sort -u)\" = 1234:1235; test $(stat -c %u top) = 0; \
             test $(stat -c %a a) = 600; test $(stat -c %a d/n) = 750; test $(stat -c %a d) = 2755; grep -q b a",
        );
    }
}

#[test]
fn a_file_of_another_owner_is_held_back_where_it_would_get_a_new_one() {
    if !rustix::process::geteuid().is_root() {
        shieling_testkit::prerequisite::skip("only root gives files away");
        return;
    }
    let place = Place::new("echo a >a; echo b >b; chown 1234 a");
    let mut set = copied(&place);
    sh(&set.upper(), "echo A >a; echo B >b");
    set.filled().unwrap();
    // As an ordinary user leaves it.
    sh(&set.upper(), "chown 4321 a");
    let done = place.commit(&mut set);
    assert_eq!(done.judged.held_back, 1, "{done:?}");
    assert_eq!(
        (done.judged.held[0].rule, &*done.judged.held[0].path),
        (shieling_changes::OWNER, Path::new("a"))
    );
    sh(
        &place.workspace,
        "grep -q a a && test $(stat -c %u a) = 1234 && grep -q B b",
    );
}

#[derive(Debug)]
struct Secret;

impl shieling_changes::Matcher for Secret {
    fn matches(&self, _: shieling_changes::Action, path: &Path, _: bool) -> bool {
        path.components().any(|name| name.as_os_str() == "secret")
    }
}

/// It is not in the copy, so that commands do not know that it is there.
#[test]
fn what_is_hidden_is_neither_replaced_nor_removed_and_is_no_conflict() {
    let place = Place::new(
        "mkdir -p d/secret o; echo mine >secret; echo mine >d/secret/x; echo y >d/y; echo z >o/z; echo k >k",
    );
    let mut set = place.store.create(&place.workspace, Mode::Commit).unwrap();
    let mut recorder = set.record_copy().unwrap();
    for path in ["d", "d/y", "o", "o/z", "k"] {
        let at = place.workspace.join(path);
        let found = rustix::fs::statx(CWD, &at, AtFlags::empty(), StatxFlags::BASIC_STATS | StatxFlags::BTIME).unwrap();
        recorder.record(Path::new(path), Some(Node::from(&found))).unwrap();
    }
    recorder.finish().unwrap();
    sh(
        &set.upper(),
        "echo theirs >secret; mkdir o; echo theirs >o/secret; echo changed >k",
    );
    for gone in ["d", "d/y"] {
        set.put_gone(Path::new(gone)).unwrap();
    }
    set.filled().unwrap();
    let around = Surroundings {
        hidden: Some(std::sync::Arc::new(Secret)),
        ..Surroundings::default()
    };
    let done = place.store.commit(&mut set, &Choice::default(), &around, None).unwrap();
    assert!(done.id.is_some() && done.judged.conflicting == 0, "{done:?}");
    let held: Vec<_> = done
        .judged
        .held
        .iter()
        .map(|held| (held.rule, held.path.to_str().unwrap()))
        .collect();
    let rule = shieling_changes::HIDDEN;
    for path in ["secret", "o/secret", "d/secret"] {
        assert!(held.contains(&(rule, path)), "{held:?}");
    }
    sh(
        &place.workspace,
        "grep -q mine secret && grep -q mine d/secret/x && test ! -e d/y && test ! -e o/secret && grep -q changed k",
    );
}

/// Also of a part of it that was committed and taken back.
#[test]
fn what_was_hidden_is_stored_with_the_set_and_judging_it_without_that_is_refused() {
    let place = Place::new("echo k >k");
    let mut set = copied(&place);
    let id = set.id().to_owned();
    sh(&set.upper(), "echo theirs >secret; echo changed >k; echo new >n");
    let patterns = ["secret".to_owned(), "\0".to_owned()];
    set.hide(&patterns).unwrap();
    set.filled().unwrap();
    drop(set);
    let get = |id: &str| place.store.get(id).unwrap();
    let unknown = |error: &ChangesError| matches!(error, ChangesError::HiddenUnknown { .. });
    assert_eq!(get(&id).hidden_patterns(), Some(&patterns[..]));
    let blind = Surroundings::default();
    let error = get(&id).judge(&blind, Limits::default()).unwrap_err();
    assert!(unknown(&error), "{error}");
    let only = Choice {
        only: vec!["k".into()],
        ..Choice::default()
    };
    for choice in [&Choice::default(), &only] {
        let error = place.store.apply(get(&id), choice, &blind).unwrap_err();
        assert!(unknown(&error), "{error}");
    }
    sh(&place.workspace, "grep -qx k k && test ! -e n && test ! -e secret");

    let around = Surroundings {
        hidden: Some(std::sync::Arc::new(Secret)),
        ..Surroundings::default()
    };
    let done = place.store.apply(get(&id), &only, &around).unwrap();
    let part = done.id.unwrap();
    assert_eq!(get(&part).hidden_patterns(), Some(&patterns[..]));
    let done = place.store.apply(get(&id), &Choice::default(), &around).unwrap();
    assert!(done.id.is_some(), "{done:?}");
    assert_eq!(done.judged.held[0].rule, shieling_changes::HIDDEN, "{done:?}");
    sh(&place.workspace, "grep -q changed k && test -e n && test ! -e secret");
    // Who decides about what is held back needs no judgement of it.
    let accepted = Choice {
        accept_held_back: true,
        ..Choice::default()
    };
    place.store.apply(get(&id), &accepted, &blind).unwrap();
    sh(&place.workspace, "grep -q theirs secret");
}

#[test]
fn a_part_is_committed_where_something_in_a_closed_directory_is_gone() {
    let place = Place::new("git init -q .; rm -rf .git/hooks; mkdir -p d/e; touch d/x d/y d/e/z; chmod 555 d/e d");
    let mut set = copied(&place);
    sh(
        &set.upper(),
        "echo new >n; mkdir -p .git/hooks; echo '#!/bin/sh' >.git/hooks/post-commit; chmod 755 .git/hooks/post-commit",
    );
    for gone in ["d/y", "d/e/z"] {
        set.put_gone(Path::new(gone)).unwrap();
    }
    set.filled().unwrap();
    let done = place.commit(&mut set);
    assert!(done.id.is_some() && done.judged.held_back > 0, "{done:?}");
    sh(
        &place.workspace,
        "set -e; test ! -e d/y; test ! -e d/e/z; test -e n; test \"$(stat -c %a d d/e)\" = \"$(printf '555\\n555')\"; \
         chmod 755 d d/e",
    );
}

/// Root may write what its mode closes.
#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() || !shieling_testkit::prerequisite::has(&["setpriv"]) {
        return;
    }
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "copies::",
            "--skip",
            "as_root_",
            "--skip",
            "of_another_owner",
            "--skip",
            "ordinary_user",
        ])
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if told.contains("failed to execute") {
        shieling_testkit::prerequisite::skip("the test program is not for other users");
        return;
    }
    assert!(output.status.success(), "{told}");
}
