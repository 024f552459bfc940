//! Where links lead, and where they do not.

use std::fs;
use std::path::{Path, PathBuf};

use shieling::environment::{FileError, Kind, Links};

use crate::place::{BOTH, In, Place, link};

/// A workspace full of links. `{}` is the directory in which workspace and outside are.
const LINKS: &[(&str, &str)] = &[
    ("inside", "file"),
    ("deep/up", "../file"),
    ("absolute", "{}/work/file"),
    ("chain", "chain2"),
    ("chain2", "deep/chain3"),
    ("deep/chain3", "../absolute"),
    ("to_directory", "deep"),
    ("out", "../outside/canary"),
    ("out_absolute", "{}/outside/canary"),
    ("out_by_chain", "out_directory/canary"),
    ("out_directory", "../outside/directory"),
    ("back", "../outside/../work/file"),
    ("loop", "loop2"),
    ("loop2", "loop"),
    ("dangling", "nothing"),
    ("dangling_deep", "no/such/thing"),
    ("dangling_out", "../outside/nothing"),
    ("dangling_far", "{}/outside/no/such/thing"),
    ("root", "/proc/self/root"),
    ("process", "/proc/self/fd/0"),
    ("environment", "/proc/self/environ"),
];

fn fill(work: &Path) {
    fs::create_dir(work.join("deep")).expect("ours");
    fs::write(work.join("file"), "inside").expect("ours");
    let base = work.parent().expect("it has one").to_str().expect("text");
    for (at, target) in LINKS {
        link(target.replace("{}", base), work.join(at));
    }
}

fn place(which: In) -> Place {
    Place::with(which, fill, |_| {})
}

#[test]
fn links_that_stay_inside_are_followed_and_the_path_told_is_the_files_own() {
    for which in BOTH {
        let place = place(which);
        for name in [
            "file",
            "inside",
            "deep/up",
            "absolute",
            "chain",
            "back",
            "to_directory/../file",
            "deep/../inside",
        ] {
            if which == In::Sandbox && name == "back" {
                // There is no outside to come back from.
                continue;
            }
            let node = place.files().node(&place.path(name), Links::Follow).expect(name);
            assert_eq!(node.path(), place.path("file"), "{which:?} {name}");
            assert_eq!(place.read(place.path(name)).expect(name), b"inside", "{which:?} {name}");
            let write_target = place
                .files()
                .write_target(&place.path(name), Links::Follow)
                .expect(name);
            assert_eq!(write_target.path(), place.path("file"), "{which:?} {name}");
        }
        let write_target = place
            .files()
            .write_target(&place.path("to_directory/new/file"), Links::Follow);
        assert_eq!(
            write_target.expect("a write target").path(),
            place.path("deep/new/file"),
            "{which:?}"
        );
    }
}

#[test]
fn links_that_lead_out_lead_nowhere_whatever_they_say() {
    for which in BOTH {
        let place = place(which);
        let outside = [
            "out",
            "out_absolute",
            "out_by_chain",
            "out_directory/canary",
            "out_directory",
            "out_directory/nothing",
            "dangling_out",
            "dangling_far",
            "../outside/canary",
            "deep/../../outside/canary",
            "root/etc/passwd",
            "process",
            "environment",
        ];
        for name in outside {
            let path = place.path(name);
            for links in [Links::Follow, Links::Keep] {
                let error = match (
                    place.files().node(&path, links),
                    place.files().write_target(&path, links),
                ) {
                    (Err(error), Err(_)) => error,
                    // The link itself.
                    (Ok(_), _) if links == Links::Keep => continue,
                    // Where it would be in the sandbox.
                    (Err(error), Ok(_)) if which == In::Sandbox => error,
                    (node, write_target) => panic!(
                        "{which:?} {name} {links:?}: {:?} {}",
                        node.map(|n| n.path().to_owned()),
                        write_target.is_ok()
                    ),
                };
                // In the sandbox, what is not in its view is not there, and `/proc` is no place for files.
                match (which, &error) {
                    (In::Local, FileError::Outside { path: told, .. }) => assert_eq!(told, &path, "{name}"),
                    (In::Sandbox, FileError::NotFound(told)) => assert_eq!(told, &path, "{name}"),
                    (In::Sandbox, FileError::Unsupported(_)) => assert!(name.len() < 16, "{name}"),
                    _ => panic!("{which:?} {name} {links:?}: {error:?}"),
                }
            }
        }
        place.check_outside();
    }
}

