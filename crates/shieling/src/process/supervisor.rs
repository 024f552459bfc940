//! The supervisor: a small process beside each job whose children all of the job's processes are,
//! sooner or later, so that it can end every one of them and know that it did.
//!
//! It is a *child subreaper*: a process of the job whose parent ends becomes its child, whatever
//! sessions, groups, double forks or `nohup` were used to get away. Hence `ECHILD` from `wait` is
//! the proof that nothing is left. It dies with its host, and takes the job with it.
//!
//! ```text
//! setup ─► start ─► running ──────────────► gone ─► exit
//!            │         │ stop, or host gone    ▲
//!            ▼         ▼                       │
//!          failed   SIGTERM ─ grace ─► SIGKILL, again and again, until ECHILD or the budget is over
//! ```
//!
//! All of this runs in the copy of a possibly multi-threaded process, so it must not allocate, lock
//! or panic: no `Vec`, no `format!`, no indexing.

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use rustix::time::{ClockId, clock_gettime};

use super::message::{Order, Report, SIZE, Stage};
use super::sys::{self, Pointers, Reaped, Usage};
use super::tree::{Tree, Walk};

/// How long SIGKILL is tried before the processes that remain are called survivors.
const KILL_BUDGET_MS: u64 = 1_000;
/// The time between two rounds of SIGKILL.
const KILL_PAUSE_MS: u64 = 2;
/// After so many rounds in which no living process could be signalled, more will not help.
const REFUSED_ROUNDS: u32 = 10;
/// From this round on everything is stopped first, since something forks faster than it is killed.
const STOPPING_ROUND: u32 = 3;

/// What a supervisor is made with.
pub(super) struct Job<'a> {
    pub(super) launch: Pointers<'a>,
    pub(super) directory: &'a CStr,
    pub(super) file_size: Option<u64>,
    pub(super) host: Pid,
    pub(super) control: BorrowedFd<'a>,
    /// The descriptors that the start needs, `control` among them, sorted.
    pub(super) keep: &'a [RawFd],
    /// `control` alone.
    pub(super) keep_running: &'a [RawFd],
}

/// Runs the job from its start to its last process. The entry of the copied process.
pub(super) fn supervise(job: &Job<'_>) -> ! {
    let started = start(job);
    let report = match started {
        Ok(pid) => Report::Started { pid },
        Err((stage, errno)) => Report::Failed {
            stage,
            errno: errno.raw_os_error(),
        },
    };
    send(job.control, report);
    if let Ok(main) = started {
        match Supervisor::new(job, main) {
            Some(mut supervisor) => supervisor.run(),
            // Without its descriptors it could not hear of anything: end what it can and say so by
            // going away without a word, which the host reports as lost.
            None => kill_group(main),
        }
    }
    sys::exit(0)
}

fn start(job: &Job<'_>) -> Result<i32, (Stage, Errno)> {
    let setup = |errno| (Stage::Setup, errno);
    sys::close_all_but(job.keep).map_err(setup)?;
    // Away from the terminal, so that a Ctrl-C for the host is not one for us.
    rustix::process::setsid().map_err(setup)?;
    sys::default_child_signal();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(setup)?;
    sys::rename(c"shieling-job");
    rustix::process::chdir(job.directory).map_err(|errno| (Stage::Directory, errno))?;
    set_limit(Resource::Core, 0).map_err(|errno| (Stage::Limit, errno))?;
    if let Some(bytes) = job.file_size {
        set_limit(Resource::Fsize, bytes).map_err(|errno| (Stage::Limit, errno))?;
    }
    let pid = job.launch.start().map_err(|errno| (Stage::Program, errno))?;
    // The job's own directory must not be kept busy by us, nor its pipes open.
    let _ = rustix::process::chdir(c"/");
    let _ = sys::close_all_but(job.keep_running);
    Ok(pid)
}

fn set_limit(resource: Resource, value: u64) -> Result<(), Errno> {
    rustix::process::setrlimit(
        resource,
        Rlimit {
            current: Some(value),
            maximum: Some(value),
        },
    )
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
    control: BorrowedFd<'a>,
    children: OwnedFd,
    /// A pidfd of the host. The control socket tells of its end too, unless a process that the
    /// host forked without exec still holds a copy of the other end.
    host: Option<OwnedFd>,
    host_gone: bool,
    main: i32,
    main_ended: bool,
    phase: Phase,
    tree: Option<Tree>,
    /// The most processes besides the main one that one walk found.
    found: u32,
    /// Processes besides the main one that died of a signal since the job was told to end. A group
    /// that is killed at once may be gone before a walk has counted it.
    reaped: u32,
}

impl<'a> Supervisor<'a> {
    fn new(job: &Job<'a>, main: i32) -> Option<Self> {
        let children = sys::child_signals().ok()?;
        let host = rustix::process::pidfd_open(job.host, PidfdFlags::empty()).ok();
        // If it ended before, its number may be somebody else's now.
        let host_gone = rustix::process::getppid() != Some(job.host);
        Some(Self {
            control: job.control,
            children,
            host,
            host_gone,
            main,
            main_ended: false,
            phase: Phase::Running,
            tree: None,
            found: 0,
            reaped: 0,
        })
    }

