//! Starts an interactive program: the journey of a command, except that a handle is returned before the outcome.

use super::journey::Journey;
use super::{Shieling, recorded, refusal};
use crate::environment::Ability;
use crate::outcome::Outcome;
use crate::output::Tee;
use crate::process::{Started, Streams};
use crate::request::Command;

impl Shieling {
    /// Starts an interactive program: judges, records, approves and starts the command as [`run`](Self::run) does, and
    /// returns a handle to its input and output. Its end is recorded when it happens.
    ///
    /// Input is not judged, because it is unknown which program reads it. The approval of a shell therefore covers
    /// everything that is sent to it.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use shieling::Shieling;
    /// use shieling::process::Received;
    /// use shieling::request::Command;
    ///
    /// # async fn example(shieling: &Shieling) -> Result<(), Box<dyn std::error::Error>> {
    /// let command = Command::new("tr a-z A-Z", "/work")?;
    /// let started = match shieling.start(command).await {
    ///     Ok(started) => started,
    ///     Err(outcome) => return Err(format!("not started: {:?}", outcome.denial).into()),
    /// };
    /// started.send(b"hello").await?;
    /// started.send_eof().await;
    /// while let Received::Bytes(bytes) = started.recv(Duration::from_secs(5)).await {
    ///     println!("{}", String::from_utf8_lossy(&bytes));
    /// }
    /// assert_eq!(started.wait().await.exit_code, Some(0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The outcome, if nothing was started: `denied`, `needs_approval` or `rate_limited` with a `denial`, also if the
    /// environment has no input for programs, and `failed` with an `error`.
    /// # Cancel safety
    /// Dropping the future ends what may have been started. The record then says that its end was not observed.
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn start(&self, command: Command) -> Result<Started, Box<Outcome>> {
        let command = self.prepared(command);
        let here = &self.environment;
        if !here.capabilities().abilities.contains(&Ability::Input) {
            return Err(self.refused(&command, None, refusal::no_input(here.name())));
        }
        let journey = Journey::new(&command, self.recorder(None, None, &command));
        let start = |approved| Ok(here.spawn(approved, Streams::Input));
        let (process, blank, running) = self.journey(journey, start).await?;
        let tee = running
            .recorder
            .clone()
            .map(|recorder| Box::new(recorded::Onto(recorder)) as Box<dyn Tee>);
        let at_end = Box::new(move |outcome: &mut Outcome| {
            running.explain(outcome);
            running.close(outcome);
        });
        let (limits, spill) = (self.limits(&command), self.spill.clone());
        Ok(Started::new(process, limits, spill, tee, blank, at_end))
    }
}
