#![expect(clippy::disallowed_methods, reason = "the tests make the files that are found")]

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// Hides whatever has one of these names, and directories called `secrets` only.
struct Names;

impl Hidden for Names {
    fn hides(&self, path: &Path, is_directory: bool) -> bool {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name == ".env" || name == "hidden" || name == "secrets" && is_directory
    }
}

struct Place {
    _directory: tempfile::TempDir,
    root: PathBuf,
    files: HiddenFiles,
}

impl Place {
    fn with(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there").join("work");
        fs::create_dir(&root).expect("made");
        let mut restrictions = Restrictions::new(&root, "/bin/sh");
        assert!(
            HiddenFiles::new(&restrictions.workspace, &restrictions).is_none(),
            "nothing is hidden unless asked"
        );
        restrictions.hidden = Some(Arc::new(Names));
        let place = Self {
            _directory: directory,
            root,
            files: HiddenFiles::new(&restrictions.workspace, &restrictions).expect("something is hidden"),
        };
        for file in files {
            place.write(file);
        }
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn write(&self, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("made");
        fs::write(path, "").expect("written");
    }

    fn new_ones(&mut self) -> Vec<String> {
        let found = self.files.refresh().expect("it can be looked at");
        let mut found: Vec<String> = found
            .iter()
            .map(|path| {
                path.strip_prefix(&self.root)
                    .expect("in the workspace")
                    .display()
                    .to_string()
            })
            .collect();
        found.sort();
        found
    }

    /// Makes every directory look as if nothing had happened for a while, so that times count.
    fn settle(directory: &mut Directory) {
        fn all(directory: &Directory) -> bool {
            directory.stamp.is_some() && directory.children.iter().all(all)
        }
        assert!(all(directory), "each directory was read long after its last change");
    }

    /// Waits until the last change is older than a tick, and looks once more.
    fn quiet(&mut self) {
        let clock = || {
            let now = clock_gettime(ClockId::Realtime);
            nanoseconds(now.tv_sec, now.tv_nsec)
        };
        let start = clock();
        while clock() < start + TICK_NS + 10_000_000 {
            std::thread::yield_now();
        }
        self.new_ones();
        Self::settle(&mut self.files.tree);
    }
}

#[test]
fn the_topmost_hidden_names_are_told_once() {
    let mut place = Place::with(&[
        ".env",
        "a/.env",
        "a/b/hidden/.env",
        "secrets/x",
        "file/secrets",
        "open/env",
    ]);
    assert_eq!(place.new_ones(), [".env", "a/.env", "a/b/hidden", "secrets"]);
    assert_eq!(place.new_ones(), Vec::<String>::new());
}

#[test]
fn what_appears_moves_or_is_replaced_is_told_by_the_next_look() {
    let mut place = Place::with(&["a/b/x", ".env", "c/x"]);
    place.new_ones();
    place.quiet();
    place.write("a/b/.env");
    assert_eq!(place.new_ones(), ["a/b/.env"]);
    place.quiet();
    fs::rename(place.at("a"), place.at("moved")).expect("moved");
    assert_eq!(place.new_ones(), ["moved/b/.env"]);
    place.quiet();
    place.write("new");
    fs::rename(place.at("new"), place.at(".env")).expect("replaced");
    assert_eq!(
        place.new_ones(),
        [".env"],
        "what lay over the old one does not lie over the new"
    );
    place.quiet();
    fs::rename(place.at("c"), place.at("secrets")).expect("renamed");
    assert_eq!(place.new_ones(), ["secrets"]);
}

#[test]
fn changes_within_one_tick_of_the_clock_are_seen() {
    let mut place = Place::with(&["a/x"]);
    for round in 0..50 {
        let name = format!("a/{round}/.env");
        place.write(&name);
        assert_eq!(place.new_ones(), [name]);
    }
}

#[test]
fn only_what_changed_is_read_again() {
    let mut place = Place::with(&["a/x", "b/x"]);
    place.new_ones();
    place.quiet();
    // A directory that is not read keeps what is wrongly remembered of it.
    for child in &mut place.files.tree.children {
        child.entries = 1_000;
    }
    place.write("a/y");
    place.new_ones();
    let mut entries: Vec<usize> = place.files.tree.children.iter().map(|child| child.entries).collect();
    entries.sort_unstable();
    assert_eq!(entries, [2, 1_000]);
}

#[test]
fn a_hidden_link_is_hidden_with_its_target_in_the_workspace_and_no_link_is_walked() {
    let mut place = Place::with(&["real/data", "x/y", "outside-is-not-walked"]);
    let outside = place.root.parent().expect("a parent").join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join(".env"), "").expect("written");
    fs::create_dir(place.at("links")).expect("made");
    symlink("../real/data", place.at("links/.env")).expect("linked");
    symlink(&outside, place.at("secrets")).expect("linked");
    symlink(&outside, place.at("plain")).expect("linked");
    symlink("..", place.at("x/.env")).expect("linked");
    symlink("later", place.at("hidden")).expect("linked");
    assert_eq!(
        place.new_ones(),
        ["hidden", "links/.env", "real/data", "secrets", "x/.env"]
    );
    place.quiet();
    place.write("later");
    assert_eq!(place.new_ones(), ["later"], "a target that comes later than its link");
}

