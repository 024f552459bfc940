//! Attacks that leave something behind, and the user's tools, which would run it.
//!
//! Each attack is a script of an agent's in a workspace. Its code makes a file outside of the workspace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use shieling_testkit::{extent, prerequisite};

/// Which tools can show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Git, in these directories besides the top and `src/deep`.
    Git(&'static str),
    /// Git of another version, or with a network: here it is only seen that something is held back.
    Unseen,
    /// A command of a tool's.
    By(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) script: String,
    pub(crate) shown: Shown,
}

/// Settings that run `$P`: what is made before them, name, value, and whether git runs it here.
const SETTINGS: &[(&str, &str, &str, bool)] = &[
    ("", "core.fsmonitor", "$P", true),
    (
        "mkdir -p $W/evilhooks; for h in post-checkout pre-commit post-commit post-index-change reference-transaction; do cp $P $W/evilhooks/$h; done",
        "core.hooksPath",
        "$W/evilhooks",
        true,
    ),
    ("", "core.editor", "$P", true),
    ("", "diff.external", "$P", true),
    ("echo '* filter=evil' >>$A", "filter.evil.clean", "$P", true),
    ("echo '* filter=evil' >>$A", "filter.evil.process", "$P", true),
    ("echo '* diff=evil' >>$A", "diff.evil.textconv", "$P", true),
    ("echo '* diff=evil' >>$A", "diff.evil.command", "$P", true),
    ("", "alias.st", "!$P", true),
    (
        "printf '[core]\n\tfsmonitor = %s\n' $P >$W/evilsettings",
        "include.path",
        "$W/evilsettings",
        true,
    ),
    (
        "printf '[alias]\n\tst = !%s\n' $P >$W/evilsettings",
        "includeIf.gitdir:/.path",
        "$W/evilsettings",
        true,
    ),
    ("", "credential.helper", "$P", false),
    ("", "core.pager", "$P", false),
    ("", "gpg.program", "$P", false),
    ("", "core.sshCommand", "$P", false),
    ("", "core.askPass", "$P", false),
    ("", "merge.evil.driver", "$P", false),
    ("", "url.ext::sh.insteadOf", "https://", false),
    ("", "unheard.of", "$P", false),
];

/// Where settings are: what is made there before, how git is told (`$K` and `$V`), in which directories git looks, and
/// where attributes are written.
const PLACES: &[(&str, &str, &str, &str)] = &[
    ("top", "git config \"$K\" \"$V\"", "", ".gitattributes"),
    (
        "nested",
        "git -C nested config \"$K\" \"$V\"",
        "nested",
        "nested/.gitattributes",
    ),
    (
        "submodule",
        "git -C lib config \"$K\" \"$V\"",
        "lib",
        "lib/.gitattributes",
    ),
    (
        "linked tree",
        "git config extensions.worktreeConfig true; git -C tree config --worktree \"$K\" \"$V\"",
        "tree",
        "tree/.gitattributes",
    ),
    (
        "new repository",
        "git init -q src/deep/new; cd src/deep/new; echo 1 >f; git add f; git commit -qm 1; echo 2 >f; git config \"$K\" \"$V\"",
        "src/deep/new",
        "src/deep/new/.gitattributes",
    ),
    (
        "layout",
        "cp -r nested/.git evil; echo 2 >evil/a; git config -f evil/config core.bare false; git config -f evil/config core.worktree ../evil; git config -f evil/config \"$K\" \"$V\"",
        "evil",
        "evil.attributes",
    ),
    (
        "pointer",
        "cp -r nested/.git store; mkdir -p sub; echo 2 >sub/a; git config -f store/config \"$K\" \"$V\"; echo 'gitdir: ../store' >sub/.git",
        "sub",
        "sub/.gitattributes",
    ),
    (
        "common directory",
        "cp -r nested/.git common; rm common/HEAD; mkdir far sub; cp nested/.git/HEAD far/; cp nested/.git/index far/; echo ../common >far/commondir; git config -f common/config \"$K\" \"$V\"; echo 2 >sub/a; echo 'gitdir: ../far' >sub/.git",
        "sub",
        "sub/.gitattributes",
    ),
    (
        "included file",
        "git config -f shared.settings \"$K\" \"$V\"",
        "",
        ".gitattributes",
    ),
    (
        "exchanged directory",
        "cp -r .git .other; git config -f .other/config \"$K\" \"$V\"; mv .git .old; mv .other .git",
        "",
        ".gitattributes",
    ),
    (
        "by hand",
        "printf '\\n[%s \"x\"]\\n[%s]\\n\\t%s = \\\\\\n  \"%s\" # x\\n' other \"${K%%.*}\" \"${K##*.}\" \"$V\" >>.git/config; git config \"$K\" \"$V\" || true",
        "",
        ".gitattributes",
    ),
];

