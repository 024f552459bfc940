//! Builds a memory environment.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::bash::{BashConfig, ENDLESS, HOME, SpareBash};
use super::memory::{Inner, Memory};
use super::program::{Handler, Program};
use super::tree::{Follow, Rules, Tree, Write};
use shieling::environment::{Enforcement, FileError};
use shieling::units::ByteCount;

/// The default size of all files, in bytes.
const BYTES: ByteCount = ByteCount::mib(256);
/// The default number of files and directories.
const FILES: u64 = 100_000;

/// Builds a [`Memory`].
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

/// A memory could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedError {
    /// The path of the workspace is invalid.
    #[error("the workspace of a memory is an absolute path without `.` and `..` other than `/`, and not `{}`", .0.display())]
    Workspace(PathBuf),
    /// A file could not be added.
    #[error("cannot put a file into memory")]
    File(#[from] FileError),
    /// The folder of the host cannot be opened.
    #[error("cannot lay the folder `{}` beneath the memory", path.display())]
    Overlay {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
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

    /// Sets what it enforces; nothing by default. A policy may require no more than this
    /// ([`Environment::enforce`](shieling::environment::Environment::enforce)), so pass `shieling::enforcement_of`
    /// the policy.
    ///
    /// - `readonly`: nothing can be changed after the build, by commands or by callers.
    /// - `hidden`: which paths of the workspace do not exist.
    /// - `programs`: the names of the only programs that exist; without a list, all that memory has. Builtins of bash
    ///   always exist. Scripts run only if `bash` or `sh` is allowed.
    pub fn enforcing(mut self, enforcement: Enforcement) -> Self {
        self.enforcement = enforcement;
        self
    }

    /// Sets the largest size of each of these: all files, the variables of one shell, and the data in pipes between
    /// the commands of one text (default: 256 MiB).
    pub fn memory(mut self, limit: ByteCount) -> Self {
        self.bytes = limit;
        self
    }

    /// Sets the largest number of files, directories and links (default: 100,000).
    pub fn files(mut self, limit: u64) -> Self {
        self.files = limit;
        self
    }

    /// Sets a fixed time for commands and for the times of files. By default it is the time of the host.
    pub fn time(mut self, time: SystemTime) -> Self {
        self.time = Some(time);
        self
    }

    /// Adds a program, or replaces one that memory has. It exists even if a list of allowed programs does not contain
    /// it.
    pub fn program(mut self, name: impl Into<String>, program: impl Program + 'static) -> Self {
        self.programs.insert(name.into(), Arc::new(program));
        self
    }

    /// Sets the handler of commands that memory does not have, or of all commands.
    pub fn handler(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Adds initial files. Their paths are absolute, or relative to the workspace.
    pub fn seed(mut self, files: impl IntoIterator<Item = (impl Into<PathBuf>, impl Into<Vec<u8>>)>) -> Self {
        let files = files.into_iter().map(|(path, content)| (path.into(), content.into()));
        self.seeds.extend(files);
        self
    }

    /// Uses a folder of the host as the workspace. Its contents are read on demand, by the kernel's rules for paths
    /// beneath a directory and never outside of it; changes stay in memory. Its links are resolved in memory. If
    /// anything is hidden ([`Self::enforcing`]), files with several names (hard links) do not exist, since another
    /// name may be a hidden one.
    pub fn overlay(mut self, folder: impl Into<PathBuf>) -> Self {
        self.overlay = Some(folder.into());
        self
    }

    /// Builds the memory.
    ///
    /// # Errors
    /// [`SeedError`] if it cannot be built as configured.
    pub fn build(self) -> Result<Memory, SeedError> {
        let clean = |path: &Path| {
            let mut parts = path.components();
            parts.next() == Some(Component::RootDir)
                && path != Path::new("/")
                && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        let workspace = match self.workspace.to_str().filter(|_| clean(&self.workspace)) {
            // Joined again, to normalise the path.
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
        Ok(Memory::new(Arc::new(Inner {
            workspace,
            tree: Arc::clone(&tree),
            config: BashConfig {
                tree,
                allowed: programs,
                programs: self.programs,
                handler: self.handler,
                memory: self.bytes.get(),
                epoch,
                spare: SpareBash::default(),
            },
        })))
    }
}

impl Tree {
    /// Creates a directory and its parents.
    fn make_directories(&self, path: &Path) -> Result<(), FileError> {
        let mut inside = self.enter();
        let made = inside
            .write_target(path, Follow::All)
            .and_then(|write_target| inside.make_directory(&write_target, true, 0o755));
        made.map_err(|fault| fault.at("make", path))
    }

    /// Mounts a folder at a path; with `single`, without files that have several names.
    fn lay(&self, path: &Path, folder: &Path, single: bool) -> io::Result<()> {
        let mut inside = self.enter();
        let write_target = inside.write_target(path, Follow::All).map_err(|fault| fault.to_io())?;
        inside.lay(&write_target, folder, single)
    }

    /// Writes an initial file, regardless of what is enforced.
    pub(super) fn put(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        let mut inside = self.enter();
        let put = inside
            .write_target(path, Follow::All)
            .and_then(|write_target| inside.write(&write_target, Write::Replace(content), true, 0o644, None));
        put.map(|_| ()).map_err(|fault| fault.at("write", path))
    }
}

impl Memory {
    /// Returns the content of a file. The path is absolute, or relative to the workspace.
    ///
    /// # Errors
    /// [`FileError`] if it cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, FileError> {
        let path = self.inner.workspace.join(path);
        let mut inside = self.inner.tree.enter();
        let read = inside.find(&path, Follow::All).and_then(|id| inside.content(id));
        drop(inside);
        read.map(Arc::unwrap_or_clone).map_err(|fault| fault.at("read", &path))
    }

    /// Writes a file, and creates missing directories. The path is absolute, or relative to the workspace. The rules
    /// for commands apply.
    ///
    /// # Errors
    /// [`FileError`] if it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, content: &[u8]) -> Result<(), FileError> {
        self.inner.tree.put(&self.inner.workspace.join(path), content)
    }
}
