//! The host's side of a jail: gives it its plan, hears what holds, and has it start one command after
//! another.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::de::DeserializeOwned;
use shieling_jail::message::{
    self, Answer, GONE, LAST, LISTEN, LONGEST_ANSWER, Numbered, NumberedEndpoints, Ready, SOCKETS, SOCKETS_MOST, START,
    UPDATE, Update, Updated,
};
use shieling_jail::plan::{Endpoint, Isolation, Request};
use tokio::io::unix::AsyncFd;

use super::counts::Counts;
use super::error::{JailError, SpawnError};
use super::handle::Process;
use super::job::{self, Pipes, Supervised};
use super::memory::{self, above_standard};
use super::plan::{Plan, Streams};
use super::shell::{self, Shell};
use super::{pipes, socket, sys, zygote};

/// How long it may take to build a jail before it is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long its last process may take to go once it was told to.
const CLOSING: Duration = Duration::from_secs(5);

/// A running jail, in which commands can be started. Dropping it ends everything in it.
pub struct Jail {
    control: AsyncFd<OwnedFd>,
    /// Where it is told what to hide and protect in addition; one at a time, in order.
    updates: tokio::sync::Mutex<Updates>,
    /// The process that is gone once all are.
    monitor: Arc<OwnedFd>,
    isolation: Isolation,
    ready: Ready,
    /// Its root, if it has a view of files of its own.
    root: Option<OwnedFd>,
    /// The sockets that its plan has bound in its network, in order, until they are taken.
    sockets: Mutex<Vec<OwnedFd>>,
    counts: Arc<Counts>,
    /// Whether nothing can start in it any more: it was told to end, or its last command was ordered.
    last: AtomicBool,
}

/// A jail that was ordered and has not yet said whether it holds. Dropping it ends it.
pub(crate) struct Ordered {
    control: OwnedFd,
    updates: OwnedFd,
    isolation: Isolation,
    /// How many sockets its plan binds.
    sockets: usize,
}

/// What follows a command in its jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Other commands may.
    Others,
    /// Nothing: the jail ends once no process of the command is left.
    Nothing,
}

/// A command that was ordered, and our ends of what it was given.
pub(crate) struct Sent {
    way: OwnedFd,
    pipes: Pipes,
    input: Option<OwnedFd>,
    next: Next,
    /// When it was ordered. Its time counts from here on: it may begin before this host hears that its jail is ready.
    ordered: Instant,
}

/// An order to start a program, with what goes with it.
struct Order {
    request: OwnedFd,
    script: Option<OwnedFd>,
    standard: [OwnedFd; 3],
    theirs: OwnedFd,
}

/// The way of updates.
struct Updates {
    socket: AsyncFd<OwnedFd>,
    /// The number of the last one.
    sent: u64,
}

impl Jail {
    /// One that confines nothing: commands run on this host, each with its supervisor.
    ///
    /// # Errors
    /// As [`Self::start`].
    /// # Cancel safety
    /// As [`Self::start`].
    pub async fn unconfined() -> Result<Self, JailError> {
        Self::order_on_this_host(false, false)?.ready().await
    }

    /// As [`Self::unconfined`], ordered. With `once`, nothing is kept ready for a second command; with `killed_first`,
    /// commands are killed before what looks after them when memory runs out.
    pub(crate) fn order_on_this_host(once: bool, killed_first: bool) -> Result<Ordered, JailError> {
        let plan = shieling_jail::plan::Plan {
            isolation: Isolation::None,
            network: shieling_jail::plan::Network::Host,
            gateway: None,
            hostname: String::new(),
            view: Vec::new(),
            foreign: Vec::new(),
            executable: None,
            limits: shieling_jail::plan::Limits::default(),
            probes: Vec::new(),
            once,
            killed_first,
        };
        Self::order(&plan)
    }

