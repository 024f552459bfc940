//! Replaces a text in a file, and leaves every other byte unchanged.
//!
//! Works on the bytes of the file: the text to find and the replacement are encoded as the file is. A byte-order
//! mark, mixed line ends, a missing last line end and bytes that are not text are therefore preserved.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use memchr::memmem::Finder;

use super::diff::{self, Change, Names};
use super::encoding::Encoding;
use super::resolve::{self, LoadedFile, ResolvedTarget};
use super::{Access, Context, EditRequest, EditResponse, FileResponse, FilesError, PlannedChange, hash, nearest};
use crate::environment::{Expect, Links};

/// The largest file that is edited, in bytes.
const LARGEST: u64 = 256 << 20;

/// The largest number of replacements in one edit: each is kept until the diff is made.
const MOST_PLACES: usize = 1_000_000;

/// The largest result of an edit, in bytes.
const LARGEST_MADE: u64 = 2 * LARGEST;

/// The number of occurrences that an error lists.
const TOLD_LINES: usize = 20;

/// Prepares an edit. Links are followed.
///
/// # Errors
/// [`FilesError::Argument`], [`FilesError::NoMatch`], [`FilesError::Ambiguous`], [`FilesError::NotText`],
/// [`FilesError::TooLarge`] for a file of more than 256 MiB or a result of more than 512 MiB, [`FilesError::Stale`],
/// a refusal by the access check, and errors of the environment.
pub(crate) fn plan_edit(context: Context<'_>, request: &EditRequest) -> Result<PlannedChange, FilesError> {
    let reached = resolve::write_target(context, &request.path, Links::Follow)?;
    let path = reached.write_target.path().to_path_buf();
    let node = reached.file()?;
    if request.old.is_empty() {
        return Err(nothing_sought(node.is_some()));
    }
    if request.old == request.new {
        let why = "it is the same as `old`: nothing would change".to_owned();
        return Err(FilesError::Argument { argument: "new", why });
    }
    let Some(node) = node else {
        return Err(resolve::missing(&request.path));
    };
    let held = resolve::load(context, node, LARGEST, "edited")?;
    held.check(context, &path, request.expect.as_ref())?;
    let LoadedFile { content, meta } = held;
    let Some(encoding) = Encoding::of(&content) else {
        let why = "it has NUL bytes where text has none".to_owned();
        return Err(FilesError::NotText { path, why });
    };
    let found = occurrences(&content, encoding, &request.old, request.replace_all);
    check(&path, &content, encoding, request, &found)?;
    check_size(&path, &content, encoding, request, &found)?;
    let (edited, changes) =
        replaced(&content, encoding, &found, &request.new).map_err(|lacking| FilesError::Argument {
            argument: "new",
            why: lacks(&path, encoding, lacking),
        })?;
    if let Some(uncertain) = encoding.uncertain(&content, &request.new) {
        let why = unsure(&path, encoding, uncertain);
        return Err(FilesError::Argument { argument: "new", why });
    }
    let names = Names::same(context.workspace, &path);
    let diff = diff::of_changes(&names, encoding, &content, &edited, &changes);
    drop(content);
    let replacements = found.len() as u64;
    let cache = context.cache.clone();
    let ResolvedTarget { write_target, .. } = reached;
    Ok(PlannedChange {
        paths: vec![(Access::Write, path.clone())],
        preview: diff.text.clone(),
        cut_at: diff.cut_at(),
        directories: HashSet::new(),
        make: Box::new(move || {
            write_target.replace(&edited, false, Expect::Stamp(meta.stamp))?;
            let hash = hash::written(write_target.as_ref(), &edited);
            cache.insert(&hash, &edited);
            Ok(FileResponse::Edit(EditResponse {
                note: None,
                path,
                replacements,
                diff: diff.text,
                size: edited.len() as u64,
                hash,
            }))
        }),
    })
}

