//! A home as the workspace, or a part of one: found, refused, and, where it is asked for, held.
//!
//! What starts by itself or speaks for the user stands in a home under names that begin with a dot (`.bashrc`,
//! `.ssh`, `.config/autostart`), and a name that is absent cannot be covered by a mount. So a home that is
//! worked in is not shown as it is: in its place stands a read-only directory of ours, with each existing
//! entry of the home mounted into it at its own name. Existing projects work as anywhere; nothing can be
//! added, renamed or removed at the home's top.
//!
//! Every name that begins with a dot is read-only, with all below it, but for the caches and states of
//! [`OPEN`]. So are the names without a dot from which something runs by itself ([`super::protect`]), and
//! directories of the caller's `PATH`. Where one of these, by a name that we know, leads elsewhere in the home by
//! links, nothing can be made, renamed or removed in the directories that it leads through, and what it leads
//! to is read-only. What other links below a name with a dot lead to is protected where it stands; their
//! directories stay open, since they are projects as a rule.
#![expect(clippy::disallowed_methods, reason = "which homes this host has is looked up here")]

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use shieling_jail::plan::Entry;

use super::place::{below, is_clean};
use super::steps::{LINKS, Steps, Unknown};
use super::{Restrictions, ViewError, protect, toolchain};

/// What commands may write of what begins with a dot in a home: caches, and places for checkouts. What is in
/// a cache is used when the user builds; nothing of it runs by itself.
const OPEN: &[&str] = &[
    ".cache",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/git",
    ".cargo/registry",
    ".ccache",
    ".claude/worktrees",
    ".codex/worktrees",
    ".cursor/worktrees",
    ".gradle/caches",
    ".ivy2/cache",
    ".jenkins/workspace",
    ".local/share/Trash",
    ".local/share/pnpm/store",
    ".local/src",
    ".m2/repository",
    ".npm",
    ".nuget/packages",
    ".yarn/berry/cache",
];

/// What of the open places does run by itself: parts of shells and editors, and programs of hooks. The last
/// name may be the beginning of one.
const NOT_OPEN: &[&str] = &[
    ".cache/antidote",
    ".cache/gitstatus",
    ".cache/nvim",
    ".cache/oh-my-",
    ".cache/p10k-",
    ".cache/pre-commit",
    ".cache/prezto",
    ".cache/starship",
    ".cache/vim",
    ".cache/wal",
    ".cache/zcompdump",
    ".cache/zinit",
    ".cache/zsh",
    ".npm/_npx",
];

/// How much of homes is held. More than that is refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Entries of a home's top, and of the directories that links of it lead through, together.
    entries: usize,
    /// Entries of directories that begin with a dot, which are looked at for links.
    looked_at: usize,
    /// Links on the way to one file.
    links: usize,
}

impl Bounds {
    const ALL: Self = Self {
        entries: 2_000,
        looked_at: 50_000,
        links: LINKS,
    };
}

/// How deep links are looked for below a directory that begins with a dot: in `.config/nvim`, as programs that
/// keep such files elsewhere lay them.
const LINK_DEPTH: usize = 2;

/// The shells of users who cannot log in, and so have no home that anything starts from.
const NO_SHELLS: [&str; 6] = ["false", "halt", "nologin", "shutdown", "sync", "true"];

/// The homes of this host by their real paths: the caller's, and those of the users whom this host lists with a
/// shell.
pub(super) fn known(home: Option<&Path>) -> BTreeSet<PathBuf> {
    let users = fs::read("/etc/passwd").unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let homes = listed(&users).chain(home.map(Path::to_path_buf));
    homes
        .filter(|home| home.is_absolute())
        .filter_map(|home| fs::canonicalize(home).ok())
        .filter(|home| home.is_dir())
        .collect()
}

/// A home of which the workspace is a part that is not worked in as such, and the name by which it is.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) home: PathBuf,
    pub(super) name: PathBuf,
    /// Whether something there starts by itself or speaks for the user, as far as is known.
    pub(super) starts: bool,
}

