//! What all processes of a sandbox may use together: memory, tasks, processor time, open files.
//!
//! A limit holds by a control group where one can be made. Where none can, tasks are limited by
//! `RLIMIT_NPROC`, which a user namespace counts for itself, and memory by pid 1 watching and killing.
//! Refuses what cannot be held at all; a limit that is silently weaker than asked does not exist here.
//!
//! **How tasks are counted.** N were asked for: the kernel is given N + [`RESERVED`], for pid 1, one
//! supervisor, and one that waits for the next job. So commands never have more than N processes and
//! threads at once; each further job at the same time takes one of the N for its supervisor.
//!
//! **How a process gets into a group.** Pid 1 is in it before it starts anything, so everything else is born
//! in it. On v1 it moves itself, which costs microseconds; on v2 it is cloned into it or, where that is not
//! possible, moved by the monitor.
//!
//! **Whose memory it is.** On v1, pid 1 then leaves the group for memory again ([`Apart`]), and each command moves
//! itself in before it becomes its program. So what serves the sandbox never waits for memory that commands
//! have used up, and the kernel cannot choose it to be killed. Where it cannot leave, and on v2, the kernel
//! chooses among commands first (`confine`).

#![expect(
    clippy::disallowed_methods,
    reason = "control groups and processes are told about in files"
)]

mod eye;
mod group;
mod groups;
mod journal;
mod oom_counter;
mod processes;
mod resources;
mod shown;
#[cfg(test)]
mod tests;
mod watch;
mod witness;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shieling_jail::message::{Counter, Layer, Refusal};
use shieling_jail::plan::{Isolation, Limits};

pub(crate) use eye::Eye;
use group::{Controller, Group, Version, Why};
use groups::{Groups, Host};
pub(crate) use journal::Journal;
pub(crate) use oom_counter::OomCounter;
pub(crate) use shown::Hierarchy;
use watch::Watch;
use witness::Witness;

/// Tasks of ours beside those that were asked for: pid 1, one supervisor, and one for the next job.
pub(crate) const RESERVED: u64 = 3;
/// Fewer open files leave too few for pid 1 and the supervisors, which the limit holds for too.
const FEWEST_FILES: u64 = 64;

/// What holds one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Group,
    Rlimit,
    Watch,
}

/// The limits of one sandbox, in force or ready to be.
///
/// Made in the monitor and copied into pid 1 by its clone; dropping it removes nothing, in either.
#[derive(Debug)]
pub(crate) struct Enforcement {
    effective: Limits,
    groups: Groups,
    memory: Option<Way>,
    pids: Option<Way>,
    /// Whether swap adds to the memory.
    swaps: bool,
    /// By which pid 1 moves itself into the groups of v1, opened before it can no longer see them.
    entrances: Vec<File>,
    /// By which it leaves that for memory, and commands enter it.
    apart: Option<(File, File)>,
    /// The kernel's counts, opened before the sandbox can no longer see them.
    counters: Vec<(Counter, File)>,
}

/// Whether pid 1 is cloned into its group, which must be there before.
pub(crate) fn at_birth() -> bool {
    groups::in_v2(&this_host())
}

fn this_host() -> Host {
    Host {
        root: PathBuf::from("/"),
        make: |path| std::fs::create_dir(path),
    }
}

/// In the monitor: makes the groups, sets the limits, reads them back.
pub(crate) fn prepare(limits: &Limits, isolation: Isolation) -> Result<Enforcement, Refusal> {
    prepare_on(&this_host(), limits, isolation, &groups::name())
}