/// Explains that a file cannot contain a character.
pub(super) fn lacks(path: &Path, encoding: Encoding, lacking: char) -> String {
    let is = if encoding.is_guess() { "seems to be" } else { "is" };
    format!(
        "`{}` {is} {}, which has no `{lacking}`",
        path.display(),
        encoding.name()
    )
}

/// Explains that the bytes of a character are uncertain, because the encoding of the file is a guess.
pub(super) fn unsure(path: &Path, encoding: Encoding, uncertain: char) -> String {
    format!(
        "that `{}` is {} is a guess from little text, so how to write `{uncertain}`, which it does not contain yet, is \
         uncertain: leave it out, or convert the file to UTF-8 first, such as with `iconv`",
        path.display(),
        encoding.name()
    )
}

fn nothing_sought(is_there: bool) -> FilesError {
    let why = if is_there {
        "it is empty: give the text that is to be replaced, or write the whole file"
    } else {
        "it is empty, and there is no such file: to make one, write it"
    };
    FilesError::Argument {
        argument: "old",
        why: why.to_owned(),
    }
}

/// Checks the size of the result before it is built: a few bytes in many places add up.
fn check_size(
    path: &Path,
    content: &[u8],
    encoding: Encoding,
    request: &EditRequest,
    found: &[Range<usize>],
) -> Result<(), FilesError> {
    let ends = memchr::memchr_iter(b'\n', request.new.as_bytes()).count();
    // No encoding here takes more bytes for an ASCII character than its width, or more for another one than UTF-8.
    let one = (request.new.len() + ends) as u64 * encoding.width() as u64;
    let size = one
        .saturating_mul(found.len() as u64)
        .saturating_add(content.len() as u64);
    if size <= LARGEST_MADE {
        return Ok(());
    }
    Err(FilesError::TooLarge {
        path: path.to_path_buf(),
        size,
        limit: LARGEST_MADE,
        done: "made by an edit",
    })
}

/// Checks that the number of occurrences is the requested one.
fn check(
    path: &Path,
    content: &[u8],
    encoding: Encoding,
    request: &EditRequest,
    found: &[Range<usize>],
) -> Result<(), FilesError> {
    let ambiguous = |places: &[usize]| {
        let lines = lines_of(content, encoding, &places[..places.len().min(TOLD_LINES)]);
        Err(FilesError::Ambiguous {
            path: path.to_path_buf(),
            count: places.len() as u64,
            lines,
        })
    };
    if found.len() > MOST_PLACES {
        let why = format!(
            "it stands in `{}` more than {MOST_PLACES} times: more of it is needed, or a command that replaces it",
            path.display()
        );
        return Err(FilesError::Argument { argument: "old", why });
    }
    match found {
        [] => {
            let nearest = nearest::places(&encoding.decode(content), &request.old);
            Err(FilesError::NoMatch {
                path: path.to_path_buf(),
                nearest,
            })
        }
        _ if request.replace_all => Ok(()),
        [_] => Ok(()),
        several => ambiguous(&several.iter().map(|at| at.start).collect::<Vec<_>>()),
    }
}

/// Returns the numbers of the lines, counted from 1, with these sorted positions.
fn lines_of(content: &[u8], encoding: Encoding, places: &[usize]) -> Vec<u64> {
    let (mut line, mut at) = (1, 0);
    let mut number = |place: &usize| {
        line += encoding.count_ends(&content[at..*place]);
        at = *place;
        line
    };
    places.iter().map(&mut number).collect()
}

