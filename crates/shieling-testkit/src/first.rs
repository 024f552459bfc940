//! Waiting for the first output of a command.

use shieling::output::{Stream, Tee};
use tokio::sync::oneshot;

/// Tells that something was printed.
#[derive(Debug)]
pub struct First(Option<oneshot::Sender<()>>);

impl First {
    /// One, and what it tells.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (arrived, printed) = oneshot::channel();
        (Self(Some(arrived)), printed)
    }
}

impl Tee for First {
    fn bytes(&mut self, _: Stream, _: &[u8]) {
        if let Some(arrived) = self.0.take() {
            arrived.send(()).expect("somebody waits for it");
        }
    }
}
