//! What holds in a sandbox for its commands holds for its files: what is hidden, protected, read-only,
//! private, and who owns what is new.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use shieling::environment::{Expect, FileError, Files, Hidden, Isolation, Links, Network, Restrictions};

use crate::place::{CANARY, In, Place, link};

/// Hides `.env` and what is below `secrets`.
struct Secrets;

impl Hidden for Secrets {
    fn hides(&self, path: &Path, _: bool) -> bool {
        path.ends_with(".env") || path.starts_with("secrets")
    }
}

fn hiding(restrictions: &mut Restrictions) {
    restrictions.hidden = Some(Arc::new(Secrets));
}

fn secrets(work: &Path) {
    fs::create_dir_all(work.join("secrets/deep")).expect("ours");
    fs::create_dir_all(work.join("app")).expect("ours");
    for name in [".env", "app/.env", "secrets/key", "secrets/deep/key"] {
        fs::write(work.join(name), CANARY).expect("ours");
    }
    fs::write(work.join("app/code"), "code").expect("ours");
    for (at, to) in [
        ("to_file", "app/.env"),
        ("to_directory", "secrets"),
        ("app/up", "../.env"),
        ("by_app", "app"),
    ] {
        link(to, work.join(at));
    }
}

/// Each way to change what stands at a path; what was said to each.
fn attempts(place: &Place, files: &dyn Files, name: &str) -> Vec<Result<(), FileError>> {
    let write_target = |name: &str, links| files.write_target(&place.path(name), links);
    fs::write(place.path("mover"), "moved over it").expect("ours");
    vec![
        write_target(name, Links::Follow).and_then(|write_target| write_target.replace(b"x", false, Expect::Any)),
        write_target(name, Links::Follow).and_then(|write_target| write_target.replace(b"x", false, Expect::Nothing)),
        write_target(name, Links::Keep).and_then(|write_target| write_target.replace(b"x", false, Expect::Any)),
        write_target(name, Links::Keep).and_then(|write_target| write_target.remove(true)),
        write_target(name, Links::Keep).and_then(|from| from.rename(&*write_target("elsewhere", Links::Keep)?, false)),
        write_target(name, Links::Keep).and_then(|to| write_target("mover", Links::Keep)?.rename(&*to, true)),
        write_target(name, Links::Keep).and_then(|to| write_target("mover", Links::Keep)?.rename(&*to, false)),
    ]
}

#[test]
fn what_is_hidden_is_not_there_by_any_way() {
    let place = Place::with(In::Sandbox, secrets, hiding);
    let files = place.files();
    // What appears later is hidden before the next command, and the next look at files.
    fs::write(place.path("app/deeper.env"), "fine").expect("ours");
    fs::create_dir(place.path("late")).expect("ours");
    fs::write(place.path("late/.env"), CANARY).expect("ours");
    let later = place.files();
    for (files, name) in [
        (&files, ".env"),
        (&files, "app/.env"),
        (&files, "by_app/.env"),
        (&files, "to_file"),
        (&files, "app/up"),
        (&files, "secrets"),
        (&files, "secrets/key"),
        (&files, "secrets/deep/key"),
        (&files, "secrets/new"),
        (&files, "to_directory"),
        (&files, "to_directory/deep/key"),
        (&later, "late/.env"),
    ] {
        let error = files.node(&place.path(name), Links::Follow).err().expect(name);
        assert!(matches!(error, FileError::NotFound(_)), "{name}: {error:?}");
        assert!(place.read(place.path(name)).is_err(), "{name}");
    }
    for name in [".env", "app/.env", "secrets", "secrets/key", "late/.env"] {
        for (at, done) in attempts(&place, &*later, name).into_iter().enumerate() {
            assert!(
                matches!(done, Err(FileError::NotFound(_))),
                "{name}, attempt {at}: {done:?}"
            );
        }
    }
    for (directory, expected) in [
        ("", &["app", "by_app", "late", "mover", "to_directory", "to_file"][..]),
        ("app", &["code", "deeper.env", "up"]),
    ] {
        let node = later.node(&place.path(directory), Links::Follow).expect("there");
        let mut names: Vec<_> = node
            .entries()
            .expect("listed")
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        names.sort();
        assert_eq!(names, expected);
        for hidden in [".env", "secrets"] {
            assert!(matches!(
                node.child(hidden.as_ref()).err(),
                Some(FileError::NotFound(_))
            ));
            assert!(matches!(
                node.open_child(hidden.as_ref()).err(),
                Some(FileError::NotFound(_))
            ));
        }
    }
    // The directory that holds one cannot go, and nothing of it goes.
    let removed = later
        .write_target(&place.path("app"), Links::Keep)
        .expect("a write target")
        .remove(true);
    assert!(
        matches!(&removed, Err(FileError::Fixed(path)) if *path == place.path("app")),
        "which one is hidden is not told: {removed:?}"
    );
    assert_eq!(place.read(place.path("app/code")).expect("there"), b"code");
    assert_eq!(
        place.read(place.path("app/deeper.env")).expect("its neighbour"),
        b"fine"
    );
    for name in [".env", "app/.env", "secrets/key", "secrets/deep/key", "late/.env"] {
        assert_eq!(fs::read_to_string(place.path(name)).expect("there"), CANARY, "{name}");
        assert!(
            !place.run(&format!("cat {name}")).1,
            "{name} is still hidden from commands"
        );
    }
}

