#![allow(clippy::disallowed_methods, reason = "tests write files and run tools")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// A workspace in which this script has run.
    fn with(script: &str) -> Self {
        let above = std::env::var_os("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = tempfile::Builder::new()
            .prefix("watch")
            .tempdir_in(above)
            .expect("a directory");
        let place = Self { directory };
        fs::create_dir(place.path().join("work")).expect("made");
        place.run(script);
        // What was there is older than the look, by the clock that stamps files.
        std::thread::sleep(Duration::from_millis(12));
        place
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it is there")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join("work").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|_| "nothing".to_owned())
    }

    fn run(&self, script: &str) {
        let done = Command::new("sh")
            .args(["-eu", "-c", script])
            .current_dir(self.file(""))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path())
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .env("GIT_EDITOR", "true")
            .output()
            .expect("sh is there");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{script}\n{said}");
    }

    fn plan(&self) -> Plan {
        Plan {
            root: self.path().join("work"),
            home: None,
            leads: Vec::new(),
            toolchains: Vec::new(),
            beside: Vec::new(),
            first_budget: Duration::from_secs(10),
            has_notifier: true,
        }
    }

    fn watch(&self) -> Watch {
        let mut watch = Watch::start(self.plan()).expect("it is watched");
        watch.complete();
        watch
    }

    /// As the first look sees it that is taken beside commands.
    fn watch_beside(&self) -> Watch {
        // What was there is older than a tick of the clock that stamps files.
        std::thread::sleep(Duration::from_millis(20));
        let mut plan = self.plan();
        plan.first_budget = Duration::ZERO;
        Watch::start(plan).expect("it is watched")
    }
}

/// What was taken back, with what it said.
#[derive(Default)]
struct Back {
    taken: Vec<Taken>,
    kept: BTreeMap<PathBuf, Content>,
}

impl Back {
    fn of(watch: &mut Watch) -> Self {
        Self::at(watch, When::Idle)
    }

    fn at(watch: &mut Watch, when: When) -> Self {
        let mut kept = BTreeMap::new();
        let taken = watch.settle(when, false, &mut |path, content| {
            kept.insert(path.to_path_buf(), content.clone());
            true
        });
        Self { taken, kept }
    }

    fn paths(&self) -> Vec<String> {
        let failed: Vec<_> = self.taken.iter().filter(|taken| taken.failed.is_some()).collect();
        assert!(failed.is_empty(), "{failed:?}");
        let paths = self.taken.iter().map(|taken| taken.path.display().to_string());
        paths.collect()
    }

    fn said(&self, path: &str) -> String {
        match self.kept.get(Path::new(path)) {
            Some(Content::File(content, _)) => String::from_utf8_lossy(content).into_owned(),
            Some(Content::Link(target)) => format!("-> {}", target.display()),
            None => "nothing".to_owned(),
        }
    }
}

mod closed;
mod missed;
mod running;

const REPOSITORY: &str = "
git init -q; echo 1 >a; git add a; git commit -qm one; git config core.pager delta
mkdir -p deep/er; git init -q deep/er/own; printf '#!/bin/sh\\n' >deep/er/own/.git/hooks/pre-commit; chmod 755 deep/er/own/.git/hooks/pre-commit
";

