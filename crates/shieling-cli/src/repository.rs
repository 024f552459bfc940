//! Which git directory outside of the workspace a sandbox is shown: the one that was there, and named the
//! workspace as its own, before the first command ran in it. Looks, and keeps a record; starts nothing.
//!
//! A linked working tree, or a submodule, has its git directory elsewhere, and its `.git` file says where.
//! Commands can write that file, and the other side may be stale, so from the second sandbox on the files
//! prove nothing. So the first one has a record made of what they said then, in the state directory, which
//! no command reaches, before anything starts; and later ones are shown that and nothing else:
//!
//! ```text
//! record of this directory?  yes ─► its repository, if the files still say the same
//!                            no  ─► was a directory above it a workspace?  yes ─► none
//!                                                                         no  ─► what the files say now
//! ```
//!
//! A directory is known by its path and by its own numbers (device, file, time of birth), since a
//! directory that the user makes anew at an old place is another one, in which no command has run. No
//! command can exchange the workspace itself for another: it is a mount, in a directory that they do not
//! have, unless that one is a workspace too. Commands of `local`, which confines nothing, are not recorded;
//! nor is what ran before there was a record.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shieling::environment::linked_repository;
use shieling::request::Digest;

use crate::config::files::{self, Identity};

/// How many records are looked at, to remove those of directories that are no more.
const LOOKED_AT: usize = 1_000;

/// What was known of a workspace before its first command.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    workspace: PathBuf,
    identity: Identity,
    repository: Option<PathBuf>,
}

/// The repository outside of a workspace, as far as it can be shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Repository {
    /// There is none.
    None,
    /// It is shown.
    Shown(PathBuf),
    /// The files of the workspace name it, and it is not known that no command wrote them.
    NotKnown(PathBuf),
}

/// Finds the repository of a workspace, and has its first state recorded in the state directory.
pub(crate) fn find(workspace: &Path, state: Option<&Path>) -> Repository {
    let now = linked_repository(workspace);
    // Also where there is none: one that appears later is not there from the first.
    let first = state.and_then(|state| first(workspace, &state.join("workspaces"), now.as_deref()));
    match now {
        None => Repository::None,
        Some(now) if first.as_ref() == Some(&now) => Repository::Shown(now),
        Some(now) => Repository::NotKnown(now),
    }
}

/// The repository as it was before the first command; none if there was none, or if that is not known.
fn first(workspace: &Path, records: &Path, now: Option<&Path>) -> Option<PathBuf> {
    let identity = files::identity(workspace).ok()?;
    if let Some(record) = recorded(records, workspace).filter(|record| record.identity == identity) {
        return record.repository;
    }
    let is_workspace = |above: &Path| {
        recorded(records, above).is_some_and(|record| files::identity(above).is_ok_and(|is| is == record.identity))
    };
    let in_another = workspace.ancestors().skip(1).any(is_workspace);
    let record = Record {
        workspace: workspace.to_path_buf(),
        identity,
        repository: now.filter(|_| !in_another).map(Path::to_path_buf),
    };
    files::private(records).ok()?;
    forget(records);
    let text = serde_json::to_string(&record).ok()?;
    // Not recorded, so nothing is known the next time either.
    files::replace(&place(records, workspace), &text).ok()?;
    record.repository
}

fn place(records: &Path, workspace: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    records.join(format!("{}.json", Digest::of(workspace.as_os_str().as_bytes())))
}

fn recorded(records: &Path, workspace: &Path) -> Option<Record> {
    read(&place(records, workspace)).filter(|record| record.workspace == workspace)
}

fn read(path: &Path) -> Option<Record> {
    let text = files::read(path, files::Links::Refuse).ok()??;
    serde_json::from_str(&text).ok()
}

