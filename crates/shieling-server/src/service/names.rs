//! Names that a caller gives to jobs, in dialects that have such names. A name is for one job at a
//! time: once that has ended, the name can be given anew, as those dialects have it.

use std::collections::VecDeque;
use std::sync::PoisonError;

use shieling::outcome::Status;
use shieling::session::JobId;

use super::Service;
use crate::core::Workplace;

/// How many names are remembered; the oldest goes, and its job keeps its own name.
const MOST: usize = 1_024;

/// The names that were given.
#[derive(Debug, Default)]
pub(super) struct Names(VecDeque<(String, JobId)>);

impl Service {
    /// The job that a caller's name stands for, or that has this very name.
    pub(super) fn named(&self, alias: &str, workplace: &Workplace) -> Option<JobId> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let given = names
            .0
            .iter()
            .find(|(name, _)| name == alias)
            .map(|(_, job)| job.clone());
        drop(names);
        given.or_else(|| {
            let listed = workplace.core.list().jobs;
            listed
                .into_iter()
                .map(|info| info.job)
                .find(|job| job.to_string() == alias)
        })
    }

    /// Gives a name to a job.
    pub(super) fn name(&self, alias: &str, job: &str) {
        let Ok(job) = job.parse() else { return };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.0.retain(|(name, _)| name != alias);
        if names.0.len() == MOST {
            names.0.pop_front();
        }
        names.0.push_back((alias.to_owned(), job));
    }
}

/// Whether a job runs.
pub(super) fn runs(workplace: &Workplace, job: &JobId) -> bool {
    let listed = workplace.core.list().jobs;
    listed
        .iter()
        .any(|info| info.job == *job && info.status == Status::Running)
}
