//! The life of a server: from its client's first byte to the last process of its workplace.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use super::arrivals::{Arrivals, InOrder};
use super::handler::Handler;
use super::{Server, lines};
use crate::workplaces::EnterError;

/// How long the last answers may take to be read once the client's stream has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// A client could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Its first message violates the protocol.
    #[error("the client did not begin as MCP wants it: {0}")]
    Beginning(String),
    /// There is no workplace for it.
    #[error(transparent)]
    Workplace(#[from] EnterError),
    /// The task that serves it has panicked or was cancelled.
    #[error("the server ended by itself: {0}")]
    Broken(String),
}

impl Server {
    /// Serves a client on standard input and output, until it disconnects or `stop` completes. Then leaves the
    /// workplace, which ends every session and job unless other clients share it.
    ///
    /// # Errors
    /// [`ServeError`]. The workplace has been left in this case, too.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and timers.
    pub async fn serve_stdio(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let (read, write) = stdio_pipes();
        self.serve(read, write, stop).await
    }

    /// Serves a client on any pair of streams.
    ///
    /// # Errors
    /// Those of [`serve_stdio`](Self::serve_stdio).
    pub async fn serve(
        self,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let entered = self.workplaces.enter()?;
        let workplace = entered.workplace().clone();
        let arrivals = Arc::new(Arrivals::default());
        let handler = InOrder {
            handler: Handler::new(workplace.clone(), &self.toolset, self.instructions),
            arrivals: Arc::clone(&arrivals),
        };
        let (transport, sorting) = lines::answering(read, write, arrivals);
        let serving = async {
            match ServiceExt::serve(handler, transport).await {
                Ok(running) => running
                    .waiting()
                    .await
                    .map(drop)
                    .map_err(|error| ServeError::Broken(error.to_string())),
                // A client that disconnects before its first message is not an error.
                Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(ServeError::Beginning(error.to_string())),
            }
        };
        // The environment starts in parallel with the client, so that the first command does not wait for it.
        let warming = async {
            // The first command reports a failure.
            let _ = (workplace.prepare)().await;
            pending::<std::convert::Infallible>().await
        };
        let gone = async {
            sorting.await;
            // A client that is gone may have left answers that nobody reads.
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        let served = tokio::select! {
            served = serving => served,
            () = gone => Ok(()),
            never = warming => match never {},
            () = stop => Ok(()),
        };
        entered.leave().await;
        served
    }
}
