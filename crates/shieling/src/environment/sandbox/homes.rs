//! A home as the workspace: found, refused, and, where it is asked for, held.
//!
//! What starts by itself or speaks for the user stands in a home under fixed names (`.bashrc`, `.ssh`,
//! `.config/autostart`), and a name that is absent cannot be covered by a mount. So a home that is worked in
//! is not shown as it is: in its place stands a read-only directory of ours, with each existing entry of the
//! home mounted into it at its own name. Existing projects work as anywhere; nothing can be added, renamed
//! or removed at the home's top. The same holds for each directory of the home on the way to such a name
//! (`.config`, `.local`), also where a link of the home leads there. What exists of those names is
//! protected where it stands.
//!
//! Which names these are is said in [`super::protect`]; directories of the caller's `PATH` count too.
#![expect(clippy::disallowed_methods, reason = "which homes this host has is looked up here")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use shieling_jail::plan::Entry;

use super::place::{below, is_clean, parts};
use super::{Restrictions, ViewError, protect, toolchain};

/// How many entries a home's top, and the directories on the way to its names, may have together.
const MOST: usize = 2_000;

/// How many links are followed to where a name really leads.
const LINKS: usize = 16;

/// The shells of users who cannot log in, and so have no home that anything starts from.
const NO_SHELLS: [&str; 6] = ["false", "halt", "nologin", "shutdown", "sync", "true"];

/// The homes that a writable place is or holds, by their real paths: the caller's, and those of the users whom
/// this host lists with a shell.
pub(super) fn held(root: &Path, restrictions: &Restrictions) -> BTreeSet<PathBuf> {
    let users = fs::read("/etc/passwd").unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let homes = listed(&users).chain(restrictions.home.clone());
    homes
        .filter(|home| home.is_absolute())
        .filter_map(|home| fs::canonicalize(home).ok())
        .filter(|home| home.starts_with(root) && home.is_dir())
        .collect()
}

/// The homes in a list of users, of those who can log in.
fn listed(users: &str) -> impl Iterator<Item = PathBuf> {
    users.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, _, _, _, home, shell] = fields.as_slice() else {
            return None;
        };
        let shell = Path::new(shell.trim()).file_name().and_then(|name| name.to_str());
        let can_log_in = !shell.is_some_and(|shell| NO_SHELLS.contains(&shell));
        (can_log_in && !home.is_empty()).then(|| PathBuf::from(home))
    })
}

/// What stands in the place of homes.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// To be put after the workspace, in this order.
    pub(super) entries: Vec<Entry>,
    /// The directories in which nothing can be made, renamed or removed.
    pub(super) closed: BTreeSet<PathBuf>,
}

impl Homes {
    /// With those of another place.
    pub(super) fn join(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.closed.extend(other.closed);
    }

    /// Whether this is such a directory, or one is in it. It is kept in its place here, and mounted once more
    /// over itself it could be written to.
    pub(super) fn has_closed(&self, directory: &Path) -> bool {
        self.closed.iter().any(|closed| closed.starts_with(directory))
    }
}

/// Holds these homes of a writable place. Where one is that place itself, its entries show it.
///
/// # Errors
/// It cannot be listed, or has more entries than are held.
pub(super) fn hold(homes: &BTreeSet<PathBuf>, root: &Path, restrictions: &Restrictions) -> Result<Homes, ViewError> {
    let mut search = Search {
        workspace: root,
        executable: restrictions.programs.is_none(),
        closed: BTreeSet::new(),
        protected: BTreeSet::new(),
    };
    let path = toolchain::path(restrictions);
    let real = path.iter().filter_map(|directory| fs::canonicalize(directory).ok());
    let path: BTreeSet<PathBuf> = path.iter().cloned().chain(real).collect();
    // Where this user cannot write, no command can.
    for home in homes.iter().filter(|home| is_writable(home)) {
        search.closed.insert(home.clone());
        for name in protect::names_of_a_home() {
            search.name(home, Path::new(name));
        }
        for name in path.iter().filter_map(|directory| directory.strip_prefix(home).ok()) {
            search.name(home, name);
        }
    }
    search.finish()
}

