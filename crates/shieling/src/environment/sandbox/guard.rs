//! Looks after the protected names of a writable workspace while a sandbox runs.
//!
//! ```text
//!                   at the start         before each command              after each command, at the end
//! it is there       protected (mounts)   replaced outside: protected anew
//! it is not there   watched                                               moved aside, and told
//! ```
//!
//! In a home that is held ([`homes`](super::homes)) no name can be made, and none is watched, but where a link
//! leads to something absent. What could not be seen at the start is never taken for absent: it is protected as a
//! whole, or nothing starts.
//!
//! What was there at the start is held by mounts in the sandbox. Those sit on files, and fall off when the
//! user's own tools replace one; so each name is looked at again before a command, and protected anew.
//!
//! A name that was *not* there at the start, and from which tools of the user run code, cannot be held by a
//! mount, and keeping it taken by a directory of ours would put that into the user's workspace. It is
//! watched instead: whatever stands there when we look is moved aside. Who made it is not asked, since
//! nobody can tell: a command's file and one that the user's editor makes meanwhile look the same.
//! Everything is kept, beside its name, as `NAME.held-back`: a move within one directory is one step for any
//! number of files, cannot fill another disk, loses nothing, and no tool reads that name.
//!
//! What a git directory is made of is only looked for at the start. A repository that appears later is that
//! of whoever made it, as a rule a command, which can configure, rename and remove it. It is protected from
//! the next sandbox on. So is a directory that was protected and is no longer there: what appears in its place
//! is new.
//!
//! Nothing here acts, or decides, by a path of the host: see [`Beneath`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use shieling_jail::plan::Entry;

use super::beneath::{Beneath, File, Stands};
use super::homes::Homes;
use super::protect::{self, Protection, Scope};
use super::repository::{self, is_git_directory};
use super::{Restrictions, ViewError, place, toolchain, writable};
use crate::outcome::{HeldBack, Hint, HintKind, Outcome};

/// How much is done at once, and kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How many that were moved aside are named when somebody asks; of more it is told how many.
    remembered: usize,
    /// How often a name is moved aside at once that somebody makes again and again.
    again: usize,
}

impl Bounds {
    const ALL: Self = Self {
        remembered: 256,
        again: 4,
    };
}

/// What programs say where a name is held by a mount, in small letters: C libraries, node, Go.
const HELD: [&str; 2] = ["resource busy", "read-only file system"];

/// How many hints one outcome has at most.
pub(super) const HINTS: usize = 8;

/// So many names are looked at in less time than a thread of its own takes.
const FEW: usize = 256;

/// The protected names of one sandbox.
#[derive(Debug)]
pub(super) struct Guard {
    workspace: PathBuf,
    roots: Vec<Beneath>,
    known: BTreeMap<PathBuf, Known>,
    /// Of these, the files that decide what commands may do, and the links to them.
    fixed: Vec<PathBuf>,
    /// The protected git directories that were whole at the last look.
    repositories: Vec<PathBuf>,
    held_back: Vec<HeldBack>,
    /// How many more there were.
    more: u64,
    /// What could not be moved aside, and has been told.
    stuck: BTreeSet<PathBuf>,
    bounds: Bounds,
}

