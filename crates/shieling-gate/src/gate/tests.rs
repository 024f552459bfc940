use super::*;
use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::tools::rows;

const ROOT: &str = "/home/u/work";

/// A tree in memory, with all directories above its files.
#[derive(Debug, Clone, Default)]
struct Files(BTreeMap<PathBuf, (Entry, Vec<u8>)>);

impl Files {
    fn with(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, content) in files {
            tree.add(path, content);
        }
        tree
    }

    /// A file, a link (`-> target`), or a directory (a path that ends with a slash).
    fn add(&mut self, path: &str, content: &str) {
        let entry = match content.strip_prefix("-> ") {
            Some(target) => Entry::link(target),
            None if path.ends_with('/') => Entry::directory(0o755),
            None => Entry::file(0o644, content.len() as u64),
        };
        self.put(path, entry, content);
    }

    fn put(&mut self, path: &str, entry: Entry, content: &str) {
        let path = PathBuf::from(path);
        for above in path.ancestors().skip(1) {
            let directory = || (Entry::directory(0o755), Vec::new());
            self.0.entry(above.to_path_buf()).or_insert_with(directory);
        }
        self.0.insert(path, (entry, content.as_bytes().to_vec()));
    }
}

impl Tree for Files {
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        Ok(self.0.get(path).map(|(entry, _)| entry.clone()))
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let file = self.0.get(path).filter(|(entry, _)| entry.kind == Kind::File);
        let (_, content) = file.ok_or(io::ErrorKind::NotFound)?;
        Ok(content.iter().copied().take(limit).collect())
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let below = self.0.keys().filter(|path| path.parent() == Some(directory));
        Ok(below.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }
}

/// A gate over two trees, of nobody's home.
fn over<'a>(before: &'a Files, after: &'a Files) -> Gate<'a> {
    Gate::new(Surroundings {
        root: Path::new(ROOT),
        home: None,
        before,
        after,
        leads: &[],
        toolchains: &[],
    })
}

/// What is held back of all changes between two trees: path and rule.
fn held_in(home: Option<&str>, before: &Files, after: &Files) -> Vec<(String, String)> {
    let [beside, toolchains] = ["/home/u/main/.git", "/home/u/.rustup"].map(PathBuf::from);
    let gate = Gate::new(Surroundings {
        root: Path::new(ROOT),
        home: home.map(Path::new),
        before,
        after,
        leads: &[],
        toolchains: std::slice::from_ref(&toolchains),
    })
    .with_beside(std::slice::from_ref(&beside));
    let paths: BTreeSet<&PathBuf> = before.0.keys().chain(after.0.keys()).collect();
    let changed = paths
        .into_iter()
        .filter(|path| before.0.get(*path) != after.0.get(*path));
    let held = changed.filter_map(|path| {
        let change = Change {
            path,
            from: None,
            before: before.entry(path).expect("in memory"),
            after: after.entry(path).expect("in memory"),
        };
        let held = gate.judge(&change).held_back()?.clone();
        assert!(!held.because.is_empty() && !held.instead.is_empty());
        assert!(!held.because.contains(char::is_control), "{:?}", held.because);
        Some((path.display().to_string(), held.rule.to_string()))
    });
    held.collect()
}

fn held(before: &[(&str, &str)], changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let before = Files::with(before);
    let mut after = before.clone();
    for (path, content) in changes {
        after.add(path, content);
    }
    held_in(None, &before, &after)
}

const HEX: &str = "0123456789012345678901234567890123456789\n";

const REPOSITORY: &[(&str, &str)] = &[
    (".git/HEAD", "ref: refs/heads/main\n"),
    (".git/objects/", ""),
    (".git/refs/", ""),
    (".git/config", "[core]\n\tbare = false\n[core]\n\tpager = delta\n"),
    (".git/hooks/pre-commit.sample", "x"),
];

