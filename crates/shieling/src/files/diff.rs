//! Unified diffs between two contents.
//!
//! Only the surroundings of a change are compared, and a diff ends at 32 KiB: neither the time nor the length depends
//! on the size of the file.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::encoding::Encoding;
use crate::units::ByteCount;

/// The longest diff, in bytes.
const MOST: usize = 32 << 10;

/// The number of context lines around a change.
const CONTEXT: usize = 3;

/// The largest number of lines that are compared. Longer ranges are replaced as a whole.
const COMPARED: usize = 20_000;

/// The time after which a diff may be longer than necessary. It is still correct.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Changes that lie within this many bytes are compared together.
const TOGETHER: usize = 256 << 10;

/// A diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Diff {
    /// The text: at most 32 KiB, and a line about the cut.
    pub(super) text: String,
    /// Whether it was cut.
    pub(super) is_cut: bool,
}

impl Diff {
    /// Returns the bound, if the diff was cut.
    pub(super) fn cut_at(&self) -> Option<ByteCount> {
        self.is_cut.then_some(ByteCount::bytes(MOST as u64))
    }
}

/// The names of both sides.
#[derive(Debug, Clone)]
pub(super) struct Names {
    old: String,
    new: String,
}

impl Names {
    /// The names of a file before and after a change, relative to the workspace.
    pub(super) fn same(workspace: &Path, path: &Path) -> Self {
        let name = display_path(workspace, path);
        Self {
            old: quoted("a/", &name),
            new: quoted("b/", &name),
        }
    }

    /// The names of a new file.
    pub(super) fn made(workspace: &Path, path: &Path) -> Self {
        Self {
            old: "/dev/null".to_owned(),
            ..Self::same(workspace, path)
        }
    }

    /// The names of a removed file.
    pub(super) fn removed(workspace: &Path, path: &Path) -> Self {
        Self {
            new: "/dev/null".to_owned(),
            ..Self::same(workspace, path)
        }
    }
}

/// Returns the path as diffs show it: relative to the workspace, if it is inside.
fn display_path(workspace: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(workspace).unwrap_or(path);
    inner.to_string_lossy().trim_start_matches('/').to_owned()
}

