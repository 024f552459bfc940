//! What is no file, and names and places that are odd.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use shieling::environment::{Expect, FileError, Kind, Links};

use crate::place::{BOTH, In, Place, mode, odd};

fn fifo(at: &Path) {
    mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("ours");
}

#[test]
fn pipes_sockets_and_devices_are_told_and_neither_opened_nor_waited_for() {
    for which in BOTH {
        let place = Place::new(which);
        fifo(&place.path("fifo"));
        let _listener = UnixListener::bind(place.path("socket")).expect("ours");
        let mut all = vec![("fifo", Kind::Fifo), ("socket", Kind::Socket)];
        let device = mknodat(
            CWD,
            place.path("device"),
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            rustix::fs::makedev(1, 5),
        );
        match device {
            Ok(()) => all.push(("device", Kind::Device)),
            Err(error) => eprintln!("no device can be made here: {error}"),
        }
        let begun = Instant::now();
        for (name, expected) in all {
            let files = place.files();
            let node = files.node(&place.path(name), Links::Follow).expect(name);
            assert_eq!(node.meta().expect(name).kind, expected);
            let special = |error: Option<FileError>| match error {
                Some(FileError::Special { kind, path }) => assert_eq!((kind, path), (expected, place.path(name))),
                // In the sandbox no device of a workspace can be opened, which is told first.
                Some(FileError::Permission(_)) if expected == Kind::Device => {}
                other => panic!("{which:?} {name}: {other:?}"),
            };
            special(node.open().err());
            let work = files.node(&place.work(), Links::Follow).expect("there");
            special(work.open_child(name.as_ref()).err());
            let write_target = files.write_target(&place.path(name), Links::Follow).expect(name);
            special(write_target.replace(b"x", false, Expect::Any).err());
            write_target.remove(false).expect("a name like any other");
            assert!(!place.path(name).exists());
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "somebody was waited for");
    }
}

#[test]
fn a_directory_is_no_file_and_a_file_no_directory() {
    for which in BOTH {
        let place = Place::with(
            which,
            |work| {
                fs::create_dir(work.join("directory")).expect("ours");
                fs::write(work.join("file"), "x").expect("ours");
            },
            |_| {},
        );
        let files = place.files();
        assert!(matches!(
            place.read(place.path("directory")),
            Err(FileError::IsDirectory(_))
        ));
        let write_target = files
            .write_target(&place.path("directory"), Links::Follow)
            .expect("a write target");
        assert!(matches!(
            write_target.replace(b"", false, Expect::Any),
            Err(FileError::IsDirectory(_))
        ));
        for name in ["file/x", "file/x/y", "file/", "file/..", "file/../file"] {
            let error = files.node(&place.path(name), Links::Follow).err().expect(name);
            assert!(
                matches!(error, FileError::NotADirectory(_)),
                "{which:?} {name}: {error:?}"
            );
            assert!(files.write_target(&place.path(name), Links::Follow).is_err(), "{name}");
        }
        let file = files.node(&place.path("file"), Links::Follow).expect("there");
        assert!(matches!(file.entries(), Err(FileError::NotADirectory(_))));
        assert!(matches!(
            file.child("x".as_ref()).err(),
            Some(FileError::NotADirectory(_))
        ));
        assert!(matches!(file.target(), Err(FileError::BadPath { .. })));
        for name in ["missing", "missing/x", "missing/../file"] {
            let error = files.node(&place.path(name), Links::Follow).err().expect(name);
            assert!(matches!(error, FileError::NotFound(_)), "{which:?} {name}: {error:?}");
        }
    }
}

#[test]
fn odd_names_are_names_and_impossible_ones_are_refused() {
    for which in BOTH {
        let place = Place::new(which);
        let files = place.files();
        let long = "n".repeat(255);
        for name in [
            odd(),
            "a\nb".as_ref(),
            " ".as_ref(),
            "x (deleted)".as_ref(),
            long.as_ref(),
        ] {
            let write_target = files
                .write_target(&place.path(name), Links::Follow)
                .expect("a write target");
            write_target.replace(b"odd", false, Expect::Nothing).expect("written");
            assert_eq!(fs::read(place.path(name)).expect("there"), b"odd");
            let node = files.node(&place.path(name), Links::Follow).expect("there");
            assert_eq!(node.path(), place.path(name));
            let listed = files
                .node(&place.work(), Links::Follow)
                .expect("there")
                .entries()
                .expect("listed");
            assert!(
                listed
                    .iter()
                    .any(|entry| entry.name == *name && entry.kind == Kind::File)
            );
        }
        let (longer, far) = ("n".repeat(256), "d/".repeat(3000));
        for bad in [&*longer, &*far, "a\0b"] {
            let told = [
                files.node(&place.path(bad), Links::Follow).err(),
                files.write_target(&place.path(bad), Links::Follow).err(),
            ];
            for error in told {
                assert!(matches!(error, Some(FileError::BadPath { .. })), "{which:?} {error:?}");
            }
        }
        for relative in ["file", "./file", ""] {
            let error = files.node(Path::new(relative), Links::Follow).err();
            assert!(matches!(error, Some(FileError::BadPath { .. })), "{error:?}");
        }
    }
}

