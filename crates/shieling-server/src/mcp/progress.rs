//! Tells a client that wants to know how far a command is.

use std::convert::Infallible;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use shieling::session::Progress;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::visible;

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// The way to a client that wants to know.
#[derive(Debug)]
pub(crate) struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl Reporter {
    pub(super) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self { peer, token }
    }

    /// Tells it each second how long the command runs and which line it wrote last, until dropped.
    pub(crate) async fn report(&self, seen: watch::Receiver<Progress>) -> Infallible {
        let began = Instant::now();
        loop {
            tokio::time::sleep(EVERY).await;
            let progress = seen.borrow().clone();
            let elapsed = began.elapsed().as_secs_f64();
            let line = visible::line(&progress.line, 200);
            let message = match line.as_str() {
                "" => format!("{elapsed:.0} s"),
                line => format!("{elapsed:.0} s: {line}"),
            };
            let told = ProgressNotificationParam::new(self.token.clone(), elapsed).with_message(message);
            // A client that is gone hears nothing, and its call is about to be dropped.
            let _ = self.peer.notify_progress(told).await;
        }
    }
}
