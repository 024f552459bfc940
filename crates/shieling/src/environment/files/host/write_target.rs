//! A write target on this host: a name in a directory that is held open.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::super::{Expect, FileError, Kind, Links, Meta, Node, WriteTarget};
use super::error::refused;
use super::node::HostNode;
use super::resolve::Located;
use super::stat::{Stat, hold};
use super::view::{Handle, View, own_link};

/// What a file gets beside its content.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given<'a> {
    /// What the one has that it replaces, or what every new file gets.
    Plain,
    /// The same, and whoever may read a new one may run it.
    Executable,
    /// The permissions and the time that a file had.
    Was(&'a Meta),
}

/// A name in a directory.
#[derive(Debug)]
pub(super) struct HostWriteTarget {
    pub(super) view: Arc<View>,
    /// The deepest directory on the way that was there, and where it was.
    directory: OwnedFd,
    above: PathBuf,
    /// What was missing beneath it, before the name.
    missing: Vec<OsString>,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
    /// Whether a link was meant that stands here.
    pub(super) links: Links,
}

impl HostWriteTarget {
    /// Where something would be put that is to stand at a path.
    pub(super) fn find(view: &Arc<View>, asked: &Path, links: Links) -> Result<Self, FileError> {
        let (directory, mut names) = match view.locate(asked, links)? {
            Located::Missing { directory, names } => (directory, names),
            Located::There(handle) => Self::holder(view, &handle, asked)?,
        };
        let path = directory.path.join(names.iter().collect::<PathBuf>());
        let Some(name) = names.pop() else {
            return Err(FileError::NotFound(asked.to_path_buf()));
        };
        Ok(Self {
            view: Arc::clone(view),
            directory: directory.file,
            above: directory.path,
            missing: names,
            name,
            path,
            links,
        })
    }

    /// The directory that holds something, and its name in it.
    fn holder(view: &View, handle: &Handle, asked: &Path) -> Result<(Handle, Vec<OsString>), FileError> {
        let (Some(parent), Some(name)) = (handle.path.parent(), handle.path.file_name()) else {
            return Err(top(asked));
        };
        if view.is_top(&handle.path) {
            return Err(top(asked));
        }
        // What was a directory without a link on the way a moment ago is one now, or it is refused.
        let flags = OFlags::DIRECTORY;
        let found = view
            .resolve(parent, flags, ResolveFlags::NO_SYMLINKS)
            .map_err(|errno| match errno {
                Errno::NOENT | Errno::NOTDIR | Errno::LOOP => FileError::Changed(asked.to_path_buf()),
                errno => refused(errno, "reach", asked),
            })?;
        let directory = view.admit(found, asked)?;
        let directory = directory.ok_or_else(|| FileError::Changed(asked.to_path_buf()))?;
        Ok((directory, vec![name.to_owned()]))
    }

    /// The directory of the name, if it is there.
    pub(super) fn reach(&self) -> Result<Option<OwnedFd>, FileError> {
        self.check_at(&self.directory, &self.above)?;
        let mut directory = self.directory.try_clone().map_err(|source| self.io("reach", source))?;
        for name in &self.missing {
            match self.enter(&directory, name)? {
                Some(next) => directory = next,
                None => return Ok(None),
            }
        }
        Ok(Some(directory))
    }

    /// Whether the directory of the name is where it was when its path was judged. Who moves it away has
    /// what is written to it land elsewhere: outside, or where a policy says otherwise. No call of the
    /// kernel compares and writes at once, so this is asked just before a change, and again after it.
    ///
    /// # Errors
    /// [`FileError::Changed`].
    pub(super) fn check_place(&self, directory: &OwnedFd) -> Result<(), FileError> {
        self.check_at(directory, self.path.parent().unwrap_or(Path::new("/")))
    }

    /// Whether a path, with no link in it, leads to this very directory.
    fn check_at(&self, directory: &OwnedFd, path: &Path) -> Result<(), FileError> {
        let flags = OFlags::DIRECTORY;
        // Not by the path that the kernel tells of a descriptor: of one that has left its mount it tells
        // another file system's.
        let found = self.view.resolve(path, flags, ResolveFlags::NO_SYMLINKS);
        let same = found.and_then(|found| Ok(Stat::at(&found)?.identity() == Stat::at(directory)?.identity()));
        match same {
            Ok(true) => Ok(()),
            Ok(false) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(FileError::Changed(self.path.clone())),
            Err(errno) => Err(self.said("reach")(errno)),
        }
    }

    /// A directory in a directory. No link is followed.
    fn enter(&self, directory: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, FileError> {
        let Some((next, stat)) = hold(directory, name).map_err(self.said("reach"))? else {
            return Ok(None);
        };
        self.view.check_kept(&next, &stat, &self.path)?;
        match stat.kind() {
            Kind::Directory => Ok(Some(next)),
            // It was not there when the path was judged, and leads elsewhere.
            Kind::Link => Err(FileError::Changed(self.path.clone())),
            Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => Err(FileError::NotADirectory(self.path.clone())),
        }
    }

    /// The directory of the name, made with those before it that are missing. Those that were made are
    /// removed again with the answer, unless it is told to keep them.
    pub(super) fn make_directories(&self) -> Result<Made, FileError> {
        self.check_at(&self.directory, &self.above)?;
        let directory = self.directory.try_clone().map_err(|source| self.io("reach", source))?;
        let mut made = Made {
            directory,
            new: Vec::new(),
        };
        for name in &self.missing {
            let mode = Mode::from_raw_mode(0o777);
            let new = match rustix::fs::mkdirat(&made.directory, Path::new(name), mode) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(self.said("make directories for")(errno)),
            };
            let Some(next) = self.enter(&made.directory, name)? else {
                return Err(FileError::Changed(self.path.clone()));
            };
            let before = std::mem::replace(&mut made.directory, next);
            if new {
                made.new.push((before, name.clone()));
            }
        }
        Ok(made)
    }