#[test]
fn a_directory_exchanged_for_a_link_is_not_followed() {
    let mut place = Place::with(&["a/b/x"]);
    let outside = place.root.parent().expect("a parent").join("outside");
    fs::create_dir_all(outside.join("b")).expect("made");
    fs::write(outside.join("b/.env"), "").expect("written");
    place.new_ones();
    place.quiet();
    // The walk still believes in `a/b` when it comes to it.
    fs::rename(place.at("a"), place.root.parent().expect("a parent").join("gone")).expect("moved");
    symlink(&outside, place.at("a")).expect("linked");
    let mut child = std::mem::take(&mut place.files.tree.children);
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let root = rustix::fs::openat(CWD, &place.root, flags, Mode::empty()).expect("opened");
    let mut look = Look {
        root: root.as_fd(),
        hidden: &Names,
        files: &mut HashMap::new(),
        links: &mut BTreeSet::new(),
        found: Vec::new(),
        entries: 0,
        most: 100,
        again: false,
        linked: false,
        places: HashMap::new(),
        restless: false,
    };
    for path in ["a", "a/b"] {
        assert!(
            !look.visit(&mut child[0], &mut path.into(), 1).expect("no failure"),
            "{path}"
        );
    }
    assert_eq!(look.found, []);
}

#[test]
fn other_names_of_hidden_files_are_hidden_too() {
    let mut place = Place::with(&["z/.env", "secrets/key", "plain"]);
    fs::hard_link(place.at("z/.env"), place.at("a-copy")).expect("linked");
    fs::hard_link(place.at("secrets/key"), place.at("key")).expect("linked");
    fs::hard_link(place.at("plain"), place.at("plain-copy")).expect("linked");
    assert_eq!(place.new_ones(), ["a-copy", "key", "secrets", "z/.env"]);
    place.quiet();
    fs::hard_link(place.at("z/.env"), place.at("z/later")).expect("linked");
    assert_eq!(place.new_ones(), ["z/later"]);
    place.quiet();
    fs::rename(place.at("plain"), place.at("z/hidden")).expect("renamed");
    assert_eq!(
        place.new_ones(),
        ["plain-copy", "z/hidden"],
        "its other name is in a directory that changed not"
    );
}

#[test]
fn a_number_that_was_given_again_hides_nobody() {
    let mut place = Place::with(&[".env"]);
    place.new_ones();
    for round in 0..20 {
        fs::remove_file(place.at(".env"))
            .or_else(|_| fs::remove_file(place.at(&format!("free{}", round - 1))))
            .expect("removed");
        place.write(&format!("free{round}"));
        assert_eq!(place.new_ones(), Vec::<String>::new());
    }
}

#[test]
fn a_directory_that_cannot_be_read_or_searched_is_hidden() {
    let mut place = Place::with(&["none/.env", "list/.env", "open/x"]);
    for (name, mode) in [("none", 0o000), ("list", 0o600)] {
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    let found = place.new_ones();
    for name in ["none", "list"] {
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(0o700)).expect("set");
    }
    // Root reads what it likes, and so finds the files themselves.
    let expected = if rustix::process::geteuid().is_root() {
        ["list/.env", "none/.env"]
    } else {
        ["list", "none"]
    };
    assert_eq!(found, expected);
}

#[test]
fn a_directory_too_deep_to_be_named_is_hidden_and_stops_nothing() {
    let mut place = Place::with(&["x"]);
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut at = rustix::fs::openat(CWD, &place.root, flags, Mode::empty()).expect("opened");
    for _ in 0..DEEPEST + 100 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).expect("made");
        at = rustix::fs::openat(&at, "d", flags, Mode::empty()).expect("opened");
    }
    let found = place.new_ones();
    assert_eq!(found, [vec!["d"; DEEPEST + 1].join("/")]);
    let long = "n".repeat(200);
    let mut at = rustix::fs::openat(CWD, &place.root, flags, Mode::empty()).expect("opened");
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, &long, Mode::RWXU).expect("made");
        at = rustix::fs::openat(&at, &long, flags, Mode::empty()).expect("opened");
    }
    assert_eq!(place.new_ones(), [vec![long; LONGEST / 201 + 1].join("/")]);
}

