//! Resource limits, which each process hands down to its children. Only ever lowers one: raising takes
//! a capability that even root may lack.

#![expect(
    clippy::disallowed_methods,
    reason = "control groups and processes are told about in files"
)]

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(super) const FILES: Resource = Resource::Nofile;
pub(super) const PROCESSES: Resource = Resource::Nproc;

/// What `wanted` comes to here.
pub(super) fn within_hard(resource: Resource, wanted: u64) -> u64 {
    getrlimit(resource).maximum.map_or(wanted, |hard| hard.min(wanted))
}

/// Sets both the soft and the hard limit, so that nothing inside can take it back.
pub(super) fn lower(resource: Resource, wanted: u64) -> io::Result<()> {
    let value = Some(within_hard(resource, wanted));
    let limit = Rlimit {
        current: value,
        maximum: value,
    };
    Ok(setrlimit(resource, limit)?)
}

/// No core dump. One byte, not none: a limit of 0 still lets the kernel pipe the dump into a handler on
/// the host, as `apport` and `systemd-coredump` are; 1 is its word for "not that either".
pub(super) fn no_core() -> io::Result<()> {
    lower(Resource::Core, 1)
}

/// Limits the tasks of this user in this user namespace (Linux 5.14; before, those of the user on the
/// whole host, which is stricter), after seeing that it binds.
pub(super) fn limit_tasks(most: u64) -> io::Result<()> {
    let maximum = getrlimit(PROCESSES).maximum;
    // With this process there is one already.
    let one = Rlimit {
        current: Some(1),
        maximum,
    };
    setrlimit(PROCESSES, one)?;
    if can_fork()? {
        return Err(io::Error::other("it does not bind: a process was started beyond it"));
    }
    lower(PROCESSES, most)
}

/// Whether the user that this process is may be the host's root, whom `RLIMIT_NPROC` does not bind.
/// A user that is another one further out is seen by [`limit_tasks`].
pub(super) fn may_be_root(root: &Path) -> bool {
    let user = u64::from(rustix::process::geteuid().as_raw());
    let map = fs::read_to_string(root.join("proc/self/uid_map")).unwrap_or_default();
    let outside = map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().ok());
        let (inside, outside, length) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = user.checked_sub(inside).filter(|offset| *offset < length)?;
        outside.checked_add(offset)
    });
    outside.is_none_or(|outside| outside == 0)
}

#[allow(unsafe_code, reason = "fork, whose child does nothing but end")]
fn can_fork() -> io::Result<bool> {
    // SAFETY: the child calls `_exit` at once, which is safe after a fork from any thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    if child < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock {
            Ok(false)
        } else {
            Err(error)
        };
    }
    let child = rustix::process::Pid::from_raw(child);
    rustix::process::waitpid(child, rustix::process::WaitOptions::empty())?;
    Ok(true)
}
