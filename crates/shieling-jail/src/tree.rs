//! The processes below a supervisor, found in `/proc` and signalled. Allocates nothing, since it
//! runs in the supervisor.
//!
//! A pid read from `/proc` may belong to somebody else a moment later. So each process is pinned
//! with a pidfd first, then its parent is read again, and only then is it signalled: either it is
//! still ours, or nothing happens to it.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::time::{ClockId, clock_gettime};

use crate::sys;

/// How long SIGKILL is tried before the processes that remain are called survivors.
pub(crate) const KILL_BUDGET_MS: u64 = 2_000;
/// The time between two rounds of SIGKILL.
pub(crate) const KILL_PAUSE_MS: u64 = 2;
/// After so many rounds in which no living process could be signalled, more will not help.
pub(crate) const REFUSED_ROUNDS: u32 = 10;

/// From this round of SIGKILL on everything is stopped first, since something forks faster than it is killed.
pub(crate) const STOPPING_ROUND: u32 = 3;

/// More processes than any kernel has pids by default; 32 MiB of address space, touched as needed.
const CAPACITY: usize = 4 * 1024 * 1024;

/// Milliseconds of the monotonic clock.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}

/// What one walk over the tree found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Walk {
    /// Processes that were alive.
    pub(crate) alive: u32,
    /// Of those, the ones besides the main process.
    pub(crate) others: u32,
    /// Of those, the ones that the kernel did not let us signal.
    pub(crate) refused: u32,
}

impl Walk {
    /// Whether there are living processes, and none of them could be signalled.
    pub(crate) fn is_refused(&self) -> bool {
        self.alive > 0 && self.alive == self.refused
    }

    fn count(&mut self, main: bool, result: Option<Result<(), Errno>>) {
        if let Some(result) = result {
            self.alive += 1;
            self.others += u32::from(!main);
            self.refused += u32::from(result.is_err());
        }
    }
}

/// The tree below one process, which is the caller.
pub(crate) struct Tree {
    root: Pid,
    main: i32,
    /// Pairs of a pid and the parent under which it was found, in breadth-first order.
    queue: &'static mut [[i32; 2]],
    length: usize,
    /// The part of it that is meant; none for all of it.
    part: Option<Part>,
}

/// A part of a tree: what started in this time below the main process, which itself is not part of it,
/// or below nobody any more; and what descends from it. In ticks since boot, both ends included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) since: u64,
    pub(crate) until: u64,
}

impl Tree {
    /// The tree below the calling process, in which `main` is the main process. `None` if there is
    /// no memory for the list.
    pub(crate) fn below(root: Pid, main: i32) -> Option<Self> {
        Some(Self {
            root,
            main,
            queue: sys::map_pairs(CAPACITY)?,
            length: 0,
            part: None,
        })
    }

    /// The tree, of which from now on this part is meant, or all of it.
    pub(crate) fn of(&mut self, part: Option<Part>) -> &mut Self {
        self.part = part;
        self
    }

    /// Asks every process in the tree to end.
    ///
    /// The whole tree is listed first, since the children of a process that dies of the signal are
    /// no longer found under it. It goes on while `in_time` says so: asking hundreds of processes
    /// that keep every core busy takes longer than they were given.
    pub(crate) fn ask(&mut self, in_time: impl Fn() -> bool) -> Walk {
        self.start();
        let mut at = 0;
        while let Some([pid, _]) = self.get(at)
            && in_time()
        {
            self.push_children(pid);
            at += 1;
        }
        let mut walk = Walk::default();
        let mut at = 0;
        while let Some([pid, parent]) = self.get(at)
            && in_time()
        {
            // A stopped process would not notice SIGTERM before it goes on.
            walk.count(
                pid == self.main,
                self.signal_one(pid, parent, &[Signal::TERM, Signal::CONT]),
            );
            at += 1;
        }
        walk
    }

    /// Counts the processes in the tree, and signals none.
    pub(crate) fn look(&mut self) -> Walk {
        self.start();
        let mut walk = Walk::default();
        let mut at = 0;
        while let Some([pid, parent]) = self.get(at) {
            self.push_children(pid);
            walk.count(pid == self.main, self.verify(pid, parent).map(|_| Ok(())));
            at += 1;
        }
        walk
    }

