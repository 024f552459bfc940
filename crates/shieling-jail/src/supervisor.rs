//! The supervisor: a small process beside each job whose children all of the job's processes are,
//! sooner or later, so that it can end every one of them and know that it did.
//!
//! It is a *child subreaper*: a process of the job whose parent ends becomes its child, whatever
//! sessions, groups, double forks or `nohup` were used to get away. Hence `ECHILD` from `wait` is
//! the proof that nothing is left. It dies with its jail, and takes the job with it.
//!
//! ```text
//! waiting ► start ─► running ──────────────► gone ─► exit
//!            │         │ stop, or host gone    ▲
//!            ▼         ▼                       │
//!          failed   SIGTERM ─ grace ─► SIGKILL, again and again, until ECHILD or the budget is over
//! ```

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal};
use shieling_jail::message::{self, LAST, Layer, Order, Report, SIZE, START, Stage, Usage};
use shieling_jail::plan::{Plan, Request};

use crate::confine::Binding;
use crate::launch::{self, Descriptors};
use crate::limits::OomCounter;
use crate::probe;
use crate::refusal::{Step, While as _, refuse};
use crate::socket;
use crate::subtrees::Subtrees;
use crate::sys::{self, Reaped};
use crate::tree::{KILL_BUDGET_MS, KILL_PAUSE_MS, REFUSED_ROUNDS, STOPPING_ROUND, Tree, Walk, now_ms};

/// What it says once it has a job, if it could not say otherwise before.
const TAKEN: &[u8] = b"t";
/// The same of the jail's last job.
pub(crate) const TAKEN_LAST: u8 = b'l';
/// The longest request, in bytes: the largest environment that the kernel takes, and room to spare.
const LONGEST_REQUEST: usize = 8 * 1024 * 1024;

/// Where a supervisor hears and tells.
pub(crate) struct Channels<'a> {
    /// Orders to start a command, of which it takes one.
    pub(crate) orders: &'a OwnedFd,
    /// Where it tells init.
    pub(crate) taken: OwnedFd,
    /// Ends when the jail does.
    pub(crate) life: &'a OwnedFd,
}

/// An order that was taken.
struct Job {
    /// Whether the jail is to end with it.
    last: bool,
    /// The way to whoever asked for it.
    control: OwnedFd,
    request: OwnedFd,
    descriptors: Descriptors,
}

/// Waits for a job, and runs it from its start to its last process. The entry of the copied process.
pub(crate) fn run(channels: Channels<'_>, binding: Binding<'_>, kills: &OomCounter, probe: Option<&Plan>) -> ! {
    let prepared = prepare(binding);
    if let Some(plan) = probe {
        let found: Step = match (&prepared, binding.confinement) {
            (Err(refusal), _) => Err(refusal.clone()),
            (Ok(_), Some(_)) => probe::probe(plan, binding).or_else(|what| refuse(Layer::Probe, what)),
            (Ok(_), None) => Ok(()),
        };
        let _ = rustix::io::write(&channels.taken, &message::encode(&found));
        // An order for a command may be here already.
        if found.is_err() {
            sys::exit(0);
        }
    }
    let Some(job) = wait_for_job(&channels) else {
        sys::exit(0)
    };
    let taken = if job.last { &[TAKEN_LAST] } else { TAKEN };
    let _ = rustix::io::write(&channels.taken, taken);
    drop(channels.taken);
    sys::close_for_good(channels.orders.as_fd());
    let Job {
        last: _,
        control,
        request,
        descriptors,
    } = job;
    let killed_before = kills.count();
    let prepared = prepared.map_err(|refusal| (Stage::Confine, Errno::from_raw_os_error(refusal.errno)));
    let started = prepared.and_then(|children| {
        let request = read(&request)?;
        let main = launch::launch(&request, descriptors, binding)?;
        Ok((children, main))
    });
    match started {
        Ok((children, main)) => {
            send(&control, Report::Started { pid: main });
            // Its own directory must not be kept busy by us.
            let _ = rustix::process::chdir(c"/");
            Supervisor {
                control,
                life: channels.life,
                children,
                kills,
                killed_before,
                host_gone: false,
                main,
                main_ended: false,
                phase: Phase::Running,
                subtrees: Subtrees::default(),
                tree: None,
                found: 0,
                reaped: 0,
            }
            .run();
        }
        Err((stage, errno)) => send(
            &control,
            Report::Failed {
                stage,
                errno: errno.raw_os_error(),
            },
        ),
    }
    sys::exit(0)
}

