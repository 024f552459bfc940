//! What the gate holds back stays in the set, and everything else is committed.

use std::fs;
use std::path::Path;

use shieling_changes::{Choice, Committed, Mode, State, Surroundings};
use shieling_testkit::prerequisite;

use crate::support::{Place, sh};

const SETUP: &str = "git init -q . && git config user.name n && git config user.email e && echo 1 > a && git add a && \
    git commit -qm one && mkdir src";

/// What was held back: paths and rules.
fn held(done: &Committed) -> Vec<(&Path, &str)> {
    let held = done.judged.held.iter();
    held.map(|held| (held.path.as_path(), held.rule)).collect()
}

#[test]
fn a_hook_stays_behind_and_a_person_can_accept_it() {
    let place = Place::new(SETUP);
    let mut set = place.stage(
        "printf '#!/bin/sh\\ntouch fired\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; echo 2 > a",
    );
    let done = place.commit(&mut set);
    assert_eq!(done.judged.held_back, 1, "{:?}", done.judged);
    assert_eq!(done.judged.held[0].path, std::path::Path::new(".git/hooks/post-commit"));
    assert_ne!(done.id.as_deref(), Some(set.id()), "a part is a set of its own");
    assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"2\n");
    assert!(!place.workspace.join(".git/hooks/post-commit").exists());
    assert_eq!(set.state(), State::Waiting);
    let accepted = Choice {
        only: vec![".git/hooks/post-commit".into()],
        accept_held_back: true,
        ..Choice::default()
    };
    assert!(place.commit_with(&mut set, &accepted).id.is_some());
    assert!(place.workspace.join(".git/hooks/post-commit").exists());
    // Nothing of the set is left that the workspace has not.
    assert!(place.commit(&mut set).judged.is_empty());
}

#[test]
fn ordinary_work_with_git_passes() {
    let place = Place::new(SETUP);
    for script in [
        "git config user.email other && git checkout -qb x && echo 2 > a && git commit -qam two",
        "git branch -m x y && git tag v1 && git stash list && git log --oneline",
        "echo 3 > a && git stash -q && git stash pop -q && git commit -qam three && git rebase -q HEAD~1",
        "git worktree add -q wt HEAD && git worktree remove wt",
        "git clone -q . clone && rm -rf clone",
        "mkdir sub && cd sub && git init -q && git config user.name n && git config user.email e && touch f && git add f \
         && git commit -qm sub",
        "rm -rf sub",
    ] {
        let mut set = place.stage(&format!("set -e; {script}"));
        let done = place.commit(&mut set);
        assert_eq!(
            (done.judged.held_back, done.judged.conflicting),
            (0, 0),
            "{script}: {:?}",
            done.judged
        );
        sh(
            &place.workspace,
            "git fsck --no-progress 2>/dev/null && git status --porcelain >/dev/null",
        );
    }
    sh(
        &place.workspace,
        "test $(git log --oneline | wc -l) = 3 && test -z \"$(git status --porcelain)\"",
    );
}

#[test]
fn what_is_no_file_of_a_project_stays_behind() {
    let place = Place::new("mkdir d; echo 1 > d/x");
    let outside = place.root.join("outside");
    fs::write(&outside, "mine").unwrap();
    let mut set = place.stage(&format!(
        "mkfifo d/pipe; ln -s '{}' d/out; printf x > d/suid; chmod 4755 d/suid; ln -s x d/in; rm d/x",
        outside.display()
    ));
    let done = place.commit(&mut set);
    let held: Vec<_> = done
        .judged
        .held
        .iter()
        .map(|held| held.path.display().to_string())
        .collect();
    assert_eq!(held, ["d/out", "d/pipe", "d/suid"], "{:?}", done.judged);
    assert!(place.workspace.join("d/in").is_symlink() && !place.workspace.join("d/x").exists());
    for held in held {
        assert!(place.workspace.join(&held).symlink_metadata().is_err(), "{held}");
    }
}

