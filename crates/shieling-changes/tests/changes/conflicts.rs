//! What the user changes meanwhile is never lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use shieling_changes::{Choice, State, Surroundings};

use crate::support::{Place, sh};

/// Later by the clock of the file system.
fn tick() {
    std::thread::sleep(Duration::from_millis(12));
}

#[test]
fn unrelated_changes_merge() {
    let place = Place::new("echo 1 > a; echo 1 > b; mkdir d; echo 1 > d/x");
    let mut set = place.stage("echo 2 > a; touch d/agent");
    tick();
    sh(&place.workspace, "echo user > b; echo user > d/y; rm d/x");
    assert_eq!(place.commit(&mut set).judged.conflicting, 0);
    assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"2\n");
    assert_eq!(fs::read(place.workspace.join("b")).unwrap(), b"user\n");
    assert!(place.workspace.join("d/agent").exists() && !place.workspace.join("d/x").exists());
}

#[test]
fn what_both_sides_made_the_same_is_no_conflict() {
    // What the command does, and what the user does after that.
    for (agent, user) in [
        ("echo new > n", "echo new > n"),
        ("mkdir d/n; echo new > d/n/x", "mkdir d/n; echo new > d/n/x"),
        ("echo 2 > a", "echo 2 > a"),
        ("chmod 700 a", "chmod 700 a"),
        ("echo new > n; ln n m", "echo new > n"),
    ] {
        for is_waiting in [false, true] {
            let place = Place::new("echo 1 > a; mkdir d; echo 1 > other");
            tick();
            let mut set = place.stage(&format!("{agent}; echo 2 > other"));
            if is_waiting {
                set.record_bases().unwrap();
            }
            tick();
            sh(&place.workspace, user);
            let done = place.commit(&mut set);
            assert_eq!(done.judged.conflicting, 0, "{agent} / {user}");
            assert!(done.id.is_some(), "{agent} / {user}");
            assert_eq!(fs::read(place.workspace.join("other")).unwrap(), b"2\n");
            place.store.undo(&mut set, &Surroundings::default()).unwrap();
            assert_eq!(fs::read(place.workspace.join("other")).unwrap(), b"1\n");
        }
    }
}

#[test]
fn a_conflict_commits_nothing_and_keeps_both() {
    // What the command does, and what the user does after that.
    for (agent, user) in [
        ("echo 2 > a", "echo user > a"),
        ("echo 2 > a", "chmod 600 a"),
        ("rm a", "echo user > a"),
        ("rm -r d", "touch d/new"),
        ("rm -r d", "echo user > d/x"),
        ("touch new", "echo user > new"),
        ("mkdir new; touch new/x", "echo user > new"),
        ("rm -r d; echo file > d", "echo user > d/x"),
        ("rm a; mkdir a", "echo user > a"),
        ("rm -r d", "mv older d/"),
        ("rm -r d; mkdir d; touch d/y", "mv older d/"),
    ] {
        let place = Place::new("echo 1 > a; mkdir d older; echo 1 > d/x; echo 1 > older/p; echo 1 > other");
        tick();
        let mut set = place.stage(&format!("{agent}; echo 2 > other"));
        tick();
        sh(&place.workspace, user);
        let before = place.tree();
        let done = place.commit(&mut set);
        assert_eq!(done.id, None, "{agent} / {user}");
        assert!(done.judged.conflicting > 0, "{agent} / {user}");
        assert_eq!(place.tree(), before, "{agent} / {user}: nothing is committed");
        assert_eq!(set.state(), State::Conflict);
        let overwrite = Choice {
            overwrite: true,
            ..Choice::default()
        };
        let done = place.commit_with(&mut set, &overwrite);
        assert!(done.id.is_some());
        assert_eq!(fs::read(place.workspace.join("other")).unwrap(), b"2\n");
        place.store.undo(&mut set, &Surroundings::default()).unwrap();
        assert_eq!(place.tree(), before, "{agent} / {user}: the user's version was kept");
    }
}

#[test]
fn texts_merge_where_both_sides_changed_other_lines() {
    let place = Place::new("printf '%s\\n' 1 2 3 4 5 6 7 8 9 > a; cp a b; cp a c");
    tick();
    let mut set = place.stage("sed -i s/1/agent/ a; sed -i s/1/agent/ b; sed -i s/1/agent/ c");
    set.record_bases().unwrap();
    tick();
    sh(&place.workspace, "sed -i s/9/user/ a; sed -i s/1/user/ b");
    let before = place.tree();
    let done = place.commit(&mut set);
    let paths: Vec<_> = done
        .judged
        .conflicts
        .iter()
        .map(|conflict| conflict.path.clone())
        .collect();
    assert_eq!(paths, [std::path::PathBuf::from("b")]);
    assert_eq!(done.judged.merged, 1);
    assert_eq!(place.tree(), before);
    let rest = Choice {
        only: vec!["a".into(), "c".into()],
        ..Choice::default()
    };
    assert_eq!(place.commit_with(&mut set, &rest).judged.merged, 1);
    assert_eq!(
        fs::read(place.workspace.join("a")).unwrap(),
        b"agent\n2\n3\n4\n5\n6\n7\n8\nuser\n"
    );
    assert_eq!(
        fs::read(place.workspace.join("b")).unwrap(),
        b"user\n2\n3\n4\n5\n6\n7\n8\n9\n"
    );
    assert_eq!(
        fs::read(place.workspace.join("c")).unwrap(),
        b"agent\n2\n3\n4\n5\n6\n7\n8\n9\n"
    );
    // The user takes his own back, and the rest goes through as a whole.
    sh(&place.workspace, "printf '%s\\n' 1 2 3 4 5 6 7 8 9 > b");
    assert!(place.commit(&mut set).id.is_some());
    assert_eq!(
        fs::read(place.workspace.join("b")).unwrap(),
        b"agent\n2\n3\n4\n5\n6\n7\n8\n9\n"
    );
}

