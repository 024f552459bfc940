//! Applies the hunks of one file.
//!
//! A hunk matches where its old lines occur consecutively and exactly, except that a carriage return before a line
//! end is ignored if the hunk has none. No other difference is tolerated.

use std::cell::{Cell, LazyCell};

use memchr::memchr_iter;

use super::section::{Hunk, Line, Side};
use crate::files::{Candidate, nearest};

/// The number of places that an error lists for an ambiguous hunk.
const TOLD_PLACES: usize = 10;

/// The largest number of line comparisons for one file, which takes about a second. Hunks without line numbers are
/// searched for in the whole file, one by one.
const COMPARED: u64 = 1 << 27;

/// A hunk that does not match.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// The number of the hunk, counted from 1.
    pub(super) hunk: u64,
    pub(super) why: String,
    pub(super) nearest: Vec<Candidate>,
}

/// The result of applying hunks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) content: Vec<u8>,
    /// The number of lines added.
    pub(super) added: u64,
    /// The number of lines removed.
    pub(super) removed: u64,
}

/// Applies hunks in their order.
///
/// # Errors
/// The first hunk that does not match.
pub(super) fn apply(content: &[u8], hunks: &[Hunk]) -> Result<Applied, Misfit> {
    let mut file = File {
        lines: split(content),
        done: 0,
        drift: 0,
        compared: Cell::new(0),
        out: Applied::default(),
    };
    for (number, hunk) in (1..).zip(hunks) {
        let place = file.find_place_in_time(hunk);
        place
            .and_then(|place| file.put(hunk, place))
            .map_err(|(why, ask_near)| {
                let old: Vec<&str> = hunk.old().map(|line| line.text.as_str()).collect();
                let near = ask_near && !old.is_empty();
                let nearest = if near {
                    nearest::places(&String::from_utf8_lossy(content), &old.join("\n"))
                } else {
                    Vec::new()
                };
                Misfit {
                    hunk: number,
                    why,
                    nearest,
                }
            })?;
    }
    file.keep_to(file.lines.len());
    Ok(file.out)
}

/// The reason why a hunk does not match, and whether similar places are worth showing.
type Mismatch = (String, bool);

/// Splits a content into lines with their line ends.
fn split(content: &[u8]) -> Vec<&[u8]> {
    let mut start = 0;
    let mut lines: Vec<&[u8]> = memchr_iter(b'\n', content)
        .map(|end| {
            let line = &content[start..=end];
            start = end + 1;
            line
        })
        .collect();
    if start < content.len() {
        lines.push(&content[start..]);
    }
    lines
}

impl Hunk {
    fn old(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.side != Side::New)
    }

    /// Returns whether the hunk itself has carriage returns.
    fn has_returns(&self) -> bool {
        self.lines.iter().any(|line| line.text.ends_with('\r'))
    }
}

struct File<'a> {
    lines: Vec<&'a [u8]>,
    /// The number of lines that were copied to `out` or removed.
    done: usize,
    /// The distance of the last hunk from its line number.
    drift: i64,
    /// The number of line comparisons.
    compared: Cell<u64>,
    out: Applied,
}

