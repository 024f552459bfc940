//! How a supervisor hears of its children.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd};

use rustix::io::Errno;

use super::descriptor::errno;

/// Gives SIGCHLD its default meaning again. A host that ignores it would otherwise have the kernel
/// reap our children, and their status would be lost.
pub(in crate::process) fn default_child_signal() {
    // SAFETY: SIG_DFL is a valid disposition and no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// A descriptor that is readable once a child has ended. SIGCHLD must be blocked.
pub(in crate::process) fn child_signals() -> Result<OwnedFd, Errno> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before sigaddset and signalfd read it.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
