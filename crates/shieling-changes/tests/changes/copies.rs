//! Sets that are filled from a copy of the workspace, which no overlay has seen.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use shieling_changes::{ChangeSet, Mode, Node, State};

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
    let set = place.store.create(&place.workspace, Mode::Commit).unwrap();
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
    let recorded = copied(&place);
    // As a socket is left out of a copy.
    let place = {
        drop(recorded);
        place
    };
    let set = place.store.create(&place.workspace, Mode::Commit).unwrap();
    let mut recorder = set.record_copy().unwrap();
    for path in ["r", "r/s"] {
        let at = place.workspace.join(path);
        let found = rustix::fs::statx(CWD, &at, AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
        recorder.record(Path::new(path), Some(Node::from(&found))).unwrap();
    }
    recorder.finish().unwrap();
    let mut set = set;
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
