//! What of a root may be reached, and what of that may be changed.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::super::FileError;
use super::dropped_caps::DroppedCaps;
use super::error::refused;
use super::stat::{Identity, Stat};

/// How often a path is resolved again that was moved about meanwhile; each try takes microseconds.
pub(super) const TRIES: usize = 1000;

/// File systems that are no files: what the kernel says of itself and of processes, and ways to tell it
/// something. The numbers are those of the kernel's `magic.h` and of the file systems' own sources.
const OF_THE_KERNEL: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x1cd1,      // devpts
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0xf97c_ff8c, // selinux
    0x4341_5d53, // smack
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x6e73_6673, // nsfs
    0x5049_4446, // pidfs
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0x6573_5543, // fusectl
    0x6759_6969, // rpc_pipefs
    0x6e66_7364, // nfsd
    0x6c6f_6f70, // binder
    0x0765_5821, // resctrl
    0x0187,      // autofs
];

/// A root, and what beneath it may be reached.
#[derive(Debug)]
pub(in crate::environment) struct View {
    root: OwnedFd,
    confined: Option<Confined>,
    /// Whether capabilities are laid down, as the commands have done.
    powerless: bool,
    readonly: bool,
    /// What lies over hidden files.
    covers: Vec<Identity>,
    /// Devices of file systems, and whether they are the kernel's own.
    known: Mutex<Vec<(u64, bool)>>,
    /// Held by who compares and then replaces: of two, the second sees what the first has done.
    replacing: Mutex<()>,
}

/// To what a view is confined.
#[derive(Debug)]
pub(in crate::environment) struct Confined {
    /// A directory, without links, as the view's root names it.
    pub(in crate::environment) directory: PathBuf,
    /// It, in the words of [`FileError::Outside`].
    pub(in crate::environment) called: &'static str,
}

/// Something that is held, without effect on it, and where it is.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) file: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) stat: Stat,
}

