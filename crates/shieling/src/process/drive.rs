//! Drives a process to its end, by the steps of its [`Lifecycle`]: drains its output throughout, and keeps its deadline.
//!
//! Where the caller reads the pipes, nothing is drained until the caller wishes it.

use std::future::poll_fn;
use std::io;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use super::event::{Ended, Event, MainEnd};
use super::finished::{End, Finished, Limits};
use super::handle::Job;
use super::lifecycle::{Action, Lifecycle};
use super::output_reader::{OutputReader, Reading, read_pipe};
use super::streams::DRAIN;
use crate::output::{Capture, Captured, Spilled, Stream, Tee};

/// What the caller of a job wishes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wishes {
    /// Drain its output from now on.
    pub(super) drained: bool,
    /// End the job.
    pub(super) stop: Option<Stop>,
}

/// How a job is to be ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    /// How it has then ended; otherwise as its main process really does.
    pub(super) cause: Option<End>,
    /// Between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// The channels between a driver and the caller of its job: the caller's wishes, and the end of the main process.
pub(super) struct CallerControl {
    pub(super) wishes: watch::Receiver<Wishes>,
    pub(super) main: watch::Sender<Option<MainEnd>>,
}

/// One job on its way to its end.
pub(super) struct Drive<'a, 'b> {
    job: &'a mut Job,
    pipes: &'a [pipe::Receiver; 2],
    started: Instant,
    limits: &'a Limits,
    capture: Capture,
    tee: Option<&'b mut dyn Tee>,
    caller: Option<CallerControl>,
    /// Whether the output is drained.
    drains: bool,
    output: OutputReader,
    life: Lifecycle,
    /// What is known of its end, and since when: nothing if contact was lost.
    last: Option<(Option<Ended>, Instant)>,
}

enum Wake {
    Event(Event),
    Timer,
    Wished(Wishes),
    Output(Stream, bool),
}

impl<'a, 'b> Drive<'a, 'b> {
    /// Of a job whose output is drained from now on.
    pub(super) fn new(
        job: &'a mut Job,
        pipes: &'a [pipe::Receiver; 2],
        started: Instant,
        limits: &'a Limits,
        capture: Capture,
        tee: Option<&'b mut dyn Tee>,
    ) -> Self {
        Self {
            job,
            pipes,
            started,
            limits,
            capture,
            tee,
            caller: None,
            drains: true,
            output: OutputReader::new([true, true]),
            life: Lifecycle::new(limits.grace, limits.output, true),
            last: None,
        }
    }

    /// For somebody who reads the pipes until they wish that they are drained.
    pub(super) fn caller(mut self, by: CallerControl) -> Self {
        self.drains = by.wishes.borrow().drained;
        self.caller = Some(by);
        self
    }

    /// Until nothing of it is left but what may still be in its pipes, or contact is lost.
    pub(super) async fn drive(&mut self) {
        let last = self.until_gone().await;
        self.last = Some((last, Instant::now()));
    }

    async fn until_gone(&mut self) -> Option<Ended> {
        // A deadline beyond the clock is none.
        let far = || Instant::now() + Duration::from_secs(60 * 60 * 24 * 365);
        let deadline = self.started.checked_add(self.limits.deadline).unwrap_or_else(far);
        let timer = sleep_until(deadline.into());
        tokio::pin!(timer);
        loop {
            let wake = tokio::select! {
                biased;
                event = self.job.event() => Wake::Event(event),
                () = &mut timer => Wake::Timer,
                wishes = wished(&mut self.caller), if self.caller.is_some() => Wake::Wished(wishes),
                ready = readable(self.pipes, &self.tee, Stream::Stdout), if self.drains && self.output.open[0] => {
                    Wake::Output(Stream::Stdout, ready.is_ok())
                }
                ready = readable(self.pipes, &self.tee, Stream::Stderr), if self.drains && self.output.open[1] => {
                    Wake::Output(Stream::Stderr, ready.is_ok())
                }
            };
            let now = Instant::now();
            let action = match wake {
                Wake::Event(Event::MainEnded(end, _)) => {
                    if let Some(caller) = &self.caller {
                        caller.main.send_replace(Some(end));
                    }
                    self.life.main_ended(now, self.drains)
                }
                Wake::Event(Event::Gone(ended)) => return Some(ended),
                Wake::Event(Event::Lost) => return None,
                Wake::Timer => self.life.timer_expired(now),
                Wake::Wished(wishes) => self.obey(now, wishes),
                Wake::Output(stream, true) => {
                    let read = self.read(stream, Reading::Ready);
                    self.life.output(now, read, self.capture.total())
                }
                Wake::Output(stream, false) => {
                    self.output.open[stream as usize] = false;
                    Action::Continue
                }
            };
            match action {
                Action::SetTimer(time) => timer.as_mut().reset(time.into()),
                Action::Stop { grace, timer: time } => {
                    self.job.begin_stop(grace);
                    timer.as_mut().reset(time.into());
                }
                Action::GiveUp => return None,
                // The last two are for leftovers that continue, and for a job that is gone.
                Action::Continue | Action::Report | Action::CloseOutput => {}
            }
        }
    }

