//! The calls of the near side: orders that were sent, and who waits for what is said to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::arrived::{Running, Standing};
use crate::far::MOST_AT_ONCE;
use crate::link::{Link, LinkError};
use crate::message::{Description, Order, Said, pack};
use crate::park::wait_at_most;

/// How many orders may wait for their answers at once: fewer than the other side works on, so that it always reads.
pub(super) const ORDERS: usize = MOST_AT_ONCE / 2;
/// How long a question about files or facts may take.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// What is known of the link by whoever carries it and whoever uses it.
pub(super) struct Shared {
    pub(super) link: Arc<Link>,
    pub(super) calls: Mutex<Calls>,
    pub(super) description: watch::Sender<Option<Description>>,
}

#[derive(Default)]
pub(super) struct Calls {
    pub(super) last: u32,
    pub(super) open: HashMap<u32, Waiting>,
}

/// Who waits for what is said to a call.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) answer: Option<oneshot::Sender<(Said, Vec<u8>)>>,
    pub(super) job: Option<Arc<Running>>,
    pub(super) shell: Option<Arc<Standing>>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody who waits that nothing comes any more.
    pub(super) fn over(&self, why: LinkError) {
        self.link.end(why);
        let open = std::mem::take(&mut self.lock().open);
        for waiting in open.into_values() {
            if let Some(job) = waiting.job {
                job.lost();
            }
            if let Some(shell) = waiting.shell {
                shell.lost();
            }
        }
    }
}

/// The link, as it is used. With the last of these the link ends.
pub(crate) struct Near {
    pub(super) shared: Arc<Shared>,
    pub(super) runtime: Handle,
    pub(super) turns: Arc<Semaphore>,
}

impl Drop for Near {
    fn drop(&mut self) {
        self.shared.link.end(LinkError::Closed);
    }
}

/// A call that was begun. Dropping it forgets it on both sides.
pub(crate) struct Call {
    pub(super) near: Arc<Near>,
    pub(super) number: u32,
}

impl Drop for Call {
    fn drop(&mut self) {
        let waiting = self.near.shared.lock().open.remove(&self.number);
        drop(waiting);
        self.near.send(self.number, &Order::Forget);
    }
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    /// It was never sent, or is too long to be.
    NotSent(String),
    /// The link was lost while it was waited for.
    Lost(LinkError),
}

pub(super) type Answered = Result<(Said, Vec<u8>), Unanswered>;

impl Near {
    /// Sends an order that has no answer.
    pub(super) fn send(&self, call: u32, order: &Order) {
        if let Some(frame) = pack(call, order, &[]) {
            self.shared.link.urgent(frame);
        }
    }

    /// Begins a call, so that what is said to it finds who waits.
    pub(super) fn begin(self: &Arc<Self>, make: impl FnOnce(u32) -> Waiting) -> Result<Call, LinkError> {
        let mut calls = self.shared.lock();
        if let Some(why) = self.shared.link.over() {
            return Err(why);
        }
        let number = loop {
            calls.last = calls.last.wrapping_add(1);
            if calls.last != 0 && !calls.open.contains_key(&calls.last) {
                break calls.last;
            }
        };
        let waiting = make(number);
        calls.open.insert(number, waiting);
        drop(calls);
        let near = Arc::clone(self);
        Ok(Call { near, number })
    }

    /// An order's turn.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Sends an order and waits for its answer. The call stays, for what it names.
    pub(super) async fn call(
        self: &Arc<Self>,
        order: &Order,
        bytes: &[u8],
        with: impl FnOnce(u32) -> Waiting,
    ) -> Result<(Call, Said, Vec<u8>), Unanswered> {
        let turn = self.turn().await;
        let (answer, answered) = oneshot::channel();
        let begun = self.begin(|number| Waiting {
            answer: Some(answer),
            ..with(number)
        });
        let call = begun.map_err(|why| Unanswered::NotSent(why.to_string()))?;
        let Some(frame) = pack(call.number, order, bytes) else {
            return Err(Unanswered::NotSent("it is too long to be sent".to_owned()));
        };
        self.shared.link.order(frame).await;
        let answer = answered.await;
        drop(turn);
        match answer {
            Ok((said, bytes)) => Ok((call, said, bytes)),
            Err(_) => Err(Unanswered::Lost(self.shared.link.over().unwrap_or(LinkError::Ended))),
        }
    }

    /// Asks something and blocks for the answer, for a while.
    pub(super) fn wait(self: &Arc<Self>, order: &Order, bytes: &[u8]) -> Answered {
        self.wait_for(order, bytes).map(|(_, said, bytes)| (said, bytes))
    }

    pub(super) fn wait_for(self: &Arc<Self>, order: &Order, bytes: &[u8]) -> Result<(Call, Said, Vec<u8>), Unanswered> {
        let answer = wait_at_most(self.call(order, bytes, |_| Waiting::default()), CALL_TIMEOUT);
        answer.unwrap_or_else(|| {
            let what = "has not answered";
            let for_ms = u64::try_from(CALL_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
            Err(Unanswered::Lost(LinkError::Silent { what, for_ms }))
        })
    }
}
