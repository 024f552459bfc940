//! Makes a tree from records, whoever sends them.
//!
//! Each record names one entry of a directory that is held by descriptor, so `..`, absolute names and links that were
//! sent before lead nowhere. A content is written to a file without a name, or with a temporary one, and gets its name
//! once it is complete.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, StatxFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::record::{PIECE, Record, Time, cut};
use super::{Copied, CopyError, CopyErrorKind, CopyOptions, ELSEWHERE, MAX_DEPTH, Mount};

/// The longest name that a file system of Linux takes.
const LONGEST_NAME: usize = 255;
/// The longest target of a link.
const LONGEST_TARGET: usize = 4095;
/// The first bytes of temporary names.
pub(super) const TEMPORARY: &str = ".shieling-copy-";

/// What the system says of an entry, to see later whether it is as it was: inode, time of the last change of any kind,
/// size and mode. Of a directory the mode alone, since all else changes with its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp([u64; 5]);

impl Stamp {
    pub(crate) fn of(found: &rustix::fs::Statx) -> Self {
        let mode = u64::from(found.stx_mode);
        if rustix::fs::FileType::from_raw_mode(found.stx_mode.into()).is_dir() {
            return Self([0, 0, 0, 0, mode]);
        }
        let seconds = found.stx_ctime.tv_sec.cast_unsigned();
        let nanoseconds = u64::from(found.stx_ctime.tv_nsec);
        Self([found.stx_ino, seconds, nanoseconds, found.stx_size, mode])
    }
}

/// What was made, by its paths relative to the destination.
pub(crate) type Made = HashMap<PathBuf, Stamp>;

/// A directory that is copied to.
pub(crate) struct Target {
    directory: OwnedFd,
    /// Puts its mode back.
    _opened: Option<Opened>,
    options: CopyOptions,
    /// Kept if it is wanted.
    made: Option<Made>,
    gone: Option<Box<Gone>>,
    /// Whether a file or link that the system refuses to make is left out and reported.
    leaves_out: bool,
}

/// Takes the paths that are gone.
pub(crate) type Gone = dyn FnMut(&Path) -> Result<(), CopyError> + Send;

impl Target {
    /// Opens a directory by a path, whose links are followed. It is made if it is not there.
    pub(crate) fn open(path: &Path, options: CopyOptions) -> Result<Self, CopyError> {
        let failed = |errno| CopyError::new(CopyErrorKind::Open, path, std::io::Error::from(errno).to_string());
        match rustix::fs::mkdir(path, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
        let opened = Opened::for_entries(&directory).map_err(failed)?;
        Ok(Self {
            directory,
            _opened: opened,
            options,
            made: None,
            gone: None,
            leaves_out: false,
        })
    }

    /// Keeps what is made: [`Self::unpack`] returns it.
    pub(crate) fn keep_made(mut self) -> Self {
        self.made = Some(Made::new());
        self
    }

    /// Has somebody take the paths that are gone. Otherwise nothing may be.
    pub(crate) fn with_gone(mut self, gone: Box<Gone>) -> Self {
        self.gone = Some(gone);
        self
    }

    /// Leaves out, and reports, a file or link that the system refuses to make, unless there is no space left.
    pub(crate) fn leaving_out(mut self) -> Self {
        self.leaves_out = true;
        self
    }

    /// Makes what the records say, until their end.
    pub(crate) fn unpack(self, from: &mut impl Read) -> Result<(Copied, Option<Made>), CopyError> {
        let mount = Mount::of(&self.directory).map_err(|errno| CopyError::at(Path::new(""), errno))?;
        let mut unpacker = Unpacker {
            mount,
            elsewhere: 0,
            names: Names::here(),
            target: self,
            above: Vec::new(),
            path: PathBuf::new(),
            copied: Copied::default(),
            apparent: 0,
            told: 0,
            left_out: HashSet::new(),
            buffer: vec![0; PIECE],
        };
        let mut record = Vec::new();
        loop {
            match Record::read(from, &mut record)? {
                Record::End if unpacker.above.is_empty() && unpacker.elsewhere == 0 => break,
                Record::End => return Err(CopyError::stream("an end within a directory")),
                record => unpacker.step(record, from)?,
            }
        }
        Ok((unpacker.copied, unpacker.target.made))
    }
}

/// A directory that is open.
struct Open {
    directory: OwnedFd,
    /// Whether this copy made it.
    is_new: bool,
    /// Puts the mode of one that was there back.
    opened: Option<Opened>,
}

/// A directory of ours that did not let us make entries, as an earlier copy may have left it, and does so until this is
/// dropped.
struct Opened {
    directory: OwnedFd,
    mode: Mode,
}

impl Opened {
    /// Opens a directory for new entries, if that is needed and its owner may.
    fn for_entries(directory: &OwnedFd) -> Result<Option<Self>, Errno> {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        if rustix::fs::accessat(directory, c".", wanted, AtFlags::EACCESS) != Err(Errno::ACCESS) {
            return Ok(None);
        }
        let found = rustix::fs::fstat(directory)?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            // What is made in it says what is wrong.
            return Ok(None);
        }
        let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
        let opened = Self {
            directory: rustix::io::fcntl_dupfd_cloexec(directory, 3)?,
            mode,
        };
        rustix::fs::fchmod(directory, mode | Mode::RWXU)?;
        Ok(Some(opened))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = rustix::fs::fchmod(&self.directory, self.mode);
    }
}

