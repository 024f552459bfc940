//! What a writable workspace always protects: what later commands of the *user*, outside of any
//! sandbox, would run code from. A command may change what the user reads, never what runs by itself.
//!
//! What is there is protected where it stands. A name that is free is *watched*: what a command makes there
//! is moved aside after it (see [`guard`](super::guard)).
//!
//! A directory above something protected is pinned by a bind of itself, writable: what is mounted on
//! cannot be renamed, so that nobody moves `.git` away and makes another. Another jail over the same
//! workspace may exchange it for a link in between, so whoever applies a bind whose source lies in the
//! workspace takes it from there without following one.
//!
//! Repositories are looked for at the workspace's top and one level below it, with their submodules and
//! linked trees. One that stands deeper is not protected: finding it would cost each start a walk of the
//! whole tree. Nor is what a command makes itself, such as a new repository, until the next sandbox.
//! Everything here has a bound, and exceeding one is an error that names it: what is beyond would not be
//! protected.
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

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Entry;

use super::ViewError;
use super::place::{below, parts};
use super::repository::{LONGEST, is_git_directory, read, setting};

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
    /// What is made there is moved aside.
    Watched,
    /// The same, where this is a home.
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

const fn watched(path: &'static str) -> Row {
    Row {
        path,
        absent: Absent::Watched,
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

/// Watched are the three that are read, without a question, in a folder that the user has once called
/// trusted, and have been attacked that way.
const TABLE: &[Row] = &[
    watched(".vscode"),
    watched(".claude"),
    watched(".cursor"),
    // There already wherever they are used, or asked about when they are new.
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
    // may be the one that a link in the home leads to.
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
    // What Shieling takes for the user's own word in every other workspace.
    of_home(".config/shieling"),
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
    of_home(".local/share/applications"),
    of_home(".local/share/dbus-1"),
    of_home(".local/share/systemd"),
    of_home("bin"),
    of_home(".cshrc"),
    of_home(".tcshrc"),
    of_home(".login"),
    of_home(".xinitrc"),
    of_home(".xsession"),
    of_home(".emacs"),
    of_home(".emacs.d"),
    of_home(".config/emacs"),
    of_home(".gdbinit"),
    of_home(".screenrc"),
    of_home(".oh-my-zsh"),
    // Credentials, and whom they are shown to: a new one would be used in the user's name.
    of_home(".aws"),
    of_home(".azure"),
    of_home(".config/gcloud"),
    of_home(".config/gh"),
    of_home(".config/pip"),
    of_home(".docker"),
    of_home(".git-credentials"),
    of_home(".gnupg"),
    of_home(".kube"),
    of_home(".netrc"),
    of_home(".pgpass"),
    of_home(".pypirc"),
    of_home(".yarnrc"),
    of_home(".yarnrc.yml"),
];

/// The names in a home, relative to it, from which something runs by itself, or which speak for the user.
pub(super) fn names_of_a_home() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.path)
}

/// The name from which something runs by itself, or which speaks for the user, that this path is or lies in,
/// if it is one: of a home, of a project, of a git directory.
pub(super) fn runs_by_itself(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let of_home = home
        .into_iter()
        .flat_map(|home| names_of_a_home().map(|name| home.join(name)));
    if let Some(name) = of_home.into_iter().find(|name| path.starts_with(name)) {
        return Some(name);
    }
    let in_projects = TABLE.iter().filter(|row| row.absent != Absent::OnlyInHome);
    let names: Vec<&str> = in_projects.map(|row| row.path).collect();
    path.ancestors()
        .find(|above| {
            let in_git = |name: &str| GIT_NAMES.contains(&name);
            let name = above.file_name().and_then(|name| name.to_str());
            let is_gits = name.is_some_and(in_git) && above.parent().is_some_and(is_git_directory);
            is_gits || names.iter().any(|name| above.ends_with(name))
        })
        .map(Path::to_path_buf)
}

/// What git runs code from in a git directory; `commondir` makes it read another directory's settings.
const GIT_NAMES: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// How many entries of the workspace's top are looked at for repositories.
const TOP: usize = 20_000;
/// How many git directories there may be: of nested repositories and of submodules, at any depth.
const GIT_DIRECTORIES: usize = 2_000;
/// How many directories may stand in one `modules` that are no git directories, and how deep: the name of
/// a submodule may hold slashes.
const MODULE_DIRECTORIES: usize = 10_000;
const MODULE_DEPTH: usize = 16;
/// How many linked trees one repository may have.
const LINKED_TREES: usize = 1_000;
/// How many files and directories the settings of one repository may name.
const NAMED: usize = 1_000;
/// How many mounts all of it may take. Each costs the start some 20 µs.
const MOUNTS: usize = 12_000;

