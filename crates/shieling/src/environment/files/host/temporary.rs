//! A file that has no meaning yet, in the directory in which it is to get its name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// What its name begins with; 16 hexadecimal digits follow.
const PREFIX: &str = ".shieling-";

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
        let mut number = [0_u8; 8];
        if getrandom(&mut number[..], GetRandomFlags::empty())? != number.len() {
            return Err(Errno::IO);
        }
        // One of 2^64: that it is taken already does not happen by chance.
        let name = OsString::from(format!("{PREFIX}{:016x}", u64::from_ne_bytes(number)));
        let file = rustix::fs::openat(directory, Path::new(&name), flags, Mode::from_raw_mode(mode))?;
        Ok(Self { directory, name, file })
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

    /// Changes names with what stands at a name.
    pub(super) fn exchange(&self, name: &OsStr) -> Result<(), Errno> {
        let (ours, other) = (Path::new(&self.name), Path::new(name));
        rustix::fs::renameat_with(self.directory, ours, self.directory, other, RenameFlags::EXCHANGE)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After a renaming nothing stands there, or what was replaced does. The name is nobody else's.
        let _ = rustix::fs::unlinkat(self.directory, Path::new(&self.name), AtFlags::empty());
    }
}
