//! The trees that the gate reads: the files as they are, what was read of them for one judgement, and what is remembered.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use shieling_gate::{Entry, Kind, Tree};

pub(crate) use crate::closed::Time;
use crate::closed::{Widened, changed_by_others};

/// The longest file whose content is read: what is longer is not judged by what it says, and held back where that matters.
pub(crate) const LONGEST: usize = shieling_gate::settings::LONGEST + 1;

/// The longest file that is put back, and that is kept when it is taken back: 16 MiB.
pub const KEPT: usize = 16 << 20;

/// Bytes of all contents that one judgement holds.
const CONTENTS: usize = 256 << 20;

/// The longest path that is looked at. The kernel takes 4,096 bytes at once, so that a longer one is gone along in parts.
const LONGEST_PATH: usize = 16 << 10;
const PART: usize = 2 << 10;

/// Says that a path is longer than [`LONGEST_PATH`]. The kernel's own errno also stands for a single name.
pub(crate) const TOO_LONG: Errno = Errno::OVERFLOW;

/// Whether what has this stamp now may be changed again within one tick of the clock that gives stamps.
pub(crate) fn is_young(changed: Time) -> bool {
    is_young_at(changed, now())
}

/// As [`is_young`], of a stamp that was taken at this time or later.
pub(crate) fn is_young_at(changed: Time, taken: Time) -> bool {
    /// Two of the longest ticks.
    const TICKS: Time = 20_000_000;
    changed + TICKS > taken
}

/// The time by the clock that stamps files.
pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Time::from(now.tv_sec) * 1_000_000_000 + Time::from(now.tv_nsec)
}

/// By what the kernel tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) changed: Time,
    pub(crate) owner: (u32, u32),
}

impl Stamp {
    /// That of nothing.
    pub(crate) const NONE: Self = Self {
        device: 0,
        inode: 0,
        changed: 0,
        owner: (0, 0),
    };

    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: changed_by_others(stat),
            owner: (stat.st_uid, stat.st_gid),
        }
    }

    /// Whether both are one inode.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A directory, as it was when it was last listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) stamp: Stamp,
    pub(crate) is_young: bool,
    /// Whether its owner has closed it, and it was opened for this.
    pub(crate) was_closed: bool,
}

/// The files as they are, beneath a directory that is held.
///
/// A directory of ours that a command closed is opened for as long as it is looked at ([`Widened`]).
#[derive(Debug)]
pub(crate) struct Live {
    root: OwnedFd,
    /// Whether directories that nobody can enter are left closed.
    leaves_closed: AtomicBool,
    /// Directories, by device and inode, that were closed before any command ran, and when they changed last. They are never
    /// opened: what is in them was not seen before, so that nobody could tell a command's files from the user's.
    closed_before: Mutex<BTreeMap<(u64, u64), Time>>,
}

/// A directory that is open and can be searched for as long as this is there.
#[derive(Debug)]
pub(crate) struct Directory {
    file: OwnedFd,
    widened: Option<Widened>,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Directory {
    /// Whether its owner has closed it.
    pub(crate) fn was_closed(&self) -> bool {
        self.widened.is_some()
    }
}

impl Live {
    /// Holds a directory by its absolute path, in which no name is a link.
    pub(crate) fn hold(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |flags| rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let root = match open(flags) {
            // A command can have closed it before it was killed.
            Err(Errno::ACCESS) => open(OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)?,
            other => other?,
        };
        Ok(Self {
            root,
            leaves_closed: AtomicBool::new(true),
            closed_before: Mutex::default(),
        })
    }

    /// Says whether directories that nobody can enter are left closed: at all times but when an outcome is due. No tool of
    /// the user reads them meanwhile, and a command can rely on it. One that can be entered and not listed is opened all
    /// the same, since git runs a hook in it.
    pub(crate) fn leave_closed(&self, leaves_closed: bool) {
        self.leaves_closed.store(leaves_closed, Ordering::Relaxed);
    }

