//! Writes and removes what stands at a name of a directory that is held.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::closed::set_mode;

/// What stood at a path, as far as it can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file with this content and these permission bits.
    File(Vec<u8>, u32),
    /// A link to this target.
    Link(PathBuf),
}

/// How deep a directory may be that is removed.
pub(crate) const LEVELS: usize = 64;

/// Puts this in the place of whatever stands there, in one step where it can be, so that a tool finds the one or the
/// other.
pub(crate) fn replace(
    above: BorrowedFd<'_>,
    name: &OsStr,
    content: &Content,
    owner: Option<(u32, u32)>,
) -> Result<(), Errno> {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), name);
    let beside = format!(".shieling-{random:016x}");
    match content {
        Content::File(content, mode) => write_new(above, &beside, content, *mode, owner)?,
        Content::Link(target) => rustix::fs::symlinkat(target, above, &*beside)?,
    }
    let put = || rustix::fs::renameat(above, &*beside, above, name);
    let done = match put() {
        Ok(()) => return Ok(()),
        // A directory stands there.
        Err(_) => remove(above, name, LEVELS).and_then(|()| put()),
    };
    if done.is_err() {
        let _ = rustix::fs::unlinkat(above, &*beside, AtFlags::empty());
    }
    done
}

/// Makes a file under a name that is free.
fn write_new(
    directory: impl AsFd,
    name: &str,
    content: &[u8],
    mode: u32,
    owner: Option<(u32, u32)>,
) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut rest = content;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = rest.get(written..).unwrap_or_default();
    }
    if let Some((user, group)) = owner.filter(|_| rustix::process::geteuid().is_root()) {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::fchown(&file, Some(user), Some(group))?;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))
}

/// Removes whatever stands at a name, directories with all in them.
pub(crate) fn remove(directory: impl AsFd, name: &OsStr, levels: usize) -> Result<(), Errno> {
    match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) if levels > 0 => {}
        Err(errno) => return Err(errno),
    }
    let inside = open_to_remove(directory.as_fd(), name)?;
    let names: Vec<_> = rustix::fs::Dir::read_from(&inside)?
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| name.to_bytes() != b"." && name.to_bytes() != b"..")
        .collect();
    for name in names {
        remove(&inside, OsStr::from_bytes(name.to_bytes()), levels - 1)?;
    }
    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
}

/// Opens a directory from which all is removed, also if a command has closed it.
fn open_to_remove(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::openat(directory, name, OFlags::PATH | flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&held)?;
    if stat.st_mode & 0o700 != 0o700 && stat.st_uid == rustix::process::geteuid().as_raw() {
        set_mode(held.as_fd(), stat.st_mode & 0o7777 | 0o700)?;
    }
    rustix::fs::openat(&held, c".", OFlags::RDONLY | flags, Mode::empty())
}