#[derive(Debug)]
struct Known {
    kind: Kind,
    /// Whether it is moved aside where it was not there.
    watched: bool,
    was: Option<File>,
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
    /// Where homes are held, they keep their names by themselves.
    ///
    /// # Errors
    /// [`ViewError`]: more than is looked after, what cannot be seen, or a workspace that cannot be held.
    pub(super) fn start(restrictions: &Restrictions, homes: &Homes) -> Result<Option<(Self, Vec<Entry>)>, ViewError> {
        // What is judged after each command need not be kept from it.
        let fixed_alone = restrictions.open_protected || restrictions.is_watched();
        if restrictions.readonly || fixed_alone && restrictions.fixed.is_empty() {
            return Ok(None);
        }
        let outside = restrictions.repository.as_deref();
        let roots = writable::roots(restrictions);
        let on_path: Vec<PathBuf> = toolchain::path(restrictions);
        let mut found = Protection::default();
        for (number, root) in roots.iter().enumerate() {
            let is_workspace = *root == restrictions.workspace;
            let mut one = protect::find(&Scope {
                workspace: root,
                home: &place::home(restrictions),
                // Those of a workspace are the project's own.
                on_path: if is_workspace { &[] } else { &on_path },
                outside: outside.filter(|_| is_workspace),
                fixed: &restrictions.fixed,
                fixed_alone,
                executable: restrictions.programs.is_none(),
                led_to: if is_workspace { &homes.led_to } else { &[] },
                bounds: protect::Bounds::ALL,
            })?;
            // A writable place in this one keeps its path.
            for inner in &roots[number + 1..] {
                let above: Vec<&Path> = inner
                    .ancestors()
                    .skip(1)
                    .take_while(|above| place::below(above, root))
                    .collect();
                for target in above {
                    let target = target.to_path_buf();
                    if !one.entries.iter().any(|entry| *entry.target() == target) {
                        one.entries.insert(
                            0,
                            Entry::Again {
                                target,
                                writable: true,
                                executable: restrictions.programs.is_none(),
                            },
                        );
                    }
                }
            }
            found.entries.append(&mut one.entries);
            found.fixed.append(&mut one.fixed);
            found.watched.append(&mut one.watched);
            found.git_directories.append(&mut one.git_directories);
        }
        let hold = |path: &Path| {
            Beneath::hold(path).map_err(|errno| ViewError::NotHeld {
                path: path.to_path_buf(),
                source: errno.into(),
            })
        };
        // A file that is writable by itself has no names in it. The innermost is asked first.
        let directories = writable::directories(restrictions);
        let held = directories.iter().rev().map(PathBuf::as_path).chain(outside);
        let mut guard = Self {
            workspace: restrictions.workspace.clone(),
            roots: held.map(hold).collect::<Result<_, _>>()?,
            known: BTreeMap::new(),
            fixed: found.fixed,
            repositories: found.git_directories,
            held_back: Vec::new(),
            more: 0,
            stuck: BTreeSet::new(),
            bounds: Bounds::ALL,
        };
        let mut entries = found.entries;
        entries.retain(|entry| !homes.is_fixed(entry.target()));
        entries.retain(|entry| !matches!(entry, Entry::Again { target, .. } if homes.has_closed(target)));
        let there = entries.iter().filter_map(|entry| match entry {
            Entry::Protect { target } => Some((target, Kind::Protected)),
            Entry::Again { target, .. } => Some((target, Kind::Pinned)),
            _ => None,
        });
        for (path, kind) in there {
            guard.know(path, kind, false)?;
        }
        for path in &homes.fixed {
            guard.know(path, Kind::Protected, false)?;
        }
        for path in &found.watched {
            if !guard.is_in_closed(path, homes) {
                guard.know(path, Kind::Protected, true)?;
            }
        }
        Ok(Some((guard, entries)))
    }

    /// Whether nothing can be made at a path, since what it would be made in is closed.
    fn is_in_closed(&self, path: &Path, homes: &Homes) -> bool {
        let mut above = path.ancestors().skip(1);
        let there = above.find(|above| matches!(self.look(above), Stands::There(_)));
        there.is_some_and(|above| homes.closed.contains(above) || homes.is_fixed(above))
    }

    /// # Errors
    /// It cannot be seen any more whether something stands there, as it could a moment ago: who takes that for
    /// nothing would move the user's own file aside.
    fn know(&mut self, path: &Path, kind: Kind, watched: bool) -> Result<(), ViewError> {
        let was = match self.look(path) {
            Stands::There(file) => Some(file),
            Stands::Nothing => None,
            // A link of the user's, which leads out of the workspace: nothing can be made there.
            Stands::BehindLink(_) => return Ok(()),
            Stands::Closed(errno) => {
                let source = errno.into();
                let path = path.parent().unwrap_or(path).to_path_buf();
                return Err(ViewError::Closed { path, why: source });
            }
        };
        let known = self.known.entry(path.to_path_buf()).or_insert(Known {
            kind,
            watched: false,
            was,
        });
        known.watched |= watched;
        Ok(())
    }

    /// With what another one before it has moved aside and nobody has asked for.
    pub(super) fn with_held_back(mut self, held_back: Vec<HeldBack>) -> Self {
        self.held_back = held_back;
        self
    }

    /// Whether looking at all of it takes long.
    pub(super) fn is_large(&self) -> bool {
        self.known.len() > FEW
    }

