//! What is found, told and moved aside, seen from outside.
#![allow(clippy::disallowed_methods, reason = "tests make what is looked at")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::super::homes;
use super::*;

struct Place {
    _directory: tempfile::TempDir,
    root: PathBuf,
    guard: Guard,
    first: Vec<Entry>,
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
    fs::write(path, text).expect("writable");
}

fn started(root: &Path) -> (Guard, Vec<Entry>) {
    start(&Restrictions::new(root, "/bin/bash"))
}

fn start(restrictions: &Restrictions) -> (Guard, Vec<Entry>) {
    let guard = Guard::start(restrictions, &Homes::default());
    guard.expect("there is little").expect("it is writable")
}

fn place(files: &[&str]) -> Place {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("just made").join("work");
    fs::create_dir(&root).expect("writable");
    files.iter().for_each(|name| write(&root, name, ""));
    let (guard, first) = started(&root);
    Place {
        _directory: directory,
        root,
        guard,
        first,
    }
}

impl Place {
    /// What is moved aside now.
    fn swept(&mut self) -> Vec<PathBuf> {
        self.guard.sweep();
        self.guard.take_held_back().into_iter().map(|held| held.path).collect()
    }

    fn names(&self) -> Vec<String> {
        names(&self.root)
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

const REPOSITORY: [&str; 5] = [
    ".git/HEAD",
    ".git/config",
    ".git/objects/x",
    ".git/refs/x",
    ".git/hooks/pre-commit.sample",
];

#[test]
fn what_is_there_at_first_is_told_once() {
    let mut place = place(&REPOSITORY);
    let protects = |name: &str| {
        let path = place.root.join(name);
        let is = |entry: &Entry| matches!(entry, Entry::Protect { target } if *target == path);
        place.first.iter().any(is)
    };
    assert!(protects(".git/config") && protects(".git/hooks"), "{:?}", place.first);
    assert!(!protects(".git/objects"), "its neighbour stays open");
    assert_eq!(place.guard.refresh(), Since::default());
    assert!(place.swept().is_empty());
}

#[test]
fn a_repository_that_is_made_later_is_left_to_who_makes_it() {
    let mut place = place(&["src/a"]);
    REPOSITORY.iter().for_each(|name| write(&place.root, name, ""));
    write(&place.root, ".git/commondir", "../x");
    assert!(place.swept().is_empty());
    assert_eq!(place.guard.refresh(), Since::default());
    let (_, first) = started(&place.root);
    let config = place.root.join(".git/config");
    assert!(
        first.contains(&Entry::Protect { target: config }),
        "from the next sandbox on: {first:?}"
    );
}

#[test]
fn a_file_that_was_replaced_is_told_again() {
    let mut place = place(&REPOSITORY);
    let config = place.root.join(".git/config");
    write(&place.root, ".git/config.lock", "new");
    fs::rename(place.root.join(".git/config.lock"), &config).expect("as git does");
    assert_eq!(place.guard.refresh().0, [config]);
    assert!(place.swept().is_empty());
}

#[test]
fn a_repository_that_the_user_removes_is_forgotten_and_one_in_its_place_is_new() {
    let mut place = place(&REPOSITORY);
    fs::remove_dir_all(place.root.join(".git")).expect("ours");
    assert_eq!(place.guard.refresh(), Since::default());
    REPOSITORY.iter().for_each(|name| write(&place.root, name, ""));
    assert!(place.swept().is_empty());
    assert!(place.root.join(".git/config").exists());
}

#[test]
fn a_command_cannot_redirect_git_and_a_linked_work_tree_keeps_its_own() {
    let linked = [
        ".git/worktrees/w/commondir",
        ".git/worktrees/w/HEAD",
        ".git/worktrees/w/gitdir",
    ];
    let mut place = place(&[&REPOSITORY[..], &linked].concat());
    write(&place.root, ".git/commondir", "../evil");
    write(&place.root, ".git/config.worktree", "[core]");
    write(&place.root, ".git/worktrees/w/config.worktree", "[core]");
    // Whoever looks first: this is how it was kept before.
    assert_eq!(place.guard.refresh(), Since::default());
    let swept = place.swept();
    assert_eq!(swept.len(), 3, "{swept:?}");
    assert!(!place.root.join(".git/commondir").exists());
    let kept = fs::read_to_string(place.root.join(".git/commondir.held-back"));
    assert_eq!(kept.expect("nothing is lost"), "../evil");
    assert!(place.root.join(".git/worktrees/w/commondir").exists());
}

#[test]
fn names_that_were_not_there_are_moved_aside_whatever_stands_at_them() {
    let mut place = place(&REPOSITORY);
    write(&place.root, ".vscode/deep/tasks.json", "one");
    write(&place.root, ".claude", "a file");
    symlink("/etc", place.root.join(".cursor")).expect("linked");
    write(&place.root, ".idea/x", "its readers ask");
    assert_eq!(
        place.swept(),
        [".claude", ".cursor", ".vscode"].map(PathBuf::from),
        "{:?}",
        place.names()
    );
    for name in [".claude", ".cursor", ".vscode"] {
        assert!(!place.names().contains(&name.to_owned()), "{name}");
    }
    assert!(place.root.join(".idea/x").exists());
    assert_eq!(
        fs::read_to_string(place.root.join(".vscode.held-back/deep/tasks.json")).expect("kept"),
        "one"
    );
    assert_eq!(
        fs::read_link(place.root.join(".cursor.held-back")).expect("as a link"),
        Path::new("/etc")
    );
    assert!(place.swept().is_empty(), "told once");
    // Another one has another name, however many there are.
    for round in 0..40 {
        write(&place.root, ".vscode/tasks.json", &round.to_string());
        assert_eq!(place.swept(), [Path::new(".vscode")], "{round}");
    }
    let kept = place.names().iter().filter(|name| name.starts_with(".vscode")).count();
    assert_eq!(kept, 41, "nothing is lost");
}

#[test]
fn names_that_were_there_are_watched_once_the_user_has_removed_them() {
    let mut place = place(&[".vscode/settings.json"]);
    assert!(place.swept().is_empty());
    fs::remove_dir_all(place.root.join(".vscode")).expect("ours");
    assert_eq!(place.guard.refresh(), Since::default());
    write(&place.root, ".vscode/tasks.json", "");
    assert_eq!(place.swept(), [Path::new(".vscode")]);
}

#[test]
fn many_files_are_moved_aside_in_one_step() {
    let mut place = place(&[]);
    fs::create_dir(place.root.join(".claude")).expect("made");
    for number in 0..10_000 {
        fs::write(place.root.join(format!(".claude/{number}")), "").expect("written");
    }
    assert_eq!(place.swept(), [Path::new(".claude")]);
    assert_eq!(names(&place.root.join(".claude.held-back")).len(), 10_000);
}

#[test]
fn hooks_that_were_not_there_may_be_samples_and_nothing_else() {
    let mut place = place(&REPOSITORY[..3]);
    write(&place.root, ".git/hooks/pre-commit.sample", "");
    assert!(place.swept().is_empty(), "`git init` makes them");
    write(&place.root, ".git/hooks/pre-commit", "");
    assert_eq!(place.swept(), [Path::new(".git/hooks")]);
    symlink("/tmp", place.root.join(".git/hooks")).expect("linked");
    assert_eq!(place.swept(), [Path::new(".git/hooks")], "a link may lead to anything");
}

#[test]
fn nothing_is_moved_through_a_link_that_a_command_laid() {
    let mut place = place(&[]);
    let outside = place.root.parent().expect("above").join("outside");
    write(&outside, "commondir", "the user's");
    write(&outside, "autostart/x", "the user's");
    let mut restrictions = Restrictions::new(&place.root, "/bin/bash");
    restrictions.home = Some(place.root.clone());
    (place.guard, _) = start(&restrictions);
    symlink(&outside, place.root.join(".config")).expect("linked");
    assert_eq!(place.swept(), [Path::new(".config")], "the link, and once");
    assert_eq!(names(&outside), ["autostart", "commondir"]);
    assert_eq!(names(&outside.join("autostart")), ["x"]);
    assert!(place.root.join(".config.held-back").is_symlink());
}

#[test]
fn a_link_of_the_users_on_the_way_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("just made");
    write(&root, "work/dotfiles/x", "");
    write(&root, "elsewhere/x", "");
    symlink("dotfiles", root.join("work/.config")).expect("linked");
    symlink("../elsewhere", root.join("work/.cargo")).expect("linked");
    let mut restrictions = Restrictions::new(root.join("work"), "/bin/bash");
    restrictions.home = Some(root.join("work"));
    let (mut guard, _) = start(&restrictions);
    write(&root, "work/dotfiles/autostart/x", "");
    guard.sweep();
    let held = guard.take_held_back();
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0].path, Path::new("dotfiles/autostart"), "where it really is");
    assert!(root.join("work/.config").is_symlink() && root.join("work/.cargo").is_symlink());
}

