//! The thread that judges changes while commands run. It waits for an event, then until events pause for a moment.
//!
//! ```text
//! idle ◄────► armed: waits for events ─► settling: until a pause of STILL, LONGEST at most ─► judges ─► rests ─┐
//!   a command begins,  ▲                                                                                       │
//!   all is settled     └───────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It decides nothing of its own. It ends with what it belongs to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

/// A sandbox that ends sooner starts no settle process.
const SOON: Duration = Duration::from_millis(5);
/// The pause in events before changes are judged: ordinary programs write a file and rename it without pausing.
const STILL: Duration = Duration::from_millis(3);
/// The longest wait for that pause.
const LONGEST: Duration = Duration::from_millis(7);
/// The interval at which the event queue is measured.
const STEP: Duration = Duration::from_millis(1);
/// Its share of a processor, as a divisor, so that a flood of changes does not starve commands. What it uses beyond this
/// share and `BURST` is followed by a rest.
const SHARE: u32 = 10;
const BURST: Duration = Duration::from_millis(50);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// A descriptor that becomes readable when something changed.
pub(super) type Notifier = Arc<dyn AsFd + Send + Sync>;

/// What is to be waited for once all was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The next change, this long at most: also where nothing changes, what runs can have ended.
    Within(Duration),
    /// This long, whatever changes: nothing can be judged yet.
    After(Duration),
}

/// The thread. Dropping this ends it.
#[derive(Debug)]
pub(super) struct JudgeThread(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wake: OwnedFd,
    is_armed: AtomicBool,
    is_over: AtomicBool,
}

impl JudgeThread {
    /// Starts it. `first` is done first, unless this is dropped within 5 ms, and what that gives is dropped at its end.
    /// `next` is waited for at first. `judge` judges, and says what is to be waited for then; `None` if there is nothing any
    /// more to be judged.
    pub(super) fn start<T>(
        notifiers: Vec<Notifier>,
        first: impl FnOnce() -> T + Send + 'static,
        next: Next,
        judge: impl FnMut() -> Option<Next> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            wake: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_armed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let its = Arc::clone(&shared);
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            if its.is_over_within(SOON) {
                return;
            }
            let until_the_end = first();
            its.run(&notifiers, next, judge);
            drop(until_the_end);
        })?;
        Ok(Self(shared))
    }

    /// Says whether something runs whose changes are to be judged. What has changed before is judged at once.
    pub(super) fn arm(&self, is_armed: bool) {
        if self.0.is_armed.swap(is_armed, Ordering::AcqRel) != is_armed {
            self.0.wake();
        }
    }
}

impl Drop for JudgeThread {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.wake();
    }
}

/// How much of a processor was had beyond its share.
struct Spent {
    beyond: Duration,
    /// What was had in all at the last look, and when that was.
    had: Duration,
    at: Instant,
}

impl Spent {
    fn new(had: Duration) -> Self {
        Self {
            beyond: Duration::ZERO,
            had,
            at: Instant::now(),
        }
    }

    /// How long to rest, when so much was had in all.
    fn rest(&mut self, had: Duration) -> Duration {
        let now = Instant::now();
        let more = had.saturating_sub(self.had);
        let share = now.duration_since(self.at) / SHARE;
        self.beyond = (self.beyond + more).saturating_sub(share);
        (self.had, self.at) = (had, now);
        (self.beyond.saturating_sub(BURST) * SHARE).min(LONGEST_REST)
    }
}

/// How long this thread has had a processor.
fn worked() -> Duration {
    let worked = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(worked).unwrap_or_default()
}

impl Shared {
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn run(&self, notifiers: &[Notifier], mut next: Next, mut judge: impl FnMut() -> Option<Next>) {
        let notifiers: Vec<BorrowedFd<'_>> = notifiers.iter().map(|notifier| notifier.as_fd()).collect();
        let mut spent = Spent::new(worked());
        loop {
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            if !self.is_armed.load(Ordering::Acquire) {
                self.wait(&[], None);
                continue;
            }
            match next {
                Next::After(time) => drop(self.wait(&[], Some(time))),
                Next::Within(most) => {
                    if self.wait(&notifiers, Some(most)) {
                        self.until_still(&notifiers);
                    }
                }
            }
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let Some(judged) = judge() else { return };
            next = judged;
            let rest = spent.rest(worked());
            if !rest.is_zero() {
                self.wait(&[], Some(rest));
            }
        }
    }

    /// Whether it is over by then.
    fn is_over_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.is_over.load(Ordering::Acquire) || left.is_zero() {
                return self.is_over.load(Ordering::Acquire);
            }
            self.wait(&[], Some(left));
        }
    }

    /// Waits until one of these can be read, it is woken, or this time is over. Whether one can be read.
    fn wait(&self, notifiers: &[BorrowedFd<'_>], most: Option<Duration>) -> bool {
        let most = most.map(|most| Timespec::try_from(most).unwrap_or_default());
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(
            notifiers
                .iter()
                .map(|notifier| PollFd::from_borrowed_fd(*notifier, PollFlags::IN)),
        );
        let _ = rustix::event::poll(&mut fds, most.as_ref());
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        if fds.first().is_some_and(is_ready) {
            let _ = rustix::io::read(&self.wake, &mut [0_u8; 8]);
        }
        fds.iter().skip(1).any(is_ready)
    }

    /// Waits until no more changes are told than a moment before.
    fn until_still(&self, notifiers: &[BorrowedFd<'_>]) {
        let told = || -> Vec<u64> {
            let count = |notifier: &BorrowedFd<'_>| rustix::io::ioctl_fionread(notifier).unwrap_or_default();
            notifiers.iter().map(count).collect()
        };
        let began = Instant::now();
        let (mut before, mut since) = (told(), began);
        while since.elapsed() < STILL && began.elapsed() < LONGEST && !self.is_over.load(Ordering::Acquire) {
            self.wait(&[], Some(STEP));
            let now = told();
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_a_flood_rests_for_what_it_had_beyond_its_share() {
        let mut spent = Spent::new(Duration::ZERO);
        assert_eq!(spent.rest(BURST / 2), Duration::ZERO);
        let rest = spent.rest(BURST * 2);
        assert!(rest > BURST * (SHARE - 1) && rest <= BURST * SHARE, "{rest:?}");
        assert_eq!(spent.rest(Duration::from_secs(9)), LONGEST_REST);
    }
}
