//! The task that drives an interactive program: it keeps the deadline, receives the end, has it recorded, and drains
//! unreceived output once the caller asks for that.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::output_pipes::{Drained, OutputPipes};
use crate::outcome::Outcome;
use crate::output::{Capture, SpillTo, Stream};
use crate::process::drive::{CallerControl, Drive};
use crate::process::{Job, Limits};

/// What is done with the outcome once it stands, such as recording it.
pub(crate) type AtEnd = Box<dyn FnOnce(&mut Outcome) + Send>;

/// The progress of an interactive program.
pub(super) enum Stage {
    /// Processes of it may still write.
    Running,
    /// No process of it can write any more. Its pipes may not be empty.
    Gone,
    /// All of its processes have ended, and its pipes are empty.
    Over(Box<Outcome>),
}

/// The state that the task owns.
pub(super) struct DriverTask {
    pub(super) job: Job,
    pub(super) output: Arc<OutputPipes>,
    pub(super) started: Instant,
    pub(super) limits: Limits,
    pub(super) spill: Option<SpillTo>,
    pub(super) caller: CallerControl,
    pub(super) stage: watch::Sender<Stage>,
    pub(super) blank: Outcome,
    pub(super) at_end: AtEnd,
}

impl DriverTask {
    /// Drives the program until all of its processes have ended. Dropping the future ends them at once.
    pub(super) async fn run(mut self) {
        // Received and drained bytes count together, so the limit of all output is kept there.
        let limits = Limits {
            output: None,
            ..self.limits
        };
        let mut drained = Drained(&self.output);
        let mut drive = Drive::new(
            &mut self.job,
            &self.output.pipes,
            self.started,
            &limits,
            Capture::new(limits.keep, self.spill.as_ref()),
            Some(&mut drained),
        )
        .caller(self.caller);
        drive.drive().await;

        // Its end stands from here on, and is recorded even if nobody asks for the rest.
        let mut ended = drive.so_far().into_outcome(self.blank.clone());
        ended.stdout_bytes = self.output.written(Stream::Stdout);
        ended.stderr_bytes = self.output.written(Stream::Stderr);
        (self.at_end)(&mut ended);
        self.stage.send_replace(Stage::Gone);

        drive.until_drained().await;
        drive.rest().await;
        let mut outcome = drive.finish().into_outcome(self.blank);
        outcome.stdout_bytes = self.output.written(Stream::Stdout);
        outcome.stderr_bytes = self.output.written(Stream::Stderr);
        outcome.recording = ended.recording;
        outcome.changes = ended.changes;
        outcome.hints = ended.hints;
        outcome.limits_hit = ended.limits_hit;
        outcome.error = ended.error.or(outcome.error);
        self.stage.send_replace(Stage::Over(Box::new(outcome)));
    }
}
