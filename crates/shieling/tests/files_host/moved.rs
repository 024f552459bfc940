//! A directory that is moved away once a name in it was found: nothing lands where it is by then.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shieling::environment::{Expect, FileError, Links, WriteTarget};

use crate::place::{BOTH, In, Place, link};

/// All that is in a directory: for each file its content and its mode, by its path.
fn tree(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("there") {
            let path = entry.expect("listed").path();
            let meta = fs::symlink_metadata(&path).expect("there");
            let mode = meta.permissions().mode() & 0o7777;
            let told = if meta.is_file() {
                format!("{} {mode:o}", fs::read_to_string(&path).expect("ours"))
            } else {
                "no file".to_owned()
            };
            if meta.is_dir() {
                left.push(path.clone());
            }
            found.insert(path, told);
        }
    }
    found
}

/// Every way to change something at a write target.
fn changes(place: &Place, write_target: &dyn WriteTarget) -> Vec<(&'static str, Result<(), FileError>)> {
    let files = place.files();
    let other = |name: &str| {
        files
            .write_target(&place.path(name), Links::Keep)
            .expect("a write target")
    };
    let was = files
        .node(&place.path("beside"), Links::Follow)
        .and_then(|node| node.meta())
        .expect("there");
    vec![
        ("replace", write_target.replace(b"ours", false, Expect::Any)),
        ("make", write_target.replace(b"ours", false, Expect::Nothing)),
        ("restore", write_target.restore(b"ours", &was, Expect::Any)),
        ("set_mode", write_target.set_mode(0o777)),
        ("remove", write_target.remove(true)),
        ("move away", write_target.rename(&*other("taken"), false)),
        ("move here", other("beside").rename(write_target, false)),
        ("move over", other("beside").rename(write_target, true)),
        ("look", write_target.current().map(|_| ())),
    ]
}

#[test]
fn a_change_never_lands_where_its_directory_was_moved_to() {
    // What becomes of `a` once a write target in it was found, and which one that is.
    type Then = fn(&Place);
    let moves: [(&str, Then); 5] = [
        ("outside", |place| {
            fs::rename(place.path("a"), place.outside("moved")).expect("ours");
        }),
        ("elsewhere in the workspace", |place| {
            fs::rename(place.path("a"), place.path("elsewhere")).expect("ours");
        }),
        ("and a link leads to it", |place| {
            fs::rename(place.path("a"), place.outside("moved")).expect("ours");
            link(place.outside("moved"), place.path("a"));
        }),
        ("and another one stands there", |place| {
            fs::rename(place.path("a"), place.outside("moved")).expect("ours");
            fs::create_dir_all(place.path("a/deep")).expect("ours");
            fs::write(place.path("a/deep/file"), "another").expect("ours");
        }),
        ("only the directory below it", |place| {
            fs::rename(place.path("a/deep"), place.outside("deep")).expect("ours");
        }),
    ];
    for which in BOTH {
        for (label, then) in moves {
            for name in ["a/deep/file", "a/deep/none", "a/deep/new/and/more"] {
                let place = Place::with(
                    which,
                    |work| {
                        fs::create_dir_all(work.join("a/deep")).expect("ours");
                        fs::write(work.join("a/deep/file"), "old").expect("ours");
                        fs::write(work.join("beside"), "beside").expect("ours");
                    },
                    |_| {},
                );
                let files = place.files();
                let write_target = files
                    .write_target(&place.path(name), Links::Follow)
                    .expect("a write target");
                then(&place);
                let root = place.work().parent().expect("it has one").to_path_buf();
                let before = tree(&root);
                for (change, result) in changes(&place, &*write_target) {
                    assert!(
                        matches!(&result, Err(FileError::Changed(path)) if path == write_target.path()),
                        "{which:?} {label} {name} {change}: {result:?}"
                    );
                    assert_eq!(tree(&root), before, "{which:?} {label} {name} {change}");
                }
            }
        }
    }
}

#[test]
fn a_directory_that_is_back_is_written_to_as_if_nothing_had_been() {
    for which in BOTH {
        let place = Place::new(which);
        fs::create_dir(place.path("a")).expect("ours");
        let write_target = place
            .files()
            .write_target(&place.path("a/file"), Links::Follow)
            .expect("a write target");
        fs::rename(place.path("a"), place.outside("moved")).expect("ours");
        assert!(write_target.replace(b"ours", false, Expect::Any).is_err());
        fs::rename(place.outside("moved"), place.path("a")).expect("ours");
        write_target
            .replace(b"ours", false, Expect::Nothing)
            .expect("it is where it was");
        assert_eq!(fs::read(place.path("a/file")).expect("there"), b"ours");
    }
}

