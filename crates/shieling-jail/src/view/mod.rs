//! Builds the file system that commands see, from nothing: an empty root in memory, and in it, in the
//! plan's order, what is to be there.
//!
//! Everything is held by descriptor. Paths of the host are opened once and mounted from there; paths
//! of the jail are resolved with `openat2` inside the new root, so that no link leads set-up out of it
//! (runc's and bubblewrap's holes were such links). What is missing is made in our own memory and
//! never in a directory of the host.
//!
//! Kernel: `openat2` (5.6), `open_tree` and `move_mount` (5.2), `mount_setattr` (5.12).

mod cover;
mod device;
mod groups;
mod layer;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use shieling_jail::message::{Hide, Layer, Update};
use shieling_jail::plan::Entry;

use crate::refusal::{Step, While as _, refuse};
use crate::sys;

/// Where files stand that are mounted over others.
const OVER: &str = "/.shieling/over";

const NOSUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
const NODEV: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
const NOEXEC: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;
const RDONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
const NONE: MountAttrFlags = MountAttrFlags::empty();

/// The new root while it is built, and afterwards.
pub(crate) struct View {
    root: OwnedFd,
    /// The devices of the file systems in memory that we made: only in these is anything created.
    own: Vec<u64>,
    /// The directory in one of these in which something was made last, since the next is often made there too.
    last: Option<(PathBuf, OwnedFd)>,
    /// What lies over hidden files and directories.
    covers: cover::Covers,
    /// For each mount of a cover the numbers of the device and the file that lie under it.
    covered: HashMap<u64, (u64, u64)>,
    /// What stands a second time where nobody sees it: where it is seen, and its root.
    unseen: Vec<(PathBuf, OwnedFd)>,
    /// What becomes read-only once everything is in it.
    unfinished: Vec<OwnedFd>,
    /// Where what is written above read-only directories goes.
    layers: layer::Layers,
    /// The roots of overlays over directories that the host changes.
    staged: Vec<OwnedFd>,
    /// The jail's own processes, in a mount that is nowhere and can be written to.
    proc: Option<OwnedFd>,
    /// Whether control groups that should be shown could not be.
    no_groups: bool,
}

impl View {
    /// An empty root, over the old one. The old one is still what paths name.
    fn new() -> Result<Self, Errno> {
        // Only our own entries are made in it, and it ends up read-only; the bounds are for mishaps.
        let root = memory(
            &[("mode", "0755"), ("size", "16m"), ("nr_inodes", "20k")],
            NOSUID | NODEV,
        )?;
        move_mount(&root, c"", CWD, c"/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        let device = device_of(root.as_fd())?;
        let covers = cover::Covers::make(&root)?;
        Ok(Self {
            root,
            own: vec![device],
            last: None,
            covers,
            covered: HashMap::new(),
            unseen: Vec::new(),
            unfinished: Vec::new(),
            layers: layer::Layers::default(),
            staged: Vec::new(),
            proc: None,
            no_groups: false,
        })
    }

    /// Builds the root that the entries describe.
    ///
    /// `shown` are copies of places of the host that were made before, by these paths.
    pub(crate) fn build(entries: &[Entry], shown: &[(PathBuf, OwnedFd)]) -> Step<Self> {
        let mut view = Self::new().or_refuse(Layer::Mount, || "making an empty root".to_owned())?;
        for entry in entries {
            view.add(entry, shown).or_refuse(Layer::Mount, || describe(entry))?;
        }
        Ok(view)
    }

    /// Makes it the root of this process.
    pub(crate) fn enter(&mut self) -> Step {
        self.layers
            .let_go()
            .or_refuse(Layer::Mount, || "closing the private layers".to_owned())?;
        self.switch()
            .or_refuse(Layer::Mount, || "entering the new root".to_owned())
    }

    /// The jail's own processes, to be written to.
    pub(crate) fn proc(&self) -> Option<BorrowedFd<'_>> {
        self.proc.as_ref().map(OwnedFd::as_fd)
    }