#[test]
fn what_was_there_comes_back_and_what_was_written_is_kept() {
    let place = Place::with(REPOSITORY);
    let before = place.read(".git/config");
    let mut watch = place.watch();
    place.run(
        "git config core.fsmonitor ./x; echo evil >>deep/er/own/.git/hooks/pre-commit; echo x >.git/hooks/pre-push",
    );
    let back = Back::of(&mut watch);
    assert_eq!(
        back.paths(),
        [
            ".git/config",
            ".git/hooks/pre-push",
            "deep/er/own/.git/hooks/pre-commit"
        ]
    );
    assert_eq!(place.read(".git/config"), before);
    assert_eq!(place.read("deep/er/own/.git/hooks/pre-commit"), "#!/bin/sh\n");
    let mode = fs::metadata(place.file("deep/er/own/.git/hooks/pre-commit"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(place.read(".git/hooks/pre-push"), "nothing");
    assert!(back.said(".git/config").contains("fsmonitor"));
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
}

#[test]
fn ordinary_work_is_left_alone() {
    for script in [
        "git config user.email a@b; git checkout -q -b x; git branch -m y; echo 2 >>a; git commit -qam two; git rebase -q --exec true HEAD~1",
        "git worktree add -q t; (cd t; git commit -q --allow-empty -m x); git worktree move t u; git worktree remove u",
        "rm -rf deep; git init -q new; (cd new; echo 1 >a; git add a; git commit -qm a)",
        "mv deep moved; mv moved/er/own here; git -C here status",
        "git clone -q deep/er/own copy 2>/dev/null; git clone -q --bare . bare.git; git gc -q; echo 3 >a; git stash -q; git stash pop -q",
        "rm -rf .git; git init -q; mkdir .cargo; echo '[build]\njobs = 1' >.cargo/config.toml",
    ] {
        for watch in [Place::watch, Place::watch_beside] {
            let place = Place::with(REPOSITORY);
            let mut watch = watch(&place);
            // What is moved before it was seen is judged as new.
            while watch.first.as_ref().is_some_and(|first| !first.is_finished()) {
                std::thread::yield_now();
            }
            place.run(script);
            assert_eq!(Back::of(&mut watch).paths(), [""; 0], "{script}");
            assert_eq!(Back::of(&mut watch).paths(), [""; 0], "{script}");
        }
    }
}

#[test]
fn a_directory_that_is_moved_in_is_seen_with_all_in_it() {
    let inert = "mkdir inert; printf '[core]\\nfsmonitor=x\\n' >inert/config; mkdir inert/hooks inert/objects inert/refs; echo x >inert/hooks/pre-commit";
    let moved = "mkdir -p a/b/c/d; mv inert a/b/c/d/.git; echo 'ref: refs/heads/x' >a/b/c/d/.git/HEAD; mkdir -p e/.vscode; echo '{\"git.path\":\"x\"}' >e/.vscode/settings.json";
    for watch in [Place::watch, Place::watch_beside] {
        let place = Place::with(inert);
        let mut watch = watch(&place);
        place.run(moved);
        assert_eq!(
            Back::of(&mut watch).paths(),
            [
                "a/b/c/d/.git/config",
                "a/b/c/d/.git/hooks/pre-commit",
                "e/.vscode/settings.json"
            ]
        );
        assert_eq!(place.read("a/b/c/d/.git/HEAD"), "ref: refs/heads/x\n");
    }
}

#[test]
fn a_bare_repository_is_seen_whatever_of_it_comes_last_and_by_whatever_command() {
    let parts = [
        "echo 'ref: refs/heads/x' >r/HEAD",
        "mkdir r/objects",
        "mkdir r/refs",
        "printf '[core]\\nfsmonitor=x\\n' >r/config",
    ];
    for last in 0..parts.len() {
        let place = Place::with("mkdir r");
        let mut watch = place.watch();
        let before = parts.iter().enumerate().filter(|(number, _)| *number != last);
        for (_, part) in before {
            place.run(part);
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
        }
        place.run(parts[last]);
        // What completes it, and the settings, which mean something only now.
        assert!(!Back::of(&mut watch).paths().is_empty(), "{}", parts[last]);
        let is_layout =
            place.file("r/HEAD").exists() && place.file("r/objects").exists() && place.file("r/refs").exists();
        assert!(!is_layout || !place.file("r/config").exists(), "{}", parts[last]);
        assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
    }
}

#[test]
fn what_is_written_through_an_open_file_or_within_one_tick_is_seen() {
    let place = Place::with(REPOSITORY);
    let before = place.read(".git/config");
    let mut watch = place.watch();
    let path = place.file(".git/config");
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("open");
    // What passes is remembered, and what follows within the same tick is not taken for it.
    file.write_all(b"[user]\n\tname = x\n").expect("written");
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
    file.write_all(b"[core]\n\tfsmonitor = x\n").expect("written");
    assert_eq!(Back::of(&mut watch).paths(), [".git/config"]);
    assert_eq!(place.read(".git/config"), format!("{before}[user]\n\tname = x\n"));
    // What is written through it now goes to a file that has no name any more.
    file.write_all(b"[core]\n\teditor = x\n").expect("written");
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
}

#[test]
fn pipes_stay_while_something_runs_and_a_rebase_that_executes_does_not() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("mkdir .git/rebase-merge; printf 'pick 1\\nexec x\\n' >.git/rebase-merge/git-rebase-todo; mkfifo pipe");
    assert_eq!(
        Back::at(&mut watch, When::Outcome).paths(),
        [".git/rebase-merge/git-rebase-todo"]
    );
    assert!(place.file("pipe").exists());
    assert_eq!(Back::of(&mut watch).paths(), ["pipe"]);
    assert!(!place.file("pipe").exists());
}

#[test]
fn a_rebase_that_has_stopped_goes_on_without_what_it_would_execute() {
    let place = Place::with(REPOSITORY);
    place.run("for i in 1 2 3; do echo $i >>a; git add a; git commit -qm $i; done");
    let mut watch = place.watch();
    place.run("! git rebase -q -x 'echo x >>ran; git ls-files --error-unmatch missing' HEAD~2 2>/dev/null");
    let back = Back::of(&mut watch);
    assert_eq!(back.paths(), [".git/rebase-merge/git-rebase-todo"]);
    assert!(back.said(".git/rebase-merge/git-rebase-todo").contains("exec echo x"));
    place
        .run("GIT_EDITOR=true git rebase --continue 2>/dev/null; git status | grep -q 'nothing to commit\\|untracked'");
    assert_eq!(
        place.read("ran"),
        "x\n",
        "what is executed once was executed before it stopped"
    );
    assert!(!place.file(".git/rebase-merge").exists());
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
}

#[test]
fn a_new_repository_stays_whole_without_the_settings_that_run_something() {
    let place = Place::with(
        "git init -q srv; cd srv; echo 1 >a; git add a; git commit -qm one; git init -q ../old; git -C ../old config core.pager delta",
    );
    let mut watch = place.watch();
    place.run(
        "git clone -q srv app; cd app; git config core.hooksPath .githooks; git checkout -q -b feat; git push -qu origin feat
        git init -q --object-format=sha256 ../s; git -C ../s config core.editor 'code -n'
        cd ../old; git config core.pager ./x; git config user.email u@example.org; git remote add origin ../srv",
    );
    let back = Back::of(&mut watch);
    assert_eq!(back.paths(), ["app/.git/config", "old/.git/config", "s/.git/config"]);
    assert!(back.said("app/.git/config").contains("hooksPath = .githooks"));
    for taken in &back.taken {
        assert!(taken.held.instead.ends_with("the rest of the file stays"), "{taken:?}");
    }
    place.run(
        "cd app; test -z \"$(git config core.hooksPath)\"; git fetch -q origin; test \"$(git config branch.feat.remote)\" = origin
        cd ../s; echo 1 >a; git add a; git commit -qm one; test \"$(git rev-parse HEAD | wc -c)\" = 65
        cd ../old; test \"$(git config core.pager) $(git config user.email) $(git remote)\" = 'delta u@example.org origin'",
    );
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
}

#[test]
fn what_comes_later_into_packages_that_a_link_opened_is_judged() {
    let place =
        Place::with("mkdir -p node_modules/app node_modules/b node_modules/d src; echo x >node_modules/app/index.js");
    let mut watch = place.watch();
    place.run("ln -s ../node_modules/app src/app; echo save-exact=true >node_modules/app/.npmrc");
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
    place.run("echo 1 >src/app/.vimrc; echo 1 >node_modules/b/.vimrc; echo script-shell=x >>src/app/.npmrc; mkdir -p src/app/vendor/c; echo 1 >src/app/vendor/c/.vimrc");
    assert_eq!(
        Back::of(&mut watch).paths(),
        ["node_modules/app/.npmrc", "node_modules/app/.vimrc"]
    );
    assert_eq!(place.read("node_modules/app/.npmrc"), "save-exact=true\n");
    // In one command, and while it runs.
    place.run("ln -s node_modules/d d");
    Back::at(&mut watch, When::Running);
    place.run("mkdir node_modules/d/.vscode; echo '{\"git.path\": \"x\"}' >d/.vscode/settings.json; echo 2 >d/.vimrc");
    assert_eq!(
        Back::of(&mut watch).paths(),
        ["node_modules/d/.vimrc", "node_modules/d/.vscode/settings.json"]
    );
}

#[test]
fn whoever_goes_on_in_the_place_of_a_watch_knows_what_a_link_opened() {
    let place = Place::with("mkdir -p node_modules/d src");
    let mut watch = place.watch();
    let beginning = watch.beginning();
    let (all, is_whole) = watch.hand_over();
    assert!(is_whole);
    place.run("ln -s node_modules/d d");
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
    let (then, is_whole) = watch.hand_over();
    assert!(!is_whole);
    drop(watch);
    place.run("echo 1 >node_modules/d/.vimrc");
    let mut next = Watch::resume(&beginning, &[&all, &then]).expect("it can be read");
    assert_eq!(Back::of(&mut next).paths(), ["node_modules/d/.vimrc"]);
}

#[test]
fn what_the_user_changes_while_nothing_runs_is_the_users() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("git config core.editor users; echo x >.git/hooks/pre-push; mkdir .vscode; echo '{\"git.path\":\"x\"}' >.vscode/settings.json");
    watch.accept();
    let users = place.read(".git/config");
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
    place.run("git config core.fsmonitor x; echo y >.git/hooks/pre-push; rm -r .vscode");
    assert_eq!(Back::of(&mut watch).paths(), [".git/config", ".git/hooks/pre-push"]);
    assert_eq!(place.read(".git/config"), users);
    assert_eq!(place.read(".git/hooks/pre-push"), "x\n");
}

