//! Reports the progress of a command to a client that has asked for it.

use std::convert::Infallible;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use shieling::session::Progress;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::visible;

/// The interval between reports.
const EVERY: Duration = Duration::from_secs(1);

/// Sends reports to one client.
#[derive(Debug)]
pub(crate) struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl Reporter {
    pub(super) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self { peer, token }
    }

    /// Reports every second how long the command has run and its last line of output, until dropped.
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
            // If the client is gone, its call is about to be dropped.
            let _ = self.peer.notify_progress(told).await;
        }
    }
}