    fn add(&mut self, entry: &Entry, shown: &[(PathBuf, OwnedFd)]) -> Result<(), Errno> {
        match entry {
            Entry::Bind {
                source,
                target,
                writable,
                executable,
                optional,
            } => {
                let made = shown.iter().find(|(place, _)| place == source).map(|(_, made)| made);
                let found = match made {
                    Some(made) => made.try_clone().map_err(|_| Errno::MFILE),
                    None => open_source(source, *optional),
                };
                let tree = match found {
                    Ok(tree) => tree,
                    Err(errno) if *optional && is_absence(errno) => return Ok(()),
                    Err(errno) => return Err(errno),
                };
                self.bind(&tree, target, *writable, *executable)
            }
            Entry::Layered {
                source,
                target,
                bytes,
                files,
                executable,
            } => self.layer(source, target, (*bytes, *files), *executable),
            Entry::Staged {
                source,
                target,
                upper,
                work,
                executable,
            } => self.stage(source, target, (upper, work), *executable),
            Entry::Listed {
                target,
                writable,
                executable,
            } => match open_source(target, false) {
                Ok(tree) => self.bind(&tree, target, *writable, *executable),
                Err(errno) if is_absence(errno) => Ok(()),
                Err(errno) => Err(errno),
            },
            Entry::Temporary {
                target,
                bytes,
                files,
                mode,
                executable,
            } => {
                let no_exec = if *executable { NONE } else { NOEXEC };
                let bounds = [
                    ("mode", &*format!("{mode:o}")),
                    ("size", &*bytes.to_string()),
                    ("nr_inodes", &*files.to_string()),
                ];
                self.mount_memory(target, &bounds, NOSUID | NODEV | no_exec).map(drop)
            }
            Entry::Directory { target } => self.add_directory(target),
            Entry::File { target, content } => self.add_file(target, content),
            Entry::Over { target, content } => self.add_over(target, content),
            Entry::Link { target, to } => {
                let (parent, name) = self.parent_of(target)?;
                rustix::fs::symlinkat(to, parent, name)
            }
            Entry::Proc { target } => self.add_proc(target),
            Entry::Dev { target, shm } => self.add_dev(target, *shm),
            Entry::Hide { target } => self.hide(target),
            Entry::Again {
                target,
                writable,
                executable,
            } => self.again(target, *writable, *executable),
            Entry::Unseen { target } => self.unseen(target),
            Entry::Protect { target } => self.protect(target),
        }
    }

