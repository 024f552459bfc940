//! What happens to a job, and the way to it that every environment gives.

use std::task::{Context, Poll};
use std::time::Duration;

/// How the main process of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MainEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By the kernel or its jail, since its jail had used up its memory.
    OutOfMemory,
}

/// What the main process and the children that it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time in user code.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The largest resident set of one process, in bytes.
    pub peak_memory: u64,
}

impl From<shieling_jail::message::Usage> for Usage {
    fn from(raw: shieling_jail::message::Usage) -> Self {
        Self {
            user: Duration::from_micros(raw.user_us),
            system: Duration::from_micros(raw.system_us),
            peak_memory: raw.peak_kib.saturating_mul(1024),
        }
    }
}

/// How the rest of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Processes besides the main one that were alive when the job was ended.
    pub ended: u32,
    /// Processes that could not be ended, such as those of another user; 0 is checked.
    pub survivors: u32,
}

/// What happens to a job, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its main process ended; others may go on.
    MainEnded(MainEnd, Usage),
    /// None of its processes is left, or only survivors. The last event.
    Gone(Ended),
    /// Nobody can say any more whether its processes run. The last event.
    Lost,
}

/// The way to a running job. Dropping it ends the job at once, with every process it has.
pub trait Control: Send {
    /// What happens next. Pending for ever after [`Event::Gone`] and [`Event::Lost`].
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event>;

    /// Begins to end the job: SIGTERM, `grace`, SIGKILL. [`Event::Gone`] follows.
    fn stop(&mut self, grace: Duration);
}

/// Contact to a job is lost: its supervisor was killed. It may still be running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the supervisor of the command is gone; some of its processes may still be running")]
pub struct LostError;