    pub(crate) fn leaves_closed(&self) -> bool {
        self.leaves_closed.load(Ordering::Relaxed)
    }

    fn closed_before(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), Time>> {
        self.closed_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a directory was closed before any command ran.
    pub(crate) fn note_closed_before(&self, path: &Path) {
        if let Ok(Some(stat)) = self.stat(path) {
            let mut all = self.closed_before();
            all.insert((stat.st_dev, stat.st_ino), changed_by_others(&stat));
        }
    }

    /// Notes that a directory could be read, so that what is in it is known from now on.
    pub(crate) fn note_read(&self, stamp: &Stamp) {
        self.closed_before().remove(&(stamp.device, stamp.inode));
    }

    /// Whether a directory that cannot be read was closed before any command ran: `None` if not, and otherwise whether it
    /// changed since this was last asked.
    pub(crate) fn was_closed_before(&self, path: &Path) -> Option<bool> {
        let stat = self.stat(path).ok()??;
        let mut all = self.closed_before();
        let known = all.get_mut(&(stat.st_dev, stat.st_ino))?;
        let changed = changed_by_others(&stat);
        Some(std::mem::replace(known, changed) != changed)
    }

    /// Opens a directory to its owner, if `lacks` says so of its mode.
    fn widen(&self, directory: BorrowedFd<'_>, lacks: impl FnOnce(u32) -> bool) -> Result<Widened, Errno> {
        let is_left = |key| self.leaves_closed() || self.closed_before().contains_key(&key);
        Widened::new(directory, |key, mode| {
            lacks(mode) && (mode & 0o100 != 0 || !is_left(key))
        })
    }

    /// Opens something beneath it, by a way without links.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        if path.as_os_str().len() <= PART {
            return self.open_part(self.root.as_fd(), path, flags);
        }
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(TOO_LONG);
        }
        let mut at: Option<OwnedFd> = None;
        let mut part = PathBuf::new();
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            part.push(name);
            let from = at.as_ref().unwrap_or(&self.root).as_fd();
            match names.peek() {
                None => return self.open_part(from, &part, flags),
                Some(next) if part.as_os_str().len() + next.len() >= PART => {
                    at = Some(self.open_part(from, &part, OFlags::PATH | OFlags::DIRECTORY)?);
                    part.clear();
                }
                Some(_) => {}
            }
        }
        Err(Errno::INVAL)
    }

    /// Opens something beneath a directory, by a way that the kernel takes at once.
    fn open_part(&self, from: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // A rename elsewhere makes the kernel give up looking.
        for _ in 0..100 {
            match rustix::fs::openat2(from, path, flags | OFlags::CLOEXEC, Mode::empty(), how) {
                Err(Errno::AGAIN) => {}
                Err(Errno::ACCESS) => return self.open_by_names(from, path, flags),
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Opens something by one name after the other, through directories that their owner closed. A name that is exchanged
    /// for a link meanwhile is refused, since none is followed.
    fn open_by_names(&self, from: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut at: Option<OwnedFd> = None;
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let from = at.as_ref().map_or(from, AsFd::as_fd);
            let flags = match names.peek() {
                None => flags,
                Some(_) => OFlags::PATH | OFlags::DIRECTORY,
            };
            let open = || rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            let opened = match open() {
                Err(Errno::ACCESS) => {
                    // Where it is not ours to open, another process may have it open at this moment.
                    let _widened = self.widen(from, |mode| mode & 0o100 == 0).ok();
                    open()?
                }
                other => other?,
            };
            at = Some(opened);
        }
        at.ok_or(Errno::INVAL)
    }

    /// Opens a directory to list it, and to use the names in it.
    pub(crate) fn directory(&self, path: &Path) -> Result<Directory, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.open(path, flags) {
            Err(Errno::ACCESS) => {
                let closed = self.open(path, OFlags::PATH | OFlags::DIRECTORY)?;
                let widened = self.widen(closed.as_fd(), |_| true).ok();
                let file = rustix::fs::openat(&closed, c".", flags | OFlags::CLOEXEC, Mode::empty())?;
                Ok(Directory { file, widened })
            }
            other => self.searchable(other?),
        }
    }

    /// Opens a directory to use the names in it.
    fn entered(&self, path: &Path) -> Result<Directory, Errno> {
        self.searchable(self.open(path, OFlags::PATH | OFlags::DIRECTORY)?)
    }

    fn searchable(&self, file: OwnedFd) -> Result<Directory, Errno> {
        let widened = match rustix::process::geteuid().is_root() {
            true => None,
            // What is of another user may be open to us all the same.
            false => self.widen(file.as_fd(), |mode| mode & 0o100 == 0).ok(),
        };
        Ok(Directory { file, widened })
    }

    /// Opens the directory in which a path is, with its last name.
    pub(crate) fn parent<'p>(&self, path: &'p Path) -> Result<(Directory, &'p OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let above = path.parent().unwrap_or(Path::new(""));
        Ok((self.entered(above)?, name))
    }

    /// Lets us write to a directory whose owner may not.
    pub(crate) fn writable(&self, directory: &Directory) -> Result<Widened, Errno> {
        self.widen(directory.as_fd(), |_| true)
    }

    /// What a path is, as the kernel tells it; `None` if nothing is there, or below a link.
    pub(crate) fn stat(&self, path: &Path) -> Result<Option<Stat>, Errno> {
        match self.open(path, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(found) => Ok(Some(rustix::fs::fstat(&found)?)),
            // A link as the last name is refused as well.
            Err(Errno::LOOP) => {
                let above = path.parent().unwrap_or(Path::new(""));
                let above = match self.entered(above) {
                    Ok(found) => found,
                    Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                    Err(errno) => return Err(errno),
                };
                match rustix::fs::statat(&above, path.file_name().ok_or(Errno::INVAL)?, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => Ok(Some(stat)),
                    Err(Errno::NOENT) => Ok(None),
                    Err(errno) => Err(errno),
                }
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// What a path is at first sight: by its name alone, so that it is only good for a comparison of numbers.
    /// `Ok(None)` if nothing is there, an error if that cannot be told.
    pub(crate) fn glance(&self, path: &Path) -> Result<Option<Stamp>, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        match rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Stamp::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            // Below a directory that is closed, or too long to be given to the kernel at once.
            Err(Errno::ACCESS | Errno::NAMETOOLONG) => Ok(self.stat(path)?.map(|stat| Stamp::of(&stat))),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn node(&self, path: &Path) -> io::Result<Option<(Entry, Stamp)>> {
        let Some(stat) = self.stat(path)? else { return Ok(None) };
        let kind = match kind_of(&stat) {
            Some(kind) => kind,
            None => {
                let (above, name) = self.parent(path)?;
                match link(&above, name) {
                    Ok(target) => target,
                    // It went in between.
                    Err(Errno::NOENT | Errno::INVAL) => return Ok(None),
                    Err(errno) => return Err(errno.into()),
                }
            }
        };
        Ok(Some((entry(kind, &stat), Stamp::of(&stat))))
    }
}

/// The kind of what is no link.
pub(crate) fn kind_of(stat: &Stat) -> Option<Kind> {
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => return None,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
    })
}

