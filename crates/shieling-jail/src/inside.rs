//! How init makes its jail around itself, says what holds, and begins to serve.

use std::fmt::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::process::{DumpableBehavior, Signal};
use serde::{Deserialize, Serialize};
use shieling_jail::message::{self, Answer, Counter, Layer, Ready};
use shieling_jail::plan::{Entry, Isolation, Network, Plan};

use crate::bounds;
use crate::confine::{self, Confinement};
use crate::gateway;
use crate::init::{Init, Over};
use crate::limits::{self, Apart, Enforcement, Held, Journal};
use crate::order::{ORDER, Order, answer, order_of, read};
use crate::own;
use crate::refusal::{Step, While as _, refuse};
use crate::socket;
use crate::sys::{self, Copied};
use crate::temporary::Temporary;
use crate::view::View;

/// What init has to know of what the monitor did outside.
#[derive(Serialize, Deserialize)]
pub(crate) struct Outside {
    /// The monitor's number on the host.
    pub(crate) monitor: i32,
    /// The limits.
    pub(crate) held: Held,
    /// How many of the descriptors that come with this are for [`limits::enter`].
    pub(crate) entrances: usize,
    /// How many of the next are for [`Apart::leave`].
    pub(crate) apart: usize,
}

/// Who the user is, on the host and in the jail alike.
pub(crate) struct Identity {
    user: u32,
    group: u32,
}

impl Identity {
    /// That of this process.
    pub(crate) fn ours() -> Self {
        Self {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        }
    }
}

/// Pid 1 of a jail: becomes the user that it was, waits for its order, builds, answers and serves. Gives how it ended.
pub(crate) fn in_namespaces(monitor: &OwnedFd, identity: &Identity) -> Over {
    let made = become_user(identity);
    // Nothing comes any more once the monitor has gone, or needs this jail no more.
    let Ok(Some((_, mut fds))) = socket::receive(monitor, RecvFlags::empty()) else {
        return Over::Otherwise;
    };
    let foreign = fds.split_off(fds.len().min(ORDER));
    let Some(order) = order_of(fds) else {
        return Over::Otherwise;
    };
    let built = made.and_then(|()| {
        let plan = read(&order.plan)?;
        namespaces(&plan, &order.control)?;
        let mut view = View::build(&plan.view, &own::shown(&plan.foreign, foreign))?;
        low_ports(&plan, view.proc());
        let (outside, apart, files) = outside(monitor)?;
        // What it shows begins with the groups that this process is in now.
        sys::own_groups().or_refuse(Layer::Other, || "making a cgroup namespace".to_owned())?;
        view.show_groups(&outside.held.shown)?;
        let apart = Apart::leave(apart)?;
        view.enter()?;
        no_more_namespaces()?;
        let kills = outside.held.kills(&files)?;
        let mut init = Init::new(order.control.as_fd(), order.updates.as_fd(), None, Some(view), kills)?;
        init.keep_apart(apart);
        finish(&plan, init, outside, files)
    });
    serve(built, &order.control)
}

/// Without namespaces: the monitor itself serves.
pub(crate) fn in_place(plan: &Plan, order: Order, host: &OwnedFd, limits: &Enforcement) -> Step {
    if plan.isolation == Isolation::Landlock && plan.network == Network::Loopback {
        return refuse(
            Layer::Network,
            "a network of its own needs a network namespace, which this isolation does without",
        );
    }
    if plan.gateway.is_some() {
        return refuse(
            Layer::Network,
            "a gateway needs a network namespace, which this isolation does without",
        );
    }
    let outside = Outside {
        monitor: rustix::process::getpid().as_raw_pid(),
        held: limits.held(),
        entrances: 0,
        apart: 0,
    };
    let files = limits.counters().into_iter().map(|file| file.try_clone_to_owned());
    let files = files.collect::<Result<Vec<_>, _>>().map_err(|_| Errno::MFILE);
    let files = files.or_refuse(Layer::Limits, || "copying the counts of the limits".to_owned())?;
    let kills = outside.held.kills(&files)?;
    let mut init = Init::new(order.control.as_fd(), order.updates.as_fd(), Some(host), None, kills)?;
    let apart = limits.apart().map(|file| file.try_clone_to_owned());
    let apart = apart.collect::<Result<_, _>>().map_err(|_| Errno::MFILE);
    init.keep_apart(Apart::leave(
        apart.or_refuse(Layer::Limits, || "copying the ways into a control group".to_owned())?,
    )?);
    let mut plan = plan.clone();
    let temporary = own_temporary(&mut plan.view)?;
    let built = finish(&plan, init, outside, files).map(|(init, ready, given)| {
        let temporary = temporary.as_ref().map(|temporary| temporary.path.clone());
        (init, Ready { temporary, ..ready }, given)
    });
    let _ = serve(built, &order.control);
    if let Some(temporary) = temporary {
        temporary.remove();
    }
    Ok(())
}

