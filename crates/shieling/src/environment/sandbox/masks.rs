//! Under a list of allowed programs: empty directories in the place of those that hold programs, and in
//! them the needed ones alone. The kernel's list of what can be executed is the first lock; this is the
//! second, since the loader, which every program needs, starts whatever it can map.
#![expect(
    clippy::disallowed_methods,
    reason = "which directories of programs this host has is looked up here"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Entry;

use super::Restrictions;
use super::allowed::{Allowed, Name, stands_among_programs};
use super::place::{below, shown};
use super::toolchain;

/// Directories of programs that every host may have.
const PROGRAMS: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/games",
    "/usr/lib/klibc/bin",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/games",
    "/usr/local/libexec",
    "/usr/local/sbin",
    "/usr/sbin",
];

/// Directories among the libraries that hold programs: shown whole if something of them is needed.
/// By how the name begins, since most carry a version.
const AMONG_LIBRARIES: &[&str] = &[
    "apt",
    "busybox",
    "cargo",
    "chromium",
    "cups",
    "dbus-1.0",
    "dotnet",
    "dpkg",
    "erlang",
    "firefox",
    "gcc",
    "ghc",
    "git-core",
    "gnupg",
    "go-",
    "jvm",
    "llvm-",
    "mono",
    "mysql",
    "node",
    "openssh",
    "php",
    "polkit-1",
    "postgresql",
    "R",
    "rust",
    "ruby",
    "sftp-server",
    "snapd",
    "sudo",
    "systemd",
    "thunderbird",
];

/// Puts the masks over what is shown so far, and the needed programs into them.
pub(super) fn put(entries: &mut Vec<Entry>, allowed: &Allowed, restrictions: &Restrictions) {
    let mut masked: BTreeSet<PathBuf> = PROGRAMS
        .iter()
        .map(PathBuf::from)
        .filter(|path| is_directory(path))
        .collect();
    let own = toolchain::path(restrictions)
        .into_iter()
        .filter(|path| !toolchain::is_system(path));
    masked.extend(own.filter(|path| is_shown(entries, path) && is_directory(path)));
    // Where a needed program really stands, others stand too.
    masked.extend(
        allowed
            .names
            .keys()
            .filter(|path| stands_among_programs(path))
            .filter_map(|path| path.parent())
            .map(Path::to_path_buf),
    );
    masked.extend(among_libraries(allowed));
    // A directory of helpers is shown whole, and what of it lies in a mask is put into that.
    masked.retain(|mask| !allowed.directories.iter().any(|directory| mask.starts_with(directory)));
    masked.retain(|mask| !mask.starts_with(&restrictions.workspace));

    for (path, name) in &allowed.names {
        let covered = masked.iter().any(|mask| below(path, mask))
            && !allowed.directories.iter().any(|directory| below(path, directory));
        match name {
            Name::Link(to) if covered => entries.push(Entry::Link {
                target: path.clone(),
                to: to.clone(),
            }),
            Name::File if covered || !is_shown(entries, path) => entries.push(shown(path, true)),
            Name::Link(_) | Name::File => {}
        }
    }
    entries.extend(
        allowed
            .directories
            .iter()
            .filter(|directory| masked.iter().any(|mask| below(directory, mask)) || !is_shown(entries, directory))
            .map(|path| shown(path, true))
            .collect::<Vec<_>>(),
    );
    // What a mask would lie over exactly need not be there.
    entries.retain(|entry| !masked.contains(entry.target()));
    entries.extend(masked.into_iter().map(|target| Entry::Directory { target }));
}

fn among_libraries(allowed: &Allowed) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for libraries in ["/usr/lib", "/usr/local/lib"] {
        for entry in fs::read_dir(libraries).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let holds_programs = name
                .to_str()
                .is_some_and(|name| AMONG_LIBRARIES.iter().any(|start| name.starts_with(start)));
            if holds_programs && entry.file_type().is_ok_and(|kind| kind.is_dir()) && !allowed.needs(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Whether a path is a directory and no link: what a link names is masked at its own place.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn is_shown(entries: &[Entry], path: &Path) -> bool {
    entries
        .iter()
        .any(|entry| matches!(entry, Entry::Bind { .. }) && path.starts_with(entry.target()))
}
