//! The order in which calls arrived. The protocol gives each call a task of its own, and tasks begin in any order; but a
//! `cd` that was sent before a command of the same session has to come before it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientNotification, ClientRequest, ProtocolVersion, RequestId, ServerConfig, ServerResult};
use rmcp::service::{NotificationContext, RequestContext, Service};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a call waits for one before it that does not begin: the protocol has lost that one.
const LOST: Duration = Duration::from_secs(1);

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
            let Some(first) = self.ahead_of(id) else { return };
            if timeout(LOST, changed).await.is_err() {
                let mut waiting = self.lock();
                if waiting.front() == Some(&first) {
                    waiting.pop_front();
                    self.changed.notify_waiters();
                }
            }
        }
    }

    /// The first of those that have to begin before a call, if there are any.
    fn ahead_of(&self, id: &RequestId) -> Option<RequestId> {
        let waiting = self.lock();
        let first = waiting.front()?;
        (first != id && waiting.contains(id)).then(|| first.clone())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<RequestId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers requests as its handler does, and calls in their order.
pub(super) struct InOrder<H> {
    pub(super) handler: H,
    pub(super) arrivals: Arc<Arrivals>,
}

impl<H: ServerHandler> Service<RoleServer> for InOrder<H> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let id = context.id.clone();
        let is_call = matches!(request, ClientRequest::CallToolRequest(_));
        let answering = self.handler.handle_request(request, context);
        match is_call {
            true => self.arrivals.in_order(&id, answering).await,
            false => answering.await,
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.handler.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.handler)
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
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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
