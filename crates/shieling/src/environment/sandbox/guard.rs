//! What is to be protected in a writable workspace, looked at again before each command: a repository
//! that a command has made, a file that the user's own tools have replaced, which takes its
//! protection off.
#![expect(clippy::disallowed_methods, reason = "what this host has is looked up here")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Entry;

use super::{Restrictions, place, protect, repository};

/// Times are as fine as a tick of the kernel: at most 10 ms, and some file systems round.
const TICK_NS: i128 = 50_000_000;

/// A file, whatever its name.
type File = (u64, u64);

/// What is protected, and what it was when it was.
#[derive(Debug)]
pub(super) struct Guard {
    workspace: PathBuf,
    home: PathBuf,
    executable: bool,
    /// The workspace's top directory as it was when everything was looked for.
    top: Option<(File, i128)>,
    known: BTreeMap<PathBuf, (Kind, Option<File>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Cannot be changed.
    Protected,
    /// Cannot be moved away.
    Pinned,
}

/// What is to be protected, and pinned, from now on.
pub(super) type Since = (Vec<PathBuf>, Vec<PathBuf>);

impl Guard {
    /// Of these restrictions, with what is to be protected at first; nothing where nothing is to be.
    pub(super) fn start(restrictions: &Restrictions) -> Option<(Self, Vec<Entry>)> {
        if restrictions.readonly || restrictions.open_protected {
            return None;
        }
        let mut guard = Self {
            workspace: restrictions.workspace.clone(),
            home: place::home(restrictions),
            executable: restrictions.programs.is_none(),
            top: stamp(&restrictions.workspace),
            known: BTreeMap::new(),
        };
        let entries = guard.look();
        for (path, (_, was)) in &mut guard.known {
            *was = file(path);
        }
        Some((guard, entries))
    }

    /// What appeared or was replaced since the last look.
    pub(super) fn refresh(&mut self, now_ns: i128) -> Since {
        let top = stamp(&self.workspace);
        let still = top.is_some_and(|(_, changed)| now_ns - changed > TICK_NS) && top == self.top;
        if !still {
            self.top = top;
            self.look();
        }
        let mut since = Since::default();
        for (path, (kind, was)) in &mut self.known {
            let is = file(path);
            if is.is_some() && is != *was {
                match kind {
                    Kind::Protected => since.0.push(path.clone()),
                    Kind::Pinned => since.1.push(path.clone()),
                }
            }
            *was = is;
        }
        since
    }

    /// After a command: takes a `commondir` away that it has put into a repository of the workspace. Git
    /// would read another configuration through it, and run what that says. The name cannot be kept
    /// taken, since git breaks on an empty directory there, and only linked work trees have one by right.
    pub(super) fn sweep(&mut self) {
        for (path, (_, was)) in &self.known {
            let redirects = path.file_name().is_some_and(|name| name == "commondir");
            if redirects && was.is_none() && fs::symlink_metadata(path).is_ok() {
                let aside = path.with_file_name("commondir.taken-away-by-shieling");
                // Also if it is a directory; an older one in its way goes.
                let _ = fs::remove_file(&aside).or_else(|_| fs::remove_dir(&aside));
                if fs::rename(path, &aside).is_err() {
                    let _ = fs::remove_file(path);
                }
            }
        }
    }

    /// What the jail itself has put there: it lies under its own protection, as that very file.
    pub(super) fn reserved(&mut self, reserved: &[(PathBuf, File)]) {
        for (path, file) in reserved {
            self.known.insert(path.clone(), (Kind::Protected, Some(*file)));
        }
    }

    fn look(&mut self) -> Vec<Entry> {
        let git = repository::outside(&self.workspace, &self.home);
        let found = protect::find(&self.workspace, &self.home, git.as_deref(), self.executable);
        let entries = found.entries.iter().filter_map(|entry| match entry {
            Entry::Protect { target, .. } => Some((target.clone(), Kind::Protected)),
            Entry::Again { target, .. } => Some((target.clone(), Kind::Pinned)),
            _ => None,
        });
        let watched = found.watched.into_iter().map(|path| (path, Kind::Protected));
        for (path, kind) in entries.chain(watched) {
            self.known.entry(path).or_insert((kind, None));
        }
        found.entries
    }
}

fn stamp(path: &Path) -> Option<(File, i128)> {
    let found = fs::symlink_metadata(path).ok()?;
    // Not the time of its content, which anybody can set.
    let changed = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
    Some(((found.dev(), found.ino()), changed))
}

fn file(path: &Path) -> Option<File> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long after everything.
    const LATER: i128 = i128::MAX / 2;

    fn guard(files: &[&str]) -> (tempfile::TempDir, PathBuf, Guard, Vec<Entry>) {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().canonicalize().expect("just made");
        for name in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
            fs::write(path, "").expect("writable");
        }
        let (guard, first) = Guard::start(&Restrictions::new(&root, "/bin/bash")).expect("it is writable");
        (place, root, guard, first)
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
        let (_place, root, mut guard, first) = guard(&REPOSITORY);
        let protects = |name: &str| {
            let path = root.join(name);
            first
                .iter()
                .any(|entry| matches!(entry, Entry::Protect { target, .. } if *target == path))
        };
        assert!(protects(".git/config") && protects(".git/hooks"), "{first:?}");
        assert!(!protects(".git/objects"), "its neighbour stays open");
        assert_eq!(guard.refresh(LATER), Since::default());
    }

    #[test]
    fn a_repository_that_was_made_later_is_found() {
        let (_place, root, mut guard, _) = guard(&["src/a"]);
        assert!(!guard.refresh(LATER).0.contains(&root.join(".git/config")));
        for name in REPOSITORY {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
            fs::write(path, "").expect("writable");
        }
        assert!(guard.refresh(LATER).0.contains(&root.join(".git/config")));
    }

    #[test]
    fn a_file_that_was_replaced_is_told_again() {
        let (_place, root, mut guard, _) = guard(&REPOSITORY);
        let config = root.join(".git/config");
        fs::write(root.join(".git/config.lock"), "new").expect("writable");
        fs::rename(root.join(".git/config.lock"), &config).expect("as git does");
        assert_eq!(guard.refresh(LATER).0, [config]);
    }

    #[test]
    fn a_command_cannot_redirect_git_and_a_linked_work_tree_keeps_its_own() {
        let linked = [
            ".git/worktrees/w/commondir",
            ".git/worktrees/w/HEAD",
            ".git/worktrees/w/gitdir",
        ];
        let (_place, root, mut guard, _) = guard(&[&REPOSITORY[..], &linked].concat());
        fs::write(root.join(".git/commondir"), "../evil").expect("as a command could");
        guard.sweep();
        assert!(!root.join(".git/commondir").exists());
        assert!(root.join(".git/worktrees/w/commondir").exists());
    }

    #[test]
    fn a_readonly_or_opened_workspace_needs_no_guard() {
        let mut restrictions = Restrictions::new("/work", "/bin/bash");
        restrictions.readonly = true;
        assert!(Guard::start(&restrictions).is_none());
        restrictions.readonly = false;
        restrictions.open_protected = true;
        assert!(Guard::start(&restrictions).is_none());
    }
}
