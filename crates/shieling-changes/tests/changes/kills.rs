//! A commit that is killed at any moment is finished or taken back by whoever comes next.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use shieling_changes::{Action, ChangeSet, ChangesError, Choice, Limits, State, Store, Surroundings};

use crate::support::{Place, sh};

const STORE: &str = "SHIELING_TEST_STORE";
const SET: &str = "SHIELING_TEST_SET";
const DISCARDED: &str = "SHIELING_TEST_SET_DISCARDED";
const ONCE: &str = "SHIELING_TEST_SET_ONCE";

const SETUP: &str = "mkdir -p d/e f; for n in {1..40}; do echo $n > d/$n; echo $n > f/$n; done; echo x > d/e/x";
const SCRIPT: &str = "for n in {1..20}; do echo new > d/$n; rm d/$((n+20)); echo x > f/new$n; done; rm -r d/e; \
    echo x > d/e; mkdir -p tree/a/b; touch tree/a/b/c; chmod 700 f; mv f/3 f/4; ln -s x f/3";

/// In the child: the store and the set that it is given.
fn given(variable: &str) -> Option<(Store, ChangeSet)> {
    let (store, id) = (std::env::var_os(STORE)?, std::env::var(variable).ok()?);
    let store = Store::open(store.as_ref(), Limits::default()).unwrap();
    let set = store.get(&id).unwrap();
    Some((store, set))
}

/// Starts one of these tests as a child that works on a set.
fn child(place: &Place, test: &str, variable: &str, id: &str, stdout: Stdio) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(STORE, place.root.join("store"))
        .env(variable, id)
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test by itself: what is killed. Commits and takes back by turns.
#[test]
fn commit_in_a_child() {
    let Some((store, mut set)) = given(SET) else { return };
    println!("ready");
    loop {
        let done = match set.state() {
            State::Committed => store.undo(&mut set, &Surroundings::default()).map(drop),
            State::Incomplete => panic!("it was never filled from a copy"),
            State::Waiting | State::Conflict | State::Undone => store
                .commit(&mut set, &Choice::default(), &Surroundings::default(), None)
                .map(drop),
        };
        done.unwrap();
    }
}

fn kills() -> u64 {
    match std::env::var("SHIELING_TESTS").as_deref() {
        Ok("full") => 1_000,
        _ => 40,
    }
}

#[test]
fn killed_at_any_moment_it_is_the_old_state_or_the_new() {
    let place = Place::new(SETUP);
    let old = place.tree();
    let new = {
        let direct = Place::new(SETUP);
        sh(&direct.workspace, SCRIPT);
        direct.tree()
    };
    let set = place.stage(SCRIPT);
    let id = set.id().to_owned();
    drop(set);
    let (mut olds, mut news, mut between) = (0, 0, 0);
    // As often as it is to be, and until each of the three was seen: one in twenty is found in the middle.
    for round in 0..20 * kills() {
        if round >= kills() && olds > 0 && news > 0 && between > 0 {
            break;
        }
        let mut child = child(&place, "kills::commit_in_a_child", SET, &id, Stdio::piped());
        {
            use std::io::BufRead as _;
            let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            while !line.contains("ready") {
                line.clear();
                assert!(output.read_line(&mut line).unwrap() > 0, "it ended before it began");
            }
            std::thread::sleep(Duration::from_micros(round * 7919 % 12_000));
            child.kill().unwrap();
        }
        assert_eq!(child.wait().unwrap().signal(), Some(9), "round {round}");
        let found = place.tree();
        between += u64::from(found != old && found != new);
        // Whoever opens it next finishes what was begun.
        let set = place.store.get(&id).unwrap();
        let found = place.tree();
        match set.state() {
            State::Committed => {
                assert_eq!(found, new, "round {round}");
                // Also where it was finished by another process than counted.
                assert!(set.summary().counts.paths() > 0, "round {round}");
            }
            _ => assert_eq!(found, old, "round {round}"),
        }
        olds += u64::from(found == old);
        news += u64::from(found == new);
    }
    println!("old {olds}, new {news}; {between} were found in the middle and finished");
    assert!(
        olds > 0 && news > 0 && between > 0,
        "old {olds}, new {news}, between {between}"
    );
}

