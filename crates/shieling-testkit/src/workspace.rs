//! A small workspace that disappears with the test.
#![expect(clippy::disallowed_methods, reason = "a workspace is files")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A temporary directory with files in it.
#[derive(Debug)]
pub struct Workspace {
    directory: tempfile::TempDir,
    root: PathBuf,
}

impl Workspace {
    /// An empty one.
    ///
    /// # Panics
    /// Without a temporary directory no test can go on; the same holds for all that follows.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Resolved, so that paths compare equal to what a shell reports with `pwd -P`.
        let root = directory.path().canonicalize().expect("it was just made");
        Self { directory, root }
    }

    /// With this file, and the directories above it; written anew if it is there.
    #[must_use]
    pub fn with(self, path: &str, content: &str) -> Self {
        self.write(path, content);
        self
    }

    /// With this program.
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

    /// Writes a file that may be no text.
    pub fn write_bytes(&self, path: impl AsRef<Path>, content: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a writable temporary directory");
        fs::write(path, content).expect("a writable temporary directory");
    }

    /// Its directory, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Leaves the directory where it is, to look at after a failure.
    pub fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}