    /// What stands at the name, held, if something does: nothing hidden, and nothing of the kernel's.
    pub(super) fn held(&self, directory: &OwnedFd) -> Result<Option<(OwnedFd, Stat)>, FileError> {
        let held = hold(directory, &self.name).map_err(self.said("look at"))?;
        if let Some((file, stat)) = &held {
            self.view.check_kept(file, stat, &self.path)?;
        }
        Ok(held)
    }

    /// Whether the name may be given to something else, or to nothing.
    pub(super) fn check_free(&self, stat: &Stat) -> Result<(), FileError> {
        if stat.is_mounted() {
            return Err(FileError::ReadOnly(self.path.clone()));
        }
        Ok(())
    }

    /// Whether what stands at the name may be moved or removed. What is mounted there may be writable, and still not.
    pub(super) fn check_movable(&self, stat: &Stat) -> Result<(), FileError> {
        if stat.is_mounted() {
            return Err(FileError::Fixed(self.path.clone()));
        }
        Ok(())
    }

    pub(super) fn said(&self, doing: &'static str) -> impl Fn(Errno) -> FileError {
        move |errno| refused(errno, doing, &self.path)
    }

    fn io(&self, doing: &'static str, source: std::io::Error) -> FileError {
        FileError::Io {
            doing,
            path: self.path.clone(),
            source,
        }
    }
}

fn top(asked: &Path) -> FileError {
    FileError::BadPath {
        path: asked.to_path_buf(),
        why: "it is the top of all that can be reached, and is neither replaced nor removed",
    }
}

impl WriteTarget for HostWriteTarget {
    fn path(&self) -> &Path {
        &self.path
    }

    fn current(&self) -> Result<Option<Box<dyn Node>>, FileError> {
        let _dropped = self.view.drop_caps()?;
        let Some(directory) = self.reach()? else {
            return Ok(None);
        };
        let node = |(file, stat)| {
            let path = self.path.clone();
            Box::new(HostNode::new(Arc::clone(&self.view), Handle { file, path, stat })) as Box<dyn Node>
        };
        Ok(self.held(&directory)?.map(node))
    }

    fn replace(&self, content: &[u8], executable: bool, expect: Expect) -> Result<(), FileError> {
        let _dropped = self.view.drop_caps()?;
        self.view.check_writable(&self.path)?;
        let given = if executable { Given::Executable } else { Given::Plain };
        self.write(content, given, expect)
    }

    fn restore(&self, content: &[u8], was: &Meta, expect: Expect) -> Result<(), FileError> {
        let _dropped = self.view.drop_caps()?;
        self.view.check_writable(&self.path)?;
        self.write(content, Given::Was(was), expect)
    }

    fn set_mode(&self, mode: u32) -> Result<(), FileError> {
        let _dropped = self.view.drop_caps()?;
        self.view.check_writable(&self.path)?;
        let not_found = || FileError::NotFound(self.path.clone());
        let directory = self.reach()?.ok_or_else(not_found)?;
        let (file, stat) = self.held(&directory)?.ok_or_else(not_found)?;
        self.check_free(&stat)?;
        if stat.kind() != Kind::File {
            return Err(FileError::Changed(self.path.clone()));
        }
        // By the descriptor: a link that takes the name meanwhile is not followed.
        let give = |mode| {
            rustix::fs::chmodat(CWD, own_link(&file), Mode::from_raw_mode(mode), AtFlags::empty())
                .map_err(self.said("change the permissions of"))
        };
        give(mode & 0o777)?;
        self.check_place(&directory).or_else(|moved| {
            give(stat.mode())?;
            Err(moved)
        })
    }

    fn remove(&self, recursive: bool) -> Result<(), FileError> {
        let _dropped = self.view.drop_caps()?;
        self.view.check_writable(&self.path)?;
        self.take_away(recursive)
    }

    fn rename(&self, to: &dyn WriteTarget, replace: bool) -> Result<(), FileError> {
        let _dropped = self.view.drop_caps()?;
        self.view.check_writable(&self.path)?;
        match to.as_any().downcast_ref::<Self>() {
            Some(to) if Arc::ptr_eq(&self.view, &to.view) => self.move_to(to, replace),
            Some(_) | None => Err(FileError::Unsupported(
                "nothing is moved from one environment to another",
            )),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A directory, with those on the way to it that were made.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) directory: OwnedFd,
    new: Vec<(OwnedFd, OsString)>,
}

impl Made {
    /// They stay.
    pub(super) fn keep(mut self) {
        self.new.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        while let Some((directory, name)) = self.new.pop() {
            // Only an empty one goes. Somebody may use it by now.
            let _ = rustix::fs::unlinkat(&directory, Path::new(&name), AtFlags::REMOVEDIR);
        }
    }
}
