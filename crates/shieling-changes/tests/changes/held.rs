//! What the gate holds back stays in the set, and everything else is committed.

use std::fs;

use shieling_changes::{Choice, Mode, State};

use crate::support::{Place, sh};

const SETUP: &str = "git init -q . && git config user.name n && git config user.email e && echo 1 > a && git add a && \
    git commit -qm one && mkdir src";

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
    place.store.undo(&mut set).unwrap();
    assert_eq!(place.tree(), before);
}
