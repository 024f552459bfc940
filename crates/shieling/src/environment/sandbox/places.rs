//! What is told of a sandbox's places: which last, which are private, and why something could not be written.
#![expect(
    clippy::disallowed_methods,
    reason = "whose a file is, and which work trees there are, is looked up here"
)]

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use shieling_changes::{Limits, State, Store, Summary};

use super::guard::HINTS;
use super::place::{self, is_clean};
use super::{Restrictions, caches, repository, writable};
use crate::environment::WritablePaths;
use crate::outcome::{Hint, HintKind, Outcome};

/// What programs say where nothing can be written.
const READ_ONLY: &str = "Read-only file system";

/// What programs say where the owner of a file would have to let them in.
const DENIED: &str = "Permission denied";

/// What git says where it begins to make a work tree.
const WORK_TREE: &str = "Preparing worktree";

/// How many work trees of a repository are looked at.
const WORK_TREES: usize = 64;

/// By how much the clocks of a file system and of the host may differ.
const CLOCKS: Duration = Duration::from_secs(2);

/// What git says where it finds no repository.
const NO_REPOSITORY: &str = "not a git repository (or any";

/// The places of a sandbox.
pub(super) fn of(restrictions: &Restrictions, unlayered: bool) -> WritablePaths {
    let roots = writable::roots(restrictions);
    let home = place::home(restrictions);
    let full = restrictions.isolation == shieling_jail::plan::Isolation::Full;
    let mut private: Vec<PathBuf> = match full {
        true => ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from).into(),
        // Its directory for temporary files has a name that nobody knows ahead.
        false => Vec::new(),
    };
    if full && restrictions.kept_home.is_none() && !roots.iter().any(|root| home.starts_with(root)) {
        private.push(home.clone());
    }
    private.retain(|private| !restrictions.read.contains(private));
    let caches = match full {
        true => caches::entries(restrictions, &roots)
            .iter()
            .filter(|entry| matches!(entry, shieling_jail::plan::Entry::Layered { .. }))
            .map(|entry| entry.target().to_path_buf())
            .collect(),
        false => Vec::new(),
    };
    let mut notes: Vec<String> = restrictions
        .staging
        .iter()
        .map(|staging| staging.note(&restrictions.workspace))
        .collect();
    notes.extend(waiting(restrictions));
    if let Some(above) = hidden_repository(restrictions) {
        notes.push(format!(
            "{} is a directory of the repository {}, which is not shown: git finds none here. A person can start {}.",
            restrictions.workspace.display(),
            above.display(),
            to_show(&above, restrictions),
        ));
    }
    WritablePaths {
        lasting: if restrictions.readonly { Vec::new() } else { roots },
        private,
        caches,
        caches_are_readonly: unlayered,
        kept_home: restrictions.kept_home.clone().map(|kept| (home, kept)),
        notes,
    }
}

/// Says which changes of earlier sandboxes wait for a person: what commands see now does not have them.
fn waiting(restrictions: &Restrictions) -> Option<String> {
    let directory = &restrictions.staging.as_ref()?.directory;
    if !directory.is_dir() {
        return None;
    }
    let sets = Store::open(directory, Limits::default())
        .and_then(|store| store.list())
        .ok()?;
    let waits = |set: &&Summary| {
        let is_new = matches!(set.state, State::Waiting | State::Conflict)
            && !set.is_live
            && set.mode != shieling_changes::Mode::Discard;
        is_new && set.workspace == restrictions.workspace && (set.counts.paths() > 0 || set.held_back > 0)
    };
    let ids: Vec<&str> = sets.iter().filter(waits).map(|set| &*set.id).collect();
    let (first, more) = (ids.first()?, ids.len() - 1);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "Changes of an earlier sandbox wait for a person and are not seen here: {first}{more}. The person lists them with \
         `shieling changes list`, and `shieling changes apply {first}` puts them into the workspace, with `--accept-held-back` also what \
         was held back in them.",
    ))
}

/// The repository above the workspace, if commands do not see it.
fn hidden_repository(restrictions: &Restrictions) -> Option<PathBuf> {
    let above = writable::repository_above(&restrictions.workspace)?;
    let shown = restrictions.write.iter().chain(&restrictions.read);
    let is_shown = shown
        .into_iter()
        .any(|path| above.starts_with(path) || path.starts_with(above.join(".git")));
    (!is_shown && restrictions.repository.is_none()).then_some(above)
}