/// All that can be done before there is a job.
fn prepare(binding: Binding<'_>) -> Step<OwnedFd> {
    let start = || "preparing a supervisor".to_owned();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).or_refuse(Layer::Start, start)?;
    let children = sys::child_signals().or_refuse(Layer::Start, start)?;
    if let Some(confinement) = binding.confinement {
        confinement.bind_supervisor()?;
    }
    Ok(children)
}

/// The next order on the socket; nothing once the jail or its host is gone.
fn wait_for_job(channels: &Channels<'_>) -> Option<Job> {
    loop {
        let mut fds = [
            PollFd::new(channels.orders, PollFlags::IN),
            PollFd::new(channels.life, PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        let [_, life] = fds.map(|fd| !fd.revents().is_empty());
        if life {
            return None;
        }
        match socket::receive(channels.orders, RecvFlags::DONTWAIT) {
            Ok(Some((text, fds))) if text == START => return job_of(fds, false),
            Ok(Some((text, fds))) if text == LAST => return job_of(fds, true),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

fn job_of(fds: Vec<OwnedFd>, last: bool) -> Option<Job> {
    let mut fds = fds.into_iter();
    let (control, request) = (fds.next()?, fds.next()?);
    let standard = [fds.next()?, fds.next()?, fds.next()?];
    Some(Job {
        last,
        control,
        request,
        descriptors: Descriptors {
            standard,
            script: fds.next(),
        },
    })
}

fn read(request: &OwnedFd) -> Result<Request, (Stage, Errno)> {
    let bytes = socket::read_whole(request, LONGEST_REQUEST).map_err(|errno| (Stage::Setup, errno))?;
    message::decode(&bytes).ok_or((Stage::Setup, Errno::BADMSG))
}

/// How far the ending of the job has come.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// SIGTERM is sent; SIGKILL follows at this time.
    Asked {
        until: u64,
    },
    /// SIGKILL is sent in rounds, the next one at `next`, until `until`.
    Killing {
        next: u64,
        until: u64,
        rounds: u32,
        refused: u32,
    },
}

struct Supervisor<'a> {
    control: OwnedFd,
    life: &'a OwnedFd,
    children: OwnedFd,
    kills: &'a OomCounter,
    killed_before: u64,
    host_gone: bool,
    main: i32,
    main_ended: bool,
    phase: Phase,
    subtrees: Subtrees,
    tree: Option<Tree>,
    /// The most processes besides the main one that one walk found.
    found: u32,
    /// Processes besides the main one that died of a signal since the job was told to end. A group
    /// that is killed at once may be gone before a walk has counted it.
    reaped: u32,
}

impl Supervisor<'_> {
    fn run(&mut self) {
        loop {
            let survivors = if self.reap() { Some(0) } else { self.advance() };
            if let Some(survivors) = survivors {
                send(
                    &self.control,
                    Report::Gone {
                        ended: self.found.max(self.reaped),
                        survivors,
                    },
                );
                return;
            }
            self.wait();
        }
    }

    /// Reaps what has ended. Whether nothing is left.
    fn reap(&mut self) -> bool {
        let mut main: Option<(i32, Usage)> = None;
        let gone = loop {
            match sys::reap_any(false) {
                Reaped::Ended { pid, status, usage } if pid == self.main && !self.main_ended => {
                    self.main_ended = true;
                    main = Some((status, usage));
                }
                Reaped::Ended { status, .. } => {
                    if self.stopping() && libc::WIFSIGNALED(status) {
                        self.reaped += 1;
                    }
                }
                Reaped::NoneYet | Reaped::Stopped { .. } => break false,
                Reaped::NoChildren => break true,
            }
        };
        if let Some((status, usage)) = main {
            // One message, and one wake-up of the host, for the usual end. An end that was asked for
            // has numbers to tell, in a message of its own.
            send(
                &self.control,
                Report::MainEnded {
                    status,
                    usage,
                    gone: gone && !self.stopping(),
                    out_of_memory: self.kills.count() > self.killed_before,
                },
            );
        }
        gone
    }

    /// Does what is due. The number of survivors once there is nothing more to try.
    fn advance(&mut self) -> Option<u32> {
        let now = now_ms();
        match self.phase {
            Phase::Running => {
                self.advance_parts(now);
                None
            }
            Phase::Asked { until } => {
                if now >= until {
                    self.kill(now);
                }
                None
            }
            Phase::Killing { next, .. } if now < next => None,
            Phase::Killing {
                until, rounds, refused, ..
            } => {
                if rounds >= STOPPING_ROUND
                    && let Some(tree) = &mut self.tree
                {
                    tree.freeze();
                }
                let walk = self.kill_all();
                // A walk that sees nothing although `wait` knows of a child saw no `/proc` or not the processes of other
                // users, or a process whose last thread has yet to end: the time is for that.
                let refused = if walk.is_refused() { refused + 1 } else { 0 };
                if now >= until || refused > REFUSED_ROUNDS {
                    return self.survivors(walk.alive);
                }
                self.phase = Phase::Killing {
                    next: now + KILL_PAUSE_MS,
                    until,
                    rounds: rounds + 1,
                    refused,
                };
                None
            }
        }
    }

    /// The last count, after a last look.
    fn survivors(&mut self, alive: u32) -> Option<u32> {
        if self.reap() { None } else { Some(alive.max(1)) }
    }

    /// Waits for the next thing to happen or to be due, and takes in orders.
    fn wait(&mut self) {
        let due = match self.phase {
            Phase::Running => self.subtrees.due(),
            Phase::Asked { until } => Some(until),
            Phase::Killing { next, .. } => Some(next),
        };
        let timeout = due.map(|due| timespec(due.saturating_sub(now_ms())));
        let mut fds = [
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(self.life, PollFlags::IN),
        ];
        // Nobody is left to listen to once the host is gone, and its descriptors would be ready for ever.
        let listening = if self.host_gone { 1 } else { fds.len() };
        let Some(listened) = fds.get_mut(..listening) else {
            return;
        };
        let ready = match poll(listened, timeout.as_ref()) {
            Ok(_) => fds.map(|fd| !fd.revents().is_empty()),
            Err(_) => return,
        };
        if let [true, ..] = ready {
            let mut record = [0_u8; 256];
            while matches!(rustix::io::read(&self.children, &mut record), Ok(1..)) {}
        }
        match ready {
            [.., true] => self.lose_host(),
            [_, true, _] => self.obey(),
            _ => {}
        }
    }

    fn obey(&mut self) {
        let mut bytes = [0_u8; SIZE];
        match rustix::net::recv(&self.control, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.lose_host(),
            Ok((_, length)) => match bytes.get(..length).and_then(Order::decode) {
                Some(Order::Stop { grace_ms }) => self.ask(grace_ms),
                Some(part @ Order::EndPart { .. }) => self.subtrees.take(part),
                None => {}
            },
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.lose_host(),
        }
    }

    /// Does what is due for the part of the job that is being ended.
    fn advance_parts(&mut self, now: u64) {
        let main = if self.main_ended {
            None
        } else {
            Pid::from_raw(self.main)
        };
        if !self.subtrees.is_due(now) {
            return;
        }
        // Without memory for the list, nothing is known, and the order stays.
        self.tree();
        if let Some(tree) = &mut self.tree
            && let Some(report) = self.subtrees.advance(now, tree, main)
        {
            send(&self.control, report);
        }
    }

    fn lose_host(&mut self) {
        self.host_gone = true;
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.kill(now_ms());
        }
    }

    fn ask(&mut self, grace_ms: u64) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        if grace_ms == 0 {
            self.kill(now_ms());
            return;
        }
        let until = now_ms().saturating_add(grace_ms);
        self.phase = Phase::Asked { until };
        let in_time = || now_ms() < until;
        let walk = self.tree().map(|tree| tree.ask(in_time)).unwrap_or_default();
        self.count(walk);
    }

    fn kill(&mut self, now: u64) {
        self.phase = Phase::Killing {
            next: 0,
            until: now.saturating_add(KILL_BUDGET_MS),
            rounds: 0,
            refused: 0,
        };
    }

    fn kill_all(&mut self) -> Walk {
        if !self.main_ended
            && let Some(main) = Pid::from_raw(self.main)
        {
            // At once, before looking at anything; unreaped, its number is still its own.
            let _ = rustix::process::kill_process_group(main, Signal::KILL);
        }
        let walk = self.tree().map(Tree::kill).unwrap_or_default();
        self.count(walk);
        walk
    }

    fn tree(&mut self) -> Option<&mut Tree> {
        if self.tree.is_none() {
            self.tree = Tree::below(rustix::process::getpid(), self.main);
        }
        self.tree.as_mut().map(|tree| tree.of(None))
    }

    fn count(&mut self, walk: Walk) {
        self.found = self.found.max(walk.others);
    }

    fn stopping(&self) -> bool {
        !matches!(self.phase, Phase::Running)
    }
}

fn send(control: &OwnedFd, report: Report) {
    // Four messages in all fit into any socket; if the host is gone, nobody needs to know.
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::send(control.as_fd(), &report.encode(), flags);
}

pub(crate) fn timespec(ms: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ms % 1_000).unwrap_or(0) * 1_000_000,
    }
}
