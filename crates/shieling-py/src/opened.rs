//! An environment, for Python: one method for each thing that can be asked of it, which begins a [`Call`].

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shieling::files::{
    DeleteRequest, EditRequest, FileHash, FileRequest, FilesError, GlobRequest, GrepMode, GrepRequest, Include,
    ListRequest, MoveRequest, PatchRequest, ReadRequest, StatRequest, WriteRequest,
};
use shieling::outcome::Outcome;
use shieling::output::{self as outputs, Stream};
use shieling::process::Streams;
use shieling::request::Command;
use shieling::session::{
    JobId, JobInput, JobRequest, OnTimeout, SessionName, TerminalSize, Until, ViewRequest, ViewResponse, WaitFor,
};
use shieling::units::ByteCount;
use shieling_cli::embed::{Adjust, Embedded, Opening};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{OwnedMutexGuard, oneshot};

use crate::answer::{Answer, Fault, Returnable, closed, forked, job_code, of};
use crate::approver::{Apart, ByCall};
use crate::call::Call;
use crate::process::Process;
use crate::runtime;

/// Longer than anybody waits.
const EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A place in a queue, taken when it is made.
struct Place(
    Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>,
    Option<OwnedMutexGuard<()>>,
);

impl Place {
    fn take(queue: &Arc<tokio::sync::Mutex<()>>) -> Self {
        let mut turn: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(Arc::clone(queue).lock_owned());
        // A mutex of tokio serves in the order of the first polls.
        let taken = match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => None,
        };
        Self(turn, taken)
    }

    /// Awaits a future, which is polled for the first time when it is this place's turn, and so queues in that order where
    /// it has to wait.
    async fn run<F: Future>(self, future: F) -> F::Output {
        let mut turn = Some(match self.1 {
            Some(turn) => turn,
            None => self.0.await,
        });
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            turn = None;
            polled
        })
        .await
    }
}

/// An environment. The last handle ends what it runs.
#[pyclass(frozen, module = "shieling._native")]
pub(crate) struct Core {
    /// Only taken when it is dropped.
    embedded: Option<Arc<Embedded>>,
    process: u32,
    closed: AtomicBool,
    /// Where questions go that come up in no call, if there are any.
    apart: Option<Arc<Apart>>,
    /// Ends the call that listens for those questions once it is dropped.
    listened: Mutex<Option<oneshot::Sender<()>>>,
    /// Has the commands of sessions queue in the order of their calls: their tasks begin in any order.
    order: Arc<tokio::sync::Mutex<()>>,
}

/// Opens an environment; nothing starts. What is wrong is a `ValueError`.
#[pyfunction]
pub(crate) fn open(
    py: Python<'_>,
    settings: &str,
    workspace: PathBuf,
    answer_timeout_ms: u64,
    asks: bool,
    store_output: bool,
    output_limit: Option<u64>,
) -> PyResult<Core> {
    let handle = runtime::handle().map_err(closed)?;
    let apart = asks.then(Arc::<Apart>::default);
    let opening = Opening {
        approver: apart.clone().map(|apart| Arc::new(ByCall::new(apart)) as _),
        answer_timeout: Some(Duration::from_millis(answer_timeout_ms)),
        store_output,
        output_limit: output_limit.map(ByteCount::bytes),
    };
    let opened = py.detach(|| {
        let _within = handle.enter();
        Embedded::open(settings, &workspace, opening)
    });
    let embedded = opened.map_err(PyValueError::new_err)?;
    runtime::remember(embedded.shieling());
    Ok(Core {
        apart: apart.filter(|_| embedded.opens_hosts()),
        listened: Mutex::default(),
        embedded: Some(Arc::new(embedded)),
        process: std::process::id(),
        closed: AtomicBool::new(false),
        order: Arc::default(),
    })
}

