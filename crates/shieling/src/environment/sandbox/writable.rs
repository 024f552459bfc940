//! The places of the host in which commands write: the workspace, and what the caller names beside it.
//! Refuses what would let them write where something of the user's, or of the system, runs by itself.
#![expect(clippy::disallowed_methods, reason = "what is named is looked up here")]

use std::fs;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Isolation;

use super::place::{self, below, is_clean, leads_through};
use super::{Restrictions, ViewError, protect, repository, toolchain};

/// Of the system's places, those in which programs of the user have things of their own.
const NOT_ONLY_THE_SYSTEMS: &[&str] = &["/dev", "/run", "/var/lib"];
/// Further places that the system is set up by.
const SET_UP_BY: &[&str] = &[
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/gems",
    "/var/lib/systemd",
    "/var/spool",
];

/// Directories that every program of the user shares, with sockets of theirs in them.
const SHARED: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run/user"];

/// The writable places, the outermost first, each once: the workspace is always one, and a place that lies in
/// another is writable with it.
pub(super) fn roots(restrictions: &Restrictions) -> Vec<PathBuf> {
    let workspace = &restrictions.workspace;
    let named = restrictions.write.iter().filter(|path| {
        let inside = |other: &&PathBuf| below(path, other);
        !path.starts_with(workspace) && !restrictions.write.iter().any(|other| inside(&other))
    });
    let mut roots: Vec<PathBuf> = named.chain([workspace]).cloned().collect();
    roots.sort_by_key(|path| (path.components().count(), path.clone()));
    roots.dedup();
    roots
}

/// Those of them that are directories.
pub(super) fn directories(restrictions: &Restrictions) -> Vec<PathBuf> {
    let mut roots = roots(restrictions);
    roots.retain(|root| root.is_dir());
    roots
}

/// Checks what the caller wants to be writable beside the workspace. Homes are looked at elsewhere.
///
/// # Errors
/// [`ViewError::NotWritable`].
pub(super) fn check(restrictions: &Restrictions) -> Result<(), ViewError> {
    restrictions
        .write
        .iter()
        .try_for_each(|path| check_one(path, restrictions))
}

/// The nearest directory above a path, or at it, that is there.
pub(super) fn nearest(path: &Path) -> Option<&Path> {
    path.ancestors().find(|above| above.is_dir())
}

/// Whether this one can be made writable.
pub(super) fn check_one(path: &Path, restrictions: &Restrictions) -> Result<(), ViewError> {
    let refuse = |because: String, instead: &'static str| {
        Err(ViewError::NotWritable {
            path: path.to_path_buf(),
            because,
            instead,
        })
    };
    let below_it = "name a directory of your own";
    if restrictions.isolation != Isolation::Full {
        return refuse(
            "names in it cannot be protected with `--isolation landlock`".to_owned(),
            "leave one of them out",
        );
    }
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return refuse("it is not there".to_owned(), "make it first, outside of the sandbox");
        }
        Err(error) => return refuse(error.to_string(), below_it),
    };
    if !is_clean(path) || !fs::canonicalize(path).is_ok_and(|real| real == path) {
        return refuse(
            "it is reached by a link, which somebody may lay anew".to_owned(),
            "name the place that it leads to",
        );
    }
    if !kind.is_dir() && !kind.is_file() {
        return refuse("it is neither a directory nor a file".to_owned(), below_it);
    }
    // Nothing is made writable below what the whole system runs from, or is set up by.
    let below_system = || {
        let places = place::SYSTEM
            .iter()
            .filter(|place| !NOT_ONLY_THE_SYSTEMS.contains(place));
        places.chain(SET_UP_BY).find(|place| path.starts_with(place)).copied()
    };
    let system = place::swallows(path).or_else(below_system);
    if let Some(system) = system {
        return refuse(format!("it has to do with `{system}`, which is the system's"), below_it);
    }
    if let Some(shared) = SHARED.iter().find(|shared| Path::new(shared) == path) {
        return refuse(
            format!(
                "programs of this host share `{shared}`, and have their sockets in it; the sandbox has one of its own"
            ),
            "name a directory in it",
        );
    }
    if let Some(own) = restrictions
        .own
        .iter()
        .find(|own| own.starts_with(path) || path.starts_with(own))
    {
        return refuse(format!("Shieling keeps its records in `{}`", own.display()), below_it);
    }
    if path.starts_with(&restrictions.workspace) {
        return Ok(());
    }
    if leads_through(path, &restrictions.workspace) {
        return refuse("it is reached through the workspace".to_owned(), below_it);
    }
    if restrictions.open_protected {
        return Ok(());
    }
    let home = restrictions
        .home
        .as_deref()
        .and_then(|home| fs::canonicalize(home).ok());
    if let Some(name) = protect::runs_by_itself(path, home.as_deref()) {
        return refuse(
            format!(
                "tools of yours run code from `{}`, or speak for you by it",
                name.display()
            ),
            "name a directory beside it, or allow it with `--open-protected`",
        );
    }
    let on_path = toolchain::path(restrictions).into_iter().find(|directory| {
        path.starts_with(directory) || fs::canonicalize(directory).is_ok_and(|real| path.starts_with(real))
    });
    if let Some(directory) = on_path {
        return refuse(
            format!(
                "`{}` is on your PATH: you would run what a command puts there",
                directory.display()
            ),
            "name a directory beside it, or allow it with `--open-protected`",
        );
    }
    Ok(())
}

