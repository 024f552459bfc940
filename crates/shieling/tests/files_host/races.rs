//! Somebody changes what a path means while it is used: thousands of rounds for each way.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags};
use shieling::environment::{Expect, FileError, Files, Links};

use crate::place::{BOTH, CANARY, In, Place, link, read};

/// How often each end of a race must have been seen.
fn enough() -> usize {
    shieling_testkit::extent::rounds(2, 20)
}

/// How often each is tried; less often by the ordinary user, who comes after.
fn rounds() -> usize {
    let full = if shieling_testkit::is_user() { 2_000 } else { 10_000 };
    shieling_testkit::extent::rounds(full / 10, full)
}

/// Exchanges two names, as long as the other runs; how often that was done.
fn while_swapping(one: &Path, other: &Path, act: impl FnOnce(&AtomicU64)) -> u64 {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // One of them may be gone for a moment.
                if rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
                    let count = count.fetch_add(1, Ordering::Relaxed);
                    // At all paces, and in both states: some ways need more time than an exchange takes.
                    if count.is_multiple_of(7) {
                        std::thread::sleep(Duration::from_micros(count % 5 * 20));
                    }
                }
            }
        });
        // Also if it panics.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stop = Stop(&stop);
        act(&count);
    });
    count.into_inner()
}

/// Waits until something was swapped since `before`. A machine that is busy may leave whoever swaps waiting for long,
/// while all that is tried happens between two swaps.
fn wait_for_a_swap(swaps: &AtomicU64, before: u64) {
    let start = Instant::now();
    while swaps.load(Ordering::Relaxed) == before {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is swapped");
        std::thread::yield_now();
    }
}

/// What happened how often.
#[derive(Debug, Default)]
struct Seen {
    done: usize,
    refused: usize,
    /// In whose course something was swapped, where that is counted.
    amid: usize,
}

