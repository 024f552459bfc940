//! How a memory is made.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::bash::{ENDLESS, HOME, Kit, Spare};
use super::program::{Handler, Program};
use super::tree::{Follow, Rules, Tree, Write};
use super::{Inner, Memory};
use shieling::environment::{Enforcement, FileError};
use shieling::units::ByteCount;

/// How many bytes the files hold, unless it is said otherwise.
const BYTES: ByteCount = ByteCount::mib(256);
/// How many files and directories there are, unless it is said otherwise.
const FILES: u64 = 100_000;

/// How a memory is made.
#[must_use]
pub struct Builder {
    workspace: PathBuf,
    enforcement: Enforcement,
    bytes: ByteCount,
    files: u64,
    time: Option<SystemTime>,
    programs: BTreeMap<String, Arc<dyn Program>>,
    handler: Option<Handler>,
    seeds: Vec<(PathBuf, Vec<u8>)>,
    overlay: Option<PathBuf>,
}

/// A memory could not be made as it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedError {
    /// Its workspace cannot be where it was said to be.
    #[error("the workspace of a memory is an absolute path without `.` and `..` other than `/`, and not `{}`", .0.display())]
    Workspace(PathBuf),
    /// A file could not be put into it.
    #[error("cannot put a file into memory")]
    File(#[from] FileError),
    /// The folder that is to lie beneath cannot be opened.
    #[error("cannot lay the folder `{}` beneath the memory", path.display())]
    Overlay {
        /// It.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Builder {
    pub(super) fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            enforcement: Enforcement::default(),
            bytes: BYTES,
            files: FILES,
            time: None,
            programs: BTreeMap::new(),
            handler: None,
            seeds: Vec::new(),
            overlay: None,
        }
    }

    /// What it enforces; nothing by default. The policy that it serves may ask for no more
    /// ([`Environment::enforce`](shieling::environment::Environment::enforce)), so make it with `shieling::enforcement_of` that policy.
    ///
    /// - `readonly`: nothing in it can be changed, by whomever, but for what it is made with.
    /// - `hidden`: what of the workspace does not exist.
    /// - `programs`: the only programs that there are, by name; all that memory has if there is no list.
    ///   Builtins of bash are always there. Scripts run only where `bash` or `sh` is allowed.
    pub fn enforcing(mut self, enforcement: Enforcement) -> Self {
        self.enforcement = enforcement;
        self
    }

    /// How much the files hold, the variables of one shell, and what is on its way between the commands
    /// of one text: each of them this much at most. By default 256 MiB.
    pub fn memory(mut self, limit: ByteCount) -> Self {
        self.bytes = limit;
        self
    }

    /// How many files, directories and links there are at most; by default 100,000.
    pub fn files(mut self, limit: u64) -> Self {
        self.files = limit;
        self
    }

    /// A time that does not pass, for commands and for the times of files. By default it is the host's.
    pub fn time(mut self, time: SystemTime) -> Self {
        self.time = Some(time);
        self
    }

    /// A program of this name, also in the place of one that memory has. Where there is a list of those
    /// that are allowed, it is there all the same.
    pub fn program(mut self, name: impl Into<String>, program: impl Program + 'static) -> Self {
        self.programs.insert(name.into(), Arc::new(program));
        self
    }

    /// Who answers for commands that memory does not have, or for all of them.
    pub fn handler(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Files that are there from the start, by paths that are absolute or relative to the workspace.
    pub fn seed(mut self, files: impl IntoIterator<Item = (impl Into<PathBuf>, impl Into<Vec<u8>>)>) -> Self {
        let files = files.into_iter().map(|(path, content)| (path.into(), content.into()));
        self.seeds.extend(files);
        self
    }

    /// A folder of the host that is the workspace: what is in it is read when it is wanted, through
    /// the kernel and never outside of it, and what is changed stays in memory. Its links lead where
    /// they lead in memory. Where anything is hidden ([`Self::enforcing`]), its files that have more names
    /// than one (hard links) do not exist, since another of their names may be a hidden one.
    pub fn overlay(mut self, folder: impl Into<PathBuf>) -> Self {
        self.overlay = Some(folder.into());
        self
    }

    /// Makes it.
    ///
    /// # Errors
    /// [`SeedError`].
    pub fn build(self) -> Result<Memory, SeedError> {
        let clean = |path: &Path| {
            let mut parts = path.components();
            parts.next() == Some(Component::RootDir)
                && path != Path::new("/")
                && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        let workspace = match self.workspace.to_str().filter(|_| clean(&self.workspace)) {
            // Written anew, without what the components do not have.
            Some(_) => self.workspace.components().collect::<PathBuf>(),
            None => return Err(SeedError::Workspace(self.workspace)),
        };
        let Enforcement {
            readonly,
            hidden,
            programs,
            ..
        } = self.enforcement;
        let time = self.time;
        let clock = move || time.unwrap_or_else(SystemTime::now);
        let rules = Rules {
            workspace: workspace.to_string_lossy().into_owned(),
            readonly: false,
            hidden: None,
            bytes: self.bytes.get(),
            files: self.files,
            clock: Arc::new(clock),
        };
        let made = Tree::new(rules);
        for place in [Path::new("/tmp"), Path::new("/dev"), Path::new(HOME)] {
            made.make_directories(place).map_err(SeedError::File)?;
        }
        made.put(Path::new(ENDLESS), b"")?;
        match &self.overlay {
            None => made.make_directories(&workspace)?,
            Some(folder) => made
                .lay(&workspace, folder, hidden.is_some())
                .map_err(|source| SeedError::Overlay {
                    path: folder.clone(),
                    source,
                })?,
        }
        for (path, content) in &self.seeds {
            made.put(&workspace.join(path), content)?;
        }
        let tree = Arc::new(made.ruled(readonly, hidden));
        let epoch = time.map(|time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |seconds| -seconds),
        });
        Ok(Memory {
            inner: Arc::new(Inner {
                workspace,
                tree: Arc::clone(&tree),
                kit: Kit {
                    tree,
                    allowed: programs,
                    programs: self.programs,
                    handler: self.handler,
                    memory: self.bytes.get(),
                    epoch,
                    spare: Spare::default(),
                },
            }),
        })
    }
}

