//! How cases look at processes from outside: commands that run in the background, processes found by a
//! mark that only they carry, and hosts that can be killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shieling::Shieling;
use shieling::approval::Mode;
use shieling::outcome::Outcome;
use shieling::policy::Policy;

use super::support::{Checked, Fail, Field, Place, check, wrong};

/// The longest that something is waited for which happens at once where nothing else runs.
const SOON: Duration = Duration::from_secs(60);

/// A number of seconds to sleep that no other process uses, by which to find the sleeper.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("3600.{:07}{number:04}", std::process::id()))
    }

    /// The host's numbers of the living processes that have the mark among their arguments.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let marked = |pid: &i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let has = arguments.split(|&byte| byte == 0).any(|one| one == self.0.as_bytes());
            has && !matches!(state(*pid), None | Some('Z' | 'X'))
        };
        processes().filter(marked).collect()
    }

    /// Waits until so many sleep, and no `setsid` is left that is to become a sleeper or to start one: it
    /// has the mark too.
    pub(crate) fn wait_for_sleepers(&self, count: usize) -> Checked<Vec<i32>> {
        let began = Instant::now();
        loop {
            let (starting, others): (Vec<i32>, Vec<i32>) = self
                .alive()
                .into_iter()
                .partition(|pid| arguments(*pid).first().is_none_or(|name| name.ends_with("setsid")));
            let is_sleeper = |pid: &i32| matches!(&arguments(*pid)[..], [_, mark] if *mark == self.0);
            let sleepers: Vec<i32> = others.into_iter().filter(is_sleeper).collect();
            if sleepers.len() == count && starting.is_empty() {
                return Ok(sleepers);
            }
            check(began.elapsed() < SOON, || {
                format!(
                    "{} processes sleep after {SOON:?}, not {count}, and {} are to start one",
                    sleepers.len(),
                    starting.len()
                )
            })?;
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until so many are alive.
    pub(crate) fn wait_for(&self, count: usize) -> Checked<Vec<i32>> {
        let began = Instant::now();
        loop {
            let alive = self.alive();
            if alive.len() == count {
                return Ok(alive);
            }
            check(began.elapsed() < SOON, || {
                format!("{} processes are alive after {SOON:?}, not {count}", alive.len())
            })?;
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every process of the host.
pub(crate) fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("proc is mounted");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process was started with; nothing if it is gone.
fn arguments(pid: i32) -> Vec<String> {
    let all = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let all = String::from_utf8_lossy(&all);
    let all = all.split_terminator('\0');
    all.map(str::to_owned).collect()
}

/// The state of a process, as `/proc` has it; nothing if it is gone.
pub(crate) fn state(pid: i32) -> Option<char> {
    field(pid, 0)?.chars().next()
}

/// The parent of a process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    field(pid, 1)?.parse().ok()
}

/// A word of `/proc/PID/stat` after the name.
fn field(pid: i32, at: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(at).map(str::to_owned)
}

/// One process of the host's, whose number may be somebody else's later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub(crate) pid: i32,
    born: String,
}

impl Pinned {
    pub(crate) fn new(pid: i32) -> Checked<Self> {
        match field(pid, 19) {
            Some(born) => Ok(Self { pid, born }),
            None => Err(Fail::Vanished(format!("process {pid} is gone"))),
        }
    }

    /// By which the older comes first.
    pub(crate) fn age(&self) -> (u64, i32) {
        (self.born.parse().unwrap_or(u64::MAX), self.pid)
    }

    /// Whether it runs, or is stopped.
    pub(crate) fn lives(&self) -> bool {
        !matches!(state(self.pid), None | Some('Z' | 'X')) && field(self.pid, 19).as_ref() == Some(&self.born)
    }

    /// Waits until it is stopped.
    pub(crate) fn is_stopped(&self) -> Checked {
        let began = Instant::now();
        while state(self.pid) != Some('T') {
            check(began.elapsed() < SOON, || format!("process {} does not stop", self.pid))?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits until it is gone.
    pub(crate) fn is_gone(&self) -> Checked {
        let began = Instant::now();
        while self.lives() {
            check(began.elapsed() < SOON, || {
                let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.pid)).unwrap_or_default();
                format!(
                    "ESCAPED: process {} is left: {}",
                    self.pid,
                    read("status").replace('\n', " ")
                )
            })?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// The jail's own processes above one of its commands.
#[derive(Debug)]
pub(crate) struct Above {
    pub(crate) supervisor: Pinned,
    pub(crate) init: Pinned,
    pub(crate) monitor: Pinned,
}

impl Above {
    /// Those above a main process.
    pub(crate) fn of(main: i32) -> Checked<Self> {
        let up = |pid| match parent(pid) {
            Some(parent) => Pinned::new(parent),
            None => Err(Fail::Vanished(format!("process {pid} is gone"))),
        };
        let supervisor = up(main)?;
        let init = up(supervisor.pid)?;
        let monitor = up(init.pid)?;
        // What a case does to a process that it takes for one of these, it would do to another.
        for (one, name) in [(&supervisor, "supervisor"), (&init, "pid 1"), (&monitor, "monitor")] {
            let arguments = arguments(one.pid);
            let ours = arguments.first().is_some_and(|name| name.starts_with("shieling-jail"));
            check(ours, || format!("process {} is not the {name}: {arguments:?}", one.pid))?;
        }
        Ok(Self {
            supervisor,
            init,
            monitor,
        })
    }

    /// Waits until none of them is left.
    pub(crate) fn are_gone(&self) -> Checked {
        [&self.supervisor, &self.init, &self.monitor]
            .into_iter()
            .try_for_each(Pinned::is_gone)
    }
}

/// Marks the sandbox that runs now: one that was ended would be replaced without a word.
pub(crate) fn remember(place: &Place<'_>) -> Checked {
    place.run("touch /tmp/remembered").map(drop)
}

/// The sandbox is still the one that was marked.
pub(crate) fn is_the_same(place: &Place<'_>) -> Checked {
    let outcome = place.run("[ -e /tmp/remembered ]")?;
    check(outcome.exit_code == Some(0), || {
        "ESCAPED: the sandbox was ended, and is another one now".to_owned()
    })
}

/// Sends a signal to a process that a case has found to be its own.
pub(crate) fn signal(pid: i32, signal: Signal) -> Checked {
    match Pid::from_raw(pid) {
        Some(pid) => Ok(kill_process(pid, signal)?),
        None => wrong("no process has the number 0"),
    }
}

/// A command that runs beside others in the same sandbox.
pub(crate) struct Background<'a> {
    field: &'a Field<'a>,
    task: tokio::task::JoinHandle<Outcome>,
}

impl<'a> Background<'a> {
    pub(crate) fn start(field: &'a Field<'a>, place: &Place<'_>, text: &str) -> Checked<Self> {
        let shieling = Shieling::builder(Arc::clone(&place.sandbox) as _, Policy::open(), place.work())
            .approval(Mode::Never)
            .build()
            .expect("it serves no other policy");
        let command = place.command(text)?;
        let task = field.runtime.spawn(async move { shieling.run(command, None).await });
        Ok(Self { field, task })
    }

    /// Whether it still runs.
    pub(crate) fn runs(&self) -> bool {
        !self.task.is_finished()
    }

    /// Its end.
    pub(crate) fn end(self) -> Checked<Outcome> {
        Ok(self.field.runtime.block_on(self.task)?)
    }

    /// Drops it, which ends it.
    pub(crate) fn drop_it(self) {
        self.task.abort();
        let _ = self.field.runtime.block_on(self.task);
    }
}

/// A process of the host's that must not be touched: it ends with the case.
pub(crate) struct Canary(Child);

impl Canary {
    pub(crate) fn start(mark: &Mark) -> Checked<Self> {
        let child = Command::new("/bin/sleep")
            .arg(mark.to_string())
            .stdin(Stdio::null())
            .spawn()?;
        mark.wait_for(1)?;
        Ok(Self(child))
    }

    pub(crate) fn number(&self) -> u32 {
        self.0.id()
    }

    /// It runs, and is not stopped either.
    pub(crate) fn is_well(&mut self) -> Checked {
        let ended = self.0.try_wait()?;
        let state = state(self.0.id().cast_signed());
        check(ended.is_none() && state == Some('S'), || {
            format!("ESCAPED: a process of the host's was touched: {ended:?}, {state:?}")
        })
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Names that are in `directory` and below it, of control groups that sandboxes made.
pub(crate) fn groups() -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![Path::new("/sys/fs/cgroup").to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().as_encoded_bytes().starts_with(b"shieling-") {
                    found.push(entry.path().display().to_string());
                } else {
                    left.push(entry.path());
                }
            }
        }
    }
    found
}
