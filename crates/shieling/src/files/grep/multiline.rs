//! Searches for matches that may span several lines. A result consists of all lines of a match; the next match is
//! searched for after them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;

use super::collector::{LineCollector, LinePosition};
use super::plan::Plan;
use super::unsearched::Unsearched;

/// The time limit for one file. A single search is linear in the text, but each match starts another one, which may
/// have to scan all the rest to find that there is no longer match.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A position at the beginning of a line.
#[derive(Clone, Copy)]
struct Position {
    offset: usize,
    number: u64,
}

pub(super) fn search(
    text: &[u8],
    matcher: &RegexMatcher,
    plan: &Plan,
    collector: &mut LineCollector<'_>,
    stopped: &AtomicBool,
) -> Result<(), Unsearched> {
    let started = Instant::now();
    let mut at = Position { offset: 0, number: 1 };
    while at.offset < text.len() {
        // The matcher's error type has no values.
        let found = matcher.find_at(text, at.offset).unwrap_or(None);
        let Some(found) = found.filter(|found| found.start() < text.len()) else {
            break;
        };
        let first =
            memchr::memrchr(b'\n', &text[at.offset..found.start()]).map_or(at.offset, |end| at.offset + end + 1);
        let last = found.end().saturating_sub(1).max(found.start());
        let behind = end_of_line(text, last);
        let first = Position {
            offset: first,
            number: at.number + count(&text[at.offset..first]),
        };
        beside(&text[at.offset..first.offset], at, plan, collector);
        if !collector.matching(first.number, &text[first.offset..behind]) {
            return Ok(());
        }
        at = Position {
            offset: behind,
            number: first.number + count(&text[first.offset..behind]),
        };
        if stopped.load(Ordering::Relaxed) {
            return Err(Unsearched::Stopped);
        }
        if started.elapsed() > TIME_LIMIT {
            return Err(Unsearched::Slow);
        }
    }
    if at.offset > 0 {
        after(&text[at.offset..], at.number, plan, collector);
    }
    Ok(())
}

/// Emits the context lines between two matches: those after the first one first.
fn beside(between: &[u8], at: Position, plan: &Plan, collector: &mut LineCollector<'_>) {
    // Before the first match there are no lines that follow another one.
    let given = if at.offset > 0 {
        after(between, at.number, plan, collector)
    } else {
        0
    };
    let mut from = between.len();
    for _ in 0..plan.before {
        if from > given {
            from = memchr::memrchr(b'\n', &between[given..from - 1]).map_or(given, |end| given + end + 1);
        }
    }
    let mut number = at.number + count(&between[..from]);
    while from < between.len() {
        let end = end_of_line(between, from);
        collector.beside(LinePosition::Before, number, &between[from..end]);
        (from, number) = (end, number + 1);
    }
}

/// Emits the context lines after a match. Returns their length in bytes.
fn after(text: &[u8], mut number: u64, plan: &Plan, collector: &mut LineCollector<'_>) -> usize {
    let mut start = 0;
    for _ in 0..plan.after {
        let end = end_of_line(text, start);
        if end > start {
            collector.beside(LinePosition::After, number, &text[start..end]);
        }
        (start, number) = (end, number + 1);
    }
    start
}

/// Returns the end of the line with this position, including its line end.
fn end_of_line(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at.min(text.len())..]).map_or(text.len(), |end| at + end + 1)
}

fn count(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
