//! Changes that a look could miss, since their paths led elsewhere at that moment or no event tells of them.

use super::*;

/// So that stamps are no longer young.
fn after_a_tick() {
    std::thread::sleep(Duration::from_millis(25));
}

#[test]
fn what_is_held_back_goes_at_once_before_what_may_be_half_written_and_directories_last() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("n=$(printf 'd\\nd'); mkdir -p \"$n/$n\" z/.vscode; echo x >\"$n/$n/x\"; echo x >.envrc; echo '{' >z/.vscode/settings.json; ln -s /nowhere/x b");
    let found = watch.look(false);
    let held = watch.judge(found);
    let order: Vec<_> = held.iter().map(|held| held.path.display().to_string()).collect();
    assert_eq!(
        order,
        [
            "b",
            ".envrc",
            "z/.vscode/settings.json",
            "d\nd/d\nd/x",
            "d\nd/d\nd",
            "d\nd"
        ]
    );
}

#[test]
fn what_could_not_be_taken_back_is_looked_at_again_without_an_event_for_it() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    // Deeper than what is removed at once.
    let deep = "d/".repeat(LEVELS + 6);
    place.run(&format!("rm .git/HEAD; mkdir -p .git/HEAD/{deep}"));
    let began = Instant::now();
    let failed = loop {
        let back = Back::at(&mut watch, When::Running);
        if !back.taken.is_empty() {
            break back.taken;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it is held back");
    };
    assert!(failed.iter().all(|taken| taken.failed.is_some()), "{failed:?}");
    assert!(place.file(".git/HEAD").is_dir());
    // The event is one of a directory far below.
    place.run("mv .git/HEAD/d/d/d/d/d/d/d/d away");
    assert_eq!(Back::at(&mut watch, When::Running).paths(), [".git/HEAD"]);
    assert!(place.read(".git/HEAD").starts_with("ref: "));
}

#[test]
fn what_a_directory_holds_that_is_away_while_it_is_judged_is_found_when_it_is_back() {
    let place = Place::with("mkdir -p a/b/c/d away");
    let mut watch = place.watch();
    place.run("echo x >a/b/c/d/.envrc");
    after_a_tick();
    let found = watch.look(false);
    assert_eq!(found.changed.len(), 1);
    place.run("mv a/b away/b");
    assert!(watch.judge(found).is_empty());
    place.run("mv away/b a/b");
    assert_eq!(Back::of(&mut watch).paths(), ["a/b/c/d/.envrc"]);
}

#[test]
fn a_directory_that_is_away_while_it_is_looked_at_is_listed_when_it_is_back() {
    let place = Place::with("mkdir -p a/b/c/d away");
    let mut watch = place.watch();
    place.run("mv a/b away/b; echo x >away/b/c/d/.envrc");
    let mut notified = Notified::default();
    notified.directories.insert("a/b/c/d".into());
    let found = watch.look_at(notified);
    assert!(watch.judge(found).is_empty());
    place.run("mv away/b a/b");
    assert_eq!(Back::of(&mut watch).paths(), ["a/b/c/d/.envrc"]);
}

#[test]
fn an_event_that_is_looked_at_while_its_directory_is_away_counts_when_it_is_back() {
    for (new, path) in [
        ("echo x >a/b/c/d/.envrc", "a/b/c/d/.envrc"),
        ("mkdir a/b/c/d/e; echo x >a/b/c/d/e/.envrc", "a/b/c/d/e/.envrc"),
        ("echo x >>a/b/c/.git/hooks/pre-push", "a/b/c/.git/hooks/pre-push"),
    ] {
        let place = Place::with("mkdir -p a/b/c/d away; git init -q a/b/c; echo 1 >a/b/c/.git/hooks/pre-push");
        let mut watch = place.watch();
        place.run(new);
        assert!(watch.was_notified());
        let notified = std::mem::take(&mut watch.notified);
        assert!(!notified.everywhere);
        place.run("mv a/b away/b");
        let found = watch.look_at(notified);
        assert!(watch.judge(found).is_empty());
        place.run("mv away/b a/b");
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [path]);
    }
}

#[test]
fn what_is_made_below_directories_that_are_renamed_or_exchanged_is_judged_by_its_new_path() {
    let place = Place::with("mkdir -p a/b/c x/b/c");
    let mut watch = place.watch();
    let mut holds = |script: &str, path: &str| {
        place.run(script);
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [path], "{script}");
    };
    holds("mv a z; echo x >z/b/c/.envrc", "z/b/c/.envrc");
    holds("echo x >z/b/c/.envrc", "z/b/c/.envrc");
    holds("mv z t; mv x z; mv t x; echo x >x/b/c/.envrc", "x/b/c/.envrc");
    holds("echo x >z/b/c/.envrc", "z/b/c/.envrc");
    holds("mkdir q; mv x q/x; mv q r; echo x >r/x/b/c/.envrc", "r/x/b/c/.envrc");
    holds("echo x >r/x/b/c/.envrc; mv r q", "q/x/b/c/.envrc");
    // From where nothing is watched.
    holds(
        "mkdir -p .git/objects/ab; mv q/x .git/objects/ab/x; mv .git/objects/ab/x .git/objects/ab/y; mv .git/objects/ab/y y; echo x >y/b/c/.envrc",
        "y/b/c/.envrc",
    );
    holds("echo x >y/b/c/.envrc", "y/b/c/.envrc");
}

#[test]
fn a_directory_that_is_moved_between_its_opening_and_its_watch_is_watched_by_its_new_path() {
    let place = Place::with("mkdir -p a/b");
    let mut watch = place.watch();
    let opened = watch.live.directory(Path::new("a")).expect("there");
    place.run("mv a z");
    let notifier = watch.notifier.clone().expect("there");
    notifier.add(&opened, Path::new("a"));
    assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0]);
    place.run("echo x >z/.envrc; echo x >z/b/.envrc");
    assert_eq!(Back::at(&mut watch, When::Running).paths(), ["z/.envrc", "z/b/.envrc"]);
}
