//! The task beside a program that is talked to: keeps its deadline whoever looks, hears how it ends, has that
//! recorded, and drains what nobody received once that is wished for.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::intake::{Drained, Intake};
use crate::outcome::Outcome;
use crate::output::{Capture, SpillTo, Stream};
use crate::process::drive::{Attended, Drive};
use crate::process::{Job, Limits};

/// What is done with the outcome once it stands, such as recording it.
pub(crate) type AtEnd = Box<dyn FnOnce(&mut Outcome) + Send>;

/// How far a program that is talked to has come.
pub(super) enum Stage {
    /// Something of it may still write.
    Running,
    /// Nothing of it will write any more; its pipes may not be empty.
    Gone,
    /// Nothing is left of it, and nothing in its pipes.
    Over(Box<Outcome>),
}

/// What the task owns.
pub(super) struct Attendant {
    pub(super) job: Job,
    pub(super) intake: Arc<Intake>,
    pub(super) started: Instant,
    pub(super) limits: Limits,
    pub(super) spill: Option<SpillTo>,
    pub(super) attended: Attended,
    pub(super) stage: watch::Sender<Stage>,
    pub(super) blank: Outcome,
    pub(super) at_end: AtEnd,
}

impl Attendant {
    /// Until nothing is left of it. Dropping the future ends it at once.
    pub(super) async fn attend(mut self) {
        // Received and drained bytes count together, so the limit of all output is kept there.
        let limits = Limits {
            output: None,
            ..self.limits
        };
        let mut drained = Drained(&self.intake);
        let mut drive = Drive::new(
            &mut self.job,
            &self.intake.pipes,
            self.started,
            &limits,
            Capture::new(limits.keep, self.spill.as_ref()),
            Some(&mut drained),
        )
        .attended(self.attended);
        drive.drive().await;

        // Its end stands from here on, and is recorded even if nobody asks for the rest.
        let mut ended = drive.so_far().into_outcome(self.blank.clone());
        ended.stdout_bytes = self.intake.written(Stream::Stdout);
        ended.stderr_bytes = self.intake.written(Stream::Stderr);
        (self.at_end)(&mut ended);
        self.stage.send_replace(Stage::Gone);

        drive.until_drained().await;
        drive.rest().await;
        let mut outcome = drive.finish().into_outcome(self.blank);
        outcome.stdout_bytes = self.intake.written(Stream::Stdout);
        outcome.stderr_bytes = self.intake.written(Stream::Stderr);
        outcome.recording = ended.recording;
        outcome.changes = ended.changes;
        outcome.hints = ended.hints;
        outcome.limits_hit = ended.limits_hit;
        outcome.error = ended.error.or(outcome.error);
        self.stage.send_replace(Stage::Over(Box::new(outcome)));
    }
}
