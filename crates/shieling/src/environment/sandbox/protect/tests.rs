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
        find(&self.1, &self.1.join(home), None, true)
    }
}

/// Protected and not reserved; reserved; pinned.
fn sorted(found: &Protection, root: &Path) -> [Vec<String>; 3] {
    let mut sorted: [Vec<String>; 3] = Default::default();
    for entry in &found.entries {
        let (place, path) = match entry {
            Entry::Protect { target, reserve } => (usize::from(*reserve), target),
            Entry::Again {
                target, writable: true, ..
            } => (2, target),
            other => panic!("{other:?}"),
        };
        sorted[place].push(path.strip_prefix(root).expect("in the workspace").display().to_string());
    }
    sorted
}

const GIT: [&str; 4] = [".git/HEAD", ".git/objects/", ".git/config", ".git/hooks/x"];

#[test]
fn an_empty_workspace_reserves_three_names_and_leaves_git_init_alone() {
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
    let [protected, reserved, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, [".git/config"]);
    assert_eq!(reserved, [".vscode", ".claude", ".cursor", ".git/hooks"]);
    assert_eq!(pinned, [".git"], "so that it cannot be moved away");
}

#[test]
fn a_reserved_name_that_is_there_is_reserved_too_since_it_may_be_another_sandboxs_and_go() {
    let tree = Tree::with(&[".vscode/", ".claude/settings.json", ".git/HEAD", ".git/hooks/x"]);
    let [protected, reserved, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, Vec::<String>::new());
    assert_eq!(reserved, [".vscode", ".claude", ".cursor", ".git/hooks"]);
}

#[test]
fn what_would_redirect_git_and_cannot_be_reserved_is_watched() {
    let tree = Tree::with(&GIT);
    let watched = tree.find("/elsewhere").watched;
    assert_eq!(
        watched,
        [tree.1.join(".git/config.worktree"), tree.1.join(".git/commondir")]
    );
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
    let [protected, reserved, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    for path in [
        ".git/modules/a/b/config",
        ".git/worktrees/t/commondir",
        ".git/worktrees/t/gitdir",
        "nested/.git/config",
    ] {
        assert!(protected.contains(&path.to_owned()), "{path}: {protected:?}");
    }
    for path in [".git/modules/a/b/hooks", "nested/.git/hooks"] {
        assert!(reserved.contains(&path.to_owned()), "{path}: {reserved:?}");
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
    assert_eq!(protected, [".git/config", "tools/watch", "tools/clean"]);
    assert!(pinned.contains(&"tools".to_owned()));
}

#[test]
fn a_bare_repository_that_is_the_workspace_is_protected() {
    let tree = Tree::with(&["HEAD", "objects/", "config", "hooks/x", "refs/"]);
    let [protected, reserved, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, ["config"]);
    assert_eq!(reserved, [".vscode", ".claude", ".cursor", "hooks"]);
}

#[test]
fn start_up_files_are_protected_where_they_are_and_watched_where_the_workspace_is_the_home() {
    let tree = Tree::with(&[".bashrc", "bin/x", "home/.ssh/", "home/.config/fish/", "home/bin/x"]);
    let elsewhere = tree.find("/elsewhere");
    assert_eq!(sorted(&elsewhere, &tree.1)[0], [".bashrc"], "`bin` is the project's");
    assert_eq!(elsewhere.watched, Vec::<PathBuf>::new());

    let here = tree.find("");
    assert_eq!(sorted(&here, &tree.1)[0], [".bashrc", "bin"]);
    assert!(here.watched.contains(&tree.1.join(".bash_login")));

    let below = tree.find("home");
    let [protected, reserved, pinned] = sorted(&below, &tree.1);
    assert_eq!(protected, [".bashrc", "home/.config/fish", "home/.ssh", "home/bin"]);
    assert!(reserved.contains(&"home/.vscode".to_owned()));
    assert_eq!(pinned, ["home", "home/.config"]);
    assert!(below.watched.contains(&tree.1.join("home/.bashrc")) && !below.watched.contains(&tree.1.join(".zshrc")));
}

#[test]
fn a_protected_link_is_protected_with_what_it_leads_to_in_the_workspace() {
    let tree = Tree::with(&["real/settings/"]);
    symlink("real/settings", tree.1.join(".vscode")).expect("linked");
    symlink("/etc", tree.1.join(".idea")).expect("linked");
    let [protected, reserved, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, ["real/settings", ".idea"]);
    assert!(reserved.contains(&".vscode".to_owned()));
    assert_eq!(pinned, ["real"]);
}