/// Whether the workspace lies in a home, in a place that begins with a dot and is not [`OPEN`], or one to which
/// such a name leads.
pub(super) fn part(homes: &BTreeSet<PathBuf>, workspace: &Path) -> Option<Part> {
    homes.iter().find_map(|home| {
        if let Ok(inside) = workspace.strip_prefix(home)
            && is_dotted(inside)
            && !is_open(inside)
        {
            let starts = |name: &str| inside.starts_with(name) || Path::new(name).starts_with(inside);
            return Some(Part {
                home: home.clone(),
                name: inside.to_path_buf(),
                starts: protect::names_of_a_home().any(starts),
            });
        }
        let mut names = names_in(home, None);
        let link = names.find(|name| {
            let leads = fs::symlink_metadata(name).is_ok_and(|found| found.is_symlink());
            leads && fs::canonicalize(name).is_ok_and(|real| workspace.starts_with(real))
        })?;
        Some(Part {
            name: link.strip_prefix(home).unwrap_or(&link).to_path_buf(),
            home: home.clone(),
            starts: true,
        })
    })
}

/// Where in the workspace links of homes outside of it lead by names that begin with a dot, or from which
/// something starts by itself.
pub(super) fn led_to(homes: &BTreeSet<PathBuf>, workspace: &Path) -> Vec<PathBuf> {
    let outside = homes.iter().filter(|home| !home.starts_with(workspace));
    let names = outside.flat_map(|home| {
        let listed = list_names(home);
        let own: Vec<PathBuf> = listed
            .iter()
            .flatten()
            .map(PathBuf::from)
            .filter(|name| is_dotted(name) && !is_open(name))
            .map(|name| home.join(name))
            .collect();
        own.into_iter().chain(names_in(home, listed))
    });
    let links: BTreeSet<PathBuf> = names
        .filter(|name| fs::symlink_metadata(name).is_ok_and(|found| found.is_symlink()))
        .collect();
    let ends = links.iter().filter_map(|link| match Steps::to(link, LINKS).last() {
        Some(Ok(step)) if !step.is_link() => Some(step.path),
        _ => None,
    });
    // A cache that is worked in.
    let parts = homes
        .iter()
        .filter(|home| below(workspace, home))
        .flat_map(|home| not_open(home));
    ends.chain(parts).filter(|path| below(path, workspace)).collect()
}

/// The names in a home, if it can be listed.
fn list_names(home: &Path) -> Option<Vec<OsString>> {
    let entries = fs::read_dir(home).ok()?;
    entries.map(|entry| Some(entry.ok()?.file_name())).collect()
}

/// Of the names from which something starts, those that may be in a home: of most the first part is not there,
/// which its list tells sooner than a look at each. `listed` are its names, if they are known already.
fn names_in(home: &Path, listed: Option<Vec<OsString>>) -> impl Iterator<Item = PathBuf> {
    // Some file systems find a name in whatever case it is asked for.
    let folded = |name: &OsStr| name.as_bytes().to_ascii_lowercase();
    let listed: Option<HashSet<_>> = listed
        .or_else(|| list_names(home))
        .map(|names| names.iter().map(|name| folded(name)).collect());
    let home = home.to_path_buf();
    protect::names_of_a_home().filter_map(move |name| {
        let first = Path::new(name).components().next()?;
        let there = listed
            .as_ref()
            .is_none_or(|listed| listed.contains(&folded(first.as_os_str())));
        there.then(|| home.join(name))
    })
}

/// What is there in the open places of a home that runs by itself.
fn not_open(home: &Path) -> impl Iterator<Item = PathBuf> {
    let parents: BTreeSet<PathBuf> = NOT_OPEN
        .iter()
        .filter_map(|name| home.join(name).parent().map(Path::to_path_buf))
        .collect();
    let entries = parents
        .into_iter()
        .flat_map(|parent| fs::read_dir(parent).into_iter().flatten().flatten());
    let home = home.to_path_buf();
    entries
        .map(|entry| entry.path())
        .filter(move |path| path.strip_prefix(&home).is_ok_and(|inside| !is_open(inside)))
}

/// Whether a path relative to a home begins with a dot.
fn is_dotted(inside: &Path) -> bool {
    inside.as_os_str().as_bytes().first() == Some(&b'.')
}

