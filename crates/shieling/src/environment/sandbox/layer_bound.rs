//! Ends what writes more to a staged workspace than a change set may hold, while it runs, so that it does not fill the host's
//! disk. No quota is to be had without root, so the layer is measured.
//!
//! ```text
//! every TICK: how much is free on its disk ─► so much less that the layer may be too large ─► the layer is measured
//!                                          └► next to nothing, and much more before        ─► all are ended
//! every second or more, too: the layer is measured ─► more than its limits ─► all are ended, and their outcomes say why
//! ```
//!
//! What is written within a tick and a measurement is written; what cannot be measured (files without a name, closed
//! directories) is bounded by what is left on the disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use shieling_changes::{Limits, Usage};

use super::stage::Stage;
use super::watched::AllRuns;
use crate::process::Jail;

/// How often the disk is asked while a command runs, and while none does: what a command left may write.
const TICK: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(500);
/// How often the layer is measured at most where nothing seems to have grown: another process can free as much as a command
/// takes.
const OFTEN: Duration = Duration::from_secs(1);
/// The share of the time that measuring may take, as a divisor; and where something has grown.
const SHARE: u32 = 10;
const GROWN_SHARE: u32 = 2;
/// What has to stay free on the disk: as much, or a hundredth of it if that is less.
const RESERVE: u64 = 256 << 20;
/// How much less has to be free than when the commands began for these to be ended for it.
const TAKEN: u64 = 64 << 20;
/// How much a command may add to a layer that is too large already, as it has to in order to make it smaller.
const MORE: Limits = Limits {
    entries: 10_000,
    bytes: 64 << 20,
};
/// How long what is ended may write on before the sandbox is ended, and how long it is looked at closely.
const PATIENCE: Duration = Duration::from_secs(1);
const ENDING: Duration = Duration::from_secs(4);

/// Measures the layer until this is dropped.
pub(super) async fn keep(stage: Arc<Stage>, runs: Arc<AllRuns>, jail: Weak<Jail>) {
    let (directories, limits) = stage.bounded();
    let upper = directories[0].clone();
    let mut meter = Meter::new(directories, limits, Box::new(move || Free::of(&upper)));
    let mut ended_at = None;
    loop {
        let is_running = runs.count() > 0;
        tokio::time::sleep(if is_running || ended_at.is_some() { TICK } else { IDLE }).await;
        let (its, running) = (Arc::clone(&stage), runs.count() > 0);
        let measured = tokio::task::spawn_blocking(move || {
            let reason = meter.look(running);
            if let Some(reason) = &reason {
                its.exceeded(reason);
            }
            (meter, reason.is_some())
        });
        let Ok((back, is_exceeded)) = measured.await else {
            return;
        };
        meter = back;
        let is_left = || runs.count() == 0 && jail.upgrade().is_some_and(|jail| !jail.is_idle());
        // What a command of a session left is no command any more, and ends with the sandbox, as what does not end does.
        let ends_with_sandbox = || is_left() || ended_at.is_some_and(|since: Instant| since.elapsed() >= PATIENCE);
        match (is_exceeded, ended_at) {
            (true, _) if ends_with_sandbox() => {
                if let Some(jail) = jail.upgrade() {
                    jail.close().await;
                }
            }
            // What is ended writes until it is.
            (true, since) => {
                runs.end_now();
                ended_at = since.or_else(|| Some(Instant::now()));
            }
            (false, Some(since)) if since.elapsed() > ENDING => ended_at = None,
            (false, _) => {}
        }
    }
}

/// What is free on a disk, for whoever is not root.
#[derive(Debug, Clone, Copy, Default)]
struct Free {
    bytes: u64,
    names: u64,
    /// How large it is.
    size: u64,
}

