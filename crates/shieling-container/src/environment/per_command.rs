//! A container for each command: made for it with the limits of all, and removed once nothing of the command is left,
//! however that ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shieling::approval::Approved;
use shieling::environment::Environment as _;
use shieling::process::{AtEnd, Process, SpawnError, Streams};
use shieling::request::Command;

use super::inner::{Inner, Running, in_background, spawn_error};
use crate::error::ContainerError;

/// How long to wait between two looks at what is removed.
const LOOKING: Duration = Duration::from_millis(10);

/// A container in which one command runs. Dropping it removes the container in the background.
struct Single {
    inner: Arc<Inner>,
    running: Arc<Running>,
    number: u64,
}

impl Drop for Single {
    fn drop(&mut self) {
        let (inner, running, number) = (Arc::clone(&self.inner), Arc::clone(&self.running), self.number);
        in_background(async move { inner.end_single(number, &running).await });
    }
}

/// Counts a start.
struct Starting<'a>(&'a AtomicUsize);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// Starts a command in a container of its own.
    pub(super) async fn spawn_alone(
        self: &Arc<Self>,
        command: Approved<Command>,
        streams: Streams,
    ) -> Result<Process, SpawnError> {
        let single = self.start_single().await.map_err(spawn_error)?;
        let process = single.running.remote.spawn(command, streams).await?;
        Ok(process.with_end(AtEnd::new(move || drop(single))))
    }

    async fn start_single(self: &Arc<Self>) -> Result<Single, ContainerError> {
        self.alone.starting.fetch_add(1, Ordering::Relaxed);
        let _starting = Starting(&self.alone.starting);
        let running = Arc::new(self.begun().await?);
        let number = self.alone.last.fetch_add(1, Ordering::Relaxed);
        self.alone.lock().insert(number, Arc::clone(&running));
        self.alone.set_latest(&running);
        Ok(Single {
            inner: Arc::clone(self),
            running,
            number,
        })
    }

    /// Sees that a container can be made, and learns what it is like, unless that is known.
    pub(super) async fn try_single(self: &Arc<Self>) -> Result<(), ContainerError> {
        if self.alone.latest().is_some() {
            return Ok(());
        }
        let single = self.start_single().await?;
        self.end_single(single.number, &single.running).await;
        Ok(())
    }

    async fn end_single(&self, number: u64, running: &Running) {
        self.end_and_tell(running).await;
        self.alone.lock().remove(&number);
    }

    /// Whether all containers whose link is over are known to be removed, waited for so long at most.
    pub(super) async fn ended_are_removed(&self, at_most: Duration) -> bool {
        let removed = async {
            while self.alone.lock().values().any(|running| running.remote.end().is_some()) {
                tokio::time::sleep(LOOKING).await;
            }
        };
        tokio::time::timeout(at_most, removed).await.is_ok() && !self.may_have_left()
    }

    /// Gives up starts that take long, and ends all that runs in such containers.
    pub(super) async fn end_all_single(self: &Arc<Self>) {
        let started = async {
            while self.alone.starting.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(LOOKING).await;
            }
        };
        if tokio::time::timeout(self.engine.quick(), started).await.is_err() {
            self.may_leave(&ContainerError::Closed);
            while self.alone.starting.load(Ordering::Relaxed) > 0 {
                self.given_up.notify_waiters();
                tokio::time::sleep(LOOKING).await;
            }
        }
        let all: Vec<_> = self
            .alone
            .lock()
            .iter()
            .map(|(at, one)| (*at, Arc::clone(one)))
            .collect();
        let mut ends = tokio::task::JoinSet::new();
        for (number, running) in all {
            let inner = Arc::clone(self);
            ends.spawn(async move { inner.end_single(number, &running).await });
        }
        while ends.join_next().await.is_some() {}
    }
}
