//! What is judged while commands run.

use super::*;

/// Judges over and over while this script runs, without waiting until changes stand still, and gives what was taken back.
fn while_running(place: &Place, watch: &mut Watch, script: &str) -> Back {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| place.run(script)));
            is_over.store(true, Ordering::Release);
            if let Err(panic) = done {
                std::panic::resume_unwind(panic);
            }
        });
        let mut all = Back::default();
        while !is_over.load(Ordering::Acquire) {
            let back = Back::at(watch, When::Running);
            all.taken.extend(back.taken);
            all.kept.extend(back.kept);
            std::thread::yield_now();
        }
        all
    })
}

const ORDINARY: &[&str] = &[
    "git checkout -q -b x; echo 2 >a; git commit -qam two; git config user.name B; git config --unset user.name",
    "git branch -m y; git branch z; git tag t; git branch -D z; git gc -q; git pack-refs --all; git reflog expire --all",
    "echo 3 >a; git stash -q; git stash pop -q; git checkout -q a",
    "git worktree add -q ../work/tree HEAD; (cd tree; echo 4 >b; git add b; git commit -qm four); git worktree remove tree",
    "git init -q sub; (cd sub; git commit -q --allow-empty -m x); git -c protocol.file.allow=always submodule add -q ./sub deep/sub 2>/dev/null; git reset -q --hard; rm -rf sub deep/sub .git/modules; git config --remove-section submodule.deep/sub 2>/dev/null || :",
    "git clone -q . copy; git clone -q --bare . bare.git; (cd copy; git pull -q); rm -rf copy bare.git; git init -q --bare b.git; rm -rf b.git",
    "git checkout -q -B r HEAD~0; for n in 1 2 3; do echo $n >c$n; git add c$n; git commit -qm c$n; done; git rebase -q -x 'true' HEAD~3 2>/dev/null; git -c rebase.abbreviateCommands=true rebase -q -i --exec true HEAD~2 2>/dev/null",
    "git checkout -q -B m HEAD~1; echo m >m; git add m; git commit -qm m; git merge -q -m merged r; git cherry-pick --allow-empty HEAD~1 -m 1 >/dev/null 2>&1 || git cherry-pick --abort 2>/dev/null || :; git checkout -q y",
    "git remote add o https://example.org/x.git; git remote rename o p; git config branch.y.remote p; git remote remove p; git update-index --refresh",
    "git archive HEAD | tar x -O >/dev/null; git fsck >/dev/null 2>&1 || :; git sparse-checkout set --no-cone a >/dev/null 2>&1 || :; git sparse-checkout disable || :; git bisect start >/dev/null; git bisect reset >/dev/null 2>&1",
];

#[test]
fn git_is_left_alone_in_the_middle_of_its_work() {
    for _ in 0..3 {
        let place = Place::with(REPOSITORY);
        let mut watch = place.watch();
        for script in ORDINARY {
            let back = while_running(&place, &mut watch, script);
            assert_eq!(back.paths(), [""; 0], "{script}\n{:?}", back.taken);
        }
        assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
        place.run("git status --porcelain >/dev/null; git log --oneline -3 >/dev/null");
    }
}

/// Judges as often as it takes until this is so.
fn until(watch: &mut Watch, what: &str, is_so: impl Fn() -> bool) -> Back {
    let mut all = Back::default();
    let began = Instant::now();
    while !is_so() {
        let back = Back::at(watch, When::Running);
        all.taken.extend(back.taken);
        all.kept.extend(back.kept);
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
    }
    all
}

#[test]
fn what_executes_is_taken_back_where_the_bell_rang() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    let config = place.read(".git/config");
    let cases: &[(&str, &[&str])] = &[
        (
            "echo x >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit",
            &[".git/hooks/pre-commit"],
        ),
        (
            "git config core.fsmonitor ./x; git config user.name n",
            &[".git/config"],
        ),
        (
            "cp .git/config c; printf '[core]\n\tfsmonitor = ./x\n' >>c; mv c .git/config",
            &[".git/config"],
        ),
        ("echo x >.envrc", &[".envrc"]),
        (
            "mkdir -p new/deep/er/.vscode; echo '{\"a\": \"b\"}' >new/deep/er/.vscode/settings.json",
            &["new/deep/er/.vscode/settings.json"],
        ),
        (
            "echo evil >>deep/er/own/.git/hooks/pre-commit",
            &["deep/er/own/.git/hooks/pre-commit"],
        ),
        (
            "mkdir p; git init -q p/r; echo x >p/r/.git/hooks/pre-push; mv p q",
            &["q/r/.git/hooks/pre-push"],
        ),
        (
            "git init -q made; git -C made config core.fsmonitor ./x; mkdir into; mv made/.git into/.git",
            &["into/.git/config"],
        ),
        (
            "mv deep/er deep/moved; echo more >>deep/moved/own/.git/hooks/pre-commit; mv deep/moved deep/er",
            &["deep/er/own/.git/hooks/pre-commit"],
        ),
        ("ln -s /etc/passwd out", &["out"]),
    ];
    for (script, paths) in cases {
        place.run(script);
        let back = Back::at(&mut watch, When::Running);
        assert_eq!(back.paths(), *paths, "{script}");
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0], "{script}");
    }
    assert!(place.read(".git/config").starts_with(&config));
    assert_eq!(Back::of(&mut watch).paths(), [""; 0], "all was judged");
}

