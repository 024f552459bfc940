//! What is told of a sandbox's places: which last, which are private, and why something could not be written.

use std::path::{Component, Path, PathBuf};

use super::guard::HINTS;
use super::place::{self, is_clean};
use super::{Restrictions, caches, writable};
use crate::environment::Places;
use crate::outcome::{Hint, HintKind, Outcome};

/// What programs say where nothing can be written.
const READ_ONLY: &str = "Read-only file system";

/// What git says where it finds no repository.
const NO_REPOSITORY: &str = "not a git repository (or any";

/// The places of a sandbox.
pub(super) fn of(restrictions: &Restrictions, unlayered: bool) -> Places {
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
    let mut notes = Vec::new();
    if let Some(above) = hidden_repository(restrictions) {
        notes.push(format!(
            "{} is a directory of the repository {}, which is not shown: git finds none here. A person can start with \
             `--write {1}`.",
            restrictions.workspace.display(),
            above.display(),
        ));
    }
    Places {
        lasting: if restrictions.readonly { Vec::new() } else { roots },
        private,
        caches,
        caches_are_readonly: unlayered,
        kept_home: restrictions.kept_home.clone().map(|kept| (home, kept)),
        notes,
    }
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

/// Adds why something could not be written, where nothing else explains it.
pub(super) fn explain(restrictions: &Restrictions, outcome: &Outcome, hints: &mut Vec<Hint>) {
    if outcome.stderr.contains(NO_REPOSITORY)
        && let Some(above) = hidden_repository(restrictions)
    {
        hints.push(Hint {
            kind: HintKind::NotShown,
            because: "the workspace is a directory of this repository, which is not shown".to_owned(),
            instead: format!("a person can start with `--write {}`", above.display()),
            path: Some(above),
        });
    }
    let roots = writable::roots(restrictions);
    let own = [
        &*place::home(restrictions),
        Path::new("/tmp"),
        Path::new("/dev/shm"),
        Path::new("/run"),
    ];
    for line in outcome.stderr.lines().filter(|line| line.contains(READ_ONLY)) {
        let Some(path) = named(line, &outcome.cwd) else {
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
                    false => "only the workspace can be written here, and private directories".to_owned(),
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

/// The path that a line of a program's complains about: what stands in quotes in it, or before the words of
/// the error. Absolute, and without steps back.
fn named(line: &str, cwd: &Path) -> Option<PathBuf> {
    let before = line.split(READ_ONLY).next()?;
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
        .or(bare)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_complaint_is_found_however_a_program_words_it() {
        for (line, path) in [
            ("touch: cannot touch '/srv/x': Read-only file system", "/srv/x"),
            ("touch: cannot touch ‘../a b’: Read-only file system", "/w/a b"),
            ("bash: line 1: ../out.txt: Read-only file system", "/w/out.txt"),
            ("/bin/sh: 1: cannot create /srv/x: Read-only file system", ""),
            ("OSError: [Errno 30] Read-only file system: '/srv/y'", "/srv/y"),
            (
                "error: failed to write `/w/t/x`: Read-only file system (os error 30)",
                "",
            ),
            ("mkdir: cannot create directory 'z': Read-only file system", "/w/a/z"),
            ("Read-only file system", ""),
        ] {
            let found = named(line, Path::new("/w/a"));
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
