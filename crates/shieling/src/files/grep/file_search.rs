//! Searches one file.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use super::super::encoding::{self, Encoding, Head, first_strange};
use super::collector::{Line, LineCollector, Remaining};
use super::decoding::Decoding;
use super::multiline;
use super::plan::{self, Plan};
use super::unsearched::{Broken, Unsearched};
use crate::environment::Content;

/// The size of the first read, in bytes. A NUL in it marks a binary file.
const HEAD: u64 = 1 << 20;

/// The largest file that is searched as a whole, for multi-line matches or in UTF-16, and the longest line of any
/// other file. In bytes, for each thread.
const WHOLE: usize = 32 << 20;

/// The result of searching a file.
pub(super) enum Searched {
    Binary,
    Text(FileMatches),
}

/// The matches in a file.
pub(super) struct FileMatches {
    pub(super) lines: Vec<Line>,
    pub(super) matched: u64,
    /// Whether there is another match that did not fit.
    pub(super) more: bool,
    /// Whether the rest of the file could not be searched.
    pub(super) broken: bool,
}

/// The state of one search thread.
pub(super) struct FileSearch<'a> {
    plan: &'a Plan,
    matcher: RegexMatcher,
    searcher: Searcher,
    buffer: Vec<u8>,
    stopped: &'a AtomicBool,
}

impl<'a> FileSearch<'a> {
    pub(super) fn new(plan: &'a Plan, stopped: &'a AtomicBool) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(plan::line_end())
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .line_number(true)
            .before_context(plan.before)
            .after_context(plan.after)
            .heap_limit(Some(WHOLE))
            .build();
        Self {
            plan,
            matcher: plan.matcher.clone(),
            searcher,
            buffer: Vec::new(),
            stopped,
        }
    }

    /// Searches a file after the line `resumed`, which an earlier response has reached. Bytes that are appended in
    /// the meantime are ignored.
    ///
    /// # Errors
    /// [`Unsearched`] if no part of the file could be searched.
    pub(super) fn file(
        &mut self,
        mut content: Box<dyn Content>,
        resumed: u64,
        room: Remaining,
    ) -> Result<Searched, Unsearched> {
        let size = content.meta().map_err(Unsearched::Failed)?.size;
        let mut length = self.read(&mut *content, 0, size.min(HEAD))?;
        // What a read shows is found: the encoding is determined in the same way.
        let known = match Head::of(&self.buffer[..length.min(encoding::HEAD)]) {
            Head::Binary => return Ok(Searched::Binary),
            Head::Known(encoding) => Some(encoding),
            Head::Unlabelled => None,
        };
        let is_wide = known.is_some_and(Encoding::is_wide);
        if !is_wide && memchr::memchr(0, &self.buffer[..length]).is_some() {
            return Ok(Searched::Binary);
        }
        let goes_on = length as u64 == HEAD && size > HEAD;
        let whole = is_wide || self.plan.multiline;
        if goes_on && whole {
            if size > WHOLE as u64 {
                let limit = WHOLE as u64;
                return Err(Unsearched::TooLarge { size, limit });
            }
            length = self.read(&mut *content, length, size)?;
        }
        let is_streamed = goes_on && !whole;
        let encoding = match (known, first_strange(&self.buffer[..length])) {
            (Some(encoding), _) => Some(encoding),
            (None, None) if is_streamed => None,
            (None, None) => Some(Encoding::UTF_8),
            (None, Some(at)) if is_streamed => {
                let found = Encoding::of_text_from(&mut *content, at as u64, size);
                Some(found.map_err(Unsearched::Failed)?)
            }
            (None, Some(at)) => Some(Encoding::of_sample(&self.buffer[at..length.min(at + encoding::SAMPLE)])),
        };
        let bytes = &self.buffer[encoding.map_or(0, Encoding::mark)..length];
        let decoded;
        let text = match encoding {
            Some(encoding) if !encoding.is_utf8() && !is_streamed => {
                decoded = encoding.decode(bytes);
                if is_wide && decoded.contains('\0') {
                    return Ok(Searched::Binary);
                }
                decoded.as_bytes()
            }
            Some(_) | None => bytes,
        };

        let mut collector = LineCollector::new(self.plan, resumed, room);
        let result = if self.plan.multiline {
            multiline::search(text, &self.matcher, self.plan, &mut collector, self.stopped)
        } else if is_streamed {
            let rest = Rest {
                content,
                at: HEAD,
                end: size,
                stopped: self.stopped,
            };
            let whole = text.chain(rest);
            match encoding {
                Some(encoding) if encoding.is_utf8() => {
                    self.searcher.search_reader(&self.matcher, whole, &mut collector)
                }
                _ => {
                    let decoding = Decoding::new(whole, encoding);
                    self.searcher.search_reader(&self.matcher, decoding, &mut collector)
                }
            }
        } else {
            self.searcher.search_slice(&self.matcher, text, &mut collector)
        };
        if self.buffer.len() as u64 > HEAD {
            self.buffer = Vec::new();
        }
        match result {
            Err(Unsearched::Stopped) => Err(Unsearched::Stopped),
            result => Ok(Searched::Text(FileMatches {
                lines: collector.lines,
                matched: collector.matched,
                more: collector.more,
                broken: result.is_err(),
            })),
        }
    }

    /// Reads a range of the file into the buffer. Returns where the file ended, if earlier.
    fn read(&mut self, content: &mut dyn Content, from: usize, to: u64) -> Result<usize, Unsearched> {
        let to = usize::try_from(to).unwrap_or(usize::MAX).min(WHOLE);
        if self.buffer.len() < to {
            self.buffer.resize(to.next_power_of_two().max(1 << 16), 0);
        }
        let mut at = from;
        while at < to {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(Unsearched::Stopped);
            }
            let read = content
                .read_at(at as u64, &mut self.buffer[at..to])
                .map_err(Unsearched::Failed)?;
            if read == 0 {
                break;
            }
            at += read;
        }
        Ok(at)
    }
}

/// The part of a large file after its first read, up to the size at the time it was opened.
struct Rest<'a> {
    content: Box<dyn Content>,
    at: u64,
    end: u64,
    stopped: &'a AtomicBool,
}

impl Read for Rest<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other(Broken(Unsearched::Stopped)));
        }
        let room = usize::try_from(self.end - self.at)
            .unwrap_or(usize::MAX)
            .min(into.len());
        if room == 0 {
            return Ok(0);
        }
        let read = self.content.read_at(self.at, &mut into[..room]);
        let read = read.map_err(|error| io::Error::other(Broken(Unsearched::Failed(error))))?;
        self.at += read as u64;
        Ok(read)
    }
}