#[test]
fn what_is_told_of_a_path_outside_is_the_same_whether_or_not_it_is_there() {
    let place = place(In::Local);
    let told = |name: &str| {
        let error = place.files().node(&place.path(name), Links::Follow).err().expect(name);
        error.to_string().replace(name, "NAME")
    };
    for (there, not_there) in [
        ("../outside/canary", "../outside/nothing"),
        ("../outside/canary/x", "../outside/x/y"),
    ] {
        assert_eq!(told(there), told(not_there));
    }
    assert!(
        !told("dangling_out").contains("outside/nothing"),
        "the target's name is told"
    );
}

#[test]
fn what_is_put_outside_in_the_sandbox_is_put_nowhere_or_into_what_is_private() {
    use shieling::environment::Expect;
    let place = place(In::Sandbox);
    for name in ["dangling_out", "dangling_far", "../outside/new", "../new"] {
        if let Ok(write_target) = place.files().write_target(&place.path(name), Links::Follow) {
            let written = write_target.replace(b"x", false, Expect::Any);
            assert!(
                matches!(written, Ok(()) | Err(FileError::ReadOnly(_))),
                "{name}: {written:?}"
            );
            assert!(!write_target.path().exists(), "{name} is on the host");
        }
    }
    place.check_outside();
}

#[test]
fn a_link_that_leads_in_a_circle_is_said_to() {
    for which in BOTH {
        let place = place(which);
        for name in ["loop", "loop/x", "loop2"] {
            let error = place.files().node(&place.path(name), Links::Follow).err().expect(name);
            assert!(matches!(error, FileError::LinkLoop(_)), "{which:?} {name}: {error:?}");
            let error = place
                .files()
                .write_target(&place.path(name), Links::Follow)
                .err()
                .expect(name);
            assert!(matches!(error, FileError::LinkLoop(_)), "{which:?} {name}: {error:?}");
        }
    }
}

#[test]
fn a_dangling_link_is_not_there_and_what_is_put_there_stands_where_it_leads() {
    use shieling::environment::Expect;
    for which in BOTH {
        let place = place(which);
        let files = place.files();
        for (name, target) in [("dangling", "nothing"), ("dangling_deep", "no/such/thing")] {
            let error = files.node(&place.path(name), Links::Follow).err().expect(name);
            assert!(
                matches!(&error, FileError::NotFound(path) if *path == place.path(name)),
                "{error:?}"
            );
            let write_target = files.write_target(&place.path(name), Links::Follow).expect(name);
            assert_eq!(write_target.path(), place.path(target));
            assert!(write_target.current().expect("nothing there").is_none());
            write_target.replace(b"new", false, Expect::Nothing).expect("inside");
            assert_eq!(fs::read(place.path(target)).expect("written"), b"new");
            assert!(fs::symlink_metadata(place.path(name)).expect("there").is_symlink());
        }
    }
}

#[test]
fn a_link_can_be_looked_at_and_removed_itself() {
    for which in BOTH {
        let place = place(which);
        for (name, target) in [
            ("inside", "file"),
            ("loop", "loop2"),
            ("dangling", "nothing"),
            ("out", "../outside/canary"),
        ] {
            let files = place.files();
            let node = files.node(&place.path(name), Links::Keep).expect(name);
            assert_eq!(
                (node.path(), node.meta().expect(name).kind),
                (&*place.path(name), Kind::Link)
            );
            assert_eq!(node.target().expect(name), PathBuf::from(target));
            assert!(matches!(node.open().err(), Some(FileError::LinkLoop(_))));
            let write_target = files.write_target(&place.path(name), Links::Keep).expect(name);
            assert_eq!(write_target.path(), place.path(name));
            write_target.remove(false).expect(name);
            assert!(fs::symlink_metadata(place.path(name)).is_err(), "{which:?} {name}");
        }
        assert_eq!(fs::read(place.path("file")).expect("there"), b"inside");
        place.check_outside();
    }
}

#[test]
fn no_entry_of_a_directory_is_followed() {
    for which in BOTH {
        let place = place(which);
        let node = place.files().node(&place.work(), Links::Follow).expect("the workspace");
        let entries = node.entries().expect("it is listed");
        let out = entries.iter().find(|entry| entry.name == "out").expect("listed");
        assert_eq!(out.kind, Kind::Link);
        let child = node.child("out".as_ref()).expect("the link itself");
        assert_eq!(child.meta().expect("looked at").kind, Kind::Link);
        for name in ["out", "out_directory", "environment"] {
            assert!(
                matches!(node.open_child(name.as_ref()).err(), Some(FileError::LinkLoop(_))),
                "{name}"
            );
        }
        for name in ["..", ".", "", "deep/up", "../outside", "a\0b"] {
            assert!(
                matches!(node.child(name.as_ref()).err(), Some(FileError::BadPath { .. })),
                "{name:?}"
            );
            assert!(
                matches!(node.open_child(name.as_ref()).err(), Some(FileError::BadPath { .. })),
                "{name:?}"
            );
        }
    }
}