#[test]
fn what_has_git_run_code_or_write_elsewhere_is_held_back() {
    let cases: &[(&str, &str, &str)] = &[
        (".git/config", "[core]\n\tfsmonitor = ./x\n", "git.settings"),
        (".git/config", "[core]\n\tbare\0\n", "git.settings"),
        (".git/config", "[core\n", "git.settings"),
        (".git/config.worktree", "[core]\n\tsshCommand = x\n", "git.settings"),
        (".git/config", "-> ../x", "git.link"),
        (".git/hooks/pre-commit", "x", "git.hook"),
        (".git/hooks/post-checkout", "x", "git.hook"),
        (".git/hooks/husky/x", "x", "git.hook"),
        (".git/hooks/x.sample.sh", "x", "git.hook"),
        (".git/hooks", "-> ../evil", "git.link"),
        (".git/commondir", "../evil\n", "git.common-directory"),
        (".git/HEAD", "x\n", "git.head"),
        (".git/HEAD", "ref: /etc\n", "git.head"),
        (".git/HEAD", "", "git.head"),
        (".git/HEAD", "-> refs/heads/main", "git.link"),
        (".git/HEAD/", "", "git.head"),
        (".git/COMMIT_EDITMSG", "-> ../../../.bashrc", "link.outside"),
        (".git/COMMIT_EDITMSG", "-> ../x", "git.link"),
        (".git/logs/HEAD", "-> ../../x", "git.link"),
        (".git/index", "-> x", "git.link"),
        (
            ".git/objects/info/alternates",
            "/home/u/secret/.git/objects\n",
            "git.alternates",
        ),
        (
            ".git/objects/info/alternates",
            "\"/home/u/\\163ecret\"\n",
            "git.alternates",
        ),
        (".git/info/attributes", "* filter=evil\n", "git.attributes"),
        (".git/info/attributes", "*.x diff=evil text\n", "git.attributes"),
        (".git/info/attributes", "\u{a0}# filter=evil\n", "git.attributes"),
        (".git/remotes/origin", "URL: ext::sh -c x\n", "git.old-remote"),
        (".git/branches/x", "ext::x\n", "git.old-remote"),
        (
            ".git/rebase-merge/git-rebase-todo",
            "pick 1 a\nexec ./x\n",
            "git.rebase",
        ),
        (".git/rebase-merge/git-rebase-todo", "x ./x\n", "git.rebase"),
        (".git/rebase-merge/strategy", "evil\n", "git.strategy"),
        (".git/sequencer/opts", "[options]\n\tstrategy = evil\n", "git.strategy"),
        (
            ".git/MERGE_RR",
            "0123456789012345678901234567890123456789\t/home/u/.ssh/id\0",
            "git.resolutions",
        ),
        (
            ".git/MERGE_RR",
            "0123456789012345678901234567890123456789\ta\x000123456789012345678901234567890123456789.1\ta/../../x\0",
            "git.resolutions",
        ),
        (
            ".git/MERGE_RR",
            "0123456789012345678901234567890123456789 x\0",
            "git.resolutions",
        ),
        (".git/rr-cache", "-> ../x", "git.link"),
        (
            ".git/rebase-apply/apply-opt",
            " '-p1' '--build-fake-ancestor=/home/u/x'\n",
            "git.apply-options",
        ),
        (
            ".git/rebase-apply/apply-opt",
            " '--directory=../x'\n",
            "git.apply-options",
        ),
        (".git/worktrees/t/commondir", "../../../evil\n", "git.common-directory"),
        (".git/worktrees/t/gitdir", "/home/u/other/.git\n", "git.linked-tree"),
        (
            ".git/worktrees/t/config.worktree",
            "[core]\nfsmonitor=x\n",
            "git.settings",
        ),
        (".git/modules/lib/../x", "", ""),
        (".GIT/config", "[core]\nfsmonitor=x\n", "git.settings"),
        ("sub/deep/.git/config", "[core]\nfsmonitor=x\n", "git.settings"),
        ("sub/deep/.git/hooks/post-commit", "x", "git.hook"),
        ("sub/.git", "gitdir: /home/u/elsewhere/.git\n", "git.pointer"),
        ("sub/.git", "gitdir: ../../evil\n", "git.pointer"),
        ("sub/.git", "x\n", "git.pointer"),
        ("sub/.git", "-> ../evil", "git.link"),
    ];
    for (path, content, rule) in cases.iter().filter(|case| !case.2.is_empty()) {
        assert_eq!(
            held(REPOSITORY, &[(path, content)]),
            [(path.trim_end_matches('/').to_owned(), (*rule).to_owned())],
            "{path}: {content:?}"
        );
    }
}

