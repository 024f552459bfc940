//! Applies patches: several files change, or none.
//!
//! ```text
//! text ──unified, envelope──► sections ──apply, stage──► the new files ──commit──► done, or undone
//! ```
//!
//! The old lines of a hunk must match exactly. Only the line numbers may be wrong, as long as the place is
//! unambiguous. Line ends are preserved as in an edit.

mod apply;
mod commit;
mod envelope;
mod name;
mod stage;
mod unified;

use std::path::PathBuf;

use super::{Context, FilesError, PatchRequest, PlannedChange};
use stage::Stage;

/// The longest patch, in bytes.
const LONGEST: usize = 16 << 20;

/// The part of a patch about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    /// Its first line in the patch, counted from 1.
    line: u64,
    /// The old file; `None` if the file is new.
    from: Option<PathBuf>,
    /// The new file; `None` if the file is removed.
    to: Option<PathBuf>,
    /// Whether the file is executable before and after, where the patch says so.
    executable: (Option<bool>, Option<bool>),
    /// The changes, in the order of the file.
    hunks: Vec<Hunk>,
    /// Whether the hunks of a removal contain the whole file.
    tells_all: bool,
}

/// A changed part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Hunk {
    /// Its first line in the old file and in the new one, counted from 1.
    at: Option<(u64, u64)>,
    /// Lines that precede it, in their order.
    anchors: Vec<String>,
    /// Whether it is at the end of the file.
    at_end: bool,
    /// Whether it does not say if the last line of the file has a line end.
    loose_end: bool,
    lines: Vec<Line>,
}

/// A line of a hunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    side: Side,
    text: String,
    /// Whether it has a line end.
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

impl Section {
    /// Returns the section that reverses this one.
    fn reversed(self) -> Self {
        let hunks = self.hunks.into_iter().map(|mut hunk| {
            hunk.at = hunk.at.map(|(old, new)| (new, old));
            for line in &mut hunk.lines {
                line.side = match line.side {
                    Side::Both => Side::Both,
                    Side::Old => Side::New,
                    Side::New => Side::Old,
                };
            }
            hunk
        });
        let (was, is) = self.executable;
        Self {
            from: self.to,
            to: self.from,
            executable: (is, was),
            hunks: hunks.collect(),
            ..self
        }
    }
}

/// Prepares a patch.
///
/// # Errors
/// [`FilesError::BadPatch`] with the line; [`FilesError::Misfit`] with the file, the hunk and the most similar
/// places; [`FilesError::Argument`]; a refusal by the access check; and errors of the environment.
pub(crate) fn plan_patch(context: Context<'_>, request: &PatchRequest) -> Result<PlannedChange, FilesError> {
    let bad = |argument, why: String| Err(FilesError::Argument { argument, why });
    if request.patch.len() > LONGEST {
        return bad(
            "patch",
            format!("it has {} bytes, and {LONGEST} are the most", request.patch.len()),
        );
    }
    let is_envelope = request.patch.trim_start().starts_with(envelope::BEGIN);
    if is_envelope && request.reverse {
        return bad("reverse", "only a unified diff says enough to be undone".to_owned());
    }
    let mut sections = if is_envelope {
        envelope::parse(&request.patch)?
    } else {
        unified::parse(&request.patch)?
    };
    if request.reverse {
        sections = sections.into_iter().rev().map(Section::reversed).collect();
    }
    let mut stage = Stage::new(context);
    for section in &sections {
        stage.take(section)?;
    }
    stage.plan()
}

/// Fails because a line of the patch is malformed.
fn unreadable<T>(line: usize, why: impl Into<String>) -> Result<T, FilesError> {
    Err(FilesError::BadPatch {
        line: line as u64 + 1,
        why: why.into(),
    })
}

#[cfg(test)]
mod tests;
