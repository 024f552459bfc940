//! What a path means to git: which git directory it lies in, and what git does with that file.
//!
//! A git directory is one named `.git`, or any that git would take for one: it finds bare repositories by what lies in a
//! directory. What is taken for one here is more than what git accepts (nothing of `HEAD` but its name counts, and a
//! directory whose linked trees are left counts without it), so that no settings go unjudged until a last file makes git
//! read them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::change::Tree;

/// Strategies that git brings with it; another is a program.
pub(crate) const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Options of `git am` for patches that lead to no other place.
pub(crate) const APPLY_OPTIONS: &[&str] = &[
    "--whitespace=nowarn",
    "--whitespace=warn",
    "--whitespace=fix",
    "--whitespace=strip",
    "--whitespace=error",
    "--whitespace=error-all",
    "--ignore-whitespace",
    "--ignore-space-change",
    "--reject",
    "--3way",
];

/// What git does with a file of a git directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// A `.git` that is no directory: it says where the git directory is.
    Pointer,
    /// Settings.
    Settings,
    /// A hook of this name, or a file that a hook can call.
    Hook(PathBuf),
    /// Where the settings and hooks of a linked tree are.
    CommonDirectory,
    /// Where a linked tree is.
    LinkedTree,
    /// What is checked out; without it git looks for another git directory.
    Head,
    /// Where further objects are.
    Alternates,
    /// Which drivers are used for which files.
    Attributes,
    /// An old form of a remote's settings.
    OldRemote,
    /// What a rebase does next.
    Todo,
    /// The strategy of a rebase that is under way.
    Strategy,
    /// The options of a sequence that is under way.
    SequenceOptions,
    /// The options with which patches of a series that is under way are applied.
    ApplyOptions,
    /// Which files of the working tree have conflicts whose resolutions git records and replays.
    Resolutions,
    /// Objects, which git replaces and does not write to.
    Object,
    /// Anything else.
    Other,
}

/// A file of a git directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The git directory, relative to the root of the tree; of a pointer, the directory in which it stands.
    pub(crate) git: PathBuf,
    pub(crate) role: Role,
}

/// The names that make a directory one of git's.
pub(crate) const MARKS: [&str; 5] = ["HEAD", "objects", "refs", "commondir", "worktrees"];

/// Names in a git directory that git writes to or reads. Others mean nothing in a directory that has not the name `.git`.
pub(crate) const NAMES: &[&str] = &[
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "NOTES_EDITMSG",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_NAMES",
    "BISECT_TERMS",
    "BISECT_RUN",
    "branches",
    "commondir",
    "config",
    "config.worktree",
    "description",
    "gitdir",
    "hooks",
    "index",
    "info",
    "logs",
    "locked",
    "modules",
    "objects",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "shallow",
    "worktrees",
];

/// Whether a name is `.git`, in any case: on some file systems all of these are one.
pub(crate) fn is_git_name(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Whether a path is the directory that users make in a repository whose programs they trust: it means nothing to git.
pub(crate) fn is_mark_of_trust(path: &Path) -> bool {
    path.ends_with(".git/safe")
}

/// Whether git could take a directory for a git directory, whatever its name.
pub(crate) fn is_layout(tree: &dyn Tree, directory: &Path) -> io::Result<bool> {
    let has = |name: &str| Ok::<_, io::Error>(tree.entry(&directory.join(name))?.is_some());
    Ok((has("HEAD")? || has("worktrees")?) && (has("commondir")? || has("objects")? && has("refs")?))
}

/// The git directories in which a directory lies, itself included if it is one by its name. `root_is_git` says whether the
/// root of the tree has git's name; `is_layout` is [`is_layout`] of a tree.
pub(crate) fn above(
    directory: &Path,
    root_is_git: bool,
    is_layout: &mut dyn FnMut(&Path) -> io::Result<bool>,
) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut below: Option<&OsStr> = None;
    for git in directory.ancestors() {
        if has_git_name(git, root_is_git) || may_hold(git, below, is_layout)? {
            found.push(git.to_path_buf());
        }
        below = git.file_name();
    }
    Ok(found)
}

