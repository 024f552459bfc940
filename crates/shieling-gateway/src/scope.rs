//! Tasks that end with what they belong to.

use std::future::Future;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// A set of tasks. Handles can be cloned into the tasks themselves; [`ScopeGuard`] ends them all.
#[derive(Clone)]
pub(crate) struct Scope {
    runtime: Handle,
    /// `None` once it is closed.
    tasks: Arc<Mutex<Option<JoinSet<()>>>>,
}

impl Scope {
    /// A scope that ends with its guard.
    pub(crate) fn new(runtime: Handle) -> (Self, ScopeGuard) {
        let scope = Self {
            runtime,
            tasks: Arc::new(Mutex::new(Some(JoinSet::new()))),
        };
        (scope.clone(), ScopeGuard(scope))
    }

    /// The runtime on which tasks run.
    pub(crate) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// Starts a task. Does nothing after the end of the scope.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = self.tasks.lock().expect("no panic while held").as_mut() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn_on(task, &self.runtime);
        }
    }
}

impl<F: Future + Send + 'static> hyper::rt::Executor<F> for Scope {
    fn execute(&self, task: F) {
        self.spawn(async move {
            task.await;
        });
    }
}

/// Ends the tasks of a [`Scope`] when it is dropped.
pub(crate) struct ScopeGuard(Scope);

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        // The tasks' futures are dropped after the lock is released, since they hold handles of the scope.
        let tasks = self.0.tasks.lock().expect("no panic while held").take();
        drop(tasks);
    }
}
