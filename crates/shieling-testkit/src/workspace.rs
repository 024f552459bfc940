//! A temporary workspace.
#![expect(clippy::disallowed_methods, reason = "a workspace is files")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A temporary directory with files, removed on drop.
#[derive(Debug)]
pub struct Workspace {
    directory: tempfile::TempDir,
    root: PathBuf,
}

impl Workspace {
    /// Creates an empty workspace.
    ///
    /// # Panics
    /// If there is no temporary directory. All methods panic on errors, since no test could continue.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Resolved, so that paths compare equal to the output of `pwd -P`.
        let root = directory.path().canonicalize().expect("it was just made");
        Self { directory, root }
    }

    /// Writes a file, and creates its parent directories.
    #[must_use]
    pub fn with(self, path: &str, content: &str) -> Self {
        self.write(path, content);
        self
    }

    /// Writes an executable file.
    #[must_use]
    pub fn with_program(self, path: &str, content: &str) -> Self {
        self.write(path, content);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path(path), mode).expect("our own file");
        self
    }

    /// Writes a file.
    pub fn write(&self, path: &str, content: &str) {
        self.write_bytes(path, content.as_bytes());
    }

    /// Writes a file with any bytes.
    pub fn write_bytes(&self, path: impl AsRef<Path>, content: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a writable temporary directory");
        fs::write(path, content).expect("a writable temporary directory");
    }

    /// Returns the directory, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path in the workspace.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Keeps the directory, for inspection after a failure.
    pub fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}
