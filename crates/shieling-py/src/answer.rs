//! What comes of calls, as plain data that any thread can hold, and as Python objects.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pythonize::pythonize;
use serde::Serialize;
use serde_json::json as object;
use shieling::describe::Description;
use shieling::files::{FileContent, FileResponse, FilesError};
use shieling::outcome::Outcome;
use shieling::output::Chunk;
use shieling::policy::Verdict;
use shieling::process::{Received, SendError};
use shieling::session::{JobError, ViewResponse};

/// What a call was made for.
pub(crate) enum Answer {
    Nothing,
    Flag(bool),
    Outcome(Box<Outcome>),
    View(Returnable<Box<ViewResponse>>),
    WaitedFor(bool, Returnable<Box<ViewResponse>>),
    File(Box<FileResponse>),
    Verdict(Box<Verdict>),
    Described(Box<Description>),
    Page(Chunk),
    Received(Returnable<Received>),
    /// An object, made once Python is here to hold it.
    Object(&'static str, Make),
}

/// What can be had once. If the call that got it was given up, nobody takes it, and it goes back for the next one.
pub(crate) struct Returnable<T> {
    value: Option<T>,
    /// Only taken when it goes back.
    back: Option<Box<dyn FnOnce(T) + Send>>,
}

impl<T> Returnable<T> {
    pub(crate) fn new(value: T, back: impl FnOnce(T) + Send + 'static) -> Self {
        Self {
            value: Some(value),
            back: Some(Box::new(back)),
        }
    }

