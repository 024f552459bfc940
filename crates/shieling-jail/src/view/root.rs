//! The new root: where things are found and made in it, and how it becomes the root of a process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, UnmountFlags, move_mount, unmount};

use super::mount::{NODEV, NOEXEC, NONE, NOSUID, RDONLY, attach, device_of, kind_of, memory};
use crate::sys;

/// Where the link leads, and what `ls -l` shows. Nobody can make anything in `/proc`.
const NOWHERE: &str = "/proc/hidden-by-shieling";

/// Where in the new root the covers are made. They have to stand in it, since only what is mounted
/// can be copied by kernels before 6.15.
const COVERS: &str = ".shieling";

/// The new root while it is built, and afterwards.
pub(crate) struct View {
    pub(super) root: OwnedFd,
    /// The devices of the file systems in memory that we made: only in these is anything created.
    pub(super) own: Vec<u64>,
    /// The directory in one of these in which something was made last, since the next is often made there too.
    pub(super) last: Option<(PathBuf, OwnedFd)>,
    /// What lies over hidden files and directories.
    pub(super) covers: Covers,
    /// For each mount of a cover the numbers of the device and the file that lie under it.
    pub(super) covered: HashMap<u64, (u64, u64)>,
    /// What stands a second time where nobody sees it: where it is seen, and its root.
    pub(super) unseen: Vec<(PathBuf, OwnedFd)>,
    /// What becomes read-only once everything is in it.
    pub(super) unfinished: Vec<OwnedFd>,
    /// Where what is written above read-only directories goes.
    pub(super) layers: Layers,
    /// The roots of overlays over directories that the host changes.
    pub(super) staged: Vec<OwnedFd>,
    /// The jail's own processes, in a mount that is nowhere and can be written to.
    pub(super) proc: Option<OwnedFd>,
    /// Whether control groups that should be shown could not be.
    pub(super) no_groups: bool,
}

/// What hidden things lie under.
pub(super) struct Covers {
    pub(super) link: OwnedFd,
    pub(super) directory: OwnedFd,
}

impl Covers {
    /// Makes them in a root that is still being built.
    fn make(root: &OwnedFd) -> Result<Self, Errno> {
        let directory = Mode::from_raw_mode(0o755);
        rustix::fs::mkdirat(root, COVERS, directory)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = rustix::fs::openat(root, COVERS, flags, Mode::empty())?;
        rustix::fs::symlinkat(NOWHERE, &place, c"link")?;
        rustix::fs::mkdirat(&place, c"directory", directory)?;
        rustix::fs::mkdirat(&place, c"unseen", directory)?;
        let open = |name| rustix::fs::openat(&place, name, flags, Mode::empty());
        Ok(Self {
            link: open(c"link")?,
            directory: open(c"directory")?,
        })
    }
}

/// The layers of a view.
#[derive(Default)]
pub(super) struct Layers {
    /// While the view is built.
    pub(super) memory: Option<OwnedFd>,
    pub(super) count: u32,
    /// A place that shows how much is in them.
    pub(super) first: Option<PathBuf>,
    /// Whether one could not be laid, so that what it was for is read-only.
    pub(super) refused: bool,
}

impl Layers {
    /// Takes the file system in memory from the root. Overlays have it by mounts of their own.
    pub(super) fn let_go(&mut self) -> Result<(), Errno> {
        match self.memory.take() {
            Some(memory) => unmount(path_of(memory.as_fd()), UnmountFlags::DETACH),
            None => Ok(()),
        }
    }
}