    /// What the user's own tools have replaced since the last look.
    pub(super) fn refresh(&mut self) -> Since {
        let mut since = Since::default();
        let mut gone = Vec::new();
        let looked: Vec<(PathBuf, Stands)> = self.known.keys().map(|path| (path.clone(), self.look(path))).collect();
        for (path, stands) in looked {
            let Some(known) = self.known.get_mut(&path) else {
                continue;
            };
            let is = match stands {
                Stands::There(file) => Some(file),
                Stands::Nothing | Stands::BehindLink(_) => None,
                // Only its owner may look, as whom commands run as well. It is what it was.
                Stands::Closed(_) => continue,
            };
            if is.is_none() && known.was.is_some() && known.kind == Kind::Pinned {
                gone.push(path.clone());
            }
            let watched = known.watched && known.was.is_none();
            if watched || is == known.was {
                continue;
            }
            known.was = is;
            match known.kind {
                _ if is.is_none() => {}
                Kind::Protected => since.0.push(path),
                Kind::Pinned => since.1.push(path),
            }
        }
        for gone in gone {
            self.known.retain(|path, _| !path.starts_with(&gone));
        }
        since
    }

    /// Moves aside what stands at a name that was not there.
    pub(super) fn sweep(&mut self) {
        let absent = self
            .known
            .iter()
            .filter(|(_, known)| known.watched && known.was.is_none());
        let absent: Vec<PathBuf> = absent.map(|(path, _)| path.clone()).collect();
        for path in absent {
            let mut moved = 0;
            while moved < self.bounds.again && self.sweep_one(&path) {
                moved += 1;
            }
            let stands = moved == self.bounds.again
                && match self.look(&path) {
                    Stands::There(_) => !self.roots.iter().any(|root| is_harmless(root, &path)),
                    Stands::BehindLink(_) | Stands::Closed(_) => true,
                    Stands::Nothing => false,
                };
            if stands {
                let why = format!("it was moved aside {moved} times and made again each time");
                self.stays(&path, &why);
            }
        }
    }

    /// Looks for the last time: the sandbox has ended, and what appears from now on is the user's.
    pub(super) fn retire(&mut self) {
        self.sweep();
        self.forget();
    }

    /// Looks after nothing any more.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Whether something was moved aside.
    fn sweep_one(&mut self, name: &Path) -> bool {
        let Some(root) = self.roots.iter().find(|root| root.contains(name)) else {
            return false;
        };
        let stands = root.look(name);
        let closed = matches!(stands, Stands::Closed(_));
        let path = match stands {
            Stands::Nothing => {
                self.stuck.remove(name);
                return false;
            }
            Stands::There(_) if is_harmless(root, name) => return false,
            Stands::There(_) | Stands::Closed(Errno::ACCESS) => name.to_path_buf(),
            // Laid there in the place of a directory, so that the name leads to something prepared.
            Stands::BehindLink(link) => link,
            Stands::Closed(errno) => return self.cannot_be_moved(name, errno),
        };
        match root.move_aside(&path) {
            Ok(None) => false,
            Ok(Some(aside)) => {
                self.stuck.remove(&path);
                let held = self.held_back(&path, &aside);
                self.tell(held);
                true
            }
            // Somebody else's directory, into which no command comes either.
            Err(Errno::ACCESS | Errno::PERM) if closed => false,
            Err(errno) => self.cannot_be_moved(&path, errno),
        }
    }

    fn held_back(&self, path: &Path, aside: &Path) -> HeldBack {
        let (shown, aside) = (self.shown(path), self.shown(aside));
        HeldBack::new(
            &shown,
            format!(
                "it was not there when the sandbox started, and tools of the user run code from `{}`",
                shown.display()
            ),
            format!(
                "it was moved to `{}`: look at it, and if it is wanted, move it back in the workspace once the sandbox \
                 has ended: `mv {} {}`; or start with `--open-protected`",
                aside.display(),
                quoted(&aside),
                quoted(&shown),
            ),
        )
    }

    fn cannot_be_moved(&mut self, path: &Path, errno: Errno) -> bool {
        let why = format!("it could not be moved aside: {}", std::io::Error::from(errno));
        self.stays(path, &why);
        false
    }

