//! A folder of the host beneath the files in memory. It is read only, with the kernel's `RESOLVE_BENEATH`: no link is
//! followed there, and nothing outside of it is reached.
//!
//! A directory is read when it is first visited, a file each time that it is read, until it is changed and so is in
//! memory. Pipes, sockets and devices, names that are not UTF-8, and entries that cannot be read do not exist.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, readlinkat, statat};
use rustix::io::Errno;

use super::fault::TreeError;

/// The deepest nesting that is read.
const DEEPEST: usize = 200;

/// An entry of the folder.
#[derive(Debug, Clone)]
pub(super) struct Beneath {
    folder: Arc<OwnedFd>,
    /// Its path relative to the folder; `.` for the folder itself.
    path: PathBuf,
    /// Whether files with several names do not exist: another name may be hidden, or outside of the folder.
    single: bool,
}

/// An entry that was found.
pub(super) struct HostEntry {
    pub(super) name: String,
    pub(super) what: HostEntryKind,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
}

/// The type of an entry.
pub(super) enum HostEntryKind {
    File(Beneath),
    Directory(Beneath),
    Link(String),
}

impl Beneath {
    /// Opens the folder itself.
    pub(super) fn folder(path: &Path, single: bool) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            folder: Arc::new(folder),
            path: PathBuf::from("."),
            single,
        })
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, TreeError> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat2(&self.folder, &self.path, flags, Mode::empty(), resolve).map_err(fault)
    }

    /// Lists a directory.
    pub(super) fn entries(&self) -> Result<Vec<HostEntry>, TreeError> {
        if self.path.components().count() > DEEPEST {
            return Ok(Vec::new());
        }
        let directory = self.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let beneath = || Self {
                folder: Arc::clone(&self.folder),
                path: self.path.join(name),
                single: self.single,
            };
            let what = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if self.is_another_name(&stat) => continue,
                FileType::RegularFile => HostEntryKind::File(beneath()),
                FileType::Directory => HostEntryKind::Directory(beneath()),
                FileType::Symlink => {
                    match readlinkat(&directory, name, Vec::new()).map(|target| target.into_string()) {
                        Ok(Ok(target)) => HostEntryKind::Link(target),
                        Ok(Err(_)) | Err(_) => continue,
                    }
                }
                // Neither types that could block, nor those that are more than their bytes.
                _ => continue,
            };
            found.push(HostEntry {
                name: name.to_owned(),
                what,
                mode: stat.st_mode & 0o777,
                modified: modified(&stat),
            });
        }
        Ok(found)
    }

    /// Returns whether an entry is left out because it has other names.
    fn is_another_name(&self, stat: &Stat) -> bool {
        self.single && stat.st_nlink > 1
    }

    /// Reads a file of at most `most` bytes.
    pub(super) fn read(&self, most: u64) -> Result<Vec<u8>, TreeError> {
        // A pipe may have replaced the file, and opening it could block forever.
        let file = self.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = fstat(&file).map_err(fault)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || self.is_another_name(&stat) {
            return Err(TreeError::Changed);
        }
        let mut content = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0).min(1 << 20));
        let mut piece = vec![0; 256 * 1024];
        loop {
            let read = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut piece[..])).map_err(fault)?;
            if read == 0 {
                return Ok(content);
            }
            if (content.len() + read) as u64 > most {
                return Err(TreeError::TooLarge(most));
            }
            content.extend_from_slice(&piece[..read]);
        }
    }

    /// Returns the present size, time and identity of a file.
    pub(super) fn stat(&self) -> Result<HostStat, TreeError> {
        let file = self.open(OFlags::PATH)?;
        let stat = fstat(&file).map_err(fault)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || self.is_another_name(&stat) {
            return Err(TreeError::Changed);
        }
        Ok(HostStat {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: modified(&stat),
            changed: (
                u64::try_from(stat.st_ctime).unwrap_or(0),
                stat.st_ctime_nsec,
                stat.st_ino,
            ),
        })
    }
}

/// The metadata of an entry, read without opening it.
pub(super) struct HostStat {
    pub(super) size: u64,
    pub(super) modified: SystemTime,
    pub(super) changed: (u64, u64, u64),
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let nanoseconds = stat.st_mtime_nsec;
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

fn fault(errno: Errno) -> TreeError {
    match errno {
        Errno::NOENT => TreeError::NotFound,
        Errno::NOTDIR => TreeError::NotADirectory,
        // A link has replaced the entry, or leads out.
        Errno::LOOP | Errno::XDEV => TreeError::Changed,
        other => TreeError::Host(other.into()),
    }
}