    fn obey(&mut self, now: Instant, wishes: Wishes) -> Action {
        self.drains |= wishes.drained;
        match wishes.stop {
            Some(_) if self.life.is_stopping() => Action::Continue,
            Some(stop) => self.life.stop(now, stop.cause, stop.grace),
            None if self.drains => self.life.drained(now),
            None => Action::Continue,
        }
    }

    /// Until it is wished that what is left in the pipes is drained.
    pub(super) async fn until_drained(&mut self) {
        while !self.drains {
            self.drains = wished(&mut self.caller).await.drained;
        }
    }

    /// Reads what it left in its pipes: all of it, or what is there of a job that may go on.
    pub(super) async fn rest(&mut self) {
        if !matches!(self.last, Some((Some(_), _))) {
            return self.read_rest();
        }
        let timer = sleep(DRAIN);
        tokio::pin!(timer);
        while self.output.open != [false, false] {
            let (stream, ready) = tokio::select! {
                biased;
                () = &mut timer => return self.read_rest(),
                ready = self.pipes[0].readable(), if self.output.open[0] => (Stream::Stdout, ready.is_ok()),
                ready = self.pipes[1].readable(), if self.output.open[1] => (Stream::Stderr, ready.is_ok()),
            };
            if ready {
                self.read(stream, Reading::Ready);
            } else {
                self.output.open[stream as usize] = false;
            }
        }
    }

    /// Reads what is there. Gives the number of bytes.
    fn read(&mut self, stream: Stream, how: Reading) -> usize {
        let Self {
            pipes, tee, capture, ..
        } = self;
        let pipe = &pipes[stream as usize];
        let read = |buffer: &mut [u8]| read_pipe(pipe, buffer, how);
        let count = self.output.read(stream, how, read, |bytes| {
            if let Some(tee) = tee {
                tee.bytes(stream, bytes);
            }
            capture.push(stream, bytes);
        });
        self.output.enlarge(stream, pipe, capture.stream_total(stream));
        count
    }

    /// A last look at pipes that do not end: what is in them now, and no more.
    fn read_rest(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.output.open[stream as usize] {
                self.read(stream, Reading::Now);
            }
        }
    }

    /// How it ended, as far as it is known, with what was drained so far.
    pub(super) fn so_far(&self) -> Finished {
        let [stdout, stderr] = [Stream::Stdout, Stream::Stderr].map(|stream| self.capture.so_far(stream));
        self.finished((stdout, stderr, None))
    }

    /// How it ended, with what was drained.
    pub(super) fn finish(mut self) -> Finished {
        let capture = std::mem::replace(&mut self.capture, Capture::new(self.limits.keep, None));
        self.finished(capture.finish())
    }

    fn finished(&self, captured: (Captured, Captured, Option<Spilled>)) -> Finished {
        let (last, now) = self.last.unwrap_or_else(|| (None, Instant::now()));
        self.life.finished((self.started, now), self.job.main(), last, captured)
    }
}

/// Waits until a stream can be read and its bytes are wanted.
async fn readable(pipes: &[pipe::Receiver; 2], tee: &Option<&mut dyn Tee>, stream: Stream) -> io::Result<()> {
    if let Some(tee) = tee {
        poll_fn(|cx| tee.poll_ready(stream, cx)).await;
    }
    pipes[stream as usize].readable().await
}

/// The next wishes. Pending for ever once nobody can wish any more.
async fn wished(caller: &mut Option<CallerControl>) -> Wishes {
    if let Some(caller) = caller
        && caller.wishes.changed().await.is_ok()
    {
        return *caller.wishes.borrow_and_update();
    }
    std::future::pending().await
}