/// Hooks that the commands of [`GIT`] call.
const HOOKS: &[&str] = &[
    "pre-commit",
    "post-commit",
    "post-index-change",
    "reference-transaction",
    "prepare-commit-msg",
];

const OTHERS: &[(&str, &str, Shown)] = &[
    ("hook by a link", "ln -s $P .git/hooks/pre-commit", Shown::Git("")),
    (
        "hooks by a link",
        "mkdir evil; cp $P evil/pre-commit; rm -rf .git/hooks; ln -s ../evil .git/hooks",
        Shown::Git(""),
    ),
    (
        "hooks moved in",
        "mkdir evil; cp $P evil/pre-commit; rm -rf .git/hooks; mv evil .git/hooks",
        Shown::Git(""),
    ),
    (
        "sample made a hook",
        "cp $P .git/hooks/pre-commit.sample; mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
        Shown::Git(""),
    ),
    (
        "hook by a hard link",
        "cp $P x; ln x .git/hooks/post-commit",
        Shown::Git(""),
    ),
    (
        "git directory by a link",
        "cp -r .git evil; git config -f evil/config core.fsmonitor $P; rm -rf .git; ln -s evil .git",
        Shown::Git(""),
    ),
    (
        "settings by a link",
        "cp .git/config evil; git config -f evil core.fsmonitor $P; ln -sf ../evil .git/config",
        Shown::Git(""),
    ),
    (
        "layout at the top",
        "cp -r nested/.git/. .; git config -f config core.fsmonitor $P; git config -f config core.bare false; git config -f config core.worktree .; rm -rf .git",
        Shown::Git(""),
    ),
    (
        "invalid head and a layout",
        "cp -r nested/.git/. .; git config -f config core.fsmonitor $P; git config -f config core.bare false; git config -f config core.worktree .; echo x >.git/HEAD",
        Shown::Git(""),
    ),
    (
        "layout whose head comes last",
        "mkdir evil; cp -r nested/.git/objects nested/.git/refs nested/.git/config evil/; git config -f evil/config core.fsmonitor $P; git config -f evil/config core.bare false; git config -f evil/config core.worktree ../evil; cp nested/.git/HEAD evil/",
        Shown::Git("evil"),
    ),
    (
        "layout with a link to hooks",
        "mkdir -p h link st/g; for i in post-index-change reference-transaction; do cp $P h/$i; done; cp -r nested/.git/objects nested/.git/refs nested/.git/index st/g/; ln -s ../../h st/g/hooks; cp nested/.git/HEAD st/g/; echo 'gitdir: ../st/g' >link/.git; echo 3 >link/a",
        Shown::Git("link"),
    ),
    (
        "embedded in a submodule's tree",
        "mkdir lib/in; cp -r nested/.git/. lib/in/; git config -f lib/in/config core.fsmonitor $P; git config -f lib/in/config core.bare false; git config -f lib/in/config core.worktree ../in",
        Shown::Git("lib/in"),
    ),
    (
        "repository of a gitlink",
        "git clone -q --no-hardlinks nested link; git add link 2>/dev/null; git -C link config core.fsmonitor $P",
        Shown::Git("link"),
    ),
    (
        "rebase that runs",
        "git stash -q || true; GIT_SEQUENCE_EDITOR=\"sed -i '1i break\\nexec $P'\" git rebase -q -i HEAD~1 || true",
        Shown::Git(""),
    ),
    (
        "submodule update",
        "git -C lib commit -q --allow-empty -m x; git config submodule.lib.update \"!$P\"",
        Shown::Git(""),
    ),
    ("upload-pack", "git config remote.origin.uploadpack $P", Shown::Git("")),
    (
        "receive-pack",
        "git config remote.origin.receivepack $P",
        Shown::Git(""),
    ),
    ("strategy", "git config pull.twohead evil", Shown::Unseen),
    (
        "old remote",
        "mkdir -p .git/remotes; printf 'URL: ext::%s\\n' $P >.git/remotes/evil",
        Shown::Unseen,
    ),
    (
        "old branch",
        "mkdir -p .git/branches; printf 'ext::%s' $P >.git/branches/evil",
        Shown::Unseen,
    ),
    (
        "attributes of the repository",
        "mkdir -p .git/info; echo '* filter=users' >.git/info/attributes",
        Shown::Unseen,
    ),
    (
        "alternates",
        "mkdir -p .git/objects/info; echo $T/origin.git/objects >.git/objects/info/alternates",
        Shown::Unseen,
    ),
    (
        "message through a link",
        "ln -sf ../../home/canary .git/COMMIT_EDITMSG",
        Shown::Git(""),
    ),
    (
        "log through a link",
        "ln -sf ../../../home/canary .git/logs/HEAD",
        Shown::Git(""),
    ),
    (
        "branch's log through a link",
        "ln -sf ../../../../../home/canary .git/logs/refs/heads/main",
        Shown::Git(""),
    ),
    (
        "fetch head through a link",
        "ln -sf ../../home/canary .git/FETCH_HEAD",
        Shown::Git(""),
    ),
    (
        "original head through a link",
        "ln -sf ../../home/canary .git/ORIG_HEAD",
        Shown::Unseen,
    ),
    (
        "packed references through a link",
        "ln -sf ../../home/canary .git/packed-refs",
        Shown::Unseen,
    ),
    (
        "link to a file of the home",
        "ln -s ../home/canary notes",
        Shown::By("echo user >>notes"),
    ),
    (
        "link to it through a link",
        "ln -s .. up; ln -s up/home/canary notes",
        Shown::By("echo user >>notes"),
    ),
    (
        "link to a directory of the home",
        "ln -s ../home out",
        Shown::By("echo user >>out/canary"),
    ),
    (
        "absolute link",
        "ln -s $T/home/canary build.log",
        Shown::By("echo user >>build.log"),
    ),
    ("set-user-ID", "cp /bin/true x; chmod 4755 x", Shown::Unseen),
    ("set-group-ID", "cp /bin/true x; chmod 2755 x", Shown::Unseen),
    ("named pipe", "mkfifo src/pipe", Shown::Unseen),
    ("name with an escape", "touch \"$(printf 'a\\033[2Jb')\"", Shown::Unseen),
    ("name with a line", "touch \"$(printf 'a\\nb')\"", Shown::Unseen),
    (
        "vim",
        "printf 'call system(\"%s\")\\n' $P >.exrc",
        Shown::By("vim --not-a-term -c q src/deep/file.c"),
    ),
    (
        "vim's local file",
        "printf 'call system(\"%s\")\\n' $P >.vimrc",
        Shown::By("vim --not-a-term -c q src/deep/file.c"),
    ),
    (
        "vim in a folder",
        "printf 'call system(\"%s\")\\n' $P >src/deep/.exrc",
        Shown::By("cd src/deep; vim --not-a-term -c q file.c"),
    ),
    (
        "gdb",
        "printf 'shell %s\\n' $P >.gdbinit",
        Shown::By("gdb -batch /bin/true"),
    ),
    (
        "gdb of a program",
        "cp /bin/true prog; printf 'import os\\nos.system(\"%s\")\\n' $P >prog-gdb.py",
        Shown::By("gdb -batch ./prog"),
    ),
    (
        "python's debugger",
        "printf '!__import__(\"os\").system(\"%s\")\\n' $P >.pdbrc",
        Shown::By("echo 1 >t.py; python3 -m pdb t.py </dev/null"),
    ),
    (
        "perl's debugger",
        "printf 'system(\"%s\");\\n' $P >.perldb; chmod 644 .perldb",
        Shown::By("echo q | perl -d -e 1"),
    ),
    (
        "npm's shell",
        "echo '{\"scripts\": {\"x\": \"true\"}}' >package.json; echo script-shell=$P >.npmrc",
        Shown::By("npm run x"),
    ),
    (
        "npm's shell behind a carriage return",
        "echo '{\"scripts\": {\"x\": \"true\"}}' >package.json; printf 'save-exact=true\\rscript-shell=%s\\r' $P >.npmrc",
        Shown::By("npm run x"),
    ),
    (
        "Mercurial's hook behind a carriage return",
        "hg init 2>/dev/null || mkdir .hg; printf '[ui]\\nusername = a\\r[hooks]\\rpre-status = %s\\r' $P >.hg/hgrc",
        Shown::By("hg status"),
    ),
    (
        "Mercurial's hook below a section that is followed by something",
        "hg init 2>/dev/null || mkdir .hg; printf '[paths]\\ndefault = https://h/x\\n[hooks];\\npre-status = %s\\n' $P >.hg/hgrc",
        Shown::By("hg status"),
    ),
    (
        "Mercurial's hook in a file that paths include",
        "hg init 2>/dev/null || mkdir .hg; printf '[hooks]\\npre-status = %s\\n' $P >inc; printf '[paths]\\n%%include ../inc\\n' >.hg/hgrc",
        Shown::By("hg status"),
    ),
    (
        "vim's local file in packages, by a link",
        "mkdir -p node_modules/app; printf 'call system(\"%s\")\\n' $P >node_modules/app/.vimrc; ln -s node_modules/app app",
        Shown::By("cd app; vim --not-a-term -c q file.c"),
    ),
    (
        "file outside that git copies as a resolution",
        "mkdir .git/rr-cache; printf '<<<<<<< a\\n1\\n=======\\n2\\n>>>>>>> b\\n' >x; printf '0123456789012345678901234567890123456789\\t%s\\0' $T/home/canary >.git/MERGE_RR",
        Shown::Unseen,
    ),
    (
        "npm's options of node",
        "echo '{\"scripts\": {\"x\": \"node -e 1\"}}' >package.json; echo node-options=--require=$W/e.js >.npmrc; echo \"require('child_process').execFileSync('$P')\" >e.js",
        Shown::By("npm run x"),
    ),
    (
        "cargo's wrapper",
        "$C; mkdir .cargo; printf '[build]\\nrustc-wrapper = \"%s\"\\n' $P >.cargo/config.toml",
        Shown::By("cd new; cargo check --offline"),
    ),
    (
        "cargo's compiler",
        "$C; mkdir .cargo; printf '[build]\\nrustc = \"%s\"\\n' $P >.cargo/config",
        Shown::By("cd new; cargo check --offline"),
    ),
    (
        "cargo's linker",
        "$C; mkdir new/.cargo; printf '[target.x86_64-unknown-linux-gnu]\\nlinker = \"%s\"\\nrustflags = [\"-Clinker=%s\"]\\n' $P $P >new/.cargo/config.toml",
        Shown::By("cd new; cargo build --offline"),
    ),
    (
        "cargo's settings by a link",
        "$C; mkdir evil; printf '[build]\\nrustc-wrapper = \"%s\"\\n' $P >evil/config.toml; ln -s evil .cargo",
        Shown::By("cd new; cargo check --offline"),
    ),
    (
        "start-up of a login shell",
        "echo $P >.bash_profile",
        Shown::By("HOME=$W bash -lc true"),
    ),
    (
        "start-up of a shell",
        "echo $P >.bashrc",
        Shown::By("HOME=$W bash -ic true"),
    ),
    ("profile", "echo $P >>.profile", Shown::By("HOME=$W bash -lc true")),
    (
        "settings of git in a home",
        "printf '[core]\\n\\tfsmonitor = %s\\n' $P >.gitconfig",
        Shown::By("HOME=$W git status"),
    ),
    (
        "git's directory in a home",
        "mkdir -p .config/git; printf '[core]\\n\\tfsmonitor = %s\\n' $P >.config/git/config",
        Shown::By("HOME=$W git status"),
    ),
    (
        "tasks",
        "mkdir .vscode; echo '{\"tasks\":[{\"command\":\"x\",\"runOptions\":{\"runOn\":\"folderOpen\"}}]}' >.vscode/tasks.json",
        Shown::Unseen,
    ),
    (
        "interpreter",
        "mkdir .vscode; echo '{\"python.defaultInterpreterPath\":\"x\"}' >.vscode/settings.json",
        Shown::Unseen,
    ),
    (
        "editor's directory by a link",
        "mkdir evil; echo '{}' >evil/tasks.json; ln -s evil .vscode",
        Shown::Unseen,
    ),
    (
        "agent's hooks",
        "mkdir .claude; echo '{\"hooks\":{\"x\":[]}}' >.claude/settings.json",
        Shown::Unseen,
    ),
    (
        "agent's servers",
        "echo '{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}' >.mcp.json",
        Shown::Unseen,
    ),
    (
        "other agents",
        "mkdir .cursor .gemini .codex; echo x >.cursor/mcp.json; echo x >.gemini/settings.json; echo x >.codex/config.toml",
        Shown::Unseen,
    ),
    ("direnv", "echo x >.envrc", Shown::Unseen),
    (
        "mise",
        "printf '[env]\\n_.source = \"x\"\\n' >.mise.toml",
        Shown::Unseen,
    ),
    ("asdf", "echo 'python path:x' >.tool-versions", Shown::Unseen),
    ("neovim", "echo x >.nvim.lua", Shown::Unseen),
    ("emacs", "echo x >.dir-locals.el", Shown::Unseen),
    ("idea", "mkdir .idea; echo x >.idea/workspace.xml", Shown::Unseen),
    ("zed", "mkdir .zed; echo '{}' >.zed/settings.json", Shown::Unseen),
    (
        "container of an editor",
        "mkdir .devcontainer; echo '{\"initializeCommand\":\"x\"}' >.devcontainer/devcontainer.json",
        Shown::Unseen,
    ),
    (
        "mercurial",
        "mkdir .hg; printf '[hooks]\\nx = x\\n' >.hg/hgrc",
        Shown::Unseen,
    ),
    (
        "jujutsu",
        "mkdir -p .jj/repo; printf '[ui]\\npager = \"x\"\\n' >.jj/repo/config.toml",
        Shown::Unseen,
    ),
    ("husky", "mkdir .husky; echo x >.husky/pre-commit", Shown::Unseen),
    ("pre-commit", "echo x >.pre-commit-config.yaml", Shown::Unseen),
    ("lefthook", "echo x >lefthook.yml", Shown::Unseen),
    ("yarn", "echo 'yarnPath: x' >.yarnrc.yml", Shown::Unseen),
    (
        "rustup",
        "printf '[toolchain]\\npath = \"x\"\\n' >rust-toolchain.toml",
        Shown::Unseen,
    ),
    (
        "elan",
        "echo leanprover/lean4:v4.20.0 >lean-toolchain; echo evil/lean4:v1 >src/lean-toolchain",
        Shown::Unseen,
    ),
    (
        "glab",
        "mkdir .git/glab-cli; echo 'editor: ./x' >.git/glab-cli/config.yml",
        Shown::Unseen,
    ),
    ("perforce", "echo 'P4PORT=rsh:./x' >.p4config", Shown::Unseen),
    ("repo", "mkdir -p .repo/repo; echo x >.repo/repo/main.py", Shown::Unseen),
    (
        "OmniSharp",
        "echo '{\"RoslynExtensionsOptions\": {\"LocationPaths\": [\"./x\"]}}' >omnisharp.json",
        Shown::Unseen,
    ),
    ("Stata", "echo 'shell ./x' >profile.do", Shown::Unseen),
    (
        "R, ghci, iex, irb",
        "touch .Rprofile .ghci .iex.exs .irbrc; echo x >.Rprofile",
        Shown::Unseen,
    ),
];

