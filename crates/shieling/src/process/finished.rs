//! The bounds of a run, and how it ended.

use std::time::Duration;

use super::event::{LostError, MainEnd, Usage};
use crate::outcome::{Outcome, Status};
use crate::output::{Captured, Spilled};
use crate::request::Command;
use crate::units::ByteCount;

/// The bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run, from its start.
    pub deadline: Duration,
    /// Between SIGTERM and SIGKILL at the deadline.
    pub grace: Duration,
    /// How much is kept of each stream.
    pub keep: ByteCount,
    /// How much both streams together may give before the command is ended (default: any amount).
    pub output: Option<ByteCount>,
}

impl Limits {
    /// Those of a command.
    pub fn of(command: &Command) -> Self {
        Self {
            deadline: command.deadline(),
            grace: command.grace(),
            keep: command.output_kept(),
            output: None,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// At its deadline.
    TimedOut,
    /// By its memory limit.
    OutOfMemory,
    /// At its output limit.
    OutputLimit,
    /// Contact was lost; some of its processes may still be running.
    Lost,
}

impl End {
    /// The end of a job that was ended for this cause, or ended so by itself.
    pub(crate) fn of(cause: Option<Self>, main: Option<MainEnd>, lost: bool) -> Self {
        match (cause, main) {
            _ if lost => Self::Lost,
            (Some(cause), _) => cause,
            (None, Some(MainEnd::Exited(code))) => Self::Exited(code),
            (None, Some(MainEnd::Signalled(signal))) => Self::Signalled(signal),
            (None, Some(MainEnd::OutOfMemory)) => Self::OutOfMemory,
            (None, None) => Self::Lost,
        }
    }

    /// The code that a shell would report: 128+N for signal N, 124 for a timeout.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signalled(signal) => Some(128 + signal),
            Self::TimedOut => Some(124),
            Self::OutOfMemory | Self::OutputLimit | Self::Lost => None,
        }
    }
}

/// A run that is over.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What was kept of standard output.
    pub stdout: Captured,
    /// What was kept of standard error.
    pub stderr: Captured,
    /// The file with the whole output, if it was more than was kept and a place was given.
    pub spilled: Option<Spilled>,
    /// From the start to the end of the main process, or to the end of everything if it was ended.
    pub duration: Duration,
    /// Processes besides the main one that were alive when the run was ended, or were left behind.
    pub ended_processes: u32,
    /// Processes that could not be ended; 0 is checked. At least 1 if contact was lost.
    pub survivors: u32,
    /// What the main process used; unknown if contact was lost.
    pub usage: Option<Usage>,
}

impl Finished {
    /// The outcome, with all that nobody but the caller knows taken from `blank`.
    pub(crate) fn into_outcome(self, blank: Outcome) -> Outcome {
        let (output_id, spill_error) = self.spilled.map_or((None, None), |spilled| (spilled.id, spilled.error));
        Outcome {
            status: match self.end {
                End::Exited(_) => Status::Exited,
                End::Signalled(_) => Status::Signalled,
                End::TimedOut => Status::TimedOut,
                End::OutOfMemory => Status::OutOfMemory,
                End::OutputLimit => Status::OutputLimit,
                End::Lost => Status::Lost,
            },
            exit_code: self.end.exit_code(),
            signal: if let End::Signalled(signal) = self.end {
                Some(signal)
            } else {
                None
            },
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            stdout_bytes: self.stdout.total(),
            stderr_bytes: self.stderr.total(),
            truncated: self.stdout.truncated() || self.stderr.truncated(),
            output_id: output_id.map(|id| id.to_string()),
            duration_ms: self.duration.as_secs_f64() * 1_000.0,
            survivors: self.survivors,
            ended_processes: self.ended_processes,
            error: match self.end {
                End::Lost => Some(LostError.to_string()),
                End::Exited(_) | End::Signalled(_) | End::TimedOut | End::OutOfMemory | End::OutputLimit => {
                    spill_error.map(|error| format!("the whole output could not be kept: {error}"))
                }
            },
            ..blank
        }
    }
}
