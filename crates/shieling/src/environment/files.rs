//! Files as the commands of an environment see them, by handles: what was looked at is what is used.
//!
//! A path is resolved once, to a [`Node`] (something that is there) or a [`WriteTarget`] (a name in a
//! directory that is there). Whoever has to decide whether it may be touched looks at the handle's own
//! path, which has no link in it, and then uses the same handle: a link or a rename in between changes
//! nothing.
//!
//! Everything here may block, and belongs on a thread that may.

pub(in crate::environment) mod host;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// What is known of something without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits, without the kind.
    pub mode: u32,
    /// When its content last changed, on a clock that may jump.
    pub modified: SystemTime,
    /// How many names it has.
    pub names: u64,
    /// What tells this content from an earlier or a later one of the same path, as far as the file
    /// system notices changes.
    pub stamp: Stamp,
}

/// Tells one state of a file from another: its identity, its size and its times. Equal stamps are no
/// proof of equal content, since a clock has ticks; different ones mean that something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp(pub [u64; 6]);

impl Stamp {
    /// Which file it is, whatever is in it, where a file may have several names: the first two numbers,
    /// of the device and of the file in it. All names of a file share it, and no two files that are there
    /// at once.
    #[must_use]
    pub fn identity(&self) -> [u64; 2] {
        [self.0[0], self.0[1]]
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name; bytes that are not UTF-8 are kept.
    pub name: std::ffi::OsString,
    /// What it is; a link is a link.
    pub kind: Kind,
}

/// Whether a link at the end of a path is followed. Those before it always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It is.
    Follow,
    /// It stands for itself.
    Keep,
}

/// Something that is there. Several threads may use it at once: a search opens the files of one directory
/// in parallel.
pub trait Node: Send + Sync {
    /// Where it is, as the environment's commands would say: absolute, with no link in it.
    fn path(&self) -> &Path;

    /// What is known of it now.
    ///
    /// # Errors
    /// [`FileError`].
    fn meta(&self) -> Result<Meta, FileError>;

    /// Opens it for reading. Never waits for anybody: pipes, sockets and devices are refused.
    ///
    /// # Errors
    /// [`FileError::Special`], [`FileError::IsDirectory`] and others.
    fn open(&self) -> Result<Box<dyn Content>, FileError>;

    /// What is in it, in no order, if it is a directory. `.` and `..` are left out.
    ///
    /// # Errors
    /// [`FileError::NotADirectory`] and others.
    fn entries(&self) -> Result<Vec<Entry>, FileError>;

    /// What stands at a name in it. No link is followed; `name` is one component.
    ///
    /// # Errors
    /// [`FileError::NotFound`] and others.
    fn child(&self, name: &std::ffi::OsStr) -> Result<Box<dyn Node>, FileError>;

    /// What is known of what stands at a name in it: [`Self::child`] and [`Self::meta`] in one, for who looks
    /// at a hundred thousand and holds none of them.
    ///
    /// # Errors
    /// As those two.
    fn child_meta(&self, name: &std::ffi::OsStr) -> Result<Meta, FileError> {
        self.child(name)?.meta()
    }

    /// Opens what stands at a name in it, which [`Self::entries`] has called a file: [`Self::child`] and
    /// [`Self::open`] in one, for who opens a hundred thousand. What became something else meanwhile is
    /// refused as there.
    ///
    /// # Errors
    /// As those two.
    fn open_child(&self, name: &std::ffi::OsStr) -> Result<Box<dyn Content>, FileError> {
        self.child(name)?.open()
    }

    /// Where it leads, as it is written, if it is a link.
    ///
    /// # Errors
    /// [`FileError`].
    fn target(&self) -> Result<PathBuf, FileError>;
}

/// The bytes of an open file.
pub trait Content: Send {
    /// Reads at an offset, as much as there is room for but for the end of the file, where it reads
    /// less, and 0 beyond it.
    ///
    /// # Errors
    /// [`FileError`].
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, FileError>;

    /// What is known of it now: of this very file, whatever stands at its path.
    ///
    /// # Errors
    /// [`FileError`].
    fn meta(&self) -> Result<Meta, FileError>;
}

/// A name in a directory that is there, to be filled, replaced or emptied. All of it happens in that
/// directory, and only while it is where it was: once it has been moved, everything here is
/// [`FileError::Changed`], so that content never lands elsewhere than at the path that was looked at. What is
/// removed is looked for there before; a directory that is moved while it is emptied is emptied on.
pub trait WriteTarget: Send {
    /// Where it is: absolute, with no link in it. What is missing of it is made with the file.
    fn path(&self) -> &Path;

    /// What stands there, if anything does. A link that leads nowhere is not followed.
    ///
    /// # Errors
    /// [`FileError`].
    fn current(&self) -> Result<Option<Box<dyn Node>>, FileError>;

    /// Puts this content there, whole or not at all, with the directories that are missing. A file
    /// that was there keeps its permissions and, where this process may, its owner; a new one gets
    /// those that commands of the environment would give it (`0644` but for the umask, and executable
    /// if `executable`).
    ///
    /// # Errors
    /// [`FileError::Changed`] if what stands there is not what `expect` says: nothing, or this state.
    /// Nothing has changed then.
    fn replace(&self, content: &[u8], executable: bool, expect: Expect) -> Result<(), FileError>;