/// Whether all of a path relative to a home may be written.
fn is_open(inside: &Path) -> bool {
    let is_open = OPEN.iter().any(|open| inside.starts_with(open));
    let begins = |name: &&str| inside.as_os_str().as_bytes().starts_with(name.as_bytes());
    is_open && !NOT_OPEN.iter().any(begins)
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
    /// What cannot be changed, with all below it but for what is open.
    pub(super) fixed: BTreeSet<PathBuf>,
    /// What is open of that.
    pub(super) open: BTreeSet<PathBuf>,
    /// Links of homes, or where in the workspace these lead, from which something starts by itself: what they
    /// lead to is to be protected.
    pub(super) led_to: Vec<PathBuf>,
}

impl Homes {
    /// With those of another place.
    pub(super) fn join(&mut self, other: Self) {
        let Self {
            entries,
            closed,
            fixed,
            open,
            led_to,
        } = other;
        self.entries.extend(entries);
        self.closed.extend(closed);
        self.fixed.extend(fixed);
        self.open.extend(open);
        self.led_to.extend(led_to);
    }

    /// Whether this is such a directory, or one is in it. It is kept in its place here, and mounted once more
    /// over itself it could be written to.
    pub(super) fn has_closed(&self, directory: &Path) -> bool {
        self.closed.iter().any(|closed| closed.starts_with(directory))
    }

    /// Whether this cannot be changed, and nothing made in it.
    pub(super) fn is_fixed(&self, path: &Path) -> bool {
        let nearest = path
            .ancestors()
            .find(|above| self.fixed.contains(*above) || self.open.contains(*above));
        nearest.is_some_and(|above| self.fixed.contains(above))
    }
}

/// Holds these homes of a writable place. Where one is that place itself, its entries show it.
///
/// # Errors
/// It cannot be listed, or has more than is held.
pub(super) fn hold(homes: &BTreeSet<PathBuf>, root: &Path, restrictions: &Restrictions) -> Result<Homes, ViewError> {
    hold_within(homes, root, restrictions, Bounds::ALL)
}

fn hold_within(
    homes: &BTreeSet<PathBuf>,
    root: &Path,
    restrictions: &Restrictions,
    bounds: Bounds,
) -> Result<Homes, ViewError> {
    let mut search = Search {
        workspace: root,
        executable: restrictions.programs.is_none(),
        bounds,
        looked_at: 0,
        closed: BTreeSet::new(),
        fixed: BTreeSet::new(),
        open: BTreeSet::new(),
        led_to: Vec::new(),
    };
    let path = toolchain::path(restrictions);
    let real = path.iter().filter_map(|directory| fs::canonicalize(directory).ok());
    let path: BTreeSet<PathBuf> = path.iter().cloned().chain(real).collect();
    for home in homes {
        let entries = list(home)?;
        // Where this user can change nothing, no command can.
        if !is_changeable(home) && !entries.iter().any(|(path, _)| is_changeable(path)) {
            continue;
        }
        search.closed.insert(home.clone());
        for (path, link) in entries {
            let inside = path.strip_prefix(home).unwrap_or(&path);
            if !is_dotted(inside) || is_open(inside) {
                continue;
            }
            if link.is_some() {
                search.led_to.push(path);
            } else {
                search.fixed.insert(path.clone());
                search.links(home, &path, LINK_DEPTH)?;
            }
        }
        for name in protect::names_of_a_home() {
            search.name(home, Path::new(name))?;
        }
        for name in path.iter().filter_map(|directory| directory.strip_prefix(home).ok()) {
            search.name(home, name)?;
        }
        search.open(home);
    }
    search.finish()
}

struct Search<'a> {
    workspace: &'a Path,
    executable: bool,
    bounds: Bounds,
    looked_at: usize,
    closed: BTreeSet<PathBuf>,
    fixed: BTreeSet<PathBuf>,
    open: BTreeSet<PathBuf>,
    led_to: Vec<PathBuf>,
}

