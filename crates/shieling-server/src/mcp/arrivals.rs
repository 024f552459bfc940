//! The order in which calls arrived. The protocol gives each call a task of its own, and tasks begin in any order; but a
//! `cd` that was sent before a command of the same session has to come before it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a call waits for one before it that does not begin: the protocol has refused that one by itself.
const REFUSED: Duration = Duration::from_millis(200);

/// The calls that have arrived and not begun.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    waiting: Mutex<VecDeque<RequestId>>,
    changed: Notify,
}

impl Arrivals {
    /// Says that a call has arrived, after all others so far.
    pub(super) fn arrived(&self, id: RequestId) {
        self.lock().push_back(id);
    }

    /// Performs a call, which is polled for the first time after those that arrived before it, and so queues in that
    /// order where it has to wait.
    ///
    /// # Cancel safety
    /// Dropping the future drops the call, and lets the next one begin.
    pub(super) async fn in_order<F: Future>(&self, id: &RequestId, call: F) -> F::Output {
        let mut turn = Some(Turn { arrivals: self, id });
        self.wait(id).await;
        let mut call = pin!(call);
        poll_fn(|context| {
            let polled = call.as_mut().poll(context);
            turn = None;
            polled
        })
        .await
    }

    /// Waits until nothing that arrived before a call has still to begin.
    async fn wait(&self, id: &RequestId) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Before the look, so that no change after it is missed.
            changed.as_mut().enable();
            let place = self.lock().iter().position(|other| other == id);
            if place.is_none_or(|place| place == 0) {
                return;
            }
            if timeout(REFUSED, changed).await.is_err() {
                self.lock().pop_front();
                self.changed.notify_waiters();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<RequestId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's place in the order, until it has begun.
struct Turn<'a> {
    arrivals: &'a Arrivals,
    id: &'a RequestId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut waiting = self.arrivals.lock();
        if let Some(place) = waiting.iter().position(|other| other == self.id) {
            waiting.remove(place);
        }
        drop(waiting);
        self.arrivals.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[tokio::test]
    async fn calls_begin_in_the_order_in_which_they_arrived() {
        let arrivals = Arc::new(Arrivals::default());
        let begun = Arc::new(Mutex::new(Vec::new()));
        for number in 0..20 {
            arrivals.arrived(id(number));
        }
        // The tasks begin in the opposite order.
        let tasks: Vec<_> = (0..20)
            .rev()
            .map(|number| {
                let (arrivals, begun) = (Arc::clone(&arrivals), Arc::clone(&begun));
                tokio::spawn(async move {
                    let call = async {
                        begun.lock().unwrap().push(number);
                        tokio::task::yield_now().await;
                    };
                    arrivals.in_order(&id(number), call).await;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*begun.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert!(arrivals.lock().is_empty());
    }

    #[tokio::test]
    async fn a_call_that_never_begins_holds_the_next_one_up_for_a_moment_only() {
        let arrivals = Arrivals::default();
        arrivals.arrived(id(1));
        arrivals.arrived(id(2));
        // One that arrived otherwise waits for nobody.
        assert_eq!(arrivals.in_order(&id(7), async { 7 }).await, 7);
        assert_eq!(arrivals.in_order(&id(2), async { 2 }).await, 2);
        // One that was dropped before it began.
        arrivals.arrived(id(3));
        arrivals.arrived(id(4));
        drop(Turn {
            arrivals: &arrivals,
            id: &id(3),
        });
        assert_eq!(arrivals.in_order(&id(4), async { 4 }).await, 4);
        assert!(arrivals.lock().is_empty());
    }
}
