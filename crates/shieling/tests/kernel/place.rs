//! A place in which attacks act: a repository with history, with every file that the texts of the
//! corpora name. It is made once, as a template, and copied for each run.
//!
//! ```text
//! BASE/workspace   what a text works in        BASE/home      the host's home, which no text may reach
//! BASE/outside     what lies beside it         BASE/tools     programs that leave a mark when they run
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::snapshot::Snapshot;

/// What everything of a place is dated, in seconds since 1970: the same in each copy.
const DATED: u64 = 1_700_000_000;

/// Programs that an allow list leaves out, as scripts that mark the workspace when they run.
const MARKING: [&str; 8] = ["id", "lsblk", "lsof", "catx", "rgx", "makex", "pip3", "gofmt"];

/// A directory with a place in it, which goes with it.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    /// A copy of a template.
    pub(crate) fn of(template: &Template) -> Self {
        let place = Self(directory());
        let base = place.base();
        for (name, path) in [
            ("home/.ssh/id", "key"),
            ("home/notes", "mine"),
            ("outside/file", "theirs"),
        ] {
            write(&base.join(name), path, false);
        }
        for name in MARKING {
            let script = "#!/bin/sh\n: > \"$MARKS/ran-${0##*/}\"; echo uid=0 marked\n";
            write(&base.join("tools").join(name), script, true);
        }
        place.reset_to(template);
        place
    }

    /// Makes the workspace what the template is. Where only words differ, they alone are written, since
    /// most texts change little, and a copy costs more than all the rest of a run.
    pub(crate) fn reset_to(&self, template: &Template) {
        let workspace = self.workspace();
        let now = Snapshot::of(&workspace);
        let as_it_was = now.0.len() == template.snapshot.0.len()
            && template
                .snapshot
                .0
                .iter()
                .zip(&now.0)
                .all(|((path, then), (name, now))| {
                    let alike = path == name && then.mode == now.mode && then.names() == now.names();
                    alike && (then.is_file() || then.content == now.content)
                });
        if as_it_was {
            for (path, then) in &template.snapshot.0 {
                let entry = &now.0[path];
                if entry.content != then.content {
                    fs::write(workspace.join(path), &then.content).expect("our own file");
                }
                if entry.content != then.content || entry.modified() != then.modified() {
                    date(&workspace.join(path));
                }
            }
            return;
        }
        // A text may have taken its own rights away.
        let script =
            "[ ! -e workspace ] || { chmod -R u+rwX workspace; rm -rf workspace; }; cp -a \"$TEMPLATE\" workspace";
        run(&self.base(), script, &[("TEMPLATE", template.workspace())]);
    }

    pub(crate) fn base(&self) -> PathBuf {
        // Without links, as a workspace must be.
        self.0.path().canonicalize().expect("our own directory")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base().join("workspace")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    pub(crate) fn tools(&self) -> PathBuf {
        self.base().join("tools")
    }
}

/// What places are copied from.
pub(crate) struct Template {
    directory: tempfile::TempDir,
    snapshot: Snapshot,
}

impl Template {
    /// With these files (`!` before the content makes it executable, a content of `->PATH` a link), which
    /// `history` then makes a repository of, in bash. `finish` changes the files of the last state, before
    /// all of them are dated the same.
    pub(crate) fn new(files: &BTreeMap<String, String>, history: &str, finish: impl FnOnce(&Path)) -> Self {
        let directory = directory();
        let workspace = directory.path();
        for (name, content) in files {
            let path = workspace.join(name);
            match (content.strip_prefix("->"), content.strip_prefix('!')) {
                (Some(to), _) => symlink(to, &path).expect("a new link"),
                (_, Some(script)) => write(&path, script, true),
                _ => write(&path, content, false),
            }
        }
        run(workspace, history, &[]);
        finish(workspace);
        run(
            workspace,
            &format!("find . -depth -exec touch -h -d @{DATED} {{}} +"),
            &[],
        );
        Self {
            snapshot: Snapshot::of(workspace),
            directory,
        }
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.directory.path()
    }
}

fn date(path: &Path) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(DATED);
    // A directory too, and a link never: those are dated with the copy.
    if let Ok(file) = fs::File::open(path) {
        file.set_times(fs::FileTimes::new().set_modified(then))
            .expect("our own file");
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("kernel")
        .tempdir()
        .expect("a temporary directory")
}

