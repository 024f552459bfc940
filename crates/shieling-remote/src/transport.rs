//! How a place is reached: something that starts the agent program there and gives back a byte stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shieling::environment::Later;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::link::LinkError;

/// How much is kept of what the far side printed as errors: the end of it.
const MOST_SAID: usize = 16 * 1024;

/// A way to a place. Object-safe: whoever has other places brings a transport of their own.
pub trait Transport: Send + Sync {
    /// What the environment is called: `ssh`, `container`.
    fn name(&self) -> &str;

    /// Starts the agent program there, and gives the stream to it. Runs on the thread that will carry the stream.
    ///
    /// # Errors
    /// [`TransportError`]; nothing is left running there.
    /// # Cancel safety
    /// Dropping the future ends what was started.
    fn connect(&self) -> Later<'_, Result<Connection, TransportError>>;
}

/// The stream to the agent program.
pub struct Connection {
    pub(crate) reader: Pin<Box<dyn AsyncRead + Send>>,
    pub(crate) writer: Pin<Box<dyn AsyncWrite + Send>>,
    pub(crate) guard: Option<Box<dyn Guard>>,
    pub(crate) said: Said,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("said", &self.said.text())
            .finish_non_exhaustive()
    }
}

/// What keeps the far side. Dropping it ends the far side as well as that can be done at once.
pub trait Guard: Send {
    /// Ends the far side once its stream is over, and waits for that within a bound of its own. The thread that
    /// carried the stream waits for it.
    fn end(self: Box<Self>) -> Later<'static, ()>;
}

impl Connection {
    /// A stream whose far side ends when the stream does.
    pub fn new(reader: impl AsyncRead + Send + 'static, writer: impl AsyncWrite + Send + 'static) -> Self {
        Self {
            reader: Box::pin(reader),
            writer: Box::pin(writer),
            guard: None,
            said: Said::default(),
        }
    }

    /// With what ends the far side.
    #[must_use]
    pub fn with_guard(self, guard: impl Guard + 'static) -> Self {
        Self {
            guard: Some(Box::new(guard)),
            ..self
        }
    }

    /// With what is kept of the errors that the far side prints, to explain why it ended.
    #[must_use]
    pub fn with_said(self, said: Said) -> Self {
        Self { said, ..self }
    }
}

/// The end of what a far side has printed as errors, at most 16 KiB. Whoever adds to it has a copy of it, and drops
/// that once there is nothing more to come.
#[derive(Debug, Clone, Default)]
pub struct Said(Arc<Mutex<VecDeque<u8>>>);

impl Said {
    /// Waits until nobody adds to it any more, at most so long, and gives its text.
    pub(crate) async fn last(self, at_most: Duration) -> String {
        let alone = async {
            while Arc::strong_count(&self.0) > 1 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(at_most, alone).await;
        self.text()
    }

    /// Adds what was printed.
    pub fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let over = kept.len().saturating_sub(MOST_SAID);
        kept.drain(..over);
    }

    /// All that is kept, without blanks around it. What is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned()
    }
}

/// Why a place could not be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// What would lead there could not be started.
    #[error("{what}: {source}")]
    NotStarted {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The place, or what leads there, refused.
    #[error("{what}")]
    Refused {
        /// What was refused, and why.
        what: String,
        /// What can be done about it, if that is known.
        instead: Option<String>,
    },
    /// It took too long.
    #[error("{what} took longer than {after_ms} ms")]
    TimedOut {
        /// What took so long.
        what: String,
        /// How long it was waited for.
        after_ms: u64,
    },
}

/// Why an environment elsewhere could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The place could not be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The place was reached, and the agent program ended, was silent or of another version.
    #[error("{why}{}", if said.is_empty() { String::new() } else { format!("; it said: {said}") })]
    Link {
        /// Why the link is over.
        why: LinkError,
        /// What was printed as errors there.
        said: String,
    },
}