    /// A new file with this content.
    fn add_file(&mut self, target: &Path, content: &[u8]) -> Result<(), Errno> {
        let (parent, name) = self.parent_of(target)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644))?;
        let mut rest = content;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// A new file with this content, mounted over one that is there.
    fn add_over(&mut self, target: &Path, content: &[u8]) -> Result<(), Errno> {
        let Some(at) = self.resolve(target, OFlags::empty(), ResolveFlags::IN_ROOT)? else {
            return Ok(());
        };
        let name = target.to_string_lossy().replace('/', "-");
        let own = Path::new(OVER).join(name.trim_start_matches('-'));
        self.add_file(&own, content)?;
        let made = self.find(&own)?.ok_or(Errno::NOENT)?;
        let mount = copy_of(made.as_fd())?;
        sys::set_mount(mount.as_fd(), NOSUID | NODEV | RDONLY | NOEXEC, true)?;
        self.attach(&mount, &at, target)
    }

    /// Mounts what was opened on the host.
    fn bind(&mut self, tree: &OwnedFd, target: &Path, writable: bool, executable: bool) -> Result<(), Errno> {
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
    fn attach(&mut self, mount: &OwnedFd, at: &OwnedFd, target: &Path) -> Result<(), Errno> {
        // The way to the last directory may lead elsewhere from now on, unless this is mounted in it.
        if self.last_parent(target).is_none() {
            self.last = None;
        }
        attach(mount, at)
    }

    fn last_parent(&self, target: &Path) -> Option<&OwnedFd> {
        let (last, directory) = self.last.as_ref()?;
        (target.parent() == Some(last)).then_some(directory)
    }

    /// Makes the new root the root of this process and lets go of the old one.
    fn switch(&self) -> Result<(), Errno> {
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

    /// An empty directory, also over one of the host that is not empty.
    fn add_directory(&mut self, target: &Path) -> Result<(), Errno> {
        let found = self.place(target, FileType::Directory)?;
        // The new root ends up read-only by itself; what else is in memory is for commands to write to.
        if self.own.first() == Some(&device_of(found.as_fd())?) {
            return Ok(());
        }
        let bounds = [("mode", "0755"), ("size", "1m"), ("nr_inodes", "4k")];
        let mount = self.mount_memory(target, &bounds, NOSUID | NODEV)?;
        self.unfinished.push(mount);
        Ok(())
    }

    /// A file system in memory.
    fn mount_memory(
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
    fn find(&self, target: &Path) -> Result<Option<OwnedFd>, Errno> {
        self.resolve(
            target,
            OFlags::NOFOLLOW,
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS,
        )
    }

    fn resolve(&self, target: &Path, flags: OFlags, how: ResolveFlags) -> Result<Option<OwnedFd>, Errno> {
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        let how = how | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, target, flags, Mode::empty(), how) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The place where something of this kind is to be mounted, made if it is not there.
    fn place(&mut self, target: &Path, kind: FileType) -> Result<OwnedFd, Errno> {
        let there = |view: &Self| view.resolve(target, OFlags::empty(), ResolveFlags::IN_ROOT);
        if let Some(found) = there(self)? {
            return Ok(found);
        }
        let (parent, name) = self.parent_of(target)?;
        make(parent, name, kind)?;
        there(self)?.ok_or(Errno::NOENT)
    }

    /// The directory in which a target is to be made, itself made if need be, and the last name.
    fn parent_of<'t>(&mut self, target: &'t Path) -> Result<(&OwnedFd, &'t OsStr), Errno> {
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
fn make(parent: &OwnedFd, name: &OsStr, kind: FileType) -> Result<(), Errno> {
    if kind == FileType::Directory {
        return rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644)).map(drop)
}

/// Whether an error says that something of the host is not there, or not for us.
fn is_absence(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP)
}

/// A copy of what is mounted at a place of the host. What must be there was judged by this very path,
/// and whoever can write on the way to it may have put a link there since: none is followed.
pub(crate) fn open_source(source: &Path, optional: bool) -> Result<OwnedFd, Errno> {
    if optional {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        return open_tree(CWD, source, flags);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(CWD, source, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    copy_of(found.as_fd())
}

fn memory(options: &[(&str, &str)], attributes: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A copy of what is mounted at a place, with everything below it, not mounted anywhere yet.
fn copy_of(place: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, c"", flags)
}

fn attach(mount: &OwnedFd, at: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", at, c"", flags)
}

fn device_of(place: BorrowedFd<'_>) -> Result<u64, Errno> {
    Ok(rustix::fs::fstat(place)?.st_dev)
}

fn kind_of(place: BorrowedFd<'_>) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Bind { source, target, .. } if source == target => format!("showing `{}`", target.display()),
        Entry::Listed { target, .. } => format!("showing `{}`", target.display()),
        Entry::Bind { source, target, .. } => {
            format!("showing `{}` as `{}`", source.display(), target.display())
        }
        Entry::Layered { target, .. } => format!("showing `{}` under a private layer", target.display()),
        Entry::Staged { target, upper, .. } => format!(
            "showing `{}` under the layer `{}` (an overlay, for which the kernel and both file systems have to allow \
             user namespaces and attributes)",
            target.display(),
            upper.display()
        ),
        Entry::Temporary { target, .. } => format!("making a private `{}`", target.display()),
        Entry::Directory { target } | Entry::File { target, .. } | Entry::Link { target, .. } => {
            format!("making `{}`", target.display())
        }
        Entry::Over { target, .. } => format!("putting a file of its own over `{}`", target.display()),
        Entry::Proc { target } => format!(
            "mounting a process list of its own on `{}`, and setting the bounds of its user namespace there",
            target.display()
        ),
        Entry::Dev { target, .. } => format!("making devices in `{}`", target.display()),
        Entry::Hide { target } => format!("hiding `{}`", target.display()),
        Entry::Again { target, .. } => format!("keeping `{}` in its place", target.display()),
        Entry::Unseen { target } => format!("preparing to hold names in `{}`", target.display()),
        Entry::Protect { target } => format!("protecting `{}`", target.display()),
    }
}

/// Hides, holds and protects what appeared since, in the root that is in use.
/// Gives what was to be hidden or held and is another file by now.
pub(crate) fn update(view: &mut View, update: &Update) -> Step<Vec<PathBuf>> {
    if update.refresh {
        view.refresh()
            .or_refuse(Layer::Mount, || "looking at the staged workspace again".to_owned())?;
    }
    let mut missed = Vec::new();
    for Hide { target, file } in &update.hide {
        let hidden = view
            .hide_if(target, *file)
            .or_refuse(Layer::Mount, || format!("hiding `{}`", target.display()))?;
        if !hidden {
            missed.push(target.clone());
        }
    }
    for Hide { target, file } in &update.hold {
        let held = view
            .hold_if(target, *file)
            .or_refuse(Layer::Mount, || format!("holding the name of `{}`", target.display()))?;
        if !held {
            missed.push(target.clone());
        }
    }
    // What lies deeper comes after what it lies in, which would cover it.
    for target in &update.pin {
        view.pin(target)
            .or_refuse(Layer::Mount, || format!("pinning `{}`", target.display()))?;
    }
    for target in &update.protect {
        view.protect(target)
            .or_refuse(Layer::Mount, || format!("protecting `{}`", target.display()))?;
    }
    Ok(missed)
}

/// Whether a plan's view can be applied at all: absolute paths without `.` and `..`.
pub(crate) fn check(entries: &[Entry]) -> Step {
    for entry in entries {
        let target = entry.target();
        let plain = target
            .components()
            .skip(1)
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !target.is_absolute() || !plain || target.as_os_str().as_encoded_bytes().ends_with(b"/..") {
            return refuse(
                Layer::Start,
                format!("the plan names `{}`, which is no plain absolute path", target.display()),
            );
        }
    }
    Ok(())
}