#[test]
fn what_cannot_be_copied_is_held_back_and_the_rest_is_committed() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let socket = |path: &str| format!("python3 -c 'import socket; socket.socket(1).bind(\"{path}\")'");
    let script = format!(
        "echo important > result; {}; rm -r d; {}; mkfifo pipe",
        socket("so"),
        socket("d")
    );
    let paths = |done: &shieling_changes::Committed| {
        let held = done.judged.held.iter().map(|held| held.path.display().to_string());
        let mut held: Vec<_> = held.collect();
        held.sort();
        held
    };
    for is_live in [false, true] {
        let place = Place::new("mkdir d; echo 1 > d/x");
        let mut set = match is_live {
            false => place.stage(&script),
            true => {
                let mut set = place.store.create(&place.workspace, Mode::Commit).unwrap();
                set.begin(&script).unwrap();
                place.run_in(&set, &script);
                set
            }
        };
        let done = place.commit(&mut set);
        assert_eq!(paths(&done), ["d", "pipe", "so"], "{:?}", done.judged);
        assert_eq!((done.judged.held_back, done.judged.counts.added), (3, 1), "{is_live}");
        assert_eq!(
            fs::read_to_string(place.workspace.join("result")).unwrap(),
            "important\n"
        );
        assert_eq!(fs::read_to_string(place.workspace.join("d/x")).unwrap(), "1\n");
        assert!(place.workspace.join("so").symlink_metadata().is_err());
        // What is left can be looked at, and its part that can be copied be accepted.
        let choice = Choice {
            only: vec!["pipe".into(), "so".into()],
            accept_held_back: true,
            ..Choice::default()
        };
        let done = place.commit_with(&mut set, &choice);
        assert_eq!(paths(&done), ["so"], "{:?}", done.judged);
        assert!(place.workspace.join("pipe").symlink_metadata().is_ok());
    }
    // What a person is asked about says what is not in it.
    let place = Place::new("true");
    let set = place.store.create(&place.workspace, Mode::Review).unwrap();
    place.run_in(&set, &format!("echo 1 > a; {}", socket("so")));
    let frozen = place.store.freeze(&set, None).unwrap().expect("there is something");
    assert_eq!(frozen.uncopied.len(), 1);
    place.store.discard(frozen.set).unwrap();
}