/// A part of a command's whole output.
#[pyfunction]
pub(crate) fn output(id: String, stderr: bool, cursor: u64, limit: u64) -> PyResult<Call> {
    Call::begin(async move {
        let Some(directory) = Embedded::outputs() else {
            return Err(Fault::Argument("no outputs are kept here".to_owned()));
        };
        let stream = if stderr { Stream::Stderr } else { Stream::Stdout };
        let read = tokio::task::spawn_blocking(move || {
            outputs::read_spilled(&directory, &id, stream, cursor, ByteCount::bytes(limit))
        });
        match read.await {
            Ok(read) => read
                .map(Answer::Page)
                .map_err(|error| Fault::Argument(error.to_string())),
            Err(error) => Err(Fault::Argument(error.to_string())),
        }
    })
}

/// What one command has of its own.
///
/// Its directory, its variables, its time in milliseconds, and the bytes of each stream that are kept.
#[derive(FromPyObject)]
struct Own(Option<PathBuf>, Vec<(String, Option<String>)>, Option<u64>, Option<u64>);

impl From<Own> for Adjust {
    fn from(Own(cwd, variables, deadline_ms, output_kept): Own) -> Self {
        Self {
            cwd,
            variables,
            deadline: deadline_ms.map(Duration::from_millis),
            output_kept: output_kept.map(ByteCount::bytes),
        }
    }
}

impl Core {
    fn embedded(&self) -> PyResult<&Arc<Embedded>> {
        let ours = self.embedded.as_ref().filter(|_| self.process == std::process::id());
        ours.ok_or_else(forked)
    }

    /// What a new call needs.
    fn open(&self) -> PyResult<Arc<Embedded>> {
        let embedded = self.embedded()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(closed(
                "this `Shieling` was closed, and nothing starts in it any more".to_owned(),
            ));
        }
        Ok(Arc::clone(embedded))
    }

    fn command(embedded: &Embedded, text: &str, own: Own) -> Result<Command, Fault> {
        embedded.command(text, own.into()).map_err(Fault::Argument)
    }

    fn file(&self, ask: FileRequest) -> PyResult<Call> {
        let embedded = self.open()?;
        Call::begin(async move {
            let answer = embedded.shieling().file(ask).await?;
            Ok(Answer::File(Box::new(answer)))
        })
    }
}

fn session_name(name: &str) -> Result<SessionName, Fault> {
    name.parse().map_err(|error| {
        Fault::Argument(format!(
            "no session can have the name `{}`: {error}",
            name.escape_debug()
        ))
    })
}

fn job_id(id: &str) -> Result<JobId, Fault> {
    id.parse()
        .map_err(|error| Fault::Argument(format!("no job can have the name `{}`: {error}", id.escape_debug())))
}

fn or_ended<T>(made: Result<T, Fault>, then: impl FnOnce(T) -> PyResult<Call>) -> PyResult<Call> {
    match made {
        Ok(made) => then(made),
        Err(fault) => Ok(Call::ended(Err(fault))),
    }
}

#[pymethods]
impl Core {
    #[getter]
    fn environment(&self) -> PyResult<String> {
        Ok(self.embedded()?.shieling().environment().name().to_owned())
    }

    #[getter]
    fn workspace(&self) -> PyResult<PathBuf> {
        Ok(self.embedded()?.workspace().to_owned())
    }

    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether questions can come up in no call.
    #[getter]
    fn asks_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// A call whose events are the questions that come up in no other call; it is over once this is closed or dropped. Made
    /// once.
    fn questions_apart(&self) -> PyResult<Option<Call>> {
        self.embedded()?;
        let Some(apart) = &self.apart else { return Ok(None) };
        if self.closed.load(Ordering::Acquire) || apart.is_heard.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        let (alive, gone) = oneshot::channel();
        *self.listened.lock().unwrap_or_else(PoisonError::into_inner) = Some(alive);
        let until_gone = async move {
            let _ = gone.await;
            Ok(Answer::Nothing)
        };
        Call::sharing(Arc::clone(&apart.shared), until_gone).map(Some)
    }

