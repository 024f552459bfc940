//! A directory of this host for tests, with an access check that a test configures.

#![expect(clippy::disallowed_methods, reason = "the tests make the files that are found")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, FileType, Mode};

use super::{
    AccessFilter, ContentCache, Context, FilesError, GlobRequest, GlobResponse, GrepRequest, GrepResponse, QueryMeta,
};
use crate::environment::{Environment as _, FileError, Files, Local, Shell};

/// The directory `w` of a temporary directory, as a workspace.
pub(super) struct TestWorkspace {
    directory: tempfile::TempDir,
    workspace: PathBuf,
    files: Arc<dyn Files>,
    cache: ContentCache,
}

/// Hides entries named `secret` and everything below them; forbids reading entries named `forbidden`.
impl AccessFilter for TestWorkspace {
    fn hides(&self, path: &Path, _: bool) -> bool {
        path.iter().any(|name| name == "secret")
    }

    fn reads(&self, path: &Path, _: QueryMeta<'_>) -> Result<(), FilesError> {
        match path.file_name() {
            Some(name) if name == "forbidden" => Err(FileError::Permission(path.to_path_buf()).into()),
            Some(_) | None => Ok(()),
        }
    }
}

impl TestWorkspace {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().canonicalize().unwrap().join("w");
        fs::create_dir(&workspace).unwrap();
        let local = Local::new(Shell::find(None).unwrap()).with_workspace(&workspace);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let files = runtime.block_on(local.files()).unwrap();
        Self {
            directory,
            workspace,
            files,
            cache: ContentCache::default(),
        }
    }

    /// Creates a workspace with these files. Those without content are directories.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let trial = Self::new();
        for (name, content) in files {
            trial.put(name, content);
        }
        trial
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns a path beside the workspace.
    pub(super) fn outside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(super) fn put(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.workspace.join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn directory(&self, name: &str) {
        fs::create_dir_all(self.workspace.join(name)).unwrap();
    }

    pub(super) fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.workspace.join(name)).unwrap();
    }

    pub(super) fn fifo(&self, name: &str) {
        rustix::fs::mknodat(CWD, self.workspace.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            files: &*self.files,
            access: self,
            cache: &self.cache,
            workspace: &self.workspace,
        }
    }

    pub(super) fn find(&self, request: &GlobRequest) -> Result<GlobResponse, FilesError> {
        super::find(self.context(), request, &AtomicBool::new(false))
    }

    /// Returns the paths that match a pattern.
    pub(super) fn paths(&self, pattern: &str) -> Vec<String> {
        let found = self.find(&GlobRequest::new(pattern)).unwrap();
        assert_eq!(found.next, None);
        found.paths.iter().map(|path| path.display().to_string()).collect()
    }

    pub(super) fn grep(&self, request: &GrepRequest) -> Result<GrepResponse, FilesError> {
        super::grep(self.context(), request, &AtomicBool::new(false))
    }

    /// Formats the results of a search as `path:line:text`, with `-` for context lines.
    pub(super) fn hits(&self, request: &GrepRequest) -> Vec<String> {
        let grepped = self.grep(request).unwrap();
        assert_eq!(grepped.next, None);
        written(&grepped)
    }
}

/// Formats the lines of a response.
pub(super) fn written(grepped: &GrepResponse) -> Vec<String> {
    let hits = grepped.hits.iter().map(|hit| {
        let sign = if hit.matched { ':' } else { '-' };
        let number = hit
            .line
            .or(hit.count)
            .map_or(String::new(), |number| format!("{sign}{number}"));
        let text = hit.text.as_ref().map_or(String::new(), |text| format!("{sign}{text}"));
        format!("{}{number}{text}", hit.path.display())
    });
    hits.collect()
}

pub(super) fn search(pattern: &str) -> GrepRequest {
    GrepRequest {
        limit: 1_000,
        ..GrepRequest::new(pattern)
    }
}