/// Work of an ordinary kind, of which nothing is held back.
pub(crate) const CONTROLS: &[&str] = &[
    "git commit -qam x",
    "git config user.email a@b",
    "git checkout -q -b y origin/main",
    "git branch -m renamed",
    "git worktree remove --force tree",
    "rm -rf nested",
    "mv nested other",
    "git worktree add -q second; cd second; git commit -q --allow-empty -m x",
    "git init -q src/own; cd src/own; echo 1 >a; git add a; git commit -qm a",
    "git clone -q nested copy",
    "git stash -q; git stash pop -q",
    "git -C lib commit -q --allow-empty -m x; git add lib; git commit -qm lib",
    "git -c protocol.file.allow=always submodule --quiet add ./../work/nested again",
    "rm -rf .git",
    "git remote add o https://host/x.git",
    "git tag v1",
    "git gc -q",
    "git stash -q; git rebase -q --force-rebase HEAD~1",
    "git bisect start -q HEAD HEAD~1; git bisect reset",
    "mkdir .cargo; printf '[build]\\njobs = 2\\n' >.cargo/config.toml",
    "printf 'all:\\n\\ttrue\\n' >Makefile; echo '{\"scripts\": {}}' >package.json",
    "mkdir .vscode; echo '{\"editor.tabSize\": 2}' >.vscode/settings.json",
    "echo 3.12 >.python-version; echo 22 >.nvmrc",
    "echo save-exact=true >.npmrc",
    "echo leanprover/lean4:v4.20.0 >lean-toolchain; echo '{\"FormattingOptions\": {\"UseTabs\": false}}' >omnisharp.json",
    "echo 'x = 1' >model.m; echo 'use x' >analysis.do; mkdir -p .github/prompts; echo x >.github/prompts/a.prompt.md",
    "mkdir -p .venv/bin; ln -s /usr/bin/python3 .venv/bin/python; echo x >.venv/bin/activate; echo x >.venv/pyvenv.cfg",
    "mkdir -p node_modules/.bin; ln -s ../a/x node_modules/.bin/x; mkdir -p node_modules/a/.vscode; echo x >node_modules/a/.vscode/x",
    "echo A=1 >.env; echo x >CLAUDE.md; mkdir -p .github/workflows; echo x >.github/workflows/a.yml",
    "chmod 755 src/deep/file.c; ln src/deep/file.c src/deep/again.c",
    "ln -s /usr/bin/python3 py; ln -s src/deep/file.c here.c; ln -s /dev/null nothing",
    "git config core.pager cat; git config alias.s status",
    "git sparse-checkout set src; git sparse-checkout disable",
    "git format-patch -q -1; git notes add -m x; git update-ref refs/x HEAD",
    "git mv src source; git commit -qm moved",
];

