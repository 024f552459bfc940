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
mod section;
mod staged;
mod stage;
mod unified;

use super::{Context, FilesError, PatchRequest, PlannedChange};
use section::Section;
use stage::Stage;

/// The longest patch, in bytes.
const LONGEST: usize = 16 << 20;

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

#[cfg(test)]
mod tests;
