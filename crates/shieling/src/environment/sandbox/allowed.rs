//! Under a list of allowed programs: which files are the programs, and what each needs to run at all.
//!
//! A name means every program of that name on the caller's `PATH`, outside of the workspace: what is in
//! it can be rewritten by a command, and so is allowed by its path alone, and then read-only. What a
//! program needs is found from its file (the interpreter of a script, the loader of a binary) and from
//! what its table says that it starts by itself. A program of many names (busybox, toybox) or an
//! interpreter that is on the list can do whatever it can be told to do; that is for whoever wrote the
//! list to know.
#![expect(clippy::disallowed_methods, reason = "the programs are looked up here")]

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use shieling_jail::plan::Entry;
use shieling_shell::program;

use super::Restrictions;
use super::place::{self, below};
use super::repository::small;
use super::toolchain;

/// Where scripts stand for the programs of their name in a chosen version: the variable and the usual
/// place of the root, and the file in the workspace that chooses before the root's own `version` does.
const SHIMS: &[(&str, &str, &str)] = &[
    ("PYENV_ROOT", ".pyenv", ".python-version"),
    ("RBENV_ROOT", ".rbenv", ".ruby-version"),
];

/// The most names, links and files that are followed. What lies beyond is not there.
const MOST: usize = 2_000;

/// What a name on the way to a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// The program.
    File,
    /// A link with this text.
    Link(PathBuf),
}

/// The allowed programs and what they need.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    /// Every name on the way to a program, by the real directory that it stands in.
    pub(super) names: BTreeMap<PathBuf, Name>,
    /// Directories of helpers.
    pub(super) directories: Vec<PathBuf>,
    /// Programs that stand in the workspace.
    pub(super) in_workspace: Vec<PathBuf>,
    /// What can be executed: files and directories, really.
    pub(super) executable: Vec<PathBuf>,
}

impl Allowed {
    /// Whether one of these entries holds something that is needed.
    pub(super) fn needs_one_of(&self, entries: &[Entry]) -> bool {
        entries.iter().any(|entry| self.needs(entry.target()))
    }

    /// Whether something that is needed stands at or below this path.
    pub(super) fn needs(&self, path: &Path) -> bool {
        self.executable
            .iter()
            .chain(self.names.keys())
            .any(|needed| needed.starts_with(path))
    }
}

/// Finds the programs, the shell, and what they need. A program that is not there is left out.
pub(super) fn find(programs: &[String], restrictions: &Restrictions) -> Allowed {
    let mut search = Search {
        restrictions,
        path: toolchain::path(restrictions)
            .into_iter()
            .filter(|directory| !directory.starts_with(&restrictions.workspace))
            .collect(),
        named: Vec::new(),
        tried: HashSet::new(),
        found: Allowed::default(),
    };
    search.at(&restrictions.shell, false);
    // Many programs run `sh -c`, which can do no more here than the shell that runs commands.
    search.at(Path::new("/bin/sh"), false);
    for program in programs {
        if program.starts_with('/') {
            search.at(Path::new(program), true);
        } else if program.contains('/') {
            search.at(&restrictions.workspace.join(program), true);
        } else {
            search.named(program);
        }
    }
    let mut found = search.found;
    for list in [&mut found.executable, &mut found.directories, &mut found.in_workspace] {
        list.sort();
        list.dedup();
    }
    found
}

struct Search<'a> {
    restrictions: &'a Restrictions,
    path: Vec<PathBuf>,
    named: Vec<String>,
    tried: HashSet<(PathBuf, bool)>,
    found: Allowed,
}

