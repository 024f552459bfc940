//! What happens outside of the jail: its namespaces, the limits that need the host's view, its end.
//!
//! A monitor waits for one order, makes one jail of it, dies with the host and takes the jail with it;
//! and it goes only once the jail's last process has.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use shieling_jail::message::{self, Answer, JAIL, LIKELY, Layer};
use shieling_jail::plan::{Isolation, Network, Plan};

use crate::init::Over;
use crate::inside::{self, Identity, Outside};
use crate::limits::{self, Enforcement};
use crate::order::{COLD, LATER, Order, WARM, answer, order_of, read};
use crate::own;
use crate::refusal::{Step, While as _, refuse};
use crate::socket;
use crate::sys::{self, Copied};

/// How long pid 1 may take to go once there is nobody who gives orders any more.
const LEAVING: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Pid 1 of a jail: in namespaces of its own, waiting to be told what to make of them.
struct InitHandle {
    number: Pid,
    pinned: OwnedFd,
    /// The way to it.
    told: OwnedFd,
    /// Whether it was cloned into its control group.
    limited: bool,
}

/// Which namespace it is that cannot be made: all of them were asked for in one call.
fn refuse_namespaces<T>(asked: i32, errno: Errno) -> Step<T> {
    let single = [
        (0, Layer::User, "user"),
        (libc::CLONE_NEWNS, Layer::Mount, "mount"),
        (libc::CLONE_NEWPID, Layer::Pid, "pid"),
        (libc::CLONE_NEWNET, Layer::Network, "network"),
        (libc::CLONE_NEWIPC, Layer::Other, "ipc"),
        (libc::CLONE_NEWUTS, Layer::Other, "uts"),
    ];
    for (flag, layer, name) in single {
        if asked & flag != flag {
            continue;
        }
        match sys::copy(libc::CLONE_NEWUSER | flag) {
            Ok(Copied::Child) => sys::exit(0),
            Ok(Copied::Parent(tried)) => {
                let _ = rustix::process::waitpid(Pid::from_raw(tried), WaitOptions::empty());
            }
            Err(errno) => return Err(errno).or_refuse(layer, || format!("making a {name} namespace")),
        }
    }
    Err(errno).or_refuse(Layer::User, || "making all namespaces at once".to_owned())
}

/// Waits for an order and keeps the jail that is made of it. `taken` is where a zygote hears that it was taken.
pub(crate) fn run(orders: OwnedFd, host: OwnedFd, taken: Option<OwnedFd>, warm: bool) {
    sys::wait_for_children();
    let make = || match limits::at_birth() {
        true => None,
        // If it cannot be made now, the order will say why.
        false => {
            let outside: Vec<&OwnedFd> = [&orders, &host].into_iter().chain(&taken).collect();
            InitHandle::make(true, &outside, None).ok()
        }
    };
    let mut ready = warm.then(make).flatten();
    let order = loop {
        match wait_for_order(&orders, &host) {
            None => return,
            Some(Heard::Order(order)) => break order,
            Some(Heard::Likely) if ready.is_none() => ready = make(),
            Some(Heard::Likely) => {}
        }
    };
    drop(orders);
    let read = read(&order.plan);
    let own_network = |plan: &Plan| plan.isolation == Isolation::Full && plan.network != Network::Host;
    let next = match &read {
        Ok(plan) if plan.once => LATER,
        Ok(plan) if own_network(plan) => WARM,
        Ok(_) | Err(_) => COLD,
    };
    if let Some(taken) = taken {
        // The zygote is gone if this cannot be written; the jail is made all the same.
        let _ = rustix::io::write(&taken, &[next]);
    }
    let control = order.control.try_clone();
    if let Err(refusal) = read.and_then(|plan| keep(&plan, order, &host, ready))
        && let Ok(control) = control
    {
        answer(&control, &Answer::Refused(refusal), &[]);
    }
}