#[test]
fn a_set_in_which_everything_is_held_back_commits_nothing() {
    let place = Place::new(SETUP);
    let before = place.tree();
    let mut set = place
        .stage("mkdir .git/hooks -p; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let done = place.commit(&mut set);
    assert_eq!((done.id, done.judged.held_back), (None, 1));
    assert_eq!(place.tree(), before);
    assert_eq!(set.mode(), Mode::Review);
    let all = Choice {
        accept_held_back: true,
        ..Choice::default()
    };
    let done = place.commit_with(&mut set, &all);
    assert!(done.id.is_some());
    place.store.undo(&mut set, &Surroundings::default()).unwrap();
    assert_eq!(place.tree(), before);
}

#[test]
fn a_directory_that_became_a_link_stays_behind_as_a_directory() {
    let place = Place::new(SETUP);
    let before = place.tree();
    let mut set = place.stage("mkdir evil; echo x > evil/pre-commit; rm -rf .git/hooks; ln -s ../evil .git/hooks");
    let done = place.commit(&mut set);
    assert_eq!(held(&done), [(Path::new(".git/hooks"), "git.link")]);
    assert!(place.workspace.join("evil/pre-commit").exists());
    fs::remove_dir_all(place.workspace.join("evil")).unwrap();
    assert_eq!(place.tree(), before);
}

#[test]
fn what_was_merged_is_judged_as_a_whole() {
    let lines =
        "[branch \"z\"]\n\tdescription = \"x\\\\\n#a\\\\\n#b\\\\\n#c\\\\\n#d\\\\\n#e\\\\\n#f\\\\\n#g\\\\\n#h\"\n";
    let place = Place::new(&format!("git init -q; printf '{lines}' >> .git/config"));
    let mut first = place.stage("sed -i 's/description = .*/description = x/' .git/config");
    first.record_bases().unwrap();
    let mut second =
        place.stage("sed -i 's/^#f.*/#f\\\\\\n[core]fsmonitor = \"touch fired; false\" #\\\\/' .git/config");
    second.record_bases().unwrap();
    assert!(place.commit(&mut first).id.is_some());
    let before = place.tree();
    let done = place.commit(&mut second);
    assert_eq!((done.id, done.judged.held_back), (None, 1), "{:?}", done.judged.held);
    assert_eq!(place.tree(), before);
}

#[test]
fn an_undo_that_would_make_something_run_is_refused() {
    let place = Place::new("git init -q --bare b");
    let mut first = place.stage("rm b/HEAD");
    place.commit(&mut first);
    let mut second = place.stage("git config -f b/config core.fsmonitor 'touch fired; false'");
    assert!(place.commit(&mut second).id.is_some());
    let before = place.tree();
    let refused = place.store.undo(&mut first, &Surroundings::default()).unwrap_err();
    assert!(
        matches!(refused, shieling_changes::ChangesError::Completes { .. }),
        "{refused}"
    );
    assert_eq!(place.tree(), before);
    // In the order in which they were made.
    place.store.undo(&mut second, &Surroundings::default()).unwrap();
    place.store.undo(&mut first, &Surroundings::default()).unwrap();
    assert!(place.workspace.join("b/HEAD").exists());
    // What was the user's own comes back, whatever it runs.
    let place =
        Place::new("git init -q; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let before = place.tree();
    let mut set = place.stage("rm -r .git");
    place.commit(&mut set);
    place.store.undo(&mut set, &Surroundings::default()).unwrap();
    assert_eq!(place.tree(), before);
}

#[test]
fn an_undo_that_would_lead_to_what_was_written_since_is_refused() {
    let tasks = "mkdir -p node_modules/p/.vscode; echo '{\"tasks\":[]}' > node_modules/p/.vscode/tasks.json";
    for (there, first, second) in [
        (
            "git init -q; mkdir -p t/h; echo > t/h/pre-commit; git config core.hooksPath t/h",
            "git config --unset core.hooksPath",
            "echo 'touch fired' >> t/h/pre-commit",
        ),
        (
            "git init -q; mkdir t; git config include.path ../t/config; echo > t/config",
            "git config --unset include.path",
            "git config -f t/config core.fsmonitor 'touch fired'",
        ),
        (
            "git init -q; mkdir t; echo > t/x; git config alias.x '!t/x'",
            "rm -rf .git",
            "echo 'touch fired' > t/x",
        ),
        ("mkdir -p node_modules/p; ln -s node_modules/p x", "rm x", tasks),
        (
            "mkdir conf; echo > conf/tasks.json; ln -s conf .vscode",
            "rm .vscode",
            "echo evil > conf/tasks.json",
        ),
    ] {
        let place = Place::new(there);
        let mut set = place.stage(first);
        assert!(place.commit(&mut set).id.is_some(), "{first}");
        // What was there before is no reason.
        place.store.undo(&mut set, &Surroundings::default()).expect(first);
        assert!(place.commit(&mut set).id.is_some(), "{first}");
        let mut later = place.stage(second);
        let done = place.commit(&mut later);
        assert!(
            done.id.is_some() && done.judged.held_back == 0,
            "{second}: {:?}",
            done.judged.held
        );
        let before = place.tree();
        let refused = place.store.undo(&mut set, &Surroundings::default());
        assert!(
            matches!(refused, Err(shieling_changes::ChangesError::Completes { .. })),
            "{first}: {refused:?}"
        );
        assert_eq!(place.tree(), before);
        // In the order in which they were made.
        place.store.undo(&mut later, &Surroundings::default()).expect(second);
    }
}

#[test]
fn a_second_name_of_a_file_of_git_is_held_back() {
    let place = Place::new("git init -q; git init -q other; echo x > .git/objects/y");
    let mut set = place.stage("ln .git/config notes; ln .git/HEAD h2; ln .git/objects/y y");
    let done = place.commit(&mut set);
    assert_eq!(
        held(&done),
        [
            (Path::new(".git/HEAD"), "git.hard-link"),
            (Path::new(".git/config"), "git.hard-link")
        ]
    );
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(fs::metadata(place.workspace.join(".git/config")).unwrap().nlink(), 1);
}

#[test]
fn what_was_committed_under_two_names_or_in_a_directory_that_was_replaced_does_not_come_back() {
    let place = Place::new("mkdir d; echo 1 > d/old; echo 1 > d/other");
    let script = "echo v > a; ln a b; rm -rf d; mkdir d; echo new > d/new; mkdir -p d/.git/hooks; \
        printf '#!/bin/sh\\n' > d/.git/hooks/post-commit; chmod +x d/.git/hooks/post-commit";
    let mut set = place.stage(script);
    let done = place.commit(&mut set);
    assert!(
        done.id.is_some() && done.judged.held_back == 1,
        "{:?}",
        done.judged.held
    );
    assert!(!place.workspace.join("d/old").exists());
    sh(&place.workspace, "rm a b d/new; echo user > d/other");
    let accepted = Choice {
        accept_held_back: true,
        ..Choice::default()
    };
    let done = place.commit_with(&mut set, &accepted);
    assert_eq!(done.judged.conflicting, 0, "{:?}", done.judged.conflicts);
    let there = |name: &str| place.workspace.join(name).exists();
    assert!(there("d/.git/hooks/post-commit") && !there("a") && !there("b") && !there("d/new"));
    assert_eq!(fs::read(place.workspace.join("d/other")).unwrap(), b"user\n");
}

#[test]
fn what_was_committed_is_not_committed_again_with_what_was_held_back() {
    let place = Place::new("git init -q; echo 1 > b; mkdir old; touch old/x");
    let script = "echo v1 > a; echo 2 > b; mkdir -p d/e; echo 1 > d/e/f; rm -r old; printf '#!/bin/sh\\n' > .git/hooks/post-commit; \
        chmod +x .git/hooks/post-commit; printf 'repos: []\\n' > d/.pre-commit-config.yaml";
    let mut set = place.stage(script);
    let done = place.commit(&mut set);
    assert!(
        done.id.is_some() && done.judged.held_back == 2,
        "{:?}",
        done.judged.held
    );
    sh(&place.workspace, "rm a; echo user > b; rm -r d; mkdir old");
    let accepted = Choice {
        accept_held_back: true,
        ..Choice::default()
    };
    let done = place.commit_with(&mut set, &accepted);
    assert_eq!(done.judged.conflicting, 0, "{:?}", done.judged.conflicts);
    let there = |name: &str| place.workspace.join(name).exists();
    assert!(there(".git/hooks/post-commit") && there("d/.pre-commit-config.yaml"));
    assert!(!there("a") && !there("d/e") && there("old"));
    assert_eq!(fs::read(place.workspace.join("b")).unwrap(), b"user\n");
}

#[test]
fn exactly_what_a_person_was_shown_is_committed_and_anything_else_is_refused() {
    use shieling_changes::{ChangesError, DiffLimits, Limits};
    let place = Place::new(&format!("{SETUP}; echo 1 > d.py"));
    let set = place.stage(
        "printf '#!/bin/sh\\necho one\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; ln -s x link; echo 2 > a; \
         mkdir new; echo 1 > new/x",
    );
    let show = |set: &shieling_changes::ChangeSet, only: &str| {
        let limits = (Limits::default(), DiffLimits::default());
        let shown = place.store.show(set, &[only.into()], None, limits).unwrap();
        shown.expect("there is something")
    };
    let hook = show(&set, ".git/hooks/post-commit");
    assert!(hook.diff.text.contains("+echo one") && !hook.is_cut && !hook.is_blocked);
    assert_eq!(hook, show(&set, ".git/hooks/post-commit"), "it is the same each time");
    let choice = |only: &str, shown: &shieling_changes::Shown| Choice {
        only: vec![only.into()],
        accept_held_back: true,
        shown: Some((shown.fingerprint, DiffLimits::default())),
        ..Choice::default()
    };
    let chosen = choice(".git/hooks/post-commit", &hook);
    // Each of these changes one thing on one of the sides, and takes that back.
    let upper = set.upper().join(".git/hooks/post-commit");
    let lower = place.workspace.join(".git/hooks/post-commit");
    let (upper, lower) = (upper.display(), lower.display());
    let mut set = set;
    for (change, back) in [
        (
            format!("echo 'echo two' >> '{upper}'"),
            format!("sed -i '$d' '{upper}'; chmod 755 '{upper}'"),
        ),
        (format!("chmod 700 '{upper}'"), format!("chmod 755 '{upper}'")),
        (format!("printf 'mine\\n' > '{lower}'"), format!("rm '{lower}'")),
        (
            format!("mv '{upper}' '{upper}.x'; ln -s x '{upper}'"),
            format!("mv '{upper}.x' '{upper}'"),
        ),
    ] {
        sh(&place.root, &change);
        let refused = place.store.commit(&mut set, &chosen, &Surroundings::default(), None);
        assert!(
            matches!(refused, Err(ChangesError::NotAsShown)),
            "{change}: {refused:?}"
        );
        sh(&place.root, &back);
    }
    // What was shown of one path is no yes to another, nor to more.
    for only in ["a", "link", "new"] {
        let refused = place
            .store
            .commit(&mut set, &choice(only, &hook), &Surroundings::default(), None);
        assert!(matches!(refused, Err(ChangesError::NotAsShown)), "{only}: {refused:?}");
    }
    let done = place.commit_with(&mut set, &chosen);
    assert!(done.id.is_some(), "{done:?}");
    assert!(
        fs::read_to_string(place.workspace.join(".git/hooks/post-commit"))
            .unwrap()
            .ends_with("echo one\n")
    );
    assert!(!place.workspace.join("new").exists());
}

#[test]
fn what_is_shown_by_its_size_alone_or_in_part_is_said_to_be_cut() {
    use shieling_changes::{DiffLimits, Limits};
    let place = Place::new("echo 1 > a");
    let set =
        place.stage("printf '\\0\\1' > binary; for n in {1..9000}; do echo $n; done > long; echo 2 > a; echo b > b");
    let show = |only: &str| {
        let limits = DiffLimits {
            file_bytes: 1 << 20,
            bytes: 16 << 10,
        };
        let shown = place
            .store
            .show(&set, &[only.into()], None, (Limits::default(), limits))
            .unwrap();
        shown.expect("there is something").is_cut
    };
    assert!(show("binary") && show("long"));
    assert!(!show("a") && !show("b"));
    let limits = Limits {
        entries: 1,
        bytes: 1 << 20,
    };
    let many = place
        .store
        .show(&set, &["a".into(), "b".into()], None, (limits, DiffLimits::default()));
    assert!(many.is_err(), "{many:?}");
    // Nothing of it is left behind.
    assert_eq!(place.store.list().unwrap().len(), 1);
}

#[test]
fn a_part_has_another_stamp_once_anything_of_it_or_of_what_it_replaces_changes() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("mkdir -p d/e; echo 1 > d/e/f; echo 1 > other");
    let set = place.stage("echo 2 > d/e/f; mkdir d/new; echo 3 > d/new/g");
    // Too new to be told from what changes in the same tick.
    let stamp = || {
        let began = std::time::Instant::now();
        loop {
            if let Some(stamp) = set.stamp(Path::new("d")) {
                return stamp;
            }
            assert!(began.elapsed().as_secs() < 10, "it never stands still");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let mut before = stamp();
    let upper = set.upper();
    // What is not of it changes nothing.
    fs::write(upper.join("elsewhere"), "x").unwrap();
    fs::write(place.workspace.join("other"), "2\n").unwrap();
    assert_eq!(stamp(), before);
    let changes: [(&str, &dyn Fn()); 6] = [
        ("content", &|| fs::write(upper.join("d/e/f"), "4\n").unwrap()),
        ("mode", &|| {
            fs::set_permissions(upper.join("d/new/g"), fs::Permissions::from_mode(0o755)).unwrap()
        }),
        ("a new name", &|| fs::write(upper.join("d/new/h"), "").unwrap()),
        ("another file of its name", &|| {
            fs::write(upper.join("x"), "4\n").unwrap();
            fs::rename(upper.join("x"), upper.join("d/e/f")).unwrap();
        }),
        ("the workspace's content", &|| {
            fs::write(place.workspace.join("d/e/f"), "5\n").unwrap()
        }),
        ("the workspace's names", &|| {
            fs::remove_file(place.workspace.join("d/e/f")).unwrap()
        }),
    ];
    for (what, change) in changes {
        change();
        let after = stamp();
        assert_ne!(after, before, "{what}");
        before = after;
    }
}
