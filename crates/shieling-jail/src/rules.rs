//! Landlock: a second lock on files, and the only one on signals and abstract sockets that leave the
//! jail. Built once, applied by each command to itself.

use std::os::fd::BorrowedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::io::Errno;
use shieling_jail::message::Layer;
use shieling_jail::plan::{Entry, Isolation, Network, Plan};

use crate::refusal::{Step, refuse};
use crate::sys;

/// The oldest version that is enough: renaming between directories (Linux 5.19).
const OLDEST: i64 = 2;
/// The version from which signals and abstract sockets can be kept in (Linux 6.12).
const SCOPES: i64 = 6;

/// What commands are bound by.
pub(crate) struct Rules {
    ruleset: RulesetCreated,
    handled: Handled,
    /// What may be done below which place, where a command's own terminal is to be added to it: a ruleset
    /// is shared by all that it binds later. Held open, since a path may lead elsewhere by then.
    beneath: Vec<(PathFd, BitFlags<AccessFs>)>,
    /// What of it is more than files, for the report.
    pub(crate) parts: Vec<&'static str>,
    /// What of that this kernel's Landlock is too old for.
    pub(crate) missing: Vec<&'static str>,
}

impl Rules {
    /// Builds the rules of a plan, over the files as they are seen now.
    pub(crate) fn build(plan: &Plan) -> Step<Self> {
        let version = match sys::landlock_version() {
            Ok(version) => version,
            Err(Errno::OPNOTSUPP) => return refuse(Layer::Landlock, "this kernel has Landlock and has not enabled it"),
            Err(_) => return refuse(Layer::Landlock, "this kernel has no Landlock"),
        };
        if version < OLDEST {
            return refuse(
                Layer::Landlock,
                format!("this kernel's Landlock is version {version}, and {OLDEST} is needed"),
            );
        }
        if version < SCOPES && (plan.isolation == Isolation::Landlock || plan.network == Network::Host) {
            return refuse(
                Layer::Landlock,
                format!(
                    "this kernel's Landlock is version {version}; without a pid and network namespace of its own, \
                     {SCOPES} is needed to keep signals and abstract sockets in"
                ),
            );
        }
        build(plan, version).or_else(|error| refuse(Layer::Landlock, format!("making rules failed: {error}")))
    }

    /// Binds this process and all that it starts, for good. `terminal` is its own, and the only one that
    /// it can open by its path where those of the host stand beside it.
    pub(crate) fn apply(&self, terminal: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        let ruleset = match terminal {
            Some(terminal) if !self.beneath.is_empty() => self.with_terminal(terminal).map_err(|_| Errno::PERM)?,
            _ => self.ruleset.try_clone().map_err(|_| Errno::MFILE)?,
        };
        let status = ruleset.restrict_self().map_err(|_| Errno::PERM)?;
        if status.ruleset == landlock::RulesetStatus::NotEnforced {
            return Err(Errno::NOSYS);
        }
        Ok(())
    }

    fn with_terminal(&self, terminal: BorrowedFd<'_>) -> Result<RulesetCreated, landlock::RulesetError> {
        let mut ruleset = self.handled.create()?;
        for (place, access) in &self.beneath {
            ruleset = ruleset.add_rule(PathBeneath::new(place, *access))?;
        }
        let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        let access = access & AccessFs::from_file(self.handled.abi);
        ruleset.add_rule(PathBeneath::new(terminal, access))
    }
}

/// What a ruleset decides at all. What it has no rule for, it refuses.
#[derive(Clone, Copy)]
struct Handled {
    abi: ABI,
    tcp: bool,
    scopes: bool,
}

impl Handled {
    fn create(self) -> Result<RulesetCreated, landlock::RulesetError> {
        let mut ruleset = Ruleset::default()
            // What this version has, all of it: nothing is left out in silence.
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(self.abi))?;
        if self.tcp {
            // No rule follows, so no port can be bound or reached.
            ruleset = ruleset.handle_access(AccessNet::from_all(self.abi))?;
        }
        if self.scopes {
            ruleset = ruleset.scope(Scope::Signal)?.scope(Scope::AbstractUnixSocket)?;
        }
        ruleset.create()
    }
}

