//! Reaping.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;

use super::descriptor::errno;

/// What a process and the children that it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::process) struct Usage {
    /// Microseconds of CPU time in user code.
    pub(in crate::process) user_us: u64,
    /// Microseconds of CPU time in the kernel.
    pub(in crate::process) system_us: u64,
    /// The largest resident set of one process, in KiB.
    pub(in crate::process) peak_kib: u64,
}

/// One look for an ended child.
#[derive(Debug, Clone, Copy)]
pub(in crate::process) enum Reaped {
    /// This child has ended and is gone now.
    Ended { pid: i32, status: i32, usage: Usage },
    /// There are children, and none of them has ended.
    NoneYet,
    /// There are no children at all.
    NoChildren,
}

/// Reaps one ended child of any kind, without waiting.
pub(in crate::process) fn reap_any() -> Reaped {
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are valid for the writes that wait4 makes.
        let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, usage.as_mut_ptr()) };
        match pid {
            0 => return Reaped::NoneYet,
            1.. => {
                // SAFETY: wait4 filled it, and before that it was zeroed, which is valid too.
                let usage = unsafe { usage.assume_init() };
                let us = |time: libc::timeval| {
                    u64::try_from(time.tv_sec)
                        .unwrap_or(0)
                        .saturating_mul(1_000_000)
                        .saturating_add(u64::try_from(time.tv_usec).unwrap_or(0))
                };
                let usage = Usage {
                    user_us: us(usage.ru_utime),
                    system_us: us(usage.ru_stime),
                    peak_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
                };
                return Reaped::Ended { pid, status, usage };
            }
            _ if errno() == Errno::INTR => {}
            _ => return Reaped::NoChildren,
        }
    }
}

/// Waits for the end of a process made by [`super::clone_process`] and reaps it.
///
/// # Errors
/// `ECHILD` if it has been reaped already.
pub(in crate::process) fn reap_cloned(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let id = libc::id_t::try_from(pidfd.as_raw_fd()).unwrap_or_default();
        // SAFETY: `info` is valid for the write; the descriptor is open while it is borrowed.
        match unsafe { libc::waitid(libc::P_PIDFD, id, info.as_mut_ptr(), libc::WEXITED | libc::__WALL) } {
            0 => return Ok(()),
            _ if errno() == Errno::INTR => {}
            _ => return Err(io::Error::last_os_error()),
        }
    }
}
