//! Receives all messages of a shell and its supervisor, on behalf of every listener: the command that runs, an earlier
//! command that left processes behind, or a caller that waits to start one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use shieling_bash::message::{BREAK_OFF, BrokenOff, KEY, Kind, LONGEST_PIECE, REPORT, Report as Told, given_up};
use shieling_jail::message::{Order, Report};
use tokio::io::unix::AsyncFd;

use super::state::State;
use crate::process::event::{Control as _, Ended, MainEnd};
use crate::process::job::{Supervised, main_end};
use crate::process::{socket, sys};

/// The longest variables of a shell that are taken, in bytes: the kernel passes no more to a program.
const LONGEST_VARIABLES: usize = 8 * 1024 * 1024;
/// Between SIGTERM and SIGKILL for what a shell leaves behind when it ends.
const LEFT_BEHIND_GRACE: Duration = Duration::from_millis(100);

/// How many starts of commands are remembered.
const STARTS: usize = 1_024;

/// A command that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) number: u64,
    pub(super) status: i32,
    /// Whether it was left because the shell was told to.
    pub(super) broken_off: BrokenOff,
}

/// The channel to a shell and its supervisor, with what has been received over it.
pub(super) struct ShellChannel {
    socket: AsyncFd<OwnedFd>,
    key: [u8; KEY],
    supervised: Supervised,
    /// As it was told; read only when somebody asks.
    cwd: Vec<u8>,
    deleted: bool,
    variables: Vec<u8>,
    /// The command that runs, or ran last.
    pub(super) number: u64,
    /// When the last commands were sent, by their numbers, in milliseconds since boot.
    starts: BTreeMap<u64, u64>,
    /// The last command that the shell was told not to begin.
    given_up: u64,
    /// The last command that is over, and how.
    pub(super) done: Option<Done>,
    orders: u64,
    /// Orders that are to be done before the next command begins, and that nobody else waits for.
    abandoned: BTreeSet<u64>,
    /// When the command began that is being broken off while nobody waits for it.
    since: Option<u64>,
    /// The ends of the pipes of the command that runs: bash itself would die of a pipe that nobody
    /// reads, when its call is given up.
    pipes: Option<[OwnedFd; 2]>,
    /// What orders have ended.
    parts: BTreeMap<u64, Ended>,
    pub(super) main_end: Option<MainEnd>,
    pub(super) gone: Option<Ended>,
    pub(super) lost: bool,
    deaf: bool,
    /// Who is to look again when something was heard.
    waiting: BTreeMap<u64, Waker>,
}

impl ShellChannel {
    pub(super) fn new(supervised: Supervised, socket: OwnedFd, key: [u8; KEY]) -> io::Result<Self> {
        Ok(Self {
            socket: sys::watch(socket)?,
            key,
            supervised,
            cwd: Vec::new(),
            deleted: false,
            variables: Vec::new(),
            number: 0,
            starts: BTreeMap::new(),
            given_up: 0,
            done: None,
            orders: 0,
            abandoned: BTreeSet::new(),
            since: None,
            pipes: None,
            parts: BTreeMap::new(),
            main_end: None,
            gone: None,
            lost: false,
            deaf: false,
            waiting: BTreeMap::new(),
        })
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        self.socket.get_ref()
    }

    /// The number of the next command.
    pub(super) fn next(&self) -> u64 {
        self.number + 1
    }

    /// A command was sent.
    pub(super) fn begin(&mut self, (number, since): (u64, u64), pipes: [OwnedFd; 2]) {
        self.number = number;
        self.starts.insert(number, since);
        if self.starts.len() > STARTS {
            self.starts.pop_first();
        }
        self.pipes = Some(pipes);
        self.since = None;
    }

