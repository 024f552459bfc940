//! Hiding and protecting: mounts over names of the workspace, which keep their real place.
//!
//! A hidden file lies under a link that leads nowhere: opening, reading, writing and `stat` find
//! nothing, and it can be neither removed nor replaced. Its name is still listed, since no mount
//! changes what a real, writable directory lists. A hidden directory lies under an empty one.
//!
//! A directory above it may have to keep its name, since a pattern names it. The kernel refuses to rename,
//! exchange or remove whatever is mounted on anywhere in the namespace of who asks, by any path to it. So the
//! mount stands in a second copy of the workspace, which lies under an empty directory: in the workspace
//! itself there is none, and files can be renamed and linked into the directory and out of it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::mount::{NODEV, NOEXEC, NONE, NOSUID, RDONLY, attach, copy_of, device_of, kind_of};
use super::root::View;
use crate::sys;

/// The same place as it is found in a finished root, for the second copy of what names are held in.
const UNSEEN: &str = "/.shieling/unseen";

/// The number of the mount on which something was found.
fn mount_of(found: &OwnedFd) -> Result<u64, Errno> {
    let asked = StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(found, c"", AtFlags::EMPTY_PATH, asked)?;
    // Kernels before 5.8 do not tell; the file system calls that a jail needs are newer.
    if stat.stx_mask & asked.bits() == 0 {
        return Err(Errno::NOTSUP);
    }
    Ok(stat.stx_mnt_id)
}

