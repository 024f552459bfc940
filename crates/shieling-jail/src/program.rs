//! The program: builds a sandbox, stays in it as pid 1, and starts commands in it.
//!
//! ```text
//! host ──► zygote ──► monitor ──► init (pid 1 of the jail) ──► supervisor ──► command
//!          one a host  outside     builds, probes, serves        one a job      confined
//! ```
//!
//! One thread, no async, no policy. It is started with descriptor 3 (orders) and reads nothing
//! else: no argument, no variable, no file of configuration.
//!
//! Reading order: `zygote` and `monitor` for what happens outside, `inside` for how pid 1 builds the jail,
//! `view`, `rules` and `filter` for its three locks, `init` and `supervisor` for what
//! runs in it.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::sys::Copied;
use crate::{ORDERS, monitor, socket, sys, zygote};

/// Runs the program, which was executed with the orders socket as [`ORDERS`]. Returns once its host has
/// gone; with nothing if it was started without its descriptor.
pub fn run() -> Option<()> {
    zygote::run()
}

/// Makes a copy of this process that keeps one jail, and gives the socket on which it takes its order. `likely` says that
/// it will be for a jail with namespaces and a network of its own, which are then made at once.
///
/// It costs a tenth of executing the program, and is for a host that knows from the first what it will do: the copy has
/// what this process has in its memory, so nothing should be in there yet. Its variables and arguments are wiped out
/// of the copy before anything else.
///
/// Nothing if this process has several threads, or if its copy cannot be made: the program can still be executed.
pub fn copy(likely: bool) -> Option<OwnedFd> {
    if !sys::is_single_threaded() {
        return None;
    }
    let (ours, theirs) = socket::pair().ok()?;
    match sys::copy_silently().ok()? {
        Copied::Parent(_) => Some(ours),
        Copied::Child => {
            // As if the program had been executed with nothing but its orders.
            let kept = sys::forget_arguments(c"shieling-jail")
                .and_then(|()| sys::begin_anew(theirs))
                .and_then(|()| sys::inherited(ORDERS).ok_or(Errno::BADF));
            match kept {
                Ok(orders) => keep(orders, likely),
                Err(_) => sys::exit(2),
            }
        }
    }
}

/// Waits for one order on this socket, makes the jail and keeps it to its end.
fn keep(orders: OwnedFd, likely: bool) -> ! {
    let _ = rustix::io::fcntl_setfd(&orders, rustix::io::FdFlags::CLOEXEC);
    // As `zygote` does: away from the terminal, so that a Ctrl-C for the host is not one for us.
    let _ = rustix::process::setsid();
    // For people who look at `ps`.
    let _ = rustix::thread::set_name(c"shieling-jail");
    let host = rustix::process::getppid()
        .and_then(|host| rustix::process::pidfd_open(host, rustix::process::PidfdFlags::empty()).ok());
    if let Some(host) = host {
        monitor::run(orders, host, None, likely);
    }
    sys::exit(0)
}
