//! The registry of jobs. It never drops a running job: at its bound no more jobs are started.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::job::Job;
use super::{JobError, JobId, JobInfo};

/// The largest number of jobs, including those that are about to start.
const MOST: usize = 256;
/// The number of finished jobs that are kept so that they can still be viewed.
const FINISHED: usize = 64;

/// The longest time that ending all jobs may take: one second of grace, and the time that the kernel needs.
const CLOSING: Duration = Duration::from_secs(6);

/// The jobs by name.
pub(crate) struct Jobs {
    registry: Mutex<Registry>,
    /// Notified after each change.
    changed: watch::Sender<()>,
}

struct Registry {
    /// The entries, oldest first.
    entries: Vec<JobEntry>,
    next: u64,
    closed: bool,
}

struct JobEntry {
    id: JobId,
    /// `None` until the job has started.
    job: Option<Arc<Job>>,
}

/// The result of claiming a name for a job.
pub(crate) enum Claim<'a> {
    /// The name is reserved for the caller.
    Reserved(Reservation<'a>),
    /// A job of this name exists.
    Existing(Arc<Job>),
}

/// A reserved name for a job that is about to start. Dropping it gives the name up.
pub(crate) struct Reservation<'a> {
    jobs: &'a Jobs,
    id: JobId,
    registered: bool,
}

impl Jobs {
    /// Creates an empty registry.
    pub(crate) fn new() -> Self {
        Self {
            registry: Mutex::new(Registry {
                entries: Vec::new(),
                next: 1,
                closed: false,
            }),
            changed: watch::Sender::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a name for a job: the given one, or else the next number. Waits while another caller starts a job of
    /// the same name.
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
            // Never fails: the sender is part of `self`.
            let _ = changed.changed().await;
        }
    }

    fn try_claim(&self, id: Option<&JobId>) -> Result<Option<Claim<'_>>, JobError> {
        let mut registry = self.lock();
        if let Some(entry) = id.and_then(|id| registry.entries.iter().find(|entry| entry.id == *id)) {
            return Ok(entry.job.clone().map(Claim::Existing));
        }
        if registry.closed {
            return Err(JobError::Closed);
        }
        registry.make_room();
        if registry.entries.len() >= MOST {
            return Err(JobError::TooMany { most: MOST });
        }
        let id = id.cloned().unwrap_or_else(|| registry.numbered());
        registry.entries.push(JobEntry {
            id: id.clone(),
            job: None,
        });
        Ok(Some(Claim::Reserved(Reservation {
            jobs: self,
            id,
            registered: false,
        })))
    }

    /// Returns the job of this name.
    ///
    /// # Errors
    /// [`JobError::Unknown`], with the names of all jobs.
    pub(crate) fn find(&self, id: &JobId) -> Result<Arc<Job>, JobError> {
        let registry = self.lock();
        registry
            .jobs()
            .find(|job| job.id() == id)
            .cloned()
            .ok_or_else(|| JobError::Unknown {
                job: id.clone(),
                known: registry.jobs().map(|job| job.id().clone()).collect(),
            })
    }

    /// Removes a job. It ends with its last handle.
    pub(crate) fn forget(&self, id: &JobId) {
        self.lock().entries.retain(|entry| entry.id != *id);
        self.changed.send_replace(());
    }

    /// Returns the entries for a listing, oldest first.
    pub(crate) fn list(&self) -> Vec<JobInfo> {
        let mut registry = self.lock();
        registry.make_room();
        registry.jobs().map(|job| job.info()).collect()
    }

    /// Ends all jobs in parallel and refuses new ones. Takes one second of grace at most, and the time that the
    /// kernel needs.
    pub(crate) async fn close(&self) {
        let jobs: Vec<Arc<Job>> = {
            let mut registry = self.lock();
            registry.closed = true;
            registry.jobs().cloned().collect()
        };
        for job in &jobs {
            job.stop(None, job.command().grace().min(Duration::from_secs(1)));
        }
        let over = async {
            for job in &jobs {
                job.until(|state| state.over).await;
            }
        };
        // After the timeout, a job whose actor no longer runs ends with its last handle.
        let _ = tokio::time::timeout(CLOSING, over).await;
        self.lock().entries.retain(|entry| entry.job.is_none());
        self.changed.send_replace(());
    }
}

impl Registry {
    fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.entries.iter().filter_map(|entry| entry.job.as_ref())
    }

    /// Returns the next number that is not in use as a name.
    fn numbered(&mut self) -> JobId {
        loop {
            let id = JobId::numbered(self.next);
            self.next += 1;
            if self.entries.iter().all(|entry| entry.id != id) {
                return id;
            }
        }
    }

    /// Removes the oldest finished jobs beyond the bounds.
    fn make_room(&mut self) {
        let over = |entry: &JobEntry| entry.job.as_ref().is_some_and(|job| job.is_over());
        let finished = self.entries.iter().filter(|entry| over(entry)).count();
        let mut surplus = finished
            .saturating_sub(FINISHED)
            .max((self.entries.len() + 1).saturating_sub(MOST));
        self.entries.retain(|entry| {
            let goes = surplus > 0 && over(entry);
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl Reservation<'_> {
    /// Returns the name.
    pub(crate) fn id(&self) -> &JobId {
        &self.id
    }

    /// Registers the job. If the registry was closed in the meantime, the job ends with its last handle.
    pub(crate) fn register(mut self, job: &Arc<Job>) {
        let mut registry = self.jobs.lock();
        if !registry.closed
            && let Some(entry) = registry.entries.iter_mut().find(|entry| entry.id == self.id)
        {
            entry.job = Some(Arc::clone(job));
            self.registered = true;
        }
        drop(registry);
        self.jobs.changed.send_replace(());
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.registered {
            self.jobs.forget(&self.id);
        }
    }
}