#[test]
fn what_ordinary_work_leaves_in_a_repository_passes() {
    let cases: &[(&str, &str)] = &[
        (
            ".git/config",
            "[core]\n\tbare = false\n[core]\n\tpager = delta\n[user]\n\temail = a@b\n",
        ),
        (
            ".git/config",
            "[core]\n\tpager = delta\n[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n",
        ),
        (".git/HEAD", HEX),
        (".git/HEAD", "ref: refs/heads/x\n"),
        (".git/hooks/update.sample", "y"),
        (".git/hooks/", ""),
        (".git/refs/heads/config", HEX),
        (".git/refs/heads/hooks/x", HEX),
        (".git/logs/refs/heads/config", "x"),
        (".git/info/exclude", "x\n"),
        (
            ".git/info/attributes",
            "*.x text eol=lf diff=python\n*.big filter=lfs diff=lfs merge=lfs -text\n",
        ),
        (".git/objects/info/alternates", "../../other/.git/objects\n"),
        (".git/objects/ab/cdef", "x"),
        (
            ".git/rebase-merge/git-rebase-todo",
            "pick 1 exec\nfixup 2 x\n# exec y\n",
        ),
        (".git/rebase-merge/strategy", "ort\n"),
        (".git/MERGE_RR", ""),
        (".git/rebase-apply/apply-opt", "\n"),
        (".git/rebase-apply/apply-opt", " '-p2' '--whitespace=fix'\n"),
        (
            ".git/MERGE_RR",
            "0123456789012345678901234567890123456789\tsrc/a..b\x000123456789012345678901234567890123456789.1\tc\td\0",
        ),
        (".git/rr-cache/0123456789012345678901234567890123456789/preimage", "x"),
        (".git/worktrees/t/commondir", "../..\n"),
        (".git/worktrees/t/gitdir", "/home/u/work/t/.git\n"),
        (".git/worktrees/t/gitdir", "/tmp/t/.git\n"),
        (".git/worktrees/t/HEAD", HEX),
        (".git/modules/lib/config", "[core]\n\tworktree = ../../../lib\n"),
        ("t/.git", "gitdir: /home/u/work/.git/worktrees/t\n"),
        ("t/.git", "gitdir: /home/u/main/.git/worktrees/t\n"),
        ("lib/.git", "gitdir: ../.git/modules/lib\n"),
        (".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::x\n"),
        (".gitattributes", "* filter=x\n"),
        ("config", "[core]\nfsmonitor=x\n"),
        ("hooks/pre-commit", "x"),
        ("HEAD", "x"),
        ("src/link", "-> ../README"),
        (".venv/bin/python3", "-> /usr/bin/python3"),
        ("tool", "-> /home/u/.rustup/toolchains/x/bin/rustc"),
    ];
    for case in cases {
        assert_eq!(held(REPOSITORY, &[*case]), [], "{case:?}");
    }
}

#[test]
fn a_directory_is_a_repository_by_what_lies_in_it_whatever_comes_last() {
    let parts: [(&str, &str); 4] = [
        ("a/b/HEAD", "ref: refs/heads/main\n"),
        ("a/b/objects/", ""),
        ("a/b/refs/", ""),
        ("a/b/config", "[core]\nfsmonitor=./x\n"),
    ];
    for last in 0..parts.len() {
        let before: Vec<_> = parts
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != last)
            .map(|(_, part)| *part)
            .collect();
        let found = held(&before, &[parts[last]]);
        let rule = if last == 3 { "git.settings" } else { "git.layout" };
        let path = PathBuf::from(parts[last].0).display().to_string();
        assert_eq!(found, [(path, rule.to_owned())], "{:?}", parts[last]);
    }
    // Both of them at once: the one that runs something is held back, and in a tree that lives also what completes it.
    let [before, after] = [Files::default(), Files::with(&parts)];
    let around = Surroundings {
        root: Path::new(ROOT),
        home: None,
        before: &before,
        after: &after,
        leads: &[],
        toolchains: &[],
    };
    let path = Path::new("a/b/HEAD");
    let head = Change {
        path,
        from: None,
        before: None,
        after: after.entry(path).expect("in memory"),
    };
    assert_eq!(Gate::new(around).judge(&head), Decision::Pass);
    assert!(Gate::new(around).piecemeal().judge(&head).held_back().is_some());
    for (path, content) in [
        ("a/b/hooks/post-checkout", "x"),
        ("a/b/commondir", "../../evil"),
        ("a/b/config.worktree", "[core]\npager=x\n"),
    ] {
        let before = [(path, content), parts[1], parts[2]];
        let found = held(&before, &[parts[0]]);
        assert_eq!(found, [("a/b/HEAD".to_owned(), "git.layout".to_owned())], "{path}");
    }
    // The workspace itself.
    let top = held(
        &[("objects/", ""), ("refs/", ""), ("hooks/pre-commit", "x")],
        &[("HEAD", "ref: refs/heads/x\n")],
    );
    assert_eq!(top, [("HEAD".to_owned(), "git.layout".to_owned())]);
    // A bare repository as `git init --bare` makes it.
    let bare = [
        ("r.git/HEAD", "ref: refs/heads/main\n"),
        ("r.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"),
        ("r.git/objects/info/", ""),
        ("r.git/refs/heads/", ""),
        ("r.git/hooks/update.sample", "x"),
    ];
    assert_eq!(held(&[], &bare), []);
    // Without `HEAD`, linked trees still lead there.
    let leading = held(
        &[("r/worktrees/x/HEAD", HEX), ("r/objects/", ""), ("r/refs/", "")],
        &[("r/config", "[core]\npager=x\n")],
    );
    assert_eq!(leading, [("r/config".to_owned(), "git.settings".to_owned())]);
}

