//! A file of a patch, before and after.

use std::path::PathBuf;

use crate::environment::WriteTarget;
use crate::files::resolve::LoadedFile;

/// A file that a patch names, before and after.
pub(super) struct Staged {
    pub(super) write_target: Box<dyn WriteTarget>,
    pub(super) was: Option<LoadedFile>,
    pub(super) now: Option<NewState>,
}

/// The new state of a file.
pub(super) struct NewState {
    pub(super) content: Vec<u8>,
    /// The new executable bit, if it changes.
    pub(super) executable: Option<bool>,
    /// The number of the staged file that it is moved from; its own number if it is not moved; `None` if it is new.
    pub(super) origin: Option<usize>,
}

impl Staged {
    pub(super) fn path(&self) -> PathBuf {
        self.write_target.path().to_path_buf()
    }

    /// Returns whether the file does not change.
    pub(super) fn is_kept(&self, number: usize, now: &NewState) -> bool {
        let same = self.was.as_ref().is_some_and(|was| was.content == now.content);
        same && now.origin == Some(number) && !self.changes_mode(now)
    }

    /// Returns whether the executable bit changes.
    pub(super) fn changes_mode(&self, now: &NewState) -> bool {
        let was = self.was.as_ref().is_some_and(|was| was.meta.mode & 0o111 != 0);
        now.executable.is_some_and(|executable| executable != was)
    }
}