/// What comes over the orders socket.
enum Heard {
    Order(Order),
    Likely,
}

fn wait_for_order(orders: &OwnedFd, host: &OwnedFd) -> Option<Heard> {
    loop {
        let mut fds = [PollFd::new(orders, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        let [order, gone] = fds.map(|fd| !fd.revents().is_empty());
        if gone {
            return None;
        }
        if !order {
            continue;
        }
        return match socket::receive(orders, RecvFlags::DONTWAIT) {
            Ok(Some((text, fds))) if text == JAIL => order_of(fds).map(Heard::Order),
            Ok(Some((text, _))) if text == LIKELY => Some(Heard::Likely),
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Ok(_) | Err(_) => None,
        };
    }
}

fn keep(plan: &Plan, order: Order, host: &OwnedFd, ready: Option<InitHandle>) -> Step {
    if plan.isolation == Isolation::Full {
        return jail(plan, order, host, ready);
    }
    if let Some(unfit) = ready {
        // It is reaped with the other children.
        unfit.kill();
    }
    let limits = limits::prepare(&plan.limits, plan.isolation)?;
    let entrances: Vec<_> = limits.entrances().collect();
    let done = limits::enter(&entrances)
        .and_then(|()| limits.attach(rustix::process::getpid().as_raw_pid()))
        .and_then(|()| inside::in_place(plan, order, host, &limits));
    drop(entrances);
    limits.remove();
    done
}

/// Makes the jail, and waits for its end or the host's.
fn jail(plan: &Plan, order: Order, host: &OwnedFd, ready: Option<InitHandle>) -> Step {
    let prepare = || limits::prepare(&plan.limits, plan.isolation);
    let (init, prepared) = match ready {
        Some(ready) if plan.network != Network::Host => (ready, None),
        other => {
            if let Some(unfit) = other {
                unfit.end();
            }
            let prepared = limits::at_birth().then(prepare).transpose()?;
            let group = prepared.as_ref().and_then(Enforcement::birthplace);
            match InitHandle::make(plan.network != Network::Host, &[host], group.as_ref()) {
                Ok(init) => (init, prepared),
                Err(refusal) => {
                    prepared.into_iter().for_each(Enforcement::remove);
                    return Err(refusal);
                }
            }
        }
    };
    // It builds its view while the limits are made.
    let handed = own::mounts(&plan.foreign).and_then(|foreign| init.begin(&order, &foreign));
    if let Err(refusal) = handed {
        init.end();
        prepared.into_iter().for_each(Enforcement::remove);
        return Err(refusal);
    }
    let begun = prepared.map_or_else(prepare, Ok).map(|limits| {
        let held = init.limit(&limits);
        (limits, held)
    });
    match begun {
        Err(refusal) => {
            init.end();
            Err(refusal)
        }
        Ok((limits, Err(refusal))) => {
            init.end();
            limits.remove();
            Err(refusal)
        }
        Ok((limits, Ok(()))) => {
            let Order { control, updates, plan } = order;
            drop(plan);
            let over = init.wait(host, &control);
            // What follows is nobody's to wait for.
            let _ = socket::send(&updates, message::GONE, &[]);
            if over == Over::LastJob {
                // The host still reads what its limits have counted, and closes it then.
                let mut fds = [
                    PollFd::new(host, PollFlags::IN),
                    PollFd::new(&control, PollFlags::empty()),
                ];
                while matches!(poll(&mut fds, None), Err(Errno::INTR)) {}
            }
            limits.remove();
            Ok(())
        }
    }
}

impl InitHandle {
    /// In new namespaces: all of them, but a network only if it is to be its own. That of control groups pid 1 makes
    /// itself, since what it sees begins with the groups that it is in then.
    /// `outside` is what the monitor has open and it shall not; `group` is where it is cloned into.
    fn make(own_network: bool, outside: &[&OwnedFd], group: Option<&OwnedFd>) -> Step<Self> {
        let start = || "starting".to_owned();
        let (told, hears) = socket::pair().or_refuse(Layer::Start, start)?;
        let identity = Identity::ours();
        let own =
            libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let own = if own_network { own | libc::CLONE_NEWNET } else { own };
        // An older kernel does not know it, and a filter around us may not let it through.
        let born = group.and_then(|group| sys::copy_into(own, group.as_fd()).ok());
        let limited = born.is_some();
        let copied = match born {
            Some(copied) => copied,
            None => sys::copy(own).or_else(|errno| refuse_namespaces(own, errno))?,
        };
        match copied {
            Copied::Child => {
                drop(told);
                // An orders socket that is open in it would look alive when the zygote no longer is.
                outside.iter().for_each(|fd| sys::close_for_good(fd.as_fd()));
                let over = inside::in_namespaces(&hears, &identity);
                sys::exit(over.status())
            }
            Copied::Parent(number) => {
                let Some(number) = Pid::from_raw(number) else {
                    return refuse(Layer::Start, "the jail has no number");
                };
                let pinned = rustix::process::pidfd_open(number, PidfdFlags::empty()).or_refuse(Layer::Start, start)?;
                Ok(Self {
                    number,
                    pinned,
                    told,
                    limited,
                })
            }
        }
    }

    /// Hands the order on.
    fn begin(&self, order: &Order, foreign: &[OwnedFd]) -> Step {
        let mut fds = vec![order.control.as_fd(), order.updates.as_fd(), order.plan.as_fd()];
        fds.extend(foreign.iter().map(OwnedFd::as_fd));
        socket::send(&self.told, JAIL, &fds).or_refuse(Layer::Start, || "handing the plan to the jail".to_owned())
    }

    /// Tells it of its limits, which hold for it once it has entered the groups of v1 by itself.
    fn limit(&self, limits: &Enforcement) -> Step {
        if !self.limited {
            limits.attach(self.number.as_raw_pid())?;
        }
        let entrances: Vec<_> = limits.entrances().collect();
        let outside = Outside {
            monitor: rustix::process::getpid().as_raw_pid(),
            held: limits.held(),
            entrances: entrances.len(),
            apart: limits.apart().count(),
        };
        let fds = entrances.into_iter().chain(limits.apart()).chain(limits.counters());
        let fds: Vec<_> = fds.collect();
        socket::send(&self.told, &message::encode(&outside), &fds)
            .or_refuse(Layer::Limits, || "telling the jail".to_owned())
    }

    /// Until pid 1 is gone, and everything in its pid namespace with it. The host's end ends it; and so does
    /// the end of its orders, if it does not go by itself: somebody outside may have stopped it.
    fn wait(self, host: &OwnedFd, control: &OwnedFd) -> Over {
        let mut fds = [
            PollFd::new(&self.pinned, PollFlags::IN),
            PollFd::new(host, PollFlags::IN),
            // Of the control socket only its end is ours.
            PollFd::new(control, PollFlags::empty()),
        ];
        while matches!(poll(&mut fds, None), Err(Errno::INTR)) {}
        let [gone, over, _] = fds.map(|fd| !fd.revents().is_empty());
        if !gone && !over {
            let mut fds = [
                PollFd::new(&self.pinned, PollFlags::IN),
                PollFd::new(host, PollFlags::IN),
            ];
            while matches!(poll(&mut fds, Some(&LEAVING)), Err(Errno::INTR)) {}
        }
        self.end()
    }

    fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pinned, Signal::KILL);
    }

    /// OomCounter it, if it has not ended. Its end is reported only once every other process in it is gone.
    fn end(self) -> Over {
        self.kill();
        loop {
            match rustix::process::waitpid(Some(self.number), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                Ok(Some((_, status))) if status.exit_status() == Some(Over::LastJob.status()) => return Over::LastJob,
                Ok(_) | Err(_) => return Over::Otherwise,
            }
        }
    }
}
