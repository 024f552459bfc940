//! Searches one file.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, SinkError};

use super::keep::{Keep, Line, Room};
use super::lines;
use super::plan::{self, Plan};
use crate::environment::{Content, FileError};

/// So much of a file is read at once, and a NUL in it makes a file binary. In bytes.
const HEAD: u64 = 1 << 20;

/// The largest file that is searched whole, for matches over several lines or in UTF-16; and the longest
/// line of any other. In bytes, for each thread.
const WHOLE: usize = 32 << 20;

/// A file that was searched.
pub(super) enum Searched {
    Binary,
    Text(Found),
}

/// What was found in a file.
pub(super) struct Found {
    pub(super) lines: Vec<Line>,
    pub(super) matched: u64,
    /// There is a further match than there was room for.
    pub(super) more: bool,
    /// The rest of it could not be searched.
    pub(super) broken: bool,
}

/// Why a file, or the rest of it, was not searched.
#[derive(Debug)]
pub(super) enum Unsearched {
    TooLarge {
        size: u64,
        limit: u64,
    },
    /// A line is too long.
    Line,
    /// Its text has the pattern take much longer than any ordinary one.
    Slow,
    Stopped,
    Failed(FileError),
}

impl SinkError for Unsearched {
    /// The searcher itself knows one fault: a line for which there is no room.
    fn error_message<T: std::fmt::Display>(_: T) -> Self {
        Self::Line
    }

    fn error_io(error: io::Error) -> Self {
        match error.downcast::<Broken>() {
            Ok(Broken(why)) => why,
            Err(_) => Self::Line,
        }
    }
}

/// One thread's means of searching.
pub(super) struct Search<'a> {
    plan: &'a Plan,
    matcher: RegexMatcher,
    searcher: Searcher,
    buffer: Vec<u8>,
    stopped: &'a AtomicBool,
}

impl<'a> Search<'a> {
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

    /// Searches a file, of which lines up to `resumed` were given before. What it gains meanwhile does not
    /// belong to it.
    ///
    /// # Errors
    /// [`Unsearched`], if nothing of it could be.
    pub(super) fn file(
        &mut self,
        mut content: Box<dyn Content>,
        resumed: u64,
        room: Room,
    ) -> Result<Searched, Unsearched> {
        let size = content.meta().map_err(Unsearched::Failed)?.size;
        let mut length = self.read(&mut *content, 0, size.min(HEAD))?;
        let utf16 = match &self.buffer[..length] {
            [0xFF, 0xFE, ..] => Some(encoding_rs::UTF_16LE),
            [0xFE, 0xFF, ..] => Some(encoding_rs::UTF_16BE),
            _other => None,
        };
        if utf16.is_none() && memchr::memchr(0, &self.buffer[..length]).is_some() {
            return Ok(Searched::Binary);
        }
        let goes_on = length as u64 == HEAD && size > HEAD;
        let whole = utf16.is_some() || self.plan.multiline;
        if goes_on && whole {
            if size > WHOLE as u64 {
                let limit = WHOLE as u64;
                return Err(Unsearched::TooLarge { size, limit });
            }
            length = self.read(&mut *content, length, size)?;
        }
        let bytes = &self.buffer[..length];
        let decoded;
        let text = if let Some(encoding) = utf16 {
            (decoded, _) = encoding.decode_without_bom_handling(&bytes[2..]);
            if decoded.contains('\0') {
                return Ok(Searched::Binary);
            }
            decoded.as_bytes()
        } else {
            bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
        };

        let mut keep = Keep::new(self.plan, resumed, room);
        let result = if self.plan.multiline {
            lines::search(text, &self.matcher, self.plan, &mut keep, self.stopped)
        } else if goes_on && !whole {
            let rest = Rest {
                content,
                at: HEAD,
                end: size,
                stopped: self.stopped,
            };
            self.searcher.search_reader(&self.matcher, text.chain(rest), &mut keep)
        } else {
            self.searcher.search_slice(&self.matcher, text, &mut keep)
        };
        if self.buffer.len() as u64 > HEAD {
            self.buffer = Vec::new();
        }
        match result {
            Err(Unsearched::Stopped) => Err(Unsearched::Stopped),
            result => Ok(Searched::Text(Found {
                lines: keep.lines,
                matched: keep.matched,
                more: keep.more,
                broken: result.is_err(),
            })),
        }
    }

    /// Reads from an offset up to another, into the buffer; gives where the file ended, if earlier.
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

/// What of a large file follows its head, up to the size that it had when it was opened.
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

/// Brings a reason through an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("the rest of the file could not be read")]
struct Broken(Unsearched);