/// A link's target.
pub(crate) fn link(directory: impl AsFd, name: &OsStr) -> Result<Kind, Errno> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(Kind::Link(PathBuf::from(OsString::from_vec(target.into_bytes()))))
}

pub(crate) fn entry(kind: Kind, stat: &Stat) -> Entry {
    Entry {
        kind,
        mode: stat.st_mode & 0o7777,
        #[allow(clippy::useless_conversion, reason = "it has 32 bits on some machines")]
        links: u64::from(stat.st_nlink),
        size: u64::try_from(stat.st_size).unwrap_or_default(),
    }
}

impl Tree for Live {
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        Ok(self.node(path)?.map(|(entry, _)| entry))
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let file = self.open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
        if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL.into());
        }
        read(&file, limit)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        let directory = self.directory(directory)?;
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }
}

/// At most the first bytes of an open file.
pub(crate) fn read(file: &OwnedFd, limit: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut buffer = vec![0; limit.min(16 * 1024)];
    while content.len() < limit {
        let room = buffer.len().min(limit - content.len());
        match rustix::io::read(file, buffer.get_mut(..room).unwrap_or_default()) {
            Ok(0) => break,
            Ok(length) => content.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(content)
}

/// The files as one judgement saw them: each is looked at and read once, so that what is remembered is what was judged.
pub(crate) struct Now<'l> {
    live: &'l Live,
    nodes: RefCell<HashMap<PathBuf, Option<(Entry, Stamp)>>>,
    contents: RefCell<HashMap<PathBuf, Vec<u8>>>,
    bytes: Cell<usize>,
    /// No node was looked at before this time.
    begun: Time,
}

impl<'l> Now<'l> {
    pub(crate) fn new(live: &'l Live) -> Self {
        Self {
            live,
            nodes: RefCell::default(),
            contents: RefCell::default(),
            bytes: Cell::new(0),
            begun: now(),
        }
    }

    pub(crate) fn node(&self, path: &Path) -> io::Result<Option<(Entry, Stamp)>> {
        if let Some(known) = self.nodes.borrow().get(path) {
            return Ok(known.clone());
        }
        let node = self.live.node(path)?;
        self.nodes.borrow_mut().insert(path.to_path_buf(), node.clone());
        Ok(node)
    }

    /// What was read of a file.
    pub(crate) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.contents.borrow().get(path).cloned()
    }

    /// Whether what has this stamp may be changed after it was looked at, and keep it.
    pub(crate) fn is_young(&self, stamp: &Stamp) -> bool {
        is_young_at(stamp.changed, self.begun)
    }
}

