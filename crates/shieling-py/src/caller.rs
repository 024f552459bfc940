//! What a call shares: its task with those who wait for it, and an approver with both.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
    /// The task is gone.
    pub(crate) over: bool,
    pub(crate) letterbox: Option<(Arc<Letterbox>, u64)>,
}

/// What the task and those who wait for it share.
#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) changed: Condvar,
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
        drop(state);
        self.changed.notify_all();
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

/// A question under way to Python.
pub(crate) struct Asking {
    pub(crate) question: Question,
    pub(crate) answer: oneshot::Sender<approval::Answer>,
    pub(crate) gone: Arc<AtomicBool>,
}
