//! All jobs, by name. Refuses to drop one that runs: when there are too many, no more are started.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::job::Job;
use super::{JobError, JobId, JobInfo};

/// How many jobs there may be, running ones and those that are about to start included.
const MOST: usize = 256;
/// How many that have ended are kept, so that they can still be viewed.
const FINISHED: usize = 64;

/// How long the end of all may take: a second of grace, and what the kernel may need.
const CLOSING: Duration = Duration::from_secs(6);

/// The registry.
pub(crate) struct Jobs {
    held: Mutex<Held>,
    /// Told after each change.
    changed: watch::Sender<()>,
}

struct Held {
    /// Oldest first.
    places: Vec<Place>,
    next: u64,
    closed: bool,
}

struct Place {
    id: JobId,
    /// None before it has started.
    job: Option<Arc<Job>>,
}

/// What a call with a name for its job gets.
pub(crate) enum Claim<'a> {
    /// The name is the caller's.
    New(Slot<'a>),
    /// There is a job of that name.
    Known(Arc<Job>),
}

/// A place for a job that is about to start. Dropping it gives the place up.
pub(crate) struct Slot<'a> {
    jobs: &'a Jobs,
    id: JobId,
    filled: bool,
}

impl Jobs {
    /// None.
    pub(crate) fn new() -> Self {
        Self {
            held: Mutex::new(Held {
                places: Vec::new(),
                next: 1,
                closed: false,
            }),
            changed: watch::Sender::new(()),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a job: under this name, or the next number. If somebody else is starting one of
    /// the same name, waits for that.
    ///
    /// # Errors
    /// [`JobError::TooMany`], [`JobError::Closed`].
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn claim(&self, id: Option<JobId>) -> Result<Claim<'_>, JobError> {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(claim) = self.try_claim(id.as_ref())? {
                return Ok(claim);
            }
            // Its sender is here.
            let _ = changed.changed().await;
        }
    }

    fn try_claim(&self, id: Option<&JobId>) -> Result<Option<Claim<'_>>, JobError> {
        let mut held = self.held();
        if let Some(place) = id.and_then(|id| held.places.iter().find(|place| place.id == *id)) {
            return Ok(place.job.clone().map(Claim::Known));
        }
        if held.closed {
            return Err(JobError::Closed);
        }
        held.make_room();
        if held.places.len() >= MOST {
            return Err(JobError::TooMany { most: MOST });
        }
        let id = id.cloned().unwrap_or_else(|| held.numbered());
        held.places.push(Place {
            id: id.clone(),
            job: None,
        });
        Ok(Some(Claim::New(Slot {
            jobs: self,
            id,
            filled: false,
        })))
    }

    /// The job of this name.
    ///
    /// # Errors
    /// [`JobError::Unknown`], with those that there are.
    pub(crate) fn find(&self, id: &JobId) -> Result<Arc<Job>, JobError> {
        let held = self.held();
        held.jobs()
            .find(|job| job.id() == id)
            .cloned()
            .ok_or_else(|| JobError::Unknown {
                job: id.clone(),
                known: held.jobs().map(|job| job.id().clone()).collect(),
            })
    }

    /// Forgets a job, which ends with its last handle.
    pub(crate) fn forget(&self, id: &JobId) {
        self.held().places.retain(|place| place.id != *id);
        self.changed.send_replace(());
    }

    /// All of them, oldest first.
    pub(crate) fn list(&self) -> Vec<JobInfo> {
        let mut held = self.held();
        held.make_room();
        held.jobs().map(|job| job.info()).collect()
    }

    /// Ends all jobs, and starts no more. Takes as long as the one that takes longest: a second of
    /// grace at most, and what the kernel needs.
    pub(crate) async fn close(&self) {
        let jobs: Vec<Arc<Job>> = {
            let mut held = self.held();
            held.closed = true;
            held.jobs().cloned().collect()
        };
        for job in &jobs {
            job.stop(None, job.command().grace().min(Duration::from_secs(1)));
        }
        let over = async {
            for job in &jobs {
                job.until(|state| state.over).await;
            }
        };
        // One that nobody drives any more ends with its last handle.
        let _ = tokio::time::timeout(CLOSING, over).await;
        self.held().places.retain(|place| place.job.is_none());
        self.changed.send_replace(());
    }
}

impl Held {
    fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.places.iter().filter_map(|place| place.job.as_ref())
    }

    /// The next number that is nobody's name.
    fn numbered(&mut self) -> JobId {
        loop {
            let id = JobId::numbered(self.next);
            self.next += 1;
            if self.places.iter().all(|place| place.id != id) {
                return id;
            }
        }
    }

    /// Lets go of the oldest jobs that have ended, if there are too many.
    fn make_room(&mut self) {
        let over = |place: &Place| place.job.as_ref().is_some_and(|job| job.is_over());
        let finished = self.places.iter().filter(|place| over(place)).count();
        let mut surplus = finished
            .saturating_sub(FINISHED)
            .max((self.places.len() + 1).saturating_sub(MOST));
        self.places.retain(|place| {
            let goes = surplus > 0 && over(place);
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl Slot<'_> {
    /// The name that the job gets.
    pub(crate) fn id(&self) -> &JobId {
        &self.id
    }

    /// Puts the job in. If all were closed meanwhile, it is ended with its last handle.
    pub(crate) fn fill(mut self, job: &Arc<Job>) {
        let mut held = self.jobs.held();
        if !held.closed
            && let Some(place) = held.places.iter_mut().find(|place| place.id == self.id)
        {
            place.job = Some(Arc::clone(job));
            self.filled = true;
        }
        drop(held);
        self.jobs.changed.send_replace(());
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if !self.filled {
            self.jobs.forget(&self.id);
        }
    }
}
