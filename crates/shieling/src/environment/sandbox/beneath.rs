//! A directory that is held, and what stands beneath it, reached without following a link.
//!
//! Commands write beneath it, and can lay a link to anything of the host at any place, at any time. So
//! nothing is looked at or moved by a path of the host: from the held directory a name is resolved
//! beneath it (`RESOLVE_BENEATH`, no link, also none on the way), and a move names its two ends by single
//! names in one directory that is held by then. It copies nothing and removes nothing.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

/// How many names are tried for what is moved aside: the first few are readable, the rest are random.
const NAMES: usize = 32;
const READABLE: usize = 16;

/// How many entries of a directory are looked at to see that there are no others.
const ENTRIES: usize = 1_000;

/// The numbers of a device and of a file on it.
pub(super) type File = (u64, u64);

/// A held directory.
#[derive(Debug)]
pub(super) struct Beneath {
    path: PathBuf,
    directory: OwnedFd,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stands {
    /// Nothing.
    Nothing,
    /// This file or directory, or a link as such.
    There(File),
    /// Not known: on the way to it this is a link.
    BehindLink(PathBuf),
    /// Not known: the kernel does not say.
    Closed(Errno),
}

impl Beneath {
    /// Holds a directory by its absolute path, without a link on the way.
    pub(super) fn hold(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        Ok(Self {
            path: path.to_path_buf(),
            directory,
        })
    }

    /// Whether an absolute path is it, or lies beneath it.
    pub(super) fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.path)
    }

    /// What stands at an absolute path beneath it.
    pub(super) fn look(&self, path: &Path) -> Stands {
        let found = self
            .open(path, OFlags::PATH | OFlags::NOFOLLOW)
            .and_then(|found| rustix::fs::fstat(&found));
        match found {
            Ok(stat) => Stands::There((stat.st_dev, stat.st_ino)),
            Err(Errno::NOENT | Errno::NOTDIR) => Stands::Nothing,
            Err(Errno::LOOP) => self.link_above(path).map_or(Stands::Nothing, Stands::BehindLink),
            Err(errno) => Stands::Closed(errno),
        }
    }

    /// Whether a real directory stands at a path in which every name is allowed.
    pub(super) fn has_only(&self, path: &Path, allowed: impl Fn(&[u8]) -> bool) -> bool {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let Ok(entries) = self.open(path, flags).and_then(rustix::fs::Dir::read_from) else {
            return false;
        };
        for (count, entry) in entries.enumerate() {
            let fine = entry.is_ok_and(|entry| {
                let name = entry.file_name().to_bytes();
                name == b"." || name == b".." || allowed(name)
            });
            if !fine || count > ENTRIES {
                return false;
            }
        }
        true
    }

    /// Moves what stands at a path to a free name beside it, `NAME.held-back`; nothing if nothing stands
    /// there. In one step, whatever and however much it is; a link is moved as such.
    ///
    /// # Errors
    /// What the kernel says; then everything is where it was.
    pub(super) fn move_aside(&self, path: &Path) -> Result<Option<PathBuf>, Errno> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let moving = || {
            let directory = self.open(above, OFlags::PATH | OFlags::DIRECTORY)?;
            move_in(&directory, name)
        };
        let moved = match moving() {
            // A command may take its own directory's permissions away. They come back as they were.
            Err(Errno::ACCESS | Errno::PERM) => {
                let _opened = self.opened_for_owner(above)?;
                moving()
            }
            moved => moved,
        };
        match moved {
            Ok(aside) => Ok(aside.map(|name| path.with_file_name(name))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let beneath = path.strip_prefix(&self.path).map_err(|_| Errno::XDEV)?;
        let beneath = if beneath.as_os_str().is_empty() {
            Path::new(".")
        } else {
            beneath
        };
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.directory, beneath, flags | OFlags::CLOEXEC, Mode::empty(), how)
    }

    /// The first link on the way to a path.
    fn link_above(&self, path: &Path) -> Option<PathBuf> {
        let mut above: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|above| self.contains(above))
            .collect();
        above.reverse();
        let is_link = |above: &&&Path| {
            let found = self.open(above, OFlags::PATH | OFlags::NOFOLLOW);
            let stat = found.and_then(|found| rustix::fs::fstat(&found));
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        above.iter().find(is_link).map(|above| above.to_path_buf())
    }

    /// Lets the owner, as whom we run, into each directory on the way, until the answer is dropped.
    fn opened_for_owner(&self, path: &Path) -> Result<Vec<Opened>, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut here = rustix::fs::openat(&self.directory, c".", flags, Mode::empty())?;
        let mut opened = Vec::new();
        let names = path.strip_prefix(&self.path).map_err(|_| Errno::XDEV)?.components();
        for name in names.map(Component::as_os_str) {
            let next = Opened::make(&here).and_then(|changed| {
                opened.extend(changed);
                rustix::fs::openat(&here, Path::new(name), flags, Mode::empty())
            })?;
            here = next;
        }
        opened.extend(Opened::make(&here)?);
        Ok(opened)
    }
}

/// A directory whose owner has been let in.
struct Opened {
    directory: OwnedFd,
    before: Mode,
}

impl Opened {
    fn make(directory: &OwnedFd) -> Result<Option<Self>, Errno> {
        let mode = rustix::fs::fstat(directory)?.st_mode & 0o7777;
        if mode & 0o700 == 0o700 {
            return Ok(None);
        }
        let directory = directory.try_clone().map_err(|_| Errno::MFILE)?;
        // By what is held: a descriptor without effect takes no `fchmod`.
        rustix::fs::chmod(own_link(&directory), Mode::from_raw_mode(mode | 0o700))?;
        Ok(Some(Self {
            directory,
            before: Mode::from_raw_mode(mode),
        }))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = rustix::fs::chmod(own_link(&self.directory), self.before);
    }
}

fn own_link(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Moves one name of a directory to a free one; nothing if it is not there.
fn move_in(directory: &OwnedFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    let name = Path::new(name);
    for number in 0..NAMES {
        let mut aside = name.as_os_str().to_owned();
        aside.push(".held-back");
        if number >= READABLE {
            aside.push(format!("-{:016x}", RandomState::new().hash_one(number)));
        } else if number > 0 {
            aside.push(format!("-{}", number + 1));
        }
        let aside = PathBuf::from(aside);
        let moved = match rustix::fs::renameat_with(directory, name, directory, &aside, RenameFlags::NOREPLACE) {
            // A file system that cannot be told so. Nothing of the user's has this name.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match rustix::fs::statat(directory, &aside, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => rustix::fs::renameat(directory, name, directory, &aside),
                    Ok(_) => Err(Errno::EXIST),
                    Err(errno) => Err(errno),
                }
            }
            moved => moved,
        };
        match moved {
            Ok(()) => return Ok(Some(aside)),
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}