/// Returns the non-overlapping occurrences of a text. A line end in it also matches `\r\n`, unless the text itself
/// contains one. Unless `all` occurrences are requested, the result also contains one that overlaps the only other.
fn occurrences(content: &[u8], encoding: Encoding, text: &str, all: bool) -> Vec<Range<usize>> {
    // A file cannot contain a character that its encoding lacks.
    let Ok(sought) = encoding.encode(text) else {
        return Vec::new();
    };
    if !text.contains('\n') || text.contains("\r\n") {
        return exact(content, encoding, &sought, all);
    }
    let returns: Vec<usize> = encoding.carriage_returns(content).collect();
    if returns.is_empty() {
        return exact(content, encoding, &sought, all);
    }
    let width = encoding.width();
    let mut plain = Vec::with_capacity(content.len());
    let mut from = 0;
    for at in &returns {
        plain.extend_from_slice(&content[from..*at]);
        from = at + width;
    }
    plain.extend_from_slice(&content[from..]);
    // The number of carriage returns removed before the position `at` of the normalised text; one before a line end
    // belongs to that line end.
    let mut left_out = 0;
    let mut place = |at: usize| {
        while returns.get(left_out).is_some_and(|gone| gone - left_out * width < at) {
            left_out += 1;
        }
        at + left_out * width
    };
    exact(&plain, encoding, &sought, all)
        .into_iter()
        .map(|found| place(found.start)..place(found.end))
        .collect()
}

/// Returns the occurrences of exactly these bytes, as [`occurrences`] does.
fn exact(content: &[u8], encoding: Encoding, sought: &[u8], all: bool) -> Vec<Range<usize>> {
    let finder = Finder::new(sought);
    let next = |mut from: usize| loop {
        let at = from + finder.find(content.get(from..)?)?;
        let place = at..at + sought.len();
        if encoding.is_aligned(content, place.clone()) {
            return Some(place);
        }
        from = at + 1;
    };
    let mut found = Vec::new();
    // The mark is not a part of the text.
    let mut from = encoding.mark();
    while found.len() <= MOST_PLACES
        && let Some(place) = next(from)
    {
        from = place.end;
        found.push(place);
    }
    // `aaa` contains `aa` once without overlap, and a second time with overlap.
    if let ([only], false) = (found.as_slice(), all) {
        found.extend(next(only.start + 1));
    }
    found
}

/// Returns the content with each occurrence replaced, and the changes.
///
/// # Errors
/// The first character that the encoding cannot represent.
fn replaced(
    content: &[u8],
    encoding: Encoding,
    found: &[Range<usize>],
    text: &str,
) -> Result<(Vec<u8>, Vec<Change>), char> {
    let plain = encoding.encode(text)?;
    let returned = encoding.encode(&with_returns(text))?;
    let longer = plain.len().max(returned.len()) * found.len();
    let mut out = Vec::with_capacity(content.len() + longer);
    let mut changes = Vec::with_capacity(found.len());
    let mut from = 0;
    for at in found {
        out.extend_from_slice(&content[from..at.start]);
        let start = out.len();
        out.extend_from_slice(if ends_with_return(content, encoding, at) {
            &returned
        } else {
            &plain
        });
        changes.push(Change {
            old: at.clone(),
            new: start..out.len(),
        });
        from = at.end;
    }
    out.extend_from_slice(&content[from..]);
    Ok((out, changes))
}

/// Returns the text with `\r\n` for each line end.
fn with_returns(text: &str) -> String {
    text.split_inclusive('\n')
        .fold(String::with_capacity(text.len() + 16), |mut out, line| {
            match line.strip_suffix('\n') {
                Some(bare) if !bare.ends_with('\r') => out.extend([bare, "\r\n"]),
                Some(_) | None => out.push_str(line),
            }
            out
        })
}

/// Returns whether lines end with `\r\n` at this range: within it, after it, or, at the end of the file, before it.
fn ends_with_return(content: &[u8], encoding: Encoding, at: &Range<usize>) -> bool {
    let end = encoding
        .line_end(content, at.start)
        .unwrap_or_else(|| encoding.line_start(content, at.start));
    let width = encoding.width();
    let Some(before) = end.checked_sub(2 * width) else {
        return false;
    };
    encoding.carriage_returns(&content[before..end]).next().is_some()
}

#[cfg(test)]
mod tests;