fn prepare_on(host: &Host, limits: &Limits, isolation: Isolation, name: &str) -> Result<Enforcement, Refusal> {
    let wanted: Vec<Controller> = [
        limits.memory.map(|_| Controller::Memory),
        limits.pids.map(|_| Controller::Pids),
        limits.cpu_thousandths.map(|_| Controller::Cpu),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut enforcement = Enforcement {
        effective: Limits::default(),
        groups: Groups::make(host, &wanted, name),
        memory: None,
        pids: None,
        swaps: false,
        entrances: Vec::new(),
        apart: None,
        counters: Vec::new(),
    };
    match enforcement.set(host, limits, isolation) {
        Ok(()) => Ok(enforcement),
        Err(refusal) => {
            enforcement.remove();
            Err(refusal)
        }
    }
}

impl Enforcement {
    fn set(&mut self, host: &Host, limits: &Limits, isolation: Isolation) -> Result<(), Refusal> {
        let alone = isolation == Isolation::Full;
        if let Some(bytes) = limits.memory {
            match self.groups.of(Controller::Memory) {
                Ok(group) => {
                    let set = group.limit_memory(bytes).and_then(|set| Ok((set, group.kills()?)));
                    let ((taken, swap_counts), kills) =
                        set.map_err(|why| refusal(format!("to limit memory: {}", why.what), why.errno))?;
                    self.counters = vec![(Counter::Kills, kills)];
                    // Of use where they are, and nothing rests on them.
                    let more = [(Counter::Peak, group.peak()), (Counter::Memory, group.kinds())];
                    let more = more.into_iter().filter_map(|(counter, file)| Some((counter, file?)));
                    self.counters.extend(more);
                    self.swaps = !swap_counts && has_swap(host);
                    (self.effective.memory, self.memory) = (Some(taken), Some(Way::Group));
                }
                Err(why) if !alone => {
                    return Err(unheld(
                        "memory",
                        &why,
                        "processes can be watched in a pid namespace only",
                    ));
                }
                Err(_) => {
                    (self.effective.memory, self.memory) = (Some(bytes), Some(Way::Watch));
                }
            }
        }
        if let Some(tasks) = limits.pids {
            let all = tasks.saturating_add(RESERVED);
            let taken = self.groups.of(Controller::Pids).and_then(|group| group.limit_pids(all));
            let (taken, way) = match taken {
                Ok(taken) => {
                    let refusals = self.groups.of(Controller::Pids).ok().and_then(Group::refusals);
                    self.counters.extend(refusals.map(|file| (Counter::Refusals, file)));
                    (taken, Way::Group)
                }
                Err(why) if !alone => {
                    let no = "RLIMIT_NPROC would count every process of the user, without a user namespace";
                    return Err(unheld("processes", &why, no));
                }
                Err(why) if resources::may_be_root(&host.root) => {
                    return Err(unheld("processes", &why, "RLIMIT_NPROC does not bind root"));
                }
                Err(_) => (resources::within_hard(resources::PROCESSES, all), Way::Rlimit),
            };
            self.effective.pids = Some(taken.saturating_sub(RESERVED));
            self.pids = Some(way);
        }
        if let Some(thousandths) = limits.cpu_thousandths {
            let taken = self
                .groups
                .of(Controller::Cpu)
                .and_then(|group| group.limit_cpu(thousandths));
            let taken = taken.map_err(|why| unheld("processor time", &why, "nothing else can limit it"))?;
            self.effective.cpu_thousandths = Some(taken);
        }
        if let Some(files) = limits.open_files {
            if files < FEWEST_FILES {
                let what = format!("to limit open files to {files}: the sandbox's own processes need {FEWEST_FILES}");
                return Err(refusal(what, 0));
            }
            self.effective.open_files = Some(resources::within_hard(resources::FILES, files));
        }
        for group in &self.groups.made {
            let entrance = || group.entrance().map_err(|why| refusal(why.what, why.errno));
            self.entrances.extend(entrance()?);
            if let Some(exit) = group.exit() {
                self.apart = entrance()?.map(|entrance| (exit, entrance));
            }
        }
        Ok(())
    }

    /// What holds it.
    pub(crate) fn enforced(&self) -> Vec<String> {
        let name = |way, limit| match way {
            Way::Group => format!("cgroup.{limit}"),
            Way::Rlimit => format!("rlimit.{limit}"),
            Way::Watch => format!("watch.{limit}"),
        };
        let cpu = self.effective.cpu_thousandths.map(|_| Way::Group);
        let files = self.effective.open_files.map(|_| Way::Rlimit);
        let ways = [
            (self.memory, "memory"),
            (self.pids, "pids"),
            (cpu, "cpu"),
            (files, "open_files"),
        ];
        let named = ways.into_iter().filter_map(|(way, limit)| Some(name(way?, limit)));
        named.chain([name(Way::Rlimit, "core")]).collect()
    }

    /// What was asked for and holds in a lesser way.
    pub(crate) fn missing(&self) -> Vec<String> {
        let swap = self.swaps.then(|| "cgroup.memory.swap".to_owned());
        swap.into_iter().collect()
    }

    /// In the monitor: puts pid 1, by its number here and before it starts anything, into the groups that it
    /// cannot move itself into.
    pub(crate) fn attach(&self, pid_1: i32) -> Result<(), Refusal> {
        let mut others = self.groups.made.iter().filter(|group| group.version == Version::Two);
        let attached = others.try_for_each(|group| group.attach(pid_1));
        attached.map_err(|why| refusal(why.what, why.errno))
    }

    /// The group that pid 1 is cloned into, if it can be.
    pub(crate) fn birthplace(&self) -> Option<OwnedFd> {
        self.groups.made.iter().find_map(group::Group::birthplace)
    }

    /// For [`enter`].
    pub(crate) fn entrances(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.entrances.iter().map(|file| file.as_fd())
    }

    /// For [`Apart::leave`]: none, or two.
    pub(crate) fn apart(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let files = self.apart.iter().flat_map(|(exit, entrance)| [exit, entrance]);
        files.map(|file| file.as_fd())
    }

    /// What pid 1 has to know and to do.
    pub(crate) fn held(&self) -> Held {
        Held {
            effective: self.effective,
            enforced: self.enforced(),
            missing: self.missing(),
            counters: self.counters.iter().map(|(counter, _)| *counter).collect(),
            shown: self.groups.shown.clone(),
            tasks: (self.pids == Some(Way::Rlimit))
                .then_some(self.effective.pids)
                .flatten(),
            watched: (self.memory == Some(Way::Watch))
                .then_some(self.effective.memory)
                .flatten(),
        }
    }

    /// What the kernel counts, for pid 1 and the host to read, in the order of [`Held::counters`].
    pub(crate) fn counters(&self) -> Vec<BorrowedFd<'_>> {
        self.counters.iter().map(|(_, file)| file.as_fd()).collect()
    }

    /// In the monitor, once every process of the sandbox is dead and reaped.
    pub(crate) fn remove(self) {
        self.groups.remove();
    }
}

