//! A text that runs in memory, as a process: its end, and its interruption.

use std::future::Future as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Sleep, sleep};

use shieling::process::{Control, Ended, Event, MainEnd, Usage};

/// The time beyond the grace that an interrupted text has to end. Commands check between any two steps; one that does
/// not is reported as left behind.
const NOTICING: Duration = Duration::from_millis(1_500);
/// The status of a text whose interpreter panicked.
const BROKEN: i32 = 125;

/// The shared state of a running text.
#[derive(Default)]
pub(super) struct Progress {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    end: Option<(MainEnd, Usage)>,
    /// Whether it is interrupted, and the token that interrupts its thread.
    unwanted: bool,
    token: Option<Arc<AtomicBool>>,
    wakers: Vec<Waker>,
}

impl Progress {
    /// Runs a future that this token interrupts, and records its end, even if it panics.
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

    /// Sets the token. Returns whether the text was not interrupted yet.
    pub(super) fn begin(&self, token: Arc<AtomicBool>) -> bool {
        let mut known = self.lock();
        token.store(known.unwanted, Ordering::Relaxed);
        known.token = Some(token);
        !known.unwanted
    }

    /// Removes the token, so that the thread can run something else before the end is recorded.
    pub(super) fn let_go(&self) {
        self.lock().token = None;
    }

    /// Interrupts the text.
    pub(super) fn break_off(&self) {
        let mut known = self.lock();
        known.unwanted = true;
        if let Some(token) = &known.token {
            token.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the end, once it is known.
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

/// The texts that run now, other than those of sessions.
#[derive(Default)]
pub(super) struct RunningTexts(Mutex<Vec<Weak<Progress>>>);

impl RunningTexts {
    pub(super) fn add(&self, progress: &Arc<Progress>) {
        let mut texts = self.lock();
        texts.retain(|text| text.strong_count() > 0);
        texts.push(Arc::downgrade(progress));
    }

    /// Interrupts all of them.
    pub(super) fn break_off(&self) {
        for text in self.lock().drain(..).filter_map(|text| text.upgrade()) {
            text.break_off();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Progress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The control of a running text. Dropping it interrupts the text.
pub(super) struct Running {
    progress: Arc<Progress>,
    told: bool,
    over: bool,
    stop_timeout: Option<Pin<Box<Sleep>>>,
}

impl Running {
    pub(super) fn new(progress: Arc<Progress>) -> Self {
        Self {
            progress,
            told: false,
            over: false,
            stop_timeout: None,
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
        match self
            .stop_timeout
            .as_mut()
            .map(|stop_timeout| stop_timeout.as_mut().poll(cx))
        {
            // It continues; a thread cannot be killed.
            Some(Poll::Ready(())) => self.last(1),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }

    fn stop(&mut self, grace: Duration) {
        self.progress.break_off();
        self.stop_timeout = Some(Box::pin(sleep(grace.saturating_add(NOTICING))));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.told {
            self.progress.break_off();
        }
    }
}

/// Returns the CPU time of the current thread.
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
