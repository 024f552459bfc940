//! The view: which parts of this host a command sees, at which place, and what of them it may change.
//! Everything that is not listed here is absent.
//!
//! ```text
//! /usr, /bin…   read-only                    workspace     writable, unless readonly
//! /etc          a list, and files of our own    .git/hooks…  protected in it (see `protect`)
//! toolchains    of the caller's PATH         HOME          private, empty, at the caller's own path; or kept
//! --read        read-only                    /tmp, /run    private, empty
//! caches        under a private layer        --write       as the workspace
//! ```
//!
//! Nothing else can be written. A directory of ours that only leads to a writable place, such as the
//! `src` of `~/src/app`, is read-only as well: what is written there would be gone without a word.
//!
//! What lies deeper is put later, so that a private home stays private below a `--read` of `/home`;
//! the workspace comes last, and nothing of the rest is put into it. So a home that is the workspace,
//! or lies in it, is the real one; where it is writable it is refused, or held (see `homes`).
//!
//! Where files keep their places (without namespaces) only binds mean something: there is then no
//! private home, and nothing can be hidden or protected.
#![expect(clippy::disallowed_methods, reason = "what this host has is looked up here")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shieling_jail::plan::{Entry, Isolation, Probe};

use super::guard::Guard;
use super::homes::{self, Homes};
use super::place::{self, below, is_clean, leads_through, shown};
use super::view_error::is_or_holds;
use super::{Restrictions, ViewError, allowed, caches, etc, kept, masks, repository, toolchain, writable};
use crate::environment::Network;

/// What programs look up outside of `/usr` and `/etc`: packages that are installed or could be, gems, fonts, pages of
/// manuals.
const DATABASES: &[&str] = &[
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/gems",
    "/var/cache/fontconfig",
    "/var/cache/man",
];

/// What a sandbox sees.
#[derive(Debug)]
pub(super) struct View {
    /// What stands where, in this order.
    pub(super) entries: Vec<Entry>,
    /// The only files that can be executed, and directories with all that is in them.
    pub(super) executable: Option<Vec<PathBuf>>,
    /// What is to be tried from inside before the first command.
    pub(super) probes: Vec<Probe>,
    /// What stands in the place of homes.
    pub(super) homes: Homes,
    /// Who looks again at what is protected.
    pub(super) guard: Option<Guard>,
}