#[test]
fn a_link_that_lies_where_git_would_look_is_held_back_once_git_looks() {
    for (path, target) in [
        ("g/hooks", "-> ../h"),
        ("g/rebase-merge", "-> ../r"),
        ("g/sequencer", "-> ../r"),
        ("g/remotes", "-> ../h"),
        ("g/branches", "-> ../h"),
        ("g/info", "-> ../h"),
        ("g/logs", "-> ../h"),
        ("g/logs/refs/heads/main", "-> ../../../../h"),
        ("g/rr-cache", "-> ../h"),
        ("g/modules", "-> ../h"),
        ("g/modules/lib", "-> ../../h"),
        ("g/objects/info", "-> ../../h"),
        ("g/objects/info/alternates", "-> ../../../h"),
        ("g/index", "-> ../h"),
        ("g/config", "-> ../c"),
        ("g/COMMIT_EDITMSG", "-> ../c"),
    ] {
        let before = [("g/objects/", ""), ("g/refs/heads/", ""), (path, target)];
        let found = held(&before, &[("g/HEAD", "ref: refs/heads/main\n")]);
        assert_eq!(found, [("g/HEAD".to_owned(), "git.layout".to_owned())], "{path}");
    }
    for (path, content) in [
        ("g/README", "-> ../h"),
        ("g/src/hooks", "-> ../../h"),
        ("g/objects/ab/cd", "x"),
        ("g/logs/HEAD", "x"),
        ("g/hooks/update.sample", "x"),
    ] {
        let before = [("g/objects/", ""), ("g/refs/heads/", ""), (path, content)];
        assert_eq!(held(&before, &[("g/HEAD", "ref: refs/heads/main\n")]), [], "{path}");
    }
}

#[test]
fn held_settings_alone_are_taken_out_of_a_file() {
    let rest = |before: &[(&str, &str)], content: &str| {
        let before = Files::with(before);
        let mut after = before.clone();
        after.add(".git/config", content);
        let gate = over(&before, &after);
        let path = Path::new(".git/config");
        let change = Change {
            path,
            from: None,
            before: before.entry(path).expect("in memory"),
            after: after.entry(path).expect("in memory"),
        };
        let held = gate.judge(&change).held_back()?.clone();
        let rest = held.rest.map(|rest| String::from_utf8(rest).expect("it is text"));
        Some((held.because, rest))
    };
    let clone = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = /srv/x.git\n";
    let (because, is) = rest(
        &[],
        "[core]\n\trepositoryformatversion = 0\n\thooksPath = .githooks\n[remote \"origin\"]\n\turl = /srv/x.git\n",
    )
    .expect("held back");
    assert!(because.contains("core.hookspath"), "{because}");
    assert_eq!(is.as_deref(), Some(clone));
    // What the user had set is there again, and what else was set stays.
    let (because, is) = rest(
        REPOSITORY,
        "[core]\n\tbare = false\n[core]\n\tpager = ./x\n\teditor = code -n\n[user]\n\temail = a@b\n",
    )
    .expect("held back");
    assert!(
        because.contains("core.pager") && because.contains("core.editor"),
        "{because}"
    );
    let expected = "[core]\n\tbare = false\n[core]\n\tpager = delta\n[user]\n\temail = a@b\n";
    assert_eq!(is.as_deref(), Some(expected));
    // What git cannot read is taken back as a whole.
    let (_, is) = rest(REPOSITORY, "[core]\n\thooksPath = .githooks\n\tx = \"\n").expect("held back");
    assert_eq!(is, None);
}

