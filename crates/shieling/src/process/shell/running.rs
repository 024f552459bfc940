//! One command of a shell that stays, as a process of its own: its end is the shell's word for it, and
//! ending it ends what it started and not the shell.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Sleep, sleep};

use super::shell_channel::ShellChannel;
use crate::process::{Control, Ended, Event, MainEnd, Usage};

/// How long a shell may take to leave a command whose processes are all gone, before it is told again:
/// bash forgets at the end of a trap what it was told in it. Twice as long each time, since a busy machine may give
/// the shell no processor for a while: 0.9 s in all. Its supervisor waits up to 0.3 s more each time for a shell that is
/// busy, so that one which never leaves is ended after 2.4 s, within `STOP_MARGIN`, and its end is told as what it is.
const LEAVING: Duration = Duration::from_millis(30);
/// How often it is told again, before it is ended.
const AGAIN: u8 = 4;
/// How long its supervisor may take to end them, beyond the grace.
const ENDING: Duration = Duration::from_secs(4);

/// What a command is told to end by.
const SIGTERM: i32 = 15;

/// A command, running or left with something behind.
pub(super) struct Running {
    channel: Arc<Mutex<ShellChannel>>,
    number: u64,
    /// When it began, and ended, in milliseconds since boot.
    since: u64,
    until: Option<u64>,
    pending: VecDeque<Event>,
    over: bool,
    /// The order to end it, until that is done.
    order: Option<u64>,
    /// What that has ended.
    ended: Option<Ended>,
    /// How often it was told again, and how much was ended before.
    again: u8,
    before: u32,
    /// Whether what it was starting when it was told to leave is being ended, or there is no such thing.
    swept: bool,
    /// When the shell itself is ended for not leaving it.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Running {
    pub(super) fn new(channel: Arc<Mutex<ShellChannel>>, number: u64, since: u64) -> Self {
        Self {
            channel,
            number,
            since,
            until: None,
            pending: VecDeque::new(),
            over: false,
            order: None,
            ended: None,
            again: 0,
            before: 0,
            swept: true,
            timer: None,
        }
    }

    /// What has become known. `channel` has been listened to.
    fn look(&mut self, channel: &mut ShellChannel) {
        if self.ended.is_none()
            && let Some(order) = self.order
        {
            self.ended = channel.part(order).map(|part| Ended {
                ended: part.ended + self.before,
                ..part
            });
            if self.ended.is_some() && self.until.is_none() {
                self.timer = Some(Box::pin(sleep(LEAVING * 2_u32.pow(self.again.into()))));
            }
        }
        if self.until.is_none() {
            let end = match (channel.done, channel.main_end) {
                // It was ended by us, with what it had started.
                (Some(done), _) if done.number == self.number && done.broken_off.was_told() && self.order.is_some() => {
                    MainEnd::Signalled(SIGTERM)
                }
                (Some(done), _) if done.number == self.number => MainEnd::Exited(done.status),
                // The shell has ended, and takes with it what its commands have left behind: both are told together.
                (_, Some(end)) if channel.gone.is_some() || channel.lost => end,
                _ if channel.lost => return self.last(Event::Lost),
                _ => return,
            };
            self.until = Some(since_boot());
            self.timer = None;
            self.pending.push_back(Event::MainEnded(end, Usage::default()));
        }
        if let Some(ended) = self.ended.filter(|_| !self.swept && !channel.has_ended()) {
            // What the shell was starting when it was told to leave may have come after all had been ended.
            self.swept = true;
            self.before = ended.ended;
            self.ended = None;
            self.order = Some(channel.end_part(false, (self.since, u64::MAX), Duration::ZERO));
            return;
        }
        match (self.ended, channel.gone) {
            (Some(ended), _) => self.last(Event::Gone(ended)),
            (None, Some(gone)) => self.last(Event::Gone(gone)),
            (None, None) if channel.lost => self.last(Event::Lost),
            (None, None) => {}
        }
    }

    fn last(&mut self, event: Event) {
        self.over = true;
        self.pending.push_back(event);
    }
}

impl Control for Running {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Poll::Ready(event);
            }
            if self.over {
                return Poll::Pending;
            }
            let shared = Arc::clone(&self.channel);
            let mut channel = lock(&shared);
            let quiet = self.until.is_some() && self.order.is_none() && !channel.has_ended();
            if quiet {
                // It is over, and something of it goes on: whoever comes next listens.
                channel.leave(self.number);
                return Poll::Pending;
            }
            channel.listen(self.number, cx);
            self.look(&mut channel);
            if !self.pending.is_empty() {
                continue;
            }
            let timer = self.timer.as_mut();
            if timer.is_none_or(|timer| timer.as_mut().poll(cx).is_pending()) {
                return Poll::Pending;
            }
            if let Some(ended) = self.ended.filter(|_| self.again < AGAIN) {
                self.again += 1;
                self.before = ended.ended;
                self.ended = None;
                self.order = Some(channel.end_part(true, (self.since, u64::MAX), Duration::ZERO));
                self.timer = Some(Box::pin(sleep(ENDING)));
                continue;
            }
            // It does not leave what it was told to leave: it goes, and says so by that.
            channel.kill();
            self.timer = None;
        }
    }

    fn stop(&mut self, grace: Duration) {
        if self.over || self.order.is_some() {
            return;
        }
        let running = self.until.is_none();
        let mut channel = lock(&self.channel);
        // What it left behind may have started more since.
        let until = match (self.until, channel.next_start(self.number)) {
            (None, _) => u64::MAX,
            (Some(ended), next) => ended.max(next.map_or(0, |next| next.saturating_sub(1))),
        };
        if running {
            channel.give_up(self.number);
        }
        self.order = Some(channel.end_part(running, (self.since, until), grace));
        drop(channel);
        if running {
            self.swept = false;
            self.timer = Some(Box::pin(sleep(grace.saturating_add(ENDING))));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut channel = lock(&self.channel);
        if !self.over {
            let order = match (self.order, self.until) {
                (Some(order), _) if self.ended.is_none() => Some(order),
                // Told in vain, or not told yet.
                (_, None) => {
                    channel.give_up(self.number);
                    Some(channel.end_part(true, (self.since, u64::MAX), Duration::ZERO))
                }
                // Its command has ended, and may have left something behind that is to go on.
                (_, Some(_)) => None,
            };
            if let Some(order) = order {
                channel.abandon(order);
            }
            if self.until.is_none() || !self.swept {
                channel.abandon_command(self.since);
            }
        }
        channel.leave(self.number);
    }
}

fn lock(channel: &Mutex<ShellChannel>) -> MutexGuard<'_, ShellChannel> {
    channel.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since boot, in which the kernel tells when a process started.
pub(super) fn since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000)
}