impl Seen {
    fn add<T>(&mut self, result: &Result<T, FileError>) {
        match result {
            Ok(_) => self.done += 1,
            Err(
                FileError::Outside { .. }
                | FileError::NotFound(_)
                | FileError::Changed(_)
                | FileError::NotADirectory(_)
                | FileError::LinkLoop(_)
                | FileError::IsDirectory(_)
                | FileError::ReadOnly(_),
            ) => self.refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn tried(&self) -> usize {
        self.done + self.refused
    }

    /// Whether to go on: as often as it is to be tried, and until both ends were seen, and as many swaps.
    fn wants_more(&self, rounds: usize, swaps: u64) -> bool {
        let tried = self.tried();
        tried < rounds || (tried < 200 * rounds && !self.was_run(swaps))
    }

    /// Both ends were seen, or very many swaps amid what was tried: some ways bear nearly every swap, so that they are
    /// refused only where one falls between two system calls.
    fn was_run(&self, swaps: u64) -> bool {
        let ends = self.done.min(self.refused) > enough();
        (ends || self.amid > 50 * enough()) && swaps > enough() as u64
    }

    /// A race that was not run proves nothing.
    fn check(&self, what: &str, swaps: u64) {
        eprintln!("{what}: {} done, {} refused, {swaps} swaps", self.done, self.refused);
        assert!(self.was_run(swaps), "{what}: no race: {self:?}, {swaps}");
    }
}

/// A file, and a directory with one in it, and links to the outside for both.
///
/// In the sandbox, which has no outside, the links lead to what must not be changed there.
fn prepare(work: &Path) {
    for directory in ["directory", ".git/hooks"] {
        fs::create_dir_all(work.join(directory)).expect("ours");
    }
    fs::write(work.join("file"), "inside").expect("ours");
    fs::write(work.join("directory/canary"), "inside").expect("ours");
    for name in [".git/hooks/canary", ".git/config"] {
        fs::write(work.join(name), CANARY).expect("ours");
    }
    fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").expect("ours");
    for directory in [".git/objects", ".git/refs"] {
        fs::create_dir_all(work.join(directory)).expect("ours");
    }
    for outside in [true, false] {
        let (file, directory) = targets(outside);
        let suffix = if outside { "out" } else { "protected" };
        link(file, work.join(format!("file_{suffix}")));
        link(directory, work.join(format!("directory_{suffix}")));
    }
}

fn protecting(which: In) -> Place {
    Place::with(which, prepare, |restrictions| restrictions.open_protected = false)
}

fn targets(outside: bool) -> (&'static str, &'static str) {
    if outside {
        ("../outside/canary", "../outside/directory")
    } else {
        (".git/config", ".git/hooks")
    }
}

/// The places where the race is run, and what the links to swap with are called.
fn races() -> Vec<(In, &'static str)> {
    vec![(In::Local, "out"), (In::Sandbox, "out"), (In::Sandbox, "protected")]
}

fn check_protected(place: &Place, which: In) {
    place.check_outside();
    if which == In::Sandbox {
        for name in [".git/hooks/canary", ".git/config"] {
            assert_eq!(fs::read_to_string(place.path(name)).expect("there"), CANARY, "{name}");
        }
        assert_eq!(fs::read_dir(place.path(".git/hooks")).expect("there").count(), 1);
    }
}

#[test]
fn who_checks_and_then_uses_reads_the_outside() {
    // The control: without handles, the very same race is won.
    let place = Place::with(In::Local, prepare, |_| {});
    let (path, other) = (place.path("file"), place.path("file_out"));
    let mut won = false;
    while_swapping(&path, &other, |_| {
        for _ in 0..1_000_000 {
            let real = fs::canonicalize(&path).unwrap_or_default();
            if real.starts_with(place.work()) && fs::read(&path).is_ok_and(|bytes| bytes == CANARY.as_bytes()) {
                won = true;
                break;
            }
        }
    });
    assert!(won, "the race that the others are about does not happen here");
}

#[test]
fn no_byte_of_the_outside_is_read() {
    for which in BOTH {
        let place = protecting(which);
        let files = place.files();
        for (name, swapped, with) in [
            ("file", "file", "file_out"),
            ("directory/canary", "directory", "directory_out"),
        ] {
            let path = place.path(name);
            let mut seen = Seen::default();
            let swaps = while_swapping(&place.path(swapped), &place.path(with), |swaps| {
                while seen.wants_more(rounds(), swaps.load(Ordering::Relaxed)) {
                    let result = if seen.tried().is_multiple_of(2) {
                        read(&*files, &path)
                    } else {
                        by_entries(&*files, &path)
                    };
                    assert!(
                        result.as_ref().is_ok_and(|bytes| bytes == b"inside") || result.is_err(),
                        "{result:?}"
                    );
                    seen.add(&result);
                }
            });
            seen.check(&format!("{which:?}, reading {name}"), swaps);
        }
        check_protected(&place, which);
    }
}

/// As a search does: the directory, and the name in it.
fn by_entries(files: &dyn Files, path: &Path) -> Result<Vec<u8>, FileError> {
    let directory = files.node(path.parent().expect("it has one"), Links::Follow)?;
    let mut content = directory.open_child(path.file_name().expect("it has one"))?;
    let mut bytes = vec![0; 64];
    let count = content.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn no_byte_is_written_outside() {
    for (which, suffix) in races() {
        for expect in [Expect::Any, Expect::Nothing] {
            let place = protecting(which);
            let files = place.files();
            let (directory, other) = (place.path("directory"), place.path(format!("directory_{suffix}")));
            let mut seen = Seen::default();
            let swaps = while_swapping(&directory, &other, |swaps| {
                while seen.wants_more(rounds(), swaps.load(Ordering::Relaxed)) {
                    let name = match expect {
                        Expect::Any | Expect::Stamp(_) => "directory/canary".to_owned(),
                        Expect::Nothing => format!("directory/new{}/deep", seen.tried()),
                    };
                    let write_target = files.write_target(&place.path(name), Links::Follow);
                    let result = write_target.and_then(|write_target| {
                        write_target.replace(b"inside", false, expect)?;
                        Ok(write_target.path().starts_with(place.work()))
                    });
                    match result {
                        // What is outside on the host is a private place in the sandbox.
                        Ok(false) if which == In::Sandbox => seen.refused += 1,
                        result => seen.add(&result),
                    }
                }
            });
            seen.check(
                &format!("{which:?}, {suffix}, writing below a directory, {expect:?}"),
                swaps,
            );
            check_protected(&place, which);
            check_nothing_left(&place.work());
        }
        let place = protecting(which);
        let files = place.files();
        let (file, other) = (place.path("file"), place.path(format!("file_{suffix}")));
        let mut seen = Seen::default();
        let swaps = while_swapping(&file, &other, |swaps| {
            while seen.wants_more(rounds(), swaps.load(Ordering::Relaxed)) {
                // The link may have been replaced, as a name of the workspace's like any other.
                if seen.tried().is_multiple_of(20) {
                    fs::write(place.path("new_file"), "inside").expect("ours");
                    put(&place, "new_file", "file");
                    link(targets(suffix == "out").0, place.path("new_link"));
                    put(&place, "new_link", &format!("file_{suffix}"));
                }
                let write_target = files.write_target(&file, Links::Follow);
                let result = write_target.and_then(|write_target| {
                    write_target.replace(b"inside", false, Expect::Any)?;
                    Ok(write_target.path().starts_with(place.work()))
                });
                match result {
                    Ok(false) if which == In::Sandbox => seen.refused += 1,
                    result => seen.add(&result),
                }
            }
        });
        seen.check(&format!("{which:?}, {suffix}, writing a file"), swaps);
        check_protected(&place, which);
        check_nothing_left(&place.work());
    }
}

fn check_nothing_left(directory: &Path) {
    for entry in fs::read_dir(directory).expect("there") {
        let name = entry.expect("listed").file_name();
        assert!(!name.to_string_lossy().starts_with(".shieling-"), "{name:?} is left");
    }
}

#[test]
fn nothing_is_removed_outside() {
    for (which, suffix) in races() {
        let place = protecting(which);
        let files = place.files();
        let target = if suffix == "out" {
            place.outside("directory")
        } else {
            place.path(".git/hooks")
        };
        // What is removed is swapped itself, and what is in it, and what it is in.
        for (at, removed, one, other) in [
            ("itself", "tree/sub", "tree/sub", "tree/link"),
            ("in it", "tree", "tree/sub", "tree/link"),
            ("above it", "tree/sub/canary", "tree/sub", "tree/link"),
        ] {
            let mut seen = Seen::default();
            let swaps = while_swapping(&place.path(one), &place.path(other), |swaps| {
                while seen.wants_more(rounds() / 3, swaps.load(Ordering::Relaxed)) {
                    let before = swaps.load(Ordering::Relaxed);
                    renew(&place, &target);
                    // Whoever swaps can do so only until it is removed: every other time, they are waited for.
                    if seen.tried().is_multiple_of(2) {
                        wait_for_a_swap(swaps, before);
                    }
                    let before = swaps.load(Ordering::Relaxed);
                    let write_target = files.write_target(&place.path(removed), Links::Keep);
                    let result = write_target.and_then(|write_target| write_target.remove(true));
                    seen.amid += usize::from(swaps.load(Ordering::Relaxed) != before);
                    match &result {
                        // Something was put into it while it was emptied.
                        Err(FileError::NotEmpty(_)) => seen.refused += 1,
                        result => seen.add(result),
                    }
                }
            });
            check_protected(&place, which);
            let _ = fs::remove_dir_all(place.path("tree"));
            seen.check(&format!("{which:?}, {suffix}, removing, swapped {at}"), swaps);
        }
    }
}

/// Gives something another name, whatever has that: without following any link.
fn put(place: &Place, from: &str, at: &str) {
    let (from, at) = (place.path(from), place.path(at));
    if rustix::fs::renameat_with(CWD, &from, CWD, &at, RenameFlags::NOREPLACE).is_ok() {
        return;
    }
    let _ = rustix::fs::renameat_with(CWD, &from, CWD, &at, RenameFlags::EXCHANGE);
    let _ = if from.is_dir() && !from.is_symlink() {
        fs::remove_dir_all(&from)
    } else {
        fs::remove_file(&from)
    };
}

/// Puts a directory with a file in it, and a link to swap it with, where they were before, without
/// following any link: others swap them meanwhile.
fn renew(place: &Place, target: &Path) {
    let _ = fs::create_dir(place.path("tree"));
    fs::create_dir(place.path("fresh")).expect("ours");
    fs::write(place.path("fresh/canary"), "inside").expect("ours");
    put(place, "fresh", "tree/sub");
    link(target, place.path("fresh_link"));
    put(place, "fresh_link", "tree/link");
}

#[test]
fn of_two_who_expect_the_same_state_one_is_told() {
    for which in BOTH {
        let place = Place::with(which, |work| fs::write(work.join("count"), "0").expect("ours"), |_| {});
        let files = place.files();
        let path = place.path("count");
        let add = || {
            let mut done = 0;
            while done < 300 {
                let node = files.node(&path, Links::Follow).expect("there");
                let mut content = node.open().expect("opened");
                let stamp = content.meta().expect("looked at").stamp;
                let mut bytes = [0; 16];
                let count = content.read_at(0, &mut bytes).expect("read");
                let number: u64 = String::from_utf8_lossy(&bytes[..count]).parse().expect("a number");
                let write_target = files.write_target(&path, Links::Follow).expect("a write target");
                match write_target.replace((number + 1).to_string().as_bytes(), false, Expect::Stamp(stamp)) {
                    Ok(()) => done += 1,
                    Err(FileError::Changed(_)) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(add);
            scope.spawn(add);
        });
        assert_eq!(
            fs::read_to_string(&path).expect("there"),
            "600",
            "{which:?}: a write was lost"
        );
    }
}

#[test]
fn what_somebody_else_wrote_meanwhile_is_not_lost() {
    let place = Place::with(
        In::Local,
        |work| fs::write(work.join("file"), "theirs").expect("ours"),
        |_| {},
    );
    let files = place.files();
    let path = place.path("file");
    let stop = AtomicBool::new(false);
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                fs::write(place.path("new"), format!("theirs {number}")).expect("ours");
                fs::rename(place.path("new"), &path).expect("ours");
            }
        });
        let mut round = 0;
        while seen.wants_more(rounds(), u64::MAX) {
            round += 1;
            let stamp = files.node(&path, Links::Follow).and_then(|node| node.meta());
            let Ok(stamp) = stamp.map(|meta| meta.stamp) else {
                continue;
            };
            let ours = format!("ours {round}");
            let write_target = files.write_target(&path, Links::Follow);
            let result = write_target
                .and_then(|write_target| write_target.replace(ours.as_bytes(), false, Expect::Stamp(stamp)));
            if result.is_err() {
                assert_ne!(
                    fs::read_to_string(&path).expect("there"),
                    ours,
                    "it was said not to be written"
                );
            }
            seen.add(&result);
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("replacing beside another writer: {seen:?}");
    assert!(seen.refused > enough(), "no race: {seen:?}");
    check_nothing_left(&place.work());
}