    /// Kills every process in the tree that it finds, and their groups with them.
    ///
    /// The kernel kills a group in one step which no fork escapes, so that a storm of forks is over
    /// with the first of its processes. A group in the tree has no member outside: groups do not
    /// cross sessions, and a session's processes all descend from its leader, which is in the tree.
    pub(crate) fn kill(&mut self) -> Walk {
        self.start();
        let mut walk = Walk::default();
        let mut at = 0;
        let mut last_group = 0;
        while let Some([pid, parent]) = self.get(at) {
            self.push_children(pid);
            if let Some(found) = self.verify(pid, parent) {
                // The group of the main process is not all part of a part.
                if found.group != last_group
                    && !(self.part.is_some() && found.group == self.main)
                    && let Some(group) = Pid::from_raw(found.group)
                {
                    last_group = found.group;
                    // A refusal shows below too.
                    let _ = rustix::process::kill_process_group(group, Signal::KILL);
                }
                walk.count(pid == self.main, found.signal(&[Signal::KILL]));
            }
            at += 1;
        }
        walk
    }

    /// Stops every process in the tree, each before its children are listed, so that it has no more
    /// of them afterwards.
    pub(crate) fn freeze(&mut self) {
        self.start();
        let mut at = 0;
        while let Some([pid, parent]) = self.get(at) {
            self.signal_one(pid, parent, &[Signal::STOP]);
            self.push_children(pid);
            at += 1;
        }
    }

    fn start(&mut self) {
        self.length = 0;
        self.push_children(self.root.as_raw_pid());
    }

    /// Whether a process that was found here is to be looked at. The main process always is, for its
    /// children.
    fn is_meant(&self, pid: i32, parent: i32) -> bool {
        let Some(part) = self.part else { return true };
        let top = parent == self.main || parent == self.root.as_raw_pid();
        pid == self.main || !top || stat(pid).is_some_and(|stat| (part.since..=part.until).contains(&stat.started))
    }

    fn get(&self, at: usize) -> Option<[i32; 2]> {
        if at < self.length {
            self.queue.get(at).copied()
        } else {
            None
        }
    }

    fn signal_one(&self, pid: i32, parent: i32, signals: &[Signal]) -> Option<Result<(), Errno>> {
        self.verify(pid, parent)?.signal(signals)
    }

    /// Pins a process. `None` if it is not alive or not (any more) where it was found.
    fn verify(&self, pid: i32, parent: i32) -> Option<Found> {
        if self.part.is_some() && pid == self.main {
            return None;
        }
        let pinned = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let Stat {
            state,
            parent: now,
            group,
            ..
        } = stat(pid)?;
        let ended = state == b'Z' || state == b'X';
        let elsewhere = now != parent && now != self.root.as_raw_pid();
        if ended || elsewhere {
            None
        } else {
            Some(Found { pinned, group })
        }
    }

    /// Every thread of a process has its own list of children.
    fn push_children(&mut self, pid: i32) {
        let Some(tasks) = open(Path::new(pid).push(b"/task"), OFlags::DIRECTORY) else {
            return;
        };
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut entries = RawDir::new(tasks, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let Some(task) = parse(entry.file_name().to_bytes()) else {
                continue;
            };
            let path = Path::new(pid).push(b"/task/").push_number(task).push(b"/children");
            if let Some(children) = open(path, OFlags::empty()) {
                self.push_list(&children, pid);
            }
        }
    }

    fn push_list(&mut self, children: &OwnedFd, parent: i32) {
        let mut buffer = [0_u8; 1024];
        let mut number: Option<i32> = None;
        while let Ok(count @ 1..) = rustix::io::read(children, &mut buffer) {
            for &byte in buffer.iter().take(count) {
                if byte.is_ascii_digit() {
                    number = Some(
                        number
                            .unwrap_or(0)
                            .wrapping_mul(10)
                            .wrapping_add(i32::from(byte - b'0')),
                    );
                } else if let Some(pid) = number.take() {
                    self.push(pid, parent);
                }
            }
        }
        if let Some(pid) = number {
            self.push(pid, parent);
        }
    }

