//! A call that Python waits for: a task of the runtime, and what has become of it.
//!
//! ```text
//! pending ──question──► asked ──answer──► pending ──► done (taken once)
//!    └──cancel: the task is dropped, and with it what it started──► done: cancelled
//! ```

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::answer::{Answer, Fault};
use crate::approver::Asked;
use crate::caller::{CALLER, Event, Shared};
use crate::mailbox::Mailbox;
use crate::runtime;

/// How often a thread that waits looks for signals: Python's handlers run only when it does.
const LOOK: Duration = Duration::from_millis(50);
/// How long a call that was broken off may take to drop what it holds.
const DROPPING: Duration = Duration::from_secs(5);

/// Says that the task is gone, however it went.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.over = true;
            state.done.get_or_insert(Err(Fault::Cancelled));
        });
    }
}

/// A call under way.
#[pyclass(frozen, module = "shieling._native")]
pub(crate) struct Call {
    shared: Arc<Shared>,
    task: Option<AbortHandle>,
    process: u32,
}

impl Call {
    /// Begins a call.
    pub(crate) fn begin(work: impl Future<Output = Result<Answer, Fault>> + Send + 'static) -> PyResult<Self> {
        let handle = runtime::handle().map_err(crate::answer::closed)?;
        let shared = Arc::new(Shared::default());
        let gone = Gone(Arc::clone(&shared));
        let task = handle.spawn(async move {
            let shared = Arc::clone(&gone.0);
            let done = CALLER.scope(Arc::clone(&shared), work).await;
            // Before it is told: what the work held is gone by now.
            let mut state = shared.state();
            state.done = Some(done);
            drop(state);
            drop(gone);
        });
        Ok(Self {
            shared,
            task: Some(task.abort_handle()),
            process: std::process::id(),
        })
    }

    /// A call that has ended already.
    pub(crate) fn ended(done: Result<Answer, Fault>) -> Self {
        let shared = Arc::new(Shared::default());
        shared.change(|state| {
            state.done = Some(done);
            state.over = true;
        });
        Self {
            shared,
            task: None,
            process: std::process::id(),
        }
    }

    fn abort(&self) {
        if let Some(task) = &self.task
            && self.process == std::process::id()
        {
            task.abort();
        }
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut state = self.shared.state();
        let event = state.events.pop_front();
        let over = state.over;
        drop(state);
        match event {
            Some(Event::Question(question)) => Ok(Some(
                Py::new(py, Asked::new(*question, Arc::clone(&self.shared)))?.into_any(),
            )),
            Some(Event::Broken) => Ok(Some(false.into_pyobject(py)?.to_owned().into_any().unbind())),
            None if over => Ok(Some(true.into_pyobject(py)?.to_owned().into_any().unbind())),
            None => Ok(None),
        }
    }

    /// Waits until the task is gone, for a while.
    fn wait_for_end(&self) {
        let until = Instant::now() + DROPPING;
        let mut state = self.shared.state();
        while !state.over
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

#[pymethods]
impl Call {
    /// Waits for the next event: `True` once it is over, `False` if the approver failed, or a question.
    ///
    /// An exception of a signal's handler breaks the call off.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.process != std::process::id() {
            return Err(crate::answer::forked());
        }
        loop {
            if let Some(event) = self.next(py)? {
                return Ok(event);
            }
            py.detach(|| {
                let state = self.shared.state();
                if state.events.is_empty() && !state.over {
                    drop(
                        self.shared
                            .changed
                            .wait_timeout(state, LOOK)
                            .unwrap_or_else(PoisonError::into_inner),
                    );
                }
                while runtime::is_left_behind() {
                    // Its next step would be to wait for a lock that nobody gives any more, which ends in undefined
                    // ways before Python 3.14.
                    std::thread::park();
                }
            });
            if let Err(raised) = py.check_signals() {
                self.cancel(py);
                return Err(raised);
            }
        }
    }

    /// The next event, as [`Self::wait`] gives it; `None` if there is none yet.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next(py)
    }

    /// Has a mailbox told with this number, from now on.
    fn arm(&self, mailbox: &Mailbox, number: u64) {
        let mut state = self.shared.state();
        state.letterbox = Some((Arc::clone(&mailbox.0), number));
        if state.over || !state.events.is_empty() {
            mailbox.0.tell(number);
        }
    }

    /// Breaks it off: everything that it started ends. Returns once it is given up.
    fn cancel(&self, py: Python<'_>) {
        self.abort();
        if self.process == std::process::id() {
            py.detach(|| self.wait_for_end());
        }
    }

    /// Breaks it off, and returns at once; `True` is its next event once it is given up.
    fn abandon(&self) {
        self.abort();
    }

    /// What came of it, once: its kind, and its data.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let done = self.shared.state().done.take();
        crate::answer::give(py, done.unwrap_or(Err(Fault::Cancelled)))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.abort();
    }
}
