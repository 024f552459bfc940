use super::*;
use std::os::unix::fs::symlink;

struct Tree(
    #[expect(dead_code, reason = "removes the directory when it is dropped")] tempfile::TempDir,
    PathBuf,
);

impl Tree {
    fn with(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            if file.ends_with('/') {
                fs::create_dir_all(&path)
            } else {
                fs::write(&path, "")
            }
            .expect("made");
        }
        Self(directory, root)
    }

    fn find(&self, home: &str) -> Protection {
        find(&scope(&self.1, &self.1.join(home))).expect("there is little")
    }
}

fn scope<'a>(workspace: &'a Path, home: &'a Path) -> Scope<'a> {
    Scope {
        workspace,
        home,
        on_path: &[],
        outside: None,
        fixed: &[],
        fixed_alone: false,
        executable: true,
    }
}

/// Protected; watched; pinned.
fn sorted(found: &Protection, root: &Path) -> [Vec<String>; 3] {
    let mut sorted: [Vec<String>; 3] = Default::default();
    let shown = |path: &Path| path.strip_prefix(root).expect("in the workspace").display().to_string();
    for entry in &found.entries {
        let (place, path) = match entry {
            Entry::Protect { target } => (0, target),
            Entry::Again {
                target, writable: true, ..
            } => (2, target),
            other => panic!("{other:?}"),
        };
        sorted[place].push(shown(path));
    }
    sorted[1].extend(found.watched.iter().map(|path| shown(path)));
    sorted
}

const GIT: [&str; 4] = [".git/HEAD", ".git/objects/", ".git/config", ".git/hooks/x"];