#[test]
fn what_programs_need_while_they_run_is_judged_before_an_outcome() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    let named = "n=$(printf 'a\\nb'); echo x >\"$n\"; mkdir \"d$n\"; echo x >\"d$n/x\"";
    place.run("mkfifo pipe; mkdir -p .git/rebase-merge; echo 'exec ./x' >.git/rebase-merge/git-rebase-todo");
    place.run(named);
    assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0]);
    // What runs something is not spared for its name.
    place.run("cd d*; echo 'x' >.envrc");
    assert_eq!(Back::at(&mut watch, When::Running).paths(), ["da\nb/.envrc"]);
    assert_eq!(
        Back::at(&mut watch, When::Outcome).paths(),
        [".git/rebase-merge/git-rebase-todo", "a\nb", "da\nb", "da\nb/x"]
    );
    assert_eq!(Back::of(&mut watch).paths(), ["pipe"]);
}

#[test]
fn a_file_that_is_written_slowly_is_judged_once_it_stands_still_or_after_a_moment() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    fs::create_dir_all(place.file(".vscode")).expect("made");
    let settings = place.file(".vscode/settings.json");
    let mut file = fs::File::create(&settings).expect("made");
    for part in ["{\"editor", ".tabSize\"", ": 2", "}"] {
        file.write_all(part.as_bytes()).expect("written");
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0], "{part}");
        assert_eq!(watch.is_waiting(), part != "}");
    }
    let mut file = fs::File::create(&settings).expect("made");
    file.write_all(b"{\"never whole\"").expect("written");
    let gone = || !settings.exists() || fs::metadata(&settings).is_ok_and(|after| after.len() != 14);
    let back = until(&mut watch, "it stands still", gone);
    assert_eq!(back.paths(), [".vscode/settings.json"]);
    // Whoever writes on and on is not waited for.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::create(&settings).expect("made");
            while !is_over.load(Ordering::Acquire) {
                let _ = file.write_all(b"[");
            }
        });
        let mut back = Back::default();
        let began = Instant::now();
        while back.taken.is_empty() && began.elapsed() < Duration::from_secs(30) {
            back = Back::at(&mut watch, When::Running);
        }
        is_over.store(true, Ordering::Release);
        assert_eq!(back.paths(), [".vscode/settings.json"]);
    });
}

#[test]
fn more_than_the_bell_can_tell_is_judged_as_well() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("mkdir many; cd many; seq 40000 | xargs touch; rm -rf ../many; cd ..; mkdir -p x/.git/hooks; echo x >.git/hooks/pre-push");
    let back = until(&mut watch, "it is gone", || !place.file(".git/hooks/pre-push").exists());
    assert_eq!(back.paths(), [".git/hooks/pre-push"]);
}

#[test]
fn what_a_job_makes_a_thousand_times_never_stands_long_and_a_replaced_index_is_judged() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    let back = while_running(
        &place,
        &mut watch,
        "n=0; while [ $n -lt 1000 ]; do echo x$n >.git/hooks/pre-commit; n=$((n + 1)); done",
    );
    assert!(back.taken.len() > 20, "{}", back.taken.len());
    assert!(
        back.taken
            .iter()
            .all(|taken| taken.path == Path::new(".git/hooks/pre-commit"))
    );
    assert!(Back::of(&mut watch).taken.iter().all(|taken| taken.failed.is_none()));
    assert!(!place.file(".git/hooks/pre-commit").exists());
    place.run("mkdir -p emb/sub/.git; cp -r deep/er/own/.git/. emb/sub/.git; git config -f emb/sub/.git/config core.fsmonitor ./x; cp .git/index i; mv i .git/index");
    let back = Back::at(&mut watch, When::Running);
    assert!(
        back.paths().contains(&"emb/sub/.git/config".to_owned()),
        "{:?}",
        back.taken
    );
}
