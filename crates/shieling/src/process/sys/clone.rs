//! Making the supervisor: a copy of this process that its host does not notice.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::ptr;

/// Copies this process, runs `entry` in the copy, and returns a pidfd of the copy.
///
/// The copy has no exit signal: its host gets no SIGCHLD for it and a host's `waitpid(-1)` (a
/// Python program's, say) neither sees nor steals it; only [`super::reap_cloned`] does. It starts
/// with every signal blocked, so that no handler of the host ever runs in it.
///
/// `entry` runs in the copy of a possibly multi-threaded process and must only make calls that are
/// async-signal-safe: no allocation, no lock, no panic.
///
/// # Errors
/// Whatever `clone` says: mostly no memory or too many processes.
pub(in crate::process) fn clone_process<T>(entry: fn(&T) -> !, argument: &T) -> io::Result<OwnedFd> {
    let old = block_all_signals();
    let mut pidfd: libc::c_int = -1;
    // The raw call and not `libc::fork`: fork runs the host's atfork handlers, and it always sends
    // SIGCHLD. The first three arguments stand in the same order on every architecture we know, and
    // the last two are zero.
    // SAFETY: without CLONE_VM the copy has its own memory and continues on its own copy of this
    // stack; `pidfd` outlives the call, which writes one int there.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::CLONE_PIDFD as libc::c_ulong,
            ptr::null_mut::<()>(),
            &raw mut pidfd,
            0_usize,
            0_usize,
        )
    };
    if result == 0 {
        entry(argument);
    }
    let error = io::Error::last_os_error();
    restore_signals(&old);
    if result < 0 {
        return Err(error);
    }
    // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd) })
}

fn block_all_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    let mut old = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises `all`; pthread_sigmask reads it and initialises `old`; with
    // these arguments neither can fail.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
        old.assume_init()
    }
}

fn restore_signals(old: &libc::sigset_t) {
    // SAFETY: `old` is an initialised set and the third argument may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old, ptr::null_mut()) };
}
