//! Pipes whose ends in other processes stand above the standard descriptors.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;

use super::memory::above_standard;

/// A pipe: its read end, and its write end above the standard descriptors.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((read, above_standard(write)?))
}

/// A pipe to a program's standard input: its read end, above the standard descriptors, and its write end.
pub(super) fn input() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((above_standard(read)?, write))
}
