//! Writing, removing, moving: whole or not at all, and where it was meant.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use shieling::environment::{Expect, FileError, Links};

use crate::place::{BOTH, In, Place, link, mode, odd};

/// What is in the workspace, by name, hidden names as well.
fn names(place: &Place, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(directory)).expect("it is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn write(place: &Place, name: &str, content: &[u8], expect: Expect) -> Result<(), FileError> {
    place
        .files()
        .write_target(&place.path(name), Links::Follow)?
        .replace(content, false, expect)
}

fn mode_of(place: &Place, name: &str) -> u32 {
    fs::metadata(place.path(name)).expect("there").permissions().mode() & 0o7777
}

#[test]
fn what_is_written_is_there_with_the_directories_that_were_missing() {
    for which in BOTH {
        let place = Place::new(which);
        let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        write(&place, "a/b/c/file", &all, Expect::Nothing).expect("written");
        assert_eq!(fs::read(place.path("a/b/c/file")).expect("there"), all);
        write(&place, "a/b/c/file", b"", Expect::Any).expect("written");
        assert_eq!(fs::read(place.path("a/b/c/file")).expect("there"), b"");
        assert_eq!(names(&place, "a/b/c"), ["file"], "nothing else is left");
        // As a command would have made them.
        let (told, ok) = place.run("mkdir -p x/y && echo > x/y/plain && stat -c %a:%u:%g x/y x/y/plain");
        assert!(ok, "{told}");
        let stat = |name: &str| {
            let found = fs::metadata(place.path(name)).expect("there");
            format!("{:o}:{}:{}\n", found.mode() & 0o7777, found.uid(), found.gid())
        };
        assert_eq!(told, stat("a/b") + &stat("a/b/c/file"), "{which:?}");
        let script = place
            .files()
            .write_target(&place.path("script"), Links::Follow)
            .expect("a write target");
        script
            .replace(b"#!/bin/sh\necho ran", true, Expect::Nothing)
            .expect("written");
        assert_eq!(place.run("./script"), ("ran\n".to_owned(), true));
        assert_eq!(place.run("cat a/b/c/file script | wc -c"), ("18\n".to_owned(), true));
    }
}

#[test]
fn what_is_not_expected_changes_nothing() {
    for which in BOTH {
        let place = Place::new(which);
        let stamp = |name: &str| {
            let node = place.files().node(&place.path(name), Links::Follow).expect("there");
            node.meta().expect("looked at").stamp
        };
        write(&place, "file", b"one", Expect::Nothing).expect("written");
        let first = stamp("file");
        assert!(matches!(
            write(&place, "file", b"two", Expect::Nothing),
            Err(FileError::Changed(_))
        ));
        write(&place, "file", b"two", Expect::Stamp(first)).expect("as expected");
        assert!(matches!(
            write(&place, "file", b"three", Expect::Stamp(first)),
            Err(FileError::Changed(_))
        ));
        assert_eq!(fs::read(place.path("file")).expect("there"), b"two");
        assert!(matches!(
            write(&place, "none/at/all", b"x", Expect::Stamp(first)),
            Err(FileError::Changed(_))
        ));
        assert_eq!(
            names(&place, ""),
            ["file"],
            "{which:?}: no directory was made, nothing is left over"
        );
    }
}

