//! A folder of the host that lies beneath the files in memory. It is only read, through the kernel's
//! `RESOLVE_BENEATH`: no link of it is followed there, and nothing outside of it is reached.
//!
//! A directory is read when somebody first looks into it, a file each time that it is read, until it is
//! changed: then it is in memory. What is neither a file, a directory nor a link (pipes, sockets,
//! devices), what has a name that is not UTF-8, and what cannot be read does not exist.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, readlinkat, statat};
use rustix::io::Errno;

use super::fault::Fault;

/// How deep the folder is read.
const DEEPEST: usize = 200;

/// Something in the folder.
#[derive(Debug, Clone)]
pub(super) struct Beneath {
    folder: Arc<OwnedFd>,
    /// Relative to it; `.` is itself.
    path: PathBuf,
    /// Whether a file of it that has more names than one does not exist: another one of them may be
    /// hidden, or be outside of the folder.
    single: bool,
}

/// What was found at a name.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) what: What,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
}

/// What it is.
pub(super) enum What {
    File(Beneath),
    Directory(Beneath),
    Link(String),
}

impl Beneath {
    /// The folder itself.
    pub(super) fn folder(path: &Path, single: bool) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            folder: Arc::new(folder),
            path: PathBuf::from("."),
            single,
        })
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Fault> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat2(&self.folder, &self.path, flags, Mode::empty(), resolve).map_err(fault)
    }

    /// What is in it, as a directory.
    pub(super) fn entries(&self) -> Result<Vec<Found>, Fault> {
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
                FileType::RegularFile => What::File(beneath()),
                FileType::Directory => What::Directory(beneath()),
                FileType::Symlink => {
                    match readlinkat(&directory, name, Vec::new()).map(|target| target.into_string()) {
                        Ok(Ok(target)) => What::Link(target),
                        Ok(Err(_)) | Err(_) => continue,
                    }
                }
                // Nothing that could be waited for, or that is more than its bytes.
                _ => continue,
            };
            found.push(Found {
                name: name.to_owned(),
                what,
                mode: stat.st_mode & 0o777,
                modified: modified(&stat),
            });
        }
        Ok(found)
    }

    /// Whether what was found is left out for its other names.
    fn is_another_name(&self, stat: &Stat) -> bool {
        self.single && stat.st_nlink > 1
    }

    /// Its bytes, as a file, if they are `most` at most.
    pub(super) fn read(&self, most: u64) -> Result<Vec<u8>, Fault> {
        // A pipe may have taken its place, which nobody would ever open from the other side.
        let file = self.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = fstat(&file).map_err(fault)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || self.is_another_name(&stat) {
            return Err(Fault::Changed);
        }
        let mut content = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0).min(1 << 20));
        let mut piece = vec![0; 256 * 1024];
        loop {
            let read = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut piece[..])).map_err(fault)?;
            if read == 0 {
                return Ok(content);
            }
            if (content.len() + read) as u64 > most {
                return Err(Fault::TooLarge(most));
            }
            content.extend_from_slice(&piece[..read]);
        }
    }

    /// Its size, time and identity now, as a file.
    pub(super) fn look(&self) -> Result<Look, Fault> {
        let file = self.open(OFlags::PATH)?;
        let stat = fstat(&file).map_err(fault)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || self.is_another_name(&stat) {
            return Err(Fault::Changed);
        }
        Ok(Look {
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

/// What is known of a file of the folder without opening it.
pub(super) struct Look {
    pub(super) size: u64,
    pub(super) modified: SystemTime,
    pub(super) changed: (u64, u64, u64),
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let nanoseconds = stat.st_mtime_nsec;
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

fn fault(errno: Errno) -> Fault {
    match errno {
        Errno::NOENT => Fault::NotFound,
        Errno::NOTDIR => Fault::NotADirectory,
        // A link has taken its place, or leads out.
        Errno::LOOP | Errno::XDEV => Fault::Changed,
        other => Fault::Host(other.into()),
    }
}
