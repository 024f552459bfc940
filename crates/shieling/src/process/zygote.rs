//! The program `shieling-jail`, which the library carries in itself, and the one process of it that
//! stands ready to make jails: started with the first jail, gone with this process.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, WaitOptions};
use shieling_jail::message::{JAIL, LIKELY};

use super::memory::{self, above_standard};
use super::{socket, sys};

/// The program, of this very version.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shieling-jail"));

/// The zygote, and the process whose it is.
static ZYGOTE: Mutex<Option<(u32, OwnedFd)>> = Mutex::new(None);

/// Starts the program that makes sandboxes, and has commands run on this host, if it has not been started: for a
/// caller that has other things to do before it knows what is to run. Without this call, the first command does so.
/// `sandbox` says that the first command is likely to run in a sandbox that does not share this host's network, whose
/// namespaces are then made meanwhile.
///
/// Nothing comes of it if it fails: the first command then says why.
pub fn start_ahead(sandbox: bool) {
    let mut zygote = ZYGOTE.lock().unwrap_or_else(PoisonError::into_inner);
    if zygote.is_none()
        && let Ok(orders) = start()
    {
        if sandbox {
            let _ = socket::send(&orders, LIKELY, &[]);
        }
        *zygote = Some((std::process::id(), orders));
    }
}

/// The copy of this process that takes the first order, and the process whose it is.
#[cfg(feature = "copy")]
static COPY: Mutex<Option<(u32, OwnedFd)>> = Mutex::new(None);

/// Makes a copy of this process that makes the first sandbox, or has commands run on this host, as
/// [`start_ahead`] does with a program of its own: in a tenth of the time, and for one sandbox.
///
/// It is for the beginning of `main`: the copy keeps what this process has in its memory. It wipes the arguments and the
/// variables that the process was started with. Does nothing in a process with several threads.
#[cfg(feature = "copy")]
pub fn copy_ahead(sandbox: bool) {
    let mut copy = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    if copy.is_none() {
        *copy = shieling_jail::program::copy(sandbox).map(|orders| (std::process::id(), orders));
    }
}

/// Whether there is a copy of this process that waits for its order.
#[cfg(feature = "copy")]
pub fn has_copy() -> bool {
    COPY.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// The copy, if there is one and it has had no order.
fn copied() -> Option<OwnedFd> {
    #[cfg(feature = "copy")]
    {
        let copy = COPY.lock().unwrap_or_else(PoisonError::into_inner).take();
        copy.filter(|(whose, _)| *whose == std::process::id())
            .map(|(_, orders)| orders)
    }
    #[cfg(not(feature = "copy"))]
    None
}

/// Orders a jail, with its descriptors.
pub(super) fn order(fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if let Some(orders) = copied()
        && socket::send(&orders, JAIL, fds).is_ok()
    {
        return Ok(());
    }
    let mut zygote = ZYGOTE.lock().unwrap_or_else(PoisonError::into_inner);
    let me = std::process::id();
    // A copy of this process, such as Python's multiprocessing makes, gets one of its own: the other
    // goes with the process that it was started by.
    if let Some((_, orders)) = zygote.as_ref().filter(|(whose, _)| *whose == me)
        && socket::send(orders, JAIL, fds).is_ok()
    {
        return Ok(());
    }
    let (_, orders) = zygote.insert((me, start()?));
    socket::send(orders, JAIL, fds)
}

/// Starts a zygote. Gives the socket on which it takes orders.
fn start() -> io::Result<OwnedFd> {
    let program = program()?;
    let (ours, theirs) = socket::pair()?;
    let theirs = above_standard(theirs)?;
    let path = CString::new(format!("/proc/self/fd/{}", program.as_raw_fd()))?;
    let starter = sys::spawn(&path, c"shieling-jail", &[theirs.as_raw_fd()])?;
    // It is gone as soon as it has copied itself. Somebody may have reaped it for us, which is as good.
    let _ = rustix::process::waitpid(Pid::from_raw(starter), WaitOptions::empty());
    Ok(ours)
}

/// The program, in memory, sealed.
fn program() -> io::Result<OwnedFd> {
    memory::program("shieling-jail", PROGRAM)
}