#[test]
fn what_is_protected_can_be_read_and_not_changed() {
    let prepare = |work: &Path| {
        let made = std::process::Command::new("git")
            .args(["init", "-q"])
            .arg(work)
            .status();
        assert!(made.is_ok_and(|status| status.success()), "git is needed here");
        fs::write(work.join(".git/hooks/pre-commit"), "hook").expect("ours");
        link(".git/hooks", work.join("hooks"));
        link(".git", work.join("git"));
    };
    let place = Place::with(In::Sandbox, prepare, |restrictions| restrictions.open_protected = false);
    let files = place.files();
    let config = fs::read(place.path(".git/config")).expect("there");
    assert_eq!(
        place.read(place.path(".git/hooks/pre-commit")).expect("readable"),
        b"hook"
    );
    for name in [
        ".git",
        ".git/hooks",
        ".git/hooks/pre-commit",
        ".git/hooks/new",
        ".git/hooks/new/deep",
        ".git/config",
        "hooks/pre-commit",
        "git/config",
        "git/hooks/x",
    ] {
        for (at, done) in attempts(&place, &*files, name).into_iter().enumerate() {
            match &done {
                Err(FileError::ReadOnly(_) | FileError::Fixed(_)) => {}
                // What is refused for another reason is refused.
                Err(
                    FileError::IsDirectory(_)
                    | FileError::Exists(_)
                    | FileError::Changed(_)
                    | FileError::NotFound(_)
                    | FileError::NotADirectory(_)
                    | FileError::Unsupported(_),
                ) => {}
                _ => panic!("{name}, attempt {at}: {done:?}"),
            }
        }
    }
    assert_eq!(fs::read(place.path(".git/config")).expect("there"), config);
    assert_eq!(fs::read(place.path(".git/hooks/pre-commit")).expect("there"), b"hook");
    assert!(!place.path(".git/hooks/new").exists());
    for text in [
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/config",
        "mv .git other",
    ] {
        assert!(!place.run(text).1, "`{text}`: the protection was taken off");
    }
    // Its neighbours can be changed.
    files
        .write_target(&place.path(".git/description"), Links::Follow)
        .expect("a write target")
        .replace(b"x", false, Expect::Any)
        .expect("written");
}

#[test]
fn under_readonly_nothing_changes_in_either_tier() {
    for isolation in [Isolation::Full, Isolation::Landlock] {
        let prepare = |work: &Path| {
            fs::create_dir(work.join("directory")).expect("ours");
            fs::write(work.join("file"), "old").expect("ours");
        };
        let place = Place::with(In::Sandbox, prepare, |restrictions| {
            restrictions.readonly = true;
            restrictions.isolation = isolation;
            if isolation == Isolation::Landlock {
                restrictions.network = Network::None;
            }
        });
        let files = place.files();
        let write_target = |name: &str| {
            files
                .write_target(&place.path(name), Links::Keep)
                .expect("a write target")
        };
        for (at, done) in [
            write_target("file").replace(b"x", false, Expect::Any),
            write_target("new").replace(b"x", false, Expect::Any),
            write_target("new/deep").replace(b"x", false, Expect::Any),
            write_target("file").remove(false),
            write_target("directory").remove(true),
            write_target("file").rename(&*write_target("new"), false),
        ]
        .into_iter()
        .enumerate()
        {
            assert!(
                matches!(done, Err(FileError::ReadOnly(_))),
                "{isolation:?}, attempt {at}: {done:?}"
            );
        }
        assert_eq!(place.read(place.path("file")).expect("readable"), b"old");
        assert_eq!(fs::read_dir(place.work()).expect("there").count(), 2);
    }
}