#[test]
fn a_file_keeps_its_mode_and_nobody_else_s_rights_grow() {
    for which in BOTH {
        let place = Place::new(which);
        for (before, after) in [
            (0o600, 0o600),
            (0o755, 0o755),
            (0o664, 0o664),
            (0o6755, 0o755),
            (0o1644, 0o1644),
        ] {
            fs::write(place.path("file"), "old").expect("ours");
            mode(place.path("file"), before);
            let stamp = place
                .files()
                .node(&place.path("file"), Links::Follow)
                .expect("there")
                .meta()
                .expect("looked at")
                .stamp;
            for expect in [Expect::Stamp(stamp), Expect::Any] {
                write(&place, "file", b"new", expect).expect("written");
                assert_eq!(mode_of(&place, "file"), after, "{which:?} {before:o}");
            }
        }
    }
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced_either() {
    for which in BOTH {
        let place = Place::with(
            which,
            |work| {
                fs::write(work.join("file"), "old").expect("ours");
                mode(work.join("file"), 0o444);
                fs::create_dir(work.join("closed")).expect("ours");
                fs::write(work.join("closed/file"), "old").expect("ours");
                mode(work.join("closed"), 0o555);
            },
            |_| {},
        );
        let may = which == In::Local && rustix::process::geteuid().is_root();
        for (name, by_command) in [("file", "echo x > file"), ("closed/new", "echo x > closed/new")] {
            assert_eq!(place.run(by_command).1, may, "{which:?} {name}");
            let written = write(&place, name, b"new", Expect::Any);
            match (may, &written) {
                (true, Ok(())) | (false, Err(FileError::Permission(_))) => {}
                _ => panic!("{which:?} {name}: {written:?}"),
            }
        }
        let removed = place
            .files()
            .write_target(&place.path("closed/file"), Links::Follow)
            .expect("a write target")
            .remove(false);
        assert_eq!(removed.is_ok(), may, "{which:?}: {removed:?}");
        mode(place.path("closed"), 0o755);
        assert!(
            !names(&place, "")
                .iter()
                .chain(&names(&place, "closed"))
                .any(|name| name.starts_with(".shieling"))
        );
    }
}

#[test]
fn a_hard_link_to_the_outside_keeps_the_old_content() {
    for which in BOTH {
        let place = Place::new(which);
        fs::hard_link(place.outside("canary"), place.path("linked")).expect("the same file system");
        write(&place, "linked", b"new", Expect::Any).expect("written");
        assert_eq!(fs::read(place.path("linked")).expect("there"), b"new");
        place.check_outside();
        fs::hard_link(place.outside("canary"), place.path("again")).expect("the same file system");
        place
            .files()
            .write_target(&place.path("again"), Links::Follow)
            .expect("a write target")
            .remove(false)
            .expect("removed");
        place.check_outside();
    }
}

#[test]
fn directories_go_with_all_that_is_in_them_and_nothing_that_is_not() {
    for which in BOTH {
        let place = Place::new(which);
        fs::create_dir_all(place.path("full/deep/deeper")).expect("ours");
        fs::write(place.path("full/deep/file"), "x").expect("ours");
        fs::write(place.path("full/deep").join(odd()), "x").expect("ours");
        link(place.outside(""), place.path("full/deep/out"));
        link("..", place.path("full/up"));
        fs::create_dir(place.path("empty")).expect("ours");
        fs::write(place.path("file"), "x").expect("ours");
        let files = place.files();
        let write_target = |name: &str| {
            files
                .write_target(&place.path(name), Links::Keep)
                .expect("a write target")
        };
        assert!(matches!(
            write_target("full").remove(false),
            Err(FileError::NotEmpty(_))
        ));
        write_target("full").remove(true).expect("all of it");
        write_target("empty").remove(false).expect("nothing is in it");
        write_target("file").remove(true).expect("a file is a small tree");
        assert!(matches!(
            write_target("file").remove(false),
            Err(FileError::NotFound(_))
        ));
        assert!(matches!(
            write_target("missing/file").remove(true),
            Err(FileError::NotFound(_))
        ));
        assert_eq!(names(&place, ""), Vec::<String>::new(), "{which:?}");
        place.check_outside();
        let top = files.write_target(&place.work(), Links::Follow);
        assert!(top.is_err() || matches!(top.expect("looked").remove(true), Err(FileError::Fixed(_))));
        assert!(place.work().is_dir());
    }
}

#[test]
fn a_tree_that_is_deeper_than_is_bearable_is_refused_before_anything_of_it_goes() {
    let place = Place::new(In::Local);
    let mut directory = fs::File::open(place.work())
        .map(rustix::fd::OwnedFd::from)
        .expect("ours");
    for _ in 0..1000 {
        rustix::fs::mkdirat(&directory, "d", rustix::fs::Mode::from_raw_mode(0o755)).expect("ours");
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, "d", flags, rustix::fs::Mode::empty()).expect("ours");
    }
    fs::write(place.path("d/file"), "x").expect("ours");
    let removed = place
        .files()
        .write_target(&place.path("d"), Links::Follow)
        .expect("a write target")
        .remove(true);
    assert!(matches!(removed, Err(FileError::Unsupported(_))), "{removed:?}");
    assert!(place.path("d/file").exists());
    assert!(place.run("rm -r d").1);
}

/// Moves a user's file onto one of root's, to which the user can link to nowhere, and gives what is there then.
fn moved_onto_roots(prepare: impl Fn(&Place)) -> Option<(Result<(), FileError>, Vec<String>, Place)> {
    let protected = fs::read_to_string("/proc/sys/fs/protected_hardlinks");
    if !rustix::process::geteuid().is_root() || protected.map_or(true, |text| text.trim() != "1") {
        // In the copy that runs as a user, root's run has done it.
        if !shieling_testkit::is_user() {
            shieling_testkit::prerequisite::skip("it needs root, and fs.protected_hardlinks = 1");
        }
        return None;
    }
    let place = Place::new(In::Local);
    let user = rustix::process::Uid::from_raw(47_111);
    for directory in ["from", "to"] {
        fs::create_dir(place.path(directory)).expect("ours");
        std::os::unix::fs::chown(place.path(directory), Some(user.as_raw()), None).expect("root may");
    }
    fs::write(place.path("from/a"), "mine").expect("ours");
    std::os::unix::fs::chown(place.path("from/a"), Some(user.as_raw()), None).expect("root may");
    fs::write(place.path("to/a"), "root's").expect("ours");
    prepare(&place);
    let files = place.files();
    let moved = std::thread::scope(|scope| {
        let moving = scope.spawn(|| {
            // Of this thread alone, which ends.
            rustix::thread::set_thread_res_uid(user, user, user).expect("root may");
            fs::hard_link(place.path("to/a"), place.path("to/b")).expect_err("what this is about");
            let write_target = |name| files.write_target(&place.path(name), Links::Keep).expect("in reach");
            write_target("from/a").rename(&*write_target("to/a"), true)
        });
        moving.join().expect("no panic")
    });
    let left = [names(&place, "from"), names(&place, "to")].concat();
    Some((moved, left, place))
}