/// Moves this process, which has one thread and no child, into the groups of [`Enforcement::entrances`].
pub(crate) fn enter(entrances: &[impl AsFd]) -> Result<(), Refusal> {
    entrances.iter().try_for_each(|entrance| {
        let entered = rustix::io::write(entrance, b"0");
        entered
            .map(drop)
            .map_err(|errno| refusal("to enter a control group".to_owned(), errno.raw_os_error()))
    })
}

/// The group for memory, in which only commands are.
pub(crate) struct Apart(OwnedFd);

impl Apart {
    /// Moves this process out of it. `files` are those of [`Enforcement::apart`]: without them it stays in it, and so
    /// do commands.
    pub(crate) fn leave(files: Vec<OwnedFd>) -> Result<Option<Self>, Refusal> {
        let Ok([exit, entrance]) = <[OwnedFd; 2]>::try_from(files) else {
            return Ok(None);
        };
        match rustix::io::write(&exit, b"0") {
            Ok(_) => Ok(Some(Self(entrance))),
            // It may write to the file and not move there, as where groups are delegated.
            Err(_) => Ok(None),
        }
    }

    /// In a command, before it becomes its program.
    pub(crate) fn enter(&self) -> Result<(), rustix::io::Errno> {
        rustix::io::write(&self.0, b"0").map(drop)
    }
}

