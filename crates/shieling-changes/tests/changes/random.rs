//! Random scripts: committed or done directly, the result is the same; and undone, it is what it was.

use std::fmt::Write as _;

use shieling_changes::Surroundings;

use crate::support::{Place, difference, sh, tree};

/// Numbers that depend on the seed alone.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn path(&mut self) -> String {
        let mut path = String::new();
        for depth in 0..=self.below(3) {
            if depth > 0 {
                path.push('/');
            }
            path.push(char::from(b'a' + u8::try_from(self.below(4)).unwrap()));
        }
        path
    }

    fn line(&mut self) -> String {
        let (one, mut other, number) = (self.path(), self.path(), self.below(1000));
        // What comes of copying a directory into itself depends on the order in which it is listed.
        if other.starts_with(&one) {
            other = "e".to_owned();
        }
        match self.below(14) {
            0 | 1 => format!("echo {number} > {one}"),
            2 => format!("echo {number} >> {one}"),
            3 => format!("mkdir -p {one}"),
            4 => format!("rm -rf {one}"),
            5 => format!("mv -T {one} {other}"),
            6 => format!("ln -sfn {other} {one}"),
            7 => format!("ln -fT -P {one} {other}"),
            8 => format!(
                "chmod {} {one}",
                ["600", "644", "700", "755"][usize::try_from(number % 4).unwrap()]
            ),
            9 => format!("cp -rT --no-preserve=timestamps {one} {other}"),
            10 => format!("rm -rf {one}; mkdir {one}; echo {number} > {one}/a"),
            11 => format!("rmdir {one}"),
            12 => format!("truncate -s {number} {one}"),
            _ => format!("mkdir -p {one} && touch {one}/b {one}/c"),
        }
    }

    fn script(&mut self, lines: u64) -> String {
        let mut script = String::new();
        for _ in 0..lines {
            let _ = writeln!(script, "{{ {}; }} 2>/dev/null", self.line());
        }
        script.push_str("true\n");
        script
    }
}

/// How many cases: a share of them unless all tests are asked for.
fn rounds() -> u64 {
    match std::env::var("SHIELING_TESTS").as_deref() {
        Ok("full") => 10_000,
        _ => 60,
    }
}

#[test]
fn commit_leaves_what_direct_leaves_and_undo_what_was_there() {
    let seed = std::env::var("SHIELING_TESTS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    for round in 0..rounds() {
        let mut numbers = Numbers((seed * 1_000_003 + round) | 1 << 40);
        for _ in 0..20 {
            numbers.below(2);
        }
        // Without hard links: a file of the workspace that has several names is another one for each of them once it is
        // modified.
        let setup = numbers.script(15).replace("ln -fT -P", "cp -rT");
        let script = numbers.script(25);
        let staged = Place::new(&setup);
        let direct = staged.root.join("direct");
        sh(&staged.root, "cp -a workspace direct");
        let before = staged.tree();
        sh(&direct, &script);
        let mut set = staged.stage(&script);
        assert!(
            tree(&staged.workspace) == before,
            "round {round}: staged\n{setup}\n---\n{script}"
        );
        let done = staged.commit(&mut set);
        let difference = difference(&staged.tree(), &tree(&direct));
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