impl Tree for Now<'_> {
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        Ok(self.node(path)?.map(|(entry, _)| entry))
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        if let Some(known) = self.contents.borrow().get(path) {
            return Ok(known.iter().copied().take(limit).collect());
        }
        // The stamp is older than the content: what changes it later is seen.
        self.node(path)?;
        let content = self.live.read(path, LONGEST)?;
        self.bytes.set(self.bytes.get() + content.len());
        if self.bytes.get() > CONTENTS {
            return Err(io::Error::other("more was changed at once than can be judged"));
        }
        let told = content.iter().copied().take(limit).collect();
        self.contents.borrow_mut().insert(path.to_path_buf(), content);
        Ok(told)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.live.names(directory)
    }
}

/// What is remembered of a path.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) entry: Entry,
    pub(crate) stamp: Stamp,
    pub(crate) content: Option<Vec<u8>>,
    /// Whether it changed so shortly before it was looked at that a later change can have the same stamp.
    pub(crate) is_young: bool,
}

/// What is remembered: what can matter, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Before(pub(crate) BTreeMap<PathBuf, Kept>);

impl Before {
    /// The paths in a directory and below it.
    pub(crate) fn below<'b>(&'b self, directory: &'b Path) -> impl Iterator<Item = (&'b PathBuf, &'b Kept)> {
        let below = self.0.range(directory.to_path_buf()..);
        below.take_while(move |(path, _)| path.starts_with(directory))
    }
}

impl Tree for Before {
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        Ok(self.0.get(path).map(|kept| kept.entry.clone()))
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let kept = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        // Of what does not matter by what it says, nothing is known: whatever is there now is new.
        let content = kept.content.as_deref().unwrap_or_default();
        Ok(content.iter().copied().take(limit).collect())
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let names = self
            .below(directory)
            .filter(|(path, _)| path.parent() == Some(directory));
        Ok(names
            .filter_map(|(path, _)| path.file_name())
            .map(OsStr::to_owned)
            .collect())
    }
}
