//! Searches the contents of files.
//!
//! ```text
//! GrepRequest ─► Plan ─► threads: Walk ─► Batch ─► Search, file by file ─► Part ─► Page ─► GrepResponse
//!                    (one lock)                                       (one lock)
//! ```
//!
//! Each thread takes the next batch of the walk and searches it. A page puts the results into the order of the walk,
//! and ends the search when it is full. The response is therefore the same for any number of threads, and results
//! that cannot become part of it are not kept.

mod thread_pool;
mod collector;
mod multiline;
mod page;
mod plan;
mod decoding;
mod file_search;
mod unsearched;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::walk::{After, Rules, Walk};
use super::{Context, FilesError, GrepMode, GrepRequest, GrepResponse, pattern};
use crate::environment::{Kind, Links};
use file_search::FileSearch;
use page::{BatchResult, Page};
use plan::Plan;
use unsearched::Unsearched;

/// Searches a file, or the files in a directory.
///
/// Regular expressions match in linear time: there are no look-around assertions and no back-references. A line ends
/// at `\n`, and `$` also matches before `\r\n`. With `multiline`, `.` also matches a line end, the result contains
/// all lines of a match, and files of more than 32 MiB are skipped.
///
/// A file with a NUL in its first MiB is binary and is skipped. UTF-16 is recognised by its byte-order mark. Bytes
/// that are appended to a file during the search are not searched.
///
/// A response ends after `limit` lines or files, or at 4 MiB of text. Its numbers count what was searched up to that
/// point.
///
/// Stops soon after `stopped` is set.
///
/// # Errors
/// [`FilesError`] if the request is invalid or the path cannot be read.
pub(crate) fn grep(
    context: Context<'_>,
    request: &GrepRequest,
    stopped: &AtomicBool,
) -> Result<GrepResponse, FilesError> {
    let plan = Plan::parse(request)?;
    let root = context.reach(&request.path, Links::Follow)?;
    if root.meta()?.kind != Kind::Directory {
        return one(&plan, &*root, stopped);
    }
    let chosen = pattern::choice("globs", &request.globs, root.path())?;
    let rules = Rules {
        context,
        include: request.include.clone(),
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
    let searched = root.path().to_path_buf();
    let walk = Walk::new(&rules, root)?;
    let page = thread_pool::work(&plan, &rules, &chosen, walk);
    rules.whole()?;
    Ok(page.finish(searched))
}

/// Searches a single file, whatever its name.
fn one(plan: &Plan, file: &dyn crate::environment::Node, stopped: &AtomicBool) -> Result<GrepResponse, FilesError> {
    let mut page = Page::new(plan);
    let name = PathBuf::from(file.path().file_name().unwrap_or_default());
    let mut part = BatchResult::new(plan);
    match FileSearch::new(plan, stopped).file(file.open()?, plan.resumed(&name), part.room()) {
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
    let directory = file.path().parent().unwrap_or(file.path());
    Ok(page.finish(directory.to_path_buf()))
}
