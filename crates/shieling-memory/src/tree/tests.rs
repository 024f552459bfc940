use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Follow, Rules, Tree, TreeError, Write};
use shieling::environment::Hidden;

/// Hides what is named `secret`.
struct Secret;

impl Hidden for Secret {
    fn hides(&self, relative: &Path, _is_directory: bool) -> bool {
        relative.ends_with("secret")
    }
}

fn tree(bytes: u64, files: u64) -> Tree {
    let rules = Rules {
        workspace: "/w".to_owned(),
        readonly: false,
        hidden: None,
        bytes,
        files,
        clock: Arc::new(|| SystemTime::UNIX_EPOCH),
    };
    let tree = Tree::new(rules);
    make(&tree, "/w").expect("room");
    tree
}

fn make(tree: &Tree, path: &str) -> Result<(), TreeError> {
    let mut inside = tree.enter();
    let write_target = inside.write_target(Path::new(path), Follow::All)?;
    inside.make_directory(&write_target, true, 0o755)
}

fn write(tree: &Tree, path: &str, what: Write<'_>) -> Result<(), TreeError> {
    let mut inside = tree.enter();
    let write_target = inside.write_target(Path::new(path), Follow::All)?;
    inside.write(&write_target, what, true, 0o644, None).map(|_| ())
}

fn link(tree: &Tree, path: &str, target: &str) -> Result<(), TreeError> {
    let mut inside = tree.enter();
    let write_target = inside.write_target(Path::new(path), Follow::Parents)?;
    inside.link(&write_target, target)
}

fn rename(tree: &Tree, from: &str, to: &str) -> Result<(), TreeError> {
    let mut inside = tree.enter();
    let from = inside.write_target(Path::new(from), Follow::Parents)?;
    let to = inside.write_target(Path::new(to), Follow::Parents)?;
    inside.rename(&from, &to, true, false)
}

fn remove(tree: &Tree, path: &str) -> Result<(), TreeError> {
    let mut inside = tree.enter();
    let write_target = inside.write_target(Path::new(path), Follow::Parents)?;
    inside.remove(&write_target, true)
}

fn read(tree: &Tree, path: &str) -> Result<Vec<u8>, TreeError> {
    let mut inside = tree.enter();
    let id = inside.find(Path::new(path), Follow::All)?;
    inside.content(id).map(Arc::unwrap_or_clone)
}

fn usage(tree: &Tree) -> (u64, u64) {
    tree.enter().usage()
}

#[test]
fn bytes_are_counted_as_files_grow_shrink_and_go() {
    let tree = tree(10, 100);
    write(&tree, "/w/a", Write::Replace(b"12345678")).expect("room");
    assert!(matches!(
        write(&tree, "/w/b", Write::Replace(b"123")),
        Err(TreeError::NoRoom(_))
    ));
    assert!(matches!(
        write(&tree, "/w/a", Write::Append(b"123")),
        Err(TreeError::NoRoom(_))
    ));
    assert_eq!(read(&tree, "/w/a").expect("there"), b"12345678");
    write(&tree, "/w/a", Write::Replace(b"1")).expect("less than before");
    write(&tree, "/w/d/b", Write::Append(b"123456789")).expect("just room");
    assert_eq!(usage(&tree).0, 10);
    rename(&tree, "/w/a", "/w/d/b").expect("it takes its place");
    assert_eq!(usage(&tree).0, 1);
    remove(&tree, "/w/d").expect("nothing holds it");
    // The root and the workspace.
    assert_eq!(usage(&tree), (0, 2));
}

#[test]
fn files_names_and_depths_have_limits() {
    let tree = tree(1_000, 4);
    write(&tree, "/w/a", Write::Replace(b"")).expect("room");
    link(&tree, "/w/l", "a").expect("room");
    assert!(matches!(
        write(&tree, "/w/b", Write::Replace(b"")),
        Err(TreeError::NoRoom(_))
    ));
    remove(&tree, "/w/l").expect("a link");
    let long = format!("/w/{}", "x".repeat(256));
    assert!(matches!(
        write(&tree, &long, Write::Replace(b"")),
        Err(TreeError::TooLong(_))
    ));
    let deep = "/d".repeat(201);
    assert!(matches!(make(&tree, &deep), Err(TreeError::TooLong(_))));
    assert_eq!(usage(&tree).1, 3);
}

#[test]
fn links_lead_on_and_in_circles_to_an_end() {
    let tree = tree(1_000, 100);
    write(&tree, "/w/d/f", Write::Replace(b"x")).expect("room");
    link(&tree, "/w/l", "d/../d").expect("room");
    link(&tree, "/w/abs", "/w/l/f").expect("room");
    link(&tree, "/w/up", "../../../w/d/f").expect("room");
    for path in ["/w/l/f", "/w/abs", "/w/up"] {
        assert_eq!(read(&tree, path).expect("it leads there"), b"x", "{path}");
    }
    link(&tree, "/w/one", "two").expect("room");
    link(&tree, "/w/two", "one").expect("room");
    assert!(matches!(read(&tree, "/w/one"), Err(TreeError::Loop)));
    remove(&tree, "/w/l").expect("the link itself");
    assert_eq!(read(&tree, "/w/d/f").expect("it stays"), b"x");
}

#[test]
fn nothing_is_renamed_from_or_to_what_is_hidden() {
    let tree = tree(1_000, 100);
    write(&tree, "/w/secret", Write::Replace(b"x")).expect("room");
    write(&tree, "/w/d/secret", Write::Replace(b"x")).expect("room");
    write(&tree, "/w/open", Write::Replace(b"y")).expect("room");
    let tree = tree.ruled(false, Some(Arc::new(Secret)));
    assert!(matches!(
        rename(&tree, "/w/secret", "/w/seen"),
        Err(TreeError::NotFound)
    ));
    assert!(matches!(rename(&tree, "/w/open", "/w/secret"), Err(TreeError::Hidden)));
    assert!(matches!(rename(&tree, "/w/d", "/tmp"), Err(TreeError::Busy)));
    assert!(matches!(rename(&tree, "/w", "/elsewhere"), Err(TreeError::Busy)));
    assert_eq!(read(&tree, "/w/open").expect("it stays"), b"y");
}

#[test]
fn a_snapshot_is_what_was_then_with_its_bytes() {
    let tree = tree(1_000, 100);
    write(&tree, "/w/f", Write::Replace(b"before")).expect("room");
    let before = tree.snapshot();
    let fork = tree.fork();
    write(&tree, "/w/f", Write::Append(b" and after")).expect("room");
    write(&tree, "/w/g", Write::Replace(b"new")).expect("room");
    assert_eq!(read(&fork, "/w/f").expect("there"), b"before");
    tree.restore(&before);
    assert_eq!(read(&tree, "/w/f").expect("there"), b"before");
    assert!(matches!(read(&tree, "/w/g"), Err(TreeError::NotFound)));
    assert_eq!(usage(&tree), (6, 3));
}
