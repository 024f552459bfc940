//! Views of a job's output, and waiting for its events. Output counts as viewed only once it was returned.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout_at};

use super::job::Job;
use super::job_state::State;
use super::pattern::{PatternSearch, compiled};
use super::{JobError, Until, ViewRequest, ViewResponse};
use crate::outcome::Outcome;
use crate::output::{Capture, Stream};

/// The time without output after which a job counts as quiet.
const QUIET: Duration = Duration::from_millis(200);
/// The longest wait of one view.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// The interval between two attempts to connect to a port.
const POLL: Duration = Duration::from_millis(50);

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl Job {
    /// Waits for the condition of a view, without the view.
    ///
    /// # Errors
    /// [`JobError::NoTerminal`] if the screen is requested of a job without a terminal.
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn await_view(&self, request: &ViewRequest) -> Result<(), JobError> {
        if request.screen {
            self.terminal("a screen")?;
        }
        let from = request.cursor.unwrap_or_else(|| self.shared.state().seen);
        self.wait(from, request.until, request.wait).await;
        Ok(())
    }

    /// Waits for the condition of a view and returns the output, which does not count as viewed.
    pub(crate) async fn peek(&self, request: &ViewRequest) -> Result<ViewResponse, JobError> {
        self.await_view(request).await?;
        Ok(self.seen_by(request.cursor, request.screen, false))
    }

    /// Waits for a condition on the output from a cursor on.
    pub(super) async fn wait(&self, from: u64, until: Until, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        let deadline = Instant::now() + wait.min(LONGEST);
        let mut changed = self.shared.changed.subscribe();
        while Instant::now() < deadline {
            let again = {
                let state = self.shared.state();
                let new = state.log.end() > from;
                match until {
                    _ if state.over.is_some() => return,
                    Until::Output if new => return,
                    Until::Quiet if new => state.last_output.map_or(deadline, |last| last + QUIET),
                    Until::Output | Until::Quiet | Until::Exit => deadline,
                }
            };
            if again <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(again.min(deadline).into()) => {}
                _ = changed.changed() => {}
            }
        }
    }

    /// Waits until the job has printed nothing for so long.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn until_silent(&self, rest: Duration) {
        let began = Instant::now();
        loop {
            let last = self.shared.state().last_output.map_or(began, |last| last.max(began));
            let due = last + rest.min(LONGEST);
            if due <= Instant::now() {
                return;
            }
            sleep_until(due.into()).await;
        }
    }

    /// Returns the new output, or the output from a cursor on, without waiting.
    ///
    /// New output has the form that it has in outcomes: the head and the tail of each stream, up to the command's
    /// bound. From a cursor on, the view returns the next bytes of both streams together, up to the same bound, and a
    /// cursor for the next view, so that all output that is kept can be read.
    pub(crate) fn look(&self, cursor: Option<u64>, screen: bool) -> ViewResponse {
        self.seen_by(cursor, screen, true)
    }

    /// Like [`look`](Self::look); `counts` marks the output as viewed.
    fn seen_by(&self, cursor: Option<u64>, screen: bool, counts: bool) -> ViewResponse {
        let keep = self.command().output_kept();
        let (slice, mut outcome) = {
            let mut state = self.shared.state();
            let most = cursor.map_or(usize::MAX, |_| keep.as_usize());
            let slice = state.log.read(cursor.unwrap_or(state.seen), most);
            if counts {
                state.seen_before = state.seen;
                state.seen = state.seen.max(slice.next);
            }
            (slice, self.outcome_seen(&state))
        };
        let mut shown = Capture::new(keep, None);
        for (stream, bytes) in STREAMS.into_iter().zip(&slice.streams) {
            shown.push(stream, bytes);
        }
        let (stdout, stderr, _) = shown.finish();
        outcome.truncated = slice.missed > 0 || stdout.truncated() || stderr.truncated();
        (outcome.stdout, outcome.stderr) = (stdout.text(), stderr.text());
        ViewResponse {
            outcome,
            cursor: slice.next,
            missed_bytes: slice.missed,
            command: self.command().text().to_owned(),
            screen: screen
                .then(|| self.shared.watcher().and_then(|watcher| watcher.screen()))
                .flatten(),
        }
    }

    /// Marks as new again what only this view has returned.
    pub(crate) fn unview(&self, view: &ViewResponse) {
        let mut state = self.shared.state();
        if state.seen == view.cursor {
            state.seen = state.seen_before;
        }
    }

    /// Returns the outcome without output. Its status is `running` as long as any process of the job is left.
    fn outcome_seen(&self, state: &State) -> Outcome {
        let mut outcome = match (&state.ended, state.over) {
            (Some(ended), Some(_)) => ended.clone(),
            _ => self.running(state),
        };
        outcome.output_id = match (&state.ended, &state.capture) {
            (Some(ended), _) => ended.output_id.clone(),
            (None, capture) => capture.as_ref().and_then(Capture::output_id).map(ToString::to_string),
        };
        outcome.job = Some(self.id().to_string());
        outcome
    }

    /// Waits for the end of all processes of the job. Returns whether they ended within the budget.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn wait_for_exit(&self, budget: Duration) -> bool {
        self.within(budget, self.until(|state| state.over)).await.is_some()
    }

    /// Waits for output that matches a pattern, starting with the oldest byte that is kept. Returns whether there was
    /// a match within the budget and before the end of the job.
    ///
    /// # Errors
    /// [`JobError::Pattern`] if the pattern is invalid.
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn wait_for_pattern(&self, pattern: &str, budget: Duration) -> Result<bool, JobError> {
        let (mut search, found) = PatternSearch::new(compiled(pattern)?);
        {
            let mut state = self.shared.state();
            for stream in STREAMS {
                search.push(stream, &state.log.kept(stream));
            }
            if search.is_waiting() {
                state.searches.push(search);
            }
        }
        let ended = |state: &State| (found.load(Ordering::Relaxed) || state.over.is_some()).then_some(());
        self.within(budget, self.until(ended)).await;
        Ok(found.load(Ordering::Relaxed))
    }

    /// Waits until a port of this host's loopback device accepts connections. Returns whether it did within the
    /// budget and before the end of the job.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn wait_for_port(&self, port: u16, budget: Duration) -> bool {
        let open = async {
            loop {
                for host in ["127.0.0.1", "::1"] {
                    let attempt = tokio::net::TcpStream::connect((host, port));
                    if let Ok(Ok(_)) = tokio::time::timeout(POLL * 4, attempt).await {
                        return true;
                    }
                }
                if self.is_over() {
                    return false;
                }
                let end = self.until(|state| state.over);
                let _ = tokio::time::timeout(POLL, end).await;
            }
        };
        self.within(budget, open).await.unwrap_or(false)
    }

    /// Awaits a future within a budget. A budget too large for the clock is unlimited.
    async fn within<T>(&self, budget: Duration, future: impl Future<Output = T>) -> Option<T> {
        match Instant::now().checked_add(budget) {
            Some(deadline) => timeout_at(deadline.into(), future).await.ok(),
            None => Some(future.await),
        }
    }
}
