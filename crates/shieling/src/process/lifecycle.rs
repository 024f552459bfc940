//! The life of a job as a state machine without I/O: what happens to the job goes in, and what its driver does next
//! comes out. One for commands that run to their end, interactive programs, and jobs of sessions.
//!
//! ```text
//!              main ended (1)            quiet, or LINGER over
//! running ───────────────────► lingering ──┬─ leftovers are ended ─► stopping ──► end unknown
//!    │ deadline, output limit,             └─ else ─► background        ▲  │ its time is over
//!    │ request to stop                                     │ request    │  │
//!    └─────────────────────────────────────────────────────┴────────────┘  │ all processes gone
//!                                      from each state: all processes gone ┴► draining ──► over (2)
//! ```
//!
//! 1. Once the output is drained. Until then the caller reads the pipes, and what is left of the job may be waiting for
//!    the caller.
//! 2. With the end of the pipes, or after [`DRAIN`].

use std::time::{Duration, Instant};

use super::event::{Ended, MainEnd, Usage};
use super::finished::{End, Finished};
use super::handle::STOP_MARGIN;
use super::streams::DRAIN;
use crate::output::{Captured, Spilled};
use crate::units::ByteCount;

/// The rest of a job continues after the end of its main process as long as it writes something at least this often:
/// the last stage of a process substitution, for example.
const QUIET: Duration = Duration::from_millis(20);
/// The longest time that it continues.
const LINGER: Duration = Duration::from_millis(200);
/// The time between SIGTERM and SIGKILL for leftovers.
const LEFT_BEHIND_GRACE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Lingering { until: Instant },
    Background,
    Stopping,
    Draining,
}

/// What the driver of a job does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Action {
    /// It waits for what happens next.
    Continue,
    /// It sets its timer.
    SetTimer(Instant),
    /// It has the processes ended, and sets its timer.
    Stop { grace: Duration, timer: Instant },
    /// It reports the end of the command. The processes that the command left in the background continue.
    Report,
    /// It reads what the pipes hold, and waits for no more output.
    CloseOutput,
    /// It gives up: whether processes are left is unknown.
    GiveUp,
}

/// The state of a job between its start and its end.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    grace: Duration,
    output_limit: Option<ByteCount>,
    ends_leftovers: bool,
    phase: Phase,
    /// Why the driver ended the command, if it did.
    cause: Option<End>,
    main_ended: Option<Instant>,
}

