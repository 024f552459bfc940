//! The keyboard lock of a job: either the agent or one person may write to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{JobError, JobId};

/// The keyboard lock of one job. Clones share the lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyboardLock(Arc<AtomicBool>);

/// A person's hold of the keyboard. Dropping it gives the keyboard back to the agent.
#[derive(Debug)]
pub(crate) struct KeyboardGuard(Arc<AtomicBool>);

impl KeyboardLock {
    /// Takes the keyboard for a person. Returns `None` if another person holds it.
    pub(crate) fn take(&self) -> Option<KeyboardGuard> {
        let taken = self
            .0
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok().then(|| KeyboardGuard(Arc::clone(&self.0)))
    }

    /// Returns whether a person holds the keyboard.
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Checks that the agent may write.
    ///
    /// # Errors
    /// [`JobError::PersonHolds`] if a person holds the keyboard.
    pub(crate) fn check(&self, job: &JobId) -> Result<(), JobError> {
        if self.is_held() {
            Err(JobError::PersonHolds { job: job.clone() })
        } else {
            Ok(())
        }
    }
}

impl Drop for KeyboardGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_keyboard_and_a_person_who_is_gone_has_it_no_more() {
        let (lock, job) = (KeyboardLock::default(), JobId::numbered(1));
        assert_eq!(lock.check(&job), Ok(()));
        let held = lock.clone().take().expect("nobody has it");
        assert!(lock.is_held() && lock.take().is_none());
        let error = lock.check(&job).expect_err("a person has it");
        assert!(
            error.to_string().contains("a person has control of job `j1`"),
            "{error}"
        );
        drop(held);
        assert_eq!(lock.check(&job), Ok(()));
        assert!(lock.take().is_some());
    }
}
