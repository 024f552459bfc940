//! What has arrived of a job and of a shell on the other side.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use shieling::process::{Event, State};

use crate::flow::{Credit, Inbox};
use crate::frame::Channel;
use crate::link::Link;

/// What has arrived of a job.
pub(super) struct Running {
    pub(super) output: Arc<Inbox>,
    pub(super) errors: Arc<Inbox>,
    pub(super) input: Arc<Credit>,
    happened: Mutex<Happened>,
}

#[derive(Default)]
pub(super) struct Happened {
    /// The end of the main process, and how much of its output had arrived before.
    pub(super) main: Option<(Event, u64)>,
    pub(super) last: Option<Event>,
    pub(super) waker: Option<Waker>,
}

impl Running {
    pub(super) fn new(link: &Arc<Link>, call: u32, window: usize) -> Arc<Self> {
        Arc::new(Self {
            output: Inbox::new(link, call, Channel::Output, window),
            errors: Inbox::new(link, call, Channel::Errors, window),
            input: Credit::new(0),
            happened: Mutex::default(),
        })
    }

    pub(super) fn inbox(&self, channel: Channel) -> &Arc<Inbox> {
        if channel == Channel::Errors {
            &self.errors
        } else {
            &self.output
        }
    }

    /// Takes what happened: each of it once, and nothing after the last.
    pub(super) fn happened(&self, event: Event) {
        let mut happened = self.lock();
        match event {
            Event::MainEnded(..) if happened.main.is_none() && happened.last.is_none() => {
                happened.main = Some((event, self.output.arrived()));
            }
            Event::Gone(_) | Event::Lost => {
                happened.last.get_or_insert(event);
            }
            Event::MainEnded(..) => {}
        }
        let waker = happened.waker.take();
        drop(happened);
        waker.into_iter().for_each(Waker::wake);
    }

    /// The link is lost.
    pub(super) fn lost(&self) {
        self.output.end();
        self.errors.end();
        self.input.close();
        self.happened(Event::Lost);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Happened> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a shell stands, as the other side has said.
#[derive(Default)]
pub(super) struct Standing(Mutex<(State, bool)>);

impl Standing {
    pub(super) fn stands(&self, state: State, ended: bool) {
        *self.lock() = (state, ended);
    }

    /// The link is lost, and the shell with it.
    pub(super) fn lost(&self) {
        self.lock().1 = true;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, (State, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