fn exceeded(place: &Path, what: &'static str, bound: usize) -> ViewError {
    ViewError::Exceeded {
        place: place.to_path_buf(),
        what,
        bound,
    }
}

/// What is protected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Protection {
    /// Pins, and then what lies below them.
    pub(super) entries: Vec<Entry>,
    /// Of what is protected, the files that decide what commands may do, and the links to them.
    pub(super) fixed: Vec<PathBuf>,
    /// Names from which tools of the user run code, also where nothing stands there.
    pub(super) watched: Vec<PathBuf>,
    /// The git directories that were found.
    pub(super) git_directories: Vec<PathBuf>,
}

/// Where something is to be protected, and what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The workspace, writable.
    pub(super) workspace: &'a Path,
    /// The caller's home, which matters if it is in the workspace.
    pub(super) home: &'a Path,
    /// Directories in which the user's shell looks for programs.
    pub(super) on_path: &'a [PathBuf],
    /// A git directory of the workspace that stands elsewhere.
    pub(super) outside: Option<&'a Path>,
    /// Files that decide what commands may do.
    pub(super) fixed: &'a [PathBuf],
    /// Whether nothing else is protected.
    pub(super) fixed_alone: bool,
    /// Whether files in the workspace can be executed.
    pub(super) executable: bool,
}

/// Finds what is to be protected in a writable workspace.
///
/// # Errors
/// [`ViewError::Exceeded`]: there is more than is looked after.
pub(super) fn find(scope: &Scope<'_>) -> Result<Protection, ViewError> {
    let &Scope { workspace, home, .. } = scope;
    let mut search = Search {
        workspace,
        pins: BTreeSet::new(),
        protected: Vec::new(),
        is_protected: BTreeSet::new(),
        fixed: Vec::new(),
        watched: Vec::new(),
        git_directories: Vec::new(),
    };
    search.fixed(scope.fixed)?;
    if scope.fixed_alone {
        return Ok(search.finish(scope.executable));
    }
    search.table(workspace, workspace == home)?;
    if below(home, workspace) {
        search.table(home, true)?;
    } else if below(workspace, home) {
        // A part of a home in which such names stand.
        search.names(names_of_a_home().map(|name| home.join(name)))?;
    }
    search.names(scope.on_path.iter().cloned())?;
    search.repository(workspace)?;
    if is_git_directory(workspace) {
        // A bare repository is worked in.
        search.git_directory(workspace)?;
    }
    search.nested()?;
    if let Some(git) = scope.outside {
        search.git_directory(git)?;
    }
    Ok(search.finish(scope.executable))
}

/// Those of these paths, absolute and without links, a change of which is one of what is protected in a
/// writable workspace, or of what lies below or above that: their places, in order. Whatever a git
/// directory has is, at any depth.
pub(in crate::environment) fn protected(paths: &[&Path], workspace: &Path) -> Vec<usize> {
    // Which directory is a home is not known; a home itself as workspace has its files protected if they
    // are there.
    let scope = Scope {
        workspace,
        home: Path::new("/nonexistent"),
        on_path: &[],
        outside: None,
        fixed: &[],
        fixed_alone: false,
        executable: true,
    };
    let Ok(found) = find(&scope) else {
        // More than is looked after: any may be one of them.
        return (0..paths.len()).collect();
    };
    let targets = found.entries.iter().filter_map(|entry| {
        let Entry::Protect { target } = entry else {
            return None;
        };
        Some(target)
    });
    // Also what is not there yet: here it can be asked about.
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
    pins: BTreeSet<PathBuf>,
    protected: Vec<PathBuf>,
    is_protected: BTreeSet<PathBuf>,
    fixed: Vec<PathBuf>,
    watched: Vec<PathBuf>,
    git_directories: Vec<PathBuf>,
}