impl Search<'_> {
    fn named(&mut self, name: &str) {
        if name.is_empty() || name.contains('/') || self.named.iter().any(|known| known == name) {
            return;
        }
        self.named.push(name.to_owned());
        for directory in self.path.clone() {
            self.at(&directory.join(name), false);
        }
    }

    /// The program at this path, where one that stands in the workspace counts only `by_path`.
    fn at(&mut self, path: &Path, by_path: bool) {
        let Some(invoked) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            return;
        };
        if !self.tried.insert((path.to_path_buf(), by_path)) || self.tried.len() > MOST {
            return;
        }
        let mut names = Vec::new();
        let Some(mut real) = self.follow(path, &mut names) else {
            return;
        };
        if let Some(root) = self.shims_of(&real) {
            // The program itself, which then needs none of the tools that the script uses to find it.
            let Some(program) = self.chosen(&root, &invoked) else {
                return;
            };
            names.retain(|(name, _)| *name != real);
            names.push((real, Name::Link(program.clone())));
            match self.follow(&program, &mut names) {
                Some(program) => real = program,
                None => return,
            }
        }
        let mine = real.starts_with(&self.restrictions.workspace);
        let program = fs::metadata(&real).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        if !program || mine && !by_path {
            return;
        }
        if mine {
            self.found.in_workspace.push(real.clone());
        }
        names.retain(|(name, _)| !name.starts_with(&self.restrictions.workspace));
        self.found.names.extend(names);
        self.found.executable.push(real.clone());
        self.helpers(&invoked, &real);
        match real.file_name().and_then(|name| name.to_str()).map(str::to_owned) {
            Some(actual) if actual == "rustup" => self.proxied(&invoked),
            Some(actual) if actual != invoked => self.helpers(&actual, &real),
            _ => {}
        }
        self.needed_by_file(&real);
    }

    /// Notes every link on the way, and gives the end of it. Nothing if a link of the workspace leads
    /// out of it: what is noted is shown, and a command can make a link to any key of the user.
    fn follow(&self, path: &Path, names: &mut Vec<(PathBuf, Name)>) -> Option<PathBuf> {
        let mut path = path.to_path_buf();
        let mut was_inside = false;
        for _ in 0..40 {
            let inside = path.starts_with(&self.restrictions.workspace);
            let parent = fs::canonicalize(path.parent()?).ok()?;
            let here = parent.join(path.file_name()?);
            was_inside |= inside || here.starts_with(&self.restrictions.workspace);
            if was_inside && !here.starts_with(&self.restrictions.workspace) {
                return None;
            }
            match fs::read_link(&here) {
                Ok(to) => {
                    names.push((here, Name::Link(to.clone())));
                    path = lexical(&parent.join(to));
                }
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                    names.push((here.clone(), Name::File));
                    return Some(here);
                }
                Err(_) => return None,
            }
        }
        None
    }

    fn helpers(&mut self, name: &str, real: &Path) {
        let prefix = real.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
        for directory in program::helper_directories(name) {
            if let Ok(real) = fs::canonicalize(prefix.join(directory))
                && real.is_dir()
                && !real.starts_with(&self.restrictions.workspace)
            {
                self.found.directories.push(real.clone());
                self.found.executable.push(real);
            }
        }
        for helper in program::helpers(name) {
            self.named(helper);
        }
    }

    fn root(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let moved = self.restrictions.roots.get(variable).cloned();
        moved.or_else(|| self.restrictions.home.as_ref().map(|home| home.join(usual)))
    }

    /// The programs that rustup's proxy of this name starts, in each toolchain that is installed.
    fn proxied(&mut self, name: &str) {
        let Some(root) = self.root("RUSTUP_HOME", ".rustup") else {
            return;
        };
        for toolchain in fs::read_dir(root.join("toolchains")).into_iter().flatten().flatten() {
            self.at(&toolchain.path().join("bin").join(name), false);
        }
    }

    /// The root of versions and its chooser, if this is one of its scripts.
    fn shims_of(&self, script: &Path) -> Option<(PathBuf, &'static str)> {
        SHIMS.iter().find_map(|(variable, usual, chooser)| {
            let root = fs::canonicalize(self.root(variable, usual)?).ok()?;
            script.starts_with(root.join("shims")).then_some((root, *chooser))
        })
    }

    /// The program of this name in the version that is chosen. None is: `PATH` goes on to the next.
    fn chosen(&self, (root, chooser): &(PathBuf, &str), name: &str) -> Option<PathBuf> {
        let chosen = small(&self.restrictions.workspace.join(chooser)).or_else(|| small(&root.join("version")))?;
        let plain = |version: &&str| !version.starts_with('.') && !version.contains('/');
        chosen
            .split_whitespace()
            .filter(plain)
            .map(|version| root.join("versions").join(version).join("bin").join(name))
            .find(|program| fs::symlink_metadata(program).is_ok())
    }

    /// The interpreter of a script, the loader of a binary.
    fn needed_by_file(&mut self, path: &Path) {
        let mut head = Vec::with_capacity(4096);
        let Ok(file) = File::open(path) else { return };
        if file.take(4096).read_to_end(&mut head).is_err() {
            return;
        }
        match &head[..] {
            [b'#', b'!', rest @ ..] => {
                let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let line = String::from_utf8_lossy(line).into_owned();
                let mut words = line.split_whitespace();
                let Some(interpreter) = words.next() else { return };
                self.interpreter(path, Path::new(interpreter));
                if interpreter.ends_with("/env")
                    && let Some(name) = words.find(|word| !word.starts_with('-') && !word.contains('='))
                {
                    self.named(name);
                }
            }
            head => {
                if let Some(loader) = loader(head) {
                    self.interpreter(path, &loader);
                }
            }
        }
    }

    /// What a program says that it is started with. One of the workspace may say anything, such as
    /// the path of a key, so it is given what the system and the caller's `PATH` have and no more.
    fn interpreter(&mut self, of: &Path, interpreter: &Path) {
        let given = place::is_clean(interpreter)
            && (toolchain::is_system(interpreter)
                || interpreter
                    .parent()
                    .is_some_and(|parent| self.path.iter().any(|known| known == parent)));
        if given || !of.starts_with(&self.restrictions.workspace) {
            self.at(interpreter, false);
        }
    }
}

