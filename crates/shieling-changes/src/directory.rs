//! A directory that is held by descriptor, and everything that is done in it by name.
//!
//! A directory or file that its owner closed to himself is opened all the same: the mode is widened for the moment of
//! opening. Names are single names; a link is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Gid, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, SeekFrom, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::error::{ChangesError, While as _};
use crate::node::{Kind, Node};

/// How deep directories nest at most in a set.
pub const LEVELS: usize = 256;

/// The size of the buffer through which contents go.
const BUFFER: usize = 128 * 1024;

/// The prefix of the attributes in which an overlay keeps its marks.
const MARKS: &str = "user.overlay.";

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory(Arc<Held>);

/// A directory that is open, with the mode that it gets back in the end, if its owner had closed it.
#[derive(Debug)]
struct Held {
    directory: OwnedFd,
    mode: Option<u32>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            // Who has removed it meanwhile, or owns it now, is not to be told.
            let _ = rustix::fs::fchmod(&self.directory, Mode::from_raw_mode(mode));
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.directory.as_fd()
    }
}

impl From<OwnedFd> for Directory {
    fn from(directory: OwnedFd) -> Self {
        Self(Arc::new(Held { directory, mode: None }))
    }
}

impl Directory {
    const FLAGS: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    /// Opens a directory by its absolute path, in which no name is a link.
    pub(crate) fn open(path: &Path) -> Result<Self, ChangesError> {
        rustix::fs::openat2(CWD, path, Self::FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS)
            .map(Self::from)
            .doing("open", path)
    }

