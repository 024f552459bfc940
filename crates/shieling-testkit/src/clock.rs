//! A clock that tests control.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shieling::units::Clock;

/// A monotonic clock that tests advance.
#[derive(Debug)]
pub struct FakeClock {
    now: Mutex<Instant>,
}

impl FakeClock {
    /// Creates a clock that stands still until [`FakeClock::advance`].
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: Mutex::new(Instant::now()),
        })
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
