//! Bounds the number of file operations that run at once.
//!
//! ```text
//! search ─► one of 4 ─┐
//! all others ─────────┴► one of 8 ─► reads on a thread ─► (approval: no permit is held)
//! a change, once approved ─► the turn ─► one of 8 ─► changes on a thread
//! a change whose file was replaced since it was planned ─► the turn ─► one of 8 ─► plans ─► as above, with the turn
//! ```
//!
//! The turn belongs to one change at a time. It is not held while a person is asked.
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

/// The turn to change files: while it is held, no other change is made. Dropping it releases it.
pub(super) struct Turn(#[expect(dead_code, reason = "it is held")] OwnedMutexGuard<()>);

/// The permit of the only change that may be made.
pub(super) struct ChangePermit {
    _permit: Permit,
    _turn: Turn,
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

    /// Waits for the turn to change files, in the order of the requests. It is to be awaited without a permit, so that
    /// changes which wait for each other hold none.
    ///
    /// # Cancel safety
    /// As [`Self::look`].
    pub(super) async fn turn(&self) -> Turn {
        Turn(Arc::clone(&self.making).lock_owned().await)
    }

    /// Waits for the turn, unless it is held already, and for a permit.
    ///
    /// # Cancel safety
    /// As [`Self::look`].
    pub(super) async fn make(&self, turn: Option<Turn>) -> ChangePermit {
        let turn = match turn {
            Some(turn) => turn,
            None => self.turn().await,
        };
        ChangePermit {
            _permit: self.look(false).await,
            _turn: turn,
        }
    }
}

async fn permit(of: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.expect("nobody closes it")
}