impl Search<'_> {
    /// Closes every directory of the workspace in which this name, or a link that it leads through, could be
    /// made or replaced; and protects what it leads to.
    fn name(&mut self, home: &Path, name: &Path) -> Result<(), ViewError> {
        let path = home.join(name);
        let mut end = None;
        // Those of the home itself stand where they stand.
        let above = home.components().count().saturating_sub(1);
        for step in Steps::to(&path, self.bounds.links).skip(above) {
            let step = match step {
                Ok(step) => step,
                Err(Unknown::TooManyLinks) => {
                    return Err(ViewError::Exceeded {
                        place: path,
                        what: "links on the way to it",
                        bound: self.bounds.links,
                    });
                }
                // Closed to us is closed to commands, as long as none of them opens it.
                Err(Unknown::Closed(closed, _)) if below(&closed, self.workspace) => {
                    self.fixed.insert(closed);
                    return Ok(());
                }
                Err(Unknown::Closed(..)) => return Ok(()),
            };
            if step.directory.starts_with(self.workspace) {
                self.closed.insert(step.directory.clone());
            }
            // Not there: it cannot be made, since what it would be made in is closed.
            if step.found.is_none() {
                return Ok(());
            }
            end = Some(step.path).filter(|_| step.found.is_some_and(|found| !found.is_symlink()));
        }
        if let Some(end) = end.filter(|end| below(end, self.workspace) && !self.closed.contains(end)) {
            self.fixed.insert(end);
        }
        Ok(())
    }

    /// Finds the links in a directory that begins with a dot. Those among programs lead to what is built, which
    /// the user starts as any other.
    fn links(&mut self, home: &Path, directory: &Path, depth: usize) -> Result<(), ViewError> {
        // What cannot be listed is no directory, or nobody's way to anything.
        let Ok(entries) = fs::read_dir(directory) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            self.looked_at += 1;
            if self.looked_at > self.bounds.looked_at {
                return Err(ViewError::Exceeded {
                    place: home.to_path_buf(),
                    what: "entries of directories that begin with a dot",
                    bound: self.bounds.looked_at,
                });
            }
            let path = entry.path();
            let inside = path.strip_prefix(home).unwrap_or(&path).to_path_buf();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.led_to.push(path),
                Ok(kind) if kind.is_dir() && depth > 1 && !is_open(&inside) && !inside.ends_with("bin") => {
                    self.links(home, &path, depth - 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens what commands may write of what is read-only, and protects what of that runs by itself.
    fn open(&mut self, home: &Path) {
        for name in OPEN {
            let path = home.join(name);
            let is_own = fs::symlink_metadata(&path).is_ok_and(|found| !found.is_symlink())
                && fs::canonicalize(&path).is_ok_and(|real| real == path);
            if is_own {
                self.open.insert(path);
            }
        }
        let open = &self.open;
        let kept = not_open(home).filter(|path| path.parent().is_some_and(|above| open.contains(above)));
        let (links, kept): (Vec<PathBuf>, Vec<PathBuf>) = kept.partition(|path| path.is_symlink());
        self.led_to.extend(links);
        self.fixed.extend(kept);
    }

    fn finish(mut self) -> Result<Homes, ViewError> {
        // What is read-only as a whole need not be closed; nor once more be read-only below that.
        let open = std::mem::take(&mut self.open);
        let is_in = |wholes: &BTreeSet<PathBuf>, path: &Path| {
            let nearest = path
                .ancestors()
                .skip(1)
                .find(|above| wholes.contains(*above) || open.contains(*above));
            nearest.is_some_and(|above| wholes.contains(above))
        };
        let wholes = std::mem::take(&mut self.fixed);
        let fixed: BTreeSet<PathBuf> = wholes.iter().filter(|path| !is_in(&wholes, path)).cloned().collect();
        let closed: BTreeSet<PathBuf> = self
            .closed
            .iter()
            .filter(|path| !fixed.contains(*path) && !is_in(&fixed, path))
            .cloned()
            .collect();
        self.closed = closed;
        let mut entries = Vec::new();
        let mut left = self.bounds.entries;
        let mut pinned = BTreeSet::new();
        let mut shown = BTreeSet::new();
        // In order, so that each comes after what it lies in.
        for directory in &self.closed {
            self.pin_above(directory, &mut pinned, &mut entries);
            entries.push(Entry::Directory {
                target: directory.clone(),
            });
            for (path, link) in list(directory)? {
                left = left.checked_sub(1).ok_or_else(|| ViewError::HomeTooLarge {
                    directory: directory.clone(),
                    most: self.bounds.entries,
                })?;
                if self.closed.contains(&path) {
                    continue;
                }
                entries.push(match link {
                    Some(to) => Entry::Link { target: path, to },
                    None => {
                        shown.insert(path.clone());
                        Entry::Listed {
                            writable: !fixed.contains(&path),
                            target: path,
                            executable: self.executable,
                        }
                    }
                });
            }
        }
        // Those below what is open come after it.
        let is_below_open = |path: &&PathBuf| path.ancestors().skip(1).any(|above| open.contains(above));
        for path in fixed
            .iter()
            .filter(|path| !is_below_open(path) && !shown.contains(*path))
        {
            self.pin_above(path, &mut pinned, &mut entries);
            entries.push(Entry::Protect { target: path.clone() });
        }
        for path in open.iter().filter(|path| is_in(&fixed, path)) {
            entries.push(Entry::Listed {
                target: path.clone(),
                writable: true,
                executable: self.executable,
            });
        }
        for path in fixed.iter().filter(is_below_open) {
            entries.push(Entry::Protect { target: path.clone() });
        }
        Ok(Homes {
            entries,
            closed: self.closed,
            fixed,
            open,
            led_to: self.led_to,
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

/// Whether this user can write there, or give itself the right to.
fn is_changeable(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() == own)
        || rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
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

    /// Whether the last that is put at a path, or above it, lets it be changed.
    fn can_be_changed(homes: &Homes, path: &Path) -> bool {
        let over = homes.entries.iter().rfind(|entry| path.starts_with(entry.target()));
        matches!(
            over,
            Some(Entry::Listed { writable: true, .. } | Entry::Again { writable: true, .. })
        )
    }

    #[test]
    fn every_name_with_a_dot_is_read_only_but_for_caches_and_the_rest_stays_open() {
        let (_place, home) = place();
        for name in [
            ".cargo/registry/x",
            ".cargo/bin/x",
            ".cache/pip/x",
            ".cache/p10k-instant-prompt-u.zsh/x",
            ".npm/_cacache/x",
            ".nvm/nvm.sh",
            ".local/lib/python3.11/site-packages/x.pth",
            ".config/i3/config",
            ".gitconfig.local",
            "bin/x",
            "miniconda3/x",
        ] {
            let path = home.join(name);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, "x").expect("written");
        }
        let held = hold(&home);
        for kept in [
            ".bashrc",
            ".ssh/config",
            ".config/app/x",
            ".config/i3/config",
            ".cargo/env",
            ".cargo/bin/x",
            ".cache/p10k-instant-prompt-u.zsh/x",
            ".nvm/nvm.sh",
            ".local/lib/python3.11/site-packages/x.pth",
            ".gitconfig.local",
            "bin/x",
            "miniconda3/x",
            ".new",
            "new",
        ] {
            assert!(!can_be_changed(&held, &home.join(kept)), "{kept}: {:#?}", held.entries);
        }
        for open in [
            "project/x",
            ".cache/new",
            ".cache/pip/x",
            ".npm/x",
            ".cargo/registry/x",
            "dotfiles/x",
        ] {
            assert!(can_be_changed(&held, &home.join(open)), "{open}: {:#?}", held.entries);
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
        // As `stow` lays them.
        fs::create_dir_all(home.join("stow/app")).expect("made");
        fs::write(home.join("stow/app/init"), "x").expect("written");
        fs::create_dir(home.join(".app")).expect("made");
        symlink("../stow/app/init", home.join(".app/init")).expect("linked");
        let held = hold(&home);
        assert!(held.led_to.contains(&home.join(".app/init")), "{:?}", held.led_to);
        for closed in ["dotfiles/deep", "dotfiles"] {
            assert!(held.closed.contains(&home.join(closed)), "{closed}: {:?}", held.closed);
        }
        for kept in ["dotfiles/deep/config/nvim/x", "dotfiles/zshrc", "dotfiles/absent"] {
            assert!(!can_be_changed(&held, &home.join(kept)), "{kept}: {:#?}", held.entries);
        }
        assert!(
            !has(&held, |entry| !entry.target().starts_with(&home)),
            "{:?}",
            held.entries
        );
    }

    #[test]
    fn a_name_behind_more_links_than_are_followed_is_refused_by_the_bound() {
        let (_place, home) = place();
        symlink("1", home.join(".vimrc")).expect("linked");
        for number in 1..20 {
            symlink((number + 1).to_string(), home.join(number.to_string())).expect("linked");
        }
        fs::write(home.join("20"), "x").expect("written");
        let held = hold(&home);
        assert!(
            held.fixed.contains(&home.join("20")),
            "behind 20 links: {:?}",
            held.fixed
        );
        let bounds = Bounds {
            links: 19,
            ..Bounds::ALL
        };
        let refused = hold_within(
            &[home.clone()].into(),
            &home,
            &Restrictions::new(&home, "/bin/bash"),
            bounds,
        );
        let told = refused.expect_err("there are 20").to_string();
        assert!(told.contains("more than 19 links") && told.contains(".vimrc"), "{told}");
    }

    #[test]
    fn a_part_of_a_home_is_one_and_a_project_or_a_cache_is_not() {
        let (_place, home) = place();
        let part = |name: &str| super::part(&[home.clone()].into(), &home.join(name)).map(|part| part.starts);
        for (name, starts) in [
            (".ssh", true),
            (".config", true),
            (".config/nvim", true),
            (".local", true),
            (".dotfiles", false),
            (".dotfiles/deep", false),
            (".cache/p10k-x", false),
        ] {
            assert_eq!(part(name), Some(starts), "{name}");
        }
        for name in [
            "",
            "project",
            "project/.github",
            ".cache/x",
            ".cargo/registry/src/x",
            ".local/src/x",
        ] {
            assert_eq!(part(name), None, "{name}");
        }
        fs::create_dir(home.join("editor")).expect("made");
        symlink("../editor", home.join(".config/nvim")).expect("linked");
        assert_eq!(part("editor"), Some(true), "`.config/nvim` leads there");
    }

    #[test]
    fn where_a_home_leads_to_in_a_workspace_is_found() {
        let (_place, home) = place();
        let work = home.join("dotfiles");
        symlink("dotfiles/bashrc", home.join(".bash_aliases")).expect("linked");
        symlink("../dotfiles/deep", home.join(".config/nvim")).expect("linked");
        symlink("project/x", home.join(".profile")).expect("linked");
        let found = led_to(&[home.clone()].into(), &work);
        assert_eq!(found, [work.join("bashrc"), work.join("deep")]);
        let prompt = home.join(".cache/p10k-instant-prompt-u.zsh");
        fs::create_dir_all(home.join(".cache/x")).expect("made");
        fs::write(&prompt, "x").expect("written");
        assert_eq!(led_to(&[home.clone()].into(), &home.join(".cache")), [prompt]);
        assert!(led_to(&[home.clone()].into(), &home.join(".cache/x")).is_empty());
    }

    #[test]
    fn a_home_of_more_entries_than_are_held_is_refused_by_its_bound() {
        let (_place, home) = place();
        for number in 0..10 {
            fs::write(home.join(number.to_string()), "").expect("written");
            fs::write(home.join(format!(".ssh/{number}")), "").expect("written");
        }
        let restrictions = Restrictions::new(&home, "/bin/bash");
        let told = |bounds| {
            let refused = hold_within(&[home.clone()].into(), &home, &restrictions, bounds);
            refused.expect_err("there are too many").to_string()
        };
        let entries = told(Bounds {
            entries: 9,
            ..Bounds::ALL
        });
        assert!(entries.contains("more than 9 entries"), "{entries}");
        let looked_at = told(Bounds {
            looked_at: 9,
            ..Bounds::ALL
        });
        assert!(looked_at.contains("more than 9 entries of directories"), "{looked_at}");
        assert!(hold_within(&[home.clone()].into(), &home, &restrictions, Bounds::ALL).is_ok());
    }
}
