//! Who looks at the memory of a sandbox while there are jobs: the watch, or a witness of what the kernel does.

use std::time::Duration;

use super::watch::Watch;
use super::witness::Witness;

/// Pid 1's eye on the memory of its sandbox.
#[derive(Debug)]
pub(crate) enum Eye {
    /// It holds the limit.
    Watch(Watch),
    /// It sees whom the kernel kills for it.
    Witness(Witness),
}

impl Eye {
    /// Looks, and says when to look again.
    pub(crate) fn tick(&mut self) -> Duration {
        match self {
            Self::Watch(watch) => watch.tick(),
            Self::Witness(witness) => witness.tick(),
        }
    }
}
