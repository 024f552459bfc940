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
        led_to: &[],
        bounds: Bounds::ALL,
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

#[test]
fn what_exceeds_a_bound_is_refused_by_its_name() {
    let all = Bounds::ALL;
    let tree = Tree::with(
        &[
            &GIT[..],
            &[
                "a/b",
                "c/.git/config",
                ".git/modules/d/e/f/",
                ".git/worktrees/t/gitdir",
                ".git/worktrees/u/",
            ],
            &["tools/x", "more", "link/"],
        ]
        .concat(),
    );
    fs::write(
        tree.1.join(".git/config"),
        "[include]\n\tpath = ../more\n[filter \"x\"]\n\tclean = tools/x\n",
    )
    .expect("written");
    symlink("link", tree.1.join(".vscode")).expect("linked");
    let refused = |bounds| {
        let mut scope = scope(&tree.1, Path::new("/elsewhere"));
        scope.bounds = bounds;
        find(&scope).expect_err("a bound is exceeded").to_string()
    };
    for (bounds, said) in [
        (Bounds { top: 3, ..all }, "more than 3 entries"),
        (
            Bounds {
                git_directories: 1,
                ..all
            },
            "more than 1 repositories",
        ),
        (
            Bounds {
                module_directories: 2,
                ..all
            },
            "more than 2 directories",
        ),
        (Bounds { module_depth: 1, ..all }, "more than 1 levels"),
        (Bounds { linked_trees: 1, ..all }, "more than 1 linked trees"),
        (Bounds { named: 1, ..all }, "more than 1 settings"),
        (Bounds { included: 1, ..all }, "more than 1 files of settings"),
        (Bounds { mounts: 4, ..all }, "more than 4 protected"),
        (Bounds { links: 0, ..all }, "more than 0 links"),
    ] {
        let message = refused(bounds);
        assert!(
            message.contains(said) && message.contains("--open-protected"),
            "{said}: {message}"
        );
    }
    let mut within = scope(&tree.1, Path::new("/elsewhere"));
    within.bounds = Bounds {
        top: 20,
        git_directories: 2,
        module_directories: 3,
        module_depth: 3,
        linked_trees: 2,
        named: 2,
        included: 5,
        mounts: 30,
        links: 1,
    };
    assert!(find(&within).is_ok(), "{:?}", find(&within));
    fs::write(tree.1.join(".git/config"), "#".repeat(LONGEST + 1)).expect("written");
    assert!(refused(all).contains("more than 1048576 bytes"));
}

/// Takes all permissions from a path for as long as it is held.
struct Shut(PathBuf, fs::Permissions);

impl Shut {
    fn with(path: &Path, mode: u32) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let before = fs::metadata(path).expect("there").permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
        Self(path.to_path_buf(), before)
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        fs::set_permissions(&self.0, self.1.clone()).expect("ours");
    }
}