    fn close(&self) -> PyResult<Call> {
        let embedded = Arc::clone(self.embedded()?);
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(Call::ended(Ok(Answer::Nothing)));
        }
        let listened = self.listened.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The interpreter's exit has done it, or does.
        match runtime::handle() {
            Err(_) => Ok(Call::ended(Ok(Answer::Nothing))),
            Ok(handle) => {
                // It is done whether or not somebody waits for it.
                let done = handle.spawn(async move {
                    embedded.shieling().close().await;
                    drop(listened);
                });
                Call::begin(async move {
                    let _ = done.await;
                    Ok(Answer::Nothing)
                })
            }
        }
    }

    /// What became of changes that come back when it is closed, and what went wrong then: once, after it was closed.
    fn take_settled<'py>(&self, py: Python<'py>) -> PyResult<(Option<Bound<'py, PyAny>>, Option<String>)> {
        let environment = self.embedded()?.shieling().environment();
        let (changes, error) = environment.settled_at_close().unzip();
        let changes = changes.map(|changes| of(py, &changes)).transpose()?;
        let left = environment.left_at_close();
        let error = match (error.flatten(), left) {
            (Some(error), Some(left)) => Some(format!("{error}; {left}")),
            (error, left) => error.or(left),
        };
        Ok((changes, error))
    }

    /// Runs a command in a process of its own, to its end. `stdin` is all of its input.
    fn run(&self, text: String, own: Own, stdin: Option<&[u8]>) -> PyResult<Call> {
        let embedded = self.open()?;
        let stdin = stdin.filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec);
        or_ended(Self::command(&embedded, &text, own), |command| {
            Call::begin(async move {
                let mut outcome = match stdin {
                    None => embedded.shieling().run(command, None).await,
                    Some(bytes) => run_fed(&embedded, command, bytes).await,
                };
                embedded.explain(&mut outcome).await;
                Ok(Answer::Outcome(Box::new(outcome)))
            })
        })
    }

    /// Runs a command as a job: in a session, or in a process of its own, which goes on at the end of its time if
    /// `background` or `goes_on` say so.
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of one Python call")]
    fn shell(
        &self,
        text: String,
        own: Own,
        session: Option<String>,
        goes_on: bool,
        background: bool,
        terminal: Option<(u16, u16)>,
        id: Option<String>,
    ) -> PyResult<Call> {
        let embedded = self.open()?;
        let made = || -> Result<(Option<SessionName>, JobRequest), Fault> {
            let mut request = JobRequest::new(Self::command(&embedded, &text, own)?);
            if !goes_on && !background {
                request.on_timeout = OnTimeout::Kill;
            }
            request.terminal = terminal
                .map(|(rows, columns)| TerminalSize { rows, columns }.checked())
                .transpose()
                .map_err(|error| Fault::Argument(error.to_string()))?;
            request.id = id.as_deref().map(job_id).transpose()?;
            // Python's `background` returns a job and drops the outcome.
            request.unread = background;
            Ok((session.as_deref().map(session_name).transpose()?, request))
        };
        or_ended(made(), |(session, request)| {
            let session = session.map(|name| (name, (!background).then(|| Place::take(&self.order))));
            Call::begin(async move {
                let shieling = embedded.shieling();
                let mut outcome = match session {
                    Some((name, Some(place))) => place.run(shieling.session(name).run(request)).await,
                    Some((name, None)) => shieling.session(name).start(request).await,
                    None if background => shieling.start_job(request).await,
                    None => shieling.run_job(request).await,
                };
                embedded.explain(&mut outcome).await;
                if background && outcome.job.is_none() {
                    return Err(Fault::NotStarted(Box::new(outcome)));
                }
                Ok(Answer::Outcome(Box::new(outcome)))
            })
        })
    }

    /// Starts a program that is talked to.
    fn start(&self, text: String, own: Own) -> PyResult<Call> {
        let embedded = self.open()?;
        or_ended(Self::command(&embedded, &text, own), |command| {
            Call::begin(async move {
                match embedded.shieling().start(command).await {
                    Ok(started) => Ok(Process::answer(started)),
                    Err(mut outcome) => {
                        embedded.explain(&mut outcome).await;
                        Err(Fault::NotStarted(outcome))
                    }
                }
            })
        })
    }

    fn why(&self, text: String, own: Own) -> PyResult<Call> {
        let embedded = self.embedded()?.clone();
        or_ended(Self::command(&embedded, &text, own), |command| {
            Call::begin(async move {
                // It looks files up.
                let judged = tokio::task::spawn_blocking(move || embedded.shieling().judge(&command)).await;
                let verdict = judged.map_err(|error| Fault::Argument(error.to_string()))?;
                Ok(Answer::Verdict(Box::new(verdict)))
            })
        })
    }

    fn describe(&self, tools: Option<Vec<String>>) -> PyResult<Call> {
        let embedded = self.open()?;
        Call::begin(async move {
            let described = embedded.describe(tools.as_deref()).await;
            described
                .map(|it| Answer::Described(Box::new(it)))
                .map_err(Fault::Missing)
        })
    }

    fn revoke_all(&self) -> PyResult<()> {
        self.embedded()?.shieling().approvals().revoke_all();
        Ok(())
    }

    /// The sessions and jobs.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        of(py, &self.embedded()?.shieling().list())
    }

    /// Whether this can be the name of a session.
    fn check_session(&self, name: &str) -> bool {
        name.parse::<SessionName>().is_ok()
    }

    /// Ends a session with what it runs.
    fn stop_session(&self, name: &str) -> PyResult<Call> {
        let embedded = self.embedded()?.clone();
        or_ended(session_name(name), |name| {
            Call::begin(async move { Ok(Answer::Flag(embedded.shieling().session(name).stop().await)) })
        })
    }

    fn end_session(&self, name: &str) -> PyResult<Call> {
        let embedded = self.embedded()?;
        Ok(Call::ended(
            session_name(name).map(|name| Answer::Flag(embedded.shieling().session(name).close())),
        ))
    }

    fn view(
        &self,
        id: &str,
        cursor: Option<u64>,
        until: &str,
        wait_ms: u64,
        screen: bool,
        peek: bool,
    ) -> PyResult<Call> {
        let embedded = self.open()?;
        let until = match until {
            "output" => Until::Output,
            "quiet" => Until::Quiet,
            "exit" => Until::Exit,
            other => {
                let wrong = format!(
                    "`wait_for` is `{}`, and can be `output`, `quiet` or `exit`",
                    other.escape_debug()
                );
                return Ok(Call::ended(Err(Fault::Argument(wrong))));
            }
        };
        or_ended(job_id(id), |job| {
            let ask = ViewRequest {
                cursor,
                wait: Duration::from_millis(wait_ms),
                until,
                screen,
                ..ViewRequest::new(job)
            };
            Call::begin(async move {
                let shieling = embedded.shieling();
                if peek {
                    let view = shieling.peek(ask).await?;
                    return Ok(Answer::View(Returnable::new(Box::new(view), drop)));
                }
                let job = ask.job.clone();
                let view = shieling.view(ask).await?;
                Ok(Answer::View(viewed(&embedded, job, view)))
            })
        })
    }

    fn job_write(&self, id: &str, text: String, keys: Vec<String>, enter: bool, wait_ms: u64) -> PyResult<Call> {
        let embedded = self.open()?;
        or_ended(job_id(id), |job| {
            Call::begin(async move {
                let input = JobInput { text, keys, enter };
                let view = embedded
                    .shieling()
                    .write(&job, input, Duration::from_millis(wait_ms))
                    .await?;
                Ok(Answer::View(viewed(&embedded, job, view)))
            })
        })
    }

    /// The outcome of a job, waited for so long; without a time as long as it takes. Nothing counts as seen by it.
    fn job_wait(&self, id: &str, wait_ms: Option<u64>) -> PyResult<Call> {
        let embedded = self.open()?;
        or_ended(job_id(id), |job| {
            Call::begin(async move {
                let wait = wait_ms.map_or(EVER, Duration::from_millis);
                let outcome = embedded.shieling().job_outcome(&job, wait).await?;
                Ok(Answer::Outcome(Box::new(outcome)))
            })
        })
    }

    fn job_wait_for(&self, id: &str, pattern: Option<String>, port: Option<u16>, budget_ms: u64) -> PyResult<Call> {
        let embedded = self.open()?;
        let what = match (pattern, port) {
            (Some(pattern), _) => WaitFor::Pattern(pattern),
            (None, Some(port)) => WaitFor::Port(port),
            (None, None) => WaitFor::Exit,
        };
        or_ended(job_id(id), |job| {
            Call::begin(async move {
                let budget = Duration::from_millis(budget_ms);
                let (came, view) = embedded.shieling().wait_for(&job, what, budget).await?;
                Ok(Answer::WaitedFor(came, viewed(&embedded, job, view)))
            })
        })
    }

    fn job_kill(&self, id: &str) -> PyResult<Call> {
        let embedded = self.open()?;
        or_ended(job_id(id), |job| {
            Call::begin(async move {
                embedded.shieling().kill(&job).await?;
                let outcome = embedded.shieling().job_outcome(&job, Duration::ZERO).await?;
                Ok(Answer::Outcome(Box::new(outcome)))
            })
        })
    }

    /// Changes the size of a job's terminal. Why that cannot be, if it cannot: its code, and words.
    fn job_resize(&self, id: &str, rows: u16, columns: u16) -> PyResult<Option<(&'static str, String)>> {
        let embedded = self.open()?;
        let Ok(job) = id.parse() else {
            return Ok(Some(("unknown", format!("there is no job `{}`", id.escape_debug()))));
        };
        // The terminal is the runtime's.
        let handle = runtime::handle().map_err(closed)?;
        let _within = handle.enter();
        let resized = embedded.shieling().resize(&job, TerminalSize { rows, columns });
        Ok(resized.err().map(|error| (job_code(&error), error.to_string())))
    }

    fn read_file(&self, path: PathBuf, offset: u64, limit: u64, max_bytes: u64, max_image: u64) -> PyResult<Call> {
        self.file(FileRequest::Read(ReadRequest {
            offset,
            limit,
            max_bytes: ByteCount::bytes(max_bytes),
            max_image: Some(ByteCount::bytes(max_image)),
            ..ReadRequest::new(path)
        }))
    }

    fn read_bytes(&self, path: PathBuf, max_bytes: u64) -> PyResult<Call> {
        self.file(FileRequest::Read(ReadRequest {
            whole: Some(ByteCount::bytes(max_bytes)),
            ..ReadRequest::new(path)
        }))
    }

    fn write_file(&self, path: PathBuf, content: &[u8], expect: Option<String>, create_only: bool) -> PyResult<Call> {
        self.file(FileRequest::Write(WriteRequest {
            expect: expect.map(FileHash),
            create_only,
            ..WriteRequest::new(path, content)
        }))
    }

    fn edit_file(
        &self,
        path: PathBuf,
        old: String,
        new: String,
        replace_all: bool,
        expect: Option<String>,
    ) -> PyResult<Call> {
        self.file(FileRequest::Edit(EditRequest {
            replace_all,
            expect: expect.map(FileHash),
            ..EditRequest::new(path, old, new)
        }))
    }

    fn patch(&self, patch: String, reverse: bool) -> PyResult<Call> {
        self.file(FileRequest::Patch(PatchRequest {
            reverse,
            ..PatchRequest::new(patch)
        }))
    }

    fn ls(&self, path: PathBuf, limit: u64, after: Option<String>) -> PyResult<Call> {
        self.file(FileRequest::List(ListRequest {
            limit,
            after,
            ..ListRequest::new(path)
        }))
    }

    fn glob(
        &self,
        pattern: String,
        path: PathBuf,
        ignored: bool,
        dotted: bool,
        limit: u64,
        after: Option<String>,
    ) -> PyResult<Call> {
        self.file(FileRequest::Glob(GlobRequest {
            path,
            include: Include {
                ignored,
                dotfiles: dotted,
            },
            limit,
            after,
            ..GlobRequest::new(pattern)
        }))
    }

    #[expect(clippy::too_many_arguments, reason = "they are the keywords of one Python call")]
    fn grep(
        &self,
        pattern: String,
        path: PathBuf,
        flags: (bool, bool, bool, bool, bool),
        globs: Vec<String>,
        before: u64,
        after: u64,
        mode: &str,
        limit: u64,
        cursor: Option<String>,
    ) -> PyResult<Call> {
        let (literal, ignore_case, multiline, ignored, dotted) = flags;
        let mode = match mode {
            "content" => GrepMode::Content,
            "files" => GrepMode::Files,
            "count" => GrepMode::Count,
            other => {
                let wrong = format!(
                    "`mode` is `{}`, and can be `content`, `files` or `count`",
                    other.escape_debug()
                );
                return Ok(Call::ended(Err(Fault::Argument(wrong))));
            }
        };
        self.file(FileRequest::Grep(GrepRequest {
            path,
            literal,
            ignore_case,
            multiline,
            globs,
            include: Include {
                ignored,
                dotfiles: dotted,
            },
            before,
            after_lines: after,
            mode,
            limit,
            cursor,
            ..GrepRequest::new(pattern)
        }))
    }

    fn stat(&self, path: PathBuf) -> PyResult<Call> {
        self.file(FileRequest::Stat(StatRequest::new(path)))
    }

    /// Whether something is there that may be seen.
    fn exists(&self, path: PathBuf) -> PyResult<Call> {
        let embedded = self.open()?;
        Call::begin(async move {
            match embedded
                .shieling()
                .file(FileRequest::Stat(StatRequest::new(path)))
                .await
            {
                Ok(_) => Ok(Answer::Flag(true)),
                Err(FilesError::File(error)) if matches!(error.code(), "not_found" | "not_a_directory" | "outside") => {
                    Ok(Answer::Flag(false))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    fn delete(&self, path: PathBuf, recursive: bool) -> PyResult<Call> {
        self.file(FileRequest::Delete(DeleteRequest {
            recursive,
            ..DeleteRequest::new(path)
        }))
    }

    #[pyo3(name = "move")]
    fn relocate(&self, from: PathBuf, to: PathBuf, replace: bool) -> PyResult<Call> {
        self.file(FileRequest::Move(MoveRequest {
            replace,
            ..MoveRequest::new(from, to)
        }))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let Some(embedded) = self.embedded.take() else {
            return;
        };
        if self.process != std::process::id() {
            // The copy in a forked process ends nothing of the other one's.
            std::mem::forget(embedded);
        } else if !self.closed.load(Ordering::Acquire)
            && let Ok(handle) = runtime::handle()
        {
            // Calls that are under way go on, and end it.
            if let Some(embedded) = Arc::into_inner(embedded) {
                handle.spawn(async move { embedded.shieling().close().await });
            }
        }
    }
}

/// A view, whose output is new again if nobody takes it.
fn viewed(embedded: &Arc<Embedded>, job: JobId, view: ViewResponse) -> Returnable<Box<ViewResponse>> {
    let embedded = Arc::downgrade(embedded);
    Returnable::new(Box::new(view), move |view| {
        if let Some(embedded) = embedded.upgrade() {
            embedded.shieling().unview(&job, &view);
        }
    })
}

/// Runs a command that reads these bytes.
async fn run_fed(embedded: &Embedded, command: Command, bytes: Vec<u8>) -> Outcome {
    let (give, given) = oneshot::channel();
    let streams = move || {
        let (writer, reader) = pipe::pipe()?;
        let reader = reader.into_blocking_fd()?;
        let _ = give.send(writer);
        Ok(Streams::Given(reader))
    };
    let feed = async move {
        if let Ok(mut writer) = given.await {
            // A command may end before it has read everything.
            let _ = writer.write_all(&bytes).await;
        }
    };
    let mut running = pin!(embedded.shieling().run_with(command, streams, None));
    tokio::select! {
        biased;
        outcome = &mut running => outcome,
        () = feed => running.await,
    }
}