    /// Starts one. Returns once it holds what the plan says, as seen from inside.
    ///
    /// # Errors
    /// [`JailError`]; nothing is left running.
    /// # Cancel safety
    /// Dropping the future ends what was started.
    pub async fn start(plan: &shieling_jail::plan::Plan) -> Result<Self, JailError> {
        Self::order(plan)?.ready().await
    }

    /// Orders one. Needs no runtime.
    ///
    /// # Errors
    /// [`JailError::Program`]; nothing is left running.
    pub(crate) fn order(plan: &shieling_jail::plan::Plan) -> Result<Ordered, JailError> {
        let failed = |what| move |source: io::Error| JailError::Program { what, source };
        let described = memory::file("plan", &message::encode(plan)).map_err(failed("keeping its plan"))?;
        let (ours, theirs) = socket_pair().map_err(failed("making its control socket"))?;
        let (updates, for_updates) = socket_pair().map_err(failed("making its updates socket"))?;
        zygote::order(&[theirs.as_fd(), for_updates.as_fd(), described.as_fd()]).map_err(failed("its start"))?;
        Ok(Ordered {
            control: ours,
            updates,
            isolation: plan.isolation,
            sockets: plan.gateway.as_ref().map_or(0, |gateway| gateway.sockets.len()),
        })
    }

    /// What holds in it, read back or probed from inside.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Its root, if it has a view of files of its own: what stands beneath it is what commands see.
    pub(crate) fn root(&self) -> Option<&OwnedFd> {
        self.root.as_ref()
    }