/// What the user does with git, in each directory.
const GIT: &str = "
export GIT_PAGER=cat
git status; git st; git diff; git log -1 -p; git show --stat; git ls-files -m; git branch -vv; git stash list; git submodule status
git fetch --all; git submodule update --init --recursive; git push --dry-run origin HEAD; git pull --no-edit; git add -A -n .
git blame a; git grep -q x; git checkout -q -- .; git rebase --continue; git commit --allow-empty -m user; git commit --allow-empty; git describe --always
git worktree list; git remote -v; git reflog -1; git gc --auto; git archive -o /dev/null HEAD; git stash; git switch -q -c users
";

/// What else the user does in each directory: programs that read settings of the folder that they are in.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "bash -lc true"),
    ("hg", "hg status"),
    ("direnv", "direnv export bash"),
    ("vim", "vim --not-a-term -c q a"),
    ("gdb", "gdb -batch /bin/true"),
];

/// Makes a crate, as `$C` in scripts.
pub(crate) const CRATE: &str = "eval mkdir -p new/src; printf '[package]\\nname=\"a\"\\n[workspace]\\n' >new/Cargo.toml; echo >new/src/lib.rs; echo 'fn main(){}' >new/src/main.rs";

/// What all attacks begin with.
const BASE: &str = "
git init -q --bare origin.git
git init -q work; cd work; mkdir -p src/deep; echo 1 >a; echo 1 >src/deep/file.c; git add .; git commit -qm one; echo 2 >a; git commit -qam two
git remote add origin ../origin.git; git push -q -u origin main 2>/dev/null
git init -q ../of-lib; (cd ../of-lib; echo 1 >a; git add a; git commit -qm lib)
git submodule --quiet add ../of-lib lib; git commit -qm lib; git push -q
git init -q nested; (cd nested; echo 1 >a; git add a; git commit -qm nested; echo 2 >a)
echo nested >.git/info/exclude; echo tree >>.git/info/exclude
git worktree add -q tree 2>/dev/null; echo 3 >tree/a; echo 3 >lib/a; echo 3 >a
git config include.path ../shared.settings; echo '# of the user' >.profile
";

