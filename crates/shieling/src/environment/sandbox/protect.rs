//! What a writable workspace always protects: what later commands of the *user*, outside of any
//! sandbox, would run code from. A command may change what the user reads, never what runs by itself.
//!
//! Three ways to keep a name. What is there is protected where it stands. A name that is free is
//! reserved, where an empty directory of that name is harmless to those who look for it. Where it is
//! not, it is *watched*: the host looks for it after each command (see [`appeared`]).
//!
//! A directory above something protected is pinned by a bind of itself, writable: what is mounted on
//! cannot be renamed, so that nobody moves `.git` away and makes another. Another jail over the same
//! workspace may exchange it for a link in between, so whoever applies a bind whose source lies in the
//! workspace takes it from there without following one.
//!
//! Repositories are looked for at the workspace's top and one level below it (128 directories, 32
//! repositories), and their submodules and linked trees (64 each, about 200 in all). One that stands
//! deeper is not protected: finding it would cost each start a walk of the whole tree. Nor is what a
//! command makes itself, such as a new repository, until the next look.
//!
//! `git config` is refused in a protected repository, and so is what writes settings on the way:
//! `git remote add`, `git branch --set-upstream-to`, `git submodule add`. Commits, branches, stashes,
//! rebases and linked trees work. A git directory that is a link is read-only as a whole. A bare
//! repository that a command makes in some directory is found by git there, if the user goes into it
//! and has not set `safe.bareRepository`; nothing here keeps one from being made.
#![expect(
    clippy::disallowed_methods,
    reason = "what of the table is in the workspace is looked up here"
)]

use std::fs;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Entry;

use super::place::below;
use super::repository::{is_git_directory, read, setting};

/// A name at the top of the workspace, or of a home in it.
struct Row {
    path: &'static str,
    absent: Absent,
}

/// What is done about a name that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// Nothing: whoever reads it asks before it runs anything from a new one, or is not used here.
    Free,
    /// An empty directory keeps it taken.
    Reserved,
    /// Looked for afterwards, where this is a home.
    WatchedInHome,
    /// The same; and elsewhere it is a project's own, and not protected if it is there.
    OnlyInHome,
}

const fn free(path: &'static str) -> Row {
    Row {
        path,
        absent: Absent::Free,
    }
}

const fn reserved(path: &'static str) -> Row {
    Row {
        path,
        absent: Absent::Reserved,
    }
}

const fn start_up(path: &'static str) -> Row {
    Row {
        path,
        absent: Absent::WatchedInHome,
    }
}

const fn of_home(path: &'static str) -> Row {
    Row {
        path,
        absent: Absent::OnlyInHome,
    }
}

/// Made and removed at each start, so only the three that are read, without a question, in a folder
/// that the user has once called trusted, and have been attacked that way.
const TABLE: &[Row] = &[
    reserved(".vscode"),
    reserved(".claude"),
    reserved(".cursor"),
    // There already wherever they are used, or asked about when they are new. An empty directory
    // called `.mcp.json` or `.envrc` would make the tools that read such a file complain.
    free(".idea"),
    free(".mcp.json"),
    free(".codex"),
    free(".gemini"),
    free(".windsurf"),
    free(".zed"),
    free(".aider.conf.yml"),
    free(".devcontainer"),
    free(".devcontainer.json"),
    free(".envrc"),
    free(".mise.toml"),
    free("mise.toml"),
    // What git's hooks call where husky is used.
    free(".husky"),
    // Shieling's own. A new one can only make the policy stricter.
    free("shieling.toml"),
    free(".shieling"),
    // Start-up files run in a home. One at the top of any workspace is protected if it is there: it
    // may be the one that a link in the home leads to. An empty directory of such a name would keep
    // the next file in a shell's order from being read, so a free name is watched.
    start_up(".bashrc"),
    start_up(".bash_profile"),
    start_up(".bash_login"),
    start_up(".bash_logout"),
    start_up(".bash_aliases"),
    start_up(".profile"),
    start_up(".zshrc"),
    start_up(".zshenv"),
    start_up(".zprofile"),
    start_up(".zlogin"),
    start_up(".zlogout"),
    start_up(".kshrc"),
    of_home(".inputrc"),
    of_home(".xprofile"),
    of_home(".xsessionrc"),
    of_home(".pam_environment"),
    start_up(".config/fish"),
    of_home(".config/autostart"),
    of_home(".config/systemd"),
    of_home(".config/environment.d"),
    start_up(".config/git"),
    start_up(".gitconfig"),
    start_up(".ssh"),
    of_home(".vimrc"),
    of_home(".vim"),
    of_home(".config/nvim"),
    of_home(".tmux.conf"),
    of_home(".npmrc"),
    of_home(".cargo/config.toml"),
    of_home(".cargo/bin"),
    of_home(".local/bin"),
    of_home("bin"),
];

