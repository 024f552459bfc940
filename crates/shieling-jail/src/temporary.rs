//! A directory for temporary files where there is no view with a private `/tmp`: made for one jail, for its
//! user alone, and removed with everything in it at the jail's end.
//!
//! Removed by descriptor, without following a link and without recursion: what lies deeper is moved up
//! first, so that no depth is too deep.

use std::ffi::CString;
use std::fmt::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directory, until it is removed.
pub(crate) struct Temporary {
    parent: OwnedFd,
    name: String,
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl Temporary {
    /// Makes one in `parent`, by a name that nobody can guess and so occupy.
    pub(crate) fn make(parent: &Path) -> Result<Self, Errno> {
        let mut random = [0_u8; 16];
        let source = rustix::fs::open("/dev/urandom", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        if rustix::io::read(&source, &mut random)? != random.len() {
            return Err(Errno::IO);
        }
        let mut name = "shieling-tmp-".to_owned();
        for byte in random {
            let _ = write!(name, "{byte:02x}");
        }
        let path = parent.join(&name);
        let parent = rustix::fs::open(
            parent,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::fs::mkdirat(&parent, &name, Mode::RWXU)?;
        Ok(Self { parent, name, path })
    }

    /// Removes it. What cannot be removed stays.
    pub(crate) fn remove(self) {
        let _ = rustix::fs::openat(&self.parent, &self.name, OFlags::RDONLY | DIRECTORY, Mode::empty())
            .and_then(|top| empty(&top))
            .and_then(|()| rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR));
    }
}

fn empty(top: &OwnedFd) -> Result<(), Errno> {
    let mut next = 0_u64;
    loop {
        let names = names(top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            match rustix::fs::unlinkat(top, &name, AtFlags::empty()) {
                Ok(()) => {}
                Err(Errno::ISDIR | Errno::PERM) => remove_directory(top, &name, &mut next)?,
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// Removes a directory of `top`; what is in it is moved to `top`.
fn remove_directory(top: &OwnedFd, name: &CString, next: &mut u64) -> Result<(), Errno> {
    let directory = opened(top, name)?;
    for inner in names(&directory)? {
        let mut opened_up = false;
        loop {
            let free = CString::new(format!("shieling-{next}")).map_err(|_| Errno::INVAL)?;
            *next += 1;
            match rustix::fs::renameat(&directory, &inner, top, &free) {
                Ok(()) => break,
                // There by chance, or by somebody's doing.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR) => {}
                // A directory that is moved is written to.
                Err(Errno::ACCESS) if !opened_up => {
                    opened(&directory, &inner)?;
                    opened_up = true;
                }
                Err(errno) => return Err(errno),
            }
        }
    }
    rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR)
}

/// Opens a directory, whatever its mode was.
fn opened(parent: &OwnedFd, name: &CString) -> Result<OwnedFd, Errno> {
    let found = rustix::fs::openat(parent, name, OFlags::PATH | DIRECTORY, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    rustix::fs::chmodat(CWD, path, Mode::RWXU, AtFlags::empty())?;
    rustix::fs::openat(&found, c".", OFlags::RDONLY | DIRECTORY, Mode::empty())
}

fn names(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests look at files")]

    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn nothing_is_left_and_no_link_is_followed() {
        let base = tempfile::tempdir().expect("a directory");
        let kept = base.path().join("kept");
        fs::create_dir(&kept).expect("made");
        fs::write(kept.join("file"), "x").expect("written");
        let temporary = Temporary::make(base.path()).expect("made");
        let at = temporary.path.clone();
        assert_eq!(fs::metadata(&at).expect("there").permissions().mode() & 0o7777, 0o700);
        symlink(&kept, at.join("link")).expect("linked");
        fs::write(at.join("shieling-0"), "x").expect("written");
        fs::create_dir(at.join("shieling-1")).expect("made");
        fs::write(at.join("shieling-1/full"), "x").expect("written");
        fs::create_dir_all(at.join("a/b/c")).expect("made");
        symlink("../../..", at.join("a/b/up")).expect("linked");
        for path in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(at.join(path), fs::Permissions::from_mode(0o000)).expect("set");
        }
        // Deeper than a path can say.
        let mut deep = rustix::fs::open(&at, OFlags::PATH | DIRECTORY, Mode::empty()).expect("open");
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&deep, c"deeper", Mode::RWXU).expect("made");
            deep = rustix::fs::openat(&deep, c"deeper", OFlags::PATH | DIRECTORY, Mode::empty()).expect("open");
        }
        drop(deep);
        temporary.remove();
        assert!(!at.exists(), "{:?}", fs::read_dir(&at).map(Iterator::count));
        assert_eq!(fs::read(kept.join("file")).expect("kept"), b"x");
        assert_eq!(fs::read_dir(base.path()).expect("there").count(), 1);
    }
}