#[test]
fn a_link_does_not_open_a_directory_of_packages_as_a_project() {
    for (target, path, content, is_held) in [
        ("node_modules/app", "node_modules/app/.vimrc", "x", true),
        (
            "node_modules/app",
            "node_modules/app/.vscode/tasks.json",
            "{\"tasks\": [",
            true,
        ),
        ("vendor/app", "vendor/app/deep/.envrc", "x", true),
        ("vendor/app", "vendor/app/.npmrc", "script-shell=x", true),
        (
            "./e/../site-packages",
            "site-packages/.claude/settings.json",
            "{\"hooks\": 1}",
            true,
        ),
        ("node_modules/none", "node_modules/app/index.js", "x", true),
        ("node_modules/app", "node_modules/app/.gdbinit", "-> ../x", true),
        ("node_modules/app", "node_modules/app/.vscode", "-> ../../e", true),
        (
            "node_modules/app",
            "node_modules/app/deep/.claude",
            "-> ../../../e",
            true,
        ),
        ("node_modules/app", "node_modules/app/lib", "-> ../../e", false),
        ("node_modules/app", "node_modules/app/index.js", "x", false),
        (
            "node_modules/app",
            "node_modules/app/.npmrc",
            "save-exact=true\n",
            false,
        ),
        ("node_modules/app", "node_modules/app/node_modules/b/.vimrc", "x", false),
        ("node_modules/app/x.js", "node_modules/app/x.js", "x", false),
    ] {
        let before = [("e/", ""), (path, content)];
        let found = held(&before, &[("app", &format!("-> {target}"))]);
        let expected = [("app".to_owned(), "tool.link".to_owned())];
        assert_eq!(found, if is_held { &expected[..] } else { &[] }, "{target}, {path}");
    }
    // Links between packages, and of a workspace's own packages, lead the other way.
    let before = [("packages/a/.vimrc", "x"), ("node_modules/b/.vimrc", "x")];
    for (path, target) in [
        ("node_modules/a", "-> ../packages/a"),
        ("node_modules/c", "-> b"),
        ("packages/a/node_modules", "-> ../../node_modules"),
    ] {
        assert_eq!(held(&before, &[(path, target)]), [], "{path}");
    }
}

#[test]
fn a_directory_of_packages_that_a_link_opens_is_judged_from_then_on() {
    let after = Files::with(&[
        ("node_modules/app/.vimrc", "x"),
        ("node_modules/app/index.js", "x"),
        ("node_modules/app/.npmrc", "save-exact=true\n"),
        ("node_modules/app/node_modules/c/.vimrc", "x"),
        ("node_modules/b/.vimrc", "x"),
        ("app", "-> node_modules/app"),
        ("node_modules/c", "-> app"),
        ("file.js", "-> node_modules/app/index.js"),
    ]);
    let before = Files::default();
    let around = |leads| Surroundings {
        root: Path::new(ROOT),
        home: None,
        before: &before,
        after: &after,
        leads,
        toolchains: &[],
    };
    let lead = |path: &str| Gate::new(around(&[])).opened_by(Path::new(path)).expect("in memory");
    assert_eq!(
        (lead("node_modules/c"), lead("file.js"), lead("node_modules/app")),
        (None, None, None)
    );
    let leads = [lead("app").expect("it leads there")];
    let gate = Gate::new(around(&leads));
    for (path, is_held) in [
        ("node_modules/app/.vimrc", true),
        ("node_modules/app/index.js", false),
        ("node_modules/app/.npmrc", false),
        ("node_modules/app/node_modules/c/.vimrc", false),
        ("node_modules/b/.vimrc", false),
    ] {
        let path = Path::new(path);
        let change = Change {
            path,
            from: None,
            before: None,
            after: after.entry(path).expect("in memory"),
        };
        assert_eq!(gate.judge(&change).held_back().is_some(), is_held, "{path:?}");
    }
}

#[test]
fn what_the_settings_of_the_user_lead_to_is_held_back_and_its_neighbour_is_not() {
    let before = [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (
            ".git/config",
            "[include]\n\tpath = ../.gitsettings\n[core]\n\thooksPath = .ours\n[filter \"x\"]\n\tclean = sh tools/clean %f\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\
             [alias]\n\tt = !make test && cd docs && ./build\n\tl = !git log --stat -- src/lib\n[core]\n\tpager = less -R\n\teditor = ./bin/edit --wait\n",
        ),
        (".gitsettings", "[include]\n\tpath = more\n"),
        ("tools/clean", "x"),
    ];
    for (path, content, rule) in [
        (".gitsettings", "[core]\n\tpager = x\n", Some("git.settings")),
        (".gitsettings", "[user]\n\tname = x\n", None),
        ("more", "[core]\n\teditor = x\n", Some("git.settings")),
        (".ours/pre-commit", "x", Some("git.named")),
        ("tools/clean", "y", Some("git.named")),
        ("tools/clean", "-> other", Some("git.named")),
        ("tools/other", "y", None),
        ("clean", "y", None),
        // A word of a command is the name of a file that it may run, and of any directory.
        ("test/new.rs", "y", None),
        ("docs/index.md", "y", None),
        ("src/lib/mod.rs", "y", None),
        ("less/a", "y", None),
        ("build", "y", Some("git.named")),
        ("test", "y", Some("git.named")),
        ("bin/edit", "y", Some("git.named")),
        ("bin/other", "y", None),
    ] {
        let expected: Vec<_> = rule
            .map(|rule| (path.to_owned(), rule.to_owned()))
            .into_iter()
            .collect();
        assert_eq!(held(&before, &[(path, content)]), expected, "{path}");
    }
}

