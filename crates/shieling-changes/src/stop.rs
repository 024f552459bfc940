//! Ends looks at sets, and copies of them, that take longer than anybody waits for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::ChangesError;

/// When the looks at the sets of one store, and copies of them, are to end. Clones share it; at first it is never.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Mutex<Option<Instant>>>);

impl Stop {
    /// Sets it. What is being looked at or copied fails with [`ChangesError::Stopped`] at the next path after that. What
    /// is being applied to a workspace goes on to its end.
    pub fn at(&self, when: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(when);
    }

    pub(crate) fn check(&self) -> Result<(), ChangesError> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(when) if Instant::now() >= when => Err(ChangesError::Stopped),
            _ => Ok(()),
        }
    }
}
