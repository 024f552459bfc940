//! Ordinary work with the git of this machine: what it leaves behind passes, change by change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::attacks::share;
use crate::tree::{self, Snapshot};

/// Runs a script in a directory, with settings of its own alone.
fn run(root: &Path, script: &str) {
    let done = Command::new("sh")
        .args(["-eu", "-c", script])
        .current_dir(root)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", root.parent().expect("a directory above"))
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_EDITOR", "true")
        .env("GIT_CEILING_DIRECTORIES", root.parent().expect("a directory above"))
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "protocol.file.allow")
        .env("GIT_CONFIG_VALUE_0", "always")
        .output()
        .expect("sh is there");
    assert!(
        done.status.success(),
        "{script}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// What is held back of what a script changes.
fn held(before: &str, script: &str) -> Vec<String> {
    let directory = tempfile::Builder::new()
        .prefix("gate")
        .tempdir_in(option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from));
    let directory = directory.expect("a directory");
    let root = directory.path().canonicalize().expect("it is there").join("work");
    fs::create_dir(&root).expect("made");
    run(&root, before);
    let was = Snapshot::of(&root);
    run(&root, script);
    let held = tree::held(&root, None, &was, &[]);
    let told = held
        .iter()
        .map(|(path, held)| format!("{}: {}: {}", path.display(), held.rule, held.because));
    told.collect()
}

/// A repository with a remote beside it in the workspace, two branches and something in each.
const REPOSITORY: &str = "
git init -q -b main up && (cd up && echo 1 >a && git add a && git commit -qm one && git branch topic && git switch -q topic &&
  echo 2 >b && git add b && git commit -qm two && git switch -q main)
git clone -q up here 2>/dev/null
cd here; echo 3 >c; git add c; git commit -qm three
";

#[test]
fn ordinary_work_with_git_passes() {
    let scripts = [
        "cd here; echo x >>a; git add -A; git commit -qm x; git commit -q --amend -m y",
        "cd here; git config user.email a@b; git config user.name A; git config --unset user.name",
        "cd here; git checkout -q -b topic origin/topic; git branch -m topic renamed; git branch --unset-upstream",
        "cd here; git checkout -q topic; git rebase -q main; git push -q -u origin HEAD:refs/heads/new",
        "cd here; git checkout -q topic; git rebase -q --exec true main; git rebase -q -i main",
        "cd here; git checkout -q topic; git merge -q -m m main; git revert -n HEAD~1; git revert --abort || true",
        "cd here; git checkout -q -b z; echo 9 >a; git commit -qam z; git checkout -q main; echo 8 >a; git commit -qam q; git merge z || true; git status",
        "cd here; git checkout -q -b z; echo 9 >a; git commit -qam z; git checkout -q main; echo 8 >a; git commit -qam q; git cherry-pick z || true",
        "cd here; git checkout -q -b z; echo 9 >a; git commit -qam z; git checkout -q main; echo 8 >a; git commit -qam q; git rebase z || true",
        "cd here; echo x >>a; git stash -q; git stash pop -q; git stash push -q -m x; git stash drop -q",
        "cd here; git tag v1; git tag -a v2 -m v2; git notes add -m n; git tag -d v1",
        "cd here; git worktree add -q ../tree topic; cd ../tree; echo y >y; git add y; git commit -qm y",
        "cd here; git worktree add -q inner topic; git worktree move inner other; git worktree lock other; git worktree unlock other; git worktree list",
        "cd here; git worktree add -q inner topic; git worktree remove inner; git worktree prune",
        "cd here; git submodule --quiet add ../up lib; git commit -qm lib; git submodule update --init -q; git submodule foreach -q git status -s; git submodule set-branch -b main lib",
        "cd here; git submodule --quiet add --name deep/er ../up lib; git submodule deinit -q -f lib; git rm -qf lib; git commit -qm no",
        "git clone -q up copy; cd copy; git fetch -q --all --prune; git pull -q; git remote add x ../here; git fetch -q x; git remote rename x y; git remote remove y",
        "git clone -q --bare up bare.git; git clone -q --mirror up mirror.git; git -C bare.git worktree add -q ../of-bare",
        "git clone -q --shared up shared; git clone -q --reference up up ref; git clone -q --depth 1 file://$PWD/up shallow",
        "git clone -q --recurse-submodules --filter=blob:none --sparse file://$PWD/up partial || git clone -q --sparse up partial; cd partial; git sparse-checkout add x",
        "mkdir -p sub/deep; cd sub/deep; git init -q; echo x >x; git add x; git commit -qm x; cd ..; git init -q --separate-git-dir=elsewhere sep; cd sep; echo x >x; git add x; git commit -qm x",
        "git init -q --bare b.git; cd here; git remote add b ../b.git; git push -q b main; git config remote.b.prune true",
        "cd here; git gc -q; git repack -adq; git pack-refs --all; git commit-graph write --reachable 2>/dev/null; git multi-pack-index write 2>/dev/null; git prune; git fsck 2>/dev/null; git maintenance run --quiet",
        "cd here; git format-patch -q -1 -o ../patches; git checkout -q topic; git am -q ../patches/*; git bisect start -q HEAD HEAD~1 || true; git bisect reset -q || true",
        "cd here; git checkout -q -b z; echo 9 >a; git commit -qam z; git format-patch -q -1; git checkout -q main; echo 8 >a; git commit -qam q; git am -q 0001* || true",
        "cd here; git config extensions.worktreeConfig true; git worktree add -q ../t topic; cd ../t; git config --worktree core.sparseCheckout true",
        "cd here; git update-index --split-index; git update-index --untracked-cache; git update-index --no-split-index; git rerere; git config rerere.enabled true",
        "cd here; git config rerere.enabled true; git checkout -q -b z; echo 9 >a; git commit -qam z; git checkout -q main; echo 8 >a; git commit -qam q; git merge z || true; echo 7 >a; git add a; git commit -qm merged; git reset -q --hard HEAD~1; git merge z || true; git rerere status",
        "cd here; git config alias.lg 'log --oneline --date=format:%Y/%m/%d @{u}..'; git config alias.pf 'push --force-with-lease origin'; git config core.editor 'code -w'; git config format.signatureFile notes",
        "cd here; mkdir -p node_modules/style/dist public; echo x >node_modules/style/dist/a.css; ln -s ../node_modules/style/dist public/style; git add -A; git commit -qm linked",
        "mkdir -p bare.git; cp -r up/.git/. bare.git/; git -C bare.git config core.bare true; git -C bare.git log -1 >/dev/null",
        "cd here; git config alias.st 'status -sb'; git config core.pager cat; git config core.hooksPath /dev/null; git config core.editor true; git config advice.detachedHead false",
        "cd here; git archive -o ../x.tar HEAD; git bundle create -q ../x.bundle --all; git clone -q ../x.bundle ../from; git checkout -q --detach; git reset -q --hard HEAD~1; git clean -fdqx",
        "rm -rf here; mv up moved; cp -r moved copied; mkdir d; mv copied d/; rm -rf moved/.git",
        "cd here; git switch -q --orphan empty; git rm -rqf . || true; git commit -q --allow-empty -m e; git symbolic-ref HEAD refs/heads/main; git reset -q --hard",
        "cd here; git replace HEAD HEAD~1; git replace -d HEAD; git update-ref refs/x/y HEAD; git reflog expire --expire=now --all; git filter-branch -f --msg-filter cat HEAD >/dev/null 2>&1",
        "git init -q --object-format=sha256 new; cd new; echo x >x; git add x; git commit -qm x",
        "cd here; git subtree split -P . >/dev/null 2>&1 || true; printf '*.x diff=python\\n' >.gitattributes; printf 'x\\n' >>.git/info/exclude; git add -A; git commit -qm attributes",
    ];
    for script in share(scripts.to_vec(), 7) {
        let held = held(REPOSITORY, script);
        assert!(held.is_empty(), "{script}\n{held:#?}");
    }
}