#[test]
fn a_directory_that_is_closed_is_protected_as_a_whole_and_not_taken_for_an_empty_one() {
    if rustix::process::geteuid().is_root() {
        // Nothing is closed to it; these tests run again as an ordinary user.
        return;
    }
    let names = [
        ".git/modules/m/HEAD",
        ".git/modules/m/objects/",
        "sub/.git/config",
        ".vscode/x",
    ];
    for (closed, mode) in [
        (".git/modules", 0o000),
        (".git/modules", 0o300),
        ("sub", 0o000),
        ("sub", 0o600),
        ("sub/.git", 0o000),
        (".git", 0o000),
        (".git/modules/m", 0o000),
    ] {
        let tree = Tree::with(&[&GIT[..], &names].concat());
        let shut = Shut::with(&tree.1.join(closed), mode);
        let [protected, watched, _] = sorted(&tree.find("/elsewhere"), &tree.1);
        drop(shut);
        assert!(
            protected.contains(&closed.to_owned()),
            "{closed} {mode:o}: {protected:?}"
        );
        assert!(
            !watched
                .iter()
                .any(|path| Path::new(path).starts_with(closed) && path != closed),
            "nothing in {closed} is taken for absent: {watched:?}"
        );
    }
    for (closed, mode) in [("", 0o000), ("", 0o300), (".git/config", 0o000)] {
        let tree = Tree::with(&[&GIT[..], &names].concat());
        let shut = Shut::with(&tree.1.join(closed), mode);
        let refused = find(&scope(&tree.1, Path::new("/elsewhere")));
        drop(shut);
        let told = refused.expect_err("what is in it is not known").to_string();
        assert!(
            told.contains("chmod u+rwX") && told.contains(closed),
            "{closed}: {told}"
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
    assert_eq!(protected, [".git/hooks", ".git/config", "tools/clean", "tools/watch"]);
    assert!(pinned.contains(&"tools".to_owned()));
}

#[test]
fn settings_and_programs_are_found_in_every_form_that_git_reads() {
    let files = [
        "inc2",
        "evil/x",
        "tools/smudge",
        "tools/y.sh",
        "tools/tc",
        "tools/in",
        "deep/inc3",
        "deep/inc4",
    ];
    let tree = Tree::with(&[&GIT[..], &files].concat());
    let text = "[include]\n path = ../inc2 ; comment\n[core]\n hooksPath = \\\n  evil\n\
                [filter \"f\"] smudge = 'tools/smudge' %f\n[alias]\n y = \"!bash tools/y.sh\"\n\
                [diff \"d\"]\n textconv = sh tools/tc\n[includeIf \"gitdir:**\"] path = \"../deep/inc3\" # c\n";
    fs::write(tree.1.join(".git/config"), text).expect("written");
    fs::write(
        tree.1.join("deep/inc3"),
        "[include]\n\tpath = inc4\n\tpath = inc3\n\tpath = inc5\n",
    )
    .expect("written");
    fs::write(tree.1.join("deep/inc4"), "[core]\n\tfsmonitor = ./tools/in\n").expect("written");
    let [protected, watched, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    let whole = [
        "inc2",
        "evil",
        "tools/smudge",
        "tools/y.sh",
        "tools/tc",
        "tools/in",
        "deep/inc3",
        "deep/inc4",
    ];
    for name in whole {
        assert!(protected.contains(&name.to_owned()), "{name}: {protected:?}");
    }
    assert!(watched.contains(&"deep/inc5".to_owned()), "{watched:?}");
}

#[test]
fn settings_of_a_linked_tree_and_of_a_submodule_name_files_from_their_own_trees() {
    let files = [
        ".git/worktrees/t/gitdir",
        "t/tools/x",
        ".git/modules/m/HEAD",
        ".git/modules/m/objects/",
        "m/tools/y",
    ];
    let tree = Tree::with(&[&GIT[..], &files].concat());
    fs::write(tree.1.join(".git/config"), "[core]\n\tfsmonitor = tools/x\n").expect("written");
    fs::write(
        tree.1.join(".git/worktrees/t/gitdir"),
        tree.1.join("t/.git").to_str().expect("text"),
    )
    .expect("written");
    let text = "[core]\n\tworktree = ../../../m\n\tfsmonitor = tools/y\n";
    fs::write(tree.1.join(".git/modules/m/config"), text).expect("written");
    let [protected, _, _] = sorted(&tree.find("/elsewhere"), &tree.1);
    for name in ["t/tools/x", "m/tools/y"] {
        assert!(protected.contains(&name.to_owned()), "{name}: {protected:?}");
    }
}

#[test]
fn every_link_on_the_way_to_what_is_protected_is_protected_and_what_a_link_lacks_is_watched() {
    let tree = Tree::with(&["real/settings/", "conf/"]);
    symlink("conf/code", tree.1.join(".vscode")).expect("linked");
    symlink("../real/settings", tree.1.join("conf/code")).expect("linked");
    symlink("conf/absent", tree.1.join(".claude")).expect("linked");
    let [protected, watched, pinned] = sorted(&tree.find("/elsewhere"), &tree.1);
    assert_eq!(protected, [".vscode", "conf/code", "real/settings", ".claude"]);
    assert!(watched.contains(&"conf/absent".to_owned()), "{watched:?}");
    assert_eq!(pinned, ["conf", "real"]);
}

#[test]
fn where_a_home_leads_to_is_protected() {
    let tree = Tree::with(&["bash/rc", "x"]);
    let led_to = [tree.1.join("bash/rc"), tree.1.join("zsh/rc")];
    let elsewhere = Path::new("/elsewhere");
    let mut scope = scope(&tree.1, elsewhere);
    scope.led_to = &led_to;
    let [protected, watched, _] = sorted(&find(&scope).expect("there is little"), &tree.1);
    assert_eq!(protected, ["bash/rc"]);
    assert!(watched.contains(&"zsh/rc".to_owned()), "{watched:?}");
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
