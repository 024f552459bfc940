//! Which numbers the jail's own processes have: low ones that no process of a command can have, so that
//! the filter of system calls can tell them apart.
//!
//! The kernel gives numbers in rising order and begins again at 300. Pid 1 has the rising order begin
//! there too, and gives its supervisors numbers below.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

use crate::sys::{self, Copied};

/// Pid 1's number and those that supervisors can have.
pub(crate) const RESERVED: Range<u32> = 1..300;

/// Has the numbers of what is started from here on begin behind the reserved ones. `proc` is the jail's own
/// and can be written to.
pub(crate) fn skip_reserved(proc: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let last = RESERVED.end.to_string();
    let set = rustix::fs::openat(proc, c"sys/kernel/ns_last_pid", flags, Mode::empty())
        .and_then(|file| rustix::io::write(&file, last.as_bytes()));
    match set {
        Ok(_) => Ok(()),
        // A kernel without `CHECKPOINT_RESTORE` does not have it: they are used up one by one.
        Err(_) => use_up(),
    }
}

fn use_up() -> Result<(), Errno> {
    loop {
        match sys::copy(0)? {
            Copied::Child => sys::exit(0),
            Copied::Parent(number) => {
                let _ = rustix::process::waitpid(Pid::from_raw(number), WaitOptions::empty());
                if number.cast_unsigned() >= RESERVED.end {
                    return Ok(());
                }
            }
        }
    }
}

/// Gives supervisors their numbers.
pub(crate) struct Numbers {
    last: i32,
    /// Whether they could be given.
    pub(crate) given: bool,
}

impl Numbers {
    /// None given yet.
    pub(crate) fn new() -> Self {
        Self { last: 1, given: true }
    }

    /// Copies this process; the copy has the next free reserved number.
    ///
    /// # Errors
    /// `EAGAIN` while all of them are in use.
    pub(crate) fn copy(&mut self) -> Result<Copied, Errno> {
        if !self.given {
            return sys::copy(0);
        }
        // Each in its turn, so that one is not used again at once.
        for _ in RESERVED {
            self.last = if self.last.cast_unsigned() + 1 < RESERVED.end {
                self.last + 1
            } else {
                2
            };
            match sys::copy_as(self.last) {
                Err(Errno::EXIST) => {}
                // A filter around us lets no `clone3` through.
                Err(Errno::NOSYS | Errno::PERM) => {
                    self.given = false;
                    return sys::copy(0);
                }
                copied => return copied,
            }
        }
        Err(Errno::AGAIN)
    }
}