/// Decides what is seen, from what is asked and from what stands on this host.
///
/// Hidden files are not part of it: they are found before each command ([`super::hidden::HiddenFiles`]).
///
/// # Errors
/// [`ViewError`] if the workspace or something to be read cannot be shown.
pub(super) fn view(restrictions: &Restrictions, staged: Option<Entry>) -> Result<View, ViewError> {
    check_workspace(&restrictions.workspace)?;
    writable::check(restrictions)?;
    let own_files = restrictions.isolation == Isolation::Full;
    let roots = writable::roots(restrictions);
    let mut homes = Homes::default();
    for root in &roots {
        homes.join(check_home(root, restrictions, own_files)?);
    }
    let home = place::home(restrictions);
    check_kept_home(&home, restrictions, &roots)?;
    let any_program = restrictions.programs.is_none();

    let mut entries = place::system(any_program || !own_files);
    entries.push(shown("/sys/devices/system/cpu", false));
    entries.extend(DATABASES.iter().map(|path| shown(*path, false)));
    if own_files {
        entries.extend(etc::entries(restrictions, &home).map_err(ViewError::Etc)?);
        entries.extend(private(restrictions, &home, any_program));
    } else {
        entries.extend(etc::in_place().map_err(ViewError::Etc)?);
        entries.extend(devices(restrictions, any_program));
    }
    let mut toolchains = toolchain::entries(restrictions);
    let allowed = restrictions
        .programs
        .as_deref()
        .map(|programs| allowed::find(programs, restrictions));
    if let Some(allowed) = &allowed {
        toolchains.retain(|group| allowed.needs_one_of(group));
    }
    if !own_files {
        // A secret in it could not be hidden.
        toolchains.retain(|group| !group.iter().any(|entry| matches!(entry, Entry::Hide { .. })));
    }
    entries.extend(
        toolchains
            .into_iter()
            .flatten()
            .filter(|entry| !roots.iter().any(|root| shows_again(entry, root))),
    );
    if own_files {
        let caches = caches::entries(restrictions, &roots);
        // Their package parts are a toolchain's as well.
        entries.retain(|entry| !caches.iter().any(|cache| cache.target() == entry.target()));
        let settings = home.join(".m2/settings.xml");
        entries.extend(caches);
        if caches::maven_settings(&settings) && restrictions.kept_home.is_none() {
            entries.push(shown(settings, false));
        }
    }
    let mut links = Vec::new();
    for path in &restrictions.read {
        let real = check_read(path)?;
        let by_link = |root: &PathBuf| !real.starts_with(root) && leads_through(path, root);
        if roots.iter().any(by_link) {
            return Err(ViewError::ReadsThroughWorkspace {
                path: path.clone(),
                real,
            });
        }
        let link = own_files && real != *path && roots.iter().any(|root| overlap(&real, root));
        let seen = if link { &real } else { path };
        // What it shows itself; and a link or a file could not be made in it.
        entries.retain(|entry| {
            entry.target() != path
                && !(below(entry.target(), seen) && matches!(entry, Entry::Link { .. } | Entry::File { .. }))
        });
        entries.push(Entry::Bind {
            target: if link { real.clone() } else { path.clone() },
            source: real.clone(),
            writable: false,
            executable: any_program,
            optional: false,
        });
        if link {
            links.push((path, real));
        }
    }
    // Not by both names: of the workspace, this one would show what is hidden in it.
    for (path, real) in links {
        let is_seen = |entry: &Entry| matches!(entry, Entry::Bind { .. }) && path.starts_with(entry.target());
        if !entries.iter().any(is_seen) {
            entries.push(Entry::Link {
                target: path.clone(),
                to: real,
            });
        }
    }
    let is_bound =
        |entry: &Entry| matches!(entry, Entry::Bind { .. }) && restrictions.shell.starts_with(entry.target());
    if !toolchain::is_system(&restrictions.shell) && !entries.iter().any(is_bound) {
        entries.push(shown(&restrictions.shell, true));
    }
    if let Some(allowed) = allowed.as_ref().filter(|_| own_files) {
        masks::put(&mut entries, allowed, restrictions);
    }
    entries.retain(|entry| !roots.iter().any(|root| entry.target().starts_with(root)));
    if own_files {
        lead_to(&roots, &home, restrictions, &mut entries);
    }
    entries.sort_by_key(|entry| entry.target().components().count());
    variable_files(&mut entries, restrictions, &roots);

    let git = restrictions.repository.as_ref();
    if let Some(git) = git.filter(|git| !repository::can_be_shown(git, &restrictions.workspace, &home)) {
        return Err(ViewError::NotARepository { path: git.clone() });
    }
    // A home that is worked in is shown by its entries.
    let whole = roots.iter().filter(|root| !homes.closed.contains(*root));
    for path in whole.chain(git) {
        if let Some(staged) = staged.as_ref().filter(|staged| staged.target() == path) {
            entries.push(staged.clone());
            continue;
        }
        entries.push(Entry::Bind {
            source: path.clone(),
            target: path.clone(),
            // A repository outside of a staged workspace would be written to at once.
            writable: !restrictions.readonly && staged.is_none(),
            executable: any_program,
            optional: false,
        });
    }
    if let Some(kept) = &restrictions.kept_home {
        kept::prepare(kept, &home, &entries)?;
    }
    let mut probes = probes(restrictions, own_files, &roots);
    probes.extend(homes.closed.iter().cloned().map(Probe::NoWrite));
    entries.extend(homes.entries.iter().cloned());
    if own_files && restrictions.hidden.is_some() && !restrictions.readonly {
        // Before the mounts that protect, which would only be there twice.
        let held = writable::directories(restrictions);
        entries.extend(held.into_iter().map(|target| Entry::Unseen { target }));
    }
    // What is staged is judged before it leaves the layer.
    let guard = if own_files && staged.is_none() {
        Guard::start(restrictions, &homes)?
    } else {
        None
    };
    let guard = guard.map(|(guard, protected)| {
        entries.extend(protected);
        guard
    });
    if let Some(allowed) = &allowed {
        // Read-only, since whoever could write to it could run anything by its name.
        entries.extend(allowed.in_workspace.iter().map(|path| Entry::Again {
            target: path.clone(),
            writable: false,
            executable: true,
        }));
    }
    Ok(View {
        probes,
        executable: allowed.map(|allowed| allowed.executable),
        entries,
        homes,
        guard,
    })
}

