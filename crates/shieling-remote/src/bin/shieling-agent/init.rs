//! The duties of process 1 of a container, and the signals that end the agent anywhere.

use std::io;

use rustix::process::WaitOptions;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Watches for signals. As process 1, reaps every process that ends with no parent left.
pub(crate) struct Init {
    child: Option<Signal>,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Init {
    pub(crate) fn new() -> io::Result<Self> {
        let first = rustix::process::getpid().as_raw_nonzero().get() == 1;
        Ok(Self {
            child: first.then(|| signal(SignalKind::child())).transpose()?,
            // The kernel does not deliver these to a process 1 that has no handler.
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Reaps until a signal says to end.
    pub(crate) async fn told_to_end(mut self) {
        loop {
            if self.child.is_some() {
                // The library waits for its own children by number, and takes one that is gone for ended.
                while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
            }
            let ended = async {
                match &mut self.child {
                    Some(child) => child.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => return,
                _ = ended => {}
            }
        }
    }
}