/// Not a test by itself: discards.
#[test]
fn discard_in_a_child() {
    let Some((store, set)) = given(DISCARDED) else { return };
    store.discard(set).unwrap();
    store.finish_removals();
}

#[test]
fn a_set_whose_removal_is_killed_is_listed_no_more_and_removed_by_whoever_opens_the_store() {
    for round in 0..100_u64 {
        let place = Place::new("");
        let set = place.stage("mkdir -p n/d; cd n/d; seq 20000 | xargs touch");
        let (id, path) = (set.id().to_owned(), set.path().to_path_buf());
        drop(set);
        let mut child = child(&place, "kills::discard_in_a_child", DISCARDED, &id, Stdio::null());
        while path.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50 + round));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let names = || std::fs::read_dir(place.root.join("store")).unwrap().count();
        let left = names();
        assert_eq!(place.store.list().unwrap().len(), 0);
        assert!(matches!(place.store.get(&id), Err(ChangesError::Unknown { .. })));
        let next = Store::open(&place.root.join("store"), Limits::default()).unwrap();
        next.finish_removals();
        assert_eq!(names(), 0);
        if left > 0 {
            return;
        }
    }
    panic!("no child was killed in the middle");
}

/// Not a test by itself: commits once.
#[test]
fn commit_once_in_a_child() {
    let Some((store, mut set)) = given(ONCE) else { return };
    println!("ready");
    store
        .commit(&mut set, &Choice::default(), &Surroundings::default(), None)
        .unwrap();
}

#[test]
fn what_the_user_changed_in_a_commit_that_was_killed_stays() {
    // Half done by a child that is killed, then changed, and taken up by whoever comes next.
    for round in 0..400_u64 {
        let place = Place::new("for n in {1000..1999}; do echo $n > $n; done");
        let set = place.stage("for n in {1000..1999}; do echo agent >> $n; done; mkdir new; touch new/x");
        let id = set.id().to_owned();
        drop(set);
        let mut child = child(&place, "kills::commit_once_in_a_child", ONCE, &id, Stdio::null());
        let file = |name: &str| std::fs::read_to_string(place.workspace.join(name)).unwrap();
        while !file("1100").contains("agent") && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(100 + round));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if file("1999").contains("agent") {
            continue;
        }
        sh(&place.workspace, "echo USER >> 1100; echo USER >> 1999");
        let set = place.store.get(&id).unwrap();
        assert_eq!(file("1100"), "1100\nagent\nUSER\n");
        assert_eq!(file("1999"), "1999\nUSER\n");
        assert_eq!(file("1050"), "1050\n");
        assert_eq!(set.state(), State::Conflict);
        return;
    }
    panic!("no child was killed in the middle");
}

#[test]
fn what_is_left_of_a_committed_set_deletes_nothing_when_its_removal_is_killed() {
    for round in 0..100_u64 {
        let place = Place::new("mkdir held");
        // The name is held back, so that the set is kept without what was committed of it.
        let set = place.stage("mkdir -p n/d; for n in {1000..2999}; do echo $n > n/d/$n; done; touch $'held/\\e'");
        let (id, layer) = (set.id().to_owned(), set.upper().join("n/d"));
        // As what a session committed, or a directory made anew, has it.
        let opaque = "user.overlay.opaque";
        rustix::fs::setxattr(set.upper().join("n"), opaque, b"y", rustix::fs::XattrFlags::empty()).unwrap();
        drop(set);
        let mut child = child(&place, "kills::commit_once_in_a_child", ONCE, &id, Stdio::null());
        while layer.join("2999").exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50 + round));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !layer.join("1000").exists() || layer.join("2999").exists() {
            continue;
        }
        let set = place.store.get(&id).unwrap();
        let mut deleted = Vec::new();
        let looked = set.for_each(&mut |change| {
            deleted.extend((change.action == Action::Deleted).then(|| change.path.clone()));
            Ok(())
        });
        looked.unwrap();
        assert_eq!(deleted.len(), 0, "{:?}", deleted.first());
        return;
    }
    panic!("no child was killed in the middle");
}
