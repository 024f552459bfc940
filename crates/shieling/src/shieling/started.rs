//! Starts an interactive program: the journey of a command, except that a handle is returned before the outcome.

use std::sync::Arc;

use super::entry::blank;
use super::{Shieling, file_size, recorded, refusal, refuse, started};
use crate::environment::Ability;
use crate::outcome::{Outcome, Status};
use crate::output::Tee;
use crate::process::{Limits, Started, Streams};
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
        let mut entry = self.entry(&command);
        let here = &self.environment;
        let unrecorded = |status| blank(&command, here.name(), here.confinement(), status);
        let no = |outcome| Err(Box::new(outcome));
        if !here.capabilities().abilities.contains(&Ability::Input) {
            let refused = refusal::no_input(here.name());
            return no(refuse(&mut entry, unrecorded(Status::Denied), refused));
        }
        let recorder = match self.own_recorder(None, &command) {
            Ok(recorder) => recorder,
            Err(error) => {
                return no(refuse(
                    &mut entry,
                    unrecorded(Status::Denied),
                    refusal::unrecorded(&error),
                ));
            }
        };
        let recording = recorder.as_ref().map(|recorder| recorder.id().to_string());
        let approved = match self.admit(&command, &mut entry, None).await {
            Ok(approved) => approved,
            Err(refused) => {
                recorded::refused(recorder.as_ref(), &refused);
                return no(Outcome { recording, ..*refused });
            }
        };
        recorded::approved(recorder.as_ref(), approved.basis());
        let blank = |status| Outcome {
            recording: recording.clone(),
            ..unrecorded(status)
        };
        let before = here.strikes();
        let process = started(&mut entry, here.spawn(approved, Streams::Input), blank).await?;

        let mut limits = Limits::of(&command);
        limits.output = self.output_limit;
        let tee = recorder
            .clone()
            .map(|recorder| Box::new(recorded::Onto(recorder)) as Box<dyn Tee>);
        let environment = Arc::clone(&self.environment);
        let largest = command.file_size();
        let at_end = Box::new(move |outcome: &mut Outcome| {
            file_size::tell(&*environment, outcome, &before, largest);
            if let Some(recorder) = &recorder {
                recorded::ended(recorder, outcome);
            }
            entry.close(outcome);
        });
        let blank = blank(Status::Exited);
        Ok(Started::new(process, limits, self.spill.clone(), tee, blank, at_end))
    }
}
