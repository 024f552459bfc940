//! Bounds the number of file operations that run at once.
//!
//! ```text
//! search ─► one of 4 ─┐
//! all others ─────────┴► one of 8 ─► reads on a thread ─► (approval: no permit is held)
//! a change, once approved ─► the only change ─► one of 8 ─► changes on a thread
//! ```
//!
//! Searches take the longest, so they never hold all permits: a read does not wait for a search. Permits are granted
//! in the order of the requests. A permit belongs to the work, not to the caller: it is released when the thread is
//! done, even if the caller has gone.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// The number of operations that run at once. Each takes a thread and reads a file of up to 256 MiB. A prepared change
/// keeps what it has read while it waits for its approval, without a permit.
const AT_ONCE: usize = 8;

/// The number of searches among them.
const SEARCHES: usize = 4;

/// The permits of one [`Shieling`](crate::Shieling).
pub(in crate::shieling) struct Permits {
    all: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    making: Arc<Mutex<()>>,
}

impl Default for Permits {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            searches: Arc::new(Semaphore::new(SEARCHES)),
            making: Arc::default(),
        }
    }
}

/// The permit of one operation. Dropping it releases it.
pub(super) struct Permit {
    _all: OwnedSemaphorePermit,
    _search: Option<OwnedSemaphorePermit>,
}

/// The permit of the only change that may be made.
pub(super) struct ChangePermit {
    _permit: Permit,
    _alone: OwnedMutexGuard<()>,
}

impl Permits {
    /// Waits for the permit of an operation.
    ///
    /// # Cancel safety
    /// Cancel safe. A repeated call waits behind the others.
    pub(super) async fn look(&self, is_search: bool) -> Permit {
        let search = if is_search {
            Some(permit(&self.searches).await)
        } else {
            None
        };
        Permit {
            _all: permit(&self.all).await,
            _search: search,
        }
    }

    /// Waits until no other change is being made, and for a permit.
    ///
    /// # Cancel safety
    /// As [`Self::look`].
    pub(super) async fn make(&self) -> ChangePermit {
        // In this order, so that changes which wait for each other hold no permit.
        let alone = Arc::clone(&self.making).lock_owned().await;
        ChangePermit {
            _permit: self.look(false).await,
            _alone: alone,
        }
    }
}

async fn permit(of: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.expect("nobody closes it")
}
