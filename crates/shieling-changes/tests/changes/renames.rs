//! What is the same thing under another name, and what only looks like it.

use std::fs;

use shieling_changes::{ChangeSet, Choice, DiffLimits, Judged, Limits, Surroundings};

use crate::support::{Place, sh};

fn judge(set: &ChangeSet) -> Judged {
    set.judge(&Surroundings::default(), Limits::default()).unwrap()
}

fn renamed(judged: &Judged) -> Vec<String> {
    let renamed = judged.renamed.iter();
    renamed
        .map(|rename| format!("{} > {}", rename.from.display(), rename.to.display()))
        .collect()
}

/// A setup, a script, and the renames that are said of it.
const CASES: &[(&str, &str, &[&str])] = &[
    ("echo 1 > a", "mv a b", &["a > b"]),
    ("echo 1 > a", "mkdir d; mv a d/a", &["a > d/a"]),
    ("echo 1 > a; chmod 755 a", "mv a b", &["a > b"]),
    ("ln -s x a", "mv a b", &["a > b"]),
    ("mkdir d; echo 1 > d/x; echo 2 > d/y", "mv d e", &["d > e"]),
    (
        "mkdir -p d/s; echo 1 > d/s/x; ln -s x d/l; touch d/empty; mkdir d/none",
        "mv d e",
        &["d > e"],
    ),
    // A directory that keeps its name goes with that name.
    (
        "mkdir -p p/k q/k; echo 1 > p/k/x; echo 1 > q/k/x",
        "mkdir n; mv p/k n/k; mv q/k n/other",
        &["p/k > n/k", "q/k > n/other"],
    ),
    // Two that are equal are paired by their names, and then by the order of their paths.
    (
        "echo 1 > a; echo 1 > b",
        "mkdir d; mv b d/b; mv a d/z",
        &["b > d/b", "a > d/z"],
    ),
    ("echo 1 > a; echo 1 > b", "mv a y; mv b z", &["a > y", "b > z"]),
    // One that was copied and removed has one new name.
    ("echo 1 > a", "cp a b; cp a c; rm a", &["a > b"]),
    ("echo 1 > a; echo 1 > b", "mv a c; rm b", &["a > c"]),
    // What changed on the way is none.
    ("echo 1 > a", "mv a b; echo 2 > b", &[]),
    ("echo 1 > a", "mv a b; chmod 600 b", &[]),
    ("echo 1 > a", "cp a b", &[]),
    ("echo 1 > a", "rm a; ln -s 1 b", &[]),
    ("touch a", "mv a b", &[]),
    ("mkdir d", "mv d e", &[]),
    // One file of a directory is another, so that the others were renamed, each by itself.
    (
        "mkdir d; echo 1 > d/x; echo 2 > d/y",
        "mv d e; echo 3 > e/y",
        &["d/x > e/x"],
    ),
    (
        "mkdir d; echo 1 > d/x; echo 2 > d/y",
        "mv d e; chmod 700 e",
        &["d/x > e/x", "d/y > e/y"],
    ),
    // The old name is taken by something else, which is a change of that.
    ("echo 1 > a; echo 2 > b", "mv a t; mv b a; mv t b", &[]),
    ("echo 1 > a", "mv a b; mkdir a; echo 2 > a/x", &[]),
    // Names that a person must not be deceived by.
    ("echo 1 > a", "mv a $'b\\e[2K\\n+x'", &["a > b\u{1b}[2K\n+x"]),
];

#[test]
fn what_has_another_name_and_is_otherwise_the_same_was_renamed() {
    for (setup, script, expected) in CASES {
        let place = Place::new(setup);
        let mut set = place.stage(script);
        let judged = judge(&set);
        assert_eq!(renamed(&judged), *expected, "{setup}; {script}");
        assert_eq!(judged.renames, expected.len() as u64);
        // It is the same with a copy, and changes nothing of what is committed and undone.
        let diff = set.diff(&[], DiffLimits::default()).unwrap().text;
        assert_eq!(diff.matches("renamed ").count(), expected.len(), "{script}: {diff}");
        assert!(!diff.contains('\u{1b}') && !diff.contains("\n+x"), "{diff:?}");
        let before = place.tree();
        let everything = Choice {
            accept_held_back: true,
            ..Choice::default()
        };
        let done = place.commit_with(&mut set, &everything);
        assert_eq!(renamed(&done.judged), *expected, "{script}");
        let listed = place.store.list().unwrap();
        let committed = listed.iter().find(|set| Some(&set.id) == done.id.as_ref());
        assert_eq!(
            committed.map(|set| set.renames),
            Some(expected.len() as u64),
            "{script}"
        );
        let mut set = place.store.get(&done.id.unwrap()).unwrap();
        place.store.undo(&mut set, &Surroundings::default()).unwrap();
        assert_eq!(place.tree(), before, "{script}");
    }
}

#[test]
fn a_renamed_directory_is_one_line_of_the_diff_and_a_chosen_half_of_a_rename_is_shown_whole() {
    let place = Place::new("mkdir d; for n in 1 2 3; do echo text $n > d/$n; done; echo 1 > a");
    let set = place.stage("mv d e; echo 2 > a");
    let show = |only: &[&str]| {
        let only: Vec<_> = only.iter().map(std::path::PathBuf::from).collect();
        set.diff(&only, DiffLimits::default()).unwrap().text
    };
    let whole = show(&[]);
    assert!(whole.contains("renamed directory d to e\n"), "{whole}");
    assert!(!whole.contains("text") && whole.contains("-1\n+2"), "{whole}");
    let half = show(&["e"]);
    assert!(half.contains("+text 1") && !half.contains("renamed"), "{half}");
    // What a person accepts is shown with its contents, whatever it was before.
    let limits = (Limits::default(), DiffLimits::default());
    let shown = place
        .store
        .show(&set, &["d".into(), "e".into()], None, limits)
        .unwrap()
        .unwrap();
    assert!(shown.diff.text.contains("+text 1") && shown.diff.text.contains("-text 1"));
}

#[test]
fn beyond_the_bounds_nothing_is_said_and_everything_is_committed() {
    let place = Place::new("mkdir d; (cd d; seq 20001 | xargs touch); echo 1 > a");
    let mut set = place.stage("mv a b; rm -r d");
    let done = place.commit(&mut set);
    assert_eq!((done.judged.renames, done.judged.counts.deleted), (0, 20_003));
    // Thousands that are equal are paired in a moment.
    let place = Place::new("mkdir d; cd d; for n in {1..8000}; do echo same > $n; done");
    let set = place.stage("mv d e; cd e; for n in {1..8000..2}; do mv $n x$n; done");
    let began = std::time::Instant::now();
    assert_eq!(judge(&set).renames, 8_000);
    assert!(
        began.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let place = Place::new("truncate -s 65M large; echo 1 > a");
    let set = place.stage("mv large other; mv a b");
    assert_eq!(renamed(&judge(&set)), ["a > b"]);
    sh(&place.workspace, "test -f large");
    assert!(!fs::exists(place.workspace.join("other")).unwrap());
}
