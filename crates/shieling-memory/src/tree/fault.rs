//! Why something could not be done with a file in memory, before it is known who is told: a bash gets
//! the words of the system, everybody else a [`FileError`].

use std::io;
use std::path::Path;

use shieling::environment::FileError;
use shieling::units::ByteCount;

/// Why something could not be done.
#[derive(Debug)]
pub(crate) enum Fault {
    NotFound,
    NotADirectory,
    IsDirectory,
    Exists,
    NotEmpty,
    /// Links lead in a circle.
    Loop,
    /// Nothing may be changed.
    ReadOnly,
    /// It would be something hidden.
    Hidden,
    /// The workspace stands in it, or something hidden does.
    Busy,
    /// A name, a path or a depth beyond what there can be.
    TooLong(&'static str),
    /// A name that no file can have here.
    BadName(&'static str),
    /// No room for more bytes, or more files.
    NoRoom(Room),
    /// One file would be larger than the command may make it.
    TooLarge(u64),
    /// It is not what it was expected to be.
    Changed,
    /// What the host says of a file of the folder that lies beneath.
    Host(io::Error),
}

/// Which room is used up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Room {
    Bytes(u64),
    Files(u64),
}

impl Fault {
    /// As the system would tell a program.
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

    /// As a caller of the file tools is told, who asked for `path`.
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
