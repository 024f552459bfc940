//! The tree as bashkit's file system: by path, without following links, since bashkit follows them itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, FsUsage, Metadata, async_trait};

use super::bytes::Bytes;
use super::output_pipe::reworded;
use super::parsing;
use crate::tree::{Follow, NodeInfo, Tree, TreeError, Write};
use shieling::environment::Kind;

/// An endless file, which bashkit would silently cut off after 1 MiB.
pub(crate) const ENDLESS: &str = "/dev/zero";

/// The null device. Bashkit supports it only in redirections.
pub(super) const NULL: &str = "/dev/null";

/// The directory in which bashkit's own commands can be called by path, even if others have their names. It is
/// visible nowhere else.
const STUBS: &str = "/proc/shieling/";

/// Returns the path of bashkit's own command of this name.
pub(super) fn stub(name: &str) -> String {
    format!("{STUBS}{name}")
}

/// Returns bashkit's own command that a path refers to, if it is one.
fn stubbed(path: &Path) -> Option<String> {
    let name = path.to_str()?.strip_prefix(STUBS)?;
    Some(format!("#!/bin/sh\n# bashkit builtin: {name}\nexec {name} \"$@\"\n"))
}

/// The permission bits that new files lack; the umask is fixed.
pub(super) const MASK: u32 = 0o022;

/// The file system of one bash.
pub(super) struct Disk {
    tree: Arc<Tree>,
    /// The largest file that its commands may write; [`u64::MAX`] means no limit.
    largest: AtomicU64,
    /// Whether the next file is a script, since the last command runs one.
    script: AtomicBool,
    pub(super) bytes: Bytes,
}

impl Disk {
    pub(super) fn new(tree: Arc<Tree>, bytes: Bytes) -> Self {
        Self {
            tree,
            largest: AtomicU64::new(u64::MAX),
            script: AtomicBool::new(false),
            bytes,
        }
    }

    /// Records whether the last command runs a script.
    pub(super) fn expect_script(&self, is_expected: bool) {
        self.script.store(is_expected, Ordering::Relaxed);
    }