#[test]
fn what_was_there_before_the_first_look_is_told_from_what_a_command_made_beside_it() {
    // So many that the look takes a while, with settings in the last of them.
    let place = Place::with(
        "i=0; while [ $i -lt 300 ]; do mkdir -p many/$i/x/y; i=$((i+1)); done; git init -q many/299/x/own; git -C many/299/x/own config core.pager delta; git -C many/299/x/own config alias.x '!y'",
    );
    let config = "many/299/x/own/.git/config";
    for (script, is_held) in [
        ("true", false),
        ("git -C many/299/x/own tag x 2>&1 || git -C many/299/x/own gc -q", false),
        ("echo 1 >many/299/x/own/a; touch many/299/new", false),
        ("git -C many/299/x/own config core.editor z", true),
        (
            "mkdir many/298/x/.claude; echo '{\"hooks\":{\"x\":[]}}' >many/298/x/.claude/settings.json",
            true,
        ),
    ] {
        let mut watch = place.watch_beside();
        place.run(script);
        let paths = Back::of(&mut watch).paths();
        assert_eq!(!paths.is_empty(), is_held, "{script}: {paths:?}");
        assert!(!place.read(config).contains("editor"));
    }
}

#[test]
fn more_than_the_kernel_remembers_is_seen_as_well() {
    let place = Place::with("mkdir many");
    let mut watch = place.watch();
    for number in 0..100_000 {
        fs::write(place.file(&format!("many/{number}")), "").expect("written");
    }
    place.run("mkdir -p x/y; git init -q x/y/z; git -C x/y/z config core.fsmonitor x");
    assert_eq!(Back::of(&mut watch).paths(), ["x/y/z/.git/config"]);
    assert!(!watch.may_differ() || Back::of(&mut watch).paths().is_empty());
}

