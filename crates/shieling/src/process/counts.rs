//! What a jail's limits have done, read from the kernel's counts and from the jail's own journal. Counts only go
//! up; whoever wants to know what happened in some time compares two looks.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use shieling_jail::message::{Counter, Killed, Ready};
use shieling_jail::plan::Limits;

/// How long the jail may take to see who was killed, once the kernel has counted it.
const SEEING: Duration = Duration::from_millis(300);
/// Between two looks for that.
const PAUSE: Duration = Duration::from_millis(2);

/// The counts of one jail.
#[derive(Debug)]
pub(crate) struct Counts {
    /// The limits that hold.
    pub(crate) limits: Limits,
    /// Whether tasks are limited by a resource limit, which counts no refusals.
    pub(crate) tasks_uncounted: bool,
    files: Vec<(Counter, OwnedFd)>,
}

/// One look at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Struck {
    /// Processes that were killed for memory.
    pub(crate) kills: u64,
    /// Tasks that were refused.
    pub(crate) refusals: u64,
    /// Killed processes that are known by name.
    journal: u64,
}

impl Counts {
    pub(super) fn new(ready: &Ready, files: impl Iterator<Item = OwnedFd>) -> Self {
        Self {
            limits: ready.limits,
            tasks_uncounted: ready.enforced.iter().any(|one| one == "rlimit.pids"),
            files: ready.counters.iter().copied().zip(files).collect(),
        }
    }

    /// How they stand.
    pub(crate) fn now(&self) -> Struck {
        let journal = self.journal();
        Struck {
            // Where nobody but the jail counts, the journal is the count.
            kills: self.line(Counter::Kills, "oom_kill ").unwrap_or(journal),
            refusals: self.line(Counter::Refusals, "max ").unwrap_or(0),
            journal,
        }
    }

    /// The most memory that all had together, in bytes, if the kernel keeps that.
    pub(crate) fn peak(&self) -> Option<u64> {
        self.text(Counter::Peak)?.trim().parse().ok()
    }

    /// Those that were killed between two looks, as far as they are known by name. Waits a moment for the
    /// jail, which may see it a little later than the kernel counts it.
    pub(crate) fn killed(&self, before: Struck, now: Struck) -> Vec<Killed> {
        let deadline = Instant::now() + SEEING;
        let kills = now.kills.saturating_sub(before.kills);
        let mut journal = now.journal;
        while journal.saturating_sub(before.journal) < kills && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
            journal = self.journal();
        }
        let first = before.journal.max(journal.saturating_sub(Killed::KEPT));
        (first..journal).filter_map(|number| self.entry(number)).collect()
    }

    fn journal(&self) -> u64 {
        let mut count = [0; 8];
        let read = self
            .file(Counter::Journal)
            .map(|file| rustix::io::pread(file, &mut count, 0));
        if matches!(read, Some(Ok(8))) {
            u64::from_le_bytes(count)
        } else {
            0
        }
    }

    fn entry(&self, number: u64) -> Option<Killed> {
        let mut bytes = [0; Killed::SIZE];
        let length = rustix::io::pread(self.file(Counter::Journal)?, &mut bytes, Killed::place(number)).ok()?;
        (length == Killed::SIZE).then(|| Killed::decode(&bytes))?
    }

    fn line(&self, counter: Counter, name: &str) -> Option<u64> {
        let text = self.text(counter)?;
        let count = text.lines().find_map(|line| line.strip_prefix(name))?;
        count.trim().parse().ok()
    }

    fn text(&self, counter: Counter) -> Option<String> {
        let mut bytes = [0; 1024];
        let length = rustix::io::pread(self.file(counter)?, &mut bytes, 0).ok()?;
        Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
    }

    fn file(&self, counter: Counter) -> Option<&OwnedFd> {
        self.files.iter().find(|(one, _)| *one == counter).map(|(_, file)| file)
    }
}
