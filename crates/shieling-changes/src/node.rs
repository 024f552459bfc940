//! What the kernel says of one name in a directory.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Kind {
    /// Returns a word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "link",
            Self::Fifo => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

/// A time of a file system, in nanoseconds since 1970.
pub(crate) type Time = i128;

/// A file, directory, link or other node, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The kind.
    pub kind: Kind,
    /// The lowest 12 bits of `st_mode`.
    pub mode: u32,
    /// Bytes.
    pub size: u64,
    /// How many names it has.
    pub links: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub modified: i128,
    pub(crate) changed: Time,
    pub(crate) born: Option<Time>,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    pub(crate) user: u32,
    pub(crate) accessed: Time,
    pub(crate) is_zero_device: bool,
    /// The bytes of blocks that it holds. They are not stored: a file system may say so later, and otherwise.
    #[serde(skip)]
    pub(crate) held: u64,
}

impl Node {
    /// Looks at a name in a directory, without following a link. `None` if nothing has the name.
    pub(crate) fn at(directory: impl AsFd, name: &Path) -> Result<Option<Self>, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        match rustix::fs::statx(directory, name, flags, wanted()) {
            Ok(found) => Ok(Some(Self::from(&found))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Looks at something that is open.
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted()).map(|found| Self::from(&found))
    }

    /// Returns the mount that something open is in, where the kernel says so.
    pub(crate) fn mount_of(file: impl AsFd) -> Result<(u64, (u32, u32)), Errno> {
        let found = rustix::fs::statx(
            file,
            c"",
            AtFlags::EMPTY_PATH,
            StatxFlags::BASIC_STATS | StatxFlags::MNT_ID,
        )?;
        Ok((found.stx_mnt_id, (found.stx_dev_major, found.stx_dev_minor)))
    }

    /// Whether both are the same inode of one file system.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            device: self.device,
            inode: self.inode,
        }
    }

    /// Whether this is the same inode in the same state. `changed` is left out: a rename changes it.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        self.is_same(other)
            && self.kind == other.kind
            && self.mode == other.mode
            && (self.is_directory() || self.size == other.size && self.modified == other.modified)
    }

    /// Whether nobody has changed it, as far as its file system says; in a directory others may have.
    pub(crate) fn is_untouched(&self, now: &Self) -> bool {
        self.is_unchanged(now) && (self.is_directory() || self.changed == now.changed)
    }

    /// The bytes that it holds of a limit, of a file with several names a share for each. Holes hold none.
    pub(crate) fn share(&self) -> u64 {
        self.held / self.links.max(1)
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// The numbers by which a file system knows an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    device: (u32, u32),
    inode: u64,
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME
}

impl From<&Statx> for Node {
    fn from(found: &Statx) -> Self {
        let time =
            |stamp: &rustix::fs::StatxTimestamp| i128::from(stamp.tv_sec) * 1_000_000_000 + i128::from(stamp.tv_nsec);
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
        };
        Self {
            kind,
            mode: u32::from(found.stx_mode) & 0o7777,
            size: found.stx_size,
            links: found.stx_nlink.into(),
            modified: time(&found.stx_mtime),
            changed: time(&found.stx_ctime),
            born: (found.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| time(&found.stx_btime)),
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            user: found.stx_uid,
            accessed: time(&found.stx_atime),
            held: found.stx_blocks.saturating_mul(512),
            is_zero_device: kind == Kind::Device && found.stx_rdev_major == 0 && found.stx_rdev_minor == 0,
        }
    }
}