/// How a person can start so that commands have the repository above the workspace: never by what would be refused.
fn to_show(above: &Path, restrictions: &Restrictions) -> String {
    match writable::check_one(above, restrictions) {
        Ok(()) => format!("with `--write {}`", above.display()),
        Err(_) => format!("with `--workspace {}`", above.display()),
    }
}

/// Adds why something could not be written, where nothing else explains it.
pub(super) fn explain(restrictions: &Restrictions, outcome: &Outcome, hints: &mut Vec<Hint>) {
    if outcome.stderr.contains(NO_REPOSITORY)
        && let Some(above) = hidden_repository(restrictions)
    {
        hints.push(Hint {
            kind: HintKind::NotShown,
            because: "the workspace is a directory of this repository, which is not shown".to_owned(),
            instead: format!("a person can start {}", to_show(&above, restrictions)),
            path: Some(above),
        });
    }
    if outcome.stderr.contains(WORK_TREE) {
        hints.extend(private_work_tree(restrictions, outcome));
    }
    let roots = writable::roots(restrictions);
    hints.extend(another_users(&roots, outcome));
    let own = [
        &*place::home(restrictions),
        Path::new("/tmp"),
        Path::new("/dev/shm"),
        Path::new("/run"),
    ];
    for line in outcome.stderr.lines().filter(|line| line.contains(READ_ONLY)) {
        let Some(path) = named(line, READ_ONLY, &outcome.cwd) else {
            continue;
        };
        let root = roots.iter().rfind(|root| path.starts_with(root));
        if hints.len() >= HINTS || hints.iter().any(|hint| hint.path.as_ref() == Some(&path)) {
            continue;
        }
        let (because, instead) = match root {
            // A name in it that is held is explained by who holds it.
            Some(_) if !restrictions.readonly => continue,
            Some(_) => (
                "the workspace is read-only here".to_owned(),
                "print what would be written, or a person can start without `--readonly`".to_owned(),
            ),
            None => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                let leads =
                    roots.iter().any(|root| root.starts_with(parent)) && own.iter().any(|own| parent.starts_with(own));
                let because = match leads {
                    true => format!(
                        "`{}` only leads to the workspace here: what is written in it would be gone with the sandbox",
                        parent.display()
                    ),
                    false => format!(
                        "`{}` is read-only: only the workspace can be written here, and private directories",
                        path.display()
                    ),
                };
                let mut instead = format!(
                    "write below `{}`, or in `/tmp` what need not last",
                    restrictions.workspace.display()
                );
                // Never what would be refused.
                let there = writable::nearest(parent);
                if let Some(there) = there.filter(|there| writable::check_one(there, restrictions).is_ok()) {
                    instead += &format!("; a person can start with `--write {}`", there.display());
                }
                (because, instead)
            }
        };
        hints.push(Hint {
            kind: HintKind::ReadOnly,
            path: Some(path),
            because,
            instead,
        });
    }
}

/// A work tree of the workspace's repository that a command made in a private home, where it will not last.
fn private_work_tree(restrictions: &Restrictions, outcome: &Outcome) -> Option<Hint> {
    let home = place::home(restrictions);
    let lasts = |path: &Path| writable::roots(restrictions).iter().any(|root| path.starts_with(root));
    if restrictions.kept_home.is_some() || restrictions.isolation != shieling_jail::plan::Isolation::Full {
        return None;
    }
    let place = restrictions.workspace.join(".git/worktrees");
    // Commands write here: no link is followed, and what was there before this command is not told.
    let trees = fs::read_dir(fs::canonicalize(&place).ok().filter(|real| *real == place)?).ok()?;
    let made = trees.take(WORK_TREES).flatten().find_map(|tree| {
        tree.file_type().ok().filter(fs::FileType::is_dir)?;
        let pointer = tree.path().join("gitdir");
        let found = fs::symlink_metadata(&pointer).ok().filter(fs::Metadata::is_file)?;
        let age = found.modified().ok()?.elapsed().unwrap_or_default();
        let text = repository::small(&pointer).filter(|_| age <= outcome.took() + CLOCKS)?;
        let tree = Path::new(text.trim_end()).parent()?.to_path_buf();
        (tree.starts_with(&*home) && !lasts(&tree) && is_clean(&tree)).then_some(tree)
    })?;
    Some(Hint {
        kind: HintKind::NotShown,
        because: format!(
            "the work tree `{}` lies in the private home, and is gone with the sandbox",
            made.display()
        ),
        instead:
            "make it below the workspace, or a person can make the directory and start with `--write` for it, and \
                  have git forget what is gone: `git worktree prune`"
                .to_owned(),
        path: Some(made),
    })
}

