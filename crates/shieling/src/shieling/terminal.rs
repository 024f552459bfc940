//! Runs a person's interactive shell in the environment, under the limits of every command.
//!
//! The policy cannot judge what the person will type. Starting the shell counts as approval, and the environment's
//! enforcement applies. The shell is recorded like any command.

use std::os::fd::OwnedFd;

use super::Shieling;
use super::journey::{Journey, Judge};
use crate::outcome::Outcome;
use crate::process::{Limits, Streams};
use crate::request::Command;

impl Shieling {
    /// Runs the command `shell` on a terminal. Its outcome has no output.
    ///
    /// # Cancel safety
    /// Dropping the future kills every process of it. The record then says that its end was not observed.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn run_shell(&self, shell: Command, terminal: OwnedFd) -> Outcome {
        let journey = Journey {
            judge: Judge::Person,
            ..Journey::new(&shell, Ok(None))
        };
        let start = |approved| Ok(self.environment.spawn(approved, Streams::Terminal(terminal)));
        match self.journey(journey, start).await {
            Ok((process, blank, running)) => {
                running
                    .drain(process, &Limits::of(&shell), None, None, blank, std::future::pending())
                    .await
            }
            Err(outcome) => *outcome,
        }
    }
}