#[test]
fn a_directory_without_permissions_hides_nothing() {
    for mode in [0o500, 0o000] {
        let mut place = place(&REPOSITORY);
        let git = place.root.join(".git");
        write(&place.root, ".git/commondir", "../evil");
        fs::set_permissions(&git, fs::Permissions::from_mode(mode)).expect("ours");
        assert_eq!(place.swept(), [Path::new(".git/commondir")], "{mode:o}");
        let left = fs::metadata(&git).expect("there").permissions().mode() & 0o777;
        assert_eq!(left, mode, "as it was");
        fs::set_permissions(&git, fs::Permissions::from_mode(0o700)).expect("ours");
        assert!(git.join("commondir.held-back").exists());
    }
}

#[test]
fn a_last_look_is_taken_when_nobody_closes_and_none_after_the_end() {
    let place = place(&[]);
    write(&place.root, ".vscode/tasks.json", "");
    let root = place.root.clone();
    drop(place.guard);
    assert!(!root.join(".vscode").exists());

    let (mut guard, _) = started(&root);
    guard.retire();
    write(&root, ".vscode/tasks.json", "the user's");
    drop(guard);
    assert!(root.join(".vscode").exists());
}

#[test]
fn what_would_be_moved_aside_is_known_before() {
    let place = place(&[&REPOSITORY[..], &[".claude/x"]].concat());
    let paths = [
        ".vscode",
        ".vscode/tasks.json",
        ".claude/x",
        ".git/commondir",
        ".git/config",
        "src",
    ]
    .map(|name| place.root.join(name));
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    assert_eq!(place.guard.holds_back(&paths), [0, 1, 3]);
}

