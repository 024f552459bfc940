//! Sees whom the kernel kills where a control group holds the memory: the kernel counts kills and does not say
//! whom, and the dead process's parent has reaped it before anybody could ask.
//!
//! So the largest processes are remembered while much of the memory is used, and those of them that are gone or
//! dying once the count has risen are the killed ones, the largest first: that is how the kernel chooses.
//! Looks only, and takes little time to it; what died before it was seen is counted and has no name.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Result;
use shieling_jail::message::Killed;

use super::journal::Journal;
use super::oom_counter::OomCounter;
use super::processes::{Processes, Seen};
use super::watch::{LONGEST, SHORTEST, pause};

/// How many of the largest processes are remembered.
const REMEMBERED: usize = 16;
/// Below one part in so many of the limit, nobody is remembered.
const QUIET: u64 = 16;
/// How fast memory is thought to be used up, beside what the watch thinks: a kill is seen only by who came before.
const HASTE: u64 = 4;
/// Looking takes at most one part in so many of the time.
const PART: u32 = 20;
/// One part in so many of an equal share of the memory is the least that a killed process had: the kernel takes
/// the largest, and what had less has ended by itself.
const SHARE: u64 = 4;
/// How often the dead are looked for after a kill, before it is left without a name.
const TRIES: u32 = 50;

/// A process that may be the next.
#[derive(Debug)]
struct Candidate {
    number: i32,
    began: u64,
    name: [u8; 16],
    bytes: u64,
}

/// Pid 1's eye on the kernel's choice.
#[derive(Debug)]
pub(crate) struct Witness {
    limit: u64,
    processes: Processes,
    memory: File,
    kills: OomCounter,
    /// How many kills were named, or given up.
    told: u64,
    tries: u32,
    used: u64,
    candidates: Vec<Candidate>,
    journal: Journal,
}

impl Witness {
    pub(super) fn new(limit: u64, proc: &Path, memory: File, kills: OomCounter, journal: Journal) -> Result<Self> {
        Ok(Self {
            limit,
            processes: Processes::open(proc)?,
            told: kills.count(),
            memory,
            kills,
            tries: 0,
            used: 0,
            candidates: Vec::new(),
            journal,
        })
    }

    /// Looks, and says when to look again.
    pub(super) fn tick(&mut self) -> Duration {
        let began = Instant::now();
        if self.kills.count() > self.told {
            self.name();
        }
        // Those that may have been killed are kept until they are named.
        if self.kills.count() > self.told {
            return SHORTEST;
        }
        self.used = self.used();
        if self.used < self.limit / QUIET {
            self.candidates.clear();
        } else {
            self.remember();
        }
        let looking = began.elapsed() * PART;
        let room = pause(self.limit.saturating_sub(self.used) / HASTE, Duration::ZERO);
        room.max(looking).clamp(SHORTEST, LONGEST)
    }

    /// What cannot be given back: the cache of files is, before anybody is killed.
    fn used(&self) -> u64 {
        let mut text = [0; 4096];
        let length = self.memory.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
        let kind = |names: [&str; 2]| {
            let found = text.lines().find_map(|line| {
                let (name, bytes) = line.split_once(' ')?;
                names.contains(&name).then(|| bytes.trim().parse::<u64>().ok())?
            });
            found.unwrap_or(0)
        };
        // As version 1 and 2 call them.
        kind(["rss", "anon"]) + kind(["shmem", "shmem"])
    }

    fn remember(&mut self) {
        let mut seen = self.processes.all();
        // Pid 1 and its children, which are supervisors, are small.
        seen.retain(|one| one.number != 1 && one.parent != 1);
        // One that was killed while they were looked at is not among them, and may be among those before.
        if self.kills.count() > self.told {
            return;
        }
        let count = u64::try_from(seen.len()).unwrap_or(u64::MAX).max(1);
        seen.sort_by_key(|one| std::cmp::Reverse(one.own + one.shared));
        seen.truncate(REMEMBERED);
        seen.retain(|one| one.own + one.shared >= self.used / count / SHARE);
        self.candidates = seen.iter().map(Candidate::of).collect();
    }

    /// Names those that the kernel has killed since.
    fn name(&mut self) {
        let Self {
            processes, candidates, ..
        } = self;
        let mut dead = Vec::new();
        candidates.retain(|one| {
            let lives = processes.lives(one.number, one.began);
            if !lives {
                dead.push(Killed {
                    number: one.number,
                    name: one.name,
                    bytes: one.bytes,
                    all: 0,
                });
            }
            lives
        });
        for killed in dead {
            if self.kills.count() == self.told {
                break;
            }
            self.journal.add(&Killed {
                all: self.used,
                ..killed
            });
            self.told += 1;
            self.tries = 0;
        }
        self.tries += 1;
        if self.tries > TRIES || self.candidates.is_empty() {
            self.told = self.kills.count();
            self.tries = 0;
        }
    }
}

impl Candidate {
    fn of(seen: &Seen) -> Self {
        Self {
            number: seen.number,
            began: seen.began,
            name: seen.name,
            bytes: seen.own + seen.shared,
        }
    }
}