#[test]
fn what_was_moved_as_a_whole_passes_and_what_got_another_meaning_does_not() {
    let before = Files::with(&[
        ("a/.git/HEAD", HEX),
        ("a/.git/hooks/pre-commit", "x"),
        ("a/.git/config", "[core]\nfsmonitor=y\n"),
        ("inert/hooks/pre-commit", "x"),
        ("inert/config", "[core]\nfsmonitor=y\n"),
    ]);
    let after = Files::with(&[
        ("b/.git/HEAD", HEX),
        ("b/.git/hooks/pre-commit", "x"),
        ("b/.git/config", "[core]\nfsmonitor=y\n"),
    ]);
    let gate = over(&before, &after);
    for name in ["HEAD", "hooks/pre-commit", "config"] {
        for (from, is_held) in [
            (format!("a/.git/{name}"), false),
            (format!("inert/{name}"), name != "HEAD"),
        ] {
            let path = PathBuf::from(format!("b/.git/{name}"));
            let Some(was) = before.entry(Path::new(&from)).expect("in memory") else {
                continue;
            };
            let change = Change {
                path: &path,
                from: Some(Path::new(&from)),
                before: Some(was),
                after: after.entry(&path).expect("in memory"),
            };
            assert_eq!(gate.judge(&change).held_back().is_some(), is_held, "{from}");
        }
    }
}

#[test]
fn settings_that_were_there_pass_also_where_gits_lock_file_is_renamed_over_them() {
    let own = "[include]\npath = ../mine\n";
    for (now, is_held) in [
        (format!("{own}[remote \"o\"]\nurl = https://h/x\n"), false),
        (format!("{own}[core]\nfsmonitor = y\n"), true),
    ] {
        // The lock file was seen before anything stood in it.
        let before = Files::with(&[(".git/HEAD", HEX), (".git/config", own), (".git/config.lock", "")]);
        let after = Files::with(&[(".git/HEAD", HEX), (".git/config", &now)]);
        let gate = over(&before, &after);
        let (path, lock) = (Path::new(".git/config"), Path::new(".git/config.lock"));
        let change = Change {
            path,
            from: Some(lock),
            before: before.entry(lock).expect("in memory"),
            after: after.entry(path).expect("in memory"),
        };
        assert_eq!(gate.judge(&change).held_back().is_some(), is_held, "{now}");
    }
}

