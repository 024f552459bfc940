//! Directories of the host that are only read, each under a layer in memory that takes what is written
//! (overlayfs, which a user namespace can mount since Linux 5.11).
//!
//! All layers lie in one file system in memory. It is mounted while the view is built, since an overlay
//! copies its mounts from the namespace, and taken away before anything starts: what is below and above
//! is reached through the overlay alone.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, fsconfig_create, fsconfig_reconfigure, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, fspick,
};

use super::mount::{NODEV, NOEXEC, NONE, NOSUID, RDONLY, attach, copy_of, kind_of, memory};
use super::root::{View, path_of};
use crate::sys;

/// Where the layers are while the view is built, beside the covers.
const PLACE: &str = ".shieling/layers";

impl View {
    /// A place that shows how much is written to layers, if there are some.
    pub(crate) fn layers(&self) -> Option<&Path> {
        self.layers.first.as_deref()
    }

    /// Whether a directory that should have a layer is read-only for want of it.
    pub(crate) fn has_unlayered(&self) -> bool {
        self.layers.refused
    }

    /// Shows a directory of the host with a private layer above it.
    pub(super) fn layer(
        &mut self,
        source: &Path,
        target: &Path,
        bounds: (u64, u64),
        executable: bool,
    ) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let below = match rustix::fs::openat2(CWD, source, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(below) => below,
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        self.place(target, FileType::Directory)?;
        // A kept home is written by commands, who can lay a link there.
        let Some(at) = self.find(target)? else {
            return Err(Errno::NOENT);
        };
        if kind_of(at.as_fd())? != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        let no_exec = if executable { NONE } else { NOEXEC };
        match self.overlay(below.as_fd(), bounds) {
            Ok(overlay) => {
                sys::set_mount(overlay.as_fd(), NOSUID | NODEV | no_exec, false)?;
                self.attach(&overlay, &at, target)?;
                self.layers.first.get_or_insert_with(|| target.to_path_buf());
                Ok(())
            }
            // This kernel, or what stands around us, has no overlays for a user namespace; or the host's
            // file system cannot be under one.
            Err(_) => {
                self.layers.refused = true;
                let tree = copy_of(below.as_fd())?;
                sys::set_mount(tree.as_fd(), RDONLY | NOSUID | NODEV | no_exec, true)?;
                self.attach(&tree, &at, target)
            }
        }
    }

    /// Shows a directory of the host under a layer of the host's. Without an overlay there is nothing to show: what
    /// was written would be in the host's directory at once.
    pub(super) fn stage(
        &mut self,
        source: &Path,
        target: &Path,
        (upper, work): (&Path, &Path),
        executable: bool,
    ) -> Result<(), Errno> {
        let open = |path: &Path| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        };
        let (below, upper, work) = (open(source)?, open(upper)?, open(work)?);
        let overlay = mount_overlay(below.as_fd(), &path_of(upper.as_fd()), &path_of(work.as_fd()))?;
        let no_exec = if executable { NONE } else { NOEXEC };
        sys::set_mount(overlay.as_fd(), NOSUID | NODEV | no_exec, false)?;
        let at = self.place(target, FileType::Directory)?;
        self.attach(&overlay, &at, target)?;
        self.staged.push(overlay);
        Ok(())
    }

    /// Has the kernel forget the names that it knows of what lies below layers, since the host may have changed them.
    /// What a process holds open or works in stays as it is.
    pub(super) fn refresh(&self) -> Result<(), Errno> {
        for overlay in &self.staged {
            let context = fspick(
                overlay,
                c"",
                FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH,
            )?;
            fsconfig_reconfigure(&context)?;
        }
        Ok(())
    }

    fn overlay(&mut self, below: BorrowedFd<'_>, (bytes, files): (u64, u64)) -> Result<OwnedFd, Errno> {
        let layers = match self.layers.memory.take() {
            Some(layers) => layers,
            None => self.make_layers(bytes, files)?,
        };
        let number = self.layers.count;
        self.layers.count += 1;
        let overlay = overlay(below, &layers, number);
        self.layers.memory = Some(layers);
        overlay
    }

    fn make_layers(&self, bytes: u64, files: u64) -> Result<OwnedFd, Errno> {
        let options = [
            ("mode", "0700"),
            ("size", &*bytes.to_string()),
            ("nr_inodes", &*files.to_string()),
        ];
        let layers = memory(&options, NOSUID | NODEV)?;
        rustix::fs::mkdirat(&self.root, PLACE, Mode::RWXU)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let at = rustix::fs::openat(&self.root, PLACE, flags, Mode::empty())?;
        attach(&layers, &at)?;
        Ok(layers)
    }
}

fn overlay(below: BorrowedFd<'_>, layers: &OwnedFd, number: u32) -> Result<OwnedFd, Errno> {
    // As the directory below: it is what the overlay's top says of itself.
    let mode = Mode::from_raw_mode(rustix::fs::fstat(below)?.st_mode & 0o777);
    let (upper, work) = (format!("{number}"), format!("{number}.work"));
    rustix::fs::mkdirat(layers, &upper, mode)?;
    rustix::fs::mkdirat(layers, &work, Mode::RWXU)?;
    let layers = path_of(layers.as_fd());
    mount_overlay(below, &format!("{layers}/{upper}"), &format!("{layers}/{work}"))
}

fn mount_overlay(below: BorrowedFd<'_>, upper: &str, work: &str) -> Result<OwnedFd, Errno> {
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Marks of its own in attributes that a user namespace may set.
    fsconfig_set_flag(&context, c"userxattr")?;
    // By descriptor: a path may hold what separates options.
    fsconfig_set_string(&context, c"lowerdir", path_of(below))?;
    fsconfig_set_string(&context, c"upperdir", upper)?;
    fsconfig_set_string(&context, c"workdir", work)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID | NODEV)
}