    /// The sockets that its plan has bound in its network, in the plan's order; once.
    #[cfg_attr(
        not(feature = "gateway"),
        expect(dead_code, reason = "only a gateway has sockets in a jail")
    )]
    pub(crate) fn take_sockets(&self) -> Vec<OwnedFd> {
        std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What its limits do.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// The number of the process that is gone once all are.
    pub(crate) fn monitor(&self) -> i32 {
        self.ready.monitor
    }

    /// Whether it can still start commands.
    pub fn is_alive(&self) -> bool {
        if self.last.load(Ordering::Acquire) {
            return false;
        }
        let mut fds = [rustix::event::PollFd::new(&*self.monitor, rustix::event::PollFlags::IN)];
        matches!(
            rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default())),
            Ok(0)
        )
    }

    /// Whether nothing runs in it but shells that wait for their next command: each without children and with one thread.
    /// What cannot be seen may run.
    pub(crate) fn is_idle(&self) -> bool {
        super::descent::is_idle(self.ready.monitor).unwrap_or(false)
    }

    /// Starts `plan` in it. Returns once its program runs.
    ///
    /// The program gets these streams, a session of its own, default signals, no core dumps, and no
    /// other descriptor.
    ///
    /// # Errors
    /// [`SpawnError`] names the program and the cause; nothing is left running.
    /// # Cancel safety
    /// Dropping the future kills what may have been started.
    pub async fn spawn(&self, plan: &Plan, streams: Streams) -> Result<Process, SpawnError> {
        self.spawn_before(Next::Others, plan, streams).await
    }

    /// As [`Self::spawn`]. If nothing follows, [`Self::is_alive`] is false from here on.
    pub(crate) async fn spawn_before(&self, next: Next, plan: &Plan, streams: Streams) -> Result<Process, SpawnError> {
        let (order, sent) = Order::of(plan, streams, next)?;
        self.send(next, &order, plan).await?;
        drop(order);
        self.join(plan, sent).await
    }

    /// The process of a command that was ordered, once its program runs.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    /// # Cancel safety
    /// As [`Self::spawn`].
    pub(crate) async fn join(&self, plan: &Plan, sent: Sent) -> Result<Process, SpawnError> {
        if sent.next == Next::Nothing {
            self.last.store(true, Ordering::Release);
        }
        // Elsewhere its number means nothing on this host.
        let known = self.isolation == Isolation::None;
        let way = (sent.way, Arc::clone(&self.monitor));
        let process = job::started(plan, way, sent.pipes, known, sent.ordered).await?;
        match sent.input {
            Some(input) => process.with_input_pipe(input).map_err(failed("watching a pipe")),
            None => Ok(process),
        }
    }

    /// Starts a bash that stays, in the directory and with the variables of `plan`, whose program it is.
    ///
    /// # Errors
    /// As [`Self::spawn`], and [`SpawnError::Session`] if this bash cannot be spoken to.
    /// # Cancel safety
    /// Dropping the future kills what may have been started.
    pub async fn spawn_shell(&self, plan: Plan) -> Result<Shell, SpawnError> {
        let plan = plan.of_a_shell();
        let (stdout_read, stdout) = pipes::pipe().map_err(failed("making a pipe"))?;
        let (stderr_read, stderr) = pipes::pipe().map_err(failed("making a pipe"))?;
        let (ours, theirs) = socket_pair().map_err(failed("making a session's socket"))?;
        let (order, way) = Order::new(&plan, [theirs, stdout, stderr], false)?;
        self.send(Next::Others, &order, &plan).await?;
        drop((order, stdout_read));
        let (supervised, _) = Supervised::started(&plan, (way, Arc::clone(&self.monitor))).await?;
        Shell::greet(supervised, ours, stderr_read).await
    }

    /// Has more hidden and protected in it, before the next command is started. Gives what was to be
    /// hidden and was not there any more, or was another file.
    ///
    /// # Errors
    /// [`JailError`]: what it was to hide may be seen, so nothing should be started.
    /// # Cancel safety
    /// What was asked may or may not be done if the future is dropped; asking again does no harm.
    pub async fn update(&self, update: &Update) -> Result<Vec<PathBuf>, JailError> {
        let numbered = |number| -> Vec<u8> { message::encode::<Numbered>(&(number, update.clone())) };
        self.ordered(UPDATE, numbered).await.map(|(missed, _)| missed)
    }

    /// Binds more sockets in its network, and gives them in this order. Only in a jail whose plan has a gateway.
    ///
    /// # Errors
    /// [`JailError`]: one cannot be bound, and none is.
    /// # Cancel safety
    /// If the future is dropped, sockets that were made are closed.
    #[cfg_attr(
        not(feature = "gateway"),
        expect(dead_code, reason = "only a gateway has sockets in a jail")
    )]
    pub(crate) async fn listen(&self, endpoints: &[Endpoint]) -> Result<Vec<OwnedFd>, JailError> {
        let mut sockets = Vec::new();
        for endpoints in endpoints.chunks(SOCKETS_MOST) {
            let numbered = |number| message::encode::<NumberedEndpoints>(&(number, endpoints.to_vec()));
            let (_, bound) = self.ordered(LISTEN, numbered).await?;
            if bound.len() != endpoints.len() {
                return Err(JailError::Silent);
            }
            sockets.extend(bound);
        }
        Ok(sockets)
    }

    /// Gives an order on the updates socket, and what came of it.
    async fn ordered(
        &self,
        word: &[u8],
        numbered: impl FnOnce(u64) -> Vec<u8>,
    ) -> Result<(Vec<PathBuf>, Vec<OwnedFd>), JailError> {
        let failed = |what| move |source: io::Error| JailError::Program { what, source };
        let mut updates = self.updates.lock().await;
        updates.sent += 1;
        let number = updates.sent;
        let file = memory::file("update", &numbered(number)).map_err(failed("keeping an update in memory"))?;
        socket::send(updates.socket.get_ref(), word, &[file.as_fd()]).map_err(failed("sending an update"))?;
        let answer = async {
            loop {
                match hear_with::<Updated>(&updates.socket).await? {
                    ((answered, result), sockets) if answered == number => break Some((result, sockets)),
                    // To a call that did not wait for it.
                    _ => {}
                }
            }
        };
        match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Some((Ok(missed), sockets))) => Ok((missed.paths, sockets)),
            Ok(Some((Err(refusal), _))) => Err(JailError::Refused(refusal)),
            Ok(None) | Err(_) => Err(JailError::Silent),
        }
    }

    async fn send(&self, next: Next, order: &Order, plan: &Plan) -> Result<(), SpawnError> {
        loop {
            match order.send(self.control.get_ref(), next) {
                Ok(()) => return Ok(()),
                // More orders than it takes at once: it takes them within microseconds.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Err(_) => return Err(lost(plan)),
            }
        }
    }

    /// Ends everything in it, whoever else holds it, and waits until all of it is gone. Whether that was seen.
    ///
    /// # Cancel safety
    /// Everything ends also if the future is dropped; only nobody waits for it.
    pub async fn close(&self) -> bool {
        self.let_go();
        let Ok(monitor) = self.monitor.try_clone().and_then(sys::watch) else {
            return false;
        };
        let gone = async {
            tokio::select! {
                biased;
                () = self.told_gone() => true,
                // It was ended before it could say so, or is itself the jail.
                ready = monitor.readable() => ready.is_ok(),
            }
        };
        tokio::time::timeout(CLOSING, gone).await.unwrap_or(false)
    }

    /// Until the monitor says that all is gone, if it does.
    async fn told_gone(&self) {
        let updates = self.updates.lock().await;
        let mut bytes = [0; 64];
        while let Ok(mut ready) = updates.socket.readable().await {
            match socket::receive(updates.socket.get_ref(), &mut bytes) {
                Ok((length, _)) if bytes.get(..length) == Some(GONE) => return,
                Ok((0, _)) => break,
                // An answer that nobody waited for.
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(_) => break,
            }
        }
        std::future::pending().await
    }

    /// As [`Self::close`], where nothing can be awaited. Waits at most `budget`; a jail ends within milliseconds.
    pub(crate) fn close_blocking(&self, budget: Duration) -> bool {
        self.let_go();
        let deadline = Instant::now() + budget;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::event::Timespec::try_from(left).unwrap_or_default();
            let mut fds = [rustix::event::PollFd::new(&*self.monitor, rustix::event::PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&left)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn let_go(&self) {
        // Nothing starts in it any more, although its monitor may take a moment to exit after it said that all is gone.
        self.last.store(true, Ordering::Release);
        // Not by closing alone: a process that this host forked may hold a copy of the socket.
        let _ = rustix::net::shutdown(self.control.get_ref(), rustix::net::Shutdown::Both);
        // Somebody may have stopped it.
        let _ = rustix::process::pidfd_send_signal(&*self.monitor, Signal::CONT);
    }
}

impl Ordered {
    /// Orders a command, which starts as soon as the jail holds, if it holds. [`Jail::join`] gives its process.
    ///
    /// # Errors
    /// As [`Jail::spawn`].
    pub(crate) fn send(&self, next: Next, plan: &Plan, streams: Streams) -> Result<Sent, SpawnError> {
        let (order, sent) = Order::of(plan, streams, next)?;
        order.send(&self.control, next).map_err(|_| lost(plan))?;
        Ok(sent)
    }

    /// Waits until it holds what its plan says, as seen from inside.
    ///
    /// # Errors
    /// [`JailError`]; nothing is left running, and nothing that was ordered has started.
    /// # Cancel safety
    /// Dropping the future ends what was started.
    pub(crate) async fn ready(self) -> Result<Jail, JailError> {
        let failed = |what| move |source: io::Error| JailError::Program { what, source };
        let Self {
            control,
            updates,
            isolation,
            sockets: expected,
        } = self;
        let control = sys::watch(control).map_err(failed("watching its control socket"))?;
        let updates = sys::watch(updates).map_err(failed("watching its updates socket"))?;
        let mut sockets = Vec::new();
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, hear_answer(&control, &mut sockets)).await;
        match answer {
            Ok(Some((Answer::Ready(ready), given))) => {
                if sockets.len() != expected {
                    return Err(JailError::Silent);
                }
                let mut given = given.into_iter();
                let root = (isolation == Isolation::Full).then(|| given.next()).flatten();
                if root.is_none() && isolation == Isolation::Full {
                    return Err(JailError::Silent);
                }
                let counts = Arc::new(Counts::new(&ready, given));
                let monitor = Pid::from_raw(ready.monitor).ok_or(JailError::Silent)?;
                let monitor = pinned(monitor).map_err(failed("watching it"))?;
                Ok(Jail {
                    control,
                    updates: tokio::sync::Mutex::new(Updates {
                        socket: updates,
                        sent: 0,
                    }),
                    monitor: Arc::new(monitor),
                    isolation,
                    ready,
                    root,
                    sockets: Mutex::new(sockets),
                    counts,
                    last: AtomicBool::new(false),
                })
            }
            Ok(Some((Answer::Refused(refusal), _))) => Err(JailError::Refused(refusal)),
            Ok(None) | Err(_) => Err(JailError::Silent),
        }
    }
}

