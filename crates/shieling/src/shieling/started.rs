//! Starting a program that is talked to: the journey of a command, except that its handle comes back before
//! its outcome.

use std::sync::Arc;

use super::entry::blank;
use super::{Shieling, file_size, recorded, refusal, refuse, started};
use crate::environment::Ability;
use crate::outcome::{Outcome, Status};
use crate::output::Tee;
use crate::process::{Limits, Started, Streams};
use crate::request::Command;

impl Shieling {
    /// Starts one command to be talked to: judges, records, asks and starts it as [`run`](Self::run) does,
    /// and gives the way to its input and output. Its end is recorded when it comes.
    ///
    /// What is sent to it is not judged, as nobody knows what reads it: who starts a shell in this way has
    /// started whatever is sent to it.
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
    /// The outcome that says why nothing was started: `denied`, `needs_approval` or `rate_limited` with a
    /// `denial`, also where the environment's programs cannot be written to, and `failed` with an `error`.
    /// # Cancel safety
    /// Dropping the future ends what may have been started, and records that nobody saw its end.
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn start(&self, command: Command) -> Result<Started, Box<Outcome>> {
        let command = self.prepared(command);
        let mut entry = self.entry(&command);
        let here = &self.environment;
        let unrecorded = |status| blank(&command, here.name(), here.confinement(), status);
        let no = |outcome| Err(Box::new(outcome));
        if !here.capabilities().abilities.contains(&Ability::Input) {
            let refused = refusal::no_input(here.name());
            return no(refuse(&mut entry, unrecorded(Status::Denied), refused));
        }
        let tape = match self.own_tape(None, &command) {
            Ok(tape) => tape,
            Err(error) => {
                return no(refuse(
                    &mut entry,
                    unrecorded(Status::Denied),
                    refusal::unrecorded(&error),
                ));
            }
        };
        let recording = tape.as_ref().map(|tape| tape.id().to_string());
        let approved = match self.admit(&command, &mut entry, None).await {
            Ok(approved) => approved,
            Err(refused) => {
                recorded::refused(tape.as_ref(), &refused);
                return no(Outcome { recording, ..*refused });
            }
        };
        recorded::approved(tape.as_ref(), approved.basis());
        let blank = |status| Outcome {
            recording: recording.clone(),
            ..unrecorded(status)
        };
        let before = here.strikes();
        let process = started(&mut entry, here.spawn(approved, Streams::Input), blank).await?;

        let mut limits = Limits::of(&command);
        limits.output = self.output_limit;
        let tee = tape.clone().map(|tape| Box::new(recorded::Onto(tape)) as Box<dyn Tee>);
        let environment = Arc::clone(&self.environment);
        let largest = command.file_size();
        let at_end = Box::new(move |outcome: &mut Outcome| {
            file_size::tell(&*environment, outcome, &before, largest);
            if let Some(tape) = &tape {
                recorded::ended(tape, outcome);
            }
            entry.close(outcome);
        });
        let blank = blank(Status::Exited);
        Ok(Started::new(process, limits, self.spill.clone(), tee, blank, at_end))
    }
}
