//! Searches in files.
//!
//! ```text
//! GrepAsk ─► Plan ─► threads: Walk ─► Batch ─► Search, file by file ─► Part ─► Page ─► Grepped
//!                    (one lock)                                       (one lock)
//! ```
//!
//! Each thread takes the next share of the walk and searches it; a page puts what was found into the order
//! of the walk again, and says when enough is there. So the answer is the same whatever the number of
//! threads, and nothing is kept that could not be part of it.

mod crew;
mod keep;
mod lines;
mod page;
mod plan;
mod text;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::walk::{After, Rules, Walk};
use super::{Context, FilesError, GrepAsk, GrepMode, Grepped, pattern};
use crate::environment::{Kind, Links};
use page::{Page, Part};
use plan::Plan;
use text::{Search, Unsearched};

/// Searches in a file, or in the files of a directory.
///
/// A regular expression is one that is found in linear time: there is neither look-around nor a
/// back-reference. A line ends at `\n`, and `$` also stands before `\r\n`. With `multiline`, `.` fits a line
/// end, too, and what is given are the lines of a match; files of more than 32 MiB then are not looked at.
///
/// A file with a NUL in its first MiB is binary, and not shown. UTF-16 is read by its byte-order mark. What
/// a file has gained since it was opened is not searched.
///
/// An answer ends after `limit` lines or files, or once it has 4 MiB of text. The figures count what was
/// looked at up to there.
///
/// Gives up soon once `stopped` is set.
///
/// # Errors
/// [`FilesError`].
pub(crate) fn grep(context: Context<'_>, ask: &GrepAsk, stopped: &AtomicBool) -> Result<Grepped, FilesError> {
    let plan = Plan::parse(ask)?;
    let root = context.reach(&ask.path, Links::Follow)?;
    if root.meta()?.kind != Kind::Directory {
        return one(&plan, &*root, stopped);
    }
    let chosen = pattern::choice("globs", &ask.globs, root.path())?;
    let rules = Rules {
        context,
        of: ask.of.clone(),
        may_hold: Box::new({
            let root = root.path().to_path_buf();
            let chosen = chosen.clone();
            move |below| !chosen.matched(root.join(below), true).is_ignore()
        }),
        directories: false,
        after: plan.cursor.as_ref().map(|cursor| After {
            path: cursor.path.clone(),
            inclusive: plan.mode == GrepMode::Content,
        }),
        stopped,
    };
    let walk = Walk::new(&rules, root)?;
    let page = crew::work(&plan, &rules, &chosen, walk);
    rules.whole()?;
    Ok(page.finish())
}

/// Searches a single file, whatever it is called.
fn one(plan: &Plan, file: &dyn crate::environment::Node, stopped: &AtomicBool) -> Result<Grepped, FilesError> {
    let mut page = Page::new(plan);
    let name = PathBuf::from(file.path().file_name().unwrap_or_default());
    let mut part = Part::new(plan);
    match Search::new(plan, stopped).file(file.open()?, plan.resumed(&name), part.room()) {
        Ok(searched) => part.searched(name, searched),
        Err(Unsearched::TooLarge { size, limit }) => {
            return Err(FilesError::TooLarge {
                path: file.path().to_path_buf(),
                size,
                limit,
                done: "searched over several lines, or decoded,",
            });
        }
        Err(Unsearched::Stopped) => return Err(FilesError::Fault("it was broken off".to_owned())),
        Err(Unsearched::Failed(error)) => return Err(error.into()),
        Err(Unsearched::Line | Unsearched::Slow) => part.unreadable(1),
    }
    page.add(0, part);
    Ok(page.finish())
}