fn check_workspace(workspace: &Path) -> Result<(), ViewError> {
    if let Some(system) = place::swallows(workspace) {
        return Err(ViewError::WorkspaceIsSystem {
            workspace: workspace.to_path_buf(),
            system,
        });
    }
    // A link would be followed to somewhere that was not judged.
    let real = fs::canonicalize(workspace).is_ok_and(|real| real == workspace);
    if !is_clean(workspace) || !real || !workspace.is_dir() {
        return Err(ViewError::NoWorkspace {
            workspace: workspace.to_path_buf(),
        });
    }
    Ok(())
}

/// Refuses a home, or a part of one, that nobody asked for or that cannot be held; otherwise says what stands in
/// its place. In a readonly one nothing can be made, but keys can be read.
fn check_home(root: &Path, restrictions: &Restrictions, own_files: bool) -> Result<Homes, ViewError> {
    let known = homes::known(restrictions.home.as_deref());
    let workspace = root.to_path_buf();
    let is_workspace = *root == restrictions.workspace;
    let held: BTreeSet<PathBuf> = known.iter().filter(|home| home.starts_with(root)).cloned().collect();
    let is_held_here = own_files && !restrictions.readonly && !restrictions.open_protected;
    if let Some(home) = held.first().cloned() {
        if !is_workspace && !restrictions.allow_home {
            return Err(ViewError::NotWritable {
                because: format!(
                    "it {}, where files that start by themselves and credentials stand",
                    is_or_holds(root, &home)
                ),
                path: workspace,
                instead: "name a directory in it, or allow it with `--allow-home`",
            });
        }
        if !restrictions.readonly && !own_files {
            return Err(ViewError::HomeNotHeld { workspace, home });
        }
        if !restrictions.allow_home {
            return Err(ViewError::WorkspaceIsHome { workspace, home });
        }
        if is_held_here {
            return homes::hold(&held, root, restrictions);
        }
    } else if is_workspace && let Some(part) = homes::part(&known, &workspace) {
        let homes::Part { home, name, starts } = part;
        if !restrictions.readonly && !own_files {
            return Err(ViewError::HomeNotHeld { workspace, home });
        }
        if !restrictions.allow_home || starts && is_held_here {
            return Err(ViewError::WorkspaceIsInHome {
                workspace,
                home,
                name,
                starts,
                readonly: restrictions.readonly,
            });
        }
    }
    // What is staged, or judged after each command, asks where homes lead to by itself.
    let is_guarded = is_held_here && restrictions.staging.is_none() && !restrictions.is_watched();
    Ok(Homes {
        led_to: match is_guarded && is_workspace {
            true => homes::led_to(&known, &workspace),
            false => Vec::new(),
        },
        ..Homes::default()
    })
}