    /// Returns the tree.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Sets the largest file.
    pub(super) fn limit_files(&self, largest: Option<u64>) {
        self.largest.store(largest.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the largest file that its commands may write.
    pub(super) fn largest(&self) -> Option<u64> {
        Some(self.largest.load(Ordering::Relaxed))
    }

    fn put(&self, path: &Path, what: Write<'_>) -> Result<(), TreeError> {
        if path == Path::new(NULL) {
            return Ok(());
        }
        let mut inside = self.tree.enter();
        let write_target = inside.write_target(path, Follow::None)?;
        let mode = 0o666 & !MASK;
        inside
            .write(&write_target, what, false, mode, self.largest())
            .map(|_| ())
    }
}

fn told<T>(result: Result<T, TreeError>) -> bashkit::Result<T> {
    result.map_err(|fault| fault.to_io().into())
}

fn metadata(about: &NodeInfo) -> Metadata {
    Metadata {
        file_type: match about.kind {
            Kind::Directory => FileType::Directory,
            Kind::Link => FileType::Symlink,
            // Memory has no other file system.
            Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => FileType::File,
        },
        size: about.size,
        mode: about.mode,
        modified: about.modified,
        created: about.modified,
    }
}

#[async_trait]
impl FileSystemExt for Disk {
    fn usage(&self) -> FsUsage {
        let (bytes, files) = self.tree.enter().usage();
        FsUsage::new(bytes, files, 0)
    }

    fn limits(&self) -> FsLimits {
        let rules = self.tree.rules();
        FsLimits::unlimited()
            .max_total_bytes(rules.bytes)
            .max_file_count(rules.files)
    }

    fn backend_kind(&self) -> &'static str {
        "shieling"
    }
}

#[async_trait]
impl FileSystem for Disk {
    async fn read_file(&self, path: &Path) -> bashkit::Result<Vec<u8>> {
        if path == Path::new(ENDLESS) {
            let why = "Operation not supported: a file without an end cannot be read in memory";
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why).into());
        }
        if let Some(stub) = stubbed(path) {
            return Ok(stub.into_bytes());
        }
        if path == Path::new(NULL) {
            return Ok(Vec::new());
        }
        let mut inside = self.tree.enter();
        let found = inside.find(path, Follow::None);
        let found = found.and_then(|id| Ok((inside.about(id)?.mode, inside.content(id)?)));
        drop(inside);
        let (mode, content) = told(found)?;
        if self.bytes.refuses(path, &content) {
            let why = "Operation not supported: it is not UTF-8, and memory would change it; use `sandbox`";
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why).into());
        }
        let is_script = self.script.swap(false, Ordering::Relaxed) || mode & 0o111 != 0;
        if is_script && std::str::from_utf8(&content).is_ok_and(parsing::is_deep) {
            let why = "Operation not supported: a script with more than 1,000 times `time` cannot run in memory";
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why).into());
        }
        Ok(Arc::unwrap_or_clone(content))
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> bashkit::Result<()> {
        told(self.put(path, Write::Replace(&reworded(content))))
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> bashkit::Result<()> {
        told(self.put(path, Write::Append(&reworded(content))))
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> bashkit::Result<()> {
        let mut inside = self.tree.enter();
        if recursive && path == Path::new("/") {
            return Ok(());
        }
        told(
            inside
                .write_target(path, Follow::None)
                .and_then(|write_target| inside.make_directory(&write_target, recursive, 0o777 & !MASK)),
        )
    }

    async fn remove(&self, path: &Path, recursive: bool) -> bashkit::Result<()> {
        let mut inside = self.tree.enter();
        told(
            inside
                .write_target(path, Follow::None)
                .and_then(|write_target| inside.remove(&write_target, recursive)),
        )
    }

    async fn stat(&self, path: &Path) -> bashkit::Result<Metadata> {
        let there = |size: usize, mode| Metadata {
            file_type: FileType::File,
            size: size as u64,
            mode,
            modified: SystemTime::UNIX_EPOCH,
            created: SystemTime::UNIX_EPOCH,
        };
        if let Some(stub) = stubbed(path) {
            return Ok(there(stub.len(), 0o755));
        }
        if path == Path::new(NULL) {
            return Ok(there(0, 0o666));
        }
        let mut inside = self.tree.enter();
        let about = inside.find(path, Follow::None).and_then(|id| inside.about(id));
        told(about.map(|about| metadata(&about)))
    }

    async fn read_dir(&self, path: &Path) -> bashkit::Result<Vec<DirEntry>> {
        let mut inside = self.tree.enter();
        let listed = inside.find(path, Follow::None).and_then(|id| {
            // No link was followed, so this is the resolved path.
            inside.list(id, path.to_str().unwrap_or_default())
        });
        let mut entries = Vec::new();
        for (name, id) in told(listed)? {
            // A file of the host may have vanished in the meantime.
            if let Ok(about) = inside.about(id) {
                entries.push(DirEntry {
                    name: name.to_string(),
                    metadata: metadata(&about),
                });
            }
        }
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> bashkit::Result<bool> {
        Ok(path == Path::new(NULL) || self.tree.enter().find(path, Follow::None).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> bashkit::Result<()> {
        let mut inside = self.tree.enter();
        let from = told(inside.write_target(from, Follow::None))?;
        let to = told(inside.write_target(to, Follow::None))?;
        told(inside.rename(&from, &to, true, false))
    }

    async fn copy(&self, from: &Path, to: &Path) -> bashkit::Result<()> {
        if from == Path::new(NULL) {
            return self.write_file(to, b"").await;
        }
        if to == Path::new(NULL) {
            return Ok(());
        }
        let mut inside = self.tree.enter();
        let from = told(inside.find(from, Follow::None))?;
        let to = told(inside.write_target(to, Follow::None))?;
        told(inside.copy(from, &to, self.largest()))
    }

    async fn symlink(&self, target: &Path, link: &Path) -> bashkit::Result<()> {
        let mut inside = self.tree.enter();
        let write_target = told(inside.write_target(link, Follow::None))?;
        let target = target.to_str().ok_or(TreeError::BadName("it is not UTF-8"));
        told(target.and_then(|target| inside.link(&write_target, target)))
    }

    async fn read_link(&self, path: &Path) -> bashkit::Result<PathBuf> {
        let mut inside = self.tree.enter();
        let target = inside.find(path, Follow::None).and_then(|id| inside.target(id));
        told(target.map(|target| PathBuf::from(&*target)))
    }

    async fn chmod(&self, path: &Path, mode: u32) -> bashkit::Result<()> {
        let mut inside = self.tree.enter();
        told(inside.find(path, Follow::None).and_then(|id| inside.set_mode(id, mode)))
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> bashkit::Result<()> {
        let mut inside = self.tree.enter();
        told(
            inside
                .find(path, Follow::None)
                .and_then(|id| inside.set_modified(id, time)),
        )
    }
}