#[test]
fn it_is_silent_where_nothing_changed_and_rings_where_something_did() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    assert!(!watch.may_differ());
    place.run("git log -1 >/dev/null; cat a .git/config >/dev/null");
    assert!(!watch.may_differ());
    for script in [
        "echo x >>deep/er/own/.git/hooks/pre-commit",
        "chmod 700 deep/er/own/.git/hooks/pre-commit",
        "mkdir deep/new",
        "touch deep/new/x",
        "mv deep/new deep/newer",
        "echo y >deep/newer/y",
    ] {
        place.run(script);
        assert!(watch.may_differ(), "{script}");
        watch.accept();
        std::thread::sleep(Duration::from_millis(25));
        watch.accept();
        assert!(!watch.may_differ(), "{script}");
    }
}

#[test]
fn links_that_were_there_stay_and_new_ones_out_do_not() {
    let place = Place::with("ln -s ../kept old; mkdir d");
    let mut watch = place.watch();
    symlink("../../kept", place.file("d/new")).expect("made");
    place.run("touch d; chmod 700 d; mv old other; mv other old");
    let back = Back::of(&mut watch);
    assert_eq!(back.paths(), ["d/new"]);
    assert_eq!(back.said("d/new"), "-> ../../kept");
    assert!(fs::symlink_metadata(place.file("old")).is_ok());
}

