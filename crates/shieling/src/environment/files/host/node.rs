//! Something that is there: looked at, read and listed by its handle.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::super::{Content, Entry, FileError, Kind, Meta, Node};
use super::error::refused;
use super::resolve::check_name;
use super::stat::{Stat, hold, kind_of};
use super::view::{Handle, View, reopen};

/// The owner's permission to read.
const READ: u32 = 0o400;
/// The owner's permission to reach what is in a directory.
const SEARCH: u32 = 0o100;

/// How much of a directory is read at once, in bytes.
const LISTING: usize = 32 * 1024;

/// Something that is there.
#[derive(Debug)]
pub(super) struct HostNode {
    view: Arc<View>,
    handle: Handle,
}

impl HostNode {
    pub(super) fn new(view: Arc<View>, handle: Handle) -> Self {
        Self { view, handle }
    }

    fn said(&self, doing: &'static str) -> impl Fn(Errno) -> FileError {
        move |errno| refused(errno, doing, &self.handle.path)
    }

    fn check_directory(&self) -> Result<(), FileError> {
        match self.handle.stat.kind() {
            Kind::Directory => Ok(()),
            Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => {
                Err(FileError::NotADirectory(self.handle.path.clone()))
            }
        }
    }
}

impl Node for HostNode {
    fn path(&self) -> &Path {
        &self.handle.path
    }

    fn meta(&self) -> Result<Meta, FileError> {
        Ok(Stat::at(&self.handle.file).map_err(self.said("look at"))?.meta())
    }

    fn open(&self) -> Result<Box<dyn Content>, FileError> {
        let _dropped = self.view.drop_caps_over(&self.handle.stat, READ)?;
        check_file(&self.handle.stat, &self.handle.path)?;
        // The very file whose kind was looked at, so that there is nothing to look at again.
        let file = reopen(&self.handle.file, OFlags::RDONLY).map_err(self.said("open"))?;
        Ok(Box::new(HostContent {
            file,
            path: self.handle.path.clone(),
        }))
    }

    fn entries(&self) -> Result<Vec<Entry>, FileError> {
        let _dropped = self.view.drop_caps_over(&self.handle.stat, READ)?;
        self.check_directory()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = reopen(&self.handle.file, flags).map_err(self.said("list"))?;
        let mut entries = list(&directory).map_err(self.said("list"))?;
        if self.view.hides() {
            // Its name stands in the directory all the same; what is reached by it is a cover.
            entries.retain(|entry| {
                let stat = Stat::in_directory(&self.handle.file, &entry.name);
                !stat.is_ok_and(|stat| self.view.is_cover(&stat))
            });
        }
        Ok(entries)
    }

    fn child(&self, name: &OsStr) -> Result<Box<dyn Node>, FileError> {
        let _dropped = self.view.drop_caps_over(&self.handle.stat, SEARCH)?;
        self.check_directory()?;
        check_name(name, &self.handle.path)?;
        let path = self.handle.path.join(name);
        let held = hold(&self.handle.file, name).map_err(|errno| refused(errno, "look at", &path))?;
        let Some((file, stat)) = held else {
            return Err(FileError::NotFound(path));
        };
        self.view.check_kept(&file, &stat, &path)?;
        let handle = Handle { file, path, stat };
        Ok(Box::new(Self::new(Arc::clone(&self.view), handle)))
    }

    fn child_meta(&self, name: &OsStr) -> Result<Meta, FileError> {
        let _dropped = self.view.drop_caps_over(&self.handle.stat, SEARCH)?;
        self.check_directory()?;
        check_name(name, &self.handle.path)?;
        match Stat::in_directory(&self.handle.file, name) {
            Ok(stat) if stat.device() == self.handle.stat.device() && !self.view.is_cover(&stat) => Ok(stat.meta()),
            // What lies over something hidden, another file system, and why not: with the words of all that.
            Ok(_) | Err(_) => self.child(name)?.meta(),
        }
    }

    fn open_child(&self, name: &OsStr) -> Result<Box<dyn Content>, FileError> {
        let _dropped = self.view.drop_caps_over(&self.handle.stat, SEARCH)?;
        self.check_directory()?;
        check_name(name, &self.handle.path)?;
        let path = self.handle.path.join(name);
        let opened = || {
            let file = open_at(&self.handle.file, name)?;
            let stat = Stat::at(&file)?;
            Ok((file, stat))
        };
        let opened = match opened() {
            Ok((file, stat)) if self.view.may_anyway(&stat, READ) => Ok((file, stat)),
            Err(errno) => Err(errno),
            // It was opened, maybe with more power than is to be used: that says nothing yet.
            Ok(_) => {
                let _dropped = self.view.drop_caps()?;
                opened()
            }
        };
        let (file, stat) = match opened {
            Ok(opened) => opened,
            // A link, or what lies over a hidden file; or a socket, which cannot be opened.
            Err(Errno::LOOP | Errno::NXIO) => return self.child(name)?.open(),
            Err(errno) => return Err(refused(errno, "open", &path)),
        };
        self.view.check_kept(&file, &stat, &path)?;
        check_file(&stat, &path)?;
        Ok(Box::new(HostContent { file, path }))
    }

    fn target(&self) -> Result<PathBuf, FileError> {
        let target = rustix::fs::readlinkat(&self.handle.file, c"", Vec::new()).map_err(|errno| match errno {
            Errno::NOENT | Errno::INVAL => FileError::BadPath {
                path: self.handle.path.clone(),
                why: "it is not a link",
            },
            errno => refused(errno, "read", &self.handle.path),
        })?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }
}

/// Opens what stands at a name in a directory to be read, and neither follows a link nor waits.
fn open_at(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, Path::new(name), flags, Mode::empty())
}

/// Whether this is a regular file.
fn check_file(stat: &Stat, path: &Path) -> Result<(), FileError> {
    let path = path.to_path_buf();
    match stat.kind() {
        Kind::File => Ok(()),
        Kind::Directory => Err(FileError::IsDirectory(path)),
        // Only one that was meant itself, or came to stand here meanwhile.
        Kind::Link => Err(FileError::LinkLoop(path)),
        kind @ (Kind::Fifo | Kind::Socket | Kind::Device) => Err(FileError::Special { path, kind }),
    }
}

/// What is in an open directory, but for `.` and `..`.
pub(super) fn list(directory: &OwnedFd) -> Result<Vec<Entry>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); LISTING];
    let mut listing = RawDir::new(directory, &mut buffer);
    let mut entries = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system tells it here.
            FileType::Unknown => match Stat::in_directory(directory, name) {
                Ok(stat) => stat.kind(),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            kind => kind_of(kind),
        };
        entries.push(Entry {
            name: name.to_owned(),
            kind,
        });
    }
    Ok(entries)
}

/// An open file.
#[derive(Debug)]
struct HostContent {
    file: OwnedFd,
    path: PathBuf,
}

impl Content for HostContent {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..)
            && !rest.is_empty()
        {
            match rustix::io::pread(&self.file, rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                // Beyond the largest offset that there is, nothing is.
                Err(Errno::INVAL) if offset > i64::MAX.cast_unsigned() => break,
                Err(errno) => return Err(refused(errno, "read", &self.path)),
            }
        }
        Ok(filled)
    }

    fn meta(&self) -> Result<Meta, FileError> {
        let stat = Stat::at(&self.file).map_err(|errno| refused(errno, "look at", &self.path))?;
        Ok(stat.meta())
    }
}
