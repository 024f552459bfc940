//! Waits for futures on threads that may block. The futures need no runtime of their own.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Wakes a thread.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread, whatever else it is: one of a runtime's, too.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    loop {
        if let Poll::Ready(value) = poll(future.as_mut(), &waker) {
            return value;
        }
        std::thread::park();
    }
}

/// As [`wait`], and gives up after `budget`.
pub(crate) fn wait_at_most<T>(future: impl Future<Output = T>, budget: Duration) -> Option<T> {
    let (mut future, until) = (pin!(future), Instant::now() + budget);
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    loop {
        if let Poll::Ready(value) = poll(future.as_mut(), &waker) {
            return Some(value);
        }
        let left = until.checked_duration_since(Instant::now())?;
        std::thread::park_timeout(left);
    }
}

/// Polls once, without the budget that a runtime gives its tasks.
fn poll<T>(future: Pin<&mut impl Future<Output = T>>, waker: &Waker) -> Poll<T> {
    pin!(tokio::task::unconstrained(future)).poll(&mut Context::from_waker(waker))
}
