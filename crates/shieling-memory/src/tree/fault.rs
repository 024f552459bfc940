//! Errors of the tree, independent of the interface: bash receives the messages of the system, other callers a
//! [`FileError`].

use std::io;
use std::path::Path;

use shieling::environment::FileError;
use shieling::units::ByteCount;

/// An error of the tree.
#[derive(Debug)]
pub(crate) enum TreeError {
    NotFound,
    NotADirectory,
    IsDirectory,
    Exists,
    NotEmpty,
    /// Too many links.
    Loop,
    /// The tree is read-only.
    ReadOnly,
    /// The path is hidden.
    Hidden,
    /// The workspace or something hidden is inside.
    Busy,
    /// A name, a path or a nesting exceeds the bounds.
    TooLong(&'static str),
    /// The name is invalid.
    BadName(&'static str),
    /// There is no room for more bytes, or more files.
    NoRoom(Room),
    /// The file would exceed the size that the command may write.
    TooLarge(u64),
    /// It is not in the expected state.
    Changed,
    /// The host reported an error about a file of its folder.
    Host(io::Error),
}

/// The bound that is exhausted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Room {
    Bytes(u64),
    Files(u64),
}

impl TreeError {
    /// Converts to the error of the system.
    pub(crate) fn to_io(&self) -> io::Error {
        use io::ErrorKind;
        let (kind, message) = match self {
            Self::NotFound => (ErrorKind::NotFound, "No such file or directory"),
            Self::NotADirectory => (ErrorKind::NotADirectory, "Not a directory"),
            Self::IsDirectory => (ErrorKind::IsADirectory, "Is a directory"),
            Self::Exists => (ErrorKind::AlreadyExists, "File exists"),
            Self::NotEmpty => (ErrorKind::DirectoryNotEmpty, "Directory not empty"),
            Self::Loop => (ErrorKind::Other, "Too many levels of symbolic links"),
            Self::ReadOnly => (ErrorKind::ReadOnlyFilesystem, "Read-only file system"),
            Self::Hidden => (ErrorKind::PermissionDenied, "Permission denied"),
            Self::Busy => (ErrorKind::ResourceBusy, "Device or resource busy"),
            Self::TooLong(_) => (ErrorKind::InvalidFilename, "File name too long"),
            Self::BadName(_) => (ErrorKind::InvalidInput, "Invalid argument"),
            Self::NoRoom(_) => (ErrorKind::StorageFull, "No space left on device"),
            Self::TooLarge(_) => (ErrorKind::FileTooLarge, "File too large"),
            Self::Changed => (ErrorKind::Other, "Stale file handle"),
            Self::Host(error) => (error.kind(), "Input/output error"),
        };
        io::Error::new(kind, message)
    }

    /// Converts to the error of the file tools about `path`.
    pub(crate) fn at(self, doing: &'static str, path: &Path) -> FileError {
        let path = path.to_path_buf();
        match self {
            Self::NotFound => FileError::NotFound(path),
            Self::NotADirectory => FileError::NotADirectory(path),
            Self::IsDirectory => FileError::IsDirectory(path),
            Self::Exists => FileError::Exists(path),
            Self::NotEmpty => FileError::NotEmpty(path),
            Self::Loop => FileError::LinkLoop(path),
            Self::ReadOnly => FileError::ReadOnly(path),
            Self::Hidden => FileError::Permission(path),
            Self::Busy => FileError::Fixed(path),
            Self::TooLong(why) | Self::BadName(why) => FileError::BadPath { path, why },
            Self::NoRoom(Room::Bytes(limit)) => FileError::Full {
                path,
                why: format!("the files of this memory hold {} at most", ByteCount::bytes(limit)),
            },
            Self::NoRoom(Room::Files(limit)) => FileError::Full {
                path,
                why: format!("there are {limit} files and directories at most in this memory"),
            },
            Self::TooLarge(limit) => FileError::Full {
                path,
                why: format!("a file is {} at most", ByteCount::bytes(limit)),
            },
            Self::Changed => FileError::Changed(path),
            Self::Host(source) => FileError::Io { doing, path, source },
        }
    }
}