    /// Tells once that something stands where it was made.
    fn stays(&mut self, path: &Path, why: &str) {
        if self.stuck.insert(path.to_path_buf()) {
            let shown = self.shown(path);
            self.tell(HeldBack::new(
                &shown,
                format!(
                    "it was not there when the sandbox started, tools of the user run code from it, and it still \
                     stands there: {why}"
                ),
                format!(
                    "look at `{}` before a tool of yours reads it, and remove it",
                    shown.display()
                ),
            ));
        }
    }

    fn tell(&mut self, held: HeldBack) {
        if self.held_back.len() < self.bounds.remembered {
            self.held_back.push(held);
        } else {
            self.more += 1;
        }
    }

    /// What was moved aside since this was last asked.
    pub(super) fn take_held_back(&mut self) -> Vec<HeldBack> {
        let mut held = std::mem::take(&mut self.held_back);
        let more = std::mem::take(&mut self.more);
        if let Some(last) = held.last().filter(|_| more > 0) {
            held.push(HeldBack::new(
                last.path.clone(),
                format!(
                    "and {more} more, of which this is not told one by one, since only the first {} are named",
                    self.bounds.remembered
                ),
                "look for names that end in `.held-back`, with or without a number",
            ));
        }
        held
    }

    /// Those of these paths that are moved aside after they are made, or lie below one that is.
    pub(super) fn holds_back(&self, paths: &[&Path]) -> Vec<usize> {
        let is_held = |path: &Path| {
            let name = |above: &Path| {
                self.known
                    .get(above)
                    .is_some_and(|known| known.watched && known.was.is_none())
            };
            path.ancestors().any(name)
        };
        (0..paths.len()).filter(|number| is_held(paths[*number])).collect()
    }

    /// What is protected and lies below a path that is not.
    pub(super) fn kept_below(&self, path: &Path) -> Vec<PathBuf> {
        let is_there = |known: &Known| known.kind == Kind::Protected && known.was.is_some();
        let below = self
            .known
            .iter()
            .filter(|(kept, known)| is_there(known) && kept.starts_with(path));
        let below: Vec<PathBuf> = below.map(|(kept, _)| kept.clone()).collect();
        match below.iter().any(|kept| kept == path) {
            true => Vec::new(),
            false => below,
        }
    }

    /// The protected settings of the repository in which a directory lies.
    pub(super) fn kept_settings(&self, directory: &Path) -> Option<PathBuf> {
        let git = directory.ancestors().find_map(repository::git_directory)?;
        let config = git.join("config");
        self.known
            .get(&config)
            .is_some_and(|known| known.kind == Kind::Protected && known.was.is_some())
            .then_some(config)
    }

    /// What of an outcome is due to a name that is held: a line that says "busy" or "read-only" and names it, and
    /// repositories of which a command has removed all that it could. At most [`HINTS`], and those besides.
    pub(super) fn explain(&mut self, outcome: &Outcome) -> Vec<Hint> {
        let mut hints = self.explain_text(&format!("{}\n{}", outcome.stderr, outcome.stdout));
        hints.extend(self.torn());
        hints
    }

    /// The repositories of which a command has left only what is protected, told once.
    fn torn(&mut self) -> Vec<Hint> {
        let repositories = std::mem::take(&mut self.repositories);
        let (whole, torn): (Vec<_>, Vec<_>) = repositories.into_iter().partition(|git| is_git_directory(git));
        self.repositories = whole;
        let left = torn
            .into_iter()
            .filter(|git| !self.kept_below(git).is_empty() && self.is_there(git));
        let hints = left.map(|git| {
            let shown = self.shown(&git);
            Hint {
                kind: HintKind::Protected,
                because: format!(
                    "`{}` is a repository no more: a command removed all of it but what is protected",
                    shown.display()
                ),
                instead: "a person can remove the rest, and start with `--open-protected` where commands are to \
                          remove repositories"
                    .to_owned(),
                path: Some(shown),
            }
        });
        hints.take(HINTS).collect()
    }

    fn is_there(&self, path: &Path) -> bool {
        matches!(self.look(path), Stands::There(_))
    }

