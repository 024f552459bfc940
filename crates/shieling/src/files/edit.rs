//! Editing: one text of a file becomes another, and every other byte stays what it is.
//!
//! Works on the bytes of the file: the text that is sought, and the one that is put there, are encoded
//! as the file is. So a byte-order mark, line ends of several kinds, a missing last line end and bytes
//! that are no text survive.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use memchr::memmem::Finder;

use super::diff::{self, Change, Names};
use super::encoding::Encoding;
use super::reach::{self, Held, Reached};
use super::{Access, Context, EditAsk, Edited, FileAnswer, FilesError, Planned, hash, nearest};
use crate::environment::{Expect, Links};

/// The largest file that is edited, in bytes.
const LARGEST: u64 = 256 << 20;

/// The most places that are replaced at once: each is remembered until the edit is shown.
const MOST_PLACES: usize = 1_000_000;

/// The most that an edit makes of a file, in bytes.
const LARGEST_MADE: u64 = 2 * LARGEST;

/// How many places are told of a text that should have been there once.
const TOLD_LINES: usize = 20;

/// Works out an edit. Links are followed.
///
/// # Errors
/// [`FilesError::Argument`], [`FilesError::NoMatch`], [`FilesError::Ambiguous`],
/// [`FilesError::NotText`], [`FilesError::TooLarge`] for a file of more than 256 MiB or one that would
/// become larger than 512 MiB,
/// [`FilesError::Stale`], what the gate says, and what the files say.
pub(crate) fn plan_edit(context: Context<'_>, ask: &EditAsk) -> Result<Planned, FilesError> {
    let reached = reach::spot(context, &ask.path, Links::Follow)?;
    let path = reached.spot.path().to_path_buf();
    let node = reached.file()?;
    if ask.old.is_empty() {
        return Err(nothing_sought(node.is_some()));
    }
    if ask.old == ask.new {
        let why = "it is the same as `old`: nothing would change".to_owned();
        return Err(FilesError::Argument { argument: "new", why });
    }
    let Some(node) = node else {
        return Err(reach::missing(&ask.path));
    };
    let held = reach::load(context, node, LARGEST, "edited")?;
    held.check(context, &path, ask.expect.as_ref())?;
    let Held { content, meta } = held;
    let Some(encoding) = Encoding::of(&content) else {
        let why = "it has NUL bytes where text has none".to_owned();
        return Err(FilesError::NotText { path, why });
    };
    let found = occurrences(&content, encoding, &ask.old, ask.replace_all);
    check(&path, &content, encoding, ask, &found)?;
    check_size(&path, &content, encoding, ask, &found)?;
    let (edited, changes) = replaced(&content, encoding, &found, &ask.new).map_err(|lacking| FilesError::Argument {
        argument: "new",
        why: format!("`{}` is {}, which has no `{lacking}`", path.display(), encoding.name()),
    })?;
    let names = Names::same(context.workspace, &path);
    let diff = diff::of_changes(&names, encoding, &content, &edited, &changes);
    drop(content);
    let replacements = found.len() as u64;
    let remembered = context.remembered.clone();
    let Reached { spot, .. } = reached;
    Ok(Planned {
        paths: vec![(Access::Write, path.clone())],
        preview: diff.text.clone(),
        cut_at: diff.cut_at(),
        directories: HashSet::new(),
        make: Box::new(move || {
            spot.replace(&edited, false, Expect::Stamp(meta.stamp))?;
            let hash = hash::written(spot.as_ref(), &edited);
            remembered.keep(&hash, &edited);
            Ok(FileAnswer::Edited(Edited {
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

/// Whether what would come of it can be held: a few bytes in many places become a lot.
fn check_size(
    path: &Path,
    content: &[u8],
    encoding: Encoding,
    ask: &EditAsk,
    found: &[Range<usize>],
) -> Result<(), FilesError> {
    let ends = memchr::memchr_iter(b'\n', ask.new.as_bytes()).count();
    // No encoding here takes more bytes for a character of one byte than its width, nor for others more
    // than UTF-8.
    let one = (ask.new.len() + ends) as u64 * encoding.width() as u64;
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

/// Whether these occurrences are what was asked for.
fn check(
    path: &Path,
    content: &[u8],
    encoding: Encoding,
    ask: &EditAsk,
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
            let nearest = nearest::places(&encoding.decode(content), &ask.old);
            Err(FilesError::NoMatch {
                path: path.to_path_buf(),
                nearest,
            })
        }
        _ if ask.replace_all => Ok(()),
        [_] => Ok(()),
        several => ambiguous(&several.iter().map(|at| at.start).collect::<Vec<_>>()),
    }
}

/// The lines, counted from 1, in which these places lie. They are in order.
fn lines_of(content: &[u8], encoding: Encoding, places: &[usize]) -> Vec<u64> {
    let (mut line, mut at) = (1, 0);
    let mut number = |place: &usize| {
        line += encoding.count_ends(&content[at..*place]);
        at = *place;
        line
    };
    places.iter().map(&mut number).collect()
}

/// Where the text stands, side by side. A line end in it stands for `\r\n`, too, unless it has such a
/// one itself. Unless `all` are meant, one that overlaps the only other is given, too.
fn occurrences(content: &[u8], encoding: Encoding, text: &str, all: bool) -> Vec<Range<usize>> {
    // A character that the encoding lacks is not there.
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
    // Before the place `at` of the plain text, so many carriage returns were left out: the one before a
    // line end belongs to that line end.
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

/// Where exactly these bytes stand, as [`occurrences`].
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
    // The mark says how the text is encoded, and is no character of it.
    let mut from = encoding.mark();
    while found.len() <= MOST_PLACES
        && let Some(place) = next(from)
    {
        from = place.end;
        found.push(place);
    }
    // `aa` is in `aaa` once, or once more, though not side by side.
    if let ([only], false) = (found.as_slice(), all) {
        found.extend(next(only.start + 1));
    }
    found
}

/// The content with each occurrence replaced, and what changed.
///
/// # Errors
/// A character that the encoding lacks.
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

/// The text with `\r\n` for each line end.
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

/// Whether lines end with `\r\n` where this stands: in it, behind it, or, at the end of the file, before
/// it.
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