struct Search<'a> {
    workspace: &'a Path,
    executable: bool,
    closed: BTreeSet<PathBuf>,
    protected: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// Closes every directory of the workspace in which this name, or a link that it leads through, could be
    /// made or replaced; and protects what it leads to.
    fn name(&mut self, home: &Path, name: &Path) {
        let mut here = home.to_path_buf();
        let mut ahead = parts(name);
        let mut links = LINKS;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            if !here.is_dir() {
                return;
            }
            if here.starts_with(self.workspace) {
                self.closed.insert(here.clone());
            }
            let next = here.join(part);
            match fs::read_link(&next) {
                Ok(target) if links > 0 => {
                    links -= 1;
                    if target.is_absolute() {
                        here = "/".into();
                    }
                    ahead.extend(parts(&target));
                }
                // A loop leads nowhere.
                Ok(_) => return,
                // Not there: it cannot be made, since what it would be made in is closed.
                Err(_) if fs::symlink_metadata(&next).is_err() => return,
                Err(_) => here = next,
            }
        }
        if below(&here, self.workspace) && !self.closed.contains(&here) {
            self.protected.insert(here);
        }
    }

    fn finish(mut self) -> Result<Homes, ViewError> {
        // What is protected as a whole need not be closed.
        let whole = std::mem::take(&mut self.protected);
        self.protected = whole.into_iter().filter(|path| !self.closed.contains(path)).collect();
        self.closed
            .retain(|path| !self.protected.iter().any(|whole| path.starts_with(whole)));
        let mut entries = Vec::new();
        let mut left = MOST;
        let mut pinned = BTreeSet::new();
        // In order, so that each comes after what it lies in.
        for directory in &self.closed {
            self.pin_above(directory, &mut pinned, &mut entries);
            entries.push(Entry::Directory {
                target: directory.clone(),
            });
            for (path, link) in list(directory)? {
                left = left.checked_sub(1).ok_or_else(|| ViewError::HomeTooLarge {
                    directory: directory.clone(),
                    most: MOST,
                })?;
                if self.closed.contains(&path) {
                    continue;
                }
                entries.push(match link {
                    Some(to) => Entry::Link { target: path, to },
                    None => Entry::Bind {
                        source: path.clone(),
                        target: path,
                        writable: true,
                        executable: self.executable,
                        optional: false,
                    },
                });
            }
        }
        for path in &self.protected {
            self.pin_above(path, &mut pinned, &mut entries);
            entries.push(Entry::Protect { target: path.clone() });
        }
        Ok(Homes {
            entries,
            closed: self.closed,
        })
    }

    /// Keeps the directories above a path in their place. A closed one keeps what is in it by itself.
    fn pin_above(&self, path: &Path, pinned: &mut BTreeSet<PathBuf>, entries: &mut Vec<Entry>) {
        let above = path
            .ancestors()
            .skip(1)
            .take_while(|above| below(above, self.workspace) && !self.closed.contains(*above));
        for target in above.collect::<Vec<_>>().into_iter().rev() {
            if pinned.insert(target.to_path_buf()) {
                entries.push(Entry::Again {
                    target: target.to_path_buf(),
                    writable: true,
                    executable: self.executable,
                });
            }
        }
    }
}

