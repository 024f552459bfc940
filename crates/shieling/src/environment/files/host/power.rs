//! What this process may do beyond what a sandbox's commands may: its capabilities, which are laid
//! down while it acts in their place.
//!
//! Commands of a sandbox have this process's user and groups and no capability, so without its own it
//! may do exactly what they may, as far as users, groups and modes decide. Capabilities are a thread's
//! own, so that nothing else of this process notices.

use std::marker::PhantomData;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Has capabilities laid down as long as it lives; on this thread, which it does not leave.
#[derive(Debug)]
#[must_use]
pub(super) struct Power {
    /// What was in force, if it is any different now.
    before: Option<CapabilitySets>,
    _stays: PhantomData<*const ()>,
}

impl Power {
    /// Nothing is laid down.
    pub(super) fn kept() -> Self {
        Self {
            before: None,
            _stays: PhantomData,
        }
    }

    /// All effective capabilities are laid down. A thread without any, or one that already did, is left
    /// as it is.
    ///
    /// # Errors
    /// What the kernel says; nothing must be done then.
    pub(super) fn laid_down() -> Result<Self, Errno> {
        let before = rustix::thread::capabilities(None)?;
        if before.effective.is_empty() {
            return Ok(Self::kept());
        }
        let without = CapabilitySets {
            effective: CapabilitySet::empty(),
            ..before
        };
        rustix::thread::set_capabilities(None, without)?;
        Ok(Self {
            before: Some(before),
            ..Self::kept()
        })
    }
}

impl Drop for Power {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // What is permitted may be made effective at any time.
            let _ = rustix::thread::set_capabilities(None, before);
        }
    }
}