#[test]
fn a_move_replaces_what_can_have_no_second_name() {
    let Some((moved, left, place)) = moved_onto_roots(|_| {}) else {
        return;
    };
    moved.expect("moved");
    assert_eq!(fs::read_to_string(place.path("to/a")).expect("there"), "mine");
    assert_eq!(left, ["a"]);
}

#[test]
fn a_move_is_refused_that_could_neither_remove_what_it_replaces_nor_be_taken_back() {
    // In somebody else's directory that is like `/tmp`, root's file would be stuck.
    let sticky = |place: &Place| {
        fs::set_permissions(place.path("from"), fs::Permissions::from_mode(0o1777)).expect("root may");
        std::os::unix::fs::chown(place.path("from"), Some(0), None).expect("root may");
    };
    let Some((moved, left, place)) = moved_onto_roots(sticky) else {
        return;
    };
    assert!(
        matches!(&moved, Err(FileError::Permission(path)) if *path == place.path("to/a")),
        "{moved:?}"
    );
    assert_eq!(left, ["a", "a"]);
    assert_eq!(fs::read_to_string(place.path("to/a")).expect("there"), "root's");
}

#[test]
fn a_directory_replaces_no_file() {
    for which in BOTH {
        let place = Place::new(which);
        fs::create_dir(place.path("directory")).expect("ours");
        fs::write(place.path("file"), "").expect("ours");
        let files = place.files();
        let write_target = |name| files.write_target(&place.path(name), Links::Keep).expect("in reach");
        let moved = write_target("directory").rename(&*write_target("file"), true);
        assert!(
            matches!(&moved, Err(FileError::NotADirectory(path)) if *path == place.path("file")),
            "{moved:?}"
        );
    }
}

#[test]
fn what_is_moved_is_moved_in_one_step_and_replaces_only_what_it_should() {
    for which in BOTH {
        let place = Place::new(which);
        for name in ["a", "b"] {
            fs::write(place.path(name), name).expect("ours");
        }
        fs::create_dir_all(place.path("directory/deep")).expect("ours");
        link(place.outside("directory"), place.path("out"));
        let files = place.files();
        let moved = |from: &str, to: &str, replace| {
            let (from, to) = (
                files.write_target(&place.path(from), Links::Keep),
                files.write_target(&place.path(to), Links::Keep),
            );
            from?.rename(&*to?, replace)
        };
        assert!(matches!(moved("a", "b", false), Err(FileError::Exists(path)) if path == place.path("b")));
        moved("a", "b", true).expect("replaced");
        assert_eq!(fs::read(place.path("b")).expect("there"), b"a");
        moved("b", "new/directory/b", false).expect("made");
        assert_eq!(fs::read(place.path("new/directory/b")).expect("there"), b"a");
        moved("out", "directory/out", false).expect("the link itself");
        moved("directory", "other", false).expect("a directory");
        assert!(matches!(
            moved("other", "other/deep/x", false),
            Err(FileError::BadPath { .. })
        ));
        assert!(matches!(
            moved("new/directory/b", "other", true),
            Err(FileError::IsDirectory(_))
        ));
        assert!(matches!(moved("a", "c", true), Err(FileError::NotFound(path)) if path == place.path("a")));
        assert!(matches!(moved("a", "no/such/c", true), Err(FileError::NotFound(_))));
        assert_eq!(
            names(&place, ""),
            ["new", "other"],
            "{which:?}: no directory was made in vain"
        );
        // Nothing is put outside by the link.
        write(&place, "x", b"x", Expect::Nothing).expect("written");
        let outside = files.write_target(&place.path("other/out/x"), Links::Follow);
        assert!(outside.is_err() || moved("x", "other/out/x", true).is_err());
        place.check_outside();
    }
}

#[test]
fn a_full_file_system_is_said_to_be_full_and_leaves_nothing() {
    let place = Place::with(In::Sandbox, |_| {}, |restrictions| restrictions.sizes.tmp = 1 << 20);
    let files = place.files();
    let write_target = files
        .write_target("/tmp/new/file".as_ref(), Links::Follow)
        .expect("a write target");
    let written = write_target.replace(&vec![1; 4 << 20], false, Expect::Any);
    assert!(matches!(written, Err(FileError::Full { .. })), "{written:?}");
    assert_eq!(place.run("ls -A /tmp"), (String::new(), true));
    write_target
        .replace(&vec![1; 1 << 10], false, Expect::Any)
        .expect("there is room for this");
}
