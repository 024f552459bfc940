//! The one runtime of this process: made with the first environment, ended with the interpreter, and never touched
//! by a process that was forked off.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use pyo3::prelude::*;
use shieling::Shieling;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

/// How long environments may take to close when the interpreter exits. What is not done then is done by the
/// supervisors, which notice that this process is gone.
const CLOSING: Duration = Duration::from_secs(3);
/// How long threads that block may go on after that.
const THREADS: Duration = Duration::from_millis(200);
/// More would not be faster: they only pass on what other processes do.
const WORKERS: usize = 4;

/// A runtime, the process that made it, and the environments that it works for.
struct Current {
    process: u32,
    runtime: Runtime,
    environments: Vec<Weak<Shieling>>,
}

/// Locked only with the interpreter's lock held, which Python also holds while it forks: so a copy of this process
/// never finds it locked by a thread that it does not have. (A hook that locked it around a fork would wait, with it, for
/// the interpreter's lock.)
static CURRENT: Mutex<Option<Current>> = Mutex::new(None);
static EXITING: AtomicBool = AtomicBool::new(false);
/// The thread on which the interpreter exits.
static EXITS: OnceLock<ThreadId> = OnceLock::new();

fn current() -> MutexGuard<'static, Option<Current>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime, made if there is none.
pub(crate) fn handle() -> Result<Handle, String> {
    if EXITING.load(Ordering::Acquire) {
        return Err("the interpreter is exiting, and nothing starts any more".to_owned());
    }
    let mut current = current();
    let process = std::process::id();
    if let Some(made) = current.as_ref().filter(|made| made.process == process) {
        return Ok(made.runtime.handle().clone());
    }
    let workers = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .clamp(2, WORKERS);
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("shieling")
        .enable_all()
        .build()
        .map_err(|error| format!("no threads could be started: {error}"))?;
    let handle = runtime.handle().clone();
    let made = Current {
        process,
        runtime,
        environments: Vec::new(),
    };
    // That of the process which forked this one: its threads are not here, and whatever is done with it would wait
    // for them.
    std::mem::forget(current.replace(made));
    Ok(handle)
}

/// Has an environment closed when the interpreter exits.
pub(crate) fn remember(shieling: &Arc<Shieling>) {
    if let Some(current) = current().as_mut() {
        current.environments.retain(|known| known.strong_count() > 0);
        current.environments.push(Arc::downgrade(shieling));
    }
}

/// Whether the interpreter exits, and this thread will never get its lock again.
pub(crate) fn is_left_behind() -> bool {
    EXITING.load(Ordering::Acquire) && EXITS.get().is_some_and(|exits| *exits != std::thread::current().id())
}

/// Ends everything, as the interpreter exits: called once, on its main thread. Waits for a few seconds at most.
#[pyfunction]
pub(crate) fn shutdown(py: Python<'_>) {
    let _ = EXITS.set(std::thread::current().id());
    EXITING.store(true, Ordering::Release);
    let process = std::process::id();
    let Some(ended) = current().take_if(|made| made.process == process) else {
        return;
    };
    py.detach(|| {
        ended.runtime.block_on(async {
            let mut closing = JoinSet::new();
            for shieling in ended.environments.iter().filter_map(Weak::upgrade) {
                closing.spawn(async move { shieling.close().await });
            }
            let all = async { while closing.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(CLOSING, all).await;
        });
        ended.runtime.shutdown_timeout(THREADS);
    });
}
