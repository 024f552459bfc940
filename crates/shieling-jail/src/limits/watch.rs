//! The limit on memory where no control group can be made: pid 1 adds up what its processes use, and
//! kills the largest while it is too much.
//!
//! Counted: anonymous and swapped memory, each page once however many processes share it; memory
//! shared without a file; System V segments; memory files (`memfd`) that a process has open or maps; the
//! private directories in memory. Not counted: the kernel's own memory, files that are merely cached,
//! and what a program sets out to hide (a memory file that is nowhere but in a socket, or in a table
//! of files that one thread has for itself). Weaker than a group, and so reported under a name of its own.
//!
//! Refuses to kill pid 1 and its children, which are supervisors.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstat, fstatfs, openat};
use rustix::io::Result;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use shieling_jail::message::Killed;

use super::journal::Journal;
use super::oom_counter::OomCounter;
use super::processes::{Processes, Seen};

pub(super) const SHORTEST: Duration = Duration::from_millis(2);
pub(super) const LONGEST: Duration = Duration::from_millis(250);
/// How fast memory is thought to be used up, in bytes a nanosecond.
const RATE: u64 = 4;
/// Looking takes at most one part in so many of the time.
const PART: u32 = 4;

/// Pid 1's eye on the memory of its sandbox.
#[derive(Debug)]
pub(crate) struct Watch {
    limit: u64,
    processes: Processes,
    /// One for each file system.
    temporary: BTreeMap<u64, OwnedFd>,
    kills: OomCounter,
    journal: Journal,
    /// Killed and not gone: they use no more, and free what they have.
    dying: Vec<Dying>,
}

/// How long what a killed process has shared is taken for given back.
const GIVING_BACK: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Dying {
    number: i32,
    process: OwnedFd,
    /// Shared memory that it had mapped.
    shared: u64,
    since: Instant,
}

impl Watch {
    pub(super) fn new(
        limit: u64,
        proc: &Path,
        temporary: &[PathBuf],
        kills: OomCounter,
        journal: Journal,
    ) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
        let mut systems = BTreeMap::new();
        for path in temporary {
            let place = openat(CWD, path, flags, Mode::empty())?;
            systems.insert(fstat(&place)?.st_dev, place);
        }
        Ok(Self {
            limit,
            processes: Processes::open(proc)?,
            temporary: systems,
            kills,
            journal,
            dying: Vec::new(),
        })
    }

    /// Looks, kills at most one process, and says when to look again: `Duration::MAX` if nothing but
    /// pid 1 is there. To be called when something was started, too.
    pub(crate) fn tick(&mut self) -> Duration {
        let began = Instant::now();
        let mut dying = std::mem::take(&mut self.dying);
        dying.retain(|one| !ended(&one.process));
        self.dying = dying;
        let seen = self.processes();
        if self.dying.is_empty() && seen.iter().all(|process| process.number == 1) {
            return Duration::MAX;
        }
        let open = self.processes.memory_files(&seen);
        let systems = self.temporary.values().filter_map(|place| fstatfs(place).ok());
        let stored = systems.map(|system| (system.f_blocks - system.f_bfree) * system.f_bsize.unsigned_abs());
        // A segment stays in the list until the last process that has it is gone, after its memory is.
        let given_back = self.dying.iter().filter(|one| one.since.elapsed() < GIVING_BACK);
        let given_back = given_back.map(|one| one.shared).sum();
        let segments = self.processes.segments().saturating_sub(given_back);
        let files = stored.sum::<u64>() + open.values().sum::<u64>() + segments;
        let mut used = files + seen.iter().map(|process| process.own + process.shared).sum::<u64>();
        // What one process has is certain, however many share it; the sum of all is not. Nothing that
        // takes time is done about what is certain, for the process goes on.
        let certain = files + seen.iter().map(|process| process.own).max().unwrap_or(0);
        if used > self.limit && certain <= self.limit {
            // With many that come and go, most halves are in those that do not count.
            used = certain.max(files + self.exactly(&seen, &open));
        }
        if used > self.limit {
            // Where there is nobody to kill, looking more often would change nothing.
            let killed = self.kill_largest(&seen, used).is_some();
            return if killed || !self.dying.is_empty() {
                SHORTEST
            } else {
                LONGEST
            };
        }
        pause(self.limit - used, began.elapsed())
    }

    fn processes(&self) -> Vec<Seen> {
        let mut seen = self.processes.all();
        seen.retain(|process| self.dying.iter().all(|dying| dying.number != process.number));
        seen
    }

    /// What processes have themselves, each page once. Dearer, and so done only where the simple sum is
    /// too much.
    fn exactly(&self, seen: &[Seen], open: &BTreeMap<u64, u64>) -> u64 {
        let share = |process| self.processes.share(process, seen, open);
        let shares: Vec<u64> = seen.iter().map(share).collect();
        // A page that two processes share is half in each, and whole in the second once the first has
        // ended. So what ended meanwhile does not count, and the rest counts no page more than once.
        let left = self.processes();
        let lives = |process: &Seen| left.iter().any(|other| other.number == process.number);
        let pairs = seen.iter().zip(shares).filter(|(process, _)| lives(process));
        pairs.map(|(_, share)| share).sum()
    }

    fn kill_largest(&mut self, seen: &[Seen], used: u64) -> Option<()> {
        let commands = seen.iter().filter(|one| one.number != 1 && one.parent != 1);
        let chosen = commands.max_by_key(|one| one.own + one.shared)?;
        let largest = chosen.number;
        // Of a process that is gone meanwhile there is no descriptor, and nothing to do.
        let process = pidfd_open(Pid::from_raw(largest)?, PidfdFlags::empty()).ok()?;
        // Before the signal, and the name before the count: whoever reaps the process, or sees the count, finds both.
        self.journal.add(&Killed {
            number: largest,
            name: chosen.name,
            bytes: chosen.own + chosen.shared,
            all: used,
        });
        self.kills.add();
        if pidfd_send_signal(&process, Signal::KILL).is_err() {
            // It was reaped in between.
            self.kills.take_back();
            self.journal.take_back();
            return None;
        }
        self.dying.push(Dying {
            number: largest,
            process,
            shared: chosen.shared,
            since: Instant::now(),
        });
        Some(())
    }
}

/// Until when nothing can have used up `room` bytes, after a look that took so long.
pub(super) fn pause(room: u64, looking: Duration) -> Duration {
    let used_up = Duration::from_nanos(room / RATE);
    used_up.max(looking * (PART - 1)).clamp(SHORTEST, LONGEST)
}

/// Whether a process is no more, reaped or not.
fn ended(process: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)) != Ok(0)
}