#[test]
fn their_neighbours_are_held_back() {
    let scripts = [
        ("cd here; git config core.fsmonitor ./x", "git.settings"),
        ("cd here; git config alias.st '!x'", "git.settings"),
        ("cd here; git config --worktree core.pager x", "git.settings"),
        ("cd here; printf x >.git/hooks/post-checkout", "git.hook"),
        ("cd here; git remote add x 'ext::sh -c x'", "git.settings"),
        (
            "cd here; git submodule --quiet add ../up lib; git config submodule.lib.update '!x'",
            "git.settings",
        ),
        (
            "cd here; git submodule --quiet add ../up lib; git -C lib config filter.x.clean x",
            "git.settings",
        ),
        (
            "cd here; git worktree add -q ../t topic; cd ../t; git config extensions.worktreeConfig true; git config --worktree diff.external x",
            "git.settings",
        ),
        (
            "git init -q --bare b; git -C b config core.sshCommand x",
            "git.settings",
        ),
        (
            "git init -q --bare b; git -C b config user.name x; rm b/HEAD; git config -f b/config core.askPass x; mkdir b/worktrees",
            "git.settings",
        ),
        (
            "mkdir e; git init -q --separate-git-dir=e s; git -C s config core.gitProxy x",
            "git.settings",
        ),
        (
            "cd here; git checkout -q topic; GIT_SEQUENCE_EDITOR='echo exec x >' git rebase -q -i main || true; mkdir -p .git/rebase-merge; echo 'exec x' >.git/rebase-merge/git-rebase-todo",
            "git.rebase",
        ),
        ("cd here; ln -sf ../../up/a .git/COMMIT_EDITMSG", "git.link"),
        ("cd here; ln -f a .git/COMMIT_EDITMSG", "git.hard-link"),
        (
            "cd here; git init -q --template=$PWD/../up/../nothing x; cp /bin/true x/.git/; mkdir x/.git/hooks; cp /bin/true x/.git/hooks/pre-push",
            "git.hook",
        ),
    ];
    for (script, rule) in share(scripts.to_vec(), 5) {
        let held = held(REPOSITORY, script);
        assert!(held.len() == 1 && held[0].contains(rule), "{script}\n{held:#?}");
    }
}