pub(crate) struct Place {
    directory: tempfile::TempDir,
    user: Option<u32>,
}

/// An ordinary user, who need not have a name.
pub(crate) const USER: u32 = 12_345;

impl Place {
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it is there")
    }

    fn base() -> &'static Path {
        static BASE_PLACE: OnceLock<Place> = OnceLock::new();
        let place = BASE_PLACE.get_or_init(|| {
            let place = Self::empty();
            let home = place.path().join("home");
            fs::create_dir(&home).expect("made");
            fs::write(home.join("canary"), "untouched\n").expect("written");
            let settings = "[user]\n\tname = U\n\temail = u@example.org\n[safe]\n\tdirectory = *\n[protocol \"file\"]\n\tallow = always\n[init]\n\tdefaultBranch = main\n";
            fs::write(home.join(".gitconfig"), settings).expect("written");
            fs::write(home.join(".vimrc"), "set exrc\n").expect("written");
            fs::write(home.join(".gdbinit"), "set auto-load safe-path /\n").expect("written");
            let done = place.run(".", "", BASE);
            assert!(done.0, "{}", done.1);
            place
        });
        place.directory.path()
    }

    pub(crate) fn empty() -> Self {
        let above = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = tempfile::Builder::new()
            .prefix("gate")
            .tempdir_in(above)
            .expect("a directory");
        Self { directory, user: None }
    }

    /// The same as [`Self::new`], of an ordinary user, who owns it and runs everything in it. Only for root.
    #[allow(dead_code, reason = "of the two suites that have this file, one needs it")]
    pub(crate) fn of_user() -> Self {
        // Where they can come, whatever stands above cargo's directory.
        let directory = tempfile::Builder::new().prefix("gate").tempdir().expect("a directory");
        let mut place = Self::filled(Self { directory, user: None });
        place.user = Some(USER);
        place.own();
        place
    }

    /// Gives all of it to its user, also what a test has made in it since.
    #[allow(dead_code, reason = "of the two suites that have this file, one needs it")]
    pub(crate) fn own(&self) {
        if let Some(user) = self.user {
            let chown = ["-Rh".to_owned(), format!("{user}:{user}")];
            let owned = Command::new("chown").args(chown).arg(self.path()).status();
            assert!(owned.expect("chown is there").success());
        }
    }

    /// A copy of [`BASE`], with the code of attacks beside it.
    pub(crate) fn new() -> Self {
        Self::filled(Self::empty())
    }

    /// A program, as whoever this place is of.
    pub(crate) fn command(&self, program: &str) -> Command {
        let Some(user) = self.user else {
            return Command::new(program);
        };
        let mut command = Command::new("setpriv");
        command.args([
            format!("--reuid={user}"),
            format!("--regid={user}"),
            "--clear-groups".to_owned(),
        ]);
        command.arg(program);
        command
    }

    fn filled(place: Self) -> Self {
        let copied = Command::new("cp")
            .arg("-a")
            .arg(format!("{}/.", Self::base().display()))
            .arg(place.path())
            .status();
        assert!(copied.expect("cp is there").success());
        // Linked trees have absolute paths in them.
        let path = place.path();
        let base = Self::base().canonicalize().expect("it is there");
        for file in ["work/tree/.git", "work/.git/worktrees/tree/gitdir"] {
            let file = path.join(file);
            let text = fs::read_to_string(&file).expect("read");
            fs::write(&file, text.replace(&*base.to_string_lossy(), &path.to_string_lossy())).expect("written");
        }
        let code = path.join("payload");
        fs::write(
            &code,
            format!("#!/bin/sh\necho >>{}/fired\ncat 2>/dev/null\n", path.display()),
        )
        .expect("written");
        fs::set_permissions(&code, fs::Permissions::from_mode(0o755)).expect("set");
        fs::create_dir(path.join("state")).expect("made");
        place
    }

    pub(crate) fn run(&self, directory: &str, before: &str, script: &str) -> (bool, String) {
        let path = self.path();
        let done = self
            .command("timeout")
            .args(["60", "sh", "-c", &format!("{before}\n{script}")])
            .current_dir(path.join(directory))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", path.join("home"))
            .env("T", &path)
            .env("W", path.join("work"))
            .env("P", path.join("payload"))
            .env("TERM", "dumb")
            .env("EDITOR", "true")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Where an attack has made its repository none, git would find the one that these tests lie in, and work in it.
            .env("GIT_CEILING_DIRECTORIES", &path)
            .env("CARGO_HOME", path.join("home/.cargo"))
            .env("RUSTUP_HOME", rustup())
            .env("C", CRATE)
            .stdin(std::process::Stdio::null())
            .output()
            .expect("sh is there");
        (
            done.status.success(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    }

    /// Removes what the attack itself has run.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(self.path().join("fired"));
    }

    /// Whether something ran, or something outside was written to, in the user's hands, whichever of the tools that are
    /// installed they use: those that show this attack, and all of them from the top, and in the full tests from a
    /// subdirectory, too.
    pub(crate) fn use_all_tools(&self, attack: &Attack) -> bool {
        let has_run = self.use_tools(attack);
        let tools: Vec<String> = TOOLS
            .iter()
            .map(|(program, command)| format!("! command -v {program} >/dev/null || {command}"))
            .collect();
        let mut script = tools.join("; ");
        if extent::is_full() && !matches!(attack.shown, Shown::Git(_)) {
            script.push_str(GIT);
        }
        let directories = ["", "src/deep"];
        for directory in directories.into_iter().take(extent::rounds(1, 2)) {
            if self.path().join("work").join(directory).is_dir() {
                let _ = self.run(&format!("work/{directory}"), "", &script);
            }
        }
        has_run || self.has_fired()
    }

    /// Whether something ran, or something outside was written to, in the hands of a user of the tool that shows it.
    pub(crate) fn use_tools(&self, attack: &Attack) -> bool {
        match attack.shown {
            Shown::Git(more) => {
                for directory in [more, "src/deep", ""]
                    .into_iter()
                    .filter(|directory| self.path().join("work").join(directory).is_dir())
                {
                    let _ = self.run(&format!("work/{directory}"), "", GIT);
                }
            }
            Shown::By(command) => {
                let _ = self.run("work", "", command);
            }
            Shown::Unseen => {
                let _ = self.run("work", "", "git status; git commit -qam user");
            }
        }
        self.has_fired()
    }

    fn has_fired(&self) -> bool {
        let canary = fs::read_to_string(self.path().join("home/canary")).unwrap_or_default();
        self.path().join("fired").exists() || canary != "untouched\n"
    }
}

