//! One text that runs in memory, as a process: its end, and breaking it off.

use std::future::Future as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Sleep, sleep};

use shieling::process::{Control, Ended, Event, MainEnd, Usage};

/// How long a text may take to notice that it was broken off, beyond the grace. Commands look between
/// any two steps; one that does not is told of as left behind.
const NOTICING: Duration = Duration::from_millis(1_500);
/// The status of a text whose bash broke.
const BROKEN: i32 = 125;

/// What is known of a text that runs.
#[derive(Default)]
pub(super) struct Progress {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    end: Option<(MainEnd, Usage)>,
    /// Whether it is to be broken off, and what tells that to whoever runs it.
    unwanted: bool,
    token: Option<Arc<AtomicBool>>,
    wakers: Vec<Waker>,
}

impl Progress {
    /// Runs something that can be broken off by this token, and keeps its end. It has ended afterwards,
    /// whatever happened.
    pub(super) fn follow(&self, run: impl FnOnce() -> MainEnd) {
        let before = used();
        let end = catch_unwind(AssertUnwindSafe(run)).unwrap_or(MainEnd::Exited(BROKEN));
        let usage = Usage {
            user: used().saturating_sub(before),
            ..Usage::default()
        };
        let mut known = self.lock();
        known.end = Some((end, usage));
        known.token = None;
        for waker in known.wakers.drain(..) {
            waker.wake();
        }
    }

    /// Gives what breaks it off. Says whether it is still wanted.
    pub(super) fn begin(&self, token: Arc<AtomicBool>) -> bool {
        let mut known = self.lock();
        token.store(known.unwanted, Ordering::Relaxed);
        known.token = Some(token);
        !known.unwanted
    }

    /// Has nothing break off any more what ran it, which may run something else before the end is known.
    pub(super) fn let_go(&self) {
        self.lock().token = None;
    }

    /// Breaks it off.
    pub(super) fn break_off(&self) {
        let mut known = self.lock();
        known.unwanted = true;
        if let Some(token) = &known.token {
            token.store(true, Ordering::Relaxed);
        }
    }

    /// How it ended, once it has.
    pub(super) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<(MainEnd, Usage)> {
        let mut known = self.lock();
        match known.end {
            Some(end) => Poll::Ready(end),
            None => {
                known.wakers.retain(|waker| !waker.will_wake(cx.waker()));
                known.wakers.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to a text that runs. Dropping it breaks the text off.
pub(super) struct Running {
    progress: Arc<Progress>,
    told: bool,
    over: bool,
    patience: Option<Pin<Box<Sleep>>>,
}

impl Running {
    pub(super) fn new(progress: Arc<Progress>) -> Self {
        Self {
            progress,
            told: false,
            over: false,
            patience: None,
        }
    }

    fn last(&mut self, survivors: u32) -> Poll<Event> {
        self.over = true;
        Poll::Ready(Event::Gone(Ended { ended: 0, survivors }))
    }
}

impl Control for Running {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.over {
            return Poll::Pending;
        }
        if self.told {
            return self.last(0);
        }
        if let Poll::Ready((end, usage)) = self.progress.poll_end(cx) {
            self.told = true;
            return Poll::Ready(Event::MainEnded(end, usage));
        }
        match self.patience.as_mut().map(|patience| patience.as_mut().poll(cx)) {
            // It goes on, and nothing can be done about a thread.
            Some(Poll::Ready(())) => self.last(1),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }

    fn stop(&mut self, grace: Duration) {
        self.progress.break_off();
        self.patience = Some(Box::pin(sleep(grace.saturating_add(NOTICING))));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.told {
            self.progress.break_off();
        }
    }
}

/// How much CPU time this thread has used.
fn used() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::Progress;

    #[test]
    fn what_was_let_go_is_broken_off_no_more() {
        for let_go in [false, true] {
            let (progress, token) = (Progress::default(), Arc::new(AtomicBool::new(true)));
            assert!(progress.begin(Arc::clone(&token)));
            assert!(!token.load(Ordering::Relaxed));
            if let_go {
                progress.let_go();
            }
            progress.break_off();
            assert_eq!(token.load(Ordering::Relaxed), !let_go);
        }
    }
}
