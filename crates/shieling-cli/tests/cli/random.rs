//! Random scripts in the product's modes: what is discarded leaves everything as it was, and `commit` leaves what `direct` leaves,
//! but for what is held back in either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use shieling_testkit::extent;

use crate::scripts::Numbers;
use crate::support::Shieling;

/// Kind and mode, and content.
type Tree = BTreeMap<PathBuf, (String, Vec<u8>)>;

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut ahead = vec![PathBuf::new()];
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(root.join(&directory)).expect("a directory") {
            let path = directory.join(entry.expect("an entry").file_name());
            let at = root.join(&path);
            let data = fs::symlink_metadata(&at).expect("it is there");
            let kind = data.file_type();
            let content = if kind.is_file() {
                fs::read(&at).expect("read")
            } else if kind.is_symlink() {
                fs::read_link(&at)
                    .expect("a link")
                    .into_os_string()
                    .into_encoded_bytes()
            } else {
                Vec::new()
            };
            let mode = if kind.is_symlink() {
                0
            } else {
                data.permissions().mode()
            };
            if kind.is_dir() {
                ahead.push(path.clone());
            }
            found.insert(path, (format!("{kind:?} {mode:o}"), content));
        }
    }
    found
}

/// Where two trees differ, but for these paths and what lies below.
fn difference(one: &Tree, other: &Tree, but_for: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let paths: BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    let differs = |path: &&PathBuf| one.get(*path) != other.get(*path);
    let is_excepted = |path: &PathBuf| path.ancestors().any(|above| but_for.contains(above));
    paths
        .into_iter()
        .filter(differs)
        .filter(|path| !is_excepted(path))
        .cloned()
        .collect()
}

/// Runs a script in a mode, and gives what is there then and what was held back.
fn run(mode: &str, setup: &str, script: &str) -> (Tree, Tree, BTreeSet<PathBuf>) {
    let shieling = Shieling::in_workspace();
    let done = std::process::Command::new("bash")
        .args(["-c", setup])
        .current_dir(shieling.workspace())
        .output()
        .expect("bash is there");
    assert!(done.status.success(), "{done:?}");
    let before = tree(&shieling.workspace());
    let shieling = shieling.args(["exec", "--json", "--changes", mode, "--", script]);
    let outcome = shieling.run().outcome();
    assert_eq!(outcome["exit_code"], 0, "{mode}: {outcome:#}\n{script}");
    let held = outcome["changes"]["held_back"].as_array().into_iter().flatten();
    let held = held.map(|held| PathBuf::from(held["path"].as_str().expect("a path")));
    (before, tree(&shieling.workspace()), held.collect())
}

#[test]
fn discard_leaves_everything_as_it_was_and_commit_what_direct_leaves_but_for_what_is_held_back() {
    let mut held_in_all = 0;
    for round in 0..extent::rounds(6, 300) {
        let mut numbers = Numbers::of(extent::seed() + 1, round);
        let setup = format!("git init -q .\n{}", numbers.script(10).replace("ln -fT -P", "cp -rT"));
        // A hard link of a file of the workspace is another file in an overlay, and modes that close it to its owner are tried
        // elsewhere.
        let script = numbers.script_with_tools(25).replace("ln -fT -P", "cp -rT");
        let told = || format!("round {round}\n{setup}\n---\n{script}");
        let (before, after, _) = run("discard", &setup, &script);
        assert!(before == after, "discard: {}", told());
        let (before, committed, held) = run("commit", &setup, &script);
        let (_, direct, taken_back) = run("direct", &setup, &script);
        held_in_all += held.len();
        let nowhere = BTreeSet::new();
        let is_held = |path: &PathBuf| path.ancestors().any(|above| held.contains(above));
        let changed = difference(&before, &committed, &nowhere);
        assert!(
            !changed.iter().any(is_held),
            "held back and changed: {changed:?} {held:?} {}",
            told()
        );
        let both = held.union(&taken_back).cloned().collect();
        let other = difference(&committed, &direct, &both);
        assert!(other.is_empty(), "{other:?} {both:?} {}", told());
    }
    assert!(held_in_all > 0, "nothing is ever held back");
}