/// In the place of the host's directory for temporary files, one of this jail's own in it.
fn own_temporary(view: &mut [Entry]) -> Step<Option<Temporary>> {
    let found = view.iter_mut().find_map(|entry| match entry {
        Entry::Temporary { target, executable, .. } => Some((target.clone(), *executable, entry)),
        _ => None,
    });
    let Some((parent, executable, entry)) = found else {
        return Ok(None);
    };
    let made = Temporary::make(&parent).or_refuse(Layer::Mount, || {
        format!("making a directory for temporary files in `{}`", parent.display())
    })?;
    *entry = Entry::Bind {
        source: made.path.clone(),
        target: made.path.clone(),
        writable: true,
        executable,
        optional: false,
    };
    Ok(Some(made))
}

/// An `Init`, what holds, and what the host is given: the root if there is one, and the counts.
type Built = (Init, Ready, Vec<OwnedFd>);

fn serve(built: Step<Built>, control: &OwnedFd) -> Over {
    match built {
        Err(refusal) => {
            answer(control, &Answer::Refused(refusal), &[]);
            Over::Otherwise
        }
        Ok((init, ready, given)) => {
            answer(control, &Answer::Ready(ready), &given);
            drop(given);
            // An error can be told to nobody any more; what runs ends with us.
            init.run().unwrap_or(Over::Otherwise)
        }
    }
}

/// Our root, for the host: through it, it sees files as they are seen here, mounts and all.
fn root() -> Step<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, c"/", flags, Mode::empty()).or_refuse(Layer::Mount, || "opening the new root".to_owned())
}

/// Over the files as they are seen now: limits, the locks, and a look from inside at whether all holds.
fn finish(plan: &Plan, mut init: Init, outside: Outside, mut files: Vec<OwnedFd>) -> Step<Built> {
    let Outside { monitor, held, .. } = outside;
    held.apply()?;
    let mut enforced: Vec<String> = Vec::new();
    let mut missing = held.missing.clone();
    if init.has_view() {
        let network = (plan.network != Network::Host).then_some("network");
        let names = ["user", "user.bounds", "mount", "pid", "ipc", "uts", "cgroup"];
        let gateway = plan.gateway.is_some().then_some("network.gateway");
        enforced.extend(names.into_iter().chain(network).chain(gateway).map(str::to_owned));
    }
    let confinement = Confinement::prepare(plan, init.view().and_then(View::proc))?;
    let confined = confinement.is_some();
    if let Some(confinement) = confinement {
        // Nothing of the user's other sessions is in reach by their keys. Not every kernel has keys, and
        // where a filter around us refuses the call, it refuses it to commands as well.
        match sys::new_keyring() {
            Ok(()) | Err(Errno::NOSYS | Errno::PERM) => {}
            Err(errno) => return Err(errno).or_refuse(Layer::Seccomp, || "leaving the user's keyring".to_owned()),
        }
        if init.has_view() {
            confine::keep_own(plan.gateway.is_some())?;
        }
        // Our memory and descriptors are not for the commands, who have the same user.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .or_refuse(Layer::Capabilities, || "closing our own memory".to_owned())?;
        enforced.extend(confinement.names().map(str::to_owned));
        missing.extend(confinement.missing().map(str::to_owned));
        init.confine(confinement);
    }
    if plan.killed_first && !confined {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(proc) = rustix::fs::open(c"/proc", flags, Mode::empty()) {
            init.kill_first(proc);
        }
    }
    enforced.extend(held.enforced.iter().cloned());
    if plan.once {
        init.expect_one();
    }
    let mut in_memory = temporary(plan);
    if let Some(view) = init.view() {
        in_memory.extend(view.layers().map(Path::to_path_buf));
        missing.extend(view.has_unlayered().then(|| "private caches".to_owned()));
        missing.extend(view.has_no_groups().then(|| "cgroup.view".to_owned()));
    }
    let failed = || "keeping a journal of what limits do".to_owned();
    let journal = Journal::new().or_refuse(Layer::Limits, failed)?;
    let proc = init.has_view().then_some(Path::new("/proc"));
    init.look(held.eye(proc, &in_memory, init.kills(), &files, &journal)?);
    let mut counters = held.counters.clone();
    counters.push(Counter::Journal);
    let copy = journal.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE);
    files.push(copy.or_refuse(Layer::Limits, failed)?);
    let given = init.has_view().then(root).transpose()?.into_iter().chain(files);
    let given: Vec<OwnedFd> = given.collect();
    // The last that can be refused: whoever has found that all holds may start a command at once.
    if confined {
        init.probe(plan)?;
        if !init.is_numbered() {
            missing.push("scheduling".to_owned());
        }
    }
    let ready = Ready {
        monitor,
        enforced,
        missing,
        limits: held.effective,
        temporary: None,
        counters,
    };
    Ok((init, ready, given))
}

