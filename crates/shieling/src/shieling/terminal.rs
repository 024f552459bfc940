//! Runs a person's interactive shell in the environment, under the limits of every command.
//!
//! The policy cannot judge what the person will type. Starting the shell counts as approval, and the environment's
//! enforcement applies. The shell is recorded like any command.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::entry::blank;
use super::{Shieling, failed, file_size, started, unjudged};
use crate::outcome::{Outcome, Status};
use crate::policy::{Facts, Policy};
use crate::process::{Limits, Streams, run_to_end};
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
        let mut entry = self.entry(&shell);
        let environment = &self.environment;
        let blank = |status| blank(&shell, environment.name(), environment.confinement(), status);
        let verdict = Policy::open().judge(&shell, &Facts::new(&self.workspace, Path::new("/")));
        if let Err(error) = entry.intent(&verdict) {
            return failed(&mut entry, blank(Status::Failed), &error);
        }
        let approved = match unjudged::approved(shell.clone(), &verdict, environment.as_ref()).await {
            Ok(approved) => approved,
            Err(refused) => return failed(&mut entry, blank(Status::Failed), &refused),
        };
        if let Err(error) = entry.approved(&approved) {
            return failed(&mut entry, blank(Status::Failed), &error);
        }
        let before = environment.strikes();
        let starting = environment.spawn(approved, Streams::Terminal(terminal));
        let process = match started(&mut entry, starting, blank).await {
            Ok(process) => process,
            Err(outcome) => return *outcome,
        };
        let finished = run_to_end(process, &Limits::of(&shell), None, None).await;
        let mut outcome = finished.into_outcome(blank(Status::Exited));
        file_size::tell(&**environment, &mut outcome, &before, shell.file_size());
        entry.close(&mut outcome);
        outcome
    }
}