impl File<'_> {
    /// Finds the place of a hunk within the bound of comparisons.
    fn find_place_in_time(&self, hunk: &Hunk) -> Result<usize, Mismatch> {
        let place = self.find_place(hunk);
        if self.compared.get() < COMPARED {
            return place;
        }
        let why = "too many lines had to be compared to find its place: give the numbers of lines, or fewer hunks";
        Err((why.to_owned(), false))
    }

    /// Finds the place of a hunk.
    fn find_place(&self, hunk: &Hunk) -> Result<usize, Mismatch> {
        let old: Vec<&Line> = hunk.old().collect();
        if let Some((old_at, _)) = hunk.at {
            // A hunk without old lines gives the number of the line before it.
            let before = old_at.saturating_sub(u64::from(!old.is_empty()));
            let said = i64::try_from(before).unwrap_or(i64::MAX).saturating_add(self.drift);
            let said = usize::try_from(said).ok();
            if let Some(said) = said.filter(|said| *said >= self.done && self.fits(hunk, &old, *said)) {
                return Ok(said);
            }
            if old.is_empty() {
                return Err((
                    format!(
                        "the file has {} lines, and it adds behind line {old_at}",
                        self.lines.len()
                    ),
                    false,
                ));
            }
            return self.only(hunk, &old, self.done);
        }
        let (from, anchored) = self.anchored(hunk)?;
        if old.is_empty() {
            return Ok(if anchored && !hunk.at_end {
                from
            } else {
                self.lines.len()
            });
        }
        if hunk.at_end {
            let last = self.lines.len().checked_sub(old.len()).filter(|last| *last >= from);
            let last = last.filter(|last| self.fits(hunk, &old, *last));
            return last.ok_or_else(|| ("its lines are not at the end of the file".to_owned(), true));
        }
        if anchored {
            // The anchor may be the first line of the hunk itself.
            let mut places = from.saturating_sub(1).max(self.done)..self.lines.len();
            let found = places.find(|at| self.fits(hunk, &old, *at));
            return found.ok_or_else(|| ("its lines do not stand behind its `@@` line".to_owned(), true));
        }
        self.only(hunk, &old, self.done)
    }

    /// Returns the line after the hunk's anchors, and whether it has any.
    fn anchored(&self, hunk: &Hunk) -> Result<(usize, bool), Mismatch> {
        let mut from = self.done;
        for anchor in &hunk.anchors {
            let is_it = |at: &usize| self.spend(1) && self.lines[*at].trim_ascii() == anchor.as_bytes();
            let found: Vec<usize> = (from..self.lines.len()).filter(is_it).take(TOLD_PLACES).collect();
            match found.as_slice() {
                [] => return Err((format!("no line is `{anchor}`, as its `@@` line says"), false)),
                [one] => from = one + 1,
                several => {
                    let why = format!(
                        "`@@ {anchor}` is at lines {}: name the line before it, too",
                        numbers(several)
                    );
                    return Err((why, false));
                }
            }
        }
        Ok((from, !hunk.anchors.is_empty()))
    }

    /// Returns the only place that a hunk matches.
    fn only(&self, hunk: &Hunk, old: &[&Line], from: usize) -> Result<usize, Mismatch> {
        let fits = |at: &usize| self.fits(hunk, old, *at);
        let found: Vec<usize> = (from..self.lines.len()).filter(fits).take(TOLD_PLACES).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => match (0..from).find(fits) {
                Some(at) => Err((
                    format!("its lines stand at line {}, before the end of another hunk", at + 1),
                    false,
                )),
                None => Err((self.missing(hunk, old), true)),
            },
            several => {
                let why = format!(
                    "its lines stand at lines {}: more of the lines around them are needed",
                    numbers(several)
                );
                Err((why, false))
            }
        }
    }

    /// Explains why a hunk matches nowhere.
    fn missing(&self, hunk: &Hunk, old: &[&Line]) -> String {
        let mut bare = Hunk {
            lines: hunk.lines.clone(),
            loose_end: true,
            ..Hunk::default()
        };
        bare.lines.iter_mut().for_each(|line| line.ended = true);
        let bare_old: Vec<&Line> = bare.old().collect();
        if (0..self.lines.len()).any(|at| self.fits(&bare, &bare_old, at)) {
            return match old.last() {
                Some(last) if last.ended => {
                    "the last line of the file has no line end: `\\ No newline at end of file` \
                                             must stand behind it in the patch"
                        .to_owned()
                }
                Some(_) | None => "the patch says that a line has no line end, and it has one".to_owned(),
            };
        }
        "its old lines are not in the file".to_owned()
    }

    /// Returns whether the old lines of a hunk match at a line.
    fn fits(&self, hunk: &Hunk, old: &[&Line], at: usize) -> bool {
        if old.is_empty() {
            return at <= self.lines.len();
        }
        let Some(lines) = self.lines.get(at..at + old.len()) else {
            return false;
        };
        // Computed only if needed: a hunk may be as long as a file.
        let forgiving = LazyCell::new(|| {
            self.spend(hunk.lines.len());
            !hunk.has_returns()
        });
        if !self.spend(1) {
            return false;
        }
        lines.iter().zip(old).enumerate().all(|(number, (there, line))| {
            self.spend(1);
            let (text, ended) = bare(there, there.ends_with(b"\r\n") && *forgiving);
            let is_last = at + number + 1 == self.lines.len();
            text == line.text.as_bytes() && (ended == line.ended || (hunk.loose_end && is_last))
        })
    }

    /// Counts line comparisons. Returns whether more are permitted.
    fn spend(&self, lines: usize) -> bool {
        self.compared.set(self.compared.get().saturating_add(lines as u64));
        self.compared.get() < COMPARED
    }

    /// Copies lines unchanged up to this one.
    fn keep_to(&mut self, line: usize) {
        for kept in &self.lines[self.done..line] {
            self.out.content.extend_from_slice(kept);
        }
        self.done = line;
    }

    /// Applies a hunk at a line.
    fn put(&mut self, hunk: &Hunk, at: usize) -> Result<(), Mismatch> {
        let count = hunk.old().count();
        if let Some((old_at, _)) = hunk.at {
            let before = old_at.saturating_sub(u64::from(count > 0));
            self.drift = at as i64 - i64::try_from(before).unwrap_or(i64::MAX);
        }
        self.keep_to(at);
        let end: &[u8] = if !hunk.has_returns() && self.returns_at(at, count) {
            b"\r\n"
        } else {
            b"\n"
        };
        let open_file = hunk.loose_end
            && at + count == self.lines.len()
            && self.lines.last().is_some_and(|last| !last.ends_with(b"\n"));
        let mut there = at;
        for line in &hunk.lines {
            if line.side == Side::Old {
                self.out.removed += 1;
                there += 1;
                continue;
            }
            self.close(end, hunk.loose_end)?;
            if line.side == Side::Both {
                self.out.content.extend_from_slice(self.lines[there]);
                there += 1;
            } else {
                self.out.added += 1;
                self.out.content.extend_from_slice(line.text.as_bytes());
                self.out.content.extend_from_slice(if line.ended { end } else { b"" });
            }
        }
        self.done = there;
        let is_rest = there < self.lines.len();
        if is_rest {
            self.close(end, false)?;
        } else if open_file && hunk.lines.last().is_some_and(|line| line.side == Side::New) {
            // The file had no last line end, which this kind of patch cannot express.
            let ended = self
                .out
                .content
                .strip_suffix(end)
                .map_or(self.out.content.len(), <[u8]>::len);
            self.out.content.truncate(ended);
        }
        Ok(())
    }

    /// Ends the last line, so that another one can follow.
    fn close(&mut self, end: &[u8], may_end: bool) -> Result<(), Mismatch> {
        if self.out.content.is_empty() || self.out.content.ends_with(b"\n") {
            return Ok(());
        }
        if may_end {
            self.out.content.extend_from_slice(end);
            return Ok(());
        }
        Err(("a line would follow one that has no line end".to_owned(), false))
    }

    /// Returns whether lines end with `\r\n` here: in the hunk, or before or after it.
    fn returns_at(&self, at: usize, count: usize) -> bool {
        let near = self.lines[at..]
            .iter()
            .take(count.max(1))
            .chain(self.lines[..at].last());
        let ended = near.into_iter().find(|line| line.ends_with(b"\n"));
        ended.is_some_and(|line| line.ends_with(b"\r\n"))
    }
}

/// Returns a line without its line end, and whether it has one.
fn bare(line: &[u8], forgiving: bool) -> (&[u8], bool) {
    match line.strip_suffix(b"\n") {
        Some(text) if forgiving => (text.strip_suffix(b"\r").unwrap_or(text), true),
        Some(text) => (text, true),
        None => (line, false),
    }
}

/// Formats line numbers, counted from 1.
fn numbers(places: &[usize]) -> String {
    let more = if places.len() == TOLD_PLACES { "…" } else { "" };
    let told: Vec<String> = places.iter().map(|at| (at + 1).to_string()).collect();
    format!("{}{more}", told.join(", "))
}
