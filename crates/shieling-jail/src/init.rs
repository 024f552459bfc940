//! Looks after a jail for as long as it lasts: keeps a supervisor waiting for the next job, hides and
//! protects what appeared, reaps. In a jail with a pid namespace it is pid 1: everything in it dies
//! with it.
//!
//! Orders to start a command are not taken here but by the supervisor that waits for one, which has
//! been made, and confined, before: a command's start is one process made and one program executed.
#![expect(clippy::disallowed_methods, reason = "the list of our children is read from /proc")]

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};
use shieling_jail::message::{self, LISTEN, Layer, Missed, Numbered, NumberedEndpoints, UPDATE, Updated};
use shieling_jail::plan::Plan;

use crate::confine::{Binding, Confinement};
use crate::gateway;
use crate::limits::{Apart, Eye, OomCounter};
use crate::numbers::Numbers;
use crate::refusal::{Step, While as _, refuse};
use crate::socket::{self, read_whole};
use crate::supervisor::{self, Channels, TAKEN_LAST, timespec};
use crate::sys::{self, Copied, Reaped};
use crate::view::{self, View};

/// The longest update, in bytes.
const LONGEST_UPDATE: usize = 16 * 1024 * 1024;
/// How long the end of everything may take, a second of which is the supervisors'.
const ENDING: Duration = Duration::from_secs(2);

/// How long one waits before a supervisor is tried to be made again.
const AGAIN: Duration = Duration::from_millis(10);

/// The first process of a jail: pid 1 where it has a pid namespace.
pub(crate) struct Init {
    control: OwnedFd,
    updates: OwnedFd,
    /// Whoever started the jail; none where somebody else looks after that.
    host: Option<OwnedFd>,
    view: Option<View>,
    confinement: Option<Confinement>,
    killed_first: Option<OwnedFd>,
    apart: Option<Apart>,
    kills: OomCounter,
    eye: Option<Eye>,
    /// Whether there were jobs when it last looked.
    looked: bool,
    /// Whether no supervisor waits beside a job: one is made when there is an order for it.
    once: bool,
    /// Whether the last job has been taken, with which this ends.
    last: bool,
    jobs: Jobs,
}

/// Why a jail is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// The job that was to be its last has ended, and nothing of it is left.
    LastJob,
    /// Something else: its host has gone, or wants it no more.
    Otherwise,
}

impl Over {
    /// The status with which pid 1 ends, by which its monitor knows.
    pub(crate) fn status(self) -> i32 {
        match self {
            Self::LastJob => 3,
            Self::Otherwise => 0,
        }
    }
}

/// The supervisors, and what they hear of us.
struct Jobs {
    children: OwnedFd,
    /// Closed when this process ends, whatever ends it.
    alive: Option<OwnedFd>,
    life: OwnedFd,
    supervisors: Vec<i32>,
    /// The numbers that they get, where there is a pid namespace to give them in.
    numbers: Option<Numbers>,
    /// Where the one that waits says that it does so no longer.
    waiting: Option<OwnedFd>,
}