/// All that a path means to git. `above` is what [`above`] gives for the directory in which it is.
pub(crate) fn places(
    path: &Path,
    above: &[PathBuf],
    is_layout: &mut dyn FnMut(&Path) -> io::Result<bool>,
) -> io::Result<Vec<Place>> {
    let mut found = Vec::new();
    let Some(name) = path.file_name() else { return Ok(found) };
    let directory = path.parent().unwrap_or(Path::new(""));
    if is_git_name(name) {
        found.push(Place {
            git: directory.to_path_buf(),
            role: Role::Pointer,
        });
    }
    let is_above = above.first().is_some_and(|git| git == directory);
    if !is_above && may_hold(directory, Some(name), is_layout)? {
        found.push(Place {
            git: directory.to_path_buf(),
            role: role(Path::new(name)),
        });
    }
    let of_those = above.iter().filter_map(|git| {
        Some(Place {
            git: git.clone(),
            role: role(path.strip_prefix(git).ok()?),
        })
    });
    found.extend(of_those);
    Ok(found)
}

fn has_git_name(directory: &Path, root_is_git: bool) -> bool {
    directory.file_name().map_or(root_is_git, is_git_name)
}

/// Whether a name in a directory without git's name means something to git.
fn may_hold(
    directory: &Path,
    name: Option<&OsStr>,
    is_layout: &mut dyn FnMut(&Path) -> io::Result<bool>,
) -> io::Result<bool> {
    let is_known = name.and_then(OsStr::to_str).is_some_and(|name| NAMES.contains(&name));
    Ok(is_known && (is_linked_tree(directory) || is_layout(directory)?))
}

/// Whether a directory is the one that git keeps for a linked tree.
fn is_linked_tree(directory: &Path) -> bool {
    let list = directory.parent().filter(|list| list.ends_with("worktrees"));
    let git = list.and_then(Path::parent).and_then(Path::file_name);
    git.is_some_and(is_git_name)
}

/// What git does with a file, by its path in a git directory.
fn role(rest: &Path) -> Role {
    let mut names = rest.iter().map(|name| name.to_str().unwrap_or_default());
    let first = names.next().unwrap_or_default();
    let rest: PathBuf = names.collect();
    match (first, rest.to_str().unwrap_or_default()) {
        ("config" | "config.worktree", "") => Role::Settings,
        ("hooks", name) if !name.is_empty() => Role::Hook(rest),
        ("commondir", "") => Role::CommonDirectory,
        ("gitdir", "") => Role::LinkedTree,
        ("HEAD", "") => Role::Head,
        ("objects", "info/alternates" | "info/http-alternates") => Role::Alternates,
        ("objects", name) if !name.is_empty() => Role::Object,
        ("info", "attributes") => Role::Attributes,
        ("remotes" | "branches", name) if !name.is_empty() => Role::OldRemote,
        ("rebase-merge", "git-rebase-todo") | ("sequencer", "todo") => Role::Todo,
        ("rebase-merge", "strategy") => Role::Strategy,
        ("sequencer", "opts") => Role::SequenceOptions,
        ("MERGE_RR", "") => Role::Resolutions,
        ("rebase-apply", "apply-opt") => Role::ApplyOptions,
        _ => Role::Other,
    }
}

/// Whether git reads settings, or writes by itself, in a directory of a git directory: not where objects are stored, nor in
/// the git directories of submodules and linked trees, which are such by themselves.
pub(crate) fn is_looked_into(rest: &Path) -> bool {
    let mut names = rest.iter().map(|name| name.to_str().unwrap_or_default());
    match (names.next().unwrap_or_default(), names.next()) {
        ("objects", below) => below.is_none_or(|below| below == "info"),
        ("modules" | "worktrees", below) => below.is_none(),
        _ => true,
    }
}

/// Whether a directory is one of those of a `.git`, or of a submodule's directory below one, in which git keeps its
/// objects, by the thousand.
pub fn is_object_store(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_part = name == "pack" || name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_part && path.parent().is_some_and(holds_objects)
}

/// Whether a directory holds those directories.
fn holds_objects(path: &Path) -> bool {
    let git = path.parent().filter(|_| path.ends_with("objects"));
    git.is_some_and(|git| {
        let mut names = git.iter().skip_while(|name| *name != ".git").skip(1);
        git.ends_with(".git") || names.next().is_some_and(|name| name == "modules")
    })
}

/// Whether a path lies where git keeps objects, in which nobody looks for settings, or holds such places.
pub(crate) fn leads_to_objects(path: &Path) -> bool {
    holds_objects(path) || path.ancestors().any(is_object_store)
}