#[test]
fn too_many_entries_are_refused_and_the_next_look_starts_anew() {
    let mut place = Place::with(&["a/1", "a/2", "b/.env"]);
    place.files.most = 4;
    let error = place.files.refresh().expect_err("five entries").to_string();
    assert!(error.contains("more than 4 entries"), "{error}");
    place.files.most = 5;
    assert_eq!(
        place.new_ones(),
        ["b/.env"],
        "nothing of the failed look is taken as told"
    );
}

fn held(place: &mut Place) -> Vec<String> {
    let held = place.files.hold().expect("not too many");
    let name = |held: &Hide| {
        held.target
            .strip_prefix(&place.root)
            .expect("in it")
            .display()
            .to_string()
    };
    held.iter().map(name).collect()
}

#[test]
fn the_directories_that_something_hidden_needs_are_held_until_they_are_others() {
    let mut place = Place::with(&["a/b/.env", "a/b/c/secrets/x", "d/own", "top/secrets/x", ".env"]);
    place.new_ones();
    // `Names` does not say which it needs.
    assert_eq!(held(&mut place), ["a", "a/b", "a/b/c", "top"]);
    assert_eq!(held(&mut place), Vec::<String>::new());
    place.write("d/e/.env");
    place.new_ones();
    assert_eq!(held(&mut place), ["d", "d/e"]);
    fs::rename(place.at("a"), place.at("old")).expect("moved");
    fs::create_dir(place.at("a")).expect("made");
    fs::rename(place.at("old/b"), place.at("a/b")).expect("moved");
    place.new_ones();
    assert_eq!(held(&mut place), ["a"], "the only one that is another now");
    place.files.forget(&[place.at("a/b")]);
    place.new_ones();
    assert_eq!(held(&mut place), ["a/b"], "what was not there is held once more");
}

#[test]
fn each_link_on_the_way_to_what_a_hidden_link_leads_to_is_held() {
    let mut place = Place::with(&["real/deep/x", "l/own"]);
    symlink("../real", place.at("l/current")).expect("a link");
    symlink(place.at("l"), place.at("first")).expect("a link");
    fs::create_dir(place.at("d")).expect("made");
    symlink("../first/current/deep/x", place.at("d/.env")).expect("a link");
    symlink("nowhere", place.at("l/hidden")).expect("a link");
    assert_eq!(place.new_ones(), ["d/.env", "l/hidden", "real/deep/x"]);
    let expected = ["d", "d/.env", "first", "l", "l/current", "real", "real/deep"];
    assert_eq!(held(&mut place), expected);
}

#[test]
fn nothing_is_held_where_nothing_can_be_renamed() {
    let place = Place::with(&["a/.env"]);
    let mut restrictions = Restrictions::new(&place.root, "/bin/sh");
    restrictions.hidden = Some(Arc::new(Names));
    restrictions.readonly = true;
    let mut files = HiddenFiles::new(&restrictions.workspace, &restrictions).expect("something is hidden");
    assert_eq!(files.refresh().expect("it can be looked at").len(), 1);
    assert_eq!(files.hold().expect("nothing"), Vec::new());
}

#[test]
fn more_names_than_are_held_are_an_error_until_they_are_gone() {
    let mut place = Place::with(&[]);
    place.files.most_held = 3;
    for number in 0..4 {
        place.write(&format!("{number}/.env"));
    }
    place.new_ones();
    let error = place.files.hold().expect_err("one too many").to_string();
    assert!(error.contains("more than 3 directories"), "{error}");
    fs::remove_dir_all(place.at("1")).expect("removed");
    place.new_ones();
    assert_eq!(held(&mut place), ["0", "2", "3"]);
}

#[test]
fn an_error_that_names_a_held_directory_is_explained() {
    let held: BTreeSet<PathBuf> = ["a", "a/config", "b"].map(PathBuf::from).into();
    for (line, expected) in [
        (
            "mv: cannot move 'a/config' to 'x': Device or resource busy",
            Some("a/config"),
        ),
        (
            "mv: cannot move 'config' to 'x': Device or resource busy",
            Some("a/config"),
        ),
        ("OSError: [Errno 16] Device or resource busy: 'a' -> 'x'", Some("a")),
        ("rename /w/a/config /w/c: device or resource busy", Some("a/config")),
        ("Error: EBUSY: resource busy or locked, rename 'b' -> 'c'", Some("b")),
        ("mv: cannot move 'c' to 'x': Device or resource busy", None),
        ("mv: cannot move 'reconfig' to 'bx': Device or resource busy", None),
        ("mv: cannot move 'a/config' to 'x': No such file or directory", None),
        ("rm: cannot remove 'e/.env': Device or resource busy", Some("e/.env")),
        ("rm: cannot remove 'e/env': Device or resource busy", None),
        ("rm: cannot remove '/proc/.env': Device or resource busy", None),
    ] {
        let hints = explain(line, &held, Some(&Names));
        let found = hints.first().and_then(|hint| hint.path.as_ref()?.to_str());
        assert_eq!((found, hints.len() < 2), (expected, true), "{line}");
    }
}
