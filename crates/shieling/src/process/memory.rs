//! Files in memory: how the jail's program, plans, requests and long scripts reach other processes.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;

/// The descriptors below this number get another meaning in a process that we start.
pub(super) const FIRST_FREE: i32 = 16;

/// A file in memory with these bytes, at its beginning, under a descriptor of [`FIRST_FREE`] or more. It is
/// sealed before anybody else has it: what was judged is what is read from it, whoever gets hold of it.
pub(super) fn file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    // Kernels before 6.3 do not know that it is not to be executed.
    sealed(name, bytes, MemfdFlags::NOEXEC_SEAL).or_else(|_| sealed(name, bytes, MemfdFlags::empty()))
}

/// The directory for programs where memory is not executed.
static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();

/// Names a directory, absolute, that can be written and from which programs can be executed: where the kernel does not
/// execute what is in memory (`vm.memfd_noexec`), the programs that the library carries start from a file there that
/// has no name. The first directory that is named holds for this process.
pub fn programs_in(directory: impl Into<PathBuf>) {
    let _ = PROGRAMS.set(directory.into());
}

/// The same of code. As a file without a name in the directory for programs, if there is one and there cannot be
/// code in memory.
pub(super) fn program(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    match sealed(name, bytes, MemfdFlags::EXEC) {
        Ok(made) => Ok(made),
        // Kernels before 6.3 do not know the flag, and need none.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            sealed(name, bytes, MemfdFlags::empty())
        }
        Err(error) => match PROGRAMS.get() {
            Some(directory) => unnamed(directory, bytes),
            None => Err(error),
        },
    }
}

/// A file without a name that nobody can write to any more, since a kernel executes none that somebody can.
fn unnamed(directory: &Path, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let made = rustix::fs::open(directory, flags, Mode::RUSR | Mode::XUSR)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&made, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    let path = format!("/proc/self/fd/{}", made.as_raw_fd());
    let read = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    drop(made);
    above_standard(read)
}

fn sealed(name: &str, bytes: &[u8], flags: MemfdFlags) -> io::Result<OwnedFd> {
    let flags = flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = above_standard(rustix::fs::memfd_create(name, flags)?)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// A host may have closed its own standard streams, and a child's low descriptors are put over with
/// others; ours must be neither.
pub(super) fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_FREE {
        Ok(fd)
    } else {
        Ok(rustix::io::fcntl_dupfd_cloexec(&fd, FIRST_FREE)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn what_another_process_is_given_cannot_be_changed_by_any_way_to_it() {
        for made in [file("text", b"as judged"), program("code", b"as built")] {
            let made = made.expect("this kernel has them");
            let path = format!("/proc/self/fd/{}", made.as_raw_fd());
            let again = rustix::fs::openat(CWD, path, OFlags::RDWR, Mode::empty()).expect("by its number");
            for fd in [made.as_fd(), again.as_fd()] {
                assert_eq!(rustix::io::pwrite(fd, b"x", 0), Err(Errno::PERM));
                assert_eq!(rustix::fs::ftruncate(fd, 3), Err(Errno::PERM));
                assert_eq!(rustix::fs::ftruncate(fd, 30), Err(Errno::PERM));
                let seals = rustix::fs::fcntl_get_seals(fd).expect("it has seals");
                assert!(seals.contains(SealFlags::SEAL | SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK));
            }
        }
    }
}
