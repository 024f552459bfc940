//! `/dev` and `/proc`: the few devices that programs need, and the jail's own processes.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, open_tree,
};

use super::mount::{NODEV, NOEXEC, NOSUID, RDONLY, attach, copy_of};
use super::root::View;
use crate::{bounds, numbers, sys};

/// The devices of the host that are shown. None of them holds anything of anybody.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Files of `/proc` that tell of the machine or of other users, and that global root, as whom the
/// jail of a root user runs, may read without any capability; the first two anybody.
const TELLING: [&str; 12] = [
    "keys",
    "key-users",
    "kcore",
    "kallsyms",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "timer_list",
    "vmallocinfo",
    "slabinfo",
    "iomem",
    "sysrq-trigger",
];

impl View {
    /// `/dev`.
    pub(super) fn add_dev(&mut self, target: &Path, shm: u64) -> Result<(), Errno> {
        let bounds = [("mode", "0755"), ("size", "64k"), ("nr_inodes", "64")];
        let dev = self.mount_memory(target, &bounds, NOSUID | NOEXEC)?;
        for name in DEVICES {
            let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            let device = open_tree(CWD, Path::new("/dev").join(name), clone)?;
            // Devices can be written to all the same. What could not stay is their mode and owner: to
            // whoever owns them, root, they are the host's own files.
            sys::set_mount(device.as_fd(), RDONLY | NOSUID | NOEXEC, false)?;
            let target = target.join(name);
            let at = self.place(&target, FileType::RegularFile)?;
            self.attach(&device, &at, &target)?;
        }
        for (to, name) in LINKS {
            rustix::fs::symlinkat(to, &dev, name)?;
        }
        let context = fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
        // Always an instance of its own: terminals of the host are not in it.
        for (name, value) in [("mode", "0620"), ("ptmxmode", "0666")] {
            fsconfig_set_string(&context, name, value)?;
        }
        fsconfig_create(&context)?;
        let terminals = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID | NOEXEC)?;
        let at = self.place(&target.join("pts"), FileType::Directory)?;
        self.attach(&terminals, &at, &target.join("pts"))?;
        let bounds = [("mode", "1777"), ("size", &*shm.to_string()), ("nr_inodes", "64k")];
        self.mount_memory(&target.join("shm"), &bounds, NOSUID | NODEV | NOEXEC)?;
        // Devices are still written to: that is no matter of the directory's mount.
        sys::set_mount(dev.as_fd(), RDONLY | NOSUID | NOEXEC, false)
    }

    /// `/proc`. Read-only as a whole: as global root, a command could write to much of it without
    /// any capability, `core_pattern` among it.
    pub(super) fn add_proc(&mut self, target: &Path) -> Result<(), Errno> {
        let at = self.place(target, FileType::Directory)?;
        let proc = processes()?;
        // By the descriptor, while nobody else can reach it.
        bounds::set(proc.as_fd())?;
        numbers::skip_reserved(proc.as_fd())?;
        sys::set_mount(proc.as_fd(), RDONLY, false)?;
        self.attach(&proc, &at, target)?;
        self.proc = Some(processes()?);
        let null = rustix::fs::open(c"/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        // For an ordinary user, the others are closed by their modes.
        let telling = if rustix::process::getuid().is_root() {
            TELLING.len()
        } else {
            4
        };
        for name in TELLING.iter().take(telling) {
            if let Some(found) = self.find(&target.join(name))? {
                attach(&copy_of(null.as_fd())?, &found)?;
            }
        }
        Ok(())
    }
}

/// The processes of this pid namespace, mounted nowhere yet.
fn processes() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID | NODEV | NOEXEC)
}