impl Lifecycle {
    /// Creates the state of a job that has started. `grace` is the time between SIGTERM and SIGKILL. If leftovers are
    /// not ended, they continue in the background.
    pub(crate) fn new(grace: Duration, output_limit: Option<ByteCount>, ends_leftovers: bool) -> Self {
        Self {
            grace,
            output_limit,
            ends_leftovers,
            phase: Phase::Running,
            cause: None,
            main_ended: None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.phase == Phase::Stopping
    }

    /// Returns whether no process is left.
    pub(crate) fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// Returns whether the job is over at the end of its output.
    pub(crate) fn is_over_with_output(&self) -> bool {
        match self.phase {
            Phase::Draining => true,
            Phase::Lingering { .. } | Phase::Background => !self.ends_leftovers,
            Phase::Running | Phase::Stopping => false,
        }
    }

    /// The main process has ended.
    pub(crate) fn main_ended(&mut self, now: Instant, drained: bool) -> Action {
        self.main_ended = Some(now);
        if drained { self.drained(now) } else { Action::Continue }
    }

    /// The output is drained from now on.
    pub(crate) fn drained(&mut self, now: Instant) -> Action {
        if self.phase != Phase::Running || self.main_ended.is_none() {
            return Action::Continue;
        }
        self.phase = Phase::Lingering { until: now + LINGER };
        Action::SetTimer(now + QUIET)
    }

    /// All processes are gone.
    pub(crate) fn gone(&mut self, now: Instant) -> Action {
        self.phase = Phase::Draining;
        Action::SetTimer(now + DRAIN)
    }

    /// The timer has expired. In a running job, this is its deadline.
    pub(crate) fn timer_expired(&mut self, now: Instant) -> Action {
        match (self.phase, self.main_ended) {
            (Phase::Running, None) => self.end_command(now, End::TimedOut),
            (Phase::Lingering { .. }, _) if !self.ends_leftovers => {
                self.phase = Phase::Background;
                Action::Report
            }
            (Phase::Running, Some(_)) | (Phase::Lingering { .. }, _) => self.begin_stop(now, LEFT_BEHIND_GRACE),
            (Phase::Background, _) => Action::Continue,
            (Phase::Stopping, _) => Action::GiveUp,
            (Phase::Draining, _) => Action::CloseOutput,
        }
    }

    /// The caller ends the job. `cause` becomes the end of the command, unless its main process has ended before.
    pub(crate) fn stop(&mut self, now: Instant, cause: Option<End>, grace: Duration) -> Action {
        match self.phase {
            Phase::Draining => return Action::Continue,
            Phase::Running => self.cause = cause.filter(|_| self.main_ended.is_none()),
            Phase::Lingering { .. } | Phase::Background | Phase::Stopping => {}
        }
        self.begin_stop(now, grace)
    }

    /// Output was read: this many bytes now, and in total.
    pub(crate) fn output(&mut self, now: Instant, read: usize, total: u64) -> Action {
        match self.phase {
            Phase::Running if self.output_limit.is_some_and(|limit| total > limit.get()) => {
                self.end_command(now, End::OutputLimit)
            }
            Phase::Lingering { until } if read > 0 => Action::SetTimer(until.min(now + QUIET)),
            Phase::Running | Phase::Lingering { .. } | Phase::Background | Phase::Stopping | Phase::Draining => {
                Action::Continue
            }
        }
    }

    fn end_command(&mut self, now: Instant, cause: End) -> Action {
        self.cause = Some(cause);
        self.begin_stop(now, self.grace)
    }

    fn begin_stop(&mut self, now: Instant, grace: Duration) -> Action {
        self.phase = Phase::Stopping;
        let timer = now.checked_add(grace.saturating_add(STOP_MARGIN));
        Action::Stop {
            grace,
            timer: timer.unwrap_or(now + STOP_MARGIN),
        }
    }

    /// Returns how the command ended: with the end of its main process and of the rest, as far as they are known now.
    pub(crate) fn finished(
        &self,
        (started, now): (Instant, Instant),
        main: Option<(MainEnd, Usage)>,
        last: Option<Ended>,
        (stdout, stderr, spilled): (Captured, Captured, Option<Spilled>),
    ) -> Finished {
        let ended_at = match self.cause {
            Some(_) => now,
            None => self.main_ended.unwrap_or(now),
        };
        let (ended_processes, survivors) = last.map_or((0, 1), |last| (last.ended, last.survivors));
        Finished {
            end: End::of(self.cause, main.map(|(end, _)| end), last.is_none()),
            stdout,
            stderr,
            spilled,
            duration: ended_at.saturating_duration_since(started),
            ended_processes,
            survivors,
            usage: main.map(|(_, usage)| usage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(1);

    /// What happens to a job, at a number of milliseconds after its start.
    #[derive(Debug, Clone, Copy)]
    enum Happens {
        MainEnded,
        /// The main process ends, and the caller reads the output.
        MainEndedUndrained,
        Drained,
        Output(u64),
        Timer,
        Stop(Option<End>),
        Gone,
    }
    use Happens::{Drained, Gone, MainEnded, MainEndedUndrained, Output, Stop, Timer};

    /// What is done, with times in milliseconds.
    #[derive(Debug, PartialEq)]
    enum Done {
        Nothing,
        Timer(u64),
        Stop { grace: u64, timer: u64 },
        Report,
        CloseOutput,
        GiveUp,
    }

    fn stop(grace: u64, at: u64) -> Done {
        Done::Stop {
            grace,
            timer: at + grace + u64::try_from(STOP_MARGIN.as_millis()).expect("a short time"),
        }
    }

    fn check(name: &str, ends_leftovers: bool, steps: Vec<(u64, Happens, Done)>, cause: Option<End>) {
        let start = Instant::now();
        let since = |time: Instant| u64::try_from((time - start).as_millis()).expect("a short time");
        let mut life = Lifecycle::new(GRACE, Some(ByteCount::bytes(100)), ends_leftovers);
        for (at, happens, expected) in steps {
            let now = start + Duration::from_millis(at);
            let action = match happens {
                MainEnded => life.main_ended(now, true),
                MainEndedUndrained => life.main_ended(now, false),
                Drained => life.drained(now),
                Output(total) => life.output(now, 1, total),
                Timer => life.timer_expired(now),
                Stop(cause) => life.stop(now, cause, Duration::from_millis(7)),
                Gone => life.gone(now),
            };
            let done = match action {
                Action::Continue => Done::Nothing,
                Action::SetTimer(time) => Done::Timer(since(time)),
                Action::Stop { grace, timer } => Done::Stop {
                    grace: u64::try_from(grace.as_millis()).expect("a short time"),
                    timer: since(timer),
                },
                Action::Report => Done::Report,
                Action::CloseOutput => Done::CloseOutput,
                Action::GiveUp => Done::GiveUp,
            };
            assert_eq!(done, expected, "{name}: {happens:?} at {at}");
        }
        assert_eq!(life.cause, cause, "{name}");
    }

    #[test]
    fn a_job_goes_from_its_start_to_its_end_by_these_steps() {
        check(
            "by itself",
            true,
            vec![
                (5, Output(10), Done::Nothing),
                (9, MainEnded, Done::Timer(29)),
                (10, Gone, Done::Timer(110)),
                (11, Output(20), Done::Nothing),
                (110, Timer, Done::CloseOutput),
            ],
            None,
        );
        check(
            "deadline",
            true,
            vec![
                (50, Timer, stop(1_000, 50)),
                (60, MainEnded, Done::Nothing),
                (11_050, Timer, Done::GiveUp),
            ],
            Some(End::TimedOut),
        );
        check(
            "output limit",
            true,
            vec![
                (1, Output(100), Done::Nothing),
                (2, Output(101), stop(1_000, 2)),
                (3, Output(999), Done::Nothing),
            ],
            Some(End::OutputLimit),
        );
        check(
            "leftovers that write are waited for, and then ended",
            true,
            vec![
                (0, MainEnded, Done::Timer(20)),
                (15, Output(1), Done::Timer(35)),
                (190, Output(500), Done::Timer(200)),
                (200, Timer, stop(100, 200)),
                (210, Gone, Done::Timer(310)),
            ],
            None,
        );
        check(
            "leftovers that continue",
            false,
            vec![
                (0, MainEnded, Done::Timer(20)),
                (20, Timer, Done::Report),
                (30, Output(500), Done::Nothing),
                (40, Stop(Some(End::TimedOut)), stop(7, 40)),
            ],
            None,
        );
        check(
            "the caller reads the output",
            true,
            vec![
                (0, MainEndedUndrained, Done::Nothing),
                (10, Drained, Done::Timer(30)),
                (11, Drained, Done::Nothing),
            ],
            None,
        );
        check(
            "a deadline after the main process",
            true,
            vec![(0, MainEndedUndrained, Done::Nothing), (50, Timer, stop(100, 50))],
            None,
        );
        check(
            "a request to stop",
            true,
            vec![
                (0, Drained, Done::Nothing),
                (1, Stop(Some(End::TimedOut)), stop(7, 1)),
                (2, Stop(None), stop(7, 2)),
                (3, Gone, Done::Timer(103)),
                (4, Stop(None), Done::Nothing),
            ],
            Some(End::TimedOut),
        );
        check(
            "a request to stop after the main process",
            true,
            vec![
                (0, MainEndedUndrained, Done::Nothing),
                (1, Stop(Some(End::TimedOut)), stop(7, 1)),
            ],
            None,
        );
    }
}