/// Quotes a name as git does, if it contains characters that would be syntax_check.
fn quoted(side: &str, name: &str) -> String {
    if !name.contains(|c: char| c.is_ascii_control() || c == '"' || c == '\\') {
        // Without the tab, the part after a blank could be read as a time.
        let tab = if name.contains(' ') { "\t" } else { "" };
        return format!("{side}{name}{tab}");
    }
    let mut out = format!("\"{side}");
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => write!(out, "\\{:03o}", c as u32).expect("a text takes what is written"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A change of a range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The range in the old content.
    pub(super) old: Range<usize>,
    /// The range in the new content.
    pub(super) new: Range<usize>,
}

impl Change {
    /// Returns the range between the common prefix and the common suffix of two contents.
    fn between(old: &[u8], new: &[u8]) -> Self {
        let (before, behind) = common(old, new);
        Self {
            old: before..old.len() - behind,
            new: before..new.len() - behind,
        }
    }
}

/// Returns the diff of two contents, if both are text.
pub(super) fn of_contents(names: &Names, old: &[u8], new: &[u8]) -> Option<Diff> {
    let (was, is) = (Encoding::of(old)?, Encoding::of(new)?);
    // An empty file has no encoding of its own.
    let is = if new.is_empty() { was } else { is };
    if was == is || old.is_empty() {
        return Some(of_changes(names, is, old, new, &[Change::between(old, new)]));
    }
    let text = |encoding: Encoding, bytes: &[u8]| encoding.decode(&bytes[encoding.mark()..]).into_owned();
    Some(of_texts(names, &text(was, old), &text(is, new)))
}

/// Returns the diff of two texts.
pub(super) fn of_texts(names: &Names, old: &str, new: &str) -> Diff {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    of_changes(names, Encoding::UTF_8, old, new, &[Change::between(old, new)])
}

/// Returns the diff of two contents whose changes are known, in the order of the file.
pub(super) fn of_changes(names: &Names, encoding: Encoding, old: &[u8], new: &[u8], changes: &[Change]) -> Diff {
    let mut out = Writer {
        text: format!("--- {}\n+++ {}\n", names.old, names.new),
        is_cut: false,
    };
    // The number of lines before the part of each side that was not compared yet.
    let (mut old_at, mut old_lines, mut new_at, mut new_lines) = (0, 0, 0, 0);
    let mut changes = changes.iter().peekable();
    let mut any = false;
    while let Some(first) = changes.next() {
        if out.is_cut {
            break;
        }
        let start = lines_before(encoding, old, first.old.start);
        let mut last = first;
        let mut end = lines_behind(encoding, old, last.old.end);
        while let Some(next) = changes.peek()
            && lines_before(encoding, old, next.old.start) <= end
            && end - start < TOGETHER
        {
            last = next;
            end = lines_behind(encoding, old, last.old.end);
            changes.next();
        }
        // Outside of the changes both sides are equal.
        let new_start = first.new.start - (first.old.start - start);
        let new_end = last.new.end + (end - last.old.end);
        old_lines += encoding.count_ends(&old[old_at..start]);
        new_lines += encoding.count_ends(&new[new_at..new_start]);
        (old_at, new_at) = (start, new_start);
        let marked = |from: usize, bytes: &[u8]| if from == 0 { encoding.mark().min(bytes.len()) } else { 0 };
        let was = &old[start..end];
        let is = &new[new_start..new_end];
        let was = encoding.decode(&was[marked(start, was)..]);
        let is = encoding.decode(&is[marked(new_start, is)..]);
        any |= hunks(&mut out, &was, &is, old_lines, new_lines);
    }
    if out.is_cut {
        out.text.push_str("… the diff is cut here, at 32 KiB\n");
    }
    if !any {
        return Diff::default();
    }
    Diff {
        text: out.text,
        is_cut: out.is_cut,
    }
}

/// Returns the start of the range to compare for a change at `at`.
fn lines_before(encoding: Encoding, bytes: &[u8], at: usize) -> usize {
    let mut start = encoding.line_start(bytes, at);
    for _ in 0..CONTEXT {
        if start == 0 {
            break;
        }
        start = encoding.line_start(bytes, start - encoding.width());
    }
    start
}

/// Returns the end of the range to compare for a change that ends before `at`. If a line ends there, the range has
/// one line more than is shown, since the change may have removed the end of the line before.
fn lines_behind(encoding: Encoding, bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    for _ in 0..=CONTEXT {
        end = if end < bytes.len() {
            encoding.line_end(bytes, end).unwrap_or(bytes.len())
        } else {
            end
        };
    }
    end
}

/// Writes a diff up to its bound.
struct Writer {
    text: String,
    is_cut: bool,
}

impl Writer {
    fn line(&mut self, sign: &str, line: &str) {
        const OPEN: &str = "\n\\ No newline at end of file\n";
        self.is_cut |= self.text.len() + sign.len() + line.len() + OPEN.len() > MOST;
        if self.is_cut {
            return;
        }
        self.text.push_str(sign);
        self.text.push_str(line);
        if !line.ends_with('\n') {
            self.text.push_str(OPEN);
        }
    }
}

/// Writes the differences of two parts that follow this many lines. Returns whether there are any.
fn hunks(out: &mut Writer, old: &str, new: &str, old_before: u64, new_before: u64) -> bool {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let groups = group_diff_ops(compared(&old, &new), CONTEXT);
    for group in &groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let side = |before: u64, start: usize, end: usize| match end - start {
            0 => format!("{},0", before + start as u64),
            1 => format!("{}", before + start as u64 + 1),
            many => format!("{},{many}", before + start as u64 + 1),
        };
        let old_side = side(old_before, first.old_range().start, last.old_range().end);
        let new_side = side(new_before, first.new_range().start, last.new_range().end);
        out.line("", &format!("@@ -{old_side} +{new_side} @@\n"));
        for op in group {
            if let DiffOp::Equal { .. } = op {
                old[op.old_range()].iter().for_each(|line| out.line(" ", line));
                continue;
            }
            old[op.old_range()].iter().for_each(|line| out.line("-", line));
            new[op.new_range()].iter().for_each(|line| out.line("+", line));
        }
    }
    !groups.is_empty()
}

/// Returns the lengths of the common prefix, and of the common suffix of the rest.
fn common<T: PartialEq>(old: &[T], new: &[T]) -> (usize, usize) {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old[before..].iter().rev(), new[before..].iter().rev());
    (before, old.zip(new).take_while(|(a, b)| a == b).count())
}

/// Compares two lists of lines.
fn compared(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let (before, behind) = common(old, new);
    let (old_rest, new_rest) = (&old[before..old.len() - behind], &new[before..new.len() - behind]);
    let mut ops = Vec::new();
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    if before > 0 {
        ops.push(equal(0, 0, before));
    }
    if old_rest.len() + new_rest.len() > COMPARED {
        let (old_len, new_len) = (old_rest.len(), new_rest.len());
        ops.push(DiffOp::Replace {
            old_index: before,
            old_len,
            new_index: before,
            new_len,
        });
    } else {
        let deadline = Some(Instant::now() + TIME_LIMIT);
        // The library's positions of insertions in the old lines, and of removals in the new ones, are not always
        // correct; the order and the lengths are.
        let (mut old_index, mut new_index) = (before, before);
        for op in capture_diff_slices_deadline(Algorithm::Patience, old_rest, new_rest, deadline) {
            let (old_len, new_len) = (op.old_range().len(), op.new_range().len());
            ops.push(match op {
                DiffOp::Equal { len, .. } => equal(old_index, new_index, len),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => DiffOp::Replace {
                    old_index,
                    old_len,
                    new_index,
                    new_len,
                },
            });
            old_index += old_len;
            new_index += new_len;
        }
    }
    if behind > 0 {
        ops.push(equal(old.len() - behind, new.len() - behind, behind));
    }
    ops
}
