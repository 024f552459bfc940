//! What a call shares: its work with those who wait for it, and an approver with both.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::Thread;
use std::time::Instant;

use shieling::approval::{self, Question};
use tokio::sync::oneshot;

use crate::answer::{Answer, Fault};
use crate::mailbox::Letterbox;

/// What Python is to look at.
pub(crate) enum Event {
    /// Somebody has to be asked.
    Question(Box<Asking>),
    /// The approver failed, and Python knows how.
    Broken,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) events: VecDeque<Event>,
    pub(crate) done: Option<Result<Answer, Fault>>,
    /// The work is gone.
    pub(crate) over: bool,
    /// Nobody will take what comes of it.
    given_up: bool,
    /// The future was polled, and nobody has woken it since.
    polled: bool,
    /// The thread that waits for a change of this.
    waits: Option<Thread>,
    pub(crate) letterbox: Option<(Arc<Letterbox>, u64)>,
}

impl State {
    fn has_news(&self) -> bool {
        self.over || !self.events.is_empty()
    }
}

/// What the work and those who wait for it share.
#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
}

tokio::task_local! {
    /// The call in which something is asked.
    pub(crate) static CALLER: Arc<Shared>;
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        if let Some((letterbox, number)) = &state.letterbox {
            letterbox.tell(*number);
        }
        unpark(state);
    }

    /// Says that the work is gone. Without an answer it was broken off.
    pub(crate) fn end(&self) {
        let mut dropped = None;
        self.change(|state| {
            state.over = true;
            let done = state.done.get_or_insert(Err(Fault::Cancelled));
            if state.given_up {
                dropped = Some(std::mem::replace(done, Err(Fault::Cancelled)));
            }
        });
        // Without the lock: what can be had once goes back where it came from.
        drop(dropped);
    }

    /// Says that nobody will take what comes of it.
    pub(crate) fn give_up(&self) {
        let mut state = self.state();
        state.given_up = true;
        let dropped = state.done.take();
        if dropped.is_some() {
            state.done = Some(Err(Fault::Cancelled));
        }
        drop(state);
        drop(dropped);
    }

    /// Waits until the future is to be polled. False if Python has news to look at first, or at this time.
    pub(crate) fn wait_for_wake(&self, until: Instant) -> bool {
        self.wait(until, |state| {
            if state.has_news() {
                return Some(false);
            }
            (!std::mem::replace(&mut state.polled, true)).then_some(true)
        })
        .unwrap_or(false)
    }

    /// Waits until Python has news to look at, or this time has come.
    pub(crate) fn wait_for_news(&self, until: Instant) {
        self.wait(until, |state| state.has_news().then_some(()));
    }

    /// Waits until the call is over, or this time has come.
    pub(crate) fn wait_for_end(&self, until: Instant) {
        self.wait(until, |state| state.over.then_some(()));
    }

    fn wait<T>(&self, until: Instant, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        loop {
            let mut state = self.state();
            state.waits = None;
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now())?;
            state.waits = Some(std::thread::current());
            drop(state);
            std::thread::park_timeout(left);
        }
    }

    /// Has Python ask somebody.
    pub(crate) fn ask(&self, question: Asking) {
        self.change(|state| state.events.push_back(Event::Question(Box::new(question))));
    }

    /// Has the call end with what the approver raised.
    pub(crate) fn fail(&self) {
        self.change(|state| state.events.push_back(Event::Broken));
    }
}

/// Has the thread that waits look. Nothing is asked of the kernel if none does.
fn unpark(mut state: MutexGuard<'_, State>) {
    let waits = state.waits.take();
    drop(state);
    if let Some(thread) = waits {
        thread.unpark();
    }
}

/// Wakes the thread that polls the future.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        state.polled = false;
        unpark(state);
    }
}

/// A question under way to Python.
pub(crate) struct Asking {
    pub(crate) question: Question,
    pub(crate) answer: oneshot::Sender<approval::Answer>,
    pub(crate) gone: Arc<AtomicBool>,
}
