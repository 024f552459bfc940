//! What a writable workspace always protects: what later commands of the *user*, outside of any
//! sandbox, would run code from. A command may change what the user reads, never what runs by itself.
//!
//! What is there is protected where it stands, with every link in the workspace that leads to it. A name that is
//! free is *watched*: what a command makes there is moved aside after it (see [`guard`](super::guard)). Free is
//! only what the kernel says is absent: a directory of ours that is closed to us, which a command could open
//! again, is protected as a whole, and any other error keeps the sandbox from starting.
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
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use shieling_gate::settings::{self, Setting};
use shieling_jail::plan::Entry;

use super::ViewError;
use super::place::below;
use super::repository::{self, LONGEST, Unread};
use super::steps::{LINKS, Steps, Unknown, is_absence};

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
    of_home("sbin"),
    of_home("go/bin"),
    // What start-up files enter into every shell; and where node looks from every directory of a home.
    of_home("anaconda3"),
    of_home("mambaforge"),
    of_home("miniconda3"),
    of_home("miniforge3"),
    of_home("perl5"),
    of_home("node_modules"),
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
            let is_gits = name.is_some_and(in_git) && above.parent().is_some_and(repository::is_git_directory);
            is_gits || names.iter().any(|name| above.ends_with(name))
        })
        .map(Path::to_path_buf)
}

/// What git runs code from in a git directory; `commondir` makes it read another directory's settings.
const GIT_NAMES: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// How much is looked after. More than that is refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Entries of the workspace's top, which are looked at for repositories.
    pub(super) top: usize,
    /// Git directories: of nested repositories and of submodules, at any depth.
    pub(super) git_directories: usize,
    /// Directories in one `modules` that are no git directories, and how deep: the name of a submodule may
    /// hold slashes.
    pub(super) module_directories: usize,
    pub(super) module_depth: usize,
    /// Linked trees of one repository.
    pub(super) linked_trees: usize,
    /// Files and directories that the settings of one repository name.
    pub(super) named: usize,
    /// Files of settings that those of one repository include, one by the other.
    pub(super) included: usize,
    /// Mounts for all of it. Each costs the start some 20 µs.
    pub(super) mounts: usize,
    /// Links on the way to one file.
    pub(super) links: usize,
}

impl Bounds {
    pub(super) const ALL: Self = Self {
        top: 20_000,
        git_directories: 2_000,
        module_directories: 10_000,
        module_depth: 16,
        linked_trees: 1_000,
        named: 1_000,
        included: 100,
        mounts: 12_000,
        links: LINKS,
    };
}

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
    /// Links from which something starts by itself, or places in the workspace to which they lead.
    pub(super) led_to: &'a [PathBuf],
    /// How much is looked after.
    pub(super) bounds: Bounds,
}

