//! A call that Python waits for, and what has become of it.
//!
//! It is a future. Most calls are short, and for a moment the main thread polls the future itself, which spares two changes
//! of threads. A call that takes longer, or that another thread or an event loop waits for, is a task of the runtime: so
//! nothing that Python does, or does not get to do, holds up what is under way, and a small stack of a thread is no danger.
//!
//! ```text
//! held ──polled, ≤ 50 ms──► task ──question──► asked ──answer──► task ──► done (taken once)
//!   └──────cancel: it is dropped, and with it what it started──────────► done: cancelled
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::answer::{Answer, Fault};
use crate::approver::Asked;
use crate::caller::{CALLER, Event, Shared};
use crate::mailbox::Mailbox;
use crate::runtime;

/// How often a thread that waits looks for signals: Python's handlers run only when it does.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
/// The same for other threads, on which no handler runs.
const OTHER_CHECK: Duration = Duration::from_secs(1);
/// How long a call that was cancelled may take to drop what it holds.
const DROPPING: Duration = Duration::from_secs(5);

/// Says that the call is gone, however it went.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Where a call's future is.
enum Work {
    /// Here, and polled by the thread that waits, if by any.
    Held(Pin<Box<dyn Future<Output = ()> + Send>>, Handle),
    /// A task of the runtime.
    Task(AbortHandle),
    Over,
}

impl Work {
    /// Polls the future until it is done, has news for Python, or this time has come.
    fn poll_until(&mut self, until: Instant, shared: &Arc<Shared>) {
        let Self::Held(work, runtime) = self else {
            return;
        };
        let _within = runtime.enter();
        let waker = Waker::from(Arc::clone(shared));
        while shared.wait_for_wake(until) && Instant::now() < until {
            let poll = || work.as_mut().poll(&mut Context::from_waker(&waker));
            // After a panic it is dropped, and so counts as cancelled.
            if !matches!(catch_unwind(AssertUnwindSafe(poll)), Ok(Poll::Pending)) {
                *self = Self::Over;
                return;
            }
        }
    }

    /// Makes it a task.
    fn hand_over(&mut self) {
        match std::mem::replace(self, Self::Over) {
            Self::Held(work, runtime) => *self = Self::Task(runtime.spawn(work).abort_handle()),
            other => *self = other,
        }
    }

    /// Breaks it off.
    fn abort(&mut self) {
        match std::mem::replace(self, Self::Over) {
            Self::Held(work, runtime) => {
                let _within = runtime.enter();
                drop(work);
            }
            Self::Task(task) => task.abort(),
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
        Self::sharing(Arc::new(Shared::default()), work)
    }

    /// Makes a call that shares this.
    pub(crate) fn sharing(
        shared: Arc<Shared>,
        work: impl Future<Output = Result<Answer, Fault>> + Send + 'static,
    ) -> PyResult<Self> {
        let runtime = runtime::handle().map_err(crate::answer::closed)?;
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
            self.shared.give_up();
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
    /// An exception of a signal's handler leaves the call to the caller, who cancels it as after any other.
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
                let is_main = rustix::thread::gettid() == rustix::process::getpid();
                let until = Instant::now() + if is_main { SIGNAL_CHECK } else { OTHER_CHECK };
                let mut work = self.work();
                if is_main {
                    work.poll_until(until, &self.shared);
                }
                work.hand_over();
                drop(work);
                self.shared.wait_for_news(until);
                while runtime::is_left_behind() {
                    // Its next step would be to wait for a lock that nobody gives any more, which ends in undefined
                    // ways before Python 3.14.
                    std::thread::park();
                }
            });
            py.check_signals()?;
        }
    }

    /// The next event, as [`Self::wait`] gives it; `None` if there is none yet.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next(py)
    }

    /// Has a mailbox told with this number, from now on.
    fn arm(&self, mailbox: &Mailbox, number: u64) {
        self.work().hand_over();
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
            py.detach(|| self.shared.wait_for_end(Instant::now() + DROPPING));
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
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.process == std::process::id() {
            work.abort();
            self.shared.give_up();
        } else {
            // What it holds belongs to the process that this one was forked from.
            std::mem::forget(std::mem::replace(work, Work::Over));
        }
    }
}