    /// When the command after this one began, in milliseconds since boot: what starts before that is still of this one.
    /// `u64::MAX` if there is none yet; nothing if it was too long ago to be remembered.
    pub(super) fn next_start(&self, number: u64) -> Option<u64> {
        match number == self.number {
            true => Some(u64::MAX),
            false => self.starts.get(&(number + 1)).copied(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.main_end.is_some() || self.lost
    }

    pub(super) fn state(&self) -> State {
        let (mut variables, mut omitted) = (BTreeMap::new(), Vec::new());
        for each in self.variables.split(|&byte| byte == 0) {
            let Some(at) = each.iter().position(|&byte| byte == b'=') else {
                continue;
            };
            let (name, value) = (&each[..at], &each[at + 1..]);
            // Another value would be worse than none.
            match (std::str::from_utf8(name), std::str::from_utf8(value)) {
                (Ok(name), Ok(value)) => drop(variables.insert(name.to_owned(), value.to_owned())),
                _ => omitted.push(String::from_utf8_lossy(name).into_owned()),
            }
        }
        State {
            cwd: PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&self.cwd)),
            deleted: self.deleted,
            variables,
            omitted,
            debug_trap_removed: self
                .done
                .is_some_and(|done| matches!(done.broken_off, BrokenOff::DebugTrapRemoved { .. })),
        }
    }