impl fmt::Debug for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordered").finish_non_exhaustive()
    }
}

impl Order {
    /// Of a command with these streams.
    fn of(plan: &Plan, streams: Streams, next: Next) -> Result<(Self, Sent), SpawnError> {
        let pipe = || pipes::pipe().map_err(failed("making a pipe"));
        let (stdout_read, stdout) = pipe()?;
        let (stderr_read, stderr) = pipe()?;
        let mut input = None;
        let (standard, terminal) = match streams {
            Streams::Output => {
                let null = null().map_err(failed("opening /dev/null"))?;
                ([null, stdout, stderr], false)
            }
            Streams::Given(stdin) => {
                let stdin = above_standard(stdin).map_err(failed("copying a descriptor"))?;
                ([stdin, stdout, stderr], false)
            }
            Streams::Input => {
                let (read, write) = pipes::input().map_err(failed("making a pipe"))?;
                input = Some(write);
                ([read, stdout, stderr], false)
            }
            Streams::Terminal(terminal) => {
                let copy = || {
                    terminal
                        .try_clone()
                        .and_then(above_standard)
                        .map_err(failed("copying a terminal's descriptor"))
                };
                ([copy()?, copy()?, copy()?], true)
            }
        };
        let (order, way) = Self::new(plan, standard, terminal)?;
        let pipes = Pipes {
            stdout: stdout_read,
            stderr: stderr_read,
        };
        Ok((
            order,
            Sent {
                way,
                pipes,
                input,
                next,
                ordered: Instant::now(),
            },
        ))
    }