/// Removes the records of directories that are no more.
fn forget(records: &Path) {
    for path in files::names(records, LOOKED_AT)
        .into_iter()
        .map(|name| records.join(name))
    {
        if let Some(record) = read(&path)
            && !files::identity(&record.workspace).is_ok_and(|is| is == record.identity)
        {
            files::forget(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests make what is found")]

    use std::fs;

    use super::*;

    struct Trees {
        _directory: tempfile::TempDir,
        at: PathBuf,
        state: PathBuf,
    }

    impl Trees {
        /// A repository `main`, and a state directory.
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let at = directory.path().canonicalize().expect("it is there");
            fs::create_dir_all(at.join("main/.git/objects")).expect("made");
            fs::write(at.join("main/.git/HEAD"), "ref: refs/heads/main").expect("written");
            let state = at.join("state");
            fs::create_dir(&state).expect("made");
            Self {
                _directory: directory,
                at,
                state,
            }
        }

        /// The repository's side of a linked tree.
        fn entry(&self, name: &str, tree: &Path) {
            let git = self.at.join("main/.git/worktrees").join(name);
            fs::create_dir_all(&git).expect("made");
            fs::write(git.join("gitdir"), format!("{}\n", tree.join(".git").display())).expect("written");
            fs::write(git.join("commondir"), "../..\n").expect("written");
        }

        /// The tree's side.
        fn point(&self, name: &str, tree: &Path) {
            let git = self.at.join("main/.git/worktrees").join(name);
            fs::create_dir_all(tree).expect("made");
            fs::write(tree.join(".git"), format!("gitdir: {}\n", git.display())).expect("written");
        }

        fn find(&self, tree: &Path) -> Repository {
            find(tree, Some(&self.state))
        }
    }

    #[test]
    fn a_linked_tree_that_was_there_first_is_shown_ever_after() {
        let trees = Trees::new();
        let (tree, git) = (trees.at.join("tree"), trees.at.join("main/.git"));
        trees.entry("tree", &tree);
        trees.point("tree", &tree);
        assert_eq!(trees.find(&tree), Repository::Shown(git.clone()));
        assert_eq!(trees.find(&tree), Repository::Shown(git));
        fs::remove_file(tree.join(".git")).expect("ours");
        assert_eq!(trees.find(&tree), Repository::None, "a record alone shows nothing");
    }

    #[test]
    fn a_pointer_to_a_stale_entry_that_a_command_wrote_is_not_followed() {
        let trees = Trees::new();
        let (tree, git) = (trees.at.join("tree"), trees.at.join("main/.git"));
        trees.entry("stale", &tree);
        fs::create_dir(&tree).expect("made");
        assert_eq!(trees.find(&tree), Repository::None);
        trees.point("stale", &tree);
        assert_eq!(trees.find(&tree), Repository::NotKnown(git.clone()));
        // Nor is another repository than the first one's.
        let other = trees.at.join("other");
        trees.entry("other", &other);
        trees.point("other", &other);
        assert_eq!(trees.find(&other), Repository::Shown(git));
    }

    #[test]
    fn what_lies_in_another_workspace_is_not_taken_for_the_first() {
        let trees = Trees::new();
        let (above, tree) = (trees.at.join("above"), trees.at.join("above/tree"));
        fs::create_dir_all(&tree).expect("made");
        assert_eq!(trees.find(&above), Repository::None);
        trees.entry("tree", &tree);
        trees.point("tree", &tree);
        let git = trees.at.join("main/.git");
        assert_eq!(trees.find(&tree), Repository::NotKnown(git.clone()));
        assert_eq!(trees.find(&tree), Repository::NotKnown(git), "nor later");
    }

    #[test]
    fn without_a_record_nothing_is_shown() {
        let trees = Trees::new();
        let (tree, git) = (trees.at.join("tree"), trees.at.join("main/.git"));
        trees.entry("tree", &tree);
        trees.point("tree", &tree);
        assert_eq!(find(&tree, None), Repository::NotKnown(git.clone()));
        fs::write(trees.state.join("workspaces"), "in the way").expect("written");
        assert_eq!(trees.find(&tree), Repository::NotKnown(git));
    }

    #[test]
    fn records_of_directories_that_are_no_more_go() {
        let trees = Trees::new();
        let old = trees.at.join("old");
        fs::create_dir(&old).expect("made");
        assert_eq!(trees.find(&old), Repository::None);
        fs::remove_dir(&old).expect("ours");
        let new = trees.at.join("new");
        fs::create_dir(&new).expect("made");
        assert_eq!(trees.find(&new), Repository::None);
        assert_eq!(files::names(&trees.state.join("workspaces"), 10).len(), 1);
    }
}