impl Init {
    /// One that nothing has been asked of yet.
    pub(crate) fn new(
        control: BorrowedFd<'_>,
        updates: BorrowedFd<'_>,
        host: Option<&OwnedFd>,
        view: Option<View>,
        kills: OomCounter,
    ) -> Step<Self> {
        let start = || "starting".to_owned();
        let own = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned()
                .map_err(|_| Errno::MFILE)
                .or_refuse(Layer::Start, start)
        };
        // Where it is no pid 1, what a killed supervisor leaves shall be ours all the same.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).or_refuse(Layer::Start, start)?;
        let (life, alive) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).or_refuse(Layer::Start, start)?;
        let numbers = view.is_some().then(Numbers::new);
        Ok(Self {
            control: own(control)?,
            updates: own(updates)?,
            host: host.map(|host| own(host.as_fd())).transpose()?,
            view,
            confinement: None,
            killed_first: None,
            apart: None,
            kills,
            eye: None,
            looked: false,
            once: false,
            last: false,
            jobs: Jobs {
                children: sys::child_signals().or_refuse(Layer::Start, start)?,
                alive: Some(alive),
                life,
                supervisors: Vec::new(),
                numbers,
                waiting: None,
            },
        })
    }

    /// Has no supervisor made ahead of its order, but for the first.
    pub(crate) fn expect_one(&mut self) {
        self.once = true;
    }

    /// The view of files of its own, if it has one.
    pub(crate) fn view(&self) -> Option<&View> {
        self.view.as_ref()
    }

    /// Whether it has a view of files of its own, and so namespaces.
    pub(crate) fn has_view(&self) -> bool {
        self.view.is_some()
    }

    /// Whether supervisors can be told from commands by their numbers, where commands can name them.
    pub(crate) fn is_numbered(&self) -> bool {
        self.jobs.numbers.as_ref().is_none_or(|numbers| numbers.given)
    }

    /// Has commands killed before ours when memory runs out, from now on; by this list of processes.
    pub(crate) fn kill_first(&mut self, proc: OwnedFd) {
        self.killed_first = Some(proc);
    }

    /// Has commands confined from now on.
    pub(crate) fn confine(&mut self, confinement: Confinement) {
        self.confinement = Some(confinement);
    }

    /// Has commands enter this group, in which this process is not.
    pub(crate) fn keep_apart(&mut self, apart: Option<Apart>) {
        self.apart = apart;
    }

    /// Has memory looked at while there are jobs.
    pub(crate) fn look(&mut self, eye: Option<Eye>) {
        self.eye = eye;
    }

    /// How many were killed for memory.
    pub(crate) fn kills(&self) -> &OomCounter {
        &self.kills
    }

    /// Has the first supervisor try, from a process that is confined as a command is, whether all holds.
    pub(crate) fn probe(&mut self, plan: &Plan) -> Step {
        let probing = || "starting a probe from inside".to_owned();
        let heard = self.make_supervisor(Some(plan)).or_refuse(Layer::Probe, probing)?;
        let mut bytes = [0_u8; 1024];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&heard, &mut bytes)).unwrap_or(0);
        self.jobs.waiting = Some(heard);
        match bytes.get(..count).and_then(message::decode_first::<Step>) {
            // If an order for a command was here already, what it says of that may have come as well.
            Some((found, rest)) => {
                self.last |= rest == [TAKEN_LAST];
                found
            }
            // It died: of a filter, say, that somebody put around us.
            None => refuse(Layer::Probe, "a probe from inside was ended before it could answer"),
        }
    }

    /// Serves until the control socket or the host ends, or the last job, and leaves nothing behind.
    pub(crate) fn run(mut self) -> Result<Over, Errno> {
        let served = self.serve();
        // As pid 1 it takes everything with it when it goes.
        if rustix::process::getpid() != Pid::INIT {
            self.jobs.end();
        }
        served
    }

    fn serve(&mut self) -> Result<Over, Errno> {
        let mut wanted = true;
        loop {
            self.jobs.reap();
            if self.last && self.jobs.waiting.is_none() && self.jobs.supervisors.is_empty() {
                // Its end may be what is to be seen.
                let _ = self.eye.as_mut().map(Eye::tick);
                return Ok(Over::LastJob);
            }
            if self.jobs.waiting.is_none() && wanted {
                match self.make_supervisor(None) {
                    Ok(heard) => self.jobs.waiting = Some(heard),
                    // Commands have used up the processes, or memory; they end, and it is tried again.
                    Err(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {}
                    Err(errno) => return Err(errno),
                }
            }
            // Once more when the last has ended: its end may be what is to be seen.
            let busy = self.jobs.are_there();
            let due = match &mut self.eye {
                Some(eye) if busy || self.looked => Some(eye.tick()).filter(|_| busy),
                _ => None,
            };
            self.looked = busy;
            let due = match self.jobs.waiting {
                None if wanted => Some(due.map_or(AGAIN, |due| due.min(AGAIN))),
                Some(_) | None => due,
            };
            let timeout = due.map(|due| timespec(u64::try_from(due.as_millis()).unwrap_or(u64::MAX)));
            let host = self.host.as_ref().unwrap_or(&self.control);
            let taken = self.jobs.waiting.as_ref().unwrap_or(&self.control);
            // Of the control socket only its end is ours, and that there is an order for whom nobody waits.
            let orders = if self.jobs.waiting.is_none() && !wanted && !self.last {
                PollFlags::IN
            } else {
                PollFlags::empty()
            };
            let mut fds = [
                PollFd::new(&self.control, orders),
                PollFd::new(&self.jobs.children, PollFlags::IN),
                PollFd::new(
                    host,
                    if self.host.is_some() {
                        PollFlags::IN
                    } else {
                        PollFlags::empty()
                    },
                ),
                PollFd::new(
                    taken,
                    if self.jobs.waiting.is_some() {
                        PollFlags::IN
                    } else {
                        PollFlags::empty()
                    },
                ),
                PollFd::new(&self.updates, PollFlags::IN),
            ];
            if poll(&mut fds, timeout.as_ref()).is_err() {
                continue;
            }
            let ordered = fds[0].revents() == PollFlags::IN;
            let [control, children, host, taken, updates] = fds.map(|fd| !fd.revents().is_empty());
            if children {
                drain(&self.jobs.children);
            }
            if control && !ordered || host {
                return Ok(Over::Otherwise);
            }
            if taken {
                // It has a job now, or somebody has killed it: either way it waits no longer.
                self.last |= self.jobs.waiting.take().is_some_and(|heard| is_last(&heard));
                wanted = !self.once && !self.last;
            }
            wanted |= ordered;
            if updates {
                match self.update() {
                    Ok(true) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Ok(false) => return Ok(Over::Otherwise),
                    Err(errno) => return Err(errno),
                }
            }
        }
    }

    /// Hides and protects what appeared. Whether there will be more.
    fn update(&mut self) -> Result<bool, Errno> {
        let Some((text, mut fds)) = socket::receive(&self.updates, RecvFlags::DONTWAIT)? else {
            return Ok(false);
        };
        let Some(file) = fds.pop() else {
            return Err(Errno::PROTO);
        };
        match &*text {
            UPDATE => {}
            LISTEN => return self.listen(&file).map(|()| true),
            _ => return Err(Errno::PROTO),
        }
        let (number, update): Numbered = message::decode(&read_whole(&file, LONGEST_UPDATE)?).ok_or(Errno::BADMSG)?;
        let updated = match &mut self.view {
            Some(view) => view::update(view, &update).map(|paths| Missed { paths }),
            None => refuse(
                Layer::Mount,
                "without a mount namespace nothing can be hidden or protected",
            ),
        };
        socket::send(&self.updates, &message::encode::<Updated>(&(number, updated)), &[])?;
        Ok(true)
    }

    /// Makes more sockets in this network, for the host alone: no supervisor is made while they are open here.
    fn listen(&mut self, file: &OwnedFd) -> Result<(), Errno> {
        let (number, endpoints): NumberedEndpoints =
            message::decode(&read_whole(file, LONGEST_UPDATE)?).ok_or(Errno::BADMSG)?;
        let (answer, sockets): (Updated, _) = match gateway::bind(&endpoints) {
            Ok(sockets) => ((number, Ok(Missed::default())), sockets),
            Err(refusal) => ((number, Err(refusal)), Vec::new()),
        };
        let sockets: Vec<_> = sockets.iter().map(OwnedFd::as_fd).collect();
        socket::send(&self.updates, &message::encode(&answer), &sockets)
    }

    /// Makes the supervisor of the next job, and gives the pipe on which it says that it has one.
    fn make_supervisor(&mut self, probe: Option<&Plan>) -> Result<OwnedFd, Errno> {
        let (heard, told) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let copied = match &mut self.jobs.numbers {
            Some(numbers) => numbers.copy()?,
            None => sys::copy(0)?,
        };
        match copied {
            Copied::Child => {
                // What is init's alone. Above all the end of the pipe that keeps us alive.
                let alive = self.jobs.alive.as_ref().map(OwnedFd::as_fd);
                let host = self.host.as_ref().map(OwnedFd::as_fd);
                let init = [self.updates.as_fd(), self.jobs.children.as_fd(), heard.as_fd()];
                init.into_iter().chain(host).chain(alive).for_each(sys::close_for_good);
                let channels = Channels {
                    orders: &self.control,
                    taken: told,
                    life: &self.jobs.life,
                };
                let binding = Binding {
                    confinement: self.confinement.as_ref(),
                    apart: self.apart.as_ref(),
                    killed_first: self.killed_first.as_ref().map(|proc| proc.as_fd()),
                };
                supervisor::run(channels, binding, &self.kills, probe)
            }
            Copied::Parent(pid) => {
                self.jobs.supervisors.push(pid);
                Ok(heard)
            }
        }
    }
}