/// How many entries of the workspace's top are looked at for repositories.
const NESTED_LOOKS: usize = 128;
const NESTED: usize = 32;
const MODULES: usize = 64;

/// What is protected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Protection {
    /// Pins, and then what lies below them.
    pub(super) entries: Vec<Entry>,
    /// Names that are free and dangerous, and cannot be reserved.
    pub(super) watched: Vec<PathBuf>,
}

/// Finds what is to be protected in a writable workspace. `outside` is a git directory of it that
/// stands elsewhere; a `home` matters if it is in the workspace.
pub(super) fn find(workspace: &Path, home: &Path, outside: Option<&Path>, executable: bool) -> Protection {
    let mut search = Search {
        workspace,
        pins: Vec::new(),
        protected: Vec::new(),
        watched: Vec::new(),
    };
    search.table(workspace, workspace == home);
    if below(home, workspace) {
        search.table(home, true);
    }
    search.repository(workspace);
    if is_git_directory(workspace) {
        // A bare repository is worked in.
        search.git_directory(workspace);
    }
    search.nested();
    if let Some(git) = outside {
        search.git_directory(git);
    }
    search.finish(executable)
}

/// Those of these paths, absolute and without links, a change of which is one of what is protected in a
/// writable workspace, or of what lies below or above that: their places, in order. Whatever a git
/// directory has is, at any depth.
pub(in crate::environment) fn protected(paths: &[&Path], workspace: &Path) -> Vec<usize> {
    // Which directory is a home is not known; a home itself as workspace has its files protected if they
    // are there.
    let found = find(workspace, Path::new("/nonexistent"), None, true);
    let targets = found.entries.iter().filter_map(|entry| {
        let Entry::Protect { target, .. } = entry else {
            return None;
        };
        Some(target)
    });
    // Also what is not there yet: here it can be asked about, and no empty directory has to keep its name.
    let names = TABLE.iter().filter(|row| row.absent != Absent::OnlyInHome);
    let names: Vec<PathBuf> = names.map(|row| workspace.join(row.path)).collect();
    let all: Vec<&PathBuf> = targets.chain(&found.watched).chain(&names).collect();
    let is_protected = |path: &Path| {
        let inside = path.strip_prefix(workspace).unwrap_or(path);
        inside.iter().any(|part| part.eq_ignore_ascii_case(".git"))
            || all
                .iter()
                .any(|target| path.starts_with(target) || target.starts_with(path))
    };
    (0..paths.len()).filter(|number| is_protected(paths[*number])).collect()
}

struct Search<'a> {
    workspace: &'a Path,
    pins: Vec<PathBuf>,
    protected: Vec<(PathBuf, bool)>,
    watched: Vec<PathBuf>,
}

