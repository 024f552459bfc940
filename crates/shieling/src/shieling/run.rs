//! Runs a command to its end: its journey, and then all of its output.

use std::time::Duration;

use super::Shieling;
use super::journey::Journey;
use crate::outcome::Outcome;
use crate::output::{Stream, Tee};
use crate::process::{Limits, Streams};
use crate::request::Command;

impl Shieling {
    /// Runs a command to its end: judges it, records it, asks for approval if required, starts it, and records its outcome.
    /// Its standard input is empty.
    ///
    /// Output goes to `tee` as it arrives. A refusal is an outcome with a `denial`. The status `failed` with an `error`
    /// means that Shieling itself failed; nothing was started then.
    ///
    /// # Cancel safety
    /// Dropping the future kills every process of the command. The record then says that its end was not observed.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn run(&self, command: Command, tee: Option<&mut dyn Tee>) -> Outcome {
        self.run_with(command, || Ok(Streams::Output), tee).await
    }

    /// Runs a command as [`run`](Self::run) does, with standard streams that the caller provides.
    ///
    /// `streams` is called once, after the command was approved and before it starts, so that a terminal is taken over
    /// only for a command that will run. If it fails, nothing is started, and its error is the outcome's. Input from a
    /// given stream is neither judged nor recorded. A shell or an interpreter that reads its program from there requires
    /// approval wherever the environment does not enforce the policy. [`Streams::Input`] is an end of file here; use
    /// [`start`](Self::start) for an interactive program.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub async fn run_with(
        &self,
        command: Command,
        streams: impl FnOnce() -> std::io::Result<Streams> + Send,
        tee: Option<&mut dyn Tee>,
    ) -> Outcome {
        self.run_until(command, streams, tee, std::future::pending()).await
    }

    /// Runs a command as [`run_with`](Self::run_with) does, and ends it before if `stop` comes.
    ///
    /// `stop` gives the time between SIGTERM, which all of the command's processes get, and SIGKILL. It is first polled once
    /// the command has started. The outcome tells how the command really ended, so a command that takes SIGTERM for
    /// itself has an exit code.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub async fn run_until(
        &self,
        command: Command,
        streams: impl FnOnce() -> std::io::Result<Streams> + Send,
        tee: Option<&mut dyn Tee>,
        stop: impl Future<Output = Duration> + Send,
    ) -> Outcome {
        let command = self.prepared(command);
        let journey = Journey::new(&command, self.recorder(None, None, &command));
        let start = |approved| streams().map(|streams| self.environment.spawn(approved, streams));
        let (mut process, blank, running) = match self.journey(journey, start).await {
            Ok(begun) => begun,
            Err(outcome) => {
                // What bash says of a text that it cannot read.
                if let Some(tee) = tee.filter(|_| !outcome.stderr.is_empty()) {
                    tee.bytes(Stream::Stderr, outcome.stderr.as_bytes());
                }
                return *outcome;
            }
        };
        drop(process.take_input());
        let mut outcome = running
            .drain(process, &self.limits(&command), self.spill.as_ref(), tee, blank, stop)
            .await;
        self.review(&mut outcome).await;
        outcome
    }

    /// Returns the limits of a command.
    pub(super) fn limits(&self, command: &Command) -> Limits {
        let mut limits = Limits::of(command);
        limits.output = self.output_limit;
        limits
    }
}
