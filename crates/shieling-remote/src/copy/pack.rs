//! Reads a tree and writes the records that make it anew.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Statx, StatxFlags};
use rustix::io::Errno;

use super::record::{PIECE, Record, Time, cut};
use super::{CopyError, CopyErrorKind, ELSEWHERE, MAX_DEPTH, Mount};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
// Without waiting, since a pipe may stand there by then.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Chooses what is copied.
pub(crate) trait Selection {
    /// Whether an entry is copied, by its path and by what the system says of it before it is read. What is below a
    /// directory is asked about whatever is said of the directory.
    fn takes(&mut self, path: &Path, found: &Statx) -> bool;

    /// Whether a path is left out without a word, with all that is below it.
    fn hides(&self, path: &Path, found: &Statx) -> bool {
        let _ = (path, found);
        false
    }

    /// Says that a path is left out, with all that may be below it.
    fn left_out(&mut self, path: &Path) {
        let _ = path;
    }

    /// Whether a path is reported at which something else is mounted. It is left out in any case.
    fn reports_mount(&self, path: &Path) -> bool {
        let _ = path;
        true
    }
}

/// Everything.
pub(crate) struct All;

impl Selection for All {
    fn takes(&mut self, _: &Path, _: &Statx) -> bool {
        true
    }
}

/// A directory that is copied.
pub(crate) struct Source(OwnedFd);

impl Source {
    /// Opens a directory by a path, whose links are followed.
    pub(crate) fn open(path: &Path) -> Result<Self, CopyError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        opened
            .map(Self)
            .map_err(|errno| CopyError::new(CopyErrorKind::Open, path, std::io::Error::from(errno).to_string()))
    }

    #[cfg(test)]
    pub(super) fn into_directory(self) -> OwnedFd {
        self.0
    }

    /// Writes the records of all that `choice` takes, without the end. Entries of a directory come in the order of
    /// their bytes.
    pub(crate) fn pack(&self, to: &mut dyn Write, choice: &mut dyn Selection) -> Result<(), CopyError> {
        let mut packer = Packer {
            to,
            choice,
            path: PathBuf::new(),
            unsent: Vec::new(),
            depth: 0,
            buffer: vec![0; PIECE],
            mount: Mount::of(&self.0)
                .map_err(|errno| CopyError::new(CopyErrorKind::Open, "", std::io::Error::from(errno).to_string()))?,
        };
        packer.directory(&self.0)
    }
}

/// Writes the end of a copy.
pub(crate) fn end(to: &mut dyn Write) -> Result<(), CopyError> {
    let mut to = to;
    Record::End
        .write(&mut to)
        .and_then(|()| to.flush())
        .map_err(|error| cut(&error))
}

/// Writes which paths are gone.
pub(crate) fn gone<'p>(to: &mut dyn Write, paths: impl Iterator<Item = &'p Path>) -> Result<(), CopyError> {
    let mut to = to;
    for path in paths {
        let path = path.as_os_str().as_bytes().to_vec();
        Record::Gone { path }.write(&mut to).map_err(|error| cut(&error))?;
    }
    Ok(())
}

struct Packer<'p> {
    to: &'p mut dyn Write,
    choice: &'p mut dyn Selection,
    path: PathBuf,
    /// The directories on the way that the receiver was not told to open yet: nothing in them was taken so far.
    unsent: Vec<OsString>,
    depth: usize,
    buffer: Vec<u8>,
    /// The one that the directory is in.
    mount: Mount,
}

/// Why an entry is not copied: what ends the copy, or what is reported.
enum Stop {
    Copy(CopyError),
    Entry(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Entry(errno)
    }
}

impl From<CopyError> for Stop {
    fn from(error: CopyError) -> Self {
        Self::Copy(error)
    }
}

