//! The process from which every monitor of one host is copied, so that a program is executed once and
//! not for each jail: on some machines, the start of a C library alone takes longer than a jail.
//!
//! The process that the host starts makes a copy of itself, the zygote, and is gone: so that the host
//! has no child to wait for, and gets no signal later that it did not expect. The zygote has one monitor
//! ready that waits for an order by itself, and makes the next one when that is taken: at once, or with the
//! next order where none is expected. It knows nothing of any plan, and ends with its host.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::PidfdFlags;
use shieling_jail::ORDERS;

use crate::monitor;
use crate::order::{LATER, WARM};
use crate::sys::{self, Copied};

/// Runs the zygote and, in copies of it, the monitors. Nothing if it was started without its descriptor.
pub(crate) fn run() -> Option<()> {
    sys::close_from(ORDERS + 1).ok()?;
    let orders = sys::inherited(ORDERS)?;
    rustix::io::fcntl_setfd(&orders, rustix::io::FdFlags::CLOEXEC).ok()?;
    let host =
        rustix::process::getppid().and_then(|host| rustix::process::pidfd_open(host, PidfdFlags::empty()).ok())?;
    match sys::copy(0).ok()? {
        Copied::Parent(_) => sys::exit(0),
        Copied::Child => {}
    }
    // Away from the terminal, so that a Ctrl-C for the host is not one for us.
    rustix::process::setsid().ok()?;
    sys::ignore_children();
    // For people who look at `ps`: it was started under a number.
    let _ = rustix::thread::set_name(c"shieling-jail");
    let mut warm = false;
    loop {
        let (heard, told) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
        match sys::copy(0).ok()? {
            Copied::Child => {
                sys::close_for_good(heard.as_fd());
                monitor::run(orders, host, Some(told), warm);
                sys::exit(0)
            }
            Copied::Parent(_) => drop(told),
        }
        warm = match taken(&heard, &host)? {
            WARM => true,
            LATER => {
                ordered(&orders, &host)?;
                false
            }
            _ => false,
        };
    }
}

/// Waits until there is an order, which the next monitor takes; nothing once the host has gone.
fn ordered(orders: &OwnedFd, host: &OwnedFd) -> Option<()> {
    loop {
        let mut fds = [PollFd::new(orders, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Err(_) => return None,
            Ok(_) if fds[1].revents().is_empty() => return Some(()),
            Ok(_) => return None,
        }
    }
}

/// What the monitor says when it is taken; nothing once it has gone untaken, or the host has gone.
fn taken(heard: &OwnedFd, host: &OwnedFd) -> Option<u8> {
    let mut byte = [0];
    loop {
        let mut fds = [PollFd::new(heard, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        let [heard_now, host_now] = fds.map(|fd| !fd.revents().is_empty());
        if heard_now {
            return match rustix::io::read(heard, &mut byte) {
                Ok(1) => Some(byte[0]),
                _ => None,
            };
        }
        if host_now {
            return None;
        }
    }
}
