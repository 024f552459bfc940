//! Files in memory: how the jail's program, plans, requests and long scripts reach other processes.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

/// The descriptors below this number get another meaning in a process that we start.
pub(super) const FIRST_FREE: i32 = 16;

/// A file in memory with these bytes, at its beginning, under a descriptor of [`FIRST_FREE`] or more.
pub(super) fn file(name: &str, bytes: &[u8], flags: MemfdFlags) -> io::Result<OwnedFd> {
    let file = above_standard(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | flags)?)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// A file in memory that is code, sealed: nobody can change what is started under its name.
pub(super) fn program(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let sealable = MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag, and need none.
    let file = file(name, bytes, sealable | MemfdFlags::EXEC).or_else(|_| file(name, bytes, sealable))?;
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
