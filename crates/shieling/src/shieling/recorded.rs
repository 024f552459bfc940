//! Records the output of a command, and marks for the decisions about it.

use std::task::{Context, Poll};

use crate::approval::Basis;
use crate::outcome::Outcome;
use crate::output::{Stream, Tee};
use crate::session::{Emulator, JobRequest, Recorder, Watcher, Watchers};

/// Both streams are recorded, and on to whoever else wants them.
pub(super) struct Recorded<'a> {
    pub(super) recorder: Recorder,
    pub(super) tee: Option<&'a mut dyn Tee>,
}

impl Tee for Recorded<'_> {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        self.recorder.output(stream, bytes);
        if let Some(tee) = &mut self.tee {
            tee.bytes(stream, bytes);
        }
    }

    fn poll_ready(&self, stream: Stream, cx: &mut Context<'_>) -> Poll<()> {
        match &self.tee {
            Some(tee) => tee.poll_ready(stream, cx),
            None => Poll::Ready(()),
        }
    }
}

/// Both streams are recorded.
pub(super) struct Onto(pub(super) Recorder);

impl Tee for Onto {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.output(stream, bytes);
    }
}

/// Marks the basis of a command's approval.
pub(super) fn approved(recorder: Option<&Recorder>, basis: Basis) {
    if let Some(recorder) = recorder {
        recorder.mark(&format!("approved: {}", basis.name()));
    }
}

/// Marks why a command was refused.
pub(super) fn refused(recorder: Option<&Recorder>, outcome: &Outcome) {
    let Some(recorder) = recorder else { return };
    let reasons = outcome.denial.iter().flat_map(|denial| &denial.reasons);
    let because: Vec<&str> = reasons.map(|reason| reason.because.as_str()).collect();
    let because = if because.is_empty() {
        outcome.error.clone().unwrap_or_default()
    } else {
        because.join("; ")
    };
    recorder.mark(&format!("denied: {because}"));
}

/// Marks how a command ended.
pub(super) fn ended(recorder: &Recorder, outcome: &mut Outcome) {
    let code = outcome.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    recorder.mark(&format!("ended: {}{code}", outcome.status.name()));
    if let Some(error) = recorder.error() {
        outcome
            .error
            .get_or_insert_with(|| format!("it ran, and could not be recorded to its end: {error}"));
    }
}

/// Returns the watcher of a job's output: the screen of its terminal and its recording.
pub(super) fn watcher(call: &JobRequest, recorder: Option<Recorder>) -> Option<Box<dyn Watcher>> {
    if call.terminal.is_none() && recorder.is_none() {
        return None;
    }
    Some(Box::new(Watchers::new(call.terminal.map(Emulator::new), recorder)))
}