fn rustup() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".rustup"));
    std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .unwrap_or_default()
}

pub(crate) fn attacks() -> Vec<Attack> {
    let mut attacks = Vec::new();
    for (place, tell, directory, attributes) in PLACES {
        for (before, key, value, runs) in SETTINGS {
            let is_layout = [
                "layout",
                "pointer",
                "common directory",
                "exchanged directory",
                "new repository",
            ]
            .contains(place);
            // Attributes are read from the tree's files, which these have elsewhere.
            // Git reads aliases before it knows of a linked tree's settings.
            let is_alias = key.starts_with("alias") || key.starts_with("includeIf");
            let is_early = is_alias && *place == "linked tree";
            let is_seen = *runs && !is_early && !(is_layout && before.contains("$A")) && *place != "by hand";
            attacks.push(Attack {
                name: format!("{key} in: {place}"),
                script: format!("A=$W/{attributes}; {before}\nK='{key}'; V=\"{value}\"; {tell}"),
                shown: if is_seen { Shown::Git(directory) } else { Shown::Unseen },
            });
        }
    }
    for (directory, hooks) in [
        ("", ".git/hooks"),
        ("nested", "nested/.git/hooks"),
        ("lib", ".git/modules/lib/hooks"),
        ("tree", ".git/hooks"),
    ] {
        for hook in HOOKS {
            attacks.push(Attack {
                name: format!("{hook} in: {hooks}, seen from `{directory}`"),
                script: format!("mkdir -p {hooks}; cp $P {hooks}/{hook}"),
                shown: Shown::Git(directory),
            });
        }
    }
    attacks.extend(OTHERS.iter().map(|(name, script, shown)| Attack {
        name: (*name).to_owned(),
        script: (*script).to_owned(),
        shown: *shown,
    }));
    // Some alone, to look at them: those whose names have this in them, or, after a `!`, have it not.
    if let Ok(named) = std::env::var("SHIELING_ATTACKS") {
        match named.strip_prefix('!') {
            Some(others) => attacks.retain(|attack| !attack.name.contains(others)),
            None => attacks.retain(|attack| attack.name.contains(&named)),
        }
    }
    attacks
}

/// Runs all of these on two threads, and gives what went wrong.
pub(crate) fn each(attacks: &[Attack], judge: impl Fn(&Attack) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(judge(attack).map(|why| format!("{}: {why}", attack.name)));
        }
        wrong
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

/// Tells which of the user's tools are missing here.
pub(crate) fn tell_missing_tools() {
    let tools: Vec<&str> = TOOLS.iter().map(|(program, _)| *program).collect();
    let _ = prerequisite::has(&tools);
}

/// A share of them, or all with `SHIELING_TESTS=full`.
pub(crate) fn share<T>(all: Vec<T>, of: usize) -> Vec<T> {
    let every = if extent::is_full() { 1 } else { of };
    all.into_iter().step_by(every).collect()
}