impl Jobs {
    /// Whether there is any: the supervisor that waits is none.
    fn are_there(&self) -> bool {
        self.supervisors.len() > usize::from(self.waiting.is_some())
    }

    /// Ends every job: supervisors end theirs once the pipe of life ends, and what has none is killed.
    fn end(mut self) {
        let until = Instant::now() + ENDING;
        self.alive = None;
        while self.reap() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let mut fds = [PollFd::new(&self.children, PollFlags::IN)];
            // Rounded up: below a millisecond it would not wait at all.
            let timeout = timespec(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).saturating_add(1));
            let _ = poll(&mut fds, Some(&timeout));
            drain(&self.children);
        }
    }

    /// Reaps supervisors, and ends what a killed one has left: its processes are our children now.
    /// Whether any child is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap_any(true) {
                Reaped::Ended { pid, .. } => self.supervisors.retain(|supervisor| *supervisor != pid),
                // A command may stop its supervisor, which then would not see its deadline.
                Reaped::Stopped { pid } => signal(pid, Signal::CONT),
                Reaped::NoneYet => break,
                Reaped::NoChildren => return false,
            }
        }
        for child in children() {
            if !self.supervisors.contains(&child) {
                // Its own children are ours next, and SIGCHLD brings us back here.
                signal(child, Signal::KILL);
            }
        }
        true
    }
}

/// Whether the supervisor that has just been given a job was given the last one.
fn is_last(heard: &OwnedFd) -> bool {
    let mut word = [0_u8; 1];
    rustix::io::read(heard, &mut word) == Ok(1) && word[0] == TAKEN_LAST
}

/// Takes what is there of the news of ended children, which are looked for afterwards.
fn drain(children: &OwnedFd) {
    let mut record = [0_u8; 1024];
    while matches!(rustix::io::read(children, &mut record), Ok(1..)) {}
}

/// To a child of ours, which keeps its number until we reap it.
fn signal(child: i32, signal: Signal) {
    if let Some(child) = Pid::from_raw(child) {
        let _ = rustix::process::kill_process(child, signal);
    }
}

/// Our children, as `/proc` tells them; none where it does not.
fn children() -> Vec<i32> {
    let path = format!("/proc/self/task/{}/children", rustix::process::getpid().as_raw_pid());
    let Ok(text) = std::fs::read_to_string(path) else {
        return Vec::new();
    };
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