#[test]
fn a_readonly_or_opened_workspace_needs_no_guard_unless_files_of_it_decide() {
    let place = place(&[&REPOSITORY[..], &["conf/policy.toml"]].concat());
    let mut restrictions = Restrictions::new(&place.root, "/bin/bash");
    let start = |restrictions: &Restrictions| Guard::start(restrictions, &Homes::default()).expect("there is little");
    restrictions.open_protected = true;
    assert!(start(&restrictions).is_none());
    let policy = place.root.join("conf/policy.toml");
    restrictions.fixed = vec![policy.clone()];
    let (mut guard, entries) = start(&restrictions).expect("a file decides");
    let pin = Entry::Again {
        target: place.root.join("conf"),
        writable: true,
        executable: true,
    };
    assert_eq!(entries, [pin, Entry::Protect { target: policy.clone() }]);
    write(&place.root, ".vscode/tasks.json", "");
    guard.sweep();
    assert!(guard.take_held_back().is_empty() && guard.holds_back(&[&place.root.join(".claude")]).is_empty());
    write(&place.root, "conf/new", "new");
    fs::rename(place.root.join("conf/new"), &policy).expect("as editors do");
    assert_eq!(guard.refresh().0, [policy]);
    for (said, because) in [
        (
            "rm: cannot remove 'conf/policy.toml': Device or resource busy",
            "decides what commands may do",
        ),
        (
            "mv: cannot move 'conf' to 'x': Device or resource busy",
            "cannot be moved",
        ),
    ] {
        let hints = guard.explain_text(said);
        assert!(
            hints.len() == 1 && hints[0].because.contains(because),
            "{said}: {hints:?}"
        );
        assert!(
            !hints[0].instead.contains("--open-protected"),
            "it is kept all the same: {hints:?}"
        );
    }
    restrictions.readonly = true;
    assert!(start(&restrictions).is_none());
}