    /// Of a program with these streams, and the way to its supervisor.
    fn new(plan: &Plan, standard: [OwnedFd; 3], terminal: bool) -> Result<(Self, OwnedFd), SpawnError> {
        let script = match &plan.script {
            _ if plan.builtin => Some(shell::builtin()),
            Some(text) => Some(memory::file("script", text.as_bytes())),
            None => None,
        };
        let script = script.transpose().map_err(failed("keeping the script in memory"))?;
        let request = Request {
            terminal,
            ..plan.request()?
        };
        let request =
            memory::file("request", &message::encode(&request)).map_err(failed("keeping the request in memory"))?;
        let (ours, theirs) = socket_pair().map_err(failed("making a control socket"))?;
        let order = Self {
            request,
            script,
            standard,
            theirs,
        };
        Ok((order, ours))
    }

    fn send(&self, control: &OwnedFd, next: Next) -> io::Result<()> {
        let mut fds = vec![self.theirs.as_fd(), self.request.as_fd()];
        fds.extend(self.standard.iter().map(OwnedFd::as_fd));
        fds.extend(self.script.as_ref().map(OwnedFd::as_fd));
        let word = match next {
            Next::Others => START,
            Next::Nothing => LAST,
        };
        socket::send(control, word, &fds)
    }
}

