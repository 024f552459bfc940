//! What a file operation is given by whoever lets it happen, and what it gives back before it changes
//! anything.
//!
//! ```text
//! read, list, find, search    Context ─► answer
//! write, edit, patch, move    Context ─► Planned ─► (judged, asked about, recorded) ─► make ─► answer
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{FileAnswer, FilesError, Remembered};
use crate::environment::{FileError, Files, Meta};
pub(crate) use crate::request::Access;
use crate::units::ByteCount;

/// Looks at what is held: at the very file that is about to be read, whatever stands at its path.
pub(crate) type Look<'a> = &'a dyn Fn() -> Result<Meta, FileError>;

/// Says of each path that was reached whether it may be used: it is asked with the path of a handle,
/// in which no link is left, before that handle is used.
pub(crate) trait Gate: Send + Sync {
    /// Whether this is hidden: it then is not there, for whoever asks, and no name of it is told.
    fn hides(&self, path: &Path, is_directory: bool) -> bool;

    /// Whether what is held, and was reached by this path, may be read.
    ///
    /// # Errors
    /// [`FilesError`]: that it is not there, or why not.
    fn reads(&self, path: &Path, held: Look<'_>) -> Result<(), FilesError>;
}

/// What an operation works with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The files.
    pub(crate) files: &'a dyn Files,
    /// Who is asked about each path.
    pub(crate) gate: &'a dyn Gate,
    /// What was read and written, for [`FilesError::Stale`].
    pub(crate) remembered: &'a Remembered,
    /// What relative paths are relative to.
    pub(crate) workspace: &'a Path,
}

impl Context<'_> {
    /// The path as it is asked of the files.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.workspace.join(path)
    }
}

/// A change that was worked out and not made.
pub(crate) struct Planned {
    /// The paths that it changes, with no link in them: never [`Access::Read`].
    pub(crate) paths: Vec<(Access, PathBuf)>,
    /// What it changes, for whoever has to say yes: a unified diff, or a line that says it.
    pub(crate) preview: String,
    /// How much of it is shown at most, where that is not all of it: then nobody can say yes to it.
    pub(crate) cut_at: Option<ByteCount>,
    /// Which of the paths are directories; the others are not.
    pub(crate) directories: HashSet<PathBuf>,
    /// Makes it, all of it or nothing. What it was worked out from must not have changed since.
    pub(crate) make: Box<dyn FnOnce() -> Result<FileAnswer, FilesError> + Send>,
}