#[test]
fn where_a_home_is_held_nothing_is_moved_aside_and_beside_it_is() {
    let mut place = place(&["u/.config/app/x", "u/project/.git/x", "u/.bashrc"]);
    let home = place.root.join("u");
    let mut restrictions = Restrictions::new(&place.root, "/bin/bash");
    restrictions.home = Some(home.clone());
    let held = homes::hold(&[home.clone()].into(), &home, &restrictions).expect("it is small");
    let (guard, entries) = Guard::start(&restrictions, &held)
        .expect("there is little")
        .expect("it is writable");
    assert_eq!(
        entries.iter().find(|entry| entry.target() == home.join(".bashrc")),
        None,
        "it is shown read-only"
    );
    let hints = guard.explain_text("bash: u/.bashrc: Read-only file system");
    assert!(
        hints.len() == 1 && hints[0].path.as_deref() == Some(Path::new("u/.bashrc")),
        "{hints:?}"
    );
    let opens = |entry: &&Entry| matches!(entry, Entry::Again { target, .. } if held.has_closed(target));
    assert_eq!(
        entries.iter().find(opens),
        None,
        "a second mount of it could be written to"
    );
    place.guard = guard;
    // The user's own work: no command can make these.
    for name in [
        "u/.profile",
        "u/.config/autostart/x",
        "u/.ssh/config",
        "u/.vscode/x",
        "u/.aws/credentials",
    ] {
        write(&place.root, name, "the user's");
    }
    assert!(place.swept().is_empty(), "{:?}", place.guard.known);
    write(&place.root, ".vscode/tasks.json", "");
    assert_eq!(place.swept(), [Path::new(".vscode")]);
}

#[test]
fn an_error_that_names_what_is_held_is_explained() {
    let place = place(
        &[
            &REPOSITORY[..],
            &["sub/.git/config", "sub/.git/HEAD", "sub/.git/objects/x"],
        ]
        .concat(),
    );
    let absolute = format!("bash: {}/sub/.git/config: Read-only file system", place.root.display());
    for (said, path) in [
        (
            "error: could not write config file .git/config: Device or resource busy",
            ".git/config",
        ),
        (
            "error: could not write config file ../.git/config: Device or resource busy",
            ".git/config",
        ),
        ("mv: cannot move '.git' to 'x': Device or resource busy", ".git"),
        (
            "rm: cannot remove 'sub/.git/config': Read-only file system",
            "sub/.git/config",
        ),
        (&*absolute, "sub/.git/config"),
        (
            "touch: cannot touch '.git/hooks/x': Read-only file system",
            ".git/hooks",
        ),
    ] {
        let hints = place.guard.explain_text(&format!("first\n{said}\nlast"));
        assert_eq!(hints.len(), 1, "{said}: {hints:?}");
        assert_eq!(hints[0].path.as_deref(), Some(Path::new(path)), "{said}");
        assert!(hints[0].instead.contains("--open-protected"));
    }
    for said in [
        "cat: .git/config: No such file or directory",
        "touch: cannot touch '/usr/x': Read-only file system",
        "rm: cannot remove '.gitignore': Device or resource busy",
        "touch: cannot touch 'my.git/hooks/x': Read-only file system",
        "umount: /mnt: Device or resource busy",
        "fatal: could not create leading directories of '../wt/.git': Read-only file system",
        "fatal: could not create leading directories of '/elsewhere/.git': Read-only file system",
        "touch: cannot touch '/elsewhere/.git/config': Read-only file system",
    ] {
        assert_eq!(place.guard.explain_text(said), [], "{said}");
    }
    assert_eq!(
        place
            .guard
            .explain_text(&"x: .git/config: Device or resource busy\n".repeat(1_000))
            .len(),
        1
    );
}

