//! A file that has no meaning yet, in the directory in which it is to get its name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// What its name begins with; 16 hexadecimal digits follow.
const PREFIX: &str = ".shieling-";

/// In a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// A file with a name of its own, which is removed with it unless it got another one.
#[derive(Debug)]
pub(super) struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    file: OwnedFd,
}

impl<'a> Temporary<'a> {
    /// A new, empty file, with this mode but for what this process leaves out of every file.
    pub(super) fn create(directory: &'a OwnedFd, mode: u32) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = new_name()?;
        let file = rustix::fs::openat(directory, Path::new(&name), flags, Mode::from_raw_mode(mode))?;
        Ok(Self { directory, name, file })
    }

    /// A second name for a file that is held and has this one.
    pub(super) fn named_too(directory: &'a OwnedFd, name: &OsStr, file: &OwnedFd) -> Result<Self, Errno> {
        let file = rustix::io::fcntl_dupfd_cloexec(file, 0)?;
        let second = new_name()?;
        rustix::fs::linkat(
            directory,
            Path::new(name),
            directory,
            Path::new(&second),
            AtFlags::empty(),
        )?;
        Ok(Self {
            directory,
            name: second,
            file,
        })
    }

    /// Whether this could be the name of one.
    pub(super) fn is_name(name: &OsStr) -> bool {
        let digits = name.as_encoded_bytes().strip_prefix(PREFIX.as_bytes());
        digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
    }

    /// Writes all of it.
    pub(super) fn write(&self, mut content: &[u8]) -> Result<(), Errno> {
        while !content.is_empty() {
            let count = rustix::io::retry_on_intr(|| rustix::io::write(self.file.as_fd(), content))?;
            content = content.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Says when its content was last changed.
    pub(super) fn set_modified(&self, time: SystemTime) -> Result<(), Errno> {
        let (sign, distance) = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (1, after),
            Err(before) => (-1, before.duration()),
        };
        let whole = i128::from(sign) * i128::try_from(distance.as_nanos()).map_err(|_| Errno::OVERFLOW)?;
        let second = i128::from(NANOSECONDS);
        let modified = Timespec {
            tv_sec: whole.div_euclid(second).try_into().map_err(|_| Errno::OVERFLOW)?,
            tv_nsec: whole.rem_euclid(second).try_into().map_err(|_| Errno::OVERFLOW)?,
        };
        let last_access = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        };
        let times = Timestamps {
            last_access,
            last_modification: modified,
        };
        rustix::fs::futimens(&self.file, &times)
    }

    /// The file.
    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Its name for now.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Gives it a name, which it has alone from now on. What had that name before is replaced if
    /// `replace`.
    pub(super) fn become_named(&self, name: &OsStr, replace: bool) -> Result<(), Errno> {
        let (old, new) = (Path::new(&self.name), Path::new(name));
        if replace {
            return rustix::fs::renameat(self.directory, old, self.directory, new);
        }
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(self.directory, old, self.directory, new, flags) {
            // Not every file system knows this; each that has hard links knows the other way, which
            // leaves a second name to be removed.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::linkat(self.directory, old, self.directory, new, AtFlags::empty())
            }
            done => done,
        }
    }

    /// Takes what stands at a name to the name that it had itself, which nothing has by then.
    pub(super) fn take_back(&self, name: &OsStr) -> Result<(), Errno> {
        let (ours, other) = (Path::new(&self.name), Path::new(name));
        rustix::fs::renameat_with(self.directory, other, self.directory, ours, RenameFlags::NOREPLACE)
    }

    /// Changes names with what stands at a name.
    pub(super) fn exchange(&self, name: &OsStr) -> Result<(), Errno> {
        let (ours, other) = (Path::new(&self.name), Path::new(name));
        rustix::fs::renameat_with(self.directory, ours, self.directory, other, RenameFlags::EXCHANGE)
    }
}

fn new_name() -> Result<OsString, Errno> {
    let mut number = [0_u8; 8];
    if getrandom(&mut number[..], GetRandomFlags::empty())? != number.len() {
        return Err(Errno::IO);
    }
    // One of 2^64: that it is taken already does not happen by chance.
    Ok(OsString::from(format!("{PREFIX}{:016x}", u64::from_ne_bytes(number))))
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After a renaming nothing stands there, or what was replaced does. The name is nobody else's.
        let _ = rustix::fs::unlinkat(self.directory, Path::new(&self.name), AtFlags::empty());
    }
}