/// Finds what is to be protected in a writable workspace.
///
/// # Errors
/// [`ViewError::Exceeded`]: there is more than is looked after. [`ViewError::Closed`]: what there is cannot be
/// seen, and nobody would keep a command from opening it.
pub(super) fn find(scope: &Scope<'_>) -> Result<Protection, ViewError> {
    let &Scope { workspace, home, .. } = scope;
    let mut search = Search {
        workspace,
        home,
        outside: scope.outside,
        bounds: scope.bounds,
        closed: BTreeSet::new(),
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
    for path in scope.led_to {
        search.existing(path)?;
        search.watch(path.clone())?;
    }
    search.repository(workspace)?;
    if search.is_git_directory(workspace)? {
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
        led_to: &[],
        bounds: Bounds::ALL,
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

/// The way to a path.
#[derive(Debug, Default)]
struct Way {
    /// The links on it, at their real places.
    links: Vec<PathBuf>,
    /// Where it ends; nothing where that is not known.
    end: Option<PathBuf>,
    /// Whether something stands there.
    is_there: bool,
}

impl Way {
    fn there(&mut self) -> Option<PathBuf> {
        self.end.take().filter(|_| self.is_there)
    }
}

struct Search<'a> {
    workspace: &'a Path,
    home: &'a Path,
    outside: Option<&'a Path>,
    bounds: Bounds,
    /// Directories that cannot be looked into, and are protected as a whole.
    closed: BTreeSet<PathBuf>,
    pins: BTreeSet<PathBuf>,
    protected: Vec<PathBuf>,
    is_protected: BTreeSet<PathBuf>,
    fixed: Vec<PathBuf>,
    watched: Vec<PathBuf>,
    git_directories: Vec<PathBuf>,
}

impl Search<'_> {
    /// What stands at a path, links as such; nothing where nothing does, or where what does is closed to
    /// commands too.
    fn look(&mut self, path: &Path) -> Result<Option<Metadata>, ViewError> {
        match fs::symlink_metadata(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) if is_too_long(path, &error) => Ok(None),
            Err(error) => {
                let closed = path
                    .ancestors()
                    .skip(1)
                    .find(|above| fs::symlink_metadata(above).is_ok());
                self.closed(closed.unwrap_or(path), error)?;
                Ok(None)
            }
        }
    }

    /// A file or directory that cannot be read or searched. Whose owner we are is what commands could open:
    /// in the workspace it is protected as a whole, its mode with it. Where somebody else owns it, no command
    /// gets in.
    fn closed(&mut self, path: &Path, source: io::Error) -> Result<(), ViewError> {
        let is_denied = Errno::from_io_error(&source) == Some(Errno::ACCESS);
        let found = fs::symlink_metadata(path).ok().filter(|_| is_denied);
        let is_directory = found.as_ref().is_some_and(Metadata::is_dir);
        let is_own = found.is_none_or(|found| found.uid() == rustix::process::geteuid().as_raw());
        let is_inside = below(path, self.workspace);
        let is_looked_after = path == self.workspace || self.outside.is_some_and(|git| path.starts_with(git));
        if is_denied && is_inside && is_own && is_directory {
            self.protect(path)?;
            self.closed.insert(path.to_path_buf());
            return Ok(());
        }
        if is_denied && (is_inside && !is_own || !is_inside && !is_looked_after) {
            return Ok(());
        }
        Err(ViewError::Closed {
            path: path.to_path_buf(),
            why: source,
        })
    }

    /// The way to a path, as far as it is not closed to commands too.
    fn way(&mut self, path: &Path) -> Result<Way, ViewError> {
        let mut way = Way::default();
        for step in Steps::to(path, self.bounds.links) {
            match step {
                Ok(step) if step.is_link() => way.links.push(step.path),
                Ok(step) => {
                    way.is_there = step.found.is_some();
                    way.end = Some(step.path);
                }
                Err(Unknown::TooManyLinks) => return Err(exceeded(path, "links on the way to it", self.bounds.links)),
                Err(Unknown::Closed(closed, error)) => {
                    self.closed(&closed, error)?;
                    way.end = None;
                    return Ok(way);
                }
            }
        }
        Ok(way)
    }

    /// What a path really is, if it is there.
    fn real(&mut self, path: &Path) -> Result<Option<PathBuf>, ViewError> {
        Ok(self.way(path)?.there())
    }

    /// Protects files by their names, with every link in the workspace that leads to them.
    fn fixed(&mut self, files: &[PathBuf]) -> Result<(), ViewError> {
        for file in files {
            let way = self.way(file)?;
            let end = way.end.filter(|end| !is_directory(end));
            for step in way.links.into_iter().chain(end) {
                if below(&step, self.workspace) {
                    self.protect(&step)?;
                    self.fixed.push(step);
                }
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
                self.watch(path)?;
            }
        }
        Ok(())
    }

    /// Protects, and watches, those of these names that lie here.
    fn names(&mut self, names: impl IntoIterator<Item = PathBuf>) -> Result<(), ViewError> {
        for name in names {
            if below(&name, self.workspace) {
                self.existing(&name)?;
                self.watch(name)?;
            }
        }
        Ok(())
    }

    /// Watches a name, where it really is: the user's own link on the way may lead elsewhere in the
    /// workspace.
    fn watch(&mut self, path: PathBuf) -> Result<(), ViewError> {
        let real = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => self.real(parent)?.map(|parent| parent.join(name)),
            _ => None,
        };
        let path = real.filter(|real| below(real, self.workspace)).unwrap_or(path);
        // A link that leads to nothing leads to what is made there.
        let way = self.way(&path)?;
        let end = way
            .end
            .filter(|end| *end != path && !way.is_there && below(end, self.workspace));
        let names = std::iter::once(path).chain(end);
        self.watched.extend(names.filter(|name| super::place::is_clean(name)));
        Ok(())
    }

    /// Protects what is there, by its real place, and the links in the workspace that lead to it: each could
    /// be exchanged for another.
    fn existing(&mut self, path: &Path) -> Result<(), ViewError> {
        if self.look(path)?.is_none() {
            return Ok(());
        }
        let mut way = self.way(path)?;
        let end = way.there();
        for step in way.links.into_iter().chain(end) {
            let is_outside = self.outside.is_some_and(|git| step.starts_with(git));
            if below(&step, self.workspace) || is_outside {
                self.protect(&step)?;
            }
        }
        Ok(())
    }

    fn protect(&mut self, path: &Path) -> Result<(), ViewError> {
        if self.is_protected.insert(path.to_path_buf()) {
            self.pin_above(path);
            self.protected.push(path.to_path_buf());
        }
        if self.protected.len() + self.pins.len() > self.bounds.mounts {
            return Err(exceeded(
                self.workspace,
                "protected files and directories",
                self.bounds.mounts,
            ));
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

    /// The git directory of a working tree, or the file or link that stands in its place. What `git init`
    /// makes where there is none is protected from the next sandbox on.
    fn repository(&mut self, tree: &Path) -> Result<(), ViewError> {
        let git = tree.join(".git");
        let Some(found) = self.look(&git)? else { return Ok(()) };
        if found.is_dir() {
            return self.git_directory(&git);
        }
        self.existing(&git)?;
        // A pointer to a linked tree's or a submodule's git directory.
        if found.is_file()
            && let Some(text) = self.read(&git)?
            && let Some(place) = text.strip_prefix(b"gitdir:")
            && let Some(real) = self.real(&tree.join(repository::path(place)))?
            && below(&real, self.workspace)
        {
            self.git_directory(&real)?;
        }
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, ViewError> {
        match repository::read(path) {
            Ok(text) => Ok(text),
            Err(Unread::TooLong) => Err(exceeded(path, "bytes", LONGEST)),
            Err(Unread::Closed(error)) => {
                // It, or a directory above it.
                let found = fs::symlink_metadata(path).is_ok();
                let closed = path
                    .ancestors()
                    .skip(1)
                    .find(|above| fs::symlink_metadata(above).is_ok());
                self.closed(closed.filter(|_| !found).unwrap_or(path), error)?;
                Ok(None)
            }
        }
    }

    /// The real directories in a directory, in no order; none if it is a link itself.
    fn directories(&mut self, path: &Path, most: usize, what: &'static str) -> Result<Vec<PathBuf>, ViewError> {
        if !self.look(path)?.is_some_and(|found| found.is_dir()) {
            return Ok(Vec::new());
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => {
                self.closed(path, error)?;
                return Ok(Vec::new());
            }
        };
        let unknown = |why| ViewError::Closed {
            path: path.to_path_buf(),
            why,
        };
        let mut found = Vec::new();
        for (count, entry) in entries.enumerate() {
            if count >= most {
                return Err(exceeded(path, what, most));
            }
            let entry = entry.map_err(unknown)?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => found.push(entry.path()),
                Ok(_) => {}
                Err(error) if is_absence(&error) => {}
                Err(error) => return Err(unknown(error)),
            }
        }
        Ok(found)
    }

    fn nested(&mut self) -> Result<(), ViewError> {
        let workspace = self.workspace;
        for tree in self.directories(workspace, self.bounds.top, "entries")? {
            if tree.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let git = tree.join(".git");
            if self.look(&git)?.is_some() {
                self.pin_above(&git);
                self.repository(&tree)?;
            }
        }
        Ok(())
    }

    /// Whether git would take this directory for a git directory.
    fn is_git_directory(&mut self, path: &Path) -> Result<bool, ViewError> {
        if self.look(&path.join("HEAD"))?.is_none() {
            return Ok(false);
        }
        Ok(self.look(&path.join("objects"))?.is_some() || self.look(&path.join("commondir"))?.is_some())
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
        let most = self.bounds.git_directories;
        if self.git_directories.len() > most {
            return Err(exceeded(self.workspace, "repositories and submodules", most));
        }
        if below(git, self.workspace) {
            self.pin_above(git);
            self.pins.insert(git.to_path_buf());
        }
        for name in GIT_NAMES {
            let path = git.join(name);
            self.existing(&path)?;
            self.watch(path)?;
        }
        let mut trees = Vec::new();
        let mut settings = vec![git.join("config"), git.join("config.worktree")];
        for tree in self.directories(&git.join("worktrees"), self.bounds.linked_trees, "linked trees")? {
            for name in ["config.worktree", "commondir", "gitdir"] {
                let path = tree.join(name);
                self.existing(&path)?;
                self.watch(path)?;
            }
            settings.push(tree.join("config.worktree"));
            if let Some(pointer) = self.read(&tree.join("gitdir"))? {
                trees.extend(tree.join(repository::path(&pointer)).parent().map(Path::to_path_buf));
            }
        }
        self.named_by_settings(git, settings, trees)?;
        let mut modules = vec![(git.join("modules"), 0)];
        let mut plain = 0;
        while let Some((directory, depth)) = modules.pop() {
            for path in self.directories(&directory, usize::MAX, "entries")? {
                if self.is_git_directory(&path)? {
                    self.git_directory(&path)?;
                    continue;
                }
                plain += 1;
                if plain > self.bounds.module_directories {
                    let modules = git.join("modules");
                    return Err(exceeded(&modules, "directories", self.bounds.module_directories));
                }
                if depth >= self.bounds.module_depth {
                    return Err(exceeded(
                        &directory,
                        "levels of directories above it",
                        self.bounds.module_depth,
                    ));
                }
                modules.push((path, depth + 1));
            }
        }
        Ok(())
    }

    /// Directories of hooks, files of settings, and programs in the workspace that the settings name, in the
    /// files that they include too. `trees` are the linked trees, from which a relative path may start.
    fn named_by_settings(
        &mut self,
        git: &Path,
        mut files: Vec<PathBuf>,
        mut trees: Vec<PathBuf>,
    ) -> Result<(), ViewError> {
        let mut read: BTreeSet<PathBuf> = BTreeSet::new();
        let mut found: Vec<Setting> = Vec::new();
        let (mut length, mut named) = (0, BTreeSet::new());
        while let Some(path) = files.pop() {
            let Some(text) = self.read(&path)? else { continue };
            length += text.len();
            if length > LONGEST {
                return Err(exceeded(&path, "bytes, with the settings that include it,", LONGEST));
            }
            let directory = path.parent().unwrap_or(git).to_path_buf();
            read.insert(path);
            for setting in settings::parse(&text) {
                for included in setting.paths().into_iter().filter(|_| setting.is_include()) {
                    let included = directory.join(self.at_home(&included));
                    named.insert(included.clone());
                    let Some(real) = self.real(&included)? else { continue };
                    if below(&real, self.workspace) && !read.contains(&real) {
                        files.push(real);
                    }
                }
                found.push(setting);
            }
            if read.len() + files.len() > self.bounds.included {
                return Err(exceeded(git, "files of settings", self.bounds.included));
            }
        }
        // Where git stands when it runs something: in a working tree, or in a bare repository itself.
        let own = found.iter().filter(|setting| setting.is("core.worktree"));
        let own: Vec<PathBuf> = own.flat_map(Setting::paths).map(|path| git.join(path)).collect();
        match git.file_name() {
            Some(name) if name == ".git" => trees.extend(git.parent().map(Path::to_path_buf)),
            _ if own.is_empty() => trees.push(git.to_path_buf()),
            _ => {}
        }
        trees.extend(own);
        let mut programs = BTreeSet::new();
        for setting in &found {
            for tree in &trees {
                if setting.is("core.hookspath") || setting.is("init.templatedir") {
                    named.extend(setting.paths().iter().map(|path| tree.join(self.at_home(path))));
                }
                for word in setting.words() {
                    let path = tree.join(self.at_home(&word));
                    if path.is_file() {
                        programs.insert(path);
                    }
                }
            }
            if named.len() + programs.len() > self.bounds.named {
                return Err(exceeded(git, "settings that name a file", self.bounds.named));
            }
        }
        for path in named {
            self.existing(&path)?;
            // Hooks and settings that are not there: whoever makes them decides what git runs.
            let parent = path.parent().map(|parent| self.real(parent)).transpose()?.flatten();
            let real = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
            let named = real.unwrap_or(path);
            if below(&named, self.workspace) {
                self.watch(named)?;
            }
        }
        for path in programs {
            self.existing(&path)?;
        }
        Ok(())
    }

    /// A path as git reads it, in which `~` is the home.
    fn at_home(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path.to_path_buf(),
        }
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
        // What is closed keeps what is in it, and lets nothing be made.
        let is_closed = |path: &PathBuf| path.ancestors().skip(1).any(|above| self.closed.contains(above));
        let watched = self.watched.iter().filter(|path| !is_closed(path));
        Protection {
            entries,
            watched: watched.cloned().collect(),
            fixed: self.fixed,
            git_directories: self.git_directories,
        }
    }
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Whether an error says that a name is longer than any that can be made.
fn is_too_long(path: &Path, error: &io::Error) -> bool {
    let longest = path.iter().map(std::ffi::OsStr::len).max().unwrap_or(0);
    Errno::from_io_error(error) == Some(Errno::NAMETOOLONG) && longest > 255
}

#[cfg(test)]
mod tests;
