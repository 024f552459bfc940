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
mod mount;
mod root;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use shieling_jail::message::{Hide, Layer, Update};
use shieling_jail::plan::Entry;

use crate::refusal::{Step, While as _, refuse};
use crate::sys;

use self::mount::{NODEV, NOEXEC, NONE, NOSUID, RDONLY, copy_of, device_of};
pub(crate) use self::root::View;

/// Where files stand that are mounted over others.
const OVER: &str = "/.shieling/over";

impl View {
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
