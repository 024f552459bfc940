//! The interface between a file operation and its caller: what the operation may access, and the plan of a change
//! before it is made.
//!
//! ```text
//! read, list, find, search    Context ─► response
//! write, edit, patch, move    Context ─► PlannedChange ─► (judged, approved, recorded) ─► make ─► response
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{ContentCache, FileResponse, FilesError};
use crate::environment::{FileError, Files, Meta};
pub(crate) use crate::request::Access;
use crate::units::ByteCount;

/// Queries the metadata of the opened file itself, whatever its path refers to by now.
pub(crate) type QueryMeta<'a> = &'a dyn Fn() -> Result<Meta, FileError>;

/// Decides which paths may be accessed. It is asked with the resolved path of a handle, before the handle is used.
pub(crate) trait AccessFilter: Send + Sync {
    /// Returns whether a path is hidden. A hidden path does not exist for the caller, and its name is never returned.
    fn hides(&self, path: &Path, is_directory: bool) -> bool;

    /// Checks that a file may be read. `held` queries the file that was opened by this path.
    ///
    /// # Errors
    /// [`FilesError`]: not found, or the reason of the refusal.
    fn reads(&self, path: &Path, held: QueryMeta<'_>) -> Result<(), FilesError>;
}

/// What an operation works with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The files of the environment.
    pub(crate) files: &'a dyn Files,
    /// Decides which paths may be accessed.
    pub(crate) access: &'a dyn AccessFilter,
    /// Contents of earlier reads and writes, for the diff in [`FilesError::Stale`].
    pub(crate) cache: &'a ContentCache,
    /// The directory that relative paths are resolved against.
    pub(crate) workspace: &'a Path,
}

impl Context<'_> {
    /// Returns the absolute form of a requested path.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.workspace.join(path)
    }
}

/// A change that is fully prepared but not yet made.
pub(crate) struct PlannedChange {
    /// The resolved paths that it changes. The access is never [`Access::Read`].
    pub(crate) paths: Vec<(Access, PathBuf)>,
    /// A preview for the approver: a unified diff, or a line of text.
    pub(crate) preview: String,
    /// The bound at which the preview was cut. A change whose preview is cut cannot be approved.
    pub(crate) cut_at: Option<ByteCount>,
    /// Those of the paths that are directories.
    pub(crate) directories: HashSet<PathBuf>,
    /// Makes the whole change, or none of it. Fails if the files have changed since the plan.
    pub(crate) make: Box<dyn FnOnce() -> Result<FileResponse, FilesError> + Send>,
}