fn is_writable(directory: &Path) -> bool {
    rustix::fs::accessat(CWD, directory, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// The entries of a directory, and what those that are links say; without those that not even their owner
/// is shown, such as another user's mounts.
fn list(directory: &Path) -> Result<Vec<(PathBuf, Option<PathBuf>)>, ViewError> {
    let failed = |source| ViewError::HomeUnreadable {
        directory: directory.to_path_buf(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !is_clean(&path) {
            continue;
        }
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_symlink() => {
                if let Ok(to) = fs::read_link(&path) {
                    found.push((path, Some(to)));
                }
            }
            Ok(_) => found.push((path, None)),
            Err(_) => {}
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_homes_of_users_who_can_log_in_are_homes() {
        let users = "root:x:0:0:root:/root:/bin/bash\n\
                     daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
                     sync:x:4:65534:sync:/bin:/bin/sync\n\
                     u:x:1000:1000:U,,,:/home/u:/usr/bin/zsh\n\
                     default:x:1001:1001::/home/default:\n\
                     www-data:x:33:33:www-data:/var/www:/bin/false\n\
                     nothing\n\
                     :::::::\n";
        let homes: Vec<PathBuf> = listed(users).collect();
        assert_eq!(homes, ["/root", "/home/u", "/home/default"].map(PathBuf::from));
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a directory");
        let home = place.path().canonicalize().expect("just made").join("home");
        for directory in [
            "project/src",
            ".config/app",
            ".ssh",
            "dotfiles/deep/config/nvim",
            ".local",
        ] {
            fs::create_dir_all(home.join(directory)).expect("made");
        }
        fs::write(home.join(".bashrc"), "x").expect("written");
        (place, home)
    }

    fn hold(home: &Path) -> Homes {
        let mut restrictions = Restrictions::new(home, "/bin/bash");
        restrictions.path = format!("{}/tools/bin:/usr/bin", home.display());
        super::hold(&[home.to_path_buf()].into(), home, &restrictions).expect("it is small")
    }

    fn has(homes: &Homes, is: impl Fn(&Entry) -> bool) -> bool {
        homes.entries.iter().any(is)
    }

    #[test]
    fn nothing_can_be_added_where_a_name_that_runs_by_itself_could_be() {
        let (_place, home) = place();
        let held = hold(&home);
        for closed in ["", ".config", ".local"] {
            assert!(held.closed.contains(&home.join(closed)), "{closed}: {:?}", held.closed);
        }
        for open in ["project", ".config/app"] {
            let open = home.join(open);
            assert!(
                has(
                    &held,
                    |entry| matches!(entry, Entry::Bind { target, writable: true, .. } if *target == open)
                ),
                "{open:?}"
            );
        }
        for kept in [".bashrc", ".ssh"] {
            let kept = home.join(kept);
            assert!(
                has(
                    &held,
                    |entry| matches!(entry, Entry::Protect { target, .. } if *target == kept)
                ),
                "{kept:?}"
            );
        }
        // A closed directory is never mounted over itself: the second mount would be writable.
        assert!(!has(
            &held,
            |entry| matches!(entry, Entry::Again { target, .. } if held.closed.contains(target))
        ));
    }

    #[test]
    fn a_link_of_the_home_closes_and_protects_where_it_leads() {
        let (_place, home) = place();
        fs::remove_dir_all(home.join(".config")).expect("removed");
        fs::remove_file(home.join(".bashrc")).expect("removed");
        symlink("dotfiles/deep/config", home.join(".config")).expect("linked");
        symlink("dotfiles/absent/bashrc", home.join(".bashrc")).expect("linked");
        symlink(home.join("project/../dotfiles/zshrc"), home.join(".zshrc")).expect("linked");
        symlink("/etc/profile", home.join(".profile")).expect("linked");
        symlink("loop", home.join("loop")).expect("linked");
        symlink("loop", home.join(".vimrc")).expect("linked");
        let held = hold(&home);
        for closed in ["dotfiles/deep/config", "dotfiles"] {
            assert!(held.closed.contains(&home.join(closed)), "{closed}: {:?}", held.closed);
        }
        let nvim = home.join("dotfiles/deep/config/nvim");
        assert!(has(
            &held,
            |entry| matches!(entry, Entry::Protect { target, .. } if *target == nvim)
        ));
        assert!(
            !has(&held, |entry| !entry.target().starts_with(&home)),
            "{:?}",
            held.entries
        );
        // What is on the way stays in its place.
        let closed_or_pinned = |path: &Path| {
            held.closed.contains(path)
                || has(
                    &held,
                    |entry| matches!(entry, Entry::Again { target, .. } if target == path),
                )
        };
        assert!(closed_or_pinned(&home.join("dotfiles/deep")));
    }

    #[test]
    fn a_home_of_more_entries_than_are_held_is_refused_by_its_bound() {
        let (_place, home) = place();
        for number in 0..=MOST {
            fs::write(home.join(number.to_string()), "").expect("written");
        }
        let refused = super::hold(&[home.clone()].into(), &home, &Restrictions::new(&home, "/bin/bash"));
        let told = refused.expect_err("there are too many").to_string();
        assert!(told.contains("2000") || told.contains("2,000"), "{told}");
    }
}