    /// Holds a directory that somebody else opened.
    pub(crate) fn of(held: BorrowedFd<'_>) -> Result<Self, Errno> {
        rustix::fs::openat(held, c".", Self::FLAGS, Mode::empty()).map(Self::from)
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(Arc::clone(&self.0)))
    }

    /// Opens a directory in it. One whose owner may not read or search it is opened to its owner for as long as it is
    /// held.
    pub(crate) fn child(&self, name: impl AsRef<OsStr>) -> Result<Self, Errno> {
        let name = name.as_ref();
        let open = || rustix::fs::openat(self, name, Self::FLAGS, Mode::empty());
        let directory = match open() {
            Err(Errno::ACCESS) => self.widened(name, 0o700, open)?,
            opened => opened?,
        };
        let mut held = Held { directory, mode: None };
        if !rustix::process::geteuid().is_root() {
            let mode = Node::of(&held.directory)?.mode;
            if mode & 0o500 != 0o500 && rustix::fs::fchmod(&held.directory, Mode::from_raw_mode(mode | 0o700)).is_ok() {
                held.mode = Some(mode);
            }
        }
        Ok(Self(Arc::new(held)))
    }

    /// Opens a directory beneath it; `None` if it is not there, or a link is on the way.
    pub(crate) fn beneath(&self, path: &Path) -> Result<Option<Self>, Errno> {
        let mut at = match self.try_clone() {
            Ok(at) => at,
            Err(_) => return Err(Errno::MFILE),
        };
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(Errno::INVAL);
            };
            at = match at.child(name) {
                Ok(child) => child,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(errno) => return Err(errno),
            };
        }
        Ok(Some(at))
    }

    /// Opens the directory that a path beneath it lies in, with the path's last name.
    pub(crate) fn parent_of<'p>(&self, path: &'p Path) -> Result<Option<(Self, &'p OsStr)>, Errno> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        Ok(self.beneath(parent)?.map(|parent| (parent, name)))
    }

    /// Makes directories until a path beneath it is there, and opens it.
    pub(crate) fn make_all(&self, path: &Path) -> Result<Self, Errno> {
        let mut at = self.try_clone().map_err(|_| Errno::MFILE)?;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(Errno::INVAL);
            };
            match rustix::fs::mkdirat(&at, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            at = at.child(name)?;
        }
        Ok(at)
    }

    /// Looks at a name.
    pub(crate) fn look(&self, name: impl AsRef<OsStr>) -> Result<Option<Node>, Errno> {
        Node::at(self, Path::new(name.as_ref()))
    }

    /// Looks at a path beneath it.
    pub(crate) fn look_beneath(&self, path: &Path) -> Result<Option<Node>, Errno> {
        if path.as_os_str().is_empty() {
            return Node::of(self).map(Some);
        }
        match self.parent_of(path)? {
            Some((parent, name)) => parent.look(name),
            None => Ok(None),
        }
    }

    /// Returns the names in it, sorted by their bytes.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, Errno> {
        // A descriptor of its own, since reading moves the position.
        let own = rustix::fs::openat(self, c".", Self::FLAGS, Mode::empty())?;
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(&own, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens a regular file to read.
    pub(crate) fn read(&self, name: impl AsRef<OsStr>) -> Result<File, Errno> {
        let name = name.as_ref();
        // Without waiting, since somebody may have put a pipe there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(self, name, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::ACCESS) => self.widened(name, 0o400, open)?,
            opened => opened?,
        };
        if Node::of(&opened)?.kind != Kind::File {
            return Err(Errno::INVAL);
        }
        Ok(File::from(opened))
    }

    /// Makes a new file.
    pub(crate) fn create(&self, name: impl AsRef<OsStr>) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(self, name.as_ref(), flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// Reads a link.
    pub(crate) fn read_link(&self, name: impl AsRef<OsStr>) -> Result<PathBuf, Errno> {
        let target = rustix::fs::readlinkat(self, name.as_ref(), Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Reads the first bytes of a regular file.
    pub(crate) fn read_some(&self, name: impl AsRef<OsStr>, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read(name)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a whole file in the place of one that may be there, by rename.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        self.unlink_if_there(&new)?;
        let mut file = self.create(&new)?;
        file.write_all(content)?;
        rustix::fs::renameat(self, &*new, self, name)?;
        Ok(())
    }

    pub(crate) fn unlink_if_there(&self, name: impl AsRef<OsStr>) -> Result<(), Errno> {
        match self.unlink(name.as_ref(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Removes a name, also from a directory whose owner may not write it.
    pub(crate) fn unlink(&self, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
        let unlink = || rustix::fs::unlinkat(self, name, flags);
        match unlink() {
            Err(Errno::ACCESS) => self.opened_up(unlink),
            done => done,
        }
    }

    pub(crate) fn remove_if_empty(&self, name: &OsStr) -> Result<(), Errno> {
        match self.unlink(name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Moves a name to another directory, where nothing has the name.
    pub(crate) fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> Result<(), Errno> {
        self.rename_with(name, to, new, RenameFlags::NOREPLACE)
    }

    /// Lets two names change places.
    pub(crate) fn exchange(&self, name: &OsStr, to: &Self, new: &OsStr) -> Result<(), Errno> {
        self.rename_with(name, to, new, RenameFlags::EXCHANGE)
    }

    fn rename_with(&self, name: &OsStr, to: &Self, new: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
        let go = || rustix::fs::renameat_with(self, name, to, new, flags);
        // A directory that is moved is written to, for its `..`.
        let within = || match self.widened(name, 0o700, go) {
            Err(Errno::ACCESS) if flags == RenameFlags::EXCHANGE => to.widened(new, 0o700, go),
            moved => moved,
        };
        match go() {
            Err(Errno::ACCESS) => match within() {
                // Or the directories that it is moved between are closed.
                Err(Errno::ACCESS) => self.opened_up(|| {
                    to.opened_up(|| match go() {
                        Err(Errno::ACCESS) => within(),
                        moved => moved,
                    })
                }),
                moved => moved,
            },
            moved => moved,
        }
    }

    /// Does something while its owner may change what is in it.
    fn opened_up<T>(&self, act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let mode = Node::of(self)?.mode;
        if mode & 0o700 == 0o700 {
            return act();
        }
        rustix::fs::fchmod(self, Mode::from_raw_mode(mode | 0o700))?;
        let done = act();
        rustix::fs::fchmod(self, Mode::from_raw_mode(mode))?;
        done
    }

    /// Does something while the owner's rights of a name are wider.
    fn widened<T>(&self, name: &OsStr, more: u32, act: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(self, name, flags, Mode::empty())?;
        let node = Node::of(&held)?;
        if !matches!(node.kind, Kind::File | Kind::Directory) || node.mode & more == more {
            return Err(Errno::ACCESS);
        }
        let place = place_of(held.as_fd());
        let set = |mode: u32| rustix::fs::chmod(&place, Mode::from_raw_mode(mode));
        set(node.mode | more)?;
        let done = act();
        set(node.mode)?;
        done
    }

    /// Sets the mode of a file or directory.
    pub(crate) fn set_mode(&self, name: impl AsRef<OsStr>, mode: u32) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(self, name.as_ref(), flags, Mode::empty())?;
        if Node::of(&held)?.kind == Kind::Symlink {
            return Err(Errno::LOOP);
        }
        rustix::fs::chmod(place_of(held.as_fd()), Mode::from_raw_mode(mode))
    }

    /// Sets the mode of a path beneath it, if it is there.
    pub(crate) fn set_mode_beneath(&self, path: &Path, mode: u32) -> Result<(), Errno> {
        match self.parent_of(path)? {
            Some((parent, name)) => parent.set_mode(name, mode),
            None => Ok(()),
        }
    }

    /// Sets when a name was read and modified last.
    pub(crate) fn set_times(&self, name: impl AsRef<OsStr>, accessed: i128, modified: i128) -> Result<(), Errno> {
        let times = timestamps(accessed, modified);
        rustix::fs::utimensat(self, name.as_ref(), &times, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Removes everything below a name, and the name. Nothing there is success.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), Errno> {
        self.remove_some(name, &mut usize::MAX.clone())
    }

    /// The same, of `most` names, of which those that were removed are subtracted: [`Errno::INPROGRESS`] if there are more.
    pub(crate) fn remove_some(&self, name: impl AsRef<OsStr>, most: &mut usize) -> Result<(), Errno> {
        let name = name.as_ref();
        match self.look(name)? {
            None => Ok(()),
            Some(node) if !node.is_directory() => self.unlink_if_there(name),
            Some(_) => {
                // What nests too deep comes to the top and is removed from there.
                let mut deep = vec![name.to_owned()];
                while let Some(name) = deep.pop() {
                    self.empty_out(&name, self, LEVELS, &mut deep, most)?;
                }
                Ok(())
            }
        }
    }

    fn empty_out(
        &self,
        name: &OsStr,
        top: &Self,
        levels: usize,
        deep: &mut Vec<OsString>,
        most: &mut usize,
    ) -> Result<(), Errno> {
        if levels == 0 {
            let moved = moved_name()?;
            self.rename(name, top, &moved)?;
            deep.push(moved);
            return Ok(());
        }
        // Somebody else may remove it as well.
        let inside = match self.child(name) {
            Err(Errno::NOENT) => return Ok(()),
            inside => inside?,
        };
        if Node::of(&inside)?.mode & 0o300 != 0o300 {
            rustix::fs::fchmod(&inside, Mode::RWXU)?;
        }
        for entry in inside.names()? {
            *most = most.checked_sub(1).ok_or(Errno::INPROGRESS)?;
            match rustix::fs::unlinkat(&inside, &*entry, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => inside.empty_out(&entry, top, levels - 1, deep, most)?,
                Err(errno) => return Err(errno),
            }
        }
        match rustix::fs::unlinkat(self, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    /// Whether a name is an overlay's mark that nothing is there.
    pub(crate) fn is_whiteout(&self, name: &OsStr, node: &Node) -> bool {
        if node.is_zero_device {
            return true;
        }
        node.kind == Kind::File && node.size == 0 && self.mark(name, "whiteout").is_some()
    }

    /// Whether an overlay's directory hides what lies below it.
    pub(crate) fn is_opaque(&self) -> bool {
        let mut value = [0_u8; 8];
        matches!(rustix::fs::fgetxattr(self, "user.overlay.opaque", &mut value), Ok(count) if value.get(..count) == Some(b"y"))
    }

    /// Has an overlay's directory hide what lies below it.
    pub(crate) fn make_opaque(&self, name: &OsStr) -> Result<(), Errno> {
        let child = self.child(name)?;
        let set = || rustix::fs::fsetxattr(&child, "user.overlay.opaque", b"y", XattrFlags::empty());
        match set() {
            Err(Errno::ACCESS) => self.widened(name, 0o700, set),
            set => set,
        }
    }

    fn mark(&self, name: &OsStr, mark: &str) -> Option<Vec<u8>> {
        let mut value = [0_u8; 64];
        let count = rustix::fs::lgetxattr(self.place(name), format!("{MARKS}{mark}"), &mut value).ok()?;
        value.get(..count).map(<[u8]>::to_vec)
    }

    /// Removes an overlay's marks from a file, a directory or a link.
    pub(crate) fn unmark(&self, name: &OsStr) -> Result<(), Errno> {
        let place = self.place(name);
        for attribute in attributes(&place)? {
            if attribute.as_bytes().starts_with(MARKS.as_bytes()) {
                let remove = || rustix::fs::lremovexattr(&place, &*attribute);
                let removed = match remove() {
                    Err(Errno::ACCESS) => self.widened(name, 0o600, remove),
                    removed => removed,
                };
                match removed {
                    Ok(()) | Err(Errno::NODATA) => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(())
    }

    /// A path that names an entry of this directory, which is held.
    fn place(&self, name: impl AsRef<OsStr>) -> PathBuf {
        place_of(self.as_fd()).join(name.as_ref())
    }

    /// Copies a node that is no directory, or makes an empty directory like it, under a name that is free: its
    /// content with its holes, its mode, times, attributes and, as root, its owner, and not an overlay's marks.
    pub(crate) fn copy(&self, name: &OsStr, node: &Node, to: &Self, new: &OsStr) -> io::Result<()> {
        match node.kind {
            Kind::File => {
                let from = self.read(name)?;
                let made = to.create(new)?;
                write_over(&from, &made)?;
                copy_attributes(&place_of(from.as_fd()), &place_of(made.as_fd()))?;
                rustix::fs::fchmod(&made, Mode::from_raw_mode(node.mode))?;
                let node = Node::of(&from)?;
                rustix::fs::futimens(&made, &timestamps(node.accessed, node.modified))?;
            }
            Kind::Directory => {
                rustix::fs::mkdirat(to, new, Mode::RWXU)?;
                copy_attributes(&self.place(name), &to.place(new))?;
                to.set_mode(new, node.mode)?;
            }
            Kind::Symlink => {
                rustix::fs::symlinkat(self.read_link(name)?, to, new)?;
                to.set_times(new, node.accessed, node.modified)?;
            }
            Kind::Fifo => {
                rustix::fs::mkfifoat(to, new, Mode::RUSR | Mode::WUSR)?;
                to.set_mode(new, node.mode)?;
            }
            // A socket is of no use without the program that listens at it, and a device cannot have been made.
            Kind::Socket | Kind::Device => return Err(Errno::OPNOTSUPP.into()),
        }
        if rustix::process::geteuid().is_root()
            && let Some(owner) = self.owner_of(name)?
        {
            to.give(new, owner, node)?;
        }
        Ok(())
    }

    /// Makes an overlay's mark that nothing is there.
    pub(crate) fn white_out(&self, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::mknodat(self, name, rustix::fs::FileType::CharacterDevice, Mode::empty(), 0)
    }

    /// Returns the owner and the group of a name, if it is there.
    pub(crate) fn owner_of(&self, name: &OsStr) -> Result<Option<(Uid, Gid)>, Errno> {
        match rustix::fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some((Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid)))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns its own owner and group.
    pub(crate) fn owner(&self) -> Result<(Uid, Gid), Errno> {
        let found = rustix::fs::fstat(self)?;
        Ok((Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid)))
    }

    /// Gives a name this owner and group, unless it has them, or nobody can give them to it: in a namespace without this
    /// user, for one. Its mode stays, for which this is `node`.
    pub(crate) fn give(&self, name: &OsStr, owner: (Uid, Gid), node: &Node) -> Result<(), Errno> {
        if self.owner_of(name)? == Some(owner) {
            return Ok(());
        }
        let (user, group) = owner;
        let given = rustix::fs::chownat(self, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
        // The kernel takes set-id bits with the owner.
        let given = given.and_then(|()| match node.kind {
            Kind::Symlink => Ok(()),
            _ => self.set_mode(name, node.mode),
        });
        match given {
            Err(Errno::PERM | Errno::INVAL) => Ok(()),
            done => done,
        }
    }

    /// Copies the attributes of the file of this name in `from` to the file of this name here, which has this mode.
    pub(crate) fn take_attributes(&self, name: &OsStr, from: &Self, mode: u32) -> io::Result<()> {
        if from.attributes_of(name)?.is_empty() {
            return Ok(());
        }
        let place = from.read(name)?;
        let own = self.read(name)?;
        // Attributes are written by whoever may write the file.
        self.set_mode(name, mode | 0o600)?;
        let copied = copy_attributes(&place_of(place.as_fd()), &place_of(own.as_fd()));
        self.set_mode(name, mode)?;
        copied
    }

    /// Whether two files have the same attributes, an overlay's marks aside.
    pub(crate) fn has_same_attributes(&self, name: &OsStr, other: &Self) -> io::Result<bool> {
        Ok(self.attributes_of(name)? == other.attributes_of(name)?)
    }

    /// The attributes of a node in the order of their names, an overlay's marks aside.
    pub(crate) fn attributes_of(&self, name: &OsStr) -> io::Result<Vec<(OsString, Vec<u8>)>> {
        let place = self.place(name);
        let mut names = attributes(&place)?;
        names.retain(|name| !name.as_bytes().starts_with(MARKS.as_bytes()));
        names.sort_unstable();
        let mut value = Vec::new();
        let valued = names.into_iter().map(|name| {
            value.resize(64 * 1024, 0);
            let count = rustix::fs::lgetxattr(&place, &*name, &mut value)?;
            Ok((name, value.get(..count).unwrap_or_default().to_vec()))
        });
        valued.collect()
    }

    /// Whether two nodes have the same content.
    pub(crate) fn has_same_content(&self, name: &OsStr, other: &Self, kind: Kind) -> io::Result<bool> {
        match kind {
            Kind::File => same(&self.read(name)?, &other.read(name)?),
            Kind::Symlink => Ok(self.read_link(name)? == other.read_link(name)?),
            Kind::Directory | Kind::Fifo | Kind::Socket | Kind::Device => Ok(true),
        }
    }
}

/// A name that nobody has, also if another removal was broken off.
fn moved_name() -> Result<OsString, Errno> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!(".moved-up-{:016x}", u64::from_ne_bytes(bytes)).into())
}

/// A name for what is held.
fn place_of(held: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

fn timestamps(accessed: i128, modified: i128) -> Timestamps {
    let of = |time: i128| Timespec {
        tv_sec: i64::try_from(time.div_euclid(1_000_000_000)).unwrap_or_default(),
        tv_nsec: time.rem_euclid(1_000_000_000) as _,
    };
    Timestamps {
        last_access: of(accessed),
        last_modification: of(modified),
    }
}

/// Returns the names of a node's attributes that carry over: the user's own, and access lists.
fn attributes(place: &Path) -> Result<Vec<OsString>, Errno> {
    let mut list = vec![0_u8; 1024];
    let count = loop {
        match rustix::fs::llistxattr(place, &mut list) {
            Ok(count) => break count,
            Err(Errno::RANGE) if list.len() < 64 * 1024 => list.resize(64 * 1024, 0),
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        }
    };
    let names = list.get(..count).unwrap_or_default().split(|byte| *byte == 0);
    let carried = |name: &&[u8]| name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_");
    Ok(names
        .filter(carried)
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect())
}

/// `/proc/self/fd/N` is a link, and the calls with `l` do not follow: so the attributes of what is open are reached by
/// the calls that do.
fn copy_attributes(from: &Path, to: &Path) -> io::Result<()> {
    let mut list = vec![0_u8; 1024];
    let count = loop {
        match rustix::fs::listxattr(from, &mut list) {
            Ok(count) => break count,
            Err(Errno::RANGE) if list.len() < 64 * 1024 => list.resize(64 * 1024, 0),
            Err(Errno::OPNOTSUPP) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    };
    for name in list.get(..count).unwrap_or_default().split(|byte| *byte == 0) {
        let carried =
            name.starts_with(b"user.") && !name.starts_with(MARKS.as_bytes()) || name.starts_with(b"system.posix_acl_");
        if !carried {
            continue;
        }
        let mut value = vec![0_u8; 64 * 1024];
        let count = rustix::fs::getxattr(from, name, &mut value)?;
        rustix::fs::setxattr(to, name, value.get(..count).unwrap_or_default(), XattrFlags::empty())?;
    }
    Ok(())
}

/// Gives a file the content of another, with its holes.
pub(crate) fn write_over(from: &File, to: &File) -> io::Result<()> {
    let size = Node::of(from)?.size;
    let mut at = 0;
    while at < size {
        let start = next_data(from, at)?.map_or(size, |start| start.min(size));
        let there = Node::of(to)?.size;
        if start > at && there > at {
            let zeros = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match rustix::fs::fallocate(to, zeros, at, start.min(there) - at) {
                // Zeros are written, of what was no hole.
                Err(Errno::OPNOTSUPP) => copy_range(from, to, at, start.min(there))?,
                punched => punched?,
            }
        }
        if start == size {
            break;
        }
        let end = rustix::fs::seek(from, SeekFrom::Hole(start)).unwrap_or(size).min(size);
        copy_range(from, to, start, end)?;
        at = end.max(start + 1);
    }
    to.set_len(size)
}

/// Copies a part of a file to the same place in another.
fn copy_range(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    let (mut at, mut write_at) = (start, start);
    let mut buffer = Vec::new();
    while at < end {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX).min(1 << 30);
        if buffer.is_empty() {
            match rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut write_at), left) {
                Ok(0) => break,
                Ok(_) => continue,
                // Between file systems that do not help each other.
                Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => buffer.resize(BUFFER, 0),
                Err(errno) => return Err(errno.into()),
            }
        }
        let room = left.min(buffer.len());
        let part = buffer.get_mut(..room).unwrap_or_default();
        let count = from.read_at(part, at)?;
        if count == 0 {
            break;
        }
        to.write_all_at(part.get(..count).unwrap_or_default(), at)?;
        at += count as u64;
        write_at = at;
    }
    Ok(())
}

/// Where a file has data at or after a position; nothing if there are only holes up to its end. A file system that knows of
/// no holes has data everywhere.
pub(crate) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => Ok(Some(start.max(at))),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether two files have the same content. What is a hole in both is not read: it may be longer than could ever be.
fn same(one: &File, other: &File) -> io::Result<bool> {
    let size = Node::of(one)?.size;
    if size != Node::of(other)?.size {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0_u8; BUFFER], vec![0_u8; BUFFER]);
    let mut at = 0;
    while at < size {
        at = match (next_data(one, at)?, next_data(other, at)?) {
            (None, None) => break,
            (Some(start), None) | (None, Some(start)) => start,
            (Some(left), Some(right)) => left.min(right),
        };
        let count = fill(one, &mut left, at)?;
        if count != fill(other, &mut right, at)? || left.get(..count) != right.get(..count) {
            return Ok(false);
        }
        if count == 0 {
            break;
        }
        at += count as u64;
    }
    Ok(true)
}

/// Reads from a position until the buffer is full or the file ends.
pub(crate) fn fill(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