#[test]
fn above_the_root_is_the_root() {
    for which in BOTH {
        let place = Place::with(which, |work| fs::write(work.join("file"), "x").expect("ours"), |_| {});
        let up = "/..".repeat(40);
        let path = format!("{up}{}", place.path("file").display());
        let node = place
            .files()
            .node(Path::new(&path), Links::Follow)
            .expect("the same file");
        assert_eq!(node.path(), place.path("file"), "{which:?}");
    }
}

#[test]
fn who_holds_a_file_reads_it_wherever_it_is_and_who_holds_one_that_is_gone_too() {
    for which in BOTH {
        let place = Place::with(
            which,
            |work| fs::write(work.join("file"), "first").expect("ours"),
            |_| {},
        );
        let files = place.files();
        let node = files.node(&place.path("file"), Links::Follow).expect("there");
        let mut content = node.open().expect("opened");
        fs::rename(place.path("file"), place.path("moved")).expect("ours");
        fs::write(place.path("file"), "second").expect("ours");
        let mut bytes = [0; 16];
        assert_eq!(content.read_at(0, &mut bytes).expect("read"), 5);
        assert_eq!(content.read_at(3, &mut bytes).expect("read"), 2);
        assert_eq!(content.read_at(5, &mut bytes).expect("read"), 0);
        assert_eq!(content.read_at(u64::MAX, &mut bytes).expect("read"), 0);
        fs::remove_file(place.path("moved")).expect("ours");
        let mut again = node.open().expect("the very file");
        assert_eq!(again.read_at(0, &mut bytes).expect("read"), 5);
        assert_eq!(&bytes[..5], b"first");
        assert_eq!(node.meta().expect("looked at").names, 0);
    }
}

#[test]
fn a_stamp_tells_states_apart_and_reading_changes_none() {
    for which in BOTH {
        let place = Place::with(
            which,
            |work| fs::write(work.join("file"), "first").expect("ours"),
            |_| {},
        );
        let stamp = || {
            let node = place.files().node(&place.path("file"), Links::Follow).expect("there");
            let content = node.open().expect("opened").meta().expect("looked at").stamp;
            assert_eq!(content, node.meta().expect("looked at").stamp);
            content
        };
        let first = stamp();
        place.read(place.path("file")).expect("read");
        assert_eq!(first, stamp());
        ticks(&place);
        fs::write(place.path("file"), "other").expect("ours");
        let second = stamp();
        assert_ne!(first, second);
        fs::remove_file(place.path("file")).expect("ours");
        ticks(&place);
        fs::write(place.path("file"), "other").expect("ours");
        assert_ne!(second, stamp());
    }
}

/// Waits until the clock of files has ticked: before, it may give two changes the same time.
fn ticks(place: &Place) {
    let now = || {
        fs::write(place.path("clock"), "").expect("ours");
        let told = fs::metadata(place.path("clock")).expect("it is there");
        told.modified().expect("it has one")
    };
    let before = now();
    while now() == before {}
}

#[test]
fn files_of_the_kernel_are_not_read() {
    for path in [
        "/proc/self/environ",
        "/proc/1/status",
        "/sys/devices/system/cpu/online",
        "/dev/pts/ptmx",
        "/proc",
    ] {
        let place = Place::new(In::Sandbox);
        let error = place.read(path).expect_err(path);
        assert!(
            matches!(error, FileError::Unsupported(_) | FileError::NotFound(_)),
            "{path}: {error:?}"
        );
    }
    let place = Place::new(In::Sandbox);
    assert!(matches!(place.read("/proc/1/status"), Err(FileError::Unsupported(_))));
    assert!(matches!(place.read("/dev/null"), Err(FileError::Special { .. })));
    assert!(place.read("/etc/passwd").is_ok(), "what commands may read, files give");
}

#[test]
fn what_the_user_may_not_read_or_list_is_said_to_be_so() {
    for which in BOTH {
        let place = Place::with(
            which,
            |work| {
                fs::create_dir(work.join("closed")).expect("ours");
                fs::write(work.join("closed/file"), "x").expect("ours");
                fs::write(work.join("secret"), "x").expect("ours");
                mode(work.join("secret"), 0o000);
                mode(work.join("closed"), 0o000);
            },
            |_| {},
        );
        // As root, `local` may: its commands may, too. In the sandbox they may not.
        let may = which == In::Local && rustix::process::geteuid().is_root();
        assert_eq!(place.run("cat secret closed/file && ls closed").1, may, "{which:?}");
        let files = place.files();
        let directory = files.node(&place.path("closed"), Links::Follow).expect("it is there");
        let all = [
            place.read(place.path("secret")).err(),
            place.read(place.path("closed/file")).err(),
            directory.entries().err(),
            directory.child("file".as_ref()).err(),
            directory.open_child("file".as_ref()).err(),
            files
                .write_target(&place.path("closed/new"), Links::Follow)
                .and_then(|write_target| write_target.replace(b"x", false, Expect::Any))
                .err(),
        ];
        for (at, error) in all.into_iter().enumerate() {
            match (may, &error) {
                (true, None) | (false, Some(FileError::Permission(_))) => {}
                _ => panic!("{which:?} {at}: {error:?}"),
            }
        }
    }
}