impl Free {
    /// Of the disk on which this is; nothing if that cannot be asked.
    fn of(path: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(path).ok()?;
        Some(Self {
            bytes: found.f_bavail.saturating_mul(found.f_frsize),
            names: found.f_ffree,
            size: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }
}

struct Meter {
    /// Asks how much is free.
    disk: Box<dyn Fn() -> Option<Free> + Send>,
    /// The layer's directories: what is written, and what the kernel prepares beside.
    directories: [PathBuf; 2],
    limits: Limits,
    /// What the layer held already when the last command was ended for it.
    base: Usage,
    /// The last measurement, and what was free then.
    last: Usage,
    at_last: Free,
    /// What was free before the commands that run.
    before: Free,
    was_running: bool,
    next: Instant,
    next_grown: Instant,
}

impl Meter {
    fn new(directories: [PathBuf; 2], limits: Limits, disk: Box<dyn Fn() -> Option<Free> + Send>) -> Self {
        let now = Instant::now();
        let mut meter = Self {
            disk,
            directories,
            limits,
            base: Usage::default(),
            last: Usage::default(),
            at_last: Free::default(),
            before: Free::default(),
            was_running: false,
            next: now,
            next_grown: now,
        };
        meter.before = meter.free();
        meter.at_last = meter.before;
        meter
    }

    /// Why what runs is to be ended, if it is.
    fn look(&mut self, is_running: bool) -> Option<String> {
        let free = self.free();
        if !is_running || !self.was_running {
            self.before = free;
            if self.base != Usage::default() {
                // What was ended has written until it was.
                self.rebase();
            }
        }
        self.was_running = is_running;
        let reserve = RESERVE.min(free.size / 100);
        if free.bytes < reserve && self.before.bytes.saturating_sub(free.bytes) >= TAKEN {
            self.before = free;
            return Some(format!(
                "less than {} is left on the disk of the staged changes; remove what is not needed, or write less",
                mebibytes(reserve)
            ));
        }
        let bytes = self.last.bytes + self.at_last.bytes.saturating_sub(free.bytes);
        let entries = self.last.entries + self.at_last.names.saturating_sub(free.names);
        let limits = self.bound();
        let has_grown = bytes > limits.bytes || entries > limits.entries;
        let now = Instant::now();
        if now < self.next && !(has_grown && now >= self.next_grown) {
            return None;
        }
        self.last = self.measure(limits);
        self.at_last = free;
        let took = now.elapsed();
        self.next = Instant::now() + OFTEN.max(took * SHARE);
        self.next_grown = Instant::now() + took * GROWN_SHARE;
        if !self.last.exceeds(limits) {
            if !self.last.exceeds(self.limits) {
                self.base = Usage::default();
            }
            return None;
        }
        let Limits { entries, bytes } = self.limits;
        let of = match self.last.bytes > limits.bytes {
            true => mebibytes(bytes),
            false => format!("{entries} names"),
        };
        self.rebase();
        Some(format!(
            "the staged changes are more than the {of} that one change set may hold; remove some of them in the sandbox, write \
             what is not for the workspace into `/tmp`, or use `--changes direct`"
        ))
    }

    fn rebase(&mut self) {
        let all = Limits {
            entries: u64::MAX,
            bytes: u64::MAX,
        };
        self.base = self.measure(all);
        if !self.base.exceeds(self.limits) {
            self.base = Usage::default();
        }
    }

    /// What the layer may hold now.
    fn bound(&self) -> Limits {
        let is_more = self.base != Usage::default();
        let more = |base: u64, more: u64, limit: u64| match is_more {
            true => limit.max(base.saturating_add(more)),
            false => limit,
        };
        Limits {
            entries: more(self.base.entries, MORE.entries, self.limits.entries),
            bytes: more(self.base.bytes, MORE.bytes, self.limits.bytes),
        }
    }

    fn measure(&self, limits: Limits) -> Usage {
        let mut all = Usage::default();
        for directory in &self.directories {
            // Gone with the set, or closed.
            let usage = Usage::of(directory, limits).unwrap_or_default();
            all.entries += usage.entries;
            all.bytes += usage.bytes;
        }
        all
    }

    fn free(&self) -> Free {
        (self.disk)().unwrap_or(self.at_last)
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use std::fs;
    use std::sync::Mutex;

    use super::*;

    const LIMITS: Limits = Limits {
        entries: 10,
        bytes: 1 << 20,
    };
    const DISK: Free = Free {
        bytes: 100 << 30,
        names: 1 << 30,
        size: 200 << 30,
    };

    /// A meter over an empty layer, and what it believes to be free.
    fn meter() -> (tempfile::TempDir, Meter, Arc<Mutex<Free>>) {
        let place = tempfile::tempdir().expect("a directory");
        let at = place.path().canonicalize().expect("it is there");
        let directories = ["upper", "work"].map(|name| at.join(name));
        for directory in &directories {
            fs::create_dir(directory).expect("made");
        }
        let free = Arc::new(Mutex::new(DISK));
        let told = Arc::clone(&free);
        let disk = Box::new(move || Some(*told.lock().expect("no panic")));
        let mut meter = Meter::new(directories, LIMITS, disk);
        assert_eq!(meter.look(false), None);
        (place, meter, free)
    }

    fn fill(place: &tempfile::TempDir, name: &str, bytes: usize) {
        fs::write(place.path().join("upper").join(name), vec![1; bytes]).expect("written");
    }

    #[test]
    fn what_grows_on_the_disk_is_measured_at_once_and_other_processes_are_not_blamed() {
        let (place, mut meter, free) = meter();
        assert_eq!(meter.look(true), None);
        free.lock().expect("no panic").bytes -= 4 << 20;
        assert_eq!(meter.look(true), None, "somebody else wrote that");
        fill(&place, "large", 2 << 20);
        free.lock().expect("no panic").bytes -= 2 << 20;
        meter.next_grown = Instant::now();
        let reason = meter.look(true).expect("more than 1 MiB");
        assert!(reason.contains("1 MiB that one change set"), "{reason}");
    }

    #[test]
    fn a_layer_that_is_too_large_already_can_be_made_smaller_and_then_has_its_limits_again() {
        let (place, mut meter, free) = meter();
        let grow = |name: &str, meter: &mut Meter, bytes: u64| {
            fill(&place, name, usize::try_from(bytes).expect("small"));
            free.lock().expect("no panic").bytes -= bytes;
            (meter.next, meter.next_grown) = (Instant::now(), Instant::now());
            meter.look(true)
        };
        assert_eq!(meter.look(true), None);
        assert!(grow("large", &mut meter, 2 << 20).is_some());
        assert_eq!(meter.look(false), None);
        assert_eq!(grow("a little", &mut meter, 1 << 10), None, "to remove the rest");
        assert!(grow("much", &mut meter, 65 << 20).is_some());
        for name in ["large", "much"] {
            fs::remove_file(place.path().join("upper").join(name)).expect("removed");
        }
        (meter.next, meter.next_grown) = (Instant::now(), Instant::now());
        assert_eq!(meter.look(true), None);
        assert!(grow("large again", &mut meter, 2 << 20).is_some());
    }

    #[test]
    fn commands_that_leave_next_to_nothing_on_a_disk_are_ended_and_those_that_find_it_so_are_not() {
        let (_place, mut meter, free) = meter();
        free.lock().expect("no panic").bytes = 100 << 20;
        assert_eq!(meter.look(true), None, "it was so before");
        free.lock().expect("no panic").bytes -= 32 << 20;
        assert_eq!(meter.look(true), None, "little of it is theirs");
        free.lock().expect("no panic").bytes -= 33 << 20;
        let reason = meter.look(true).expect("next to nothing");
        assert!(reason.contains("less than 256 MiB is left"), "{reason}");
        assert_eq!(meter.look(true), None, "told once");
    }
}