/// What becomes of a file whose records are read.
enum Writing {
    To(Unnamed),
    /// It is left out for this reason.
    LeftOut(String),
    /// It lies below a directory that is left out.
    Elsewhere,
}

struct Unpacker {
    target: Target,
    /// The one that the destination is in.
    mount: Mount,
    /// How many directories down from one at which something else is mounted. Nothing is made there.
    elsewhere: usize,
    names: Names,
    above: Vec<Open>,
    path: PathBuf,
    copied: Copied,
    /// Bytes of the files that are complete, with their holes.
    apparent: u64,
    /// How many records told of something that was not made.
    told: u64,
    /// What was left out, where paths may be gone.
    left_out: HashSet<PathBuf>,
    buffer: Vec<u8>,
}

impl Unpacker {
    fn here(&self) -> &OwnedFd {
        self.above.last().map_or(&self.target.directory, |open| &open.directory)
    }

    fn step(&mut self, record: Record, from: &mut impl Read) -> Result<(), CopyError> {
        match record {
            Record::Directory { name } => self.directory(name),
            Record::Up { mode, modified } => self.up(mode, modified),
            Record::File { name } => {
                let name = checked(name)?;
                self.path.push(&name);
                self.file(&name, from)?;
                self.path.pop();
                Ok(())
            }
            Record::Link { name, target, modified } => {
                let name = checked(name)?;
                self.path.push(&name);
                self.link(&name, &target, modified)?;
                self.path.pop();
                Ok(())
            }
            Record::Skipped { name, because } => {
                self.count_told()?;
                let path = match name.is_empty() {
                    true => self.path.clone(),
                    false => self.path.join(checked(name)?),
                };
                self.copied.skip(path, cut_off(because));
                Ok(())
            }
            Record::Gone { path } => {
                self.count_told()?;
                self.gone(&path)
            }
            Record::Data { .. } | Record::Complete { .. } | Record::Abandoned { .. } => {
                Err(CopyError::stream("a part of a file, and no file"))
            }
            Record::End => Err(CopyError::stream("a second end")),
        }
    }

    /// Counts one more entry.
    fn count(&self) -> Result<(), CopyError> {
        let most = self.target.options.max_entries;
        if self.copied.entries() >= most {
            let detail = format!("there are more than {most} entries");
            return Err(CopyError::new(CopyErrorKind::Limit, &self.path, detail));
        }
        Ok(())
    }

    /// Counts one more record of something that is not made, of which there can be as many as of entries.
    fn count_told(&mut self) -> Result<(), CopyError> {
        self.told += 1;
        let most = self.target.options.max_entries;
        if self.told > most {
            let detail = format!("more than {most} entries are told of that are not copied");
            return Err(CopyError::new(CopyErrorKind::Limit, &self.path, detail));
        }
        Ok(())
    }

    /// Keeps what was made at the path that is worked at.
    fn note(&mut self, file: &OwnedFd) -> Result<(), CopyError> {
        if self.target.made.is_some() {
            let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
            let found = found.map_err(|errno| CopyError::at(&self.path, errno))?;
            self.noted(Stamp::of(&found));
        }
        Ok(())
    }

