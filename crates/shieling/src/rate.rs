//! A rate limit for commands: several time windows, such as one for bursts and one for the sustained rate.
//!
//! Every attempt that passes the limit counts, even if the command is then denied or times out. An attempt that the
//! limit refuses does not count, so that repeated attempts do not extend the wait. Time is measured on the monotonic
//! clock. Nothing here sleeps; the error contains the time to wait.
//!
//! The limiter keeps a log of attempts instead of a token bucket: a bucket of N that refills over W lets up to 2N
//! attempts through within W, but `3/10` is meant as "at most 3 in any 10 seconds".

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::units::{Clock, parse_duration};

/// The largest count of one window. It bounds the log, which keeps one [`Instant`] per attempt.
pub const MAX_COUNT: usize = 10_000;

/// The largest number of windows.
pub const MAX_WINDOWS: usize = 8;

/// At most `count` attempts in any interval of length `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    count: usize,
    window: Duration,
}

impl Window {
    /// Returns the number of attempts, at least 1.
    pub fn count(self) -> usize {
        self.count
    }

    /// Returns the length of the window, greater than zero.
    pub fn window(self) -> Duration {
        self.window
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.window.as_secs_f64())
    }
}

/// Time windows that must all have room, written `3/10,10/60`: 3 in 10 seconds and 10 in 60 seconds.
///
/// ```
/// use shieling::rate::RateLimit;
///
/// let limit: RateLimit = "3/10,10/60".parse().expect("two windows");
/// assert_eq!(limit.windows().len(), 2);
/// let error = "3/10,x/60".parse::<RateLimit>().expect_err("x is no number");
/// assert_eq!(error.at, 5..6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    windows: Vec<Window>,
}

impl RateLimit {
    /// Returns the windows in the order in which they were written.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, window) in self.windows.iter().enumerate() {
            write!(f, "{}{window}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// A malformed rate limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rate `{text}`: {} {expected}, such as `3/10,10/60`", describe_part(.text, .at))]
#[non_exhaustive]
pub struct RateLimitError {
    /// The text.
    pub text: String,
    /// The malformed part, in bytes.
    pub at: Range<usize>,
    /// What is wrong with it.
    pub expected: &'static str,
}

fn describe_part(text: &str, at: &Range<usize>) -> String {
    match text.get(at.clone()) {
        Some(part) if !part.is_empty() => format!("`{part}` at byte {}", at.start),
        _ => format!("what stands at byte {}", at.start),
    }
}

impl FromStr for RateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<Self, RateLimitError> {
        let error = |at: Range<usize>, expected| RateLimitError {
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

/// An attempt exceeds the rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at most {} in {} s; there is room again in {:.1} s", .window.count, .window.window.as_secs_f64(), .wait.as_secs_f64())]
#[non_exhaustive]
pub struct RateLimitExceeded {
    /// The full window; of several, the one that stays full longest.
    pub window: Window,
    /// The time until there is room again, if no other attempt takes it.
    pub wait: Duration,
}

impl RateLimitExceeded {
    /// Returns the wait in milliseconds, rounded up, so that a retry after exactly this time succeeds.
    pub fn retry_after_ms(self) -> u64 {
        u64::try_from(self.wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Counts attempts against a [`RateLimit`]. Shared by reference; exact under concurrency.
pub struct RateLimiter {
    limit: RateLimit,
    clock: Arc<dyn Clock>,
    /// The attempts that passed, oldest first, at most as many as the largest window holds.
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
    /// Creates a limiter with an empty log.
    pub fn new(limit: RateLimit, clock: Arc<dyn Clock>) -> Self {
        Self {
            limit,
            clock,
            log: Mutex::new(VecDeque::new()),
        }
    }

    /// Returns the limit.
    pub fn limit(&self) -> &RateLimit {
        &self.limit
    }

    /// Counts an attempt in every window, or in none.
    ///
    /// # Errors
    /// [`RateLimitExceeded`] if a window is full. Such an attempt does not count.
    pub fn attempt(&self) -> Result<(), RateLimitExceeded> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that the log is sorted: two threads that read the clock before could append in the
        // wrong order.
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

    /// Returns the number of attempts that would pass now.
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

    /// Returns the window that stays full longest. A window of `count` is full while the `count`-th last attempt lies
    /// within it.
    fn fullest(&self, log: &VecDeque<Instant>, now: Instant) -> Option<RateLimitExceeded> {
        self.limit
            .windows
            .iter()
            .filter_map(|window| {
                let first = log.get(log.len().checked_sub(window.count)?)?;
                let wait = window.window.checked_sub(now.saturating_duration_since(*first))?;
                (!wait.is_zero()).then_some(RateLimitExceeded { window: *window, wait })
            })
            .max_by_key(|full| full.wait)
    }
}