/// What pid 1 has to know of the limits, and to do for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// As read back.
    pub(crate) effective: Limits,
    /// What holds them.
    pub(crate) enforced: Vec<String>,
    /// What was asked for and holds in a lesser way.
    pub(crate) missing: Vec<String>,
    /// What the descriptors are that come with it.
    pub(crate) counters: Vec<Counter>,
    /// What is shown of the groups.
    pub(crate) shown: Vec<Hierarchy>,
    tasks: Option<u64>,
    watched: Option<u64>,
}

impl Held {
    /// How many are killed for memory: by the kernel's count if there is one. `files` came with this.
    pub(crate) fn kills(&self, files: &[OwnedFd]) -> Result<OomCounter, Refusal> {
        let counter = self.counter(Counter::Kills, files);
        match (counter, self.watched) {
            (Some(counter), _) => Ok(OomCounter::group(counter)),
            (None, Some(_)) => {
                OomCounter::watch().map_err(|errno| refusal("to share a count".to_owned(), errno.raw_os_error()))
            }
            (None, None) => Ok(OomCounter::never()),
        }
    }

    /// In pid 1, before it starts anything: the limits that processes hand down to their children.
    pub(crate) fn apply(&self) -> Result<(), Refusal> {
        let refused = |what: &str, error: &io::Error| {
            refusal(format!("to set {what}: {error}"), error.raw_os_error().unwrap_or(0))
        };
        resources::no_core().map_err(|error| refused("RLIMIT_CORE", &error))?;
        if let Some(files) = self.effective.open_files {
            resources::lower(resources::FILES, files).map_err(|error| refused("RLIMIT_NOFILE", &error))?;
        }
        if let Some(tasks) = self.tasks {
            resources::limit_tasks(tasks + RESERVED).map_err(|error| refused("RLIMIT_NPROC", &error))?;
        }
        Ok(())
    }

    /// One of the files that came with this.
    fn counter(&self, counter: Counter, files: &[OwnedFd]) -> Option<File> {
        let pairs = self.counters.iter().zip(files);
        let (_, file) = pairs.into_iter().find(|(one, _)| **one == counter)?;
        file.try_clone().ok().map(File::from)
    }

    /// In pid 1, once its file system stands: who watches the memory if no group does, and who looks on
    /// to whom the kernel kills if one does. `proc` is the sandbox's own `/proc`, if it has one; `temporary` are
    /// its private directories in memory, which count.
    pub(crate) fn eye(
        &self,
        proc: Option<&Path>,
        temporary: &[PathBuf],
        kills: &OomCounter,
        files: &[OwnedFd],
        journal: &Journal,
    ) -> Result<Option<Eye>, Refusal> {
        let Some(proc) = proc else { return Ok(None) };
        let failed = |errno: rustix::io::Errno| {
            refusal(format!("to watch memory in `{}`", proc.display()), errno.raw_os_error())
        };
        if let Some(limit) = self.watched {
            let watch = Watch::new(limit, proc, temporary, kills.clone(), journal.clone());
            return Ok(Some(Eye::Watch(watch.map_err(failed)?)));
        }
        let (Some(limit), Some(memory)) = (self.effective.memory, self.counter(Counter::Memory, files)) else {
            return Ok(None);
        };
        let witness = Witness::new(limit, proc, memory, kills.clone(), journal.clone());
        Ok(Some(Eye::Witness(witness.map_err(failed)?)))
    }
}

/// Whether this host could swap at all: the file has one line of headings.
fn has_swap(host: &Host) -> bool {
    let swaps = std::fs::read_to_string(host.root.join("proc/swaps"));
    swaps.map_or(true, |text| text.lines().count() > 1)
}

fn unheld(what: &str, group: &Why, otherwise: &str) -> Refusal {
    refusal(format!("to limit {what}: {}; {otherwise}", group.what), group.errno)
}

fn refusal(doing: String, errno: i32) -> Refusal {
    Refusal {
        layer: Layer::Limits,
        doing,
        errno,
    }
}