/// Without `.` and `..`, by text: links on the way are followed one by one before.
fn lexical(path: &Path) -> PathBuf {
    // A `..` behind a link means the link's real parent, so what is before it is made real first.
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean = fs::canonicalize(&clean).unwrap_or(clean);
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// The loader that a binary names (`PT_INTERP`), if the header and its text are in these first bytes.
fn loader(head: &[u8]) -> Option<PathBuf> {
    let wide = match head.get(..6)? {
        [0x7f, b'E', b'L', b'F', class @ 1..=2, 1] => *class == 2,
        _ => return None,
    };
    let number = |at: usize, size: usize| {
        let bytes = head.get(at..at.checked_add(size)?)?;
        let value = bytes
            .iter()
            .rev()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let (table, entry_size, entries) = if wide {
        (number(32, 8)?, number(54, 2)?, number(56, 2)?)
    } else {
        (number(28, 4)?, number(42, 2)?, number(44, 2)?)
    };
    const PT_INTERP: usize = 3;
    for index in 0..entries.min(64) {
        let at = table.checked_add(index.checked_mul(entry_size)?)?;
        if number(at, 4)? == PT_INTERP {
            let (offset, size) = if wide {
                (number(at.checked_add(8)?, 8)?, number(at.checked_add(32)?, 8)?)
            } else {
                (number(at.checked_add(4)?, 4)?, number(at.checked_add(16)?, 4)?)
            };
            let text = head.get(offset..offset.checked_add(size)?)?;
            let text = std::str::from_utf8(text.strip_suffix(b"\0").unwrap_or(text)).ok()?;
            return text.starts_with('/').then(|| PathBuf::from(text));
        }
    }
    None
}

/// Whether this stands in a directory of programs, of which only the needed ones are shown.
pub(super) fn stands_among_programs(path: &Path) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .is_some_and(|name| ["bin", "sbin", "shims", "games"].iter().any(|known| name == *known))
        && !below(path, "/etc")
}

#[cfg(test)]
mod tests;
