//! Searches the output of a job for a pattern while it arrives. Each stream is searched separately, in time linear in
//! its length. A match may span several reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::bytes::{Regex, RegexBuilder};

use super::JobError;
use crate::output::Stream;

/// The longest pattern, in bytes.
const LONGEST: usize = 1000;
/// The largest compiled pattern, in bytes. The cost of searching one byte may grow with it.
const COMPILED: usize = 256 * 1024;
/// The longest match, in bytes, that is found reliably if it does not arrive in one read.
const WINDOW: usize = 16 * 1024;

/// Compiles a regular expression. `^` and `$` also match at line ends.
pub(super) fn compiled(pattern: &str) -> Result<Regex, JobError> {
    if pattern.len() > LONGEST {
        let length = pattern.len();
        return Err(JobError::Pattern(format!(
            "it is {length} bytes long, the limit is {LONGEST}"
        )));
    }
    RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(COMPILED)
        .build()
        .map_err(|error| JobError::Pattern(error.to_string()))
}

/// A search in progress.
#[derive(Debug)]
pub(super) struct PatternSearch {
    regex: Regex,
    /// For each stream, the last bytes that were searched.
    windows: [Vec<u8>; 2],
    found: Arc<AtomicBool>,
}

impl PatternSearch {
    /// Creates a search, and the flag that it sets at the first match.
    pub(super) fn new(regex: Regex) -> (Self, Arc<AtomicBool>) {
        let found = Arc::new(AtomicBool::new(false));
        let search = Self {
            regex,
            windows: [Vec::new(), Vec::new()],
            found: Arc::clone(&found),
        };
        (search, found)
    }

    /// Returns whether the caller still waits and nothing has matched yet.
    pub(super) fn is_waiting(&self) -> bool {
        Arc::strong_count(&self.found) > 1 && !self.found.load(Ordering::Relaxed)
    }

    /// Searches the next bytes of a stream.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let window = &mut self.windows[stream as usize];
        // The first byte of a full window serves as context only, so that `^` does not match behind it.
        let from = usize::from(window.len() == WINDOW);
        window.extend_from_slice(bytes);
        if self.regex.is_match_at(window, from) {
            self.found.store(true, Ordering::Relaxed);
        }
        let over = window.len().saturating_sub(WINDOW);
        window.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, reads: &[&[u8]]) -> bool {
        let (mut search, found) = PatternSearch::new(compiled(pattern).expect("a pattern"));
        reads.iter().for_each(|read| search.push(Stream::Stdout, read));
        found.load(Ordering::Relaxed)
    }

    #[test]
    fn a_match_may_span_reads_and_lines_have_ends() {
        assert!(found("listening on port [0-9]+", &[b"listen", b"ing on po", b"rt 80"]));
        assert!(found("^ready$", &[b"not yet\nrea", b"dy\n"]));
        assert!(!found("^ready", &[b"already"]));
        assert!(found("\\$ $", &[b"~ $ "]));
        assert!(found("caf\u{e9}", &["café".as_bytes()]));
        // Behind much output a line still begins where it begins.
        let much = vec![b'x'; WINDOW];
        assert!(!found("^x", &[b"y", &much, b"x"]));
        assert!(found("^ready", &[&much, &much, b"\nready"]));
    }

    #[test]
    fn a_pattern_that_costs_too_much_is_refused() {
        let long = "a".repeat(LONGEST + 1);
        for bad in ["(", r"(\w{200}){200}", &long] {
            assert!(matches!(compiled(bad), Err(JobError::Pattern(_))), "{bad}");
        }
    }
}