impl View {
    /// An empty root, over the old one. The old one is still what paths name.
    pub(super) fn new() -> Result<Self, Errno> {
        // Only our own entries are made in it, and it ends up read-only; the bounds are for mishaps.
        let root = memory(
            &[("mode", "0755"), ("size", "16m"), ("nr_inodes", "20k")],
            NOSUID | NODEV,
        )?;
        move_mount(&root, c"", CWD, c"/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        let device = device_of(root.as_fd())?;
        let covers = Covers::make(&root)?;
        Ok(Self {
            root,
            own: vec![device],
            last: None,
            covers,
            covered: HashMap::new(),
            unseen: Vec::new(),
            unfinished: Vec::new(),
            layers: Layers::default(),
            staged: Vec::new(),
            proc: None,
            no_groups: false,
        })
    }

    /// Mounts what was opened on the host.
    pub(super) fn bind(
        &mut self,
        tree: &OwnedFd,
        target: &Path,
        writable: bool,
        executable: bool,
    ) -> Result<(), Errno> {
        let read_only = if writable { NONE } else { RDONLY };
        let no_exec = if executable { NONE } else { NOEXEC };
        sys::set_mount(tree.as_fd(), NOSUID | NODEV | read_only | no_exec, true)?;
        let kind = kind_of(tree.as_fd())?;
        if let Some(parent) = self.last_parent(target)
            && let Some(name) = target.file_name()
        {
            match make(parent, name, kind) {
                // By its name, which is no link: it is new, and nobody else is here.
                Ok(()) => return move_mount(tree, c"", parent, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        let at = self.place(target, kind)?;
        self.attach(tree, &at, target)
    }

    /// Mounts at a place, which is found by this path.
    pub(super) fn attach(&mut self, mount: &OwnedFd, at: &OwnedFd, target: &Path) -> Result<(), Errno> {
        // The way to the last directory may lead elsewhere from now on, unless this is mounted in it.
        if self.last_parent(target).is_none() {
            self.last = None;
        }
        attach(mount, at)
    }

    pub(super) fn last_parent(&self, target: &Path) -> Option<&OwnedFd> {
        let (last, directory) = self.last.as_ref()?;
        (target.parent() == Some(last)).then_some(directory)
    }

    /// Makes the new root the root of this process and lets go of the old one.
    pub(super) fn switch(&self) -> Result<(), Errno> {
        // What was made in memory on the way is finished now.
        for mount in self.unfinished.iter().chain([&self.root]) {
            sys::set_mount(mount.as_fd(), RDONLY, false)?;
        }
        rustix::process::fchdir(&self.root)?;
        // Both in one place: the old root then lies over the new one, and is taken off it.
        rustix::process::pivot_root(c".", c".")?;
        unmount(c".", UnmountFlags::DETACH)?;
        rustix::process::chdir(c"/")
    }

    /// A file system in memory.
    pub(super) fn mount_memory(
        &mut self,
        target: &Path,
        options: &[(&str, &str)],
        attributes: MountAttrFlags,
    ) -> Result<OwnedFd, Errno> {
        let at = self.place(target, FileType::Directory)?;
        let mount = memory(options, attributes)?;
        self.attach(&mount, &at, target)?;
        self.own.push(device_of(mount.as_fd())?);
        Ok(mount)
    }

    /// What stands at a target, without following a link at its end; nothing if there is nothing.
    pub(super) fn find(&self, target: &Path) -> Result<Option<OwnedFd>, Errno> {
        self.resolve(
            target,
            OFlags::NOFOLLOW,
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS,
        )
    }

    pub(super) fn resolve(&self, target: &Path, flags: OFlags, how: ResolveFlags) -> Result<Option<OwnedFd>, Errno> {
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        let how = how | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, target, flags, Mode::empty(), how) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The place where something of this kind is to be mounted, made if it is not there.
    pub(super) fn place(&mut self, target: &Path, kind: FileType) -> Result<OwnedFd, Errno> {
        let there = |view: &Self| view.resolve(target, OFlags::empty(), ResolveFlags::IN_ROOT);
        if let Some(found) = there(self)? {
            return Ok(found);
        }
        let (parent, name) = self.parent_of(target)?;
        make(parent, name, kind)?;
        there(self)?.ok_or(Errno::NOENT)
    }

    /// The directory in which a target is to be made, itself made if need be, and the last name.
    pub(super) fn parent_of<'t>(&mut self, target: &'t Path) -> Result<(&OwnedFd, &'t OsStr), Errno> {
        let (Some(path), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(Errno::INVAL);
        };
        if self.last_parent(target).is_none() {
            let parent = self.place(path, FileType::Directory)?;
            // Whatever is made must not be made in a directory of the host.
            if !self.own.contains(&device_of(parent.as_fd())?) {
                return Err(Errno::XDEV);
            }
            self.last = Some((path.to_path_buf(), parent));
        }
        let parent = self.last_parent(target).ok_or(Errno::NOENT)?;
        Ok((parent, name))
    }
}

/// Makes something of this kind, for something to be mounted on.
pub(super) fn make(parent: &OwnedFd, name: &OsStr, kind: FileType) -> Result<(), Errno> {
    if kind == FileType::Directory {
        return rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644)).map(drop)
}

/// A name for what is held, in the old root, which has a list of processes that we are in.
pub(super) fn path_of(held: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}
