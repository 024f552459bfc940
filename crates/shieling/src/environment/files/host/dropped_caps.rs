//! Drops the capabilities of this thread while it acts on behalf of a sandbox's commands.
//!
//! Those commands have the user and groups of this process and no capabilities. Without its own capabilities, this
//! thread may do exactly what they may, as far as users, groups and modes decide. Capabilities belong to a thread, so
//! other threads are not affected.

use std::marker::PhantomData;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Keeps the capabilities of its thread dropped until it is dropped itself. It cannot leave its thread.
#[derive(Debug)]
#[must_use]
pub(super) struct DroppedCaps {
    /// The capabilities to restore, if they were changed.
    before: Option<CapabilitySets>,
    _stays: PhantomData<*const ()>,
}

impl DroppedCaps {
    /// Drops nothing.
    pub(super) fn kept() -> Self {
        Self {
            before: None,
            _stays: PhantomData,
        }
    }

    /// Drops all effective capabilities. A thread that has none is left as it is.
    ///
    /// # Errors
    /// The kernel's error. The caller must not act then.
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

impl Drop for DroppedCaps {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // Cannot fail: permitted capabilities may be made effective at any time.
            let _ = rustix::thread::set_capabilities(None, before);
        }
    }
}
