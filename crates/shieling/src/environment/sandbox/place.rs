//! Where things stand: which places are the system's, what a home may be, and small entries of a view.
//! Looks at nothing but the text of paths, except for [`system`] and [`leads_through`].
#![expect(
    clippy::disallowed_methods,
    reason = "which directories this host has is looked up here"
)]

use std::fs;
use std::path::{Component, Path, PathBuf};

use shieling_jail::plan::Entry;

use super::Restrictions;
use super::steps::{LINKS, Steps};

/// Places that neither a workspace nor a home may be, or contain: they would lie over the system.
pub(super) const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/libx32",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/sbin",
    "/usr/share",
    "/var/lib",
];

/// Places below which there is nothing to work in.
const NOT_BELOW: &[&str] = &["/boot", "/dev", "/proc", "/sys"];

/// The directories beside `/usr` that are links into it on most hosts.
const BESIDE_USR: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Where libraries are, in `/usr`.
const LIBRARIES: &[&str] = &[
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/local/lib",
    "/usr/local/lib64",
];

/// Whether a path is absolute and has no `.` and no `..`, as the places of a plan must be.
pub(super) fn is_clean(path: &Path) -> bool {
    let mut components = path.components();
    components.next() == Some(Component::RootDir) && components.all(|part| matches!(part, Component::Normal(_)))
}

/// The system's place that this path is, contains or lies in where nothing can be worked in.
pub(super) fn swallows(path: &Path) -> Option<&'static str> {
    let below = NOT_BELOW
        .iter()
        .find(|place| path.starts_with(place) && !below(path, "/dev/shm"));
    SYSTEM
        .iter()
        .find(|place| Path::new(place).starts_with(path))
        .or(below)
        .copied()
}

/// Whether a path lies strictly below another.
pub(super) fn below(path: &Path, ancestor: impl AsRef<Path>) -> bool {
    path.starts_with(ancestor.as_ref()) && path != ancestor.as_ref()
}

/// Whether whoever can write in `directory` can decide what the absolute `path` names: the file, or
/// a directory or link on the way to it, is in there. `directory` has no links in it.
pub fn leads_through(path: &Path, directory: &Path) -> bool {
    if directory == Path::new("/") {
        return true;
    }
    Steps::to(path, LINKS).any(|step| {
        // What is not known may lead anywhere; a loop of links cannot be opened either.
        step.map_or(true, |step| {
            step.directory.starts_with(directory) || !step.is_link() && step.path.starts_with(directory)
        })
    })
}

/// The home inside: the caller's own path, since toolchains are made for it. Where there is none, or
/// one that would lie over the system, it is `/home/NAME`.
pub(super) fn home(restrictions: &Restrictions) -> PathBuf {
    let own = restrictions.home.as_deref().filter(|home| {
        is_clean(home)
            && swallows(home).is_none()
            && !["/usr", "/etc", "/bin", "/lib"]
                .iter()
                .any(|system| home.starts_with(system))
    });
    if let Some(home) = own {
        return home.to_path_buf();
    }
    Path::new("/home").join(user(restrictions))
}

/// The caller's name, where it can be one in `/etc/passwd`.
pub(super) fn user(restrictions: &Restrictions) -> &str {
    let fine = |name: &&str| {
        !name.is_empty()
            && name.len() <= 32
            && !name.starts_with(['-', '.'])
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    restrictions.user_name.as_deref().filter(fine).unwrap_or("user")
}

/// Something of the host at its own place, read-only, passed over if it is not there.
pub(super) fn shown(path: impl Into<PathBuf>, executable: bool) -> Entry {
    let path = path.into();
    Entry::Bind {
        source: path.clone(),
        target: path,
        writable: false,
        executable,
        optional: true,
    }
}

/// The system's directories. `/usr` itself is executable where anything is; under a list of programs
/// only its libraries are, since the loader must map them, and `ld.so FILE` can then start no other.
pub(super) fn system(any_program: bool) -> Vec<Entry> {
    let mut entries = vec![Entry::Bind {
        source: fs::canonicalize("/usr").unwrap_or_else(|_| "/usr".into()),
        target: "/usr".into(),
        writable: false,
        executable: any_program,
        optional: false,
    }];
    if !any_program {
        entries.extend(LIBRARIES.iter().map(|path| shown(*path, true)));
    }
    for path in BESIDE_USR {
        match fs::read_link(path) {
            Ok(to) => entries.push(Entry::Link {
                target: path.into(),
                to,
            }),
            // No link, so a directory.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => entries.push(shown(*path, true)),
            Err(_) => {}
        }
    }
    entries.extend(
        ["/nix/store", "/gnu/store"]
            .iter()
            .filter(|path| Path::new(path).exists())
            .map(|path| shown(*path, true)),
    );
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_lie_over_the_system_is_known_and_its_neighbour_is_not() {
        for system in [
            "/",
            "/usr",
            "/usr/local",
            "/etc",
            "/proc",
            "/proc/1",
            "/sys/x",
            "/dev",
            "/dev/shm",
            "/var",
            "/run",
            "/nix",
            "/lib64",
        ] {
            assert!(swallows(Path::new(system)).is_some(), "{system}");
        }
        for fine in [
            "/usr/src/app",
            "/etcetera",
            "/dev/shm/x",
            "/var/www",
            "/run/user/1000/x",
            "/root",
            "/home",
            "/home/u",
            "/tmp",
            "/mnt/x",
            "/opt",
        ] {
            assert_eq!(swallows(Path::new(fine)), None, "{fine}");
        }
    }

    #[test]
    fn the_home_is_the_callers_own_unless_it_is_none() {
        let with = |home: Option<&str>, user: Option<&str>| {
            let mut restrictions = Restrictions::new("/w", "/bin/sh");
            restrictions.home = home.map(PathBuf::from);
            restrictions.user_name = user.map(str::to_owned);
            super::home(&restrictions)
        };
        for (given, user, expected) in [
            (Some("/root"), Some("root"), "/root"),
            (Some("/home/u"), None, "/home/u"),
            (Some("/"), Some("u"), "/home/u"),
            (Some("/usr/games"), Some("u"), "/home/u"),
            (Some("/dev/null"), Some("u"), "/home/u"),
            (Some("home/u"), Some("u"), "/home/u"),
            (Some("/home/u/../v"), Some("u"), "/home/u"),
            (None, Some("u"), "/home/u"),
            (None, Some("../etc"), "/home/user"),
            (None, None, "/home/user"),
        ] {
            assert_eq!(with(given, user), Path::new(expected), "{given:?}");
        }
    }
}
