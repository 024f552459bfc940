//! A program that is talked to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use shieling::process::{Received, Started};

use crate::answer::{Answer, Fault, Returnable, forked};
use crate::call::Call;

/// Longer than anybody waits.
const EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A program that is talked to. The last handle ends it.
#[pyclass(frozen, module = "shieling._native")]
pub(crate) struct Process {
    /// Only taken when it is dropped.
    started: Option<Arc<Started>>,
    /// What was received of each stream by a call that was given up.
    returned: [Arc<Returned>; 2],
    process: u32,
}

/// What the next call gets before anything else.
#[derive(Default)]
struct Returned(Mutex<VecDeque<Received>>);

impl Returned {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Received>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    fn new(started: Started) -> Self {
        Self {
            started: Some(Arc::new(started)),
            returned: Default::default(),
            process: std::process::id(),
        }
    }

    /// The answer of a call that has started it.
    pub(crate) fn answer(started: Started) -> Answer {
        let make = |py: Python<'_>| Ok(Py::new(py, Self::new(started))?.into_any());
        Answer::Object("started", Box::new(make))
    }

    fn started(&self) -> PyResult<Arc<Started>> {
        let ours = self.started.as_ref().filter(|_| self.process == std::process::id());
        ours.cloned().ok_or_else(forked)
    }
}

#[pymethods]
impl Process {
    fn write(&self, data: &[u8]) -> PyResult<Call> {
        let started = self.started()?;
        let data = data.to_vec();
        Call::begin(async move {
            match started.send(&data).await {
                Ok(()) => Ok(Answer::Nothing),
                Err(error) => Err(Fault::Send(error)),
            }
        })
    }

    fn close_stdin(&self) -> PyResult<Call> {
        let started = self.started()?;
        Call::begin(async move {
            started.send_eof().await;
            Ok(Answer::Nothing)
        })
    }

    /// The next bytes of a stream, waited for so long; without a time as long as it takes.
    #[pyo3(signature = (is_stderr, milliseconds))]
    fn receive(&self, is_stderr: bool, milliseconds: Option<u64>) -> PyResult<Call> {
        let started = self.started()?;
        let wait = milliseconds.map_or(EVER, Duration::from_millis);
        let returned = Arc::clone(&self.returned[usize::from(is_stderr)]);
        Call::begin(async move {
            let waiting = returned.waiting().pop_front();
            let received = match waiting {
                Some(received) => received,
                None if is_stderr => started.recv_stderr(wait).await,
                None => started.recv(wait).await,
            };
            Ok(Answer::Received(Returnable::new(received, move |received| {
                if let Received::Bytes(_) = received {
                    returned.waiting().push_front(received);
                }
            })))
        })
    }

    fn wait(&self) -> PyResult<Call> {
        let started = self.started()?;
        Call::begin(async move { Ok(Answer::Outcome(Box::new(started.wait().await))) })
    }

    fn kill(&self) -> PyResult<Call> {
        let started = self.started()?;
        Call::begin(async move { Ok(Answer::Outcome(Box::new(started.kill().await))) })
    }

    #[getter]
    fn returncode(&self) -> PyResult<Option<i32>> {
        Ok(self.started()?.returncode())
    }

    #[getter]
    fn signal(&self) -> PyResult<Option<i32>> {
        Ok(self.started()?.signal())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The copy in a forked process ends nothing of the other one's.
        if self.process != std::process::id() {
            std::mem::forget(self.started.take());
        }
    }
}
