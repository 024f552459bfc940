//! The only unsafe code of the crate: what `rustix` and `tokio` do not offer in a safe way, each with
//! a safe signature. Decides nothing.
#![allow(
    unsafe_code,
    reason = "the one home of raw system calls; everything above is safe code"
)]

mod spawn;

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(super) use spawn::spawn;

/// Watches a descriptor for something to read.
///
/// # Errors
/// No room in the runtime's poll, or a descriptor that cannot be polled.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, and the returned
    // value owns it.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// Watches a descriptor for something to read, and for room to write.
///
/// # Errors
/// No room in the runtime's poll, or a descriptor that cannot be polled.
pub(crate) fn watch_both(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    let both = Interest::READABLE | Interest::WRITABLE;
    // SAFETY: as in `watch`.
    unsafe { AsyncFd::register_with_interest(fd, both) }.map_err(io::Error::from)
}
