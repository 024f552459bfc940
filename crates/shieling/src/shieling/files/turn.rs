//! Whose turn it is: how many operations on files work at once.
//!
//! ```text
//! search ─► one of 4 ─┐
//! all others ─────────┴► one of 8 ─► looks on a thread ─► (somebody is asked: no turn is held)
//! a change, once it may be made ─► the one that is made ─► one of 8 ─► changes on a thread
//! ```
//!
//! Searches are the ones that take long, and so never have all turns: a read does not wait for a search.
//! Who waits is served in the order in which they came. A turn belongs to the work and not to who waits for
//! it: it ends when the thread is done, also if nobody wants the answer any more.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// How many operations work at once: each takes a thread, and reads a file of up to 256 MiB. What a change
/// that was worked out has read is held on while a person is asked about it, beside these.
const AT_ONCE: usize = 8;

/// How many of them search.
const SEARCHES: usize = 4;

/// The turns of one [`Shieling`](crate::Shieling).
pub(in crate::shieling) struct Turns {
    all: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    making: Arc<Mutex<()>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            searches: Arc::new(Semaphore::new(SEARCHES)),
            making: Arc::default(),
        }
    }
}

/// A turn, which ends with it.
pub(super) struct Turn {
    _all: OwnedSemaphorePermit,
    _search: Option<OwnedSemaphorePermit>,
}

/// The turn of the one change that is made now.
pub(super) struct Making {
    _turn: Turn,
    _alone: OwnedMutexGuard<()>,
}

impl Turns {
    /// Waits for a turn to look.
    ///
    /// # Cancel safety
    /// Cancel safe; who comes again waits behind the others.
    pub(super) async fn look(&self, is_search: bool) -> Turn {
        let search = if is_search {
            Some(permit(&self.searches).await)
        } else {
            None
        };
        Turn {
            _all: permit(&self.all).await,
            _search: search,
        }
    }

    /// Waits until nobody else makes a change, and for a turn.
    ///
    /// # Cancel safety
    /// As [`Self::look`].
    pub(super) async fn make(&self) -> Making {
        // In this order: those who wait for each other keep nobody from looking.
        let alone = Arc::clone(&self.making).lock_owned().await;
        Making {
            _turn: self.look(false).await,
            _alone: alone,
        }
    }
}

async fn permit(of: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.expect("nobody closes it")
}