/// What the monitor says of the limits, which hold for this process from here on, and the kernel's counts of them.
fn outside(monitor: &OwnedFd) -> Step<(Outside, Vec<OwnedFd>, Vec<OwnedFd>)> {
    let Ok(Some((text, mut entrances))) = socket::receive(monitor, RecvFlags::empty()) else {
        return refuse(Layer::Limits, "the monitor went before the limits held");
    };
    let Some(outside) = message::decode::<Outside>(&text) else {
        return refuse(Layer::Limits, "what the monitor says of the limits cannot be read");
    };
    let mut apart = entrances.split_off(outside.entrances.min(entrances.len()));
    let counters = apart.split_off(outside.apart.min(apart.len()));
    limits::enter(&entrances)?;
    Ok((outside, apart, counters))
}

/// The directories in memory: what lies in them is memory too.
fn temporary(plan: &Plan) -> Vec<PathBuf> {
    let directories = plan.view.iter().filter_map(|entry| match entry {
        Entry::Temporary { target, .. } => Some(target.clone()),
        Entry::Dev { target, .. } => Some(target.join("shm")),
        Entry::Bind { .. }
        | Entry::Layered { .. }
        | Entry::Staged { .. }
        | Entry::Listed { .. }
        | Entry::Directory { .. }
        | Entry::File { .. }
        | Entry::Over { .. }
        | Entry::Link { .. }
        | Entry::Proc { .. }
        | Entry::Hide { .. }
        | Entry::Again { .. }
        | Entry::Unseen { .. }
        | Entry::Protect { .. } => None,
    });
    directories.collect()
}

/// Becomes, in a new user namespace, the user that it was on the host, and dies with the monitor.
fn become_user(identity: &Identity) -> Step {
    let user = || "becoming the same user in a user namespace".to_owned();
    // A group may only be mapped once groups cannot be dropped any more: dropping one could open a
    // file that is closed to that group.
    write("/proc/self/setgroups", "deny").or_refuse(Layer::User, user)?;
    let Identity { user: uid, group: gid } = identity;
    write("/proc/self/gid_map", &format!("{gid} {gid} 1")).or_refuse(Layer::User, user)?;
    write("/proc/self/uid_map", &format!("{uid} {uid} 1")).or_refuse(Layer::User, user)?;
    // If it is gone by now, nothing will come from it, which is noticed next.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .or_refuse(Layer::Pid, || "binding the jail's life to its monitor's".to_owned())
}

/// Sets up what is not files.
fn namespaces(plan: &Plan, control: &OwnedFd) -> Step {
    let mut name = String::new();
    let _ = write!(name, "{:.64}", plan.hostname);
    rustix::system::sethostname(name.as_bytes()).or_refuse(Layer::Other, || "naming the jail".to_owned())?;
    if plan.network == Network::Loopback {
        let up = || "switching the loopback interface on".to_owned();
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .or_refuse(Layer::Network, up)?;
        sys::loopback_up(socket.as_fd()).or_refuse(Layer::Network, up)?;
    }
    match &plan.gateway {
        Some(gateway) if plan.network == Network::Loopback => gateway::open(gateway, control),
        Some(_) => refuse(Layer::Network, "a gateway needs a network with a loopback of its own"),
        None => Ok(()),
    }
}

/// Lets programs serve ports below 1024 of a loopback of their own, as root's do outside. Where it cannot be allowed
/// they are refused, as before. Beside a gateway these ports are its own: it serves the hosts that were allowed there.
fn low_ports(plan: &Plan, proc: Option<BorrowedFd<'_>>) {
    if let (Network::Loopback, None, Some(proc)) = (plan.network, &plan.gateway, proc) {
        let _ = bounds::open_low_ports(proc);
    }
}

/// Tries whether another namespace can be made, by whoever has every capability here and no filter yet.
fn no_more_namespaces() -> Step {
    match sys::copy(libc::CLONE_NEWUSER) {
        Err(_) => Ok(()),
        Ok(Copied::Child) => sys::exit(0),
        Ok(Copied::Parent(_)) => refuse(
            Layer::Probe,
            "another user namespace could be made in that of the sandbox",
        ),
    }
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    let file = rustix::fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}
