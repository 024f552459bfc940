//! The threads that bashes run on. They may block, which no thread of the caller's runtime does.
//!
//! A thread is started when there is work and none is free, and ends when there was none for a while.
//! How many there are is bounded: beyond that, work is refused and not queued, since what is before it
//! may take for ever.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;

/// How many run at once, in all memories of this process.
const MOST: usize = 256;
/// How long a thread waits for more to do.
const IDLE: Duration = Duration::from_secs(10);
/// The parser and the interpreter recurse. Only what is touched is memory.
const STACK: usize = 64 << 20;

/// Work for a thread, with a runtime for its timers and pipes.
pub(crate) type Work = Box<dyn FnOnce(&Runtime) + Send>;

/// The threads of all memories, so that a new one costs none.
#[derive(Clone)]
pub(crate) struct Crew {
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    desk: Mutex<Desk>,
    wake: Condvar,
}

#[derive(Default)]
struct Desk {
    work: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

impl Crew {
    /// The one of this process. A copy of it, such as Python's multiprocessing makes, has none of its threads, and
    /// gets one of its own.
    pub(crate) fn get() -> Self {
        static CREW: Mutex<Option<(u32, Crew)>> = Mutex::new(None);
        let mut crew = CREW.lock().unwrap_or_else(PoisonError::into_inner);
        let me = std::process::id();
        match &*crew {
            Some((whose, ours)) if *whose == me => ours.clone(),
            Some(_) | None => crew.insert((me, Self::of(MOST))).1.clone(),
        }
    }

    /// So many threads at most.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                most,
                desk: Mutex::default(),
                wake: Condvar::new(),
            }),
        }
    }

    /// Has this done, now.
    ///
    /// # Errors
    /// All threads are busy, or no further one can be started.
    pub(crate) fn take(&self, work: Work) -> io::Result<()> {
        let mut desk = self.shared.lock();
        if desk.idle <= desk.work.len() {
            let most = self.shared.most;
            if desk.threads >= most {
                let why = format!("{most} commands run in memory, and no more can at once");
                return Err(io::Error::other(why));
            }
            self.start()?;
            desk.threads += 1;
        }
        desk.work.push_back(work);
        self.shared.wake.notify_one();
        Ok(())
    }

    fn start(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
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
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, runtime: &Runtime) {
        let mut desk = self.lock();
        loop {
            if let Some(work) = desk.work.pop_front() {
                drop(desk);
                // Work catches its own panics. One that it does not would cost a thread, which is counted
                // for ever.
                let _ = catch_unwind(AssertUnwindSafe(|| work(runtime)));
                desk = self.lock();
                continue;
            }
            desk.idle += 1;
            let (again, waited) = self
                .wake
                .wait_timeout_while(desk, IDLE, |desk| desk.work.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            desk = again;
            desk.idle -= 1;
            if waited.timed_out() && desk.work.is_empty() {
                desk.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::Crew;

    #[test]
    fn work_that_panics_costs_no_thread() {
        let crew = Crew::of(1);
        crew.take(Box::new(|_| panic!("as it may"))).expect("a thread");
        let (sender, receiver) = channel();
        // It is refused until the thread has nothing to do.
        let done = (0..1_000).any(|_| {
            let sender = sender.clone();
            let taken = crew.take(Box::new(move |_| sender.send(()).expect("it is waited for")));
            taken.is_ok() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        });
        assert!(done, "nobody takes it");
        receiver.recv().expect("it is done");
    }
}