#[test]
fn an_empty_workspace_watches_three_names_and_leaves_git_init_alone() {
    let tree = Tree::with(&[]);
    assert_eq!(
        sorted(&tree.find("/elsewhere"), &tree.1),
        [vec![], vec![".vscode", ".claude", ".cursor"], vec![]]
            .map(|names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
    );
}

#[test]
fn hooks_and_settings_are_protected_and_their_neighbours_stay_open() {
    let tree = Tree::with(&GIT);
    let [protected, _, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, [".git/hooks", ".git/config"]);
    assert_eq!(pinned, [".git"], "so that it cannot be moved away");
}

#[test]
fn names_are_watched_whether_or_not_something_stands_there() {
    let tree = Tree::with(&[".vscode/", ".git/HEAD", ".git/hooks/x"]);
    let [protected, watched, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, [".vscode", ".git/hooks"]);
    assert_eq!(
        watched,
        [
            ".vscode",
            ".claude",
            ".cursor",
            ".git/hooks",
            ".git/config",
            ".git/config.worktree",
            ".git/commondir"
        ]
    );
}

#[test]
fn hooks_and_settings_that_are_named_and_not_there_are_watched() {
    let tree = Tree::with(&GIT);
    fs::write(
        tree.1.join(".git/config"),
        "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../more.config\n\tpath = ~/.gitconfig.more\n\tpath = /etc/x\n",
    )
    .expect("written");
    let [_, watched, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    for name in [".husky/_", "more.config"] {
        assert!(watched.contains(&name.to_owned()), "{name}: {watched:?}");
    }
}

#[test]
fn ordinary_large_workspaces_are_protected_whole() {
    let mut files: Vec<String> = (0..1_000).map(|number| format!("package-{number}/x")).collect();
    files.extend((0..100).map(|number| format!("nested-{number}/.git/config")));
    for number in 0..200 {
        let module = format!(".git/modules/lib/{number}");
        files.extend(["HEAD", "config", "objects/x", "hooks/x"].map(|name| format!("{module}/{name}")));
    }
    let files: Vec<&str> = GIT.into_iter().chain(files.iter().map(String::as_str)).collect();
    let tree = Tree::with(&files);
    let [protected, _, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    for number in 0..200 {
        for name in ["hooks", "config"] {
            let path = format!(".git/modules/lib/{number}/{name}");
            assert!(protected.contains(&path), "{path}");
        }
    }
    for number in 0..100 {
        let path = format!("nested-{number}/.git/config");
        assert!(protected.contains(&path), "{path}");
    }
}

/// What is said where there is more than is looked after.
fn refusal(tree: &Tree) -> String {
    let found = find(&scope(&tree.1, Path::new("/elsewhere")));
    found.expect_err("a bound is exceeded").to_string()
}

#[test]
fn what_exceeds_a_bound_is_refused_by_its_name() {
    let deep = (0..=MODULE_DEPTH).fold(".git/modules".to_owned(), |path, level| format!("{path}/{level}"));
    let deep = format!("{deep}/");
    let long = Tree::with(&GIT);
    fs::write(long.1.join(".git/config"), "#".repeat(LONGEST + 1)).expect("written");
    let trees: Vec<String> = (0..=LINKED_TREES)
        .map(|number| format!(".git/worktrees/{number}/"))
        .collect();
    let trees: Vec<&str> = GIT.into_iter().chain(trees.iter().map(String::as_str)).collect();
    let named = Tree::with(&GIT);
    fs::write(named.1.join(".git/config"), "[include]\npath = x/y\n".repeat(NAMED + 1)).expect("written");
    let modules: Vec<String> = (0..=GIT_DIRECTORIES)
        .flat_map(|number| ["HEAD", "objects/"].map(|name| format!(".git/modules/{number}/{name}")))
        .collect();
    let modules: Vec<&str> = GIT.into_iter().chain(modules.iter().map(String::as_str)).collect();
    for (tree, said) in [
        (Tree::with(&[&GIT[..], &[&deep]].concat()), "more than 16 levels"),
        (long, "more than 1048576 bytes"),
        (Tree::with(&trees), "more than 1000 linked trees"),
        (named, "more than 1000 settings"),
        (Tree::with(&modules), "more than 2000 repositories"),
    ] {
        let message = refusal(&tree);
        assert!(
            message.contains(said) && message.contains("--open-protected"),
            "{said}: {message}"
        );
    }
}

#[test]
fn submodules_linked_trees_and_repositories_one_level_below_are_protected_too() {
    let tree = Tree::with(
        &[
            &GIT[..],
            &[
                ".git/modules/a/b/HEAD",
                ".git/modules/a/b/objects/",
                ".git/modules/a/b/config",
                ".git/worktrees/t/commondir",
                ".git/worktrees/t/gitdir",
                "nested/.git/HEAD",
                "nested/.git/config",
                "nested/.git/hooks/x",
                "deep/er/.git/config",
            ],
        ]
        .concat(),
    );
    let [protected, watched, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    for path in [
        ".git/modules/a/b/config",
        ".git/worktrees/t/commondir",
        ".git/worktrees/t/gitdir",
        "nested/.git/config",
    ] {
        assert!(protected.contains(&path.to_owned()), "{path}: {protected:?}");
    }
    for path in [".git/modules/a/b/hooks", "nested/.git/hooks"] {
        assert!(watched.contains(&path.to_owned()), "{path}: {watched:?}");
    }
    for path in ["nested", "nested/.git", ".git/modules", ".git/worktrees/t"] {
        assert!(pinned.contains(&path.to_owned()), "{path}: {pinned:?}");
    }
    assert!(
        !protected.iter().any(|path| path.starts_with("deep")),
        "as the module says"
    );
}

#[test]
fn hooks_and_settings_elsewhere_in_the_workspace_are_followed_and_outside_are_not() {
    let tree = Tree::with(&[&GIT[..], &["tools/hooks/", "shared.config"]].concat());
    fs::write(
        tree.1.join(".git/config"),
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../shared.config\n\tpath = /etc/hosts\n",
    )
    .expect("written");
    let [protected, _, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert!(protected.contains(&"tools/hooks".to_owned()) && protected.contains(&"shared.config".to_owned()));
    assert!(pinned.contains(&"tools".to_owned()));
}

#[test]
fn programs_that_the_settings_name_are_protected_and_other_values_are_not() {
    let tree = Tree::with(&[&GIT[..], &["tools/watch", "tools/clean", "main/x", "plain"]].concat());
    let text = "[core]\n\tfsmonitor = ./tools/watch\n[filter \"x\"]\n\tclean = \"tools/clean --all\"\n[branch \"b\"]\n\tmerge = main/y\n\tremote = plain\n";
    fs::write(tree.1.join(".git/config"), text).expect("written");
    let [protected, _, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, [".git/hooks", ".git/config", "tools/watch", "tools/clean"]);
    assert!(pinned.contains(&"tools".to_owned()));
}

#[test]
fn a_bare_repository_that_is_the_workspace_is_protected() {
    let tree = Tree::with(&["HEAD", "objects/", "config", "hooks/x", "refs/"]);
    let [protected, watched, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, ["hooks", "config"]);
    assert!(watched.contains(&"hooks".to_owned()) && watched.contains(&"commondir".to_owned()));
}

#[test]
fn start_up_files_are_protected_where_they_are_and_watched_where_the_workspace_is_the_home() {
    let tree = Tree::with(&[".bashrc", "bin/x", "home/.ssh/", "home/.config/fish/", "home/bin/x"]);
    let elsewhere = tree.find("/elsewhere");
    assert_eq!(sorted(&elsewhere, &tree.1)[0], [".bashrc"], "`bin` is the project's");
    assert!(
        !elsewhere.watched.contains(&tree.1.join(".zshrc")),
        "{:?}",
        elsewhere.watched
    );

    let here = tree.find("");
    assert_eq!(sorted(&here, &tree.1)[0], [".bashrc", "bin"]);
    assert!(here.watched.contains(&tree.1.join(".bash_login")));

    let below = tree.find("home");
    let [protected, watched, pinned] = sorted(&below, &tree.1);
    assert_eq!(protected, [".bashrc", "home/.config/fish", "home/.ssh", "home/bin"]);
    assert!(watched.contains(&"home/.vscode".to_owned()));
    assert_eq!(pinned, ["home", "home/.config"]);
    assert!(below.watched.contains(&tree.1.join("home/.bashrc")) && !below.watched.contains(&tree.1.join(".zshrc")));
}

#[test]
fn a_protected_link_is_protected_with_what_it_leads_to_in_the_workspace() {
    let tree = Tree::with(&["real/settings/"]);
    symlink("real/settings", tree.1.join(".vscode")).expect("linked");
    symlink("/etc", tree.1.join(".idea")).expect("linked");
    let [protected, _, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, [".vscode", "real/settings", ".idea"]);
    assert_eq!(pinned, ["real"]);
}
