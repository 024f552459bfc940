//! The thread pool of the interpreters. Its threads may block, unlike those of the caller's runtime.
//!
//! A thread is started when there is work and none is idle, and ends after some idle time. The number of threads is
//! bounded. Beyond it, work is refused instead of queued, since the running work may take forever.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;

/// The largest number of threads, for all memories of this process.
const MOST: usize = 256;
/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);
/// The stack size. The parser and the interpreter are recursive; only pages that are touched take memory.
const STACK: usize = 64 << 20;
/// The part of the stack beyond which no command begins. The rest is for one command and for parsing its text, which
/// have bounds of their own: bashkit counts calls of functions, but not those of `eval` or `command`.
const DEEPEST: usize = STACK / 2;

thread_local! {
    /// The address at which the stack of a thread of the pool begins; 0 in other threads.
    static BASE: Cell<usize> = const { Cell::new(0) };
}

/// Returns whether so much of the stack is in use that no other command may begin.
pub(super) fn is_deep() -> bool {
    let base = BASE.get();
    base != 0 && base.saturating_sub(here()) > DEEPEST
}

/// Returns an address in the current frame.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// Work for a thread, which provides a runtime for timers and pipes.
pub(crate) type Work = Box<dyn FnOnce(&Runtime) + Send>;

/// A thread pool. All memories share one, so that a new memory needs no threads of its own.
#[derive(Clone)]
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    state: Mutex<PoolState>,
    wake: Condvar,
}

#[derive(Default)]
struct PoolState {
    work: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

impl ThreadPool {
    /// Returns the pool of this process. A forked copy of the process, as Python's multiprocessing makes, has none of
    /// the threads, and gets a new pool.
    pub(crate) fn get() -> Self {
        static POOL: Mutex<Option<(u32, ThreadPool)>> = Mutex::new(None);
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let me = std::process::id();
        match &*pool {
            Some((whose, ours)) if *whose == me => ours.clone(),
            Some(_) | None => pool.insert((me, Self::of(MOST))).1.clone(),
        }
    }

    /// Creates a pool of at most this many threads.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                most,
                state: Mutex::default(),
                wake: Condvar::new(),
            }),
        }
    }

    /// Starts work at once.
    ///
    /// # Errors
    /// If all threads are busy, or no other can be started.
    pub(crate) fn take(&self, work: Work) -> io::Result<()> {
        let mut state = self.shared.lock();
        if state.idle <= state.work.len() {
            let most = self.shared.most;
            if state.threads >= most {
                let why = format!("{most} commands run in memory, and no more can at once");
                return Err(io::Error::other(why));
            }
            self.start()?;
            state.threads += 1;
        }
        state.work.push_back(work);
        self.shared.wake.notify_one();
        Ok(())
    }

    fn start(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            // Bashkit parses long texts in such threads.
            .thread_stack_size(STACK)
            .build()?;
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new()
            .name("shieling-memory".to_owned())
            .stack_size(STACK)
            .spawn(move || shared.serve(&runtime))
            .map(|_| ())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, runtime: &Runtime) {
        BASE.set(here());
        let mut state = self.lock();
        loop {
            if let Some(work) = state.work.pop_front() {
                drop(state);
                // Work catches its own panics. Otherwise the thread would be lost, but still counted.
                let _ = catch_unwind(AssertUnwindSafe(|| work(runtime)));
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (again, waited) = self
                .wake
                .wait_timeout_while(state, IDLE, |state| state.work.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if waited.timed_out() && state.work.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::ThreadPool;

    #[test]
    fn work_that_panics_costs_no_thread() {
        let pool = ThreadPool::of(1);
        pool.take(Box::new(|_| panic!("as it may"))).expect("a thread");
        let (sender, receiver) = channel();
        // It is refused until the thread has nothing to do.
        let done = (0..1_000).any(|_| {
            let sender = sender.clone();
            let taken = pool.take(Box::new(move |_| sender.send(()).expect("it is waited for")));
            taken.is_ok() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        });
        assert!(done, "nobody takes it");
        receiver.recv().expect("it is done");
    }
}