    /// Puts content there as [`Self::replace`] does, with the permissions and the time of its last change
    /// that a file had: so a change is undone. By default it only is executable again, if it was.
    ///
    /// # Errors
    /// As [`Self::replace`].
    fn restore(&self, content: &[u8], was: &Meta, expect: Expect) -> Result<(), FileError> {
        self.replace(content, was.mode & 0o111 != 0, expect)
    }

    /// Gives the file that stands there these permissions, of which those beyond `0777` are never given.
    ///
    /// # Errors
    /// [`FileError::Unsupported`] where files have none, and others.
    fn set_mode(&self, mode: u32) -> Result<(), FileError> {
        let _ = mode;
        Err(FileError::Unsupported("permissions of files cannot be changed here"))
    }

    /// Removes what stands there: a file, a link, or a directory, with all that is in it if
    /// `recursive`.
    ///
    /// # Errors
    /// [`FileError::NotEmpty`] for a directory that is not, [`FileError::Fixed`] for one that hides
    /// something, of which then nothing is removed, and others.
    fn remove(&self, recursive: bool) -> Result<(), FileError>;

    /// Moves what stands here to another write target of the same files, which must be empty unless
    /// `replace` (and then no directory).
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::Fixed`] for a directory that hides something, and others.
    fn rename(&self, to: &dyn WriteTarget, replace: bool) -> Result<(), FileError>;

    /// For [`Self::rename`]: what the files behind it know it by.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The state that a write target must be in for a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Any,
    /// Nothing.
    Nothing,
    /// A file in this state.
    Stamp(Stamp),
}

/// The files of one environment. A path is absolute, as its commands would say it.
pub trait Files: Send + Sync {
    /// What stands at a path. Has no effect on it, whatever it is.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::Outside`], and others.
    fn node(&self, path: &Path, links: Links) -> Result<Box<dyn Node>, FileError>;

    /// Returns the target of a write to a path. Links are followed, including a last one that leads to a file; with
    /// [`Links::Keep`], the last link itself is the target. Directories may be missing.
    ///
    /// # Errors
    /// [`FileError::Outside`], [`FileError::NotADirectory`] if a file stands in the way, and others.
    fn write_target(&self, path: &Path, links: Links) -> Result<Box<dyn WriteTarget>, FileError>;
}

/// Why nothing could be done with a file. Paths are those that were asked for, or that a link has led
/// to within the environment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It is not there, or is hidden.
    #[error("there is no `{}`", .0.display())]
    NotFound(PathBuf),
    /// It leads out of what may be reached.
    #[error("`{}` is outside {within}", path.display())]
    Outside {
        /// It.
        path: PathBuf,
        /// Of what.
        within: &'static str,
    },
    /// A directory is where a file was meant.
    #[error("`{}` is a directory, not a file", .0.display())]
    IsDirectory(PathBuf),
    /// Something else is where a directory was meant.
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// It is a pipe, a socket or a device.
    #[error("`{}` is {}, not a file", path.display(), match kind { Kind::Fifo => "a named pipe", Kind::Socket => "a socket", _ => "a device" })]
    Special {
        /// It.
        path: PathBuf,
        /// What it is.
        kind: Kind,
    },
    /// Something is there already.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    /// A directory is not empty.
    #[error("the directory `{}` is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// Links lead in a circle, or too many after each other.
    #[error("the links at `{}` lead in a circle", .0.display())]
    LinkLoop(PathBuf),
    /// It stays where it is: all stands in it, or something does that nobody here may see.
    #[error("`{}` cannot be moved or removed here: it, or something in it, is fixed in its place", .0.display())]
    Fixed(PathBuf),
    /// It may not be changed here.
    #[error("`{}` is read-only here", .0.display())]
    ReadOnly(PathBuf),
    /// The system does not permit it.
    #[error("permission denied: `{}`", .0.display())]
    Permission(PathBuf),
    /// What stands there is not what was expected.
    #[error("`{}` has changed in the meantime", .0.display())]
    Changed(PathBuf),
    /// A name that no file can have.
    #[error("`{}` cannot be a path: {why}", path.display())]
    BadPath {
        /// It.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// There is no room.
    #[error("there is no room for `{}`: {why}", path.display())]
    Full {
        /// It.
        path: PathBuf,
        /// Which limit.
        why: String,
    },
    /// Something that this environment does not do.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Anything else that the system says.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FileError {
    /// Which it is, for programs. A name once given stays.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::Outside { .. } => "outside",
            Self::IsDirectory(_) => "is_directory",
            Self::NotADirectory(_) => "not_a_directory",
            Self::Special { .. } => "special",
            Self::Exists(_) => "exists",
            Self::NotEmpty(_) => "not_empty",
            Self::LinkLoop(_) => "link_loop",
            Self::Fixed(_) => "fixed",
            Self::ReadOnly(_) => "read_only",
            Self::Permission(_) => "permission",
            Self::Changed(_) => "changed",
            Self::BadPath { .. } => "bad_path",
            Self::Full { .. } => "full",
            Self::Unsupported(_) => "unsupported",
            Self::Io { .. } => "io",
        }
    }
}
