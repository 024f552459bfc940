//! The errors of operations on jobs.

use super::JobId;
use super::request::TerminalSizeError;
use crate::outcome::{Denial, Status};

/// An operation on a job failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// No job has this name.
    #[error("there is no job `{job}`; {}", known_jobs(.known))]
    Unknown {
        /// The name that was requested.
        job: JobId,
        /// The names of all jobs.
        known: Vec<JobId>,
    },
    /// The job has ended.
    #[error("job `{job}` has ended ({}); its output can still be viewed", .status.name())]
    Ended {
        /// The job.
        job: JobId,
        /// How it ended.
        status: Status,
    },
    /// The job was started without a standard input that stays open.
    #[error(
        "job `{job}` reads from nowhere: its standard input is at its end; start it with `background` or `tty` to write to \
         it (`memory` gives input whole, with the command)"
    )]
    NoInput {
        /// The job.
        job: JobId,
    },
    /// The job has no terminal.
    #[error("job `{job}` has no terminal; start it with `tty` for {what}")]
    NoTerminal {
        /// The job.
        job: JobId,
        /// The operation that needs a terminal.
        what: &'static str,
    },
    /// The terminal size is outside of the bounds.
    #[error(transparent)]
    Size(TerminalSizeError),
    /// The job's input buffer is full because the job does not read it.
    #[error("job `{job}` does not read its input: {left} bytes could not be written")]
    Full {
        /// The job.
        job: JobId,
        /// The number of bytes that were not written.
        left: usize,
    },
    /// A person has taken over the keyboard.
    #[error("a person has control of job `{job}`; view it, and write again once control is given back")]
    PersonHolds {
        /// The job.
        job: JobId,
    },
    /// No key has this name.
    #[error("there is no key `{key}`; keys are single characters, {known}")]
    UnknownKey {
        /// The name that was requested.
        key: String,
        /// The names of all keys.
        known: &'static str,
    },
    /// The regular expression is invalid.
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
    /// The job has a loopback device of its own, which no other process can reach.
    #[error(
        "job `{job}` has a network of its own, in which nobody else sees whether a port is open; wait for a pattern in its output instead"
    )]
    OwnNetwork {
        /// The job.
        job: JobId,
    },
    /// The largest number of jobs is running or about to start.
    #[error("{most} jobs are running or waiting to, and that is the most; end one, or wait for its end")]
    TooMany {
        /// The largest number of jobs.
        most: usize,
    },
    /// All jobs were ended and no more are started.
    #[error("all jobs were ended and no more are started")]
    Closed,
    /// The input is longer than what can be approved and recorded at once.
    #[error("{bytes} bytes cannot be typed at once, the limit is {most}; write them to a file, or in parts")]
    TooLong {
        /// The length of the input, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// The input could not be recorded, and so was not written.
    #[error("it was not written, since it could not be recorded: {0}")]
    Unrecorded(String),
    /// The input was not approved.
    #[error("it was not approved")]
    Refused(Box<Denial>),
}

fn known_jobs(jobs: &[JobId]) -> String {
    if jobs.is_empty() {
        return "there are no jobs".to_owned();
    }
    let names: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
    format!("there are {}", names.join(", "))
}
