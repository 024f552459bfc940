//! Searches for matches that may go over several lines. What is given of a match are its lines, and the
//! next one is looked for behind them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;

use super::keep::{Keep, Place};
use super::plan::Plan;
use super::text::Unsearched;

/// How long one file may take. A single search is linear in the text, but each match starts another one,
/// which may have to look through all the rest to find that there is nothing longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A place at the beginning of a line.
#[derive(Clone, Copy)]
struct At {
    offset: usize,
    number: u64,
}

pub(super) fn search(
    text: &[u8],
    matcher: &RegexMatcher,
    plan: &Plan,
    keep: &mut Keep<'_>,
    stopped: &AtomicBool,
) -> Result<(), Unsearched> {
    let started = Instant::now();
    let mut at = At { offset: 0, number: 1 };
    while at.offset < text.len() {
        // The error has no value that could be.
        let found = matcher.find_at(text, at.offset).unwrap_or(None);
        let Some(found) = found.filter(|found| found.start() < text.len()) else {
            break;
        };
        let first =
            memchr::memrchr(b'\n', &text[at.offset..found.start()]).map_or(at.offset, |end| at.offset + end + 1);
        let last = found.end().saturating_sub(1).max(found.start());
        let behind = end_of_line(text, last);
        let first = At {
            offset: first,
            number: at.number + count(&text[at.offset..first]),
        };
        beside(&text[at.offset..first.offset], at, plan, keep);
        if !keep.matching(first.number, &text[first.offset..behind]) {
            return Ok(());
        }
        at = At {
            offset: behind,
            number: first.number + count(&text[first.offset..behind]),
        };
        if stopped.load(Ordering::Relaxed) {
            return Err(Unsearched::Stopped);
        }
        if started.elapsed() > PATIENCE {
            return Err(Unsearched::Slow);
        }
    }
    if at.offset > 0 {
        after(&text[at.offset..], at.number, plan, keep);
    }
    Ok(())
}

/// Gives the lines between two matches that stand near enough to one of them: to the former first.
fn beside(between: &[u8], at: At, plan: &Plan, keep: &mut Keep<'_>) {
    // Nothing stands before the first match that would be behind another.
    let given = if at.offset > 0 {
        after(between, at.number, plan, keep)
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
        keep.beside(Place::Before, number, &between[from..end]);
        (from, number) = (end, number + 1);
    }
}

/// Gives the lines behind a match; says how many bytes they have.
fn after(text: &[u8], mut number: u64, plan: &Plan, keep: &mut Keep<'_>) -> usize {
    let mut start = 0;
    for _ in 0..plan.after {
        let end = end_of_line(text, start);
        if end > start {
            keep.beside(Place::After, number, &text[start..end]);
        }
        (start, number) = (end, number + 1);
    }
    start
}

/// Behind the line end of the line in which this stands.
fn end_of_line(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at.min(text.len())..]).map_or(text.len(), |end| at + end + 1)
}

fn count(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
