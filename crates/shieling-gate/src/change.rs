//! What is judged: one path before and after, and the trees around it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A change of one path.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// Where it is, relative to the root of the trees, without links, `.` and `..`.
    pub path: &'a Path,
    /// Where it was before, if it was renamed. Its content there counts as the content before, as long as it had the
    /// same meaning there (a hook of a repository that was moved as a whole is no new hook).
    pub from: Option<&'a Path>,
    /// What was at `path`, or at `from` if that is given. `None`: nothing.
    pub before: Option<Entry>,
    /// What is there now. `None`: nothing.
    pub after: Option<Entry>,
}

/// What stands at a path, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What kind of thing it is.
    pub kind: Kind,
    /// Permission bits, with set-user-ID, set-group-ID and sticky: the lowest 12 bits of `st_mode`.
    pub mode: u32,
    /// How many names it has in its file system (`st_nlink`). In a staged tree, where a copy has one name, 1.
    pub links: u64,
    /// Bytes of a file; of no meaning for other kinds.
    pub size: u64,
}

impl Entry {
    /// A file with one name.
    pub fn file(mode: u32, size: u64) -> Self {
        Self {
            kind: Kind::File,
            mode,
            links: 1,
            size,
        }
    }

    /// A directory.
    pub fn directory(mode: u32) -> Self {
        Self {
            kind: Kind::Directory,
            mode,
            links: 1,
            size: 0,
        }
    }

    /// A symbolic link.
    pub fn link(target: impl Into<PathBuf>) -> Self {
        Self {
            kind: Kind::Link(target.into()),
            mode: 0o777,
            links: 1,
            size: 0,
        }
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, with its target as it stands in it.
    Link(PathBuf),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// A directory tree, as the gate reads it. Paths are relative to its root, which is the empty path, and no link is
/// followed, neither in the last name nor on the way: below a link there is nothing.
pub trait Tree {
    /// What stands at a path; `None` if nothing does.
    ///
    /// # Errors
    /// If that cannot be found out. What depends on it is held back.
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>>;

    /// The content of a file, at most its first `limit` bytes.
    ///
    /// # Errors
    /// If there is no file, or it cannot be read. What depends on it is held back.
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;

    /// The names in a directory, in any order.
    ///
    /// # Errors
    /// If there is no directory, or it cannot be read. What depends on it is held back.
    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>>;
}