#[test]
fn what_is_put_back_has_its_permissions_and_its_time() {
    for which in BOTH {
        let place = Place::new(which);
        for (mode, seconds) in [(0o600, 1_000_000_000), (0o751, 1), (0o444, 0)] {
            let path = place.path("file");
            fs::write(&path, "old").expect("ours");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
            let time = std::time::UNIX_EPOCH + Duration::new(seconds, 123_456_789);
            let file = fs::File::open(&path).expect("ours");
            // Readable at least, and its own.
            file.set_modified(time).expect("ours");
            let files = place.files();
            let was = files
                .node(&path, Links::Follow)
                .and_then(|node| node.meta())
                .expect("there");
            fs::remove_file(&path).expect("ours");
            let write_target = files.write_target(&path, Links::Follow).expect("a write target");
            write_target.restore(b"old", &was, Expect::Nothing).expect("put back");
            let now = fs::metadata(&path).expect("there");
            assert_eq!(now.permissions().mode() & 0o7777, mode, "{which:?}");
            assert_eq!(now.modified().expect("it has one"), time, "{which:?}");
            fs::remove_file(&path).expect("ours");
        }
    }
}

/// How a round changes something in the directory.
#[derive(Debug, Clone, Copy)]
enum Way {
    Over,
    New,
    MovedIn,
    MovedOver,
}

/// How often each is tried; less often by the ordinary user, who comes after.
fn rounds() -> usize {
    let full = if shieling_testkit::is_user() { 500 } else { 1_500 };
    shieling_testkit::extent::rounds(full / 10, full)
}

#[test]
fn what_is_refused_since_its_directory_went_has_left_no_byte_there() {
    for which in BOTH {
        for way in [Way::Over, Way::New, Way::MovedIn, Way::MovedOver] {
            race(which, way);
        }
    }
}

/// A thread moves the directory outside at any moment of a change, and it stays there until that is over.
fn race(which: In, way: Way) {
    let place = Place::new(which);
    let (directory, moved) = (place.path("directory"), place.outside("moved"));
    fs::create_dir(&directory).expect("ours");
    let files = place.files();
    // The round that has begun, the one that the other thread has seen begin, and the one in which the
    // directory was moved.
    let (begun, ready, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (mut made, mut refused) = (0_usize, 0_usize);
    const OVER: usize = usize::MAX;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            loop {
                let round = begun.load(Ordering::Acquire);
                if round == OVER {
                    return;
                }
                if round == last {
                    std::thread::yield_now();
                    continue;
                }
                // From the first moment of a change to one after its last: a move takes the shortest.
                let step = if matches!(way, Way::Over | Way::New) { 5 } else { 2 };
                ready.store(round, Ordering::Release);
                let until = Instant::now() + Duration::from_micros((round % 40) as u64 * step);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                fs::rename(&directory, &moved).expect("ours");
                last = round;
                done.store(round, Ordering::Release);
            }
        });
        // Also if it panics.
        struct Stop<'a>(&'a AtomicUsize);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(OVER, Ordering::Release);
            }
        }
        let _stop = Stop(&begun);
        let began = Instant::now();
        let wants_more = |round: usize, least: usize| {
            round <= rounds()
                || (least < shieling_testkit::extent::rounds(3, 10) && began.elapsed() < Duration::from_secs(60))
        };
        let mut round = 1;
        while wants_more(round, made.min(refused)) {
            fs::write(directory.join("file"), "theirs").expect("ours");
            fs::write(place.path("beside"), "ours").expect("ours");
            let name = match way {
                Way::Over | Way::MovedOver => "directory/file",
                Way::New => "directory/new/deep",
                Way::MovedIn => "directory/in",
            };
            let write_target = files
                .write_target(&place.path(name), Links::Follow)
                .expect("a write target");
            let beside = files
                .write_target(&place.path("beside"), Links::Keep)
                .expect("a write target");
            begun.store(round, Ordering::Release);
            // Both are awake then: on a busy machine, the other one would begin when this has ended.
            while ready.load(Ordering::Acquire) != round {
                std::thread::yield_now();
            }
            let result = match way {
                Way::Over => write_target.replace(b"ours", false, Expect::Any),
                Way::New => write_target.replace(b"ours", false, Expect::Nothing),
                Way::MovedIn => beside.rename(&*write_target, false),
                Way::MovedOver => beside.rename(&*write_target, true),
            };
            while done.load(Ordering::Acquire) != round {
                std::thread::yield_now();
            }
            let label = format!("{which:?} {way:?} round {round}: {result:?}");
            let found = tree(&moved);
            match result {
                Ok(()) => {
                    made += 1;
                    assert!(found.values().any(|content| content.starts_with("ours")), "{label}");
                }
                Err(FileError::Changed(_)) => {
                    refused += 1;
                    let names: Vec<_> = found.keys().map(|path| path.file_name().expect("a name")).collect();
                    assert_eq!(names, ["file"], "{label}");
                    assert!(
                        found.values().all(|content| content.starts_with("theirs")),
                        "{label}: {found:?}"
                    );
                    assert_eq!(
                        fs::read_to_string(place.path("beside")).expect("there"),
                        "ours",
                        "{label}"
                    );
                }
                Err(_) => panic!("{label}"),
            }
            fs::rename(&moved, &directory).expect("ours");
            for name in ["in", "new/deep"] {
                let _ = fs::remove_file(directory.join(name));
            }
            let _ = fs::remove_dir(directory.join("new"));
            round += 1;
        }
    });
    eprintln!("{which:?}, {way:?} while the directory goes: {made} made, {refused} refused");
    assert!(made.min(refused) >= 1, "{which:?} {way:?}: no race: {made}, {refused}");
    place.check_outside();
}