    fn run(&mut self) {
        if self.host_gone {
            self.kill(now_ms());
        }
        loop {
            let gone = self.reap();
            if gone {
                send(
                    self.control,
                    Report::Gone {
                        ended: self.ended(),
                        survivors: 0,
                    },
                );
                return;
            }
            if let Some(survivors) = self.advance() {
                send(
                    self.control,
                    Report::Gone {
                        ended: self.ended(),
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
            match sys::reap_any() {
                Reaped::Ended { pid, status, usage } if pid == self.main && !self.main_ended => {
                    self.main_ended = true;
                    main = Some((status, usage));
                }
                Reaped::Ended { status, .. } => {
                    if self.stopping() && libc::WIFSIGNALED(status) {
                        self.reaped += 1;
                    }
                }
                Reaped::NoneYet => break false,
                Reaped::NoChildren => break true,
            }
        };
        if let Some((status, usage)) = main {
            // One message, and one wake-up of the host, for the usual end. An end that was asked for
            // has numbers to tell, in a message of its own.
            send(
                self.control,
                Report::MainEnded {
                    status,
                    usage,
                    gone: gone && !self.stopping(),
                },
            );
        }
        gone
    }

    /// Does what is due. The number of survivors once there is nothing more to try.
    fn advance(&mut self) -> Option<u32> {
        let now = now_ms();
        match self.phase {
            Phase::Running => None,
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
                // A walk that sees nothing although `wait` knows of a child saw no `/proc`, or not
                // the processes of other users.
                let stuck = walk.alive == walk.refused;
                let refused = if stuck { refused + 1 } else { 0 };
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
            Phase::Running => None,
            Phase::Asked { until } => Some(until),
            Phase::Killing { next, .. } => Some(next),
        };
        let timeout = due.map(|due| timespec(due.saturating_sub(now_ms())));
        let children = PollFd::new(&self.children, PollFlags::IN);
        let mut drain = false;
        let mut order = false;
        let mut host_gone = false;
        if self.host_gone {
            // Nobody is left to listen to, and their descriptors would be ready for ever.
            let mut fds = [children];
            let _ = poll(&mut fds, timeout.as_ref());
            drain = true;
        } else {
            let control = PollFd::from_borrowed_fd(self.control, PollFlags::IN);
            let host = match &self.host {
                Some(host) => PollFd::new(host, PollFlags::IN),
                None => PollFd::from_borrowed_fd(self.control, PollFlags::IN),
            };
            let mut fds = [children, control, host];
            if poll(&mut fds, timeout.as_ref()).is_ok() {
                let [children, control, host] = &fds;
                drain = !children.revents().is_empty();
                order = !control.revents().is_empty();
                host_gone = self.host.is_some() && !host.revents().is_empty();
            }
        }
        if drain {
            let mut record = [0_u8; 256];
            while matches!(rustix::io::read(&self.children, &mut record), Ok(1..)) {}
        }
        if host_gone {
            self.lose_host();
        } else if order {
            self.obey();
        }
    }

    fn obey(&mut self) {
        let mut bytes = [0_u8; SIZE];
        match rustix::net::recv(self.control, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.lose_host(),
            Ok((_, length)) => {
                if let Some(Order::Stop { grace_ms }) = bytes.get(..length).and_then(Order::decode) {
                    self.ask(grace_ms);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.lose_host(),
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
        self.phase = Phase::Asked {
            until: now_ms().saturating_add(grace_ms),
        };
        let walk = self.tree().map(Tree::ask).unwrap_or_default();
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
        if !self.main_ended {
            // At once, before looking at anything; unreaped, its number is still its own.
            kill_group(self.main);
        }
        let walk = self.tree().map(Tree::kill).unwrap_or_default();
        self.count(walk);
        walk
    }

    fn tree(&mut self) -> Option<&mut Tree> {
        if self.tree.is_none() {
            self.tree = Tree::below(rustix::process::getpid(), self.main);
        }
        self.tree.as_mut()
    }

    fn count(&mut self, walk: Walk) {
        self.found = self.found.max(walk.others);
    }

    fn ended(&self) -> u32 {
        self.found.max(self.reaped)
    }

    fn stopping(&self) -> bool {
        !matches!(self.phase, Phase::Running)
    }
}

fn kill_group(main: i32) {
    if let Some(main) = Pid::from_raw(main) {
        let _ = rustix::process::kill_process_group(main, Signal::KILL);
    }
}

fn send(control: BorrowedFd<'_>, report: Report) {
    // Four messages in all fit into any socket; if the host is gone, nobody needs to know.
    let _ = rustix::net::send(control, &report.encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Milliseconds of the monotonic clock.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}

fn timespec(ms: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ms % 1_000).unwrap_or(0) * 1_000_000,
    }
}
