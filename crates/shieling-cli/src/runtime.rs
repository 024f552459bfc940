//! The event loop.

use crate::words::Failure;

/// An event loop, with signals and timers.
pub(crate) fn start() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no event loop could be made: {error}")))
}