    /// Ready once no command runs: `true`, or `false` if the shell has ended.
    pub(super) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.listen(0, cx);
        if self.has_ended() {
            return Poll::Ready(false);
        }
        let parts = &mut self.parts;
        self.abandoned.retain(|order| parts.remove(order).is_none());
        if !self.abandoned.is_empty() || self.done.is_none_or(|done| done.number != self.number) {
            return Poll::Pending;
        }
        // What it was starting when it was told to leave may have come after all had been ended.
        if let Some(since) = self.since.take() {
            let order = self.end_part(false, (since, u64::MAX), Duration::ZERO);
            self.abandoned.insert(order);
            return Poll::Pending;
        }
        Poll::Ready(true)
    }

    /// Tells the shell not to begin a command, if it has not. To be called before the order that breaks the command
    /// off: the signal is lost if the command has not begun, and nobody may be there to send it again.
    pub(super) fn give_up(&mut self, number: u64) {
        if self.given_up < number {
            self.given_up = number;
            // The socket is empty but for this command at most: if it cannot be told, the shell has ended.
            let _ = socket::send(self.socket(), &given_up(number), &[]);
        }
    }

    /// Orders that what a command started be ended. Gives the order's number.
    pub(super) fn end_part(&mut self, break_off: bool, (since_ms, until_ms): (u64, u64), grace: Duration) -> u64 {
        self.orders += 1;
        self.supervised.order(Order::EndPart {
            number: self.orders,
            signal: if break_off { BREAK_OFF } else { 0 },
            since_ms,
            until_ms,
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        });
        self.orders
    }

    /// What an order has ended, once it has.
    pub(super) fn part(&mut self, order: u64) -> Option<Ended> {
        self.parts.remove(&order)
    }

    /// Nobody waits for this order. The next command begins when it is done.
    pub(super) fn abandon(&mut self, order: u64) {
        self.abandoned.insert(order);
    }

    /// Nobody waits for the command that runs, which began at this time and is being broken off.
    pub(super) fn abandon_command(&mut self, since: u64) {
        self.since = Some(since);
    }

    /// Tells the shell once more to leave a command that nobody waits for, if it was told and has not:
    /// bash forgets at the end of a trap what it was told in it.
    pub(super) fn insist(&mut self) {
        if let Some(since) = self.since.filter(|_| self.abandoned.is_empty()) {
            let order = self.end_part(true, (since, u64::MAX), Duration::ZERO);
            self.abandoned.insert(order);
        }
    }

    /// Ends the shell itself.
    pub(super) fn kill(&mut self) {
        self.supervised.stop(Duration::ZERO);
    }

    /// Takes in all that was said, and has `who` looked at again when there is more.
    pub(super) fn listen(&mut self, who: u64, cx: &mut Context<'_>) {
        let mut heard = false;
        while !self.deaf && self.hear_shell(cx) {
            heard = true;
        }
        while !self.lost && self.gone.is_none() && self.hear_supervisor(cx) {
            heard = true;
        }
        if heard {
            self.wake(who);
        }
        let old = self.waiting.insert(who, cx.waker().clone());
        drop(old);
    }

    /// `who` listens no more; somebody else has to.
    pub(super) fn leave(&mut self, who: u64) {
        if self.waiting.remove(&who).is_some() {
            self.wake(who);
        }
    }

    fn wake(&mut self, but: u64) {
        for (_, waker) in self.waiting.iter().filter(|(who, _)| **who != but) {
            waker.wake_by_ref();
        }
    }

    /// One message of the shell's. Whether there was one.
    fn hear_shell(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let Poll::Ready(ready) = self.socket.poll_read_ready(cx) else {
                return false;
            };
            let Ok(mut ready) = ready else {
                self.deaf = true;
                return true;
            };
            let mut bytes = [MaybeUninit::uninit(); REPORT + LONGEST_PIECE];
            match rustix::net::recv(self.socket.get_ref(), &mut bytes[..], RecvFlags::DONTWAIT) {
                // Asked once more: only an answer that it is not ready has us told when it is.
                Err(Errno::AGAIN) => ready.clear_ready(),
                received => {
                    let received = received.map(|((bytes, _), _)| &*bytes);
                    self.receive(received);
                    return true;
                }
            }
        }
    }

    /// All that the shell has said until now, whatever the runtime has noticed: it has ended.
    fn hear_last_words(&mut self) {
        while !self.deaf {
            let mut bytes = [MaybeUninit::uninit(); REPORT + LONGEST_PIECE];
            match rustix::net::recv(self.socket.get_ref(), &mut bytes[..], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => return,
                received => {
                    let received = received.map(|((bytes, _), _)| &*bytes);
                    self.receive(received);
                }
            }
        }
    }

    fn receive(&mut self, received: Result<&[u8], Errno>) {
        match received {
            Err(errno) if socket::once_more(errno) => {}
            Ok([]) | Err(_) => self.deaf = true,
            Ok(bytes) => {
                // What does not bear the key was not said by the shell.
                if let Some((told, carried)) = Told::decode(bytes).filter(|(told, _)| told.key == self.key) {
                    self.take(&told, carried);
                }
            }
        }
    }

    fn take(&mut self, told: &Told, carried: &[u8]) {
        match told.kind {
            Kind::FirstVariables => {
                self.variables.clear();
                self.variables.extend_from_slice(carried);
                self.variables.shrink_to_fit();
            }
            Kind::MoreVariables if self.variables.len() < LONGEST_VARIABLES => {
                self.variables.extend_from_slice(carried);
            }
            Kind::MoreVariables => {}
            Kind::Done | Kind::Leaving => {
                self.deleted = carried.is_empty();
                if !self.deleted && self.cwd != carried {
                    self.cwd = carried.to_vec();
                }
                if told.kind == Kind::Done {
                    self.pipes = None;
                    self.done = Some(Done {
                        number: told.number,
                        status: told.status,
                        broken_off: told.broken_off,
                    });
                }
            }
        }
    }

    /// One message of the supervisor's. Whether there was one.
    fn hear_supervisor(&mut self, cx: &mut Context<'_>) -> bool {
        match self.supervised.poll_report(cx) {
            Poll::Pending => return false,
            Poll::Ready(Some(Report::MainEnded {
                status,
                gone,
                out_of_memory,
                ..
            })) => {
                // It has said how it stood before it ended, over another socket than this.
                self.hear_last_words();
                self.main_end = Some(main_end(status, out_of_memory));
                self.pipes = None;
                if gone {
                    self.gone = Some(Ended::default());
                } else {
                    // Its commands' processes go with it.
                    self.supervised.stop(LEFT_BEHIND_GRACE);
                }
            }
            Poll::Ready(Some(Report::Gone { ended, survivors })) => self.gone = Some(Ended { ended, survivors }),
            Poll::Ready(Some(Report::PartEnded {
                number,
                ended,
                survivors,
            })) => {
                self.parts.insert(number, Ended { ended, survivors });
            }
            Poll::Ready(Some(Report::Started { .. } | Report::Failed { .. }) | None) => self.lost = true,
        }
        true
    }
}

impl fmt::Debug for ShellChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellChannel")
            .field("number", &self.number)
            .field("done", &self.done)
            .field("main_end", &self.main_end)
            .finish_non_exhaustive()
    }
}
