//! What binds each command before it becomes its program: no capability, no way to get one, the filter
//! of system calls, and Landlock.

use std::os::fd::BorrowedFd;

use libc::sock_filter;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};
use shieling_jail::message::Layer;
use shieling_jail::plan::{Isolation, Plan};

use crate::filter;
use crate::refusal::{Step, While as _};
use crate::rules::Rules;
use crate::sys;

/// What binds commands.
pub(crate) struct Confinement {
    rules: Rules,
    filter: Vec<sock_filter>,
}

impl Confinement {
    /// Prepares it, over the files as they are seen now; nothing for a plan that confines nothing.
    pub(crate) fn prepare(plan: &Plan) -> Step<Option<Self>> {
        if plan.isolation == Isolation::None {
            return Ok(None);
        }
        Ok(Some(Self {
            rules: Rules::build(plan)?,
            filter: filter::program(plan),
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
    pub(crate) fn bind_command(&self, terminal: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
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

/// Keeps what the jail itself needs to hide what appears later, also in closed directories, and takes the rest out of reach of
/// everything that it will ever start.
pub(crate) fn keep_mounting() -> Step {
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
    set_capabilities(CapabilitySet::SYS_ADMIN | CapabilitySet::DAC_READ_SEARCH).or_refuse(Layer::Capabilities, doing)
}

fn set_capabilities(keep: CapabilitySet) -> Result<(), Errno> {
    let sets = CapabilitySets {
        effective: keep,
        permitted: keep,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets)
}
