//! The signals by which somebody ends what we run.

use std::fmt;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) const SIGHUP: u8 = 1;
pub(crate) const SIGINT: u8 = 2;
pub(crate) const SIGQUIT: u8 = 3;
pub(crate) const SIGTERM: u8 = 15;

/// Signals that cannot be taken over, and why.
#[derive(Debug)]
pub(crate) struct NoSignals(io::Error);

impl fmt::Display for NoSignals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signals cannot be received: {}", self.0)
    }
}

/// Takes a signal over.
pub(crate) fn taken(kind: SignalKind) -> Result<Signal, NoSignals> {
    signal(kind).map_err(NoSignals)
}

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT, which end nothing by themselves from here on.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Signals {
    /// Takes them over.
    pub(crate) fn new() -> Result<Self, NoSignals> {
        Ok(Self {
            interrupt: taken(SignalKind::interrupt())?,
            terminate: taken(SignalKind::terminate())?,
            hangup: taken(SignalKind::hangup())?,
            quit: taken(SignalKind::quit())?,
        })
    }

    /// Waits for one of them, and gives its number.
    ///
    /// # Cancel safety
    /// Cancel safe: none is missed.
    pub(crate) async fn recv(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => SIGINT,
            _ = self.terminate.recv() => SIGTERM,
            _ = self.hangup.recv() => SIGHUP,
            _ = self.quit.recv() => SIGQUIT,
        }
    }
}
