//! Moves what stands at a name to another, in one step.

use std::path::Path;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::super::{FileError, Kind};
use super::error::refused;
use super::spot::HostSpot;

impl HostSpot {
    /// Moves what stands here to another name.
    pub(super) fn move_to(&self, to: &Self, replace: bool) -> Result<(), FileError> {
        let not_found = || FileError::NotFound(self.path.clone());
        let from = self.reach()?.ok_or_else(not_found)?;
        let (_, look) = self.held(&from)?.ok_or_else(not_found)?;
        self.check_free(&look)?;
        if look.kind() == Kind::Directory {
            self.check_open(&from)?;
        }
        let made = to.make_directories()?;
        if let Some((_, there)) = to.held(&made.directory)? {
            to.check_free(&there)?;
            if !replace {
                return Err(FileError::Exists(to.path.clone()));
            }
            if there.kind() == Kind::Directory {
                return Err(FileError::IsDirectory(to.path.clone()));
            }
        }
        let (old, new) = (Path::new(&self.name), Path::new(&to.name));
        let moved = if replace {
            rustix::fs::renameat(&from, old, &made.directory, new)
        } else {
            rustix::fs::renameat_with(&from, old, &made.directory, new, RenameFlags::NOREPLACE)
        };
        moved.map_err(|errno| match errno {
            Errno::EXIST => FileError::Exists(to.path.clone()),
            Errno::ISDIR => FileError::IsDirectory(to.path.clone()),
            // A directory into itself. What the file system does not know is told in the same way, but
            // for the paths.
            Errno::INVAL if to.path.starts_with(&self.path) => FileError::BadPath {
                path: to.path.clone(),
                why: "a directory cannot be moved into itself",
            },
            errno => refused(errno, "move", &self.path),
        })?;
        made.keep();
        Ok(())
    }
}
