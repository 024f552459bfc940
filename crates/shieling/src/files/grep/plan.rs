//! A search that was asked for, checked and made ready.

use std::path::Path;

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

use super::super::{FilesError, GrepAsk, GrepMode, cursor};

/// The most lines or files that are given at once.
const MOST: u64 = 10_000;

/// The most lines before or after a match.
const MOST_CONTEXT: u64 = 100;

/// The longest pattern, in bytes.
const LONGEST: usize = 64 << 10;

/// The most memory that a pattern may need once it is read, and for what it remembers while it searches,
/// in bytes; the latter in each thread.
const COMPILED: usize = 16 << 20;

/// How deep groups may stand in each other.
const DEEPEST: u32 = 100;

/// Where an answer goes on.
pub(super) struct Cursor {
    pub(super) path: Vec<u8>,
    /// Lines up to this one were given; none if the whole file was.
    pub(super) line: Option<u64>,
}

/// A search.
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
    /// # Errors
    /// [`FilesError::Argument`].
    pub(super) fn parse(ask: &GrepAsk) -> Result<Self, FilesError> {
        let cursor = ask
            .cursor
            .as_deref()
            .map(|text| Cursor::read(text, ask.mode))
            .transpose()?;
        Ok(Self {
            matcher: matcher(ask)?,
            multiline: ask.multiline,
            before: context("before", ask.before)?,
            after: context("after_lines", ask.after_lines)?,
            mode: ask.mode,
            limit: cursor::bounded("limit", ask.limit, MOST)?,
            cursor,
        })
    }

    /// The line after which a file is to be gone on with.
    pub(super) fn resumed(&self, below: &Path) -> u64 {
        let cursor = self.cursor.as_ref().filter(|cursor| cursor.path == cursor::raw(below));
        cursor.and_then(|cursor| cursor.line).unwrap_or(0)
    }
}

impl Cursor {
    /// As text: `120:src/lib.rs`, or the path alone.
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

/// How a line ends.
pub(super) fn line_end() -> LineTerminator {
    LineTerminator::crlf()
}

fn matcher(ask: &GrepAsk) -> Result<RegexMatcher, FilesError> {
    if ask.pattern.len() > LONGEST {
        let length = ask.pattern.len();
        return Err(argument(
            "pattern",
            format!("{length} bytes are too long: at most {LONGEST} are read"),
        ));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(ask.ignore_case)
        .fixed_strings(ask.literal)
        .multi_line(true)
        .crlf(true)
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(DEEPEST);
    if ask.multiline {
        builder.dot_matches_new_line(true).line_terminator(None);
    }
    builder
        .build(&ask.pattern)
        .map_err(|error| argument("pattern", why(&error)))
}

/// Why a pattern is none, and what would be one.
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
            // What stands above it is the pattern, as the engine was given it.
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
