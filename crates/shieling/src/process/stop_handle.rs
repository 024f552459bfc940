//! Ends a process from elsewhere than where it is driven.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

/// Asks whoever drives a process to end it.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopHandle(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_asked: AtomicBool,
    main_has_ended: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl StopHandle {
    /// Asks for its end.
    pub(crate) fn end(&self) {
        self.0.is_asked.store(true, Ordering::Release);
        if let Some(waker) = self.waker().take() {
            waker.wake();
        }
    }

    /// Says that its main process has ended. What that has left may run.
    pub(super) fn main_ended(&self) {
        self.0.main_has_ended.store(true, Ordering::Release);
    }

    /// Whether its main process has ended.
    pub(crate) fn main_has_ended(&self) -> bool {
        self.0.main_has_ended.load(Ordering::Acquire)
    }

    /// Whether its end was asked for; otherwise the task is woken once it is.
    pub(super) fn poll(&self, cx: &Context<'_>) -> bool {
        let mut waker = self.waker();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        self.0.is_asked.load(Ordering::Acquire)
    }

    fn waker(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.0.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something short that is done once a command is over, and the way to end it before.
pub struct AtEnd {
    act: Box<dyn FnOnce() + Send>,
    pub(super) stop_handle: StopHandle,
}

impl AtEnd {
    /// Does this once the command is over.
    pub fn new(act: impl FnOnce() + Send + 'static) -> Self {
        Self {
            act: Box::new(act),
            stop_handle: StopHandle::default(),
        }
    }

    /// With a way to end it.
    pub(crate) fn with_stop_handle(self, stop_handle: StopHandle) -> Self {
        Self { stop_handle, ..self }
    }

    /// Does it now.
    pub fn act(self) {
        (self.act)();
    }
}

impl fmt::Debug for AtEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtEnd").finish_non_exhaustive()
    }
}