#[test]
fn a_repository_that_was_closed_at_the_start_is_not_moved_aside_when_it_is_opened() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("just made").join("work");
    REPOSITORY.iter().for_each(|name| write(&root, name, "the user's"));
    let set = |mode| fs::set_permissions(root.join(".git"), fs::Permissions::from_mode(mode)).expect("ours");
    set(0o000);
    let (mut guard, entries) = started(&root);
    set(0o700);
    guard.sweep();
    let held = guard.take_held_back();
    assert!(held.is_empty(), "{held:?}");
    assert_eq!(
        fs::read_to_string(root.join(".git/config")).expect("there"),
        "the user's"
    );
    let is_kept =
        |entry: &Entry| matches!(entry, Entry::Protect { target } if root.join(".git/config").starts_with(target));
    assert!(entries.iter().any(is_kept), "{entries:?}");
}

#[test]
fn what_is_more_than_is_remembered_is_counted_and_told() {
    let mut place = place(&[]);
    place.guard.bounds.remembered = 2;
    for name in [".claude", ".cursor", ".vscode"] {
        write(&place.root, name, "");
    }
    place.guard.sweep();
    write(&place.root, ".vscode", "");
    place.guard.sweep();
    let held = place.guard.take_held_back();
    assert_eq!(held.len(), 3, "{held:?}");
    assert!(held[2].because.contains("and 2 more"), "{held:?}");
    assert!(place.guard.take_held_back().is_empty(), "told once");
}

#[test]
fn a_name_that_is_made_again_and_again_is_told_to_stand() {
    let mut place = place(&[]);
    place.guard.bounds.again = 0;
    write(&place.root, ".vscode", "");
    place.guard.sweep();
    place.guard.sweep();
    let held = place.guard.take_held_back();
    assert_eq!(held.len(), 1, "told once: {held:?}");
    assert!(held[0].because.contains("still stands there"), "{held:?}");
    assert!(place.root.join(".vscode").exists());
    place.guard.bounds.again = 1;
    place.guard.sweep();
    assert!(!place.root.join(".vscode").exists());
    assert!(place.guard.take_held_back()[0].instead.contains("moved to"));
}

#[test]
fn the_line_that_moves_a_name_back_is_told_and_does_it() {
    let mut place = place(&REPOSITORY[..3]);
    let config = "[core]\n\thooksPath = \"it's hooks\"\n";
    write(&place.root, ".git/config", config);
    (place.guard, _) = started(&place.root);
    for name in [".vscode", "it's hooks"] {
        write(&place.root, name, "wanted");
        place.guard.sweep();
        let held = place.guard.take_held_back();
        let (_, rest) = held[0].instead.split_once('`').expect("where it is");
        let line = rest.split('`').find(|text| text.starts_with("mv ")).expect("a line");
        let done = std::process::Command::new("/bin/sh")
            .args(["-c", line])
            .current_dir(&place.root)
            .status();
        assert!(done.expect("a shell").success(), "{line}");
        assert_eq!(fs::read_to_string(place.root.join(name)).expect("back"), "wanted");
        fs::remove_file(place.root.join(name)).expect("ours");
    }
}