/// Refuses a kept home where no home of the sandbox's own stands.
fn check_kept_home(home: &Path, restrictions: &Restrictions, roots: &[PathBuf]) -> Result<(), ViewError> {
    let refuse = |because| Err(ViewError::NoKeptHome { because });
    if restrictions.kept_home.is_none() {
        return Ok(());
    }
    if restrictions.isolation != Isolation::Full {
        return refuse("with `--isolation landlock` there is no home of the sandbox's own");
    }
    if restrictions.read.iter().any(|path| path == home) {
        return refuse("`--read` shows the home itself in its place");
    }
    if roots.iter().any(|root| home.starts_with(root)) {
        return refuse("commands work in the home itself");
    }
    Ok(())
}

/// Read-only directories in the place of those that lead from a private directory to a writable place. Not in
/// the home's hidden ones, in which programs make what they need by itself, nor above a cache.
fn lead_to(roots: &[PathBuf], home: &Path, restrictions: &Restrictions, entries: &mut Vec<Entry>) {
    for root in roots {
        for private in [home, Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/run")] {
            let kept = private == home && restrictions.kept_home.is_some();
            let Ok(way) = root.strip_prefix(private) else { continue };
            let Some(first) = way.iter().next().filter(|_| !kept && way.components().count() > 1) else {
                continue;
            };
            let target = private.join(first);
            let hidden = private == home && first.as_encoded_bytes().starts_with(b".");
            let taken = |entry: &Entry| {
                entry.target() == target
                    || target.starts_with(entry.target()) && below(entry.target(), private)
                    || below(entry.target(), &target)
                        && matches!(entry, Entry::Layered { .. } | Entry::Temporary { .. })
            };
            if !hidden && !home.starts_with(&target) && !entries.iter().any(taken) {
                entries.push(Entry::Directory { target });
            }
        }
    }
}

/// Whether one of these contains the other.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Whether an entry shows something of the workspace at another place, where nothing of it is hidden
/// or protected: a directory of the `PATH` may be a link into it. Or whether the way to what it shows leads
/// through the workspace, where a command can have laid a link to anything.
fn shows_again(entry: &Entry, workspace: &Path) -> bool {
    let Entry::Bind { source, target, .. } = entry else {
        return false;
    };
    // By its own name, the workspace is laid over it.
    !target.starts_with(workspace)
        && fs::canonicalize(source)
            .is_ok_and(|real| real != *source && (overlap(&real, workspace) || leads_through(source, workspace)))
}

