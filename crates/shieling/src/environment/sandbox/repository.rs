//! Git repositories: where the git directory of a working tree is, and whether one outside of the
//! workspace truly belongs to it. Reads a few small files; runs no git.
//!
//! A git directory outside is shown to a sandbox only if its caller names it
//! ([`Restrictions::repository`](super::Restrictions)). The files of a workspace cannot say it: a command
//! writes `.git`, and the other side, which should name the working tree as its own, may be stale (a
//! linked tree that was removed by `rm -rf` keeps its entry, and names whatever stands there now). So
//! "consistent both ways" proves something only before the first command has run in the workspace. Whether
//! that is so cannot be seen from the files either; who calls has to know it, by a record that no command
//! reaches. [`linked_repository`] says what the files say, for the one who keeps that record.
#![expect(clippy::disallowed_methods, reason = "git's own files are read here")]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use shieling_gate::settings;

use super::place;

/// The longest of git's pointer files and settings that is read, in bytes.
pub(super) const LONGEST: usize = 1 << 20;

/// A file of git's of which it is not known what it says.
#[derive(Debug)]
pub(super) enum Unread {
    /// It is longer than [`LONGEST`].
    TooLong,
    /// It cannot be opened or read.
    Closed(io::Error),
}

/// The git directory to which the `.git` *file* of a working tree leads, outside of it, if that names the
/// tree as its own: a linked tree by the `gitdir` file of its git directory, a submodule by
/// `core.worktree`. `workspace` is absolute and without links.
///
/// That is what the files say now. Commands can have written the one, and the other can be stale: whether
/// a sandbox may be shown it ([`Restrictions::repository`](super::Restrictions)) is for the caller to know.
pub fn linked_repository(workspace: &Path) -> Option<PathBuf> {
    let pointer = workspace.join(".git");
    if !fs::symlink_metadata(&pointer).ok()?.is_file() {
        return None;
    }
    let text = small(&pointer)?;
    let git = fs::canonicalize(workspace.join(text.strip_prefix("gitdir:")?.trim())).ok()?;
    let common = match small(&git.join("gitdir")) {
        Some(back) => {
            let back = fs::canonicalize(git.join(back.trim())).ok()?;
            let common = fs::canonicalize(git.join(small(&git.join("commondir"))?.trim())).ok()?;
            (back == pointer && git.parent() == Some(&common.join("worktrees"))).then_some(common)?
        }
        None => {
            let config = read(&git.join("config")).ok().flatten()?;
            let settings = settings::parse(&config);
            let back = settings.iter().rfind(|setting| setting.is("core.worktree"))?;
            let is_this = |path: &PathBuf| fs::canonicalize(git.join(path)).is_ok_and(|real| real == workspace);
            back.paths().iter().any(is_this).then_some(git)?
        }
    };
    let fine = is_git_directory(&common)
        && !common.starts_with(workspace)
        && !workspace.starts_with(&common)
        && place::swallows(&common).is_none();
    fine.then_some(common)
}

/// Whether a git directory outside of the workspace can be shown beside it, with nothing else.
pub(super) fn can_be_shown(git: &Path, workspace: &Path, home: &Path) -> bool {
    place::is_clean(git)
        && fs::canonicalize(git).is_ok_and(|real| real == git)
        && is_git_directory(git)
        && !git.starts_with(workspace)
        && !workspace.starts_with(git)
        && !home.starts_with(git)
        && place::swallows(git).is_none()
}

/// Whether git would take this directory for a git directory.
pub(super) fn is_git_directory(path: &Path) -> bool {
    fs::symlink_metadata(path.join("HEAD")).is_ok()
        && (path.join("objects").is_dir() || path.join("commondir").is_file())
}

/// The git directory of a working tree at whose top this is, with the settings: that of the repository, where
/// this is a linked tree.
pub(super) fn git_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    let real = match fs::symlink_metadata(&git).ok()?.is_file() {
        true => fs::canonicalize(top.join(small(&git)?.strip_prefix("gitdir:")?.trim())).ok()?,
        false => fs::canonicalize(&git).ok()?,
    };
    match small(&real.join("commondir")) {
        Some(common) => fs::canonicalize(real.join(common.trim())).ok(),
        None => Some(real),
    }
}

/// The path that one of git's pointer files holds.
pub(super) fn path(text: &[u8]) -> PathBuf {
    OsStr::from_bytes(text.trim_ascii()).into()
}