    fn take(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T> Drop for Returnable<T> {
    fn drop(&mut self) {
        if let (Some(value), Some(back)) = (self.value.take(), self.back.take()) {
            back(value);
        }
    }
}

/// Makes an object of Python.
pub(crate) type Make = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Why there is nothing of it.
pub(crate) enum Fault {
    /// It was broken off.
    Cancelled,
    /// An argument is wrong.
    Argument(String),
    /// The environment cannot be had.
    Missing(String),
    /// Nothing was started, and this says why.
    NotStarted(Box<Outcome>),
    Files(FilesError),
    Job(JobError),
    Send(SendError),
}

impl From<FilesError> for Fault {
    fn from(error: FilesError) -> Self {
        Self::Files(error)
    }
}

impl From<JobError> for Fault {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

/// The kind of what came of a call, by which Python knows what to make of it, and its data.
pub(crate) fn give(py: Python<'_>, done: Result<Answer, Fault>) -> PyResult<(&'static str, Bound<'_, PyAny>)> {
    let none = || py.None().into_bound(py);
    Ok(match done {
        Ok(Answer::Nothing) => ("nothing", none()),
        Ok(Answer::Flag(flag)) => ("flag", flag.into_pyobject(py)?.to_owned().into_any()),
        Ok(Answer::Outcome(outcome)) => ("outcome", of(py, &*outcome)?),
        Ok(Answer::View(view)) => ("view", viewed(py, view)?),
        Ok(Answer::WaitedFor(came, view)) => {
            let view = viewed(py, view)?;
            ("waited_for", (came, view).into_pyobject(py)?.into_any())
        }
        Ok(Answer::File(answer)) => ("file", file(py, *answer)?),
        Ok(Answer::Verdict(verdict)) => ("verdict", of(py, &*verdict)?),
        Ok(Answer::Described(description)) => {
            let data = of(py, &*description)?;
            (
                "description",
                (description.to_string(), data).into_pyobject(py)?.into_any(),
            )
        }
        Ok(Answer::Page(chunk)) => {
            let next = (!chunk.end).then_some(chunk.next_cursor);
            let page = (PyBytes::new(py, &chunk.bytes), next).into_pyobject(py)?;
            ("page", page.into_any())
        }
        Ok(Answer::Received(received)) => match received.take() {
            Some(Received::Bytes(bytes)) => ("bytes", PyBytes::new(py, &bytes).into_any()),
            Some(Received::End) => ("bytes", PyBytes::new(py, b"").into_any()),
            Some(Received::TimedOut) | None => ("timed_out", none()),
        },
        Ok(Answer::Object(kind, make)) => (kind, make(py)?.into_bound(py)),
        Err(Fault::Cancelled) => ("cancelled", none()),
        Err(Fault::Argument(what)) => ("argument", PyString::new(py, &what).into_any()),
        Err(Fault::Missing(what)) => ("missing", PyString::new(py, &what).into_any()),
        Err(Fault::NotStarted(outcome)) => ("not_started", of(py, &*outcome)?),
        Err(Fault::Files(FilesError::Refused { denial, .. })) => ("refused", of(py, &denial)?),
        Err(Fault::Files(error)) => ("file_error", file_error(py, &error)?),
        Err(Fault::Job(JobError::Refused(denial))) => ("refused", of(py, &*denial)?),
        Err(Fault::Job(error)) => (
            "job_error",
            (job_code(&error), error.to_string()).into_pyobject(py)?.into_any(),
        ),
        Err(Fault::Send(error)) => {
            let sent = match error {
                SendError::NobodyReads { sent } => sent,
                SendError::Closed => 0,
            };
            ("input_closed", (error.to_string(), sent).into_pyobject(py)?.into_any())
        }
    })
}

/// Anything that can be JSON, as Python has it.
pub(crate) fn of<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    pythonize(py, value).map_err(internal)
}

/// What should not happen.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("an answer could not be told: {error}"))
}

/// The exception of a process or an interpreter that does nothing more.
pub(crate) fn closed(why: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("shieling._errors")
            .and_then(|errors| errors.getattr("ClosedError"))
            .and_then(|class| class.call1((why,)));
        match made {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

/// The exception of something that belongs to another process.
pub(crate) fn forked() -> PyErr {
    closed(
        "this belongs to the process that this one was forked from; make a new `Shieling` here, or use \
         `multiprocessing` with `spawn`"
            .to_owned(),
    )
}

fn viewed(py: Python<'_>, view: Returnable<Box<ViewResponse>>) -> PyResult<Bound<'_, PyAny>> {
    let Some(view) = view.take() else {
        return Err(internal("it was taken before"));
    };
    let made = PyDict::new(py);
    made.set_item("outcome", of(py, &view.outcome)?)?;
    made.set_item("cursor", view.cursor)?;
    made.set_item("missed_bytes", view.missed_bytes)?;
    made.set_item("command", &view.command)?;
    let screen = view.screen.as_ref().map(|screen| {
        object!({
            "rows": screen.size.rows,
            "columns": screen.size.columns,
            "text": screen.text,
            "cursor": screen.cursor,
            "alternate": screen.alternate,
            "title": screen.title,
        })
    });
    made.set_item("screen", of(py, &screen)?)?;
    Ok(made.into_any())
}

/// An answer about files. Bytes stand beside what is JSON.
fn file(py: Python<'_>, answer: FileResponse) -> PyResult<Bound<'_, PyAny>> {
    let made = of(py, &answer)?;
    if let FileResponse::Read(read) = answer
        && let FileContent::Image { bytes, .. } | FileContent::Whole { bytes } = read.content
    {
        made.set_item("data", PyBytes::new(py, &bytes))?;
    }
    Ok(made)
}

fn file_error<'py>(py: Python<'py>, error: &FilesError) -> PyResult<Bound<'py, PyAny>> {
    let details = match error {
        FilesError::BeyondEnd { lines, .. } => object!({ "lines": lines }),
        FilesError::Stale { now, diff, .. } => object!({ "now": now, "diff": diff }),
        FilesError::NoMatch { nearest, .. } => object!({ "nearest": nearest }),
        FilesError::Ambiguous { count, lines, .. } => object!({ "count": count, "lines": lines }),
        FilesError::TooLarge { size, limit, .. } => object!({ "size": size, "limit": limit }),
        FilesError::BadPatch { line, .. } => object!({ "line": line }),
        FilesError::Misfit { hunk, nearest, .. } => object!({ "hunk": hunk, "nearest": nearest }),
        FilesError::Argument { argument, .. } => object!({ "argument": argument }),
        _ => object!({}),
    };
    let words = shieling::outcome::with_causes(error);
    let made: Bound<'py, PyTuple> = (error.code(), words, of(py, &details)?).into_pyobject(py)?;
    Ok(made.into_any())
}

/// Which it is, for programs.
pub(crate) fn job_code(error: &JobError) -> &'static str {
    match error {
        JobError::Unknown { .. } => "unknown",
        JobError::Ended { .. } => "ended",
        JobError::NoInput { .. } => "no_input",
        JobError::NoTerminal { .. } => "no_terminal",
        JobError::Size(_) => "size",
        JobError::Full { .. } => "full",
        JobError::PersonHolds { .. } => "person_holds",
        JobError::UnknownKey { .. } => "unknown_key",
        JobError::Pattern(_) => "pattern",
        JobError::OwnNetwork { .. } => "own_network",
        JobError::TooMany { .. } => "too_many",
        JobError::Closed => "closed",
        JobError::TooLong { .. } => "too_long",
        JobError::Unrecorded(_) => "unrecorded",
        JobError::Refused(_) => "refused",
        _ => "other",
    }
}