fn lost(plan: &Plan) -> SpawnError {
    SpawnError::Lost {
        program: plan.program().to_owned(),
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl fmt::Debug for Jail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jail")
            .field("ready", &self.ready)
            .finish_non_exhaustive()
    }
}

/// One message of this kind, with the descriptors that came with it; nothing once the other side is gone.
async fn hear_with<T: DeserializeOwned>(control: &AsyncFd<OwnedFd>) -> Option<(T, Vec<OwnedFd>)> {
    let (bytes, descriptors) = hear(control).await?;
    Some((message::decode(&bytes)?, descriptors))
}

/// The answer of a jail to its plan, and before it the sockets of its network.
async fn hear_answer(control: &AsyncFd<OwnedFd>, sockets: &mut Vec<OwnedFd>) -> Option<(Answer, Vec<OwnedFd>)> {
    loop {
        let (bytes, descriptors) = hear(control).await?;
        if bytes != SOCKETS {
            return Some((message::decode(&bytes)?, descriptors));
        }
        sockets.extend(descriptors);
    }
}

/// The bytes of one message, with its descriptors.
async fn hear(control: &AsyncFd<OwnedFd>) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST_ANSWER];
    loop {
        let mut ready = control.readable().await.ok()?;
        match socket::receive(control.get_ref(), &mut bytes) {
            Ok((length, descriptors)) => {
                bytes.truncate(length);
                return Some((bytes, descriptors));
            }
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// A descriptor that becomes readable when the monitor ends.
///
/// The monitor may have ended between its answer and this call. A command that was ordered with the jail has then begun:
/// the jail has ended, which an error would call not started.
fn pinned(monitor: Pid) -> io::Result<OwnedFd> {
    match rustix::process::pidfd_open(monitor, PidfdFlags::empty()) {
        Err(Errno::SRCH) => Ok(rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC)?),
        pinned => Ok(pinned?),
    }
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> SpawnError {
    move |source| SpawnError::Supervisor { what, source }
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socket::pair()?;
    Ok((ours, above_standard(theirs)?))
}

fn null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        c"/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read what a command wrote, and /proc")]
mod tests {
    use std::fs;

    use super::*;

    /// The parent of a process, and its state; nothing if it is gone.
    fn parent_and_state(pid: i32) -> Option<(i32, char)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = fields.next()?.chars().next()?;
        Some((fields.next()?.parse().ok()?, state))
    }

    #[tokio::test]
    async fn a_monitor_that_ended_before_its_answer_was_read_leaves_an_ended_jail_and_no_failed_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let began = directory.path().join("began");
        let text = format!("echo $PPID > {0}.new; mv {0}.new {0}; exec sleep 1000", began.display());
        let plan = Plan::new("/bin/bash", ["bash", "-c", &text], directory.path())
            .with_variables([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
        let ordered = Jail::order_on_this_host(false, false).expect("it is ordered");
        let sent = ordered.send(Next::Others, &plan, Streams::Output).expect("it is sent");
        while !began.exists() {
            tokio::task::yield_now().await;
        }
        let supervisor = fs::read_to_string(&began).expect("written").trim().parse();
        let (monitor, _) = parent_and_state(supervisor.expect("a number")).expect("it runs");
        let pid = Pid::from_raw(monitor).expect("a process");
        rustix::process::kill_process(pid, Signal::KILL).expect("it is ours");
        while parent_and_state(monitor).is_some() {
            tokio::task::yield_now().await;
        }
        let jail = ordered.ready().await.expect("it has answered before it ended");
        assert!(!jail.is_alive());
        // It had begun: whether its end is seen or lost, it is not told as a failed start.
        let started = jail.join(&plan, sent).await;
        assert!(matches!(started, Ok(_) | Err(SpawnError::Lost { .. })), "{started:?}");
        drop(started);
        assert!(jail.close().await, "nothing is left to wait for");
    }
}