pub(crate) fn write(path: &Path, content: &str, executable: bool) {
    fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a writable place");
    fs::write(path, content).expect("a writable place");
    if executable {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
}

/// Runs a script of ours, which must succeed. Never a text of the corpora.
fn run(cwd: &Path, script: &str, variables: &[(&str, &Path)]) {
    let done = Command::new("bash")
        .args(["--noprofile", "--norc", "-euc", script])
        .current_dir(cwd)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(variables.iter().copied())
        .envs(DATES)
        .output()
        .expect("bash is there");
    assert!(
        done.status.success(),
        "{script}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// With these variables a commit has the same name whenever it is made.
pub(crate) const DATES: [(&str, &str); 6] = [
    ("GIT_AUTHOR_DATE", "1700000000 +0000"),
    ("GIT_COMMITTER_DATE", "1700000000 +0000"),
    ("GIT_AUTHOR_NAME", "t"),
    ("GIT_AUTHOR_EMAIL", "t@example.invalid"),
    ("GIT_COMMITTER_NAME", "t"),
    ("GIT_COMMITTER_EMAIL", "t@example.invalid"),
];

/// A repository on `main` with four commits, a side branch, tags, a stash, an alias, and a remote (in the
/// workspace, since nothing else can be reached) that is one commit ahead.
pub(crate) const HISTORY: &str = r#"
git init -q -b main .
git config user.name t; git config user.email t@example.invalid
git config alias.z '!touch pwned-by-alias'; git config a.b c; git config gc.auto 0
git add -f -A .; git commit -qm one; git branch old; git tag v0
for n in two three four; do echo $n >> history.txt; git add history.txt; git commit -qm $n; done
git branch a; git branch -q side old
git checkout -q side; echo side > side.txt; git add side.txt; git commit -qm side; git tag abc
git format-patch -q -1 --stdout > /dev/null; git checkout -q main
git clone -q --bare . origin.git; rm -f origin.git/hooks/*; git -C origin.git remote remove origin
git remote add origin ./origin.git; git fetch -q origin; git branch -q -u origin/main
new=$(git commit-tree -p HEAD -m ahead HEAD^{tree}); git push -q origin $new:refs/heads/main
git update-ref refs/remotes/origin/main HEAD
rm -f .git/hooks/*.sample
"#;

/// The files of a project, each named by some text, and doing harm where it can.
pub(crate) fn project() -> BTreeMap<String, String> {
    // With builtins alone, since some texts leave no other program on PATH.
    let script = "!#!/bin/sh\n: > pwned\n";
    let mut files: BTreeMap<String, String> = [
        ("a", "foo x\nb a\nx y z\nfoo 1\n"),
        ("b", "a\nb\n"),
        ("c", "c\n"),
        ("in", "1\n1\n2\n"),
        ("f", "a[$(touch pwned)]\n"),
        ("x", script),
        ("y", "touch pwned\n"),
        ("z", "z\n"),
        ("i", "touch i\n"),
        ("a.txt", "pear\napple\n"),
        ("app.x", "x\n"),
        ("m.o", "object\n"),
        ("k", "k\n"),
        ("big.txt", "1\n2\n3\nx\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"),
        ("dump", "00000000: 6861 6c6c 6f0a                           hallo.\n"),
        ("magic", "0\tstring\tfoo\tFoo\n"),
        ("name.txt", "evil\n"),
        ("cron.txt", "* * * * * touch /tmp/pwned\n"),
        ("fix.diff", "--- a/b\n+++ b/b\n@@ -1,2 +1,2 @@\n-a\n+patched\n b\n"),
        ("x.py", "open('pwned', 'w').write('x')\n"),
        ("x.js", "require('fs').writeFileSync('pwned', 'x')\n"),
        ("y.js", "require('fs').writeFileSync('pwned', 'x')\n"),
        ("test_x.py", "def test_x():\n    open('pwned', 'w').write('x')\n"),
        ("scripts/gen.py", "open('pwned', 'w').write('x')\n"),
        (
            "package.json",
            "{\"name\":\"x\",\"version\":\"1.0.0\",\"scripts\":{\"postinstall\":\"touch pwned\",\"build\":\"touch pwned\",\
             \"test\":\"touch pwned\",\"lint\":\"touch pwned\"}}\n",
        ),
        ("Makefile", "all:\n\ttouch pwned\n"),
        ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"),
        ("src/main.rs", "fn main() { println!(\"foo\"); }\n"),
        ("src/lib.rs", "pub fn foo() {}\n"),
        ("a.rs", "fn main() {}\n"),
        ("src/Makefile", "all:\n\ttouch pwned\n"),
        ("configure", script),
        ("script.sh", script),
        ("run.sh", script),
        ("x.sh", script),
        ("evil", script),
        ("foo", script),
        ("ls", script),
        ("cat", script),
        ("git", script),
        ("python3", script),
        ("man", script),
        ("make", script),
        ("bin/ls", script),
        ("bin/node", script),
        ("env.sh", "touch pwned\n"),
        ("script", "rm x\n"),
        ("script.sed", "w out\n"),
        ("prog.awk", "{ print > \"out\" }\n"),
        ("prog.jq", ".\n"),
        ("a.xml", "<a><b/></a>\n"),
        ("opts", "-p --output=pwned\n"),
        ("cmd", "touch pwned\n"),
        ("cmds", "touch\npwned\n"),
        ("vars", "PATH=.\n"),
        ("l", ""),
        ("list", "a\nb\n"),
        ("docs/x.md", "docs\n"),
        (".gitignore", "ignored.txt\n"),
        ("ignored.txt", "ignored\n"),
        ("untracked", "untracked\n"),
        ("dev/null", ""),
    ]
    .into_iter()
    .map(|(name, content)| (name.to_owned(), content.to_owned()))
    .collect();
    files.insert("link".to_owned(), "->a.txt".to_owned());
    files.insert("x.c".to_owned(), LIBRARY.to_owned());
    files
}

/// A library that acts as soon as it is loaded.
const LIBRARY: &str = "#include <fcntl.h>\n#include <unistd.h>\n\
    __attribute__((constructor)) static void act(void) { close(open(\"pwned\", O_CREAT | O_WRONLY, 0644)); }\n";

/// The history of a project, with archives, a patch to apply, changes of all kinds, and a stash.
pub(crate) fn project_history() -> String {
    format!(
        "tar -cf a.tar b c; gzip -kc b > a.gz; python3 -m zipfile -c bundle.zip b c || :\n\
         if command -v gcc > /dev/null; then gcc -shared -fPIC -o x.so x.c; cp x.so e.so; fi\n\
         {HISTORY}\n\
         git format-patch -q -1 abc --stdout > x.patch\n\
         echo stashed >> a.txt; git stash -q; echo changed >> b; echo staged >> c; git add c; echo new > new.txt\n"
    )
}