/// What is to be readable, without links.
fn check_read(path: &Path) -> Result<PathBuf, ViewError> {
    let not_readable = |source| ViewError::NotReadable {
        path: path.to_path_buf(),
        source,
    };
    if !is_clean(path) && path != Path::new("/") {
        return Err(not_readable(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    // What it leads to counts: a link to `/` shows as much as `/` does.
    let real = fs::canonicalize(path).map_err(not_readable)?;
    if real == Path::new("/") {
        return Err(ViewError::ReadsEverything {
            path: path.to_path_buf(),
        });
    }
    for system in ["/proc", "/dev"] {
        if real.starts_with(system) || path.starts_with(system) {
            return Err(ViewError::ReadsSystem {
                path: path.to_path_buf(),
                system,
            });
        }
    }
    Ok(real)
}

/// Directories in memory, processes and devices.
fn private(restrictions: &Restrictions, home: &Path, executable: bool) -> Vec<Entry> {
    let sizes = restrictions.sizes;
    let temporary = |path: &Path, bytes, files, mode| Entry::Temporary {
        target: path.to_path_buf(),
        bytes,
        files,
        mode,
        executable,
    };
    let mut entries = vec![
        Entry::Proc { target: "/proc".into() },
        Entry::Dev {
            target: "/dev".into(),
            shm: sizes.shm,
        },
        temporary(Path::new("/tmp"), sizes.tmp, sizes.files, 0o1777),
        temporary(Path::new("/run"), sizes.run, sizes.files / 10, 0o755),
    ];
    if !entries.iter().any(|entry| entry.target() == home) && home != Path::new("/var/tmp") {
        entries.push(match &restrictions.kept_home {
            Some(kept) => Entry::Bind {
                source: kept.clone(),
                target: home.to_path_buf(),
                writable: !restrictions.readonly,
                executable,
                optional: false,
            },
            None => temporary(home, sizes.home, sizes.files, 0o700),
        });
    }
    entries
}

/// `/var/tmp`: a link to `/tmp`, with which it so shares its size; nothing here outlives the jail
/// anyway. Where something is put into it, or `/tmp` is not the private one, it is a directory.
fn variable_files(entries: &mut Vec<Entry>, restrictions: &Restrictions, roots: &[PathBuf]) {
    let path = Path::new("/var/tmp");
    let used = roots.iter().any(|root| root.starts_with(path))
        || entries
            .iter()
            .any(|entry| entry.target().starts_with(path) || entry.target() == Path::new("/var"));
    let private = entries
        .iter()
        .any(|entry| matches!(entry, Entry::Temporary { target, .. } if target == Path::new("/tmp")));
    if restrictions.isolation != Isolation::Full
        || entries.iter().any(|entry| entry.target() == path)
        || roots.iter().any(|root| path.starts_with(root))
    {
        return;
    }
    let entry = if private && !used {
        Entry::Link {
            target: path.into(),
            to: "/tmp".into(),
        }
    } else {
        Entry::Temporary {
            target: path.into(),
            bytes: restrictions.sizes.tmp,
            files: restrictions.sizes.files,
            mode: 0o1777,
            executable: restrictions.programs.is_none(),
        }
    };
    let at = entries
        .iter()
        .position(|entry| entry.target().components().count() > 2)
        .unwrap_or(entries.len());
    entries.insert(at, entry);
}

/// What stays reachable of the host's own devices and processes where files keep their places. No terminals
/// and no shared memory, which would be those of the user's other programs; a command's own terminal is
/// let through by its descriptor.
fn devices(restrictions: &Restrictions, executable: bool) -> Vec<Entry> {
    let device = |path: &str| Entry::Bind {
        source: path.into(),
        target: path.into(),
        writable: true,
        executable: false,
        optional: true,
    };
    let mut entries: Vec<Entry> = ["null", "zero", "full", "random", "urandom", "tty"]
        .iter()
        .map(|name| device(&format!("/dev/{name}")))
        .collect();
    entries.push(shown("/dev/fd", false));
    entries.push(shown("/proc", false));
    entries.push(Entry::Temporary {
        target: "/tmp".into(),
        bytes: restrictions.sizes.tmp,
        files: restrictions.sizes.files,
        mode: 0o700,
        executable,
    });
    entries
}

fn probes(restrictions: &Restrictions, own_files: bool, roots: &[PathBuf]) -> Vec<Probe> {
    let mut probes = vec![Probe::NoWrite("/usr".into()), Probe::NoWrite("/etc".into())];
    if restrictions.readonly {
        probes.extend(roots.iter().filter(|root| root.is_dir()).cloned().map(Probe::NoWrite));
    }
    // Not in the workspace: a file that comes and goes there wakes whoever watches it, and the caller
    // may have no right to write there to begin with.
    if own_files
        && !below(Path::new("/tmp/x"), &restrictions.workspace)
        && !restrictions.read.iter().any(|path| path == Path::new("/tmp"))
    {
        probes.push(Probe::Write("/tmp".into()));
    }
    if !own_files {
        let shared = ["/tmp", "/dev/shm", "/dev/pts"].map(PathBuf::from);
        let apart = |path: &PathBuf| !overlap(path, &restrictions.workspace);
        probes.extend(shared.into_iter().filter(apart).map(Probe::NoWrite));
    }
    if restrictions.network != Network::Host {
        probes.push(Probe::NoConnect);
    }
    probes
}

#[cfg(test)]
mod tests;
