//! How many commands may be tried in how much time: a burst and a sustained window.
//!
//! Every attempt that is let through to judgement counts, whatever becomes of it: a command that is
//! then denied or times out has used its place. An attempt that the limit itself refuses uses none,
//! so that somebody who keeps knocking is let in as soon as the window allows. The time is the
//! monotonic one; nothing here waits or sleeps, it only says how long a wait would help.
//!
//! A log of past attempts, and not a token bucket: a bucket of N that refills over W lets up to 2N
//! through within one W, while "at most N in any W" is what people who write `3/10` mean.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::units::{Clock, parse_duration};

/// The largest number of attempts that one window may hold. It bounds the memory of the log, which
/// keeps one [`Instant`] for each.
pub const MAX_COUNT: usize = 10_000;

/// The largest number of windows.
pub const MAX_WINDOWS: usize = 8;

/// At most `count` attempts in any stretch of time as long as `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    count: usize,
    window: Duration,
}

impl Window {
    /// The number of attempts, at least 1.
    pub fn count(self) -> usize {
        self.count
    }

    /// The length of the window, more than zero.
    pub fn window(self) -> Duration {
        self.window
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.window.as_secs_f64())
    }
}

/// All the windows that must have room at once, written `3/10,10/60`: 3 in 10 seconds and 10 in 60.
///
/// ```
/// use shieling::rate::Limit;
///
/// let limit: Limit = "3/10,10/60".parse().expect("two windows");
/// assert_eq!(limit.windows().len(), 2);
/// let error = "3/10,x/60".parse::<Limit>().expect_err("x is no number");
/// assert_eq!(error.at, 5..6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    windows: Vec<Window>,
}

impl Limit {
    /// The windows, in the order in which they were written.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, window) in self.windows.iter().enumerate() {
            write!(f, "{}{window}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// A rate limit that could not be read, with the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rate `{text}`: {} {expected}, such as `3/10,10/60`", place(.text, .at))]
pub struct LimitError {
    /// What was written.
    pub text: String,
    /// The part that is wrong, in bytes.
    pub at: Range<usize>,
    /// What is wrong with it.
    pub expected: &'static str,
}

fn place(text: &str, at: &Range<usize>) -> String {
    match text.get(at.clone()) {
        Some(part) if !part.is_empty() => format!("`{part}` at byte {}", at.start),
        _ => format!("what stands at byte {}", at.start),
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = |at: Range<usize>, expected| LimitError {
            text: text.to_owned(),
            at,
            expected,
        };
        let mut windows = Vec::new();
        let mut start = 0;
        for part in text.split(',') {
            let whole = start..start + part.len();
            start = whole.end + 1;
            if windows.len() == MAX_WINDOWS {
                return Err(error(whole, "is a ninth window, and 8 is the limit"));
            }
            let Some((count, window)) = part.split_once('/') else {
                return Err(error(whole, "is not COUNT/SECONDS"));
            };
            let count_at = whole.start..whole.start + count.len();
            let window_at = count_at.end + 1..whole.end;
            let count: usize = count
                .trim()
                .parse()
                .ok()
                .filter(|count| (1..=MAX_COUNT).contains(count))
                .ok_or_else(|| error(count_at, "is not a count from 1 to 10000"))?;
            let window = parse_duration(window)
                .ok()
                .filter(|window| !window.is_zero())
                .ok_or_else(|| error(window_at, "is not a number of seconds above 0"))?;
            windows.push(Window { count, window });
        }
        Ok(Self { windows })
    }
}

/// An attempt came too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at most {} in {} s; there is room again in {:.1} s", .window.count, .window.window.as_secs_f64(), .wait.as_secs_f64())]
pub struct TooSoon {
    /// The window that is full; of several, the one that stays full longest.
    pub window: Window,
    /// After how long there is room again, if nobody else takes it.
    pub wait: Duration,
}

impl TooSoon {
    /// The wait in whole milliseconds, rounded up: a retry after exactly this long is not too soon.
    pub fn retry_after_ms(self) -> u64 {
        u64::try_from(self.wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Counts attempts against a [`Limit`]. Shared by reference; exact under any concurrency.
pub struct RateLimiter {
    limit: Limit,
    clock: Arc<dyn Clock>,
    /// The attempts that were let through, oldest first, at most as many as the largest window holds.
    log: Mutex<VecDeque<Instant>>,
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl RateLimiter {
    /// A limiter with an empty log.
    pub fn new(limit: Limit, clock: Arc<dyn Clock>) -> Self {
        Self {
            limit,
            clock,
            log: Mutex::new(VecDeque::new()),
        }
    }

    /// What it limits to.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Takes a place in every window, or in none.
    ///
    /// # Errors
    /// [`TooSoon`] if a window is full. Such an attempt does not count.
    pub fn attempt(&self) -> Result<(), TooSoon> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that the log is in order: two threads that read before it could
        // enter their times the wrong way round.
        let now = self.clock.now();
        if let Some(full) = self.fullest(&log, now) {
            return Err(full);
        }
        let most = self.limit.windows.iter().map(|window| window.count).max().unwrap_or(0);
        log.push_back(now);
        while log.len() > most {
            log.pop_front();
        }
        Ok(())
    }

    /// How many more attempts would be let through at this moment, by the window with the least room.
    pub fn room(&self) -> usize {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let used = |window: &Window| {
            log.iter()
                .filter(|past| now.saturating_duration_since(**past) < window.window)
                .count()
        };
        self.limit
            .windows
            .iter()
            .map(|window| window.count.saturating_sub(used(window)))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// A window of `count` is full as long as the `count`-th last attempt lies within it.
    fn fullest(&self, log: &VecDeque<Instant>, now: Instant) -> Option<TooSoon> {
        self.limit
            .windows
            .iter()
            .filter_map(|window| {
                let first = log.get(log.len().checked_sub(window.count)?)?;
                let wait = window.window.checked_sub(now.saturating_duration_since(*first))?;
                (!wait.is_zero()).then_some(TooSoon { window: *window, wait })
            })
            .max_by_key(|full| full.wait)
    }
}