impl View {
    /// What this process sees, confined to a directory.
    ///
    /// # Errors
    /// What the system says if it does not even give its root.
    pub(in crate::environment) fn of_this_host(confined: Confined) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, c"/", flags, Mode::empty())?;
        Ok(Self {
            confined: Some(confined),
            ..Self::from_root(root)
        })
    }

    /// What stands beneath a root.
    pub(in crate::environment) fn from_root(root: OwnedFd) -> Self {
        Self {
            root,
            confined: None,
            powerless: false,
            readonly: false,
            covers: Vec::new(),
            known: Mutex::default(),
            replacing: Mutex::default(),
        }
    }

    /// With no more power than a user without capabilities has.
    pub(in crate::environment) fn powerless(self) -> Self {
        Self {
            powerless: true,
            ..self
        }
    }

    /// Nothing of it may be changed.
    pub(in crate::environment) fn readonly(self) -> Self {
        Self { readonly: true, ..self }
    }

    /// With these, by their paths in it, as what lies over hidden files: whatever is one of them is not
    /// there.
    ///
    /// # Errors
    /// What the system says if one cannot be looked at.
    pub(in crate::environment) fn with_covers(self, covers: &[&str]) -> Result<Self, Errno> {
        let stat = |path: &&str| {
            Ok(Stat::at(&self.resolve(Path::new(path), OFlags::NOFOLLOW, ResolveFlags::empty())?)?.identity())
        };
        let covers = covers.iter().map(stat).collect::<Result<_, Errno>>()?;
        Ok(Self { covers, ..self })
    }

    /// What this thread may do from now on, as long as the answer lives.
    pub(super) fn drop_caps(&self) -> Result<DroppedCaps, FileError> {
        if !self.powerless {
            return Ok(DroppedCaps::kept());
        }
        DroppedCaps::laid_down().map_err(|errno| refused(errno, "lay down capabilities for", Path::new("/")))
    }

    /// As [`Self::drop_caps`], for what is only open to who owns what was looked at and has one of these
    /// permissions as its owner. Then nothing need be laid down: what an owner may, no capability and no
    /// access list adds to, and a search through a hundred thousand files is half as long without.
    pub(super) fn drop_caps_over(&self, stat: &Stat, permission: u32) -> Result<DroppedCaps, FileError> {
        if self.may_anyway(stat, permission) {
            return Ok(DroppedCaps::kept());
        }
        self.drop_caps()
    }

    /// Whether what was looked at is open without any capability, or capabilities are used as they are.
    pub(super) fn may_anyway(&self, stat: &Stat, permission: u32) -> bool {
        let owns = stat.owner().0 == rustix::process::geteuid().as_raw();
        !self.powerless || (owns && stat.mode() & permission != 0)
    }

    /// Whether files can be hidden in it.
    pub(super) fn hides(&self) -> bool {
        !self.covers.is_empty()
    }

    /// Whether this lies over something hidden.
    pub(super) fn is_cover(&self, stat: &Stat) -> bool {
        self.covers.contains(&stat.identity())
    }

    /// Whether a path, without links, may be reached.
    ///
    /// # Errors
    /// [`FileError::Outside`], with the path that was asked for.
    pub(super) fn check_within(&self, path: &Path, asked: &Path) -> Result<(), FileError> {
        match &self.confined {
            Some(confined) if !path.starts_with(&confined.directory) => Err(FileError::Outside {
                path: asked.to_path_buf(),
                within: confined.called,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a path is the top of what may be reached, which nothing here removes or replaces.
    pub(super) fn is_top(&self, path: &Path) -> bool {
        match &self.confined {
            Some(confined) => path == confined.directory,
            None => path == Path::new("/"),
        }
    }

    /// Whether anything may be changed.
    ///
    /// # Errors
    /// [`FileError::ReadOnly`].
    pub(super) fn check_writable(&self, path: &Path) -> Result<(), FileError> {
        if self.readonly {
            return Err(FileError::ReadOnly(path.to_path_buf()));
        }
        Ok(())
    }

    /// Until the answer is dropped, nobody else of this process compares and replaces.
    pub(super) fn replacing(&self) -> MutexGuard<'_, ()> {
        self.replacing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path in the root. Links are followed in it, except for those that are no paths (`/proc/self/fd`).
    pub(super) fn resolve(&self, path: &Path, flags: OFlags, how: ResolveFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        let how = how | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), how) {
                // Something was renamed or mounted while a `..` was resolved, anywhere on this host.
                Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
                resolved => return resolved,
            }
        }
        Err(Errno::AGAIN)
    }

    /// What a descriptor holds, if it may be reached; nothing if it has no name any more, since it was
    /// removed or replaced after it was found.
    ///
    /// # Errors
    /// [`FileError`], with the path that was asked for.
    pub(super) fn admit(&self, file: OwnedFd, asked: &Path) -> Result<Option<Handle>, FileError> {
        let said = |errno| refused(errno, "look at", asked);
        let stat = Stat::at(&file).map_err(said)?;
        let Some(path) = self.path_of(&file, &stat).map_err(said)? else {
            return Ok(None);
        };
        self.check_within(&path, asked)?;
        self.check_kept(&file, &stat, asked)?;
        Ok(Some(Handle { file, path, stat }))
    }

    /// Whether something is neither hidden nor the kernel's own.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::Unsupported`].
    pub(super) fn check_kept(&self, file: &OwnedFd, stat: &Stat, path: &Path) -> Result<(), FileError> {
        if self.is_cover(stat) {
            return Err(FileError::NotFound(path.to_path_buf()));
        }
        self.check_device(file, stat.device(), path)
    }

    /// Whether what lies on this device are files.
    pub(super) fn check_device(&self, file: &OwnedFd, device: u64, path: &Path) -> Result<(), FileError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let kernels = match known.iter().find(|(found, _)| *found == device) {
            Some((_, kernels)) => *kernels,
            None => {
                let found = rustix::fs::fstatfs(file).map_err(|errno| refused(errno, "look at", path))?;
                let kernels = OF_THE_KERNEL.contains(&found.f_type.cast_unsigned());
                known.push((device, kernels));
                kernels
            }
        };
        if kernels {
            return Err(FileError::Unsupported(
                "files of the kernel (`/proc`, `/sys` and the like) are not read or written as files; use a command",
            ));
        }
        Ok(())
    }

    /// Where a descriptor's file is by now, in the root; nothing if it is nowhere any more.
    fn path_of(&self, file: &OwnedFd, stat: &Stat) -> Result<Option<PathBuf>, Errno> {
        use std::os::unix::ffi::OsStringExt as _;
        let path = rustix::fs::readlinkat(CWD, own_link(file), Vec::new())?.into_bytes();
        let deleted = path.ends_with(b" (deleted)");
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        if deleted {
            // Or its name ends so.
            let named = self.resolve(&path, OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS);
            let same = |named| Ok::<_, Errno>(Stat::at(&named)?.identity() == stat.identity());
            if !named.and_then(same).unwrap_or(false) {
                return Ok(None);
            }
        }
        Ok(path.is_absolute().then_some(path))
    }
}

/// The name under which this process finds its own descriptor.
pub(super) fn own_link(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens what a descriptor holds: that very file, whatever stands at its path.
pub(super) fn reopen(file: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    // Neither waits for anybody nor takes a terminal, should it be no file after all.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::openat(CWD, own_link(file), flags, Mode::empty())
}