fn abi(version: i64) -> ABI {
    match version {
        ..=2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}

fn build(plan: &Plan, version: i64) -> Result<Rules, landlock::RulesetError> {
    let abi = abi(version);
    let all = AccessFs::from_all(abi);
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    if version < 4 && plan.network == Network::None {
        missing.push("landlock.tcp");
    }
    if version < SCOPES {
        missing.push("landlock.scope");
    }
    let handled = Handled {
        abi,
        tcp: version >= 4 && plan.network == Network::None,
        scopes: version >= SCOPES,
    };
    if handled.tcp {
        parts.push("landlock.tcp");
    }
    if handled.scopes {
        parts.push("landlock.scope");
    }
    let mut beneath = Vec::new();
    let mut allow = |path: &Path, access| beneath.extend(rule(abi, path, access));
    let see = AccessFs::ReadFile | AccessFs::ReadDir;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    let run = BitFlags::from(AccessFs::Execute);
    let free = plan.executable.is_none();
    // In a jail with a view of its own, whatever is there may be read.
    if plan.isolation == Isolation::Full {
        allow(Path::new("/"), if free { see | run } else { see });
    }
    for entry in &plan.view {
        let (path, writable, executable) = match entry {
            Entry::Bind {
                target,
                writable,
                executable,
                ..
            }
            | Entry::Listed {
                target,
                writable,
                executable,
            } => (target.as_path(), *writable, *executable),
            Entry::Temporary { target, executable, .. }
            | Entry::Layered { target, executable, .. }
            | Entry::Staged { target, executable, .. } => (target.as_path(), true, *executable),
            Entry::Dev { target, .. } => {
                let write = see | AccessFs::WriteFile;
                let write = if version >= 5 {
                    write | AccessFs::IoctlDev
                } else {
                    write
                };
                let write = if version >= 3 {
                    write | AccessFs::Truncate
                } else {
                    write
                };
                allow(target, write);
                // A command's standard input is the host's own `null`, which is the same file and not
                // below our `/dev`: opened again, as `/dev/stdin` is, it would be refused.
                allow(&target.join("null"), write);
                allow(&target.join("shm"), all & !(devices | run));
                continue;
            }
            Entry::Directory { .. }
            | Entry::File { .. }
            | Entry::Over { .. }
            | Entry::Link { .. }
            | Entry::Proc { .. }
            | Entry::Hide { .. }
            | Entry::Again { .. }
            | Entry::Unseen { .. }
            | Entry::Protect { .. } => continue,
        };
        let run = if free && executable { run } else { BitFlags::EMPTY };
        if writable {
            allow(path, all & !(devices | AccessFs::Execute) | run);
        } else if plan.isolation != Isolation::Full {
            allow(path, see | run);
        }
    }
    for path in plan.executable.iter().flatten() {
        allow(path, see | run);
    }
    let mut ruleset = handled.create()?;
    for (place, access) in &beneath {
        ruleset = ruleset.add_rule(PathBeneath::new(place, *access))?;
    }
    if plan.isolation == Isolation::Full {
        beneath.clear();
    }
    Ok(Rules {
        ruleset,
        handled,
        beneath,
        parts,
        missing,
    })
}

/// Access below a path; what is not there needs no rule, and a file takes none of a directory's.
fn rule(abi: ABI, path: &Path, access: BitFlags<AccessFs>) -> Option<(PathFd, BitFlags<AccessFs>)> {
    let fd = PathFd::new(path).ok()?;
    let directory = rustix::fs::fstat(&fd)
        .is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Directory);
    let access = if directory {
        access
    } else {
        access & AccessFs::from_file(abi)
    };
    Some((fd, access))
}
