//! Patches: several files changed at once, or none.
//!
//! ```text
//! text ──unified, envelope──► sections ──apply, stage──► what each file is to be ──commit──► done, or undone
//! ```
//!
//! What is there must be exactly what the patch says; only line numbers may be off, where the lines
//! themselves leave no doubt. Line ends of a file are kept as in an edit.

mod apply;
mod commit;
mod envelope;
mod name;
mod stage;
mod unified;

use std::path::PathBuf;

use super::{Context, FilesError, PatchAsk, Planned};
use stage::Stage;

/// The longest patch, in bytes.
const LONGEST: usize = 16 << 20;

/// What a patch says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    /// Where it begins in the patch, counted from 1.
    line: u64,
    /// The file as it was; none if it is new.
    from: Option<PathBuf>,
    /// The file as it is to be; none if it is removed.
    to: Option<PathBuf>,
    /// Whether it may be run, before and after, where that is said.
    executable: (Option<bool>, Option<bool>),
    /// What changes in it, from the beginning to the end.
    hunks: Vec<Hunk>,
    /// Whether the hunks of a removal are the whole file.
    tells_all: bool,
}

/// A part of a file that changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Hunk {
    /// Where it begins in the old file, counted from 1, and in the new one.
    at: Option<(u64, u64)>,
    /// Lines that it stands behind, in their order.
    anchors: Vec<String>,
    /// Whether it stands at the end of the file.
    at_end: bool,
    /// Whether it says nothing of a missing line end at the end of the file.
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
    /// What undoes this.
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

/// Works out a patch.
///
/// # Errors
/// [`FilesError::BadPatch`] with the line, [`FilesError::Misfit`] with the file, the hunk and the
/// nearest places, [`FilesError::Argument`], what the gate says, and what the files say.
pub(crate) fn plan_patch(context: Context<'_>, ask: &PatchAsk) -> Result<Planned, FilesError> {
    let bad = |argument, why: String| Err(FilesError::Argument { argument, why });
    if ask.patch.len() > LONGEST {
        return bad(
            "patch",
            format!("it has {} bytes, and {LONGEST} are the most", ask.patch.len()),
        );
    }
    let is_envelope = ask.patch.trim_start().starts_with(envelope::BEGIN);
    if is_envelope && ask.reverse {
        return bad("reverse", "only a unified diff says enough to be undone".to_owned());
    }
    let mut sections = if is_envelope {
        envelope::parse(&ask.patch)?
    } else {
        unified::parse(&ask.patch)?
    };
    if ask.reverse {
        sections = sections.into_iter().rev().map(Section::reversed).collect();
    }
    let mut stage = Stage::new(context);
    for section in &sections {
        stage.take(section)?;
    }
    stage.plan()
}

/// That a line of a patch cannot be read.
fn unreadable<T>(line: usize, why: impl Into<String>) -> Result<T, FilesError> {
    Err(FilesError::BadPatch {
        line: line as u64 + 1,
        why: why.into(),
    })
}

#[cfg(test)]
mod tests;
