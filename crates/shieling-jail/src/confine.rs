//! What binds each command before it becomes its program: no capability, no way to get one, the filter
//! of system calls, Landlock, its control group, and its turn when memory runs out.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use libc::sock_filter;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};
use shieling_jail::message::Layer;
use shieling_jail::plan::{Isolation, Plan};

use crate::filter;
use crate::limits::Apart;
use crate::refusal::{Step, While as _};
use crate::rules::Rules;
use crate::sys;

/// What binds commands.
pub(crate) struct Confinement {
    rules: Rules,
    filter: Vec<sock_filter>,
    /// The list of processes, to be written to.
    proc: OwnedFd,
}

/// All that binds commands.
#[derive(Clone, Copy)]
pub(crate) struct Binding<'a> {
    /// None where nothing is confined.
    pub(crate) confinement: Option<&'a Confinement>,
    /// The group for memory, where only commands are in it.
    pub(crate) apart: Option<&'a Apart>,
    /// The list of processes, to be written to, where nothing is confined and commands are to be killed first.
    pub(crate) killed_first: Option<BorrowedFd<'a>>,
}

impl Binding<'_> {
    /// Binds the command that this process becomes, whose terminal this is.
    pub(crate) fn bind_command(&self, terminal: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        if let Some(apart) = self.apart {
            apart.enter()?;
        }
        if let Some(proc) = self.killed_first {
            // As below.
            let _ = be_first(proc);
        }
        self.confinement
            .map_or(Ok(()), |confinement| confinement.bind_command(terminal))
    }
}

/// What the kernel adds to what a command uses when it chooses whom to kill for memory: all that there is, so
/// that it chooses among commands, by their size, and none of those who look after them.
const FIRST: &[u8] = b"1000";

/// Has this process killed before ours when memory runs out. In a sandbox it cannot take it back: its own list of
/// processes is read-only, or closed to it by Landlock.
fn be_first(proc: BorrowedFd<'_>) -> Result<(), Errno> {
    let open = || {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(proc, c"self/oom_score_adj", flags, Mode::empty())
    };
    let score = match open() {
        // Our own files belong to the host's root while our memory is closed. That it is open meanwhile is of
        // no use to other commands, whom Landlock keeps from it.
        Err(Errno::ACCESS) => {
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            let score = open();
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            score
        }
        opened => opened,
    };
    rustix::io::write(score?, FIRST).map(drop)
}

impl Confinement {
    /// Prepares it, over the files as they are seen now; nothing for a plan that confines nothing. `proc` is the
    /// list of processes where a view of its own has one.
    pub(crate) fn prepare(plan: &Plan, proc: Option<BorrowedFd<'_>>) -> Step<Option<Self>> {
        if plan.isolation == Isolation::None {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = match proc {
            Some(proc) => proc.try_clone_to_owned().map_err(|_| Errno::MFILE),
            None => rustix::fs::open(c"/proc", flags, Mode::empty()),
        };
        Ok(Some(Self {
            rules: Rules::build(plan)?,
            filter: filter::program(plan),
            proc: proc.or_refuse(Layer::Pid, || "opening the list of processes".to_owned())?,
        }))
    }

    /// Binds a supervisor, and so its command, for good: no capability, no way to get one, and the
    /// filter of system calls. It takes longest, and can be done before there is a job.
    pub(crate) fn bind_supervisor(&self) -> Step {
        set_capabilities(CapabilitySet::empty())
            .and_then(|()| rustix::thread::set_no_new_privs(true))
            .or_refuse(Layer::Capabilities, || "giving up capabilities".to_owned())?;
        sys::filter(&self.filter).or_refuse(Layer::Seccomp, || "installing the system call filter".to_owned())
    }

    /// Binds the command in addition: Landlock, which also keeps it from its supervisor. `terminal` is the
    /// command's own.
    fn bind_command(&self, terminal: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        // Where the host's list of processes cannot be written to, the kernel chooses by size alone.
        let _ = be_first(self.proc.as_fd());
        self.rules.apply(terminal)
    }

    /// The parts that this kernel is too old for, by name.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &'static str> {
        self.rules.missing.iter().copied()
    }

    /// The parts that are in force, by name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.rules.parts.iter().copied();
        ["capabilities", "landlock"].into_iter().chain(parts).chain(["seccomp"])
    }
}

/// Keeps what the jail itself needs to hide what appears later, also in closed directories, and, where it `listens`, to
/// bind ports below 1024. Takes the rest out of reach of everything that it will ever start.
pub(crate) fn keep_own(listens: bool) -> Step {
    let doing = || "dropping capabilities".to_owned();
    for number in 0..=63 {
        // The set ends at the kernel's last one.
        match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno).or_refuse(Layer::Capabilities, doing),
        }
    }
    rustix::thread::clear_ambient_capability_set().or_refuse(Layer::Capabilities, doing)?;
    let listening = match listens {
        true => CapabilitySet::NET_BIND_SERVICE,
        false => CapabilitySet::empty(),
    };
    let own = CapabilitySet::SYS_ADMIN | CapabilitySet::DAC_READ_SEARCH | listening;
    set_capabilities(own).or_refuse(Layer::Capabilities, doing)
}

fn set_capabilities(keep: CapabilitySet) -> Result<(), Errno> {
    let sets = CapabilitySets {
        effective: keep,
        permitted: keep,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets)
}