    fn push(&mut self, pid: i32, parent: i32) {
        if !self.is_meant(pid, parent) {
            return;
        }
        if let Some(slot) = self.queue.get_mut(self.length) {
            *slot = [pid, parent];
            self.length += 1;
        }
    }
}

/// A living process of the tree, pinned.
struct Found {
    pinned: OwnedFd,
    group: i32,
}

impl Found {
    /// `None` if it ended meanwhile.
    fn signal(&self, signals: &[Signal]) -> Option<Result<(), Errno>> {
        let mut delivered = false;
        let mut result = Ok(());
        for &signal in signals {
            match rustix::process::pidfd_send_signal(&self.pinned, signal) {
                Ok(()) => delivered = true,
                // It died of the signal before.
                Err(Errno::SRCH) if delivered => return Some(Ok(())),
                Err(Errno::SRCH) => return None,
                Err(error) => result = Err(error),
            }
        }
        Some(result)
    }
}

struct Stat {
    state: u8,
    parent: i32,
    group: i32,
    /// When it started, in ticks since boot.
    started: u64,
}

/// Whether this process is on a processor, waits for one, or is in the middle of a system call that nothing interrupts.
pub(crate) fn is_busy(pid: Pid) -> bool {
    stat(pid.as_raw_pid()).is_some_and(|stat| matches!(stat.state, b'R' | b'D'))
}

fn stat(pid: i32) -> Option<Stat> {
    let file = open(Path::new(pid).push(b"/stat"), OFlags::empty())?;
    let mut buffer = [0_u8; 512];
    let count = rustix::io::read(&file, &mut buffer).ok()?;
    let line = buffer.get(..count)?;
    // The name may hold anything, also `)`; of what follows it, nothing can.
    let after = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = line
        .get(after + 1..)?
        .split(|&byte| byte == b' ')
        .filter(|field| !field.is_empty());
    Some(Stat {
        state: *fields.next()?.first()?,
        parent: parse(fields.next()?)?,
        group: parse(fields.next()?)?,
        // The 22nd field in all.
        started: parse_long(fields.nth(16)?)?,
    })
}

fn parse(digits: &[u8]) -> Option<i32> {
    parse_long(digits).and_then(|number| i32::try_from(number).ok())
}

fn parse_long(digits: &[u8]) -> Option<u64> {
    let mut number: u64 = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    (!digits.is_empty()).then_some(number)
}

fn open(path: Path, flags: OFlags) -> Option<OwnedFd> {
    rustix::fs::open(
        path.as_c_str()?,
        flags | OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()
}

/// A path below `/proc`, built in place.
struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl Path {
    fn new(pid: i32) -> Self {
        Self {
            bytes: [0; 64],
            length: 0,
        }
        .push(b"/proc/")
        .push_number(pid)
    }

    fn push(mut self, text: &[u8]) -> Self {
        for &byte in text {
            // The last byte stays zero.
            if self.length < self.bytes.len() - 1
                && let Some(slot) = self.bytes.get_mut(self.length)
            {
                *slot = byte;
                self.length += 1;
            }
        }
        self
    }

    fn push_number(self, number: i32) -> Self {
        let mut digits = [0_u8; 10];
        let mut rest = number.unsigned_abs();
        let mut at = digits.len();
        loop {
            at -= 1;
            if let Some(slot) = digits.get_mut(at) {
                *slot = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        match digits.get(at..) {
            Some(digits) => self.push(digits),
            None => self,
        }
    }

    fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_built_without_allocating() {
        for (pid, text) in [
            (1, c"/proc/1/stat"),
            (4_194_304, c"/proc/4194304/stat"),
            (i32::MAX, c"/proc/2147483647/stat"),
        ] {
            assert_eq!(Path::new(pid).push(b"/stat").as_c_str(), Some(text));
        }
    }

    #[test]
    fn a_process_knows_its_state_and_parent() {
        let me = rustix::process::getpid().as_raw_pid();
        let parent = rustix::process::getppid().map(Pid::as_raw_pid);
        assert_eq!(stat(me).map(|stat| stat.parent), parent);
        assert_eq!(
            stat(me).map(|stat| stat.group),
            Some(rustix::process::getpgrp().as_raw_pid())
        );
    }
}
