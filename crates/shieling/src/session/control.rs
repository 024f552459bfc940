//! Who has the keyboard of a job: the agent, or a person. Exactly one of them, and a person who is gone
//! has it no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{JobError, JobId};

/// The keyboard of one job. Clones are the same keyboard.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holder(Arc<AtomicBool>);

/// The keyboard in a person's hands. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Held(Arc<AtomicBool>);

impl Holder {
    /// Gives it to a person; none if another one has it.
    pub(crate) fn take(&self) -> Option<Held> {
        let taken = self
            .0
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok().then(|| Held(Arc::clone(&self.0)))
    }

    /// Whether a person has it.
    pub(crate) fn person(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Whether the agent may write.
    ///
    /// # Errors
    /// [`JobError::PersonHolds`].
    pub(crate) fn check(&self, job: &JobId) -> Result<(), JobError> {
        if self.person() {
            Err(JobError::PersonHolds { job: job.clone() })
        } else {
            Ok(())
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_keyboard_and_a_person_who_is_gone_has_it_no_more() {
        let (holder, job) = (Holder::default(), JobId::numbered(1));
        assert_eq!(holder.check(&job), Ok(()));
        let held = holder.clone().take().expect("nobody has it");
        assert!(holder.person() && holder.take().is_none());
        let error = holder.check(&job).expect_err("a person has it");
        assert!(
            error.to_string().contains("a person has control of job `j1`"),
            "{error}"
        );
        drop(held);
        assert_eq!(holder.check(&job), Ok(()));
        assert!(holder.take().is_some());
    }
}
