//! A look at something by its descriptor, or by a name in a directory. Has no effect on it.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use rustix::io::Errno;

use super::super::{Kind, Meta, Stamp};

/// What a look tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stat(Statx);

/// The numbers of a device and of a file in it.
pub(super) type Identity = (u64, u64);

fn asked() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID
}

impl Stat {
    /// At what a descriptor holds.
    pub(super) fn at(file: &OwnedFd) -> Result<Self, Errno> {
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, asked()).map(Self)
    }

    /// At a name in a directory; a link stands for itself.
    pub(super) fn in_directory(directory: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        rustix::fs::statx(directory, Path::new(name), AtFlags::SYMLINK_NOFOLLOW, asked()).map(Self)
    }

    pub(super) fn kind(&self) -> Kind {
        kind_of(FileType::from_raw_mode(self.0.stx_mode.into()))
    }

    pub(super) fn device(&self) -> u64 {
        rustix::fs::makedev(self.0.stx_dev_major, self.0.stx_dev_minor)
    }

    pub(super) fn identity(&self) -> Identity {
        (self.device(), self.0.stx_ino)
    }

    pub(super) fn owner(&self) -> (u32, u32) {
        (self.0.stx_uid, self.0.stx_gid)
    }

    /// The permission bits, without the kind.
    pub(super) fn mode(&self) -> u32 {
        u32::from(self.0.stx_mode) & 0o7777
    }

    /// Whether something is mounted here. Who is not in the mount namespace in which it is, as this
    /// process is in none of a sandbox, would remove the name from under it, and the mount with it:
    /// the kernel keeps mount points only for those who share them.
    pub(super) fn is_mounted(&self) -> bool {
        self.0.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    }

    /// What tells this state from another.
    pub(super) fn stamp(&self) -> Stamp {
        let [device, file, size, modified, born] = self.content();
        Stamp([device, file, size, modified, nanoseconds(self.0.stx_ctime), born])
    }

    /// As [`Self::stamp`], without the time that a renaming changes too.
    pub(super) fn content(&self) -> [u64; 5] {
        [
            self.device(),
            self.0.stx_ino,
            self.0.stx_size,
            nanoseconds(self.0.stx_mtime),
            // The number of a file that is gone is given to another one.
            nanoseconds(self.0.stx_btime),
        ]
    }

    pub(super) fn meta(&self) -> Meta {
        Meta {
            kind: self.kind(),
            size: self.0.stx_size,
            mode: self.mode(),
            modified: time(self.0.stx_mtime),
            names: self.0.stx_nlink.into(),
            stamp: self.stamp(),
        }
    }
}

/// What stands at a name in a directory, held without effect and with no link followed; nothing if
/// nothing is there.
pub(super) fn hold(directory: &OwnedFd, name: &OsStr) -> Result<Option<(OwnedFd, Stat)>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = match rustix::fs::openat(directory, Path::new(name), flags, Mode::empty()) {
        Ok(held) => held,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let stat = Stat::at(&held)?;
    Ok(Some((held, stat)))
}

/// A kind from the kernel's. What it does not tell is taken for a device, and so not touched.
pub(super) fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
    }
}

fn nanoseconds(time: StatxTimestamp) -> u64 {
    // Good until the year 2554, and different for different times before 1970.
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.into())
}

fn time(time: StatxTimestamp) -> SystemTime {
    let part = Duration::from_nanos(time.tv_nsec.into());
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    let whole = if time.tv_sec < 0 {
        UNIX_EPOCH.checked_sub(seconds)
    } else {
        UNIX_EPOCH.checked_add(seconds)
    };
    whole.and_then(|whole| whole.checked_add(part)).unwrap_or(UNIX_EPOCH)
}
