//! A call that Python waits for, and what has become of it.
//!
//! A thread that waits takes the steps of the call itself, which spares it the way over a thread of the runtime. A call
//! that an event loop waits for becomes a task.
//!
//! ```text
//! held ──wait, arm──► under way ──question──► asked ──answer──► under way ──► done (taken once)
//!   └──────cancel: it is dropped, and with it what it started────────────────► done: cancelled
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::answer::{Answer, Fault};
use crate::approver::Asked;
use crate::caller::{CALLER, Event, Shared};
use crate::mailbox::Mailbox;
use crate::runtime;

/// How often a thread that waits looks for signals: Python's handlers run only when it does.
const LOOK: Duration = Duration::from_millis(50);

/// Says that the call is gone, however it went.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.over = true;
            state.done.get_or_insert(Err(Fault::Cancelled));
        });
    }
}

/// Where the steps of a call are taken.
enum Work {
    /// By the thread that waits for it.
    Held(Pin<Box<dyn Future<Output = ()> + Send>>, Handle),
    /// By the runtime.
    Task(AbortHandle),
    Over,
}

impl Work {
    /// Takes steps until there is an event, it is over, or a while has passed.
    fn go_on(&mut self, shared: &Arc<Shared>) {
        let Self::Held(work, runtime) = self else {
            while shared.is_woken(LOOK) {}
            return;
        };
        let _within = runtime.enter();
        let waker = Waker::from(Arc::clone(shared));
        while shared.is_woken(LOOK) && !runtime::has_ended() {
            let step = || work.as_mut().poll(&mut Context::from_waker(&waker));
            // After a panic it is dropped, and so counts as cancelled.
            if !matches!(catch_unwind(AssertUnwindSafe(step)), Ok(Poll::Pending)) {
                *self = Self::Over;
                return;
            }
        }
    }

    /// Breaks it off.
    fn abort(&mut self) {
        match std::mem::replace(self, Self::Over) {
            Self::Held(work, runtime) => {
                let _within = runtime.enter();
                drop(work);
            }
            Self::Task(task) => {
                task.abort();
                *self = Self::Task(task);
            }
            Self::Over => {}
        }
    }
}

/// A call under way.
#[pyclass(frozen, module = "shieling._native")]
pub(crate) struct Call {
    shared: Arc<Shared>,
    work: Mutex<Work>,
    process: u32,
}

impl Call {
    /// Makes a call, which begins when it is waited for.
    pub(crate) fn begin(work: impl Future<Output = Result<Answer, Fault>> + Send + 'static) -> PyResult<Self> {
        let runtime = runtime::handle().map_err(crate::answer::closed)?;
        let shared = Arc::new(Shared::default());
        let gone = Gone(Arc::clone(&shared));
        let work = async move {
            let shared = Arc::clone(&gone.0);
            let done = CALLER.scope(Arc::clone(&shared), work).await;
            // Before it is told: what the work held is gone by now.
            let mut state = shared.state();
            state.done = Some(done);
            drop(state);
            drop(gone);
        };
        Ok(Self {
            shared,
            work: Mutex::new(Work::Held(Box::pin(work), runtime)),
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
            work: Mutex::new(Work::Over),
            process: std::process::id(),
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abort(&self) {
        if self.process == std::process::id() {
            self.work().abort();
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
}

#[pymethods]
impl Call {
    /// Waits for the next event: `True` once it is over, `False` if the approver failed, or a question.
    ///
    /// An exception of a signal's handler breaks the call off.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            // Also a signal's handler can fork.
            if self.process != std::process::id() {
                return Err(crate::answer::forked());
            }
            if let Some(event) = self.next(py)? {
                return Ok(event);
            }
            py.detach(|| {
                self.work().go_on(&self.shared);
                while runtime::is_left_behind() {
                    if runtime::has_ended() || self.shared.has_news() {
                        // It would wait for a lock that nobody gives any more, which ends in undefined ways before
                        // Python 3.14.
                        std::thread::park();
                    } else {
                        // The environments that are being closed may wait for what it holds.
                        self.work().go_on(&self.shared);
                    }
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
        let mut work = self.work();
        match std::mem::replace(&mut *work, Work::Over) {
            Work::Held(held, runtime) => *work = Work::Task(runtime.spawn(held).abort_handle()),
            other => *work = other,
        }
        drop(work);
        let mut state = self.shared.state();
        state.letterbox = Some((Arc::clone(&mailbox.0), number));
        if state.over || !state.events.is_empty() {
            mailbox.0.tell(number);
        }
    }

    /// Breaks it off: everything that it started ends. Returns once it is given up, for a call that a thread waits for.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.abort());
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
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.process == std::process::id() {
            work.abort();
        } else {
            // What it holds belongs to the process that this one was forked from.
            std::mem::forget(std::mem::replace(work, Work::Over));
        }
    }
}
