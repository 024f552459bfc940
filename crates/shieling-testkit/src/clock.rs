//! A clock that only moves when it is told to.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shieling::units::Clock;

/// A monotonic clock in the hands of a test.
#[derive(Debug)]
pub struct FakeClock {
    now: Mutex<Instant>,
}

impl FakeClock {
    /// A clock that stands still until [`FakeClock::advance`].
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: Mutex::new(Instant::now()),
        })
    }

    /// Lets this much time go by.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
