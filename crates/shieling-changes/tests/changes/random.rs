//! Random scripts: committed or done directly, the result is the same; and undone, it is what it was.

use std::path::Path;

use shieling_changes::{ChangeSet, Surroundings};

use crate::scripts::Numbers;
use crate::support::{Place, Tree, difference, is_all_open, os, sh, tree};

/// How many cases: a share of them unless all tests are asked for.
fn rounds(ordinary: u64) -> u64 {
    match std::env::var("SHIELING_TESTS").as_deref() {
        Ok("full") => 10_000,
        _ => ordinary,
    }
}

fn seed() -> u64 {
    let seed = std::env::var("SHIELING_TESTS_SEED").ok();
    seed.and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// What of a tree lies at or below one of these paths, or does not.
fn part(tree: &Tree, paths: &[&Path], is_inside: bool) -> Tree {
    let chosen = tree
        .iter()
        .filter(|(path, _)| paths.iter().any(|held| os(path).starts_with(held)) == is_inside);
    // With a part held back, the first of several names of a file can be another.
    let chosen = chosen.map(|(path, (kind, content, _))| (path.clone(), (kind.clone(), content.clone(), Vec::new())));
    chosen.collect()
}

/// Runs a script in a copy of a workspace, and stages it: the place, the workspace as it was, the copy afterwards, and the
/// set.
fn beside_direct(setup: &str, script: &str) -> (Place, Tree, Tree, ChangeSet) {
    let staged = Place::new(setup);
    let direct = staged.root.join("direct");
    sh(&staged.root, "cp -a workspace direct");
    let before = staged.tree();
    sh(&direct, script);
    let set = staged.stage(script);
    (staged, before, tree(&direct), set)
}

#[test]
fn what_is_held_back_is_as_it_was_and_everything_else_as_direct_leaves_it() {
    let mut held_in_all = 0;
    let rounds = rounds(20);
    for round in 0..rounds {
        let mut numbers = Numbers::of(seed(), round);
        let setup = format!("git init -q .\n{}", numbers.script(10).replace("ln -fT -P", "cp -rT"));
        // Hard links of which one name is held back are each a file of its own.
        let script = numbers.script_with_tools(25).replace("ln -fT -P", "cp -rT");
        let (staged, before, direct, mut set) = beside_direct(&setup, &script);
        let done = staged.commit(&mut set);
        let held: Vec<&Path> = done.judged.held.iter().map(|held| held.path.as_path()).collect();
        assert_eq!(held.len() as u64, done.judged.held_back, "all are told");
        held_in_all += held.len();
        let committed = staged.tree();
        for (is_inside, expected) in [(true, &before), (false, &direct)] {
            let difference = difference(&part(&committed, &held, is_inside), &part(expected, &held, is_inside));
            assert!(
                difference.is_empty(),
                "round {round}: held: {is_inside}: {difference}{:#?}\n{setup}\n---\n{script}",
                done.judged
            );
        }
        // The rest of the set can be thrown away.
        staged.store.discard(set).unwrap();
        assert!(staged.tree() == committed, "round {round}: discarded");
    }
    assert!(
        held_in_all as u64 > rounds,
        "hardly anything is held back: {held_in_all}"
    );
}

#[test]
fn commit_leaves_what_direct_leaves_and_undo_what_was_there() {
    let seed = seed();
    for round in 0..rounds(60) {
        let mut numbers = Numbers::of(seed, round);
        // Without hard links: a file of the workspace that has several names is another one for each of them once it is
        // modified.
        let setup = numbers.script(15).replace("ln -fT -P", "cp -rT");
        let script = numbers.script(25);
        let (staged, before, direct, mut set) = beside_direct(&setup, &script);
        assert!(
            !is_all_open(&before) || tree(&staged.workspace) == before,
            "round {round}: staged\n{setup}\n---\n{script}"
        );
        let done = staged.commit(&mut set);
        let difference = difference(&staged.tree(), &direct);
        assert!(
            difference.is_empty(),
            "round {round}: {difference}{:?}\n{setup}\n---\n{script}",
            done.judged
        );
        if done.id.is_some() {
            staged.store.undo(&mut set, &Surroundings::default()).unwrap();
            assert!(staged.tree() == before, "round {round}: undone\n{setup}\n---\n{script}");
        }
        staged.store.discard(set).unwrap();
    }
}
