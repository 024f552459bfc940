//! Looking at a job, and waiting for what it does. Nothing counts as seen that was not given.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout_at};

use super::job::{Job, State};
use super::pattern::{Search, compiled};
use super::{JobError, Until, View, ViewAsk};
use crate::outcome::Outcome;
use crate::output::{Capture, Stream};

/// A job that has been silent for so long has said what it had to say.
const QUIET: Duration = Duration::from_millis(200);
/// The longest wait of one view.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// How often a port is tried.
const POLL: Duration = Duration::from_millis(50);

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl Job {
    /// What is new, or what follows a cursor, once what is waited for has come.
    ///
    /// What is new is shown as outcomes show it, as much as the command keeps of each stream, first
    /// and last. From a cursor on it is the next so many bytes of both streams together, and the
    /// view's own cursor leads on: so everything that is kept can be read.
    ///
    /// # Errors
    /// [`JobError::NoTerminal`] for a screen that is not there.
    /// # Cancel safety
    /// Cancel safe: what was not given counts as not seen.
    pub(crate) async fn view(&self, ask: &ViewAsk) -> Result<View, JobError> {
        if ask.screen {
            self.terminal("a screen")?;
        }
        let from = ask.cursor.unwrap_or_else(|| self.shared.state().seen);
        self.wait(from, ask.until, ask.wait).await;
        Ok(self.look(ask.cursor, ask.screen))
    }

    /// As [`Self::view`], and nothing counts as seen by it.
    pub(crate) async fn peek(&self, ask: &ViewAsk) -> Result<View, JobError> {
        if ask.screen {
            self.terminal("a screen")?;
        }
        let from = ask.cursor.unwrap_or_else(|| self.shared.state().seen);
        self.wait(from, ask.until, ask.wait).await;
        Ok(self.seen_by(ask.cursor, ask.screen, false))
    }

    /// Waits for what is behind this cursor.
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

    /// What is new of it, or follows a cursor, as it is now.
    pub(super) fn look(&self, cursor: Option<u64>, screen: bool) -> View {
        self.seen_by(cursor, screen, true)
    }

    /// The same; whether it counts as seen.
    fn seen_by(&self, cursor: Option<u64>, screen: bool, counts: bool) -> View {
        let keep = self.command().output_kept();
        let (slice, mut outcome) = {
            let mut state = self.shared.state();
            let most = cursor.map_or(usize::MAX, |_| keep.as_usize());
            let slice = state.log.read(cursor.unwrap_or(state.seen), most);
            if counts {
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
        View {
            outcome,
            cursor: slice.next,
            missed_bytes: slice.missed,
            command: self.command().text().to_owned(),
            screen: screen
                .then(|| self.shared.watcher().and_then(|watcher| watcher.screen()))
                .flatten(),
        }
    }

    /// How the job is, without what it wrote. It runs as long as something of it is left.
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

    /// Waits for the end of the job, of everything that belongs to it. Whether it came in time.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn wait_for_exit(&self, budget: Duration) -> (bool, View) {
        let over = self.within(budget, self.until(|state| state.over)).await;
        (over.is_some(), self.look(None, false))
    }

    /// Waits for output that matches, from the first byte that is kept on. Whether it came, in time
    /// and before the end of the job.
    ///
    /// # Errors
    /// [`JobError::Pattern`].
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn wait_for_pattern(&self, pattern: &str, budget: Duration) -> Result<(bool, View), JobError> {
        let (mut search, found) = Search::new(compiled(pattern)?);
        {
            let mut state = self.shared.state();
            for stream in STREAMS {
                search.push(stream, &state.log.kept(stream));
            }
            if search.goes_on() {
                state.searches.push(search);
            }
        }
        let ended = |state: &State| (found.load(Ordering::Relaxed) || state.over.is_some()).then_some(());
        self.within(budget, self.until(ended)).await;
        Ok((found.load(Ordering::Relaxed), self.look(None, false)))
    }

    /// Waits until a port of this host's loopback device takes connections. Whether it does, before
    /// the end of the job.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn wait_for_port(&self, port: u16, budget: Duration) -> (bool, View) {
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
        let open = self.within(budget, open).await.unwrap_or(false);
        (open, self.look(None, false))
    }

    /// What comes within a budget; any that the clock cannot hold is none.
    async fn within<T>(&self, budget: Duration, future: impl Future<Output = T>) -> Option<T> {
        match Instant::now().checked_add(budget) {
            Some(deadline) => timeout_at(deadline.into(), future).await.ok(),
            None => Some(future.await),
        }
    }
}