#[test]
fn a_pointer_elsewhere_and_exchanged_directories_are_put_back() {
    let place = Place::with(
        "git init -q sub; git init -q ../elsewhere; git -C ../elsewhere config core.fsmonitor x; git init -q .git; git init -q other; git -C other config core.fsmonitor x; git init -q tree --separate-git-dir=store",
    );
    let mut watch = place.watch();
    place.run("echo 'gitdir: ../../elsewhere/.git' >tree/.git; rm -rf sub/.git; echo \"gitdir: $PWD/../elsewhere/.git\" >sub/.git");
    assert_eq!(Back::of(&mut watch).paths(), ["sub/.git", "tree/.git"]);
    assert!(
        place.read("tree/.git").contains("work/store"),
        "{}",
        place.read("tree/.git")
    );
    assert_eq!(place.read("sub/.git"), "nothing");
    // A repository of the user's keeps its settings wherever it is moved, and not under another's name.
    place.run("mv other moved");
    assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
    assert!(place.read("moved/.git/config").contains("fsmonitor"));
}

#[test]
fn a_file_with_another_name_gets_a_content_of_its_own() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("ln a .git/COMMIT_EDITMSG2; ln -f a .git/COMMIT_EDITMSG; ln .git/config settings");
    let back = Back::of(&mut watch);
    assert_eq!(back.paths(), [""; 0]);
    for name in [".git/COMMIT_EDITMSG", ".git/config"] {
        assert_eq!(fs::metadata(place.file(name)).expect("there").nlink(), 1, "{name}");
    }
    assert_eq!(place.read(".git/COMMIT_EDITMSG"), "1\n");
    place.run("git status");
}

#[test]
fn what_a_command_closed_is_opened_for_it() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("echo x >.git/hooks/pre-push; chmod 500 .git/hooks");
    assert_eq!(Back::of(&mut watch).paths(), [".git/hooks/pre-push"]);
    assert_eq!(place.read(".git/hooks/pre-push"), "nothing");
    let mode = fs::metadata(place.file(".git/hooks")).expect("there").mode();
    assert_eq!(mode & 0o777, 0o500);
    place.run("chmod 700 .git/hooks");
}