#[test]
fn commands_and_files_see_the_same() {
    let place = Place::new(In::Sandbox);
    let files = place.files();
    let write = |path: &Path, text: &str| {
        files
            .write_target(path, Links::Follow)
            .expect("a write target")
            .replace(text.as_bytes(), false, Expect::Any)
    };
    assert!(
        place
            .run("echo from a command > file; echo private > /tmp/file; mkdir -p ~/d; echo home > ~/d/file")
            .1
    );
    assert_eq!(place.read(place.path("file")).expect("there"), b"from a command\n");
    assert_eq!(place.read("/tmp/file").expect("there"), b"private\n");
    assert!(!Path::new("/tmp/file").exists(), "the host's /tmp is another one");
    write(&place.path("file"), "from a tool\n").expect("written");
    write(Path::new("/tmp/deep/er/file"), "in private\n").expect("written");
    assert_eq!(
        place.run("cat file /tmp/deep/er/file"),
        ("from a tool\nin private\n".to_owned(), true)
    );
    for path in ["/usr/bin/new", "/etc/passwd", "/new", "/usr/new/deep"] {
        let written = write(Path::new(path), "x");
        assert!(
            matches!(written, Err(FileError::ReadOnly(_) | FileError::Permission(_))),
            "{path}: {written:?}"
        );
    }
    for path in ["/root/.bashrc", "/var/log/dpkg.log", "/boot"] {
        let error = place.read(path).expect_err(path);
        assert!(
            matches!(error, FileError::NotFound(_) | FileError::Permission(_)),
            "{path}: {error:?}"
        );
    }
}

#[test]
fn where_files_keep_their_places_only_the_workspace_is_reached() {
    let place = Place::with(
        In::Sandbox,
        |work| link("/etc", work.join("out")),
        |restrictions| {
            restrictions.isolation = Isolation::Landlock;
            restrictions.network = Network::None;
        },
    );
    for path in [
        Path::new("/etc/passwd"),
        &place.path("out/passwd"),
        &place.outside("canary"),
    ] {
        assert!(
            matches!(place.read(path), Err(FileError::Outside { .. })),
            "{}",
            path.display()
        );
    }
    let files = place.files();
    let write_target = files
        .write_target(&place.path("new/file"), Links::Follow)
        .expect("a write target");
    write_target.replace(b"x", false, Expect::Nothing).expect("written");
    assert_eq!(place.run("cat new/file"), ("x".to_owned(), true));
}

#[test]
fn who_keeps_the_files_keeps_no_sandbox_alive() {
    let place = Place::with(
        In::Sandbox,
        |work| fs::write(work.join("file"), "x").expect("ours"),
        |_| {},
    );
    let files = place.files();
    assert!(place.run("echo > /tmp/of_the_first").1);
    place.close();
    // Its mounts go with its last process; the next one is another.
    assert!(files.node(&place.path("file"), Links::Follow).is_err());
    assert_eq!(place.read(place.path("file")).expect("a new one has started"), b"x");
    assert!(matches!(place.read("/tmp/of_the_first"), Err(FileError::NotFound(_))));
}

#[test]
fn the_power_of_root_is_not_used_for_others_files_and_is_back_afterwards() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let prepare = |work: &Path| {
        for (name, mode) in [("private", 0o600), ("shared", 0o666)] {
            fs::write(work.join(name), "theirs").expect("ours");
            crate::place::mode(work.join(name), mode);
            std::os::unix::fs::chown(work.join(name), Some(12345), Some(12345)).expect("root may");
        }
    };
    let place = Place::with(In::Sandbox, prepare, |_| {});
    assert!(!place.run("cat private").1, "commands may not");
    assert!(matches!(
        place.read(place.path("private")),
        Err(FileError::Permission(_))
    ));
    let files = place.files();
    let write_target = |name: &str| {
        files
            .write_target(&place.path(name), Links::Follow)
            .expect("a write target")
    };
    assert!(matches!(
        write_target("private").replace(b"x", false, Expect::Any),
        Err(FileError::Permission(_))
    ));
    write_target("shared")
        .replace(b"ours", false, Expect::Any)
        .expect("everybody may");
    assert_eq!(
        fs::read(place.path("private")).expect("this thread has its power again"),
        b"theirs"
    );
}

#[test]
fn a_writable_directory_of_the_sandbox_itself_is_fixed_and_not_called_read_only() {
    let place = Place::new(In::Sandbox);
    assert!(place.run("mkdir /tmp/d; echo x > /tmp/d/f").1);
    let files = place.files();
    let write_target = |path: &Path| files.write_target(path, Links::Keep).expect("a write target");
    for top in [Path::new("/tmp"), &place.work()] {
        let removed = write_target(top).remove(true);
        assert!(
            matches!(removed, Err(FileError::Fixed(_))),
            "{}: {removed:?}",
            top.display()
        );
    }
    assert_eq!(place.read("/tmp/d/f").expect("nothing of it is gone"), b"x\n");
    write_target(Path::new("/tmp/d"))
        .remove(true)
        .expect("it may be removed");
}
