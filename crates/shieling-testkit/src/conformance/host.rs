//! A directory of this host beside a workspace on this host.
#![expect(clippy::disallowed_methods, reason = "what lies outside is files of this host")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::OutsideDirectory;

/// Implements [`OutsideDirectory`] for environments whose workspace is a directory of this host.
#[derive(Debug)]
pub struct HostDirectory(PathBuf);

impl HostDirectory {
    /// Uses this existing directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl OutsideDirectory for HostDirectory {
    fn path(&self) -> &Path {
        &self.0
    }

    fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        fs::write(self.0.join(name), content)
    }

    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.0.join(name)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = fs::read_dir(&self.0)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }
}