#[test]
fn whoever_makes_it_again_and_exchanges_directories_meanwhile_reaches_nothing_else() {
    let place = Place::with(REPOSITORY);
    let outside = place.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("post-commit"), "theirs").expect("written");
    fs::write(outside.join("config"), "theirs").expect("written");
    let mut watch = place.watch();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (hooks, aside) = (place.file(".git/hooks"), place.file("aside"));
            while !is_over.load(Ordering::Acquire) {
                let _ = fs::write(hooks.join("post-commit"), "x");
                let _ = fs::rename(&hooks, &aside);
                let _ = symlink(&outside, &hooks);
                let _ = fs::remove_file(&hooks);
                let _ = fs::rename(&aside, &hooks);
            }
        });
        for _ in 0..200 {
            Back::of(&mut watch);
        }
        is_over.store(true, Ordering::Release);
    });
    let back = Back::of(&mut watch);
    assert!(
        back.taken.iter().all(|taken| taken.failed.is_none()),
        "{:?}",
        back.taken
    );
    assert_eq!(place.read(".git/hooks/post-commit"), "nothing");
    assert!(!fs::symlink_metadata(place.file(".git/hooks")).is_ok_and(|found| found.is_symlink()));
    for name in ["post-commit", "config"] {
        assert_eq!(fs::read_to_string(outside.join(name)).expect("read"), "theirs");
    }
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 2);
}

#[test]
fn two_watches_of_one_tree_do_not_take_back_what_the_other_has_put_back() {
    let place = Place::with(REPOSITORY);
    let (mut one, mut other) = (place.watch(), place.watch());
    let before = place.read(".git/config");
    place.run("git config core.fsmonitor x; git config user.name y; echo x >.git/hooks/pre-push");
    assert_eq!(Back::of(&mut one).paths().len(), 2);
    assert_eq!(Back::of(&mut other).paths(), [""; 0]);
    assert_eq!(place.read(".git/config"), format!("{before}[user]\n\tname = y\n"));
    assert_eq!(Back::of(&mut one).paths(), [""; 0]);
}

#[test]
fn what_reviewers_got_past_an_earlier_watch_is_taken_back() {
    // Each step is a command of its own, after which is settled; the last names what must not stand there any more.
    for (steps, evil) in [
        (
            &[
                "mkdir -p d/h; printf '#!/bin/sh\n' >evil; ln -s ../../evil d/h/pre-commit",
                "rm -rf .git/hooks; mv d/h .git/hooks",
            ][..],
            ".git/hooks/pre-commit",
        ),
        (
            &["mkdir -p n/x; echo >evil; ln -s ../../evil n/x/config", "mv n/x n/.git"],
            "n/.git/config",
        ),
        (
            &["git init -q --bare .git/objects/ab/r; mkdir sub; echo 'gitdir: ../.git/objects/ab/r' >sub/.git"],
            "sub/.git",
        ),
        (
            &[
                "git init -q n; mv n n2; ln -s n2 n",
                "rm n; mv n2 n; git -C n config core.fsmonitor ./x",
            ],
            "n/.git/config",
        ),
        (
            &["mkdir emb; git init -q emb; git -C emb config core.worktree ../../.git"],
            "emb/.git/config",
        ),
        (
            &[
                "git init -q .git/objects/ab/x; git -C .git/objects/ab/x config core.fsmonitor ./x; ln -s .git/objects/ab/x proj",
            ],
            "proj",
        ),
        (
            &["git init -q .git/objects/ab/x; ln -s .git/objects o; ln -s o/ab proj"],
            "proj",
        ),
        (
            &["git init -q .git/zz/objects/ab; git -C .git/zz/objects/ab config core.fsmonitor ./x"],
            ".git/zz/objects/ab/.git/config",
        ),
        (&["git config rebase.instructionFormat '%s%nexec ./x'"], ".git/config"),
        (&["git config alias.co 'rebase -qx ./x HEAD~1'"], ".git/config"),
        (&["git config extensions.partialClone 'ext::sh -c ./x'"], ".git/config"),
        (&["git config 'remote.ext::sh -c ./x.promisor' true"], ".git/config"),
        (&["git config protocol.ext.allow user"], ".git/config"),
    ] {
        let place = Place::with(REPOSITORY);
        let mut watch = place.watch();
        let mut back = Vec::new();
        for step in steps {
            place.run(step);
            back.extend(Back::of(&mut watch).taken);
        }
        assert!(
            back.iter().any(|taken| taken.path == Path::new(evil)),
            "{steps:?}: {back:?}"
        );
    }
}