/// A small regular file; nothing if there is none. Never waits, even if somebody put a pipe there.
///
/// # Errors
/// [`Unread`]: what it says is not known.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, Unread> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).expect("open's flags fit into an int");
    let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) => {
            // A link, a socket, or a device that is not there says nothing to git either.
            let says_nothing = matches!(
                Errno::from_io_error(&error),
                Some(Errno::NXIO | Errno::NODEV | Errno::NAMETOOLONG)
            );
            return match says_nothing || super::steps::is_absence(&error) {
                true => Ok(None),
                false => Err(Unread::Closed(error)),
            };
        }
    };
    if !file.metadata().map_err(Unread::Closed)?.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(LONGEST as u64 + 1)
        .read_to_end(&mut text)
        .map_err(Unread::Closed)?;
    if text.len() > LONGEST {
        return Err(Unread::TooLong);
    }
    Ok(Some(text))
}

/// As [`read`], where what is not known says nothing.
pub(super) fn small(path: &Path) -> Option<String> {
    let text = read(path).ok().flatten()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A main tree and a linked tree beside it.
    fn trees() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path().canonicalize().expect("it is there");
        let (main, tree) = (at.join("main"), at.join("tree"));
        let git = main.join(".git/worktrees/tree");
        fs::create_dir_all(main.join(".git/objects")).expect("made");
        fs::create_dir_all(&git).expect("made");
        fs::create_dir_all(&tree).expect("made");
        write(&main.join(".git/HEAD"), "ref: refs/heads/main");
        write(&git.join("gitdir"), &format!("{}\n", tree.join(".git").display()));
        write(&git.join("commondir"), "../..\n");
        write(&tree.join(".git"), &format!("gitdir: {}\n", git.display()));
        (directory, main, tree)
    }

    fn write(path: &Path, text: &str) {
        fs::write(path, text).expect("written");
    }

    #[test]
    fn a_linked_tree_leads_to_its_repository_and_a_forged_one_to_none() {
        let (_directory, main, tree) = trees();
        let git = main.join(".git");
        assert_eq!(linked_repository(&tree).as_ref(), Some(&git));
        assert!(can_be_shown(&git, &tree, Path::new("/home/u")));
        assert!(!can_be_shown(&git, &tree, &git.join("x")), "it would show the home");
        assert!(!can_be_shown(&main, &tree, Path::new("/home/u")), "it is none");
        assert!(
            !can_be_shown(&git, &git.join("x"), Path::new("/home/u")),
            "it holds the workspace"
        );

        let forged = tree.parent().expect("a parent").join("forged");
        fs::create_dir(&forged).expect("made");
        for text in [
            fs::read_to_string(tree.join(".git")).expect("read"),
            format!("gitdir: {}", main.join(".git").display()),
            "gitdir: /".to_owned(),
            "nothing".to_owned(),
        ] {
            write(&forged.join(".git"), &text);
            assert_eq!(linked_repository(&forged), None, "{text}");
        }
        fs::remove_file(tree.join(".git")).expect("removed");
        std::os::unix::fs::symlink(main.join(".git"), tree.join(".git")).expect("linked");
        assert_eq!(linked_repository(&tree), None, "a link proves nothing");
    }

    #[test]
    fn a_submodule_leads_to_its_git_directory_if_that_names_it() {
        let (_directory, main, _) = trees();
        let module = main.join(".git/modules/sub");
        let tree = main.join("sub");
        fs::create_dir_all(module.join("objects")).expect("made");
        fs::create_dir_all(&tree).expect("made");
        write(&module.join("HEAD"), "ref: refs/heads/main");
        write(&tree.join(".git"), "gitdir: ../.git/modules/sub");
        write(&module.join("config"), "[core]\n\tworktree = ../../../other\n");
        assert_eq!(linked_repository(&tree), None);
        write(&module.join("config"), "[core]\n\tworktree = ../../../sub\n");
        assert_eq!(linked_repository(&tree), Some(module));
    }

    #[test]
    fn a_file_that_is_too_long_is_not_taken_for_its_beginning() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config");
        write(&path, &"x".repeat(LONGEST));
        assert!(read(&path).is_ok_and(|text| text.is_some_and(|text| text.len() == LONGEST)));
        write(&path, &"x".repeat(LONGEST + 1));
        assert!(read(&path).is_err());
    }
}