    fn explain_text(&self, said: &str) -> Vec<Hint> {
        let mut hints: Vec<Hint> = Vec::new();
        let lines = said.lines().filter(|line| {
            let line = line.to_ascii_lowercase();
            HELD.iter().any(|words| line.contains(words))
        });
        for line in lines {
            let held = self.known.iter().filter(|(_, known)| known.was.is_some());
            // Of `.git` and `.git/config`, which are both named by the second, the second is meant.
            let named =
                held.filter_map(|(path, known)| Some((named(line, &self.shown(path), Some(path))?, path, known)));
            let Some((_, path, known)) = named.max_by_key(|(much, ..)| *much) else {
                continue;
            };
            let fixed = self.fixed.iter().any(|fixed| fixed.starts_with(path));
            let path = self.shown(path);
            if hints.iter().any(|hint| hint.path.as_ref() == Some(&path)) {
                continue;
            }
            let shown = path.display();
            hints.push(Hint {
                kind: HintKind::Protected,
                because: match known.kind {
                    Kind::Protected if fixed => format!("`{shown}` is protected: it decides what commands may do"),
                    Kind::Protected => format!("`{shown}` is protected: tools of the user run code from it"),
                    Kind::Pinned => format!("`{shown}` cannot be moved or removed: something protected lies in it"),
                },
                instead: match fixed {
                    true => "a person can change it outside of the sandbox",
                    false => "a person can start with `--open-protected`",
                }
                .to_owned(),
                path: Some(path),
            });
            if hints.len() == HINTS {
                break;
            }
        }
        hints
    }

    fn look(&self, path: &Path) -> Stands {
        let root = self.roots.iter().find(|root| root.contains(path));
        root.map_or(Stands::Nothing, |root| root.look(path))
    }

    /// A path as it is told: relative to the workspace if it lies there.
    fn shown(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.workspace).unwrap_or(path).to_path_buf()
    }
}

impl Drop for Guard {
    /// Once more, also where nobody has closed the sandbox.
    fn drop(&mut self) {
        self.sweep();
    }
}

/// How much of a path, relative to the workspace, a line names, in bytes, if it does, and whether that is all of
/// it: it may begin with `.git`, as from within the repository. `whole` is the absolute path, if what the line names must
/// end it: `../other/.git` and `/other/.git` are not the workspace's `.git`.
pub(super) fn named(line: &str, path: &Path, whole: Option<&Path>) -> Option<(usize, bool)> {
    let path = path.to_str()?;
    let within = path.rfind("/.git/").and_then(|at| path.get(at + 1..));
    let is_name = |char: char| char.is_alphanumeric() || "._-".contains(char);
    let names = |path: &str| {
        line.match_indices(path).any(|(at, _)| {
            let before = line.get(..at).and_then(|before| before.chars().next_back());
            let after = line.get(at + path.len()..).and_then(|after| after.chars().next());
            let is_meant = || whole.is_none_or(|whole| ends(whole, line.get(..at + path.len()).unwrap_or_default()));
            !before.is_some_and(is_name) && !after.is_some_and(is_name) && is_meant()
        })
    };
    let found = [Some(path), within].into_iter().flatten().find(|path| names(path))?;
    Some((found.len(), found.len() == path.len()))
}

/// Whether a path ends with the last word of a text, without the steps up and the root at its beginning.
fn ends(whole: &Path, text: &str) -> bool {
    let start = text
        .rfind(|char: char| char.is_whitespace() || "'\"`‘“(:=".contains(char))
        .map_or(0, |at| text.ceil_char_boundary(at + 1));
    let mut word = text.get(start..).unwrap_or_default();
    while let Some(rest) = ["../", "./", "/"].into_iter().find_map(|lead| word.strip_prefix(lead)) {
        word = rest;
    }
    whole.to_string_lossy().ends_with(word)
}

/// A path relative to the workspace, as a word of a command.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-/+,@%".contains(char);
    let lead = if text.starts_with('-') { "./" } else { "" };
    match text.chars().all(is_plain) {
        true => format!("{lead}{text}"),
        false => format!("'{lead}{}'", text.replace('\'', "'\\''")),
    }
}

/// Whether nothing runs from what stands there: git's own samples, which `git init` puts into a directory of
/// hooks.
fn is_harmless(root: &Beneath, path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "hooks") && root.has_only(path, |name| name.ends_with(b".sample"))
}

#[cfg(test)]
mod tests;