#[test]
fn what_no_tree_should_hold_is_held_back_anywhere() {
    let before = Files::default();
    for (path, entry, rule) in [
        (
            "x",
            Entry {
                mode: 0o4755,
                ..Entry::file(0, 1)
            },
            Some("mode.set-id"),
        ),
        (
            "x",
            Entry {
                mode: 0o2755,
                ..Entry::file(0, 1)
            },
            Some("mode.set-id"),
        ),
        (
            "x/",
            Entry {
                mode: 0o2755,
                ..Entry::directory(0)
            },
            None,
        ),
        (
            "x",
            Entry {
                kind: Kind::Device,
                ..Entry::file(0o644, 0)
            },
            Some("kind.device"),
        ),
        (
            "x",
            Entry {
                kind: Kind::Fifo,
                ..Entry::file(0o644, 0)
            },
            Some("kind.special"),
        ),
        (
            "x",
            Entry {
                kind: Kind::Socket,
                ..Entry::file(0o644, 0)
            },
            Some("kind.special"),
        ),
        ("x", Entry::link("/home/u/.bashrc"), Some("link.outside")),
        ("d/x", Entry::link("../../../.ssh/config"), Some("link.outside")),
        ("d/x", Entry::link("../y"), None),
        ("x", Entry::link("/home/u/work/y"), None),
        ("x", Entry::link("../work/y"), None),
        ("x", Entry::link("/dev/null"), None),
        ("x", Entry::link("x"), None),
        ("x", Entry::link("/etc/passwd"), Some("link.outside")),
        ("a\nb", Entry::file(0o644, 0), Some("name.control")),
        ("a\u{1b}[2J", Entry::file(0o644, 0), Some("name.control")),
        ("a\u{202e}b", Entry::file(0o644, 0), Some("name.control")),
        ("é ü", Entry::file(0o644, 0), None),
        (
            ".git/x",
            Entry {
                links: 2,
                ..Entry::file(0o644, 0)
            },
            Some("git.hard-link"),
        ),
        (
            ".git/COMMIT_EDITMSG",
            Entry {
                links: 2,
                ..Entry::file(0o644, 0)
            },
            Some("git.hard-link"),
        ),
        (
            ".git/objects/ab/c",
            Entry {
                links: 2,
                ..Entry::file(0o444, 0)
            },
            None,
        ),
        (
            "x",
            Entry {
                links: 2,
                ..Entry::file(0o644, 0)
            },
            None,
        ),
    ] {
        let mut after = Files::default();
        after.put(path, entry.clone(), "");
        let found = held_in(None, &before, &after);
        assert_eq!(
            found.iter().map(|(_, rule)| rule.as_str()).next(),
            rule,
            "{path:?}: {entry:?}"
        );
    }
    // What was so already is the user's.
    let mut was = Files::default();
    was.put(
        "x",
        Entry {
            mode: 0o4755,
            ..Entry::file(0, 1)
        },
        "a",
    );
    was.add("l", "-> /home/u/.bashrc");
    let mut is = was.clone();
    is.put(
        "x",
        Entry {
            mode: 0o4755,
            ..Entry::file(0, 1)
        },
        "b",
    );
    assert_eq!(held_in(None, &was, &is), []);
}

#[test]
fn links_are_followed_through_links() {
    let before = [("d", "-> e/f"), ("e/f/", "")];
    let found = held(&before, &[("x", "-> d/../../.."), ("y", "-> d/../z")]);
    assert_eq!(found, [("x".to_owned(), "link.outside".to_owned())]);
    let found = held(
        &[("d", "-> .git")],
        &[(".git/config", "[user]\nname=x\n"), ("d2", "-> .git/hooks")],
    );
    assert_eq!(found, []);
}

/// A path that fits a pattern of the table.
fn example(pattern: &str) -> String {
    pattern.replace("**", "some/thing").replace('*', "x")
}

#[test]
fn each_row_of_the_table_judges_its_own_examples() {
    for row in rows() {
        for name in row.names {
            let path = example(name);
            let (home, deep): (_, &[&str]) = match row.scope {
                Scope::Anywhere | Scope::Project => (None, &["", "packages/a/"]),
                Scope::StartUp | Scope::Home => (Some(ROOT), &[""]),
            };
            for above in deep {
                let path = format!("{above}{path}");
                let judged = |before: Option<&str>, content: &str| {
                    let before: Vec<_> = before.map(|before| (path.as_str(), before)).into_iter().collect();
                    let before = Files::with(&before);
                    let mut after = before.clone();
                    after.add(&path, content);
                    held_in(home, &before, &after)
                };
                match row.judge {
                    Judge::Pass => assert_eq!(judged(None, "x"), [], "{path}"),
                    Judge::Hold | Judge::HoldAtEnd => {
                        assert_eq!(judged(None, "x").len(), 1, "{path}");
                        assert_eq!(judged(Some("y"), "x").len(), 1, "{path}");
                    }
                    Judge::HoldIfThere => {
                        assert_eq!(judged(None, "x"), [], "{path}");
                        assert_eq!(judged(Some("y"), "x").len(), 1, "{path}");
                    }
                    Judge::Content(_) => {
                        let (passes, holds) = row.examples;
                        assert!(!passes.is_empty() && !holds.is_empty(), "{path} has examples");
                        for content in passes {
                            assert_eq!(judged(None, content), [], "{path}: {content}");
                        }
                        for content in holds {
                            assert_eq!(judged(None, content).len(), 1, "{path}: {content}");
                            assert_eq!(judged(Some(content), content), [], "{path}, as it was: {content}");
                        }
                    }
                }
                let passes = matches!(row.judge, Judge::Pass | Judge::HoldIfThere);
                assert_eq!(judged(None, "-> elsewhere").is_empty(), passes, "{path}, as a link");
            }
        }
    }
}