#[test]
fn what_waits_is_compared_with_what_was_there_when_it_began_to_wait() {
    let place = Place::new("echo 1 > a; echo 1 > b");
    let mut set = place.stage("echo 2 > a; rm b; touch c");
    set.record_bases().unwrap();
    tick();
    // Replaced by the same, and touched: no change.
    sh(&place.workspace, "cp a t; mv t a");
    assert!(place.commit(&mut set).id.is_some());
    assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"2\n");
}

#[test]
fn what_the_user_put_in_the_place_of_a_directory_is_not_replaced_for_what_is_chosen_below_it() {
    for theirs in ["rmdir d; echo important > d", "rmdir d; ln -s e d"] {
        let place = Place::new("mkdir d e");
        let mut set = place.stage("mkdir -p d/f; echo x > d/f/y; echo x > d/x");
        sh(&place.workspace, theirs);
        let before = place.tree();
        for only in ["d/x", "d/f/y"] {
            let choice = Choice {
                only: vec![only.into()],
                ..Choice::default()
            };
            let done = place.commit_with(&mut set, &choice);
            assert_eq!(done.judged.conflicting, 1, "{theirs}, {only}: {:?}", done.judged);
            assert_eq!(done.judged.conflicts[0].path, std::path::Path::new("d"));
            assert_eq!(place.tree(), before, "{theirs}, {only}");
        }
    }
}

#[test]
fn a_mode_that_the_user_changed_stays_and_both_change_it_is_a_conflict() {
    for waits in [false, true] {
        for (agent, user, modes) in [
            ("touch d/n", "chmod 700 d", (0o700, 0o644)),
            ("touch d/n; chmod 750 d", ":", (0o750, 0o644)),
            ("touch d/n; chmod 750 d", "touch d/user", (0o750, 0o644)),
            ("echo 2 >> f", ":", (0o755, 0o644)),
            ("chmod +x f", ":", (0o755, 0o755)),
        ] {
            let place = Place::new("mkdir d; echo 1 > f; chmod 755 d; chmod 644 f");
            tick();
            let mut set = place.stage(agent);
            if waits {
                set.record_bases().unwrap();
            }
            tick();
            sh(&place.workspace, user);
            assert!(place.commit(&mut set).id.is_some(), "{agent} / {user}");
            let mode = |name: &str| fs::metadata(place.workspace.join(name)).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode("d"), mode("f")), modes, "{agent} / {user}, {waits}");
        }
    }
    // With the text merges the mode.
    let place = Place::new("printf '%s\\n' 1 2 3 4 5 6 7 8 9 > f; chmod 644 f");
    let mut set = place.stage("sed -i s/1/agent/ f");
    set.record_bases().unwrap();
    tick();
    sh(&place.workspace, "sed -i s/9/user/ f; chmod 600 f");
    assert_eq!(place.commit(&mut set).judged.merged, 1);
    assert_eq!(
        fs::metadata(place.workspace.join("f")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let place = Place::new("mkdir d; echo 1 > f; chmod 755 d; chmod 644 f");
    for (agent, user) in [
        ("touch d/n; chmod 750 d", "chmod 700 d"),
        ("chmod 755 f", "chmod 600 f"),
    ] {
        let mut set = place.stage(agent);
        set.record_bases().unwrap();
        tick();
        sh(&place.workspace, user);
        assert_eq!(place.commit(&mut set).judged.conflicting, 1, "{agent} / {user}");
        place.store.discard(set).unwrap();
    }
}

#[test]
fn a_part_that_was_undone_can_be_committed_again() {
    let place = Place::new("mkdir d; echo 1 > d/a; echo 1 > b");
    let mut set = place.stage("echo 2 >> d/a; echo 2 >> b; echo 2 > d/new");
    set.record_bases().unwrap();
    tick();
    let only = Choice {
        only: vec!["d".into()],
        ..Choice::default()
    };
    let part = place.commit_with(&mut set, &only).id.unwrap();
    let mut part = place.store.get(&part).unwrap();
    place.store.undo(&mut part, &Surroundings::default()).unwrap();
    let done = place.commit(&mut set);
    assert!(done.id.is_some(), "{:?}", done.judged);
    assert_eq!(fs::read(place.workspace.join("d/a")).unwrap(), b"1\n2\n");
    assert!(place.workspace.join("d/new").exists());
}

#[test]
fn a_conflict_of_a_part_leaves_the_counts_of_the_set() {
    let place = Place::new("echo 1 > a; echo 1 > b");
    let mut set = place.stage("echo 2 > a; echo 2 > b; touch c");
    set.wait(0).unwrap();
    tick();
    sh(&place.workspace, "echo user > a");
    let only = Choice {
        only: vec!["a".into()],
        ..Choice::default()
    };
    assert_eq!(place.commit_with(&mut set, &only).judged.conflicting, 1);
    let summary = set.summary();
    assert_eq!(
        (summary.state, summary.counts.added, summary.counts.modified),
        (State::Conflict, 1, 2)
    );
}