impl Tree {
    /// Makes a directory and those above it.
    fn make_directories(&self, path: &Path) -> Result<(), FileError> {
        let mut inside = self.enter();
        let made = inside
            .spot(path, Follow::All)
            .and_then(|spot| inside.make_directory(&spot, true, 0o755));
        made.map_err(|fault| fault.at("make", path))
    }

    /// Lays a folder beneath a path, `single` without its files that have more names than one.
    fn lay(&self, path: &Path, folder: &Path, single: bool) -> io::Result<()> {
        let mut inside = self.enter();
        let spot = inside.spot(path, Follow::All).map_err(|fault| fault.to_io())?;
        inside.lay(&spot, folder, single)
    }

    /// Puts a file somewhere, as somebody who is not bound by what commands are bound by.
    pub(super) fn put(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        let mut inside = self.enter();
        let put = inside
            .spot(path, Follow::All)
            .and_then(|spot| inside.write(&spot, Write::Replace(content), true, 0o644, None));
        put.map(|_| ()).map_err(|fault| fault.at("write", path))
    }
}

impl Memory {
    /// The bytes of a file, by a path that is absolute or relative to the workspace.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, FileError> {
        let path = self.inner.workspace.join(path);
        let mut inside = self.inner.tree.enter();
        let read = inside.find(&path, Follow::All).and_then(|id| inside.content(id));
        drop(inside);
        read.map(Arc::unwrap_or_clone).map_err(|fault| fault.at("read", &path))
    }

    /// Writes a file, with the directories that are missing, by a path that is absolute or relative to
    /// the workspace. What holds for commands holds for this.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(&self, path: impl AsRef<Path>, content: &[u8]) -> Result<(), FileError> {
        self.inner.tree.put(&self.inner.workspace.join(path), content)
    }
}
