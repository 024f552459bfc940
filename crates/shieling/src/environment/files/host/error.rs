//! What the kernel's numbers mean for files.

use std::path::Path;

use rustix::io::Errno;

use super::super::FileError;

/// What is said of a path when the system says no.
pub(super) fn refused(errno: Errno, doing: &'static str, path: &Path) -> FileError {
    let path = path.to_path_buf();
    match errno {
        Errno::NOENT => FileError::NotFound(path),
        Errno::NOTDIR => FileError::NotADirectory(path),
        Errno::ISDIR => FileError::IsDirectory(path),
        Errno::LOOP => FileError::LinkLoop(path),
        Errno::EXIST => FileError::Exists(path),
        Errno::NOTEMPTY => FileError::NotEmpty(path),
        // Something is mounted on it, which is how names are kept.
        Errno::ROFS | Errno::BUSY => FileError::ReadOnly(path),
        Errno::ACCESS | Errno::PERM => FileError::Permission(path),
        Errno::NAMETOOLONG => FileError::BadPath {
            path,
            why: "a name in it, or all of it, is longer than the system allows",
        },
        Errno::NOSPC => full(path, "the file system has no space left"),
        Errno::DQUOT => full(path, "the user's quota is used up"),
        Errno::FBIG => full(path, "the file would be larger than is allowed"),
        Errno::XDEV => FileError::Unsupported("moving between file systems is not done here; copy it and delete it"),
        errno => FileError::Io {
            doing,
            path,
            source: errno.into(),
        },
    }
}

fn full(path: std::path::PathBuf, why: &str) -> FileError {
    FileError::Full {
        path,
        why: why.to_owned(),
    }
}