impl Search<'_> {
    fn table(&mut self, base: &Path, is_home: bool) {
        for row in TABLE {
            if row.absent == Absent::OnlyInHome && !is_home {
                continue;
            }
            let path = base.join(row.path);
            if row.absent == Absent::Reserved {
                self.reserve(path);
                continue;
            }
            if !self.existing(&path) && is_home && row.absent != Absent::Free {
                self.watched.push(path);
            }
        }
    }

    /// Protects what is there, and keeps the name taken: also where a directory is that another sandbox
    /// keeps it taken by, which may be gone before ours starts.
    fn reserve(&mut self, path: PathBuf) {
        self.existing(&path);
        match self.protected.iter_mut().find(|(known, _)| *known == path) {
            Some((_, reserved)) => *reserved = true,
            None => self.protected.push((path, true)),
        }
    }

    /// Protects what is there; a link and, in the workspace, what it leads to.
    fn existing(&mut self, path: &Path) -> bool {
        let Ok(found) = fs::symlink_metadata(path) else {
            return false;
        };
        self.protect(path);
        if found.is_symlink()
            && let Ok(real) = fs::canonicalize(path)
            && below(&real, self.workspace)
        {
            self.protect(&real);
        }
        true
    }

    fn protect(&mut self, path: &Path) {
        if !self.protected.iter().any(|(known, _)| known == path) {
            self.pin_above(path);
            self.protected.push((path.to_path_buf(), false));
        }
    }

    /// Pins the directories between the workspace and this path. A link among them is not: the real
    /// place is protected, and the link itself if it has a row.
    fn pin_above(&mut self, path: &Path) {
        let above = path
            .ancestors()
            .skip(1)
            .take_while(|above| below(above, self.workspace));
        let new: Vec<PathBuf> = above
            .filter(|above| !self.pins.iter().any(|pin| pin == above))
            .map(Path::to_path_buf)
            .collect();
        self.pins.extend(new.into_iter().filter(|path| is_directory(path)));
    }

    /// The git directory of a working tree, or the file or link that stands in its place.
    fn repository(&mut self, tree: &Path) {
        let git = tree.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(found) if found.is_dir() => self.git_directory(&git),
            Ok(found) if found.is_symlink() => {
                self.existing(&git);
            }
            // A pointer to a linked tree's or a submodule's git directory.
            Ok(_) => {
                self.existing(&git);
                let real =
                    read(&git).and_then(|text| fs::canonicalize(tree.join(text.strip_prefix("gitdir:")?.trim())).ok());
                if let Some(real) = real.filter(|real| below(real, self.workspace)) {
                    self.git_directory(&real);
                }
            }
            // Never reserved: `git init` must work, and what it makes is protected from then on.
            Err(_) => {}
        }
    }

    fn nested(&mut self) {
        let Ok(entries) = fs::read_dir(self.workspace) else {
            return;
        };
        let mut left = NESTED;
        for entry in entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .take(NESTED_LOOKS)
        {
            let tree = entry.path();
            if left > 0 && entry.file_name() != ".git" && fs::symlink_metadata(tree.join(".git")).is_ok() {
                self.pin_above(&tree.join(".git"));
                self.repository(&tree);
                left -= 1;
            }
        }
    }

    /// What git runs code from: hooks, and settings (`core.fsmonitor`, `core.hooksPath`, filters,
    /// aliases, pagers, includes). `info/attributes` and `objects/info/alternates` stay open: they
    /// only choose among what settings define. All else is written by a commit.
    fn git_directory(&mut self, git: &Path) {
        if self.pins.len() > 2 * (MODULES + NESTED) {
            return;
        }
        if below(git, self.workspace) && !self.pins.iter().any(|pin| pin == git) {
            self.pin_above(git);
            self.pins.push(git.to_path_buf());
        }
        self.reserve(git.join("hooks"));
        // `commondir` makes git read another directory's settings; as a directory it breaks git.
        for name in ["config", "config.worktree", "commondir"] {
            let path = git.join(name);
            if !self.existing(&path) {
                self.watched.push(path);
            }
        }
        self.named_by_settings(git);
        let mut modules = vec![(git.join("modules"), 0)];
        let mut left = MODULES;
        while let Some((directory, depth)) = modules.pop() {
            for path in directories(&directory).take(left) {
                left -= 1;
                if is_git_directory(&path) {
                    self.git_directory(&path);
                } else if depth < 3 {
                    // The name of a submodule may hold slashes.
                    modules.push((path, depth + 1));
                }
            }
        }
        for tree in directories(&git.join("worktrees")).take(MODULES) {
            for name in ["config.worktree", "commondir", "gitdir"] {
                let path = tree.join(name);
                if !self.existing(&path) {
                    self.watched.push(path);
                }
            }
        }
    }

    /// Directories of hooks, files of settings, and programs in the workspace that the settings name.
    fn named_by_settings(&mut self, git: &Path) {
        let Some(config) = read(&git.join("config")) else {
            return;
        };
        let tree = git.parent().unwrap_or(git);
        let hooks = setting(&config, "core", "hookspath").map(|value| tree.join(value));
        let included = ["include", "includeif"]
            .into_iter()
            .flat_map(|section| setting(&config, section, "path"))
            .map(|value| git.join(value));
        // `core.fsmonitor`, filters, aliases and the like name programs, by a path if they are here.
        let programs = config
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter_map(|(_, value)| {
                value
                    .trim()
                    .trim_start_matches(['"', '!'])
                    .split([' ', '\t', '"'])
                    .next()
            })
            .filter(|word| word.contains('/'))
            .map(|word| tree.join(word))
            .filter(|path| path.is_file());
        for path in hooks
            .chain(included)
            .chain(programs)
            .filter_map(|path| fs::canonicalize(path).ok())
            .take(MODULES)
            .collect::<Vec<_>>()
        {
            if below(&path, self.workspace) {
                self.protect(&path);
            }
        }
    }

    fn finish(mut self, executable: bool) -> Protection {
        self.pins
            .retain(|pin| !self.protected.iter().any(|(path, _)| path == pin));
        self.pins.sort();
        self.pins.dedup();
        // What lies below something protected is protected with it, whatever it is.
        let whole: Vec<PathBuf> = self.protected.iter().map(|(path, _)| path.clone()).collect();
        let covered = |path: &Path| whole.iter().any(|other| below(path, other));
        let pins = self.pins.iter().filter(|pin| !covered(pin)).map(|pin| Entry::Again {
            target: pin.clone(),
            writable: true,
            executable,
        });
        let protected = self
            .protected
            .iter()
            .filter(|(path, _)| !covered(path))
            .map(|(path, reserve)| Entry::Protect {
                target: path.clone(),
                reserve: *reserve,
            });
        Protection {
            entries: pins.chain(protected).collect(),
            watched: self.watched,
        }
    }
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The real directories in a directory, in no order; none if it is a link itself.
fn directories(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = is_directory(path).then(|| fs::read_dir(path).ok()).flatten();
    let found = entries.into_iter().flatten().flatten();
    found
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

#[cfg(test)]
mod tests;