/// The repository that holds the workspace, where the workspace is a directory of it and not its top: git
/// finds it on the host, and not in a sandbox that shows the workspace alone.
pub fn repository_above(workspace: &Path) -> Option<PathBuf> {
    if fs::symlink_metadata(workspace.join(".git")).is_ok() || repository::is_git_directory(workspace) {
        return None;
    }
    workspace
        .ancestors()
        .skip(1)
        .find(|above| fs::symlink_metadata(above.join(".git")).is_ok())
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, Restrictions) {
        let place = tempfile::tempdir().expect("a directory");
        let at = place.path().canonicalize().expect("it is there");
        for directory in [
            "ws",
            "home/.ssh/x",
            "home/src",
            "home/.config",
            "repo/.git/hooks",
            "repo/.git/objects",
            "bin/x",
            "state",
        ] {
            fs::create_dir_all(at.join(directory)).expect("made");
        }
        fs::write(at.join("repo/.git/HEAD"), "ref: refs/heads/main").expect("written");
        fs::write(at.join("file"), "").expect("written");
        symlink(at.join("home/src"), at.join("ws/link")).expect("linked");
        let mut restrictions = Restrictions::new(at.join("ws"), "/bin/sh");
        restrictions.home = Some(at.join("home"));
        restrictions.path = format!("{}:/usr/bin", at.join("bin").display());
        restrictions.own = vec![at.join("state")];
        (place, at, restrictions)
    }

    #[test]
    fn what_runs_by_itself_is_not_made_writable_and_its_neighbour_is() {
        let (_place, at, mut restrictions) = place();
        let own = |path: &str| at.join(path);
        let cases = [
            (own("home/src"), None),
            (own("home/.config"), None),
            (own("repo"), None),
            (own("repo/.git"), None),
            (own("file"), None),
            (own("ws/x"), Some("not there")),
            (own("ws/link"), Some("link")),
            (own("home/.ssh"), Some(".ssh")),
            (own("home/.ssh/x"), Some(".ssh")),
            (own("repo/.git/hooks"), Some("hooks")),
            (own("bin"), Some("PATH")),
            (own("bin/x"), Some("PATH")),
            (own("state"), Some("records")),
            ("/".into(), Some("system")),
            ("/etc".into(), Some("system")),
            ("/etc/ssl".into(), Some("system")),
            ("/usr".into(), Some("system")),
            ("/usr/lib".into(), Some("system")),
            ("/proc/self".into(), Some("")),
            ("/dev/null".into(), Some("neither")),
            ("/tmp".into(), Some("share")),
            ("relative".into(), Some("not there")),
        ];
        for (path, expected) in cases {
            restrictions.write = vec![path.clone()];
            let refused = check(&restrictions).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(refused, None, "{path:?}"),
                Some(word) => assert!(
                    refused.as_ref().is_some_and(|told| told.contains(word)),
                    "{path:?}: {refused:?}"
                ),
            }
        }
        restrictions.write = vec![own("home/src")];
        restrictions.isolation = Isolation::Landlock;
        assert!(check(&restrictions).is_err());
    }

    #[test]
    fn each_place_is_there_once_and_the_outermost_first() {
        let (_place, at, mut restrictions) = place();
        restrictions.workspace = at.join("repo/a");
        restrictions.write = ["repo", "repo/b", "repo/a/c", "home/src", "home/src"]
            .map(|path| at.join(path))
            .into();
        assert_eq!(
            roots(&restrictions),
            ["repo", "home/src", "repo/a"].map(|path| at.join(path))
        );
    }

    #[test]
    fn a_repository_above_the_workspace_is_found() {
        let (_place, at, _) = place();
        fs::create_dir_all(at.join("repo/packages/a")).expect("made");
        assert_eq!(repository_above(&at.join("repo/packages/a")), Some(at.join("repo")));
        assert_eq!(repository_above(&at.join("repo")), None);
        assert_eq!(repository_above(&at.join("repo/.git")), None);
    }
}
