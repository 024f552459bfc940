//! What bash leaves undone when it gives a command up and believes that the shell is to end. Ours goes on.
#![allow(unsafe_code, reason = "these are variables of a C program")]

use core::ffi::{CStr, c_int};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fstat, fstatfs};
use rustix::io::FdFlags;

use crate::bash;

/// How deep bash is in functions, loops and lists: what it sets to 0 itself where a command that was
/// given up is not the shell's last.
const DEPTHS: [&CStr; 11] = [
    c"parse_and_execute_level",
    c"interrupt_state",
    c"return_catch_flag",
    c"loop_level",
    c"breaking",
    c"continuing",
    c"funcnest",
    c"evalnest",
    c"executing_list",
    c"comsub_ignore_return",
    c"wait_intr_flag",
];

/// The functions that bash was in.
const CALLS: [&CStr; 3] = [c"FUNCNAME", c"BASH_SOURCE", c"BASH_LINENO"];

/// Where bash puts what a redirection has displaced.
const DISPLACED: core::ops::Range<i32> = 10..256;

/// Where what bash opens for itself comes first. Above them stands what it chooses numbers for, as in
/// `exec {fd}<file`.
const FIRST: i32 = 3;
const LOW: usize = 7;

/// How the kernel tells that a pipe has no name.
const PIPES: u32 = 0x5049_5045;

/// A file, whatever its number.
pub(crate) type File = Option<(u64, u64)>;

/// How bash reads, which it changes while it reads a `$(…)`.
pub(crate) struct Reading {
    aliases: Option<c_int>,
}

impl Reading {
    /// As it is.
    pub(crate) fn now() -> Self {
        Self {
            aliases: bash::get(c"expand_aliases"),
        }
    }

    /// Puts it back, after a text that could not be read to its end.
    fn restore(&self) {
        bash::reset_parser();
        bash::set(c"shell_eof_token", 0);
        if let Some(aliases) = self.aliases {
            bash::set(c"expand_aliases", aliases);
        }
    }
}

/// What file this is.
pub(crate) fn file(fd: BorrowedFd<'_>) -> File {
    fstat(fd).ok().map(|found| (found.st_dev, found.st_ino))
}

/// Unwinds what bash was in when it jumped with `code`, while its output went to `outputs` and it read
/// as in `reading`.
///
/// # Safety
/// Bash has jumped to the frame of the caller.
pub(crate) unsafe fn unwind(code: c_int, reading: &Reading, outputs: &[File; 2]) {
    // SAFETY: as promised; what is still to be unwound was begun by what was given up.
    unsafe { bash::run_unwind_protects() };
    for name in DEPTHS {
        bash::set(name, 0);
    }
    bash::forget_output();
    bash::forget_children();
    bash::end_traps();
    if code == bash::UNREADABLE {
        reading.restore();
    }
    if code != bash::ERREXIT {
        return;
    }
    // Under `set -e`, functions and redirections are left as they are: the shell is thought to exit.
    for name in CALLS {
        bash::empty(name);
    }
    for number in DISPLACED {
        // SAFETY: borrowed to be looked at; if it is not open, the kernel says so.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let kept_by_bash = rustix::io::fcntl_getfd(fd).is_ok_and(|flags| flags.contains(FdFlags::CLOEXEC));
        let found = file(fd);
        if kept_by_bash && found.is_some() && outputs.contains(&found) {
            // SAFETY: a command cannot open a descriptor with that flag, and bash has forgotten it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// Which of the low numbers are not in use, each by a bit.
pub(crate) fn unused() -> u8 {
    let bits = look().into_iter().enumerate();
    bits.fold(0, |bits, (at, found)| bits | u8::from(found == PollFlags::NVAL) << at)
}

/// Closes the pipes that `source` has left open, if it was given up while it read from one. Bash keeps no
/// note of them. They were opened by a name, under a number that was `unused` before, and nobody writes to
/// them any more, since all that was started has ended. That is also true of what `exec 3< <(…)` has opened in
/// the same command: its text breaks off where its writer was ended, and so it goes as well.
pub(crate) fn close_dead_pipes(unused: u8) {
    for ((at, found), number) in look().into_iter().enumerate().zip(FIRST..) {
        if unused & (1 << at) == 0 || !found.contains(PollFlags::HUP) {
            continue;
        }
        // SAFETY: borrowed to be looked at; it was open just now.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        // Only what was opened by a name has this flag: neither a `<<<` nor what came with the next command.
        let by_name = fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::LARGEFILE));
        if by_name && fstatfs(fd).is_ok_and(|found| u32::try_from(found.f_type) == Ok(PIPES)) {
            // SAFETY: bash has forgotten it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// What can be done with each of the low numbers; nothing if the kernel does not say.
fn look() -> [PollFlags; LOW] {
    let mut number = FIRST..;
    let mut fds = [(); LOW].map(|()| {
        // SAFETY: borrowed to be looked at; if it is not open, the kernel says so.
        let fd = unsafe { BorrowedFd::borrow_raw(number.next().unwrap_or(FIRST)) };
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    });
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&at_once)) {
        Ok(_) => fds.map(|fd| fd.revents()),
        Err(_) => [PollFlags::empty(); LOW],
    }
}
