//! Descriptors, memory and the end of a supervisor.

use std::ffi::CStr;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Closes every descriptor of this process but `keep`, which must be sorted.
pub(in crate::process) fn close_all_but(keep: &[RawFd]) -> Result<(), Errno> {
    let mut first: u32 = 0;
    for &fd in keep {
        let Ok(fd) = u32::try_from(fd) else { continue };
        if fd > first {
            close_range(first, fd.saturating_sub(1))?;
        }
        first = fd.saturating_add(1);
    }
    close_range(first, u32::MAX)
}

fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    // The raw call, since musl has no wrapper for it.
    // SAFETY: integers only. It is called only in a supervisor, which uses no descriptor that it
    // did not name in `keep`.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Ends this process without running anything of the host's: no destructor, no atexit handler.
pub(in crate::process) fn exit(code: i32) -> ! {
    // SAFETY: takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Names this process, for people who look at `ps`.
pub(in crate::process) fn rename(name: &CStr) {
    // SAFETY: PR_SET_NAME reads at most 16 bytes of a terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Zeroed memory for `count` pairs of numbers, straight from the kernel since a supervisor may not
/// allocate. Pages cost memory only once they are written to. It is never given back.
pub(in crate::process) fn map_pairs(count: usize) -> Option<&'static mut [[i32; 2]]> {
    let length = count.checked_mul(size_of::<[i32; 2]>())?;
    // SAFETY: a new private anonymous mapping at a place of the kernel's choice touches nothing.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is page-aligned, zeroed, `length` bytes long, only ours, and never unmapped.
    Some(unsafe { std::slice::from_raw_parts_mut(memory.cast(), count) })
}

/// The error of the last libc call in this thread.
pub(super) fn errno() -> Errno {
    // SAFETY: libc promises a valid pointer to this thread's errno.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

/// Watches a descriptor for something to read.
///
/// # Errors
/// No room in the runtime's poll, or a descriptor that cannot be polled.
pub(in crate::process) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, and the returned
    // value owns it.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}
