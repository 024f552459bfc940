//! Validates and compiles a search request.

use std::path::Path;

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

use super::super::{FilesError, GrepMode, GrepRequest, cursor};

/// The largest number of lines or files in one response.
const MOST: u64 = 10_000;

/// The largest number of context lines before or after a match.
const MOST_CONTEXT: u64 = 100;

/// The longest pattern, in bytes.
const LONGEST: usize = 64 << 10;

/// The largest compiled pattern, and the largest cache of a running search in each thread, in bytes.
const COMPILED: usize = 16 << 20;

/// The deepest nesting of groups.
const DEEPEST: u32 = 100;

/// Where a search continues.
pub(super) struct Cursor {
    pub(super) path: Vec<u8>,
    /// The last line that was returned; `None` if the whole file was.
    pub(super) line: Option<u64>,
}

/// A compiled search.
pub(super) struct Plan {
    pub(super) matcher: RegexMatcher,
    pub(super) multiline: bool,
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) mode: GrepMode,
    pub(super) limit: u64,
    pub(super) cursor: Option<Cursor>,
}

impl Plan {
    /// Validates and compiles a request.
    ///
    /// # Errors
    /// [`FilesError::Argument`].
    pub(super) fn parse(request: &GrepRequest) -> Result<Self, FilesError> {
        let cursor = request
            .cursor
            .as_deref()
            .map(|text| Cursor::read(text, request.mode))
            .transpose()?;
        Ok(Self {
            matcher: matcher(request)?,
            multiline: request.multiline,
            before: context("before", request.before)?,
            after: context("after_lines", request.after_lines)?,
            mode: request.mode,
            limit: cursor::bounded("limit", request.limit, MOST)?,
            cursor,
        })
    }

    /// Returns the last line of a file that an earlier response contained.
    pub(super) fn resumed(&self, below: &Path) -> u64 {
        let cursor = self.cursor.as_ref().filter(|cursor| cursor.path == cursor::raw(below));
        cursor.and_then(|cursor| cursor.line).unwrap_or(0)
    }
}

impl Cursor {
    /// Formats a cursor: `120:src/lib.rs`, or the path alone.
    pub(super) fn written(line: Option<u64>, below: &Path) -> String {
        let path = cursor::written(cursor::raw(below));
        match line {
            Some(line) => format!("{line}:{path}"),
            None => path,
        }
    }

    fn read(text: &str, mode: GrepMode) -> Result<Self, FilesError> {
        let (line, path) = match mode {
            GrepMode::Files | GrepMode::Count => (None, text),
            GrepMode::Content => {
                let parsed = text.split_once(':').map(|(line, path)| (line.parse().ok(), path));
                match parsed {
                    Some((Some(line), path)) => (Some(line), path),
                    Some((None, _)) | None => {
                        return Err(argument(
                            "cursor",
                            "it names no line to go on after; give `next` of the answer before, of the same mode, as it is",
                        ));
                    }
                }
            }
        };
        let path = cursor::read("cursor", path)?;
        Ok(Self {
            path: cursor::raw(&path).to_vec(),
            line,
        })
    }
}

/// Returns the line terminator.
pub(super) fn line_end() -> LineTerminator {
    LineTerminator::crlf()
}

fn matcher(request: &GrepRequest) -> Result<RegexMatcher, FilesError> {
    if request.pattern.len() > LONGEST {
        let length = request.pattern.len();
        return Err(argument(
            "pattern",
            format!("{length} bytes are too long: at most {LONGEST} are read"),
        ));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(request.ignore_case)
        .fixed_strings(request.literal)
        .multi_line(true)
        .crlf(true)
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(DEEPEST);
    if request.multiline {
        builder.dot_matches_new_line(true).line_terminator(None);
    }
    builder
        .build(&request.pattern)
        .map_err(|error| argument("pattern", why(&error)))
}

/// Explains why a pattern is invalid, and suggests a valid one.
fn why(error: &grep_regex::Error) -> String {
    match error.kind() {
        ErrorKind::NotAllowed(_) => {
            "it holds a line end, and a match stays within a line; set `multiline` to search over several".to_owned()
        }
        ErrorKind::Regex(text) if text.contains("look-around") => {
            "look-around is not supported, since a search with it may take for ever: search for the text without it, and look at the lines".to_owned()
        }
        ErrorKind::Regex(text) if text.contains("backreferences") => {
            "back-references are not supported, since a search with one may take for ever: write out what they may be"
                .to_owned()
        }
        ErrorKind::Regex(text) if text.contains("size limit") => {
            "it needs too much memory: repeat less, or write `(?-u:\\w)` for `\\w` where ASCII will do".to_owned()
        }
        _other => {
            // The lines above the message repeat the pattern as the engine received it.
            let text = error.to_string();
            let said = text.lines().next_back().unwrap_or(&text);
            let said = said.strip_prefix("error: ").unwrap_or(said);
            format!("{said}; set `literal` to search for the text as it stands")
        }
    }
}

fn context(name: &'static str, asked: u64) -> Result<usize, FilesError> {
    match usize::try_from(asked).ok().filter(|_| asked <= MOST_CONTEXT) {
        Some(lines) => Ok(lines),
        None => Err(argument(
            name,
            format!("{asked} lines are too many: at most {MOST_CONTEXT} can be given"),
        )),
    }
}

fn argument(argument: &'static str, why: impl Into<String>) -> FilesError {
    FilesError::Argument {
        argument,
        why: why.into(),
    }
}