/// Whether this is the root of a mount, and so something is mounted on what lies under it.
fn is_mounted(found: &OwnedFd) -> Result<bool, Errno> {
    let stat = rustix::fs::statx(found, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn file_of(found: &OwnedFd) -> Result<(u64, u64), Errno> {
    let stat = rustix::fs::fstat(found)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// How often a name is looked at that somebody replaces at the same time, as an editor does that saves.
const REPLACED: u32 = 16;

impl View {
    /// Acts on what stands at a target: anew if it was removed in between, since then something else may be
    /// there, and a few times at most. Nothing where nothing is.
    fn on<T>(
        &mut self,
        target: &Path,
        mut mount: impl FnMut(&mut Self, &OwnedFd) -> Result<T, Errno>,
    ) -> Result<Option<T>, Errno> {
        let mut tried = 0;
        loop {
            let found = match self.find(target) {
                Ok(Some(found)) => found,
                // A link on the way, or no directory: what is meant is not there.
                Ok(None) | Err(Errno::LOOP | Errno::NOTDIR) => return Ok(None),
                Err(errno) => return Err(errno),
            };
            tried += 1;
            match mount(self, &found) {
                Err(Errno::NOENT) if tried < REPLACED => {}
                done => return done.map(Some),
            }
        }
    }

    /// Hides what stands at a target, if it is this file. Whether it is hidden now.
    pub(super) fn hide_if(&mut self, target: &Path, file: (u64, u64)) -> Result<bool, Errno> {
        let hidden = self.on(target, |view, found| {
            // A cover stays over its file wherever that is moved to, so that it tells which one it covers.
            if let Some(covered) = view.covered.get(&mount_of(found)?) {
                return Ok(view.is_same(*covered, file));
            }
            if !view.is_same(file_of(found)?, file) {
                return Ok(false);
            }
            view.cover(found)?;
            Ok(true)
        })?;
        Ok(hidden.unwrap_or(false))
    }

    /// Whether what was found is the file that the host has seen under these numbers. An overlay has a number of its own
    /// for its device and, over one file system, the file's own for itself.
    fn is_same(&self, (device, number): (u64, u64), file: (u64, u64)) -> bool {
        let is_staged = || {
            let devices = self.staged.iter().map(|overlay| device_of(overlay.as_fd()));
            devices.flatten().any(|staged| staged == device)
        };
        (device, number) == file || number == file.1 && is_staged()
    }

    /// Hides what stands at a target.
    pub(super) fn hide(&mut self, target: &Path) -> Result<(), Errno> {
        self.on(target, Self::cover).map(drop)
    }

    fn cover(&mut self, found: &OwnedFd) -> Result<(), Errno> {
        if self.covered.contains_key(&mount_of(found)?) {
            // A cover itself: what it lies over is hidden.
            return Ok(());
        }
        let file = file_of(found)?;
        let cover = match kind_of(found.as_fd())? {
            FileType::Directory => &self.covers.directory,
            _ => &self.covers.link,
        };
        let cover = copy_of(cover.as_fd())?;
        sys::set_mount(cover.as_fd(), RDONLY | NOSUID | NODEV | NOEXEC, false)?;
        attach(&cover, found)?;
        self.covered.insert(mount_of(&cover)?, file);
        Ok(())
    }

    /// Mounts what stands at a target over itself, unless it is a link.
    pub(super) fn again(&mut self, target: &Path, writable: bool, executable: bool) -> Result<(), Errno> {
        let read_only = if writable { NONE } else { RDONLY };
        let mounted = self.on(target, |_, found| {
            if kind_of(found.as_fd())? == FileType::Symlink {
                return Ok(());
            }
            let copy = copy_of(found.as_fd())?;
            if executable {
                match sys::change_mount(copy.as_fd(), read_only, NOEXEC, true) {
                    // The host has mounted it so.
                    Err(Errno::PERM) => sys::set_mount(copy.as_fd(), read_only, true)?,
                    changed => changed?,
                }
            } else {
                sys::set_mount(copy.as_fd(), read_only | NOEXEC, true)?;
            }
            attach(&copy, found)
        });
        mounted.map(drop)
    }

    /// Puts what stands at a target a second time where nobody sees it.
    pub(super) fn unseen(&mut self, target: &Path) -> Result<(), Errno> {
        let found = self.find(target)?.ok_or(Errno::NOENT)?;
        let copy = copy_of(found.as_fd())?;
        sys::set_mount(copy.as_fd(), NONE, true)?;
        let place = self.find(Path::new(UNSEEN))?.ok_or(Errno::NOENT)?;
        attach(&copy, &place)?;
        // Over its root: from here on only the descriptor leads into it.
        let cover = copy_of(self.covers.directory.as_fd())?;
        sys::set_mount(cover.as_fd(), RDONLY | NOSUID | NODEV | NOEXEC, false)?;
        attach(&cover, &copy)?;
        self.unseen.push((target.to_path_buf(), copy));
        Ok(())
    }

    /// Keeps the name of what stands at a target, if it is this file. Whether it is kept now.
    pub(super) fn hold_if(&mut self, target: &Path, file: (u64, u64)) -> Result<bool, Errno> {
        if !self.hold_unseen(target, file)? {
            return Ok(false);
        }
        // A link holds nothing that could be moved into it or out of it. The host, which looks from another
        // namespace, sees by the mount that the link keeps its name.
        let pinned = self.on(target, |_, found| {
            if kind_of(found.as_fd())? != FileType::Symlink || is_mounted(found)? {
                return Ok(());
            }
            attach(&copy_of(found.as_fd())?, found)
        });
        pinned.map(|_| true)
    }

    fn hold_unseen(&self, target: &Path, file: (u64, u64)) -> Result<bool, Errno> {
        // Of a place in another one, its own.
        let copies = self
            .unseen
            .iter()
            .filter_map(|(seen, root)| Some((target.strip_prefix(seen).ok()?, root)));
        let (path, root) = copies
            .min_by_key(|(path, _)| path.as_os_str().len())
            .ok_or(Errno::INVAL)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut tried = 0;
        loop {
            let found = match rustix::fs::openat2(root, path, flags, Mode::empty(), how) {
                Ok(found) => found,
                // Something was moved meanwhile, and is looked for again.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno),
            };
            if !self.is_same(file_of(&found)?, file) {
                return Ok(false);
            }
            if is_mounted(&found)? {
                return Ok(true);
            }
            // Itself, so that what lies deeper is still found.
            let copy = copy_of(found.as_fd())?;
            tried += 1;
            match attach(&copy, &found) {
                Err(Errno::NOENT) if tried < REPLACED => {}
                done => return done.map(|()| true),
            }
        }
    }

    /// Makes what stands at a target read-only and keeps its name.
    pub(super) fn protect(&mut self, target: &Path) -> Result<(), Errno> {
        self.cover_by_itself(target, RDONLY)
    }

    /// Keeps the name of what stands at a target.
    pub(super) fn pin(&mut self, target: &Path) -> Result<(), Errno> {
        self.cover_by_itself(target, NONE)
    }

    fn cover_by_itself(&mut self, target: &Path, attributes: MountAttrFlags) -> Result<(), Errno> {
        let mounted = self.on(target, |_, found| {
            let copy = copy_of(found.as_fd())?;
            sys::set_mount(copy.as_fd(), attributes, true)?;
            attach(&copy, found)
        });
        mounted.map(drop)
    }
}
