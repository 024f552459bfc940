//! Who is asked: a Python function. The question travels to whoever waits for the call in which it came up.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shieling::approval::{Answer, AnswerFuture, Approver, GrantLimits, Question, Scope};
use shieling::request::RequestKind;
use tokio::sync::oneshot;

use crate::answer::of;
use crate::caller::{Asking, CALLER, Shared};

/// Asks by way of the call in which a question comes up. One that comes up in none, as about a connection, goes to whoever
/// listens for such.
pub(crate) struct ByCall {
    apart: Arc<Apart>,
}

impl ByCall {
    pub(crate) fn new(apart: Arc<Apart>) -> Self {
        Self { apart }
    }
}

/// Where questions go that come up in no call.
#[derive(Default)]
pub(crate) struct Apart {
    pub(crate) shared: Arc<Shared>,
    /// Whether somebody listens, or has.
    pub(crate) is_heard: AtomicBool,
}

impl Apart {
    /// Passes a question on. Returns whether anybody listens.
    fn ask(&self, asking: Asking) -> bool {
        let hears = self.is_heard.load(Ordering::Acquire) && !self.shared.state().over;
        if hears {
            self.shared.ask(asking);
        }
        hears
    }
}

impl Approver for ByCall {
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = Arc::new(AtomicBool::new(false));
            let _gone = Withdrawn(Arc::clone(&gone));
            let asking = Asking {
                question: question.clone(),
                answer,
                gone,
            };
            let caller = CALLER.try_with(Arc::clone);
            match caller {
                Ok(caller) => caller.ask(asking),
                Err(_) if self.apart.ask(asking) => {}
                Err(_) => return Answer::Nobody,
            }
            answered.await.unwrap_or(Answer::Nobody)
        })
    }
}

/// A question that nobody waits for an answer to any more.
struct Withdrawn(Arc<AtomicBool>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A question, for Python.
#[pyclass(frozen, module = "shieling._native")]
pub(crate) struct Asked {
    question: Question,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
    gone: Arc<AtomicBool>,
    caller: Arc<Shared>,
}

impl Asked {
    pub(crate) fn new(asking: Asking, caller: Arc<Shared>) -> Self {
        Self {
            question: asking.question,
            answer: Mutex::new(Some(asking.answer)),
            gone: asking.gone,
            caller,
        }
    }

    fn give(&self, answer: Answer) {
        let sender = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }
}

#[pymethods]
impl Asked {
    /// What is asked.
    fn question<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let question = &self.question;
        let value = serde_json::json!({
            "kind": match question.kind { RequestKind::Files => "files", RequestKind::Command => "command", RequestKind::Network => "network" },
            "text": question.text,
            "change": question.change,
            "cwd": question.cwd.to_string_lossy(),
            "variables": question.variables,
            "verdict": serde_json::to_value(&question.verdict).map_err(crate::answer::internal)?,
            "environment": question.environment,
            "session": question.session,
            "files": question.files.iter().map(|(path, _)| path.to_string_lossy()).collect::<Vec<_>>(),
            "changed": question.changed.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        });
        of(py, &value)
    }

    /// Whether nobody waits for the answer any more.
    #[getter]
    fn gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Says yes, this far.
    fn yes(&self, scope: &str, prefix: Vec<String>, uses: Option<u32>, seconds: Option<f64>) -> PyResult<()> {
        let mut limits = GrantLimits::default();
        if let Some(uses) = uses {
            limits.uses = NonZeroU32::new(uses).ok_or_else(|| PyValueError::new_err("a yes for 0 starts is none"))?;
        }
        if let Some(seconds) = seconds {
            limits.lasts = Duration::try_from_secs_f64(seconds)
                .map_err(|_| PyValueError::new_err(format!("a yes cannot hold for {seconds} seconds")))?;
        }
        let scope = match scope {
            "once" => Scope::Once,
            "always" => Scope::Always,
            "exact" => Scope::Exact(limits),
            "prefix" => Scope::Prefix(prefix, limits),
            "session" => Scope::Session(limits),
            other => return Err(PyValueError::new_err(format!("there is no scope `{other}`"))),
        };
        self.give(Answer::Yes(scope));
        Ok(())
    }

    /// Says no.
    fn no(&self, because: String) {
        self.give(Answer::No(because));
    }

    /// Says that nobody is there.
    fn nobody(&self) {
        self.give(Answer::Nobody);
    }

    /// Has the call end, with what Python keeps.
    fn fail(&self) {
        self.caller.fail();
    }
}