impl Search<'_> {
    /// Protects files by their names, with every link in the workspace that leads to them.
    fn fixed(&mut self, files: &[PathBuf]) -> Result<(), ViewError> {
        for step in files.iter().flat_map(|file| steps(file)) {
            let is_link = fs::symlink_metadata(&step).is_ok_and(|found| found.is_symlink());
            if below(&step, self.workspace) && (is_link || !is_directory(&step)) {
                self.protect(&step)?;
                self.fixed.push(step);
            }
        }
        Ok(())
    }

    fn table(&mut self, base: &Path, is_home: bool) -> Result<(), ViewError> {
        for row in TABLE {
            let watched = match row.absent {
                Absent::OnlyInHome if !is_home => continue,
                Absent::Free => false,
                Absent::Watched => true,
                Absent::WatchedInHome | Absent::OnlyInHome => is_home,
            };
            let path = base.join(row.path);
            self.existing(&path)?;
            if watched {
                self.watch(path);
            }
        }
        Ok(())
    }

    /// Protects, and watches, those of these names that lie here.
    fn names(&mut self, names: impl IntoIterator<Item = PathBuf>) -> Result<(), ViewError> {
        for name in names {
            if below(&name, self.workspace) {
                self.existing(&name)?;
                self.watch(name);
            }
        }
        Ok(())
    }

    /// Watches a name, where it really is: the user's own link on the way may lead elsewhere in the
    /// workspace.
    fn watch(&mut self, path: PathBuf) {
        let real = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => fs::canonicalize(parent).ok().map(|parent| parent.join(name)),
            _ => None,
        };
        let path = real.filter(|real| below(real, self.workspace)).unwrap_or(path);
        if super::place::is_clean(&path) {
            self.watched.push(path);
        }
    }

    /// Protects what is there; a link and, in the workspace, what it leads to.
    fn existing(&mut self, path: &Path) -> Result<bool, ViewError> {
        let Ok(found) = fs::symlink_metadata(path) else {
            return Ok(false);
        };
        self.protect(path)?;
        if found.is_symlink()
            && let Ok(real) = fs::canonicalize(path)
            && below(&real, self.workspace)
        {
            self.protect(&real)?;
        }
        Ok(true)
    }

    fn protect(&mut self, path: &Path) -> Result<(), ViewError> {
        if self.is_protected.insert(path.to_path_buf()) {
            self.pin_above(path);
            self.protected.push(path.to_path_buf());
        }
        if self.protected.len() + self.pins.len() > MOUNTS {
            return Err(exceeded(self.workspace, "protected files and directories", MOUNTS));
        }
        Ok(())
    }

    /// Pins the directories between the workspace and this path. A link among them is not: the real
    /// place is protected, and the link itself if it has a row.
    fn pin_above(&mut self, path: &Path) {
        let above = path
            .ancestors()
            .skip(1)
            .take_while(|above| below(above, self.workspace));
        for above in above {
            if self.pins.contains(above) {
                break;
            }
            if is_directory(above) {
                self.pins.insert(above.to_path_buf());
            }
        }
    }

    /// The git directory of a working tree, or the file or link that stands in its place.
    fn repository(&mut self, tree: &Path) -> Result<(), ViewError> {
        let git = tree.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(found) if found.is_dir() => self.git_directory(&git)?,
            Ok(found) if found.is_symlink() => {
                self.existing(&git)?;
            }
            // A pointer to a linked tree's or a submodule's git directory.
            Ok(_) => {
                self.existing(&git)?;
                let text = self.read(&git)?;
                let real = text
                    .as_deref()
                    .and_then(|text| fs::canonicalize(tree.join(text.strip_prefix("gitdir:")?.trim())).ok());
                if let Some(real) = real.filter(|real| below(real, self.workspace)) {
                    self.git_directory(&real)?;
                }
            }
            // `git init` must work, and what it makes is protected from the next sandbox on.
            Err(_) => {}
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Option<String>, ViewError> {
        read(path).map_err(|_| exceeded(path, "bytes", LONGEST))
    }

    fn nested(&mut self) -> Result<(), ViewError> {
        let Ok(entries) = fs::read_dir(self.workspace) else {
            return Ok(());
        };
        for (count, entry) in entries.flatten().enumerate() {
            if count >= TOP {
                return Err(exceeded(self.workspace, "entries", TOP));
            }
            if entry.file_name() == ".git" || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let tree = entry.path();
            if fs::symlink_metadata(tree.join(".git")).is_ok() {
                self.pin_above(&tree.join(".git"));
                self.repository(&tree)?;
            }
        }
        Ok(())
    }

    /// What git runs code from: hooks, and settings (`core.fsmonitor`, `core.hooksPath`, filters,
    /// aliases, pagers, includes). `info/attributes` and `objects/info/alternates` stay open: they
    /// only choose among what settings define. All else is written by a commit.
    fn git_directory(&mut self, git: &Path) -> Result<(), ViewError> {
        // The same one may be found by several ways: by a submodule's pointer, and where it stands.
        if self.is_protected.contains(&git.join("config")) {
            return Ok(());
        }
        self.git_directories.push(git.to_path_buf());
        if self.git_directories.len() > GIT_DIRECTORIES {
            return Err(exceeded(self.workspace, "repositories and submodules", GIT_DIRECTORIES));
        }
        if below(git, self.workspace) {
            self.pin_above(git);
            self.pins.insert(git.to_path_buf());
        }
        for name in GIT_NAMES {
            let path = git.join(name);
            self.existing(&path)?;
            self.watch(path);
        }
        self.named_by_settings(git)?;
        let mut modules = vec![(git.join("modules"), 0)];
        let mut plain = 0;
        while let Some((directory, depth)) = modules.pop() {
            for path in directories(&directory) {
                if is_git_directory(&path) {
                    self.git_directory(&path)?;
                    continue;
                }
                plain += 1;
                if plain > MODULE_DIRECTORIES {
                    return Err(exceeded(&git.join("modules"), "directories", MODULE_DIRECTORIES));
                }
                if depth >= MODULE_DEPTH {
                    return Err(exceeded(&directory, "levels of directories above it", MODULE_DEPTH));
                }
                modules.push((path, depth + 1));
            }
        }
        for (count, tree) in directories(&git.join("worktrees")).enumerate() {
            if count >= LINKED_TREES {
                return Err(exceeded(&git.join("worktrees"), "linked trees", LINKED_TREES));
            }
            for name in ["config.worktree", "commondir", "gitdir"] {
                let path = tree.join(name);
                self.existing(&path)?;
                self.watch(path);
            }
        }
        Ok(())
    }

    /// Directories of hooks, files of settings, and programs in the workspace that the settings name.
    fn named_by_settings(&mut self, git: &Path) -> Result<(), ViewError> {
        let path = git.join("config");
        let Some(config) = self.read(&path)? else {
            return Ok(());
        };
        let tree = git.parent().unwrap_or(git);
        let hooks = setting(&config, "core", "hookspath").map(|value| tree.join(value));
        let included = ["include", "includeif"]
            .into_iter()
            .flat_map(|section| setting(&config, section, "path"))
            .map(|value| git.join(value));
        let settings: Vec<PathBuf> = hooks.chain(included).collect();
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
        let programs: Vec<PathBuf> = programs.take(NAMED + 1).collect();
        if settings.len() + programs.len() > NAMED {
            return Err(exceeded(&path, "settings that name a file", NAMED));
        }
        for path in &settings {
            // Hooks and settings that are not there: whoever makes them decides what git runs.
            let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
            let real = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
            let named = real.unwrap_or_else(|| path.clone());
            if below(&named, self.workspace) {
                self.watch(named);
            }
        }
        for path in settings.iter().chain(&programs) {
            if let Ok(real) = fs::canonicalize(path)
                && below(&real, self.workspace)
            {
                self.protect(&real)?;
            }
        }
        Ok(())
    }

    fn finish(self, executable: bool) -> Protection {
        // What lies below something protected is protected with it, whatever it is.
        let covered = |path: &Path| path.ancestors().skip(1).any(|above| self.is_protected.contains(above));
        let pins = self
            .pins
            .iter()
            .filter(|pin| !self.is_protected.contains(*pin) && !covered(pin));
        let pins = pins.map(|pin| Entry::Again {
            target: pin.clone(),
            writable: true,
            executable,
        });
        let protected = self.protected.iter().filter(|path| !covered(path));
        let protected = protected.map(|path| Entry::Protect { target: path.clone() });
        let entries = pins.chain(protected).collect();
        Protection {
            entries,
            fixed: self.fixed,
            watched: self.watched,
            git_directories: self.git_directories,
        }
    }
}

/// Every link on the way that an absolute path takes, where each really stands, and at last what it names.
fn steps(path: &Path) -> Vec<PathBuf> {
    let mut steps = Vec::new();
    let (mut here, mut ahead) = (PathBuf::from("/"), parts(path));
    while let Some(part) = ahead.pop() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(part);
        match fs::read_link(&next) {
            // As many as the kernel follows.
            Ok(target) if steps.len() < 40 => {
                if target.is_absolute() {
                    here = "/".into();
                }
                ahead.extend(parts(&target));
                steps.push(next);
            }
            _ => here = next,
        }
    }
    steps.push(here);
    steps
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