#[test]
fn a_directory_of_settings_is_no_link() {
    for name in [
        ".config/mise",
        "mise",
        ".vscode",
        ".claude",
        ".idea",
        ".husky",
        ".cargo",
        "a/.zed",
    ] {
        assert_eq!(
            held(&[], &[(name, "-> elsewhere")]),
            [(name.to_owned(), "tool.link".to_owned())]
        );
    }
    assert_eq!(held(&[], &[("node_modules/a/.vscode", "-> elsewhere")]), []);
}

#[test]
fn a_mark_by_which_a_user_trusts_the_programs_of_a_repository_is_held_back() {
    let safe = |before: &[(&str, &str)], path: &str| held(before, &[(path, "")]);
    assert_eq!(
        safe(REPOSITORY, ".git/safe/"),
        [(".git/safe/".to_owned(), "git.safe".to_owned())]
    );
    assert_eq!(safe(&[(".git/safe/", "")], ".git/safe/x"), []);
    assert_eq!(safe(REPOSITORY, "safe/"), []);
    assert_eq!(safe(REPOSITORY, ".git/refs/heads/safe/"), []);
}

#[test]
fn judging_a_large_hostile_file_ends_soon() {
    let many = "[user]\n\tname = a\n".repeat(60_000);
    let long = format!("gitdir: {}", "a/".repeat(500_000));
    let keys = format!("{{\"{}\": [{}]}}", "k".repeat(400_000), "1,".repeat(200_000));
    let started = std::time::Instant::now();
    assert_eq!(held(&[], &[(".git/config", &many)]), []);
    assert_eq!(held(&[], &[("a/.git", &long)]).len(), 1);
    assert_eq!(held(&[], &[(".vscode/settings.json", &keys)]).len(), 1);
    assert_eq!(
        held(
            &[],
            &[(".cargo/config.toml", &format!("[{}]\nx=1\n", "a.".repeat(100_000)))]
        )
        .len(),
        1
    );
    // Some 0.1 s; without the bounds it takes minutes.
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn what_packages_bring_passes_but_for_repositories() {
    for (path, content) in [
        ("node_modules/a/.vscode/settings.json", "{\"x\": 1}"),
        ("node_modules/a/.npmrc", "script-shell=x"),
        ("node_modules/.bin/x", "-> ../a/x.js"),
        ("vendor/a/.cargo/config.toml", "[build]\nrustc=\"x\""),
        (".venv/lib/python3/site-packages/a/.pdbrc", "x"),
    ] {
        assert_eq!(held(&[], &[(path, content)]), [], "{path}");
    }
    let found = held(&[], &[("node_modules/a/.git/config", "[core]\nfsmonitor=x")]);
    assert_eq!(found.len(), 1);
}

#[test]
fn projects_content_passes() {
    for path in [
        "Makefile",
        "package.json",
        "src/main.rs",
        "build.rs",
        "setup.py",
        "pyproject.toml",
        "CMakeLists.txt",
        "Dockerfile",
        ".github/workflows/ci.yml",
        ".gitignore",
        ".editorconfig",
        "CLAUDE.md",
        "AGENTS.md",
        ".env",
        "scripts/run.sh",
        "Cargo.toml",
        "tsconfig.json",
        ".eslintrc.json",
        "justfile",
        "flake.nix",
        "bin/tool",
        ".bashrc",
        ".config/app.toml",
        ".vscode/launch.json",
        ".clang-format",
        ".dockerignore",
        "node_modules/a/index.js",
    ] {
        assert_eq!(held(&[], &[(path, "x")]), [], "{path}");
    }
}

#[test]
fn start_up_files_count_in_a_home_wherever_the_workspace_is_in_it() {
    let judged = |home: &str, before: &[(&str, &str)], path: &str| {
        let before = Files::with(before);
        let mut after = before.clone();
        after.add(path, "x");
        held_in(Some(home), &before, &after)
            .into_iter()
            .map(|(_, rule)| rule)
            .collect::<Vec<_>>()
    };
    let held = ["home.start-up"];
    // The home is the workspace, lies in it, or holds it.
    assert_eq!(judged(ROOT, &[], ".bashrc"), held);
    assert_eq!(judged("/home/u/work/h", &[], "h/.local/bin/x"), held);
    assert_eq!(judged("/home/u/work/h", &[], ".local/bin/x"), [""; 0]);
    assert_eq!(judged("/home", &[], "x"), [""; 0]);
    // What a link in the home may lead to.
    assert_eq!(judged("/home/u", &[(".bashrc", "y")], ".bashrc"), held);
    assert_eq!(judged("/home/u", &[], ".bashrc"), [""; 0]);
}