#[test]
fn what_was_there_and_is_moved_to_where_it_means_more_is_judged_anew() {
    let there = "git init -q --bare fx/bare; git -C fx/bare config core.fsmonitor ./x; echo x >fx/bare/hooks/pre-commit; \
                 mkdir -p ex/.vscode; echo '{\"git.path\":\"x\"}' >ex/.vscode/settings.json; echo x >ex/.envrc";
    for (step, evil) in [
        (
            "rm -rf .git/hooks; mv fx/bare/hooks .git/hooks",
            ".git/hooks/pre-commit",
        ),
        ("mkdir sub; mv fx/bare sub/.git", "sub/.git/hooks/pre-commit"),
        ("mkdir sub; mv fx/bare sub/.git", "sub/.git/config"),
        ("rm -rf .git; mv fx/bare .git", ".git/hooks/pre-commit"),
        ("mv ex/.vscode .vscode", ".vscode/settings.json"),
        ("mkdir n; mv ex/.vscode n", "n/.vscode/settings.json"),
    ] {
        let place = Place::with(&format!("{REPOSITORY}\n{there}"));
        let mut watch = place.watch();
        place.run(step);
        let taken = Back::of(&mut watch).taken;
        assert!(
            taken.iter().any(|taken| taken.path == Path::new(evil)),
            "{step}: {taken:?}"
        );
    }
    // What is moved as a whole means what it did.
    for step in [
        "mv fx other",
        "mv ex other",
        "mkdir n; mv ex fx n",
        "mv fx/bare fx/other",
    ] {
        let place = Place::with(&format!("{REPOSITORY}\n{there}"));
        let mut watch = place.watch();
        place.run(step);
        assert_eq!(Back::of(&mut watch).paths(), [""; 0], "{step}");
    }
}

#[test]
fn a_bare_repository_loses_the_part_that_runs_and_not_its_objects() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("git clone -q --bare . y.git; git -C y.git config alias.x '!ls'; echo x >y.git/hooks/post-update");
    let paths = Back::of(&mut watch).paths().join(" ");
    assert!(
        paths.contains("y.git/config") && paths.contains("y.git/hooks/post-update"),
        "{paths}"
    );
    assert!(!paths.contains("objects"), "{paths}");
    place.run("test -d y.git/objects/pack && test -e y.git/HEAD");
}

#[test]
fn what_a_user_s_setting_names_is_judged_from_then_on_and_was_there_before() {
    let place = Place::with(&format!("{REPOSITORY}\nmkdir -p tools/h; echo own >tools/h/pre-commit"));
    let mut watch = place.watch();
    // The user.
    place.run("git config core.hooksPath tools/h");
    watch.accept();
    // A command.
    place.run("echo evil >>tools/h/pre-commit");
    assert_eq!(Back::of(&mut watch).paths(), ["tools/h/pre-commit"]);
    assert_eq!(place.read("tools/h/pre-commit"), "own\n");
}

#[test]
fn what_is_written_by_a_name_that_is_gone_or_through_a_mapping_is_seen() {
    let place = Place::with(REPOSITORY);
    let mut watch = place.watch();
    place.run("ln .git/config .git/x");
    let kept = fs::OpenOptions::new()
        .append(true)
        .open(place.file(".git/x"))
        .expect("it is there");
    place.run("rm .git/x");
    let _ = Back::of(&mut watch);
    std::io::Write::write_all(&mut &kept, b"[core]\nfsmonitor=./x\n").expect("written");
    drop(kept);
    let standing = place.read(".git/config");
    if standing.contains("fsmonitor") {
        assert_eq!(Back::of(&mut watch).paths(), [".git/config"]);
    }
    assert!(!place.read(".git/config").contains("fsmonitor"));
}