impl Packer<'_> {
    fn send(&mut self, record: &Record) -> Result<(), CopyError> {
        for name in std::mem::take(&mut self.unsent) {
            self.send_one(&Record::Directory { name: name.into_vec() })?;
        }
        self.send_one(record)
    }

    fn send_one(&mut self, record: &Record) -> Result<(), CopyError> {
        record.write(&mut self.to).map_err(|error| cut(&error))
    }

    /// Reports the path that is worked at, by its name in the directory that is open.
    fn skip(&mut self, name: &CStr, because: impl Into<String>) -> Result<(), CopyError> {
        self.choice.left_out(&self.path);
        self.send(&Record::Skipped {
            name: name.to_bytes().to_vec(),
            because: because.into(),
        })
    }

    fn directory(&mut self, directory: &OwnedFd) -> Result<(), CopyError> {
        let names = match names(directory) {
            Ok(names) => names,
            Err(errno) => return self.skip(c"", words(errno)),
        };
        for name in names {
            self.path.push(OsStr::from_bytes(name.to_bytes()));
            let done = match self.entry(directory, &name) {
                Ok(()) => Ok(()),
                // Somebody removed it after it was listed.
                Err(Stop::Entry(Errno::NOENT)) => Ok(()),
                Err(Stop::Entry(errno)) => self.skip(&name, words(errno)),
                Err(Stop::Copy(error)) => Err(error),
            };
            self.path.pop();
            done?;
        }
        Ok(())
    }

    fn entry(&mut self, above: &OwnedFd, name: &CStr) -> Result<(), Stop> {
        let found = look(above, name)?;
        if self.choice.hides(&self.path, &found) {
            return Ok(());
        }
        if self.mount != Mount::from(&found) {
            match self.choice.reports_mount(&self.path) {
                true => self.skip(name, ELSEWHERE)?,
                false => self.choice.left_out(&self.path),
            }
            return Ok(());
        }
        match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::Directory => self.enter(above, name),
            FileType::RegularFile => self.file(above, name),
            FileType::Symlink => {
                if self.choice.takes(&self.path, &found) {
                    let target = rustix::fs::readlinkat(above, name, Vec::new())?;
                    self.send(&Record::Link {
                        name: name.to_bytes().to_vec(),
                        target: target.into_bytes(),
                        modified: modified(&found),
                    })?;
                }
                Ok(())
            }
            FileType::Fifo => Ok(self.skip(name, "it is a named pipe")?),
            FileType::Socket => Ok(self.skip(name, "it is a socket")?),
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
                Ok(self.skip(name, "it is a device")?)
            }
        }
    }

    fn enter(&mut self, above: &OwnedFd, name: &CStr) -> Result<(), Stop> {
        if self.depth + 1 >= MAX_DEPTH {
            self.skip(name, format!("it nests deeper than {MAX_DEPTH} directories"))?;
            return Ok(());
        }
        let directory = rustix::fs::openat(above, name, DIRECTORY, Mode::empty())?;
        let found = look(&directory, c"")?;
        if self.mount != Mount::from(&found) {
            // It was mounted after the first look.
            return Err(Errno::XDEV.into());
        }
        let is_chosen = self.choice.takes(&self.path, &found);
        self.unsent.push(OsString::from_vec(name.to_bytes().to_vec()));
        let up = Record::Up {
            mode: u32::from(found.stx_mode) & 0o7777,
            modified: modified(&found),
        };
        self.depth += 1;
        if is_chosen && let Some(name) = self.unsent.pop() {
            self.send(&Record::Directory { name: name.into_vec() })?;
        }
        let done = self.directory(&directory);
        self.depth -= 1;
        done?;
        // One in which nothing was taken was never opened there.
        if self.unsent.pop().is_none() {
            self.send_one(&up)?;
        }
        Ok(())
    }

    fn file(&mut self, above: &OwnedFd, name: &CStr) -> Result<(), Stop> {
        let file = rustix::fs::openat(above, name, FILE, Mode::empty())?;
        let found = look(&file, c"")?;
        if FileType::from_raw_mode(found.stx_mode.into()) != FileType::RegularFile {
            return Err(Errno::NXIO.into());
        }
        if !self.choice.takes(&self.path, &found) {
            return Ok(());
        }
        self.send(&Record::File {
            name: name.to_bytes().to_vec(),
        })?;
        let end = match self.content(&file, found.stx_size) {
            Ok(size) => Record::Complete {
                size,
                mode: u32::from(found.stx_mode) & 0o7777,
                modified: modified(&found),
            },
            Err(Stop::Entry(errno)) => {
                self.choice.left_out(&self.path);
                Record::Abandoned { because: words(errno) }
            }
            Err(Stop::Copy(error)) => return Err(error.into()),
        };
        Ok(self.send_one(&end)?)
    }

    /// Sends what is in a file up to this size, and says how much there was.
    fn content(&mut self, file: &OwnedFd, size: u64) -> Result<u64, Stop> {
        let mut at = 0;
        while at < size {
            let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
                // It became shorter meanwhile if it ends before.
                Err(Errno::NXIO) => return Ok(size.min(look(file, c"")?.stx_size).max(at)),
                Ok(start) => start,
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                Err(errno) => return Err(errno.into()),
            };
            if start >= size {
                break;
            }
            let hole = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size);
            // A hole that begins where the data does was made after the data was found.
            let hole = hole.clamp(start + 1, size);
            at = start;
            while at < hole {
                let most = usize::try_from(hole - at).unwrap_or(usize::MAX).min(PIECE);
                let mut buffer = std::mem::take(&mut self.buffer);
                let read = read(file, buffer.get_mut(..most).unwrap_or_default(), at);
                let sent = read.map_err(Stop::from).and_then(|read| {
                    let bytes = buffer.get(..read).unwrap_or_default();
                    if !bytes.is_empty() {
                        self.data(at, bytes)?;
                    }
                    Ok(read)
                });
                self.buffer = buffer;
                match sent? {
                    0 => return Ok(at),
                    read => at += read as u64,
                }
            }
        }
        Ok(size)
    }

    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CopyError> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.send_one(&Record::Data { offset, length })?;
        self.to.write_all(bytes).map_err(|error| cut(&error))
    }
}

fn words(errno: Errno) -> String {
    format!("it cannot be read: {}", std::io::Error::from(errno))
}

fn read(file: &OwnedFd, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    loop {
        match rustix::io::pread(file, &mut *buffer, at) {
            Err(Errno::INTR) => {}
            read => return read,
        }
    }
}

fn look(at: impl AsFd, name: &CStr) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    rustix::fs::statx(at, name, flags, wanted)
}

fn modified(found: &Statx) -> Time {
    (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec)
}

fn names(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}
