//! Names that callers give to jobs, in dialects that have such names. A name refers to one job at a time. Once the
//! job has ended, the name can be reused, as in the original products.

use std::collections::VecDeque;

use shieling::outcome::Status;
use shieling::session::JobId;

use crate::core::Workplace;

/// The largest number of names; the oldest is dropped, and its job keeps its own name.
const MOST: usize = 1_024;

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct Names(VecDeque<(String, JobId)>);

impl Names {
    /// Returns the job that a name was assigned to.
    pub(super) fn find(&self, alias: &str) -> Option<JobId> {
        let mut names = self.0.iter();
        names.find(|(name, _)| name == alias).map(|(_, job)| job.clone())
    }

    /// Assigns a name to a job.
    pub(super) fn assign(&mut self, alias: &str, job: JobId) {
        self.0.retain(|(name, _)| name != alias);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((alias.to_owned(), job));
    }
}

/// Returns whether a job runs.
pub(super) fn runs(workplace: &Workplace, job: &JobId) -> bool {
    let listed = workplace.core.list().jobs;
    listed
        .iter()
        .any(|info| info.job == *job && info.status == Status::Running)
}
