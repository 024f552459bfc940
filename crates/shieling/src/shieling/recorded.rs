//! What is recorded of a command: its output, and marks for what was decided about it.

use std::task::{Context, Poll};

use crate::approval::Basis;
use crate::outcome::Outcome;
use crate::output::{Stream, Tee};
use crate::session::{Emulator, JobRequest, Recorder, Watcher, Watchers};

/// Both streams go on a tape, and on to whoever else wants them.
pub(super) struct Recorded<'a> {
    pub(super) tape: Recorder,
    pub(super) tee: Option<&'a mut dyn Tee>,
}

impl Tee for Recorded<'_> {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        self.tape.output(stream, bytes);
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

/// Both streams go on a tape.
pub(super) struct Onto(pub(super) Recorder);

impl Tee for Onto {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.output(stream, bytes);
    }
}

/// Marks on whose yes a command starts.
pub(super) fn approved(tape: Option<&Recorder>, basis: Basis) {
    if let Some(tape) = tape {
        tape.mark(&format!("approved: {}", basis.name()));
    }
}

/// Marks why it does not.
pub(super) fn refused(tape: Option<&Recorder>, outcome: &Outcome) {
    let Some(tape) = tape else { return };
    let reasons = outcome.denial.iter().flat_map(|denial| &denial.reasons);
    let because: Vec<&str> = reasons.map(|reason| reason.because.as_str()).collect();
    let because = if because.is_empty() {
        outcome.error.clone().unwrap_or_default()
    } else {
        because.join("; ")
    };
    tape.mark(&format!("denied: {because}"));
}

/// Marks how it ended.
pub(super) fn ended(tape: &Recorder, outcome: &mut Outcome) {
    let code = outcome.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    tape.mark(&format!("ended: {}{code}", outcome.status.name()));
    if let Some(error) = tape.error() {
        outcome
            .error
            .get_or_insert_with(|| format!("it ran, and could not be recorded to its end: {error}"));
    }
}

/// Who looks on to it: the screen of its terminal, its recording.
pub(super) fn watcher(call: &JobRequest, tape: Option<Recorder>) -> Option<Box<dyn Watcher>> {
    if call.terminal.is_none() && tape.is_none() {
        return None;
    }
    Some(Box::new(Watchers::new(call.terminal.map(Emulator::new), tape)))
}