/// Something in what can be written that belongs to somebody else, where root was not let in: root has no power over it
/// here.
fn another_users(roots: &[PathBuf], outcome: &Outcome) -> Option<Hint> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let denied = outcome.stderr.lines().filter(|line| line.contains(DENIED));
    let (path, uid) = denied.take(HINTS).find_map(|line| {
        let path = named(line, DENIED, &outcome.cwd)?;
        let root = roots.iter().rfind(|root| path.starts_with(root))?;
        // Commands say which path: no link in it leads out of what they see.
        let owner = |path: &Path| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
            rustix::fs::fstat(found).map(|found| found.st_uid)
        };
        // One that belongs to another user is shown as root's.
        if owner(root).ok()? != 0 {
            return None;
        }
        let there = path.ancestors().find(|path| owner(path).is_ok())?;
        let uid = owner(there).ok().filter(|&uid| uid != 0)?;
        Some((there.to_path_buf(), uid))
    })?;
    Some(Hint {
        kind: HintKind::Permissions,
        because: format!(
            "`{}` belongs to another user ({uid}), over whose files root has no power in a sandbox",
            path.display()
        ),
        instead: "a person can give it to root, or start in that directory, which is then shown as root's own"
            .to_owned(),
        path: Some(path),
    })
}

/// The path that a line of a program's complains about: what stands in quotes in it, or before the words of
/// the error. Absolute, and without steps back.
pub(super) fn named(line: &str, words: &str, cwd: &Path) -> Option<PathBuf> {
    let before = line.split(words).next()?;
    let before = before.trim_end_matches([' ', ':', '(', '"', '\'']);
    let quoted = [('\'', '\''), ('‘', '’'), ('`', '\''), ('"', '"')]
        .into_iter()
        .find_map(|(open, close)| {
            let (rest, last) = line.rsplit_once(close)?;
            let (_, inside) = rest.rsplit_once(open)?;
            (!last.contains('/') && !inside.is_empty()).then_some(inside)
        });
    let bare = before
        .rsplit(": ")
        .find(|part| part.contains('/') || !part.contains(' '));
    let text = quoted
        .or(bare.map(last_path))
        .map(str::trim)
        .filter(|text| !text.is_empty() && text.len() < 4_096)?;
    // A program's words are not trusted to be a path.
    if text.chars().any(char::is_control) {
        return None;
    }
    let mut path = PathBuf::new();
    for part in cwd.join(text).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    is_clean(&path).then_some(path)
}

/// Of a part that says something of a path without quotation marks (`cannot create /srv/x`), the path. One that begins with
/// a path may have spaces in it.
fn last_path(part: &str) -> &str {
    let part = part.trim_start();
    let begins = ["/", "./", "../", "~"].iter().any(|lead| part.starts_with(lead));
    let at = [" /", " ./", " ../"].iter().filter_map(|lead| part.find(lead)).min();
    match at {
        Some(at) if !begins => part.get(at + 1..).unwrap_or(part),
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_complaint_is_found_however_a_program_words_it() {
        for (line, path) in [
            ("touch: cannot touch '/srv/x': Read-only file system", "/srv/x"),
            ("touch: cannot touch ‘../a b’: Read-only file system", "/w/a b"),
            ("bash: line 1: ../out.txt: Read-only file system", "/w/out.txt"),
            ("/bin/sh: 1: cannot create /srv/x: Read-only file system", "/srv/x"),
            (
                "sed: couldn't open temporary file /etc/sedX: Read-only file system",
                "/etc/sedX",
            ),
            (
                "sed: couldn't open temporary file ./sedX: Read-only file system",
                "/w/a/sedX",
            ),
            ("cp: /srv/a b: Read-only file system", "/srv/a b"),
            ("OSError: [Errno 30] Read-only file system: '/srv/y'", "/srv/y"),
            (
                "error: failed to write `/w/t/x`: Read-only file system (os error 30)",
                "",
            ),
            ("mkdir: cannot create directory 'z': Read-only file system", "/w/a/z"),
            ("Read-only file system", ""),
        ] {
            let found = named(line, READ_ONLY, Path::new("/w/a"));
            if path.is_empty() {
                // Found or not: never something that the line does not name.
                assert!(
                    found
                        .as_ref()
                        .is_none_or(|found| line.contains(&*found.file_name().unwrap_or_default().to_string_lossy())),
                    "{line}: {found:?}"
                );
            } else {
                assert_eq!(found.as_deref(), Some(Path::new(path)), "{line}");
            }
        }
    }
}