    fn noted(&mut self, stamp: Stamp) {
        let path = self.path.clone();
        if let Some(made) = &mut self.target.made {
            made.insert(path, stamp);
        }
    }

    /// Why a file is left out that is larger than the bound with its holes, where that is wanted.
    fn too_large(&self, error: CopyError) -> Result<String, CopyError> {
        match self.target.leaves_out {
            true => Ok(error.detail),
            false => Err(error),
        }
    }

    /// Why an entry that the system refused is left out, if it is.
    fn refused(&self, errno: Errno) -> Result<String, CopyError> {
        match errno {
            // By a rename to its name.
            Errno::BUSY => Ok(ELSEWHERE.to_owned()),
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS | Errno::IO => Err(CopyError::at(&self.path, errno)),
            _ if self.target.leaves_out => Ok(format!("it cannot be made here: {}", std::io::Error::from(errno))),
            _ => Err(CopyError::at(&self.path, errno)),
        }
    }

    /// Reports the path that is worked at as left out.
    fn leave_out(&mut self, because: String) -> Result<(), CopyError> {
        self.count_told()?;
        if self.target.gone.is_some() {
            self.left_out.insert(self.path.clone());
        }
        self.copied.skip(self.path.clone(), because);
        Ok(())
    }

    fn directory(&mut self, name: Vec<u8>) -> Result<(), CopyError> {
        let name = checked(name)?;
        self.path.push(&name);
        if self.above.len() + self.elsewhere + 1 >= MAX_DEPTH {
            let detail = format!("directories nest deeper than {MAX_DEPTH}");
            return Err(CopyError::new(CopyErrorKind::Limit, &self.path, detail));
        }
        if self.elsewhere > 0 {
            self.elsewhere += 1;
            return Ok(());
        }
        self.count()?;
        let failed = |errno| CopyError::at(&self.path, errno);
        let is_new = match rustix::fs::mkdirat(self.here(), &name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(failed(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(self.here(), &name, flags, Mode::empty()).map_err(failed)?;
        if !is_new && Mount::of(&directory).map_err(failed)? != self.mount {
            self.elsewhere = 1;
            return self.leave_out(ELSEWHERE.to_owned());
        }
        let opened = match is_new {
            true => None,
            false => Opened::for_entries(&directory).map_err(failed)?,
        };
        self.above.push(Open {
            directory,
            is_new,
            opened,
        });
        self.copied.directories += 1;
        Ok(())
    }

    fn up(&mut self, mode: u32, modified: Time) -> Result<(), CopyError> {
        if self.elsewhere > 0 {
            self.elsewhere -= 1;
            self.path.pop();
            return Ok(());
        }
        let Some(Open {
            directory,
            is_new,
            opened,
        }) = self.above.pop()
        else {
            return Err(CopyError::stream("a way up from the destination"));
        };
        drop(opened);
        let failed = |errno| CopyError::at(&self.path, errno);
        if is_new {
            // Before the mode, which may take the right to do so.
            rustix::fs::futimens(&directory, &times(modified)).map_err(failed)?;
            rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode & 0o1777)).map_err(failed)?;
        }
        self.note(&directory)?;
        self.path.pop();
        Ok(())
    }

    fn file(&mut self, name: &Path, from: &mut impl Read) -> Result<(), CopyError> {
        self.count()?;
        let mut writing = match self.elsewhere {
            0 => match Unnamed::make(self.here(), self.names) {
                Ok(made) => Writing::To(made),
                Err(errno) => Writing::LeftOut(self.refused(errno)?),
            },
            _ => Writing::Elsewhere,
        };
        let mut record = Vec::new();
        let mut at = 0;
        loop {
            match Record::read(from, &mut record)? {
                Record::Data { offset, length } => {
                    at = self.piece(at, offset, length, from)?;
                    if let Err(error) = self.bounded(at) {
                        writing = Writing::LeftOut(self.too_large(error)?);
                    }
                    if let Writing::To(made) = &writing
                        && let Err(errno) = self.write(&made.file, offset, length)
                    {
                        writing = Writing::LeftOut(self.refused(errno)?);
                    }
                }
                Record::Complete { size, mode, modified } => {
                    if size < at {
                        return Err(CopyError::stream("a file that is shorter than what is in it"));
                    }
                    let made = match writing {
                        Writing::To(made) => made,
                        Writing::LeftOut(because) => return self.leave_out(because),
                        Writing::Elsewhere => return Ok(()),
                    };
                    self.apparent = match self.bounded(size) {
                        Ok(all) => all,
                        Err(error) => {
                            let because = self.too_large(error)?;
                            return self.leave_out(because);
                        }
                    };
                    let mask = if self.target.options.keep_set_id { 0o6777 } else { 0o777 };
                    let complete = || {
                        if size > at {
                            rustix::fs::ftruncate(&made.file, size)?;
                        }
                        rustix::fs::fchmod(&made.file, Mode::from_raw_mode(mode & mask))?;
                        rustix::fs::futimens(&made.file, &times(modified))
                    };
                    let placed = match complete() {
                        Ok(()) => made.place(self.here(), name),
                        Err(errno) => Err(errno),
                    };
                    match placed {
                        Ok(file) => {
                            self.note(&file)?;
                            self.copied.files += 1;
                            return Ok(());
                        }
                        Err(errno) => {
                            let because = self.refused(errno)?;
                            return self.leave_out(because);
                        }
                    }
                }
                Record::Abandoned { because } => return self.leave_out(cut_off(because)),
                _ => return Err(CopyError::stream("something else within a file")),
            }
        }
    }

    /// The bytes of all files with their holes, with one more of this size.
    fn bounded(&self, size: u64) -> Result<u64, CopyError> {
        let most = self.target.options.max_apparent_bytes;
        let all = self.apparent.checked_add(size).filter(|all| *all <= most);
        all.ok_or_else(|| {
            let detail = format!(
                "with its holes, `{}` makes it more than {most} bytes",
                self.path.display()
            );
            CopyError::new(CopyErrorKind::Limit, &self.path, detail)
        })
    }

    /// Reads a piece of a file into the buffer, and says where it ends in the file.
    fn piece(&mut self, at: u64, offset: u64, length: u32, from: &mut impl Read) -> Result<u64, CopyError> {
        let length = length as usize;
        let end = offset.checked_add(length as u64);
        let end = end.filter(|_| offset >= at && (1..=PIECE).contains(&length));
        let end = end.ok_or_else(|| CopyError::stream("a piece of a file that cannot be there"))?;
        self.copied.bytes = self.copied.bytes.saturating_add(length as u64);
        let most = self.target.options.max_bytes;
        if self.copied.bytes > most {
            let detail = format!("its files hold more than {most} bytes");
            return Err(CopyError::new(CopyErrorKind::Limit, &self.path, detail));
        }
        let piece = self.buffer.get_mut(..length).unwrap_or_default();
        from.read_exact(piece).map_err(|error| cut(&error))?;
        Ok(end)
    }

    /// Writes the piece that is in the buffer.
    fn write(&self, file: &OwnedFd, offset: u64, length: u32) -> Result<(), Errno> {
        let mut rest = self.buffer.get(..length as usize).unwrap_or_default();
        let mut at = offset;
        while !rest.is_empty() {
            match rustix::io::pwrite(file, rest, at) {
                Ok(written) => {
                    at += written as u64;
                    rest = rest.get(written..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn link(&mut self, name: &Path, target: &[u8], modified: Time) -> Result<(), CopyError> {
        self.count()?;
        if target.is_empty() || target.len() > LONGEST_TARGET || target.contains(&0) {
            return Err(CopyError::stream("a link that cannot be made"));
        }
        if self.elsewhere > 0 {
            return Ok(());
        }
        let here = self.here();
        let make = || {
            let temporary = temporary();
            rustix::fs::symlinkat(target, here, &*temporary)?;
            let done = rustix::fs::utimensat(here, &*temporary, &times(modified), AtFlags::SYMLINK_NOFOLLOW)
                .and_then(|()| rustix::fs::renameat(here, &*temporary, here, name));
            if done.is_err() {
                let _ = rustix::fs::unlinkat(here, &*temporary, AtFlags::empty());
            }
            done
        };
        if let Err(errno) = make() {
            let because = self.refused(errno)?;
            return self.leave_out(because);
        }
        if self.target.made.is_some() {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let found = rustix::fs::statx(self.here(), name, flags, StatxFlags::BASIC_STATS);
            let found = found.map_err(|errno| CopyError::at(&self.path, errno))?;
            self.noted(Stamp::of(&found));
        }
        self.copied.links += 1;
        Ok(())
    }

    fn gone(&mut self, path: &[u8]) -> Result<(), CopyError> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let mut names = 0;
        for name in path.components() {
            names += 1;
            match name {
                std::path::Component::Normal(name) if is_name(name.as_bytes()) && names <= MAX_DEPTH => {}
                _ => return Err(CopyError::stream("a path that leads out of the destination")),
            }
        }
        // A file that is left out here has replaced a directory there, which stays as it is.
        if path.ancestors().skip(1).any(|above| self.left_out.contains(above)) {
            return Ok(());
        }
        match &mut self.target.gone {
            Some(gone) if names > 0 => gone(path),
            _ => Err(CopyError::stream("a path that is gone and was never there")),
        }
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && name.len() <= LONGEST_NAME
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// A single name, or what is wrong with it.
fn checked(name: Vec<u8>) -> Result<PathBuf, CopyError> {
    if !is_name(&name) {
        let start = name.get(..name.len().min(64)).unwrap_or_default();
        let shown = String::from_utf8_lossy(start).escape_debug().to_string();
        return Err(CopyError::stream(format!("`{shown}`, which is no name of an entry")));
    }
    use std::os::unix::ffi::OsStringExt as _;
    Ok(std::ffi::OsString::from_vec(name).into())
}

/// What the other side says, which may be as long as a record.
fn cut_off(mut because: String) -> String {
    because.truncate(because.floor_char_boundary(200));
    because
}

fn times((seconds, nanoseconds): Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: i64::from(nanoseconds.min(999_999_999)),
        },
    }
}

fn temporary() -> String {
    let mut bytes = [0; 8];
    // Without random numbers it is a name that is more easily taken; then making it fails.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("{TEMPORARY}{:016x}", u64::from_le_bytes(bytes))
}

/// Whether files without a name can get one here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// By the link that `/proc` has to what is open.
    Later,
    /// They have one from the first.
    FromTheFirst,
}

impl Names {
    fn here() -> Self {
        // It is not there in every place, and not for a process that others of its user may not look at.
        match rustix::fs::accessat(CWD, "/proc/self/fd", Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Self::Later,
            Err(_) => Self::FromTheFirst,
        }
    }
}

/// A file that has no name, or a temporary one, which goes with it.
struct Unnamed {
    file: OwnedFd,
    temporary: Option<(OwnedFd, String)>,
}

impl Unnamed {
    fn make(directory: &OwnedFd, names: Names) -> Result<Self, Errno> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if names == Names::Later {
            match rustix::fs::openat(directory, c".", flags | OFlags::TMPFILE, mode) {
                Ok(file) => return Ok(Self { file, temporary: None }),
                // File systems that have no such files say one of these.
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        let temporary = temporary();
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(directory, &*temporary, flags, mode)?;
        let directory = rustix::io::fcntl_dupfd_cloexec(directory, 3)?;
        Ok(Self {
            file,
            temporary: Some((directory, temporary)),
        })
    }

    /// Gives it this name, in the place of a file or link that has it.
    fn place(mut self, directory: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
        if self.temporary.is_none() {
            let link = |name: &Path| {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, &*own, directory, name, AtFlags::SYMLINK_FOLLOW)
            };
            match link(name) {
                Ok(()) => return self.taken(),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let temporary = temporary();
            link(Path::new(&temporary))?;
            self.temporary = Some((rustix::io::fcntl_dupfd_cloexec(directory, 3)?, temporary));
        }
        if let Some((_, temporary)) = &self.temporary {
            rustix::fs::renameat(directory, &**temporary, directory, name)?;
        }
        self.temporary = None;
        self.taken()
    }

    fn taken(self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.file, 3)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some((directory, temporary)) = &self.temporary {
            let _ = rustix::fs::unlinkat(directory, &**temporary, AtFlags::empty());
        }
    }
}
