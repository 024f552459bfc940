//! Directories that were found elsewhere than they were.

use std::path::{Path, PathBuf};

/// Directories that were moved since the last look: where each is, and where it was.
#[derive(Debug, Default)]
pub(crate) struct Moved(pub(crate) Vec<(PathBuf, PathBuf)>);

impl Moved {
    /// Where a path was before, if a directory above it was moved, and where the topmost of those is now.
    pub(crate) fn origin(&self, path: &Path) -> Option<(&Path, PathBuf)> {
        let above = self.0.iter().filter(|(to, _)| path.starts_with(to) && path != to);
        let (mut to, mut from) = above
            .max_by_key(|(to, _)| to.as_os_str().len())
            .map(|(to, from)| (to, from))?;
        let origin = from.join(path.strip_prefix(to).ok()?);
        // What is in a directory that was moved was moved with it.
        while to.file_name() == from.file_name()
            && let Some(above) = self
                .0
                .iter()
                .find(|(one, other)| Some(&**one) == to.parent() && Some(&**other) == from.parent())
        {
            (to, from) = (&above.0, &above.1);
        }
        Some((to, origin))
    }
}
