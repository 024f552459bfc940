//! Folders to measure in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A folder that is gone when this is.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("shieling-bench-{}-{name}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing to be done about it here; the folder is in the temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}
