//! What a model reads of files: what is in them, what was changed, and why something was not done.
//!
//! Content is given as it is, since edits have to match it. Names are made safe to look at, and a path
//! in the workspace is told from there.

mod changes;
mod error;
mod lists;

use std::path::Path;

use shieling::files::{FileAnswer, FileRead, GrepMode, Seen};
use shieling::outcome::{Denial, Status};
use shieling::units::ByteCount;

use super::{About, add};
use crate::dialect::{How, Voice};
use crate::tools::Tool;
use crate::visible;

pub(crate) use error::{error, sentence};

/// How much of a path is shown.
const SHOWN: usize = 1_000;

/// What was asked, as far as words about it need it. Paths are as the caller has written them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Read(String),
    Write(String),
    Edit(String),
    Patch,
    List(String),
    Find(String),
    Search {
        path: String,
        mode: GrepMode,
        /// Whether lines have their numbers.
        numbered: bool,
    },
    Stat(String),
    Delete(String),
    Move(String, String),
}

impl Deed {
    /// What would have been done, in a few words.
    fn words(&self) -> String {
        let line = |path: &str| visible::line(path, SHOWN);
        match self {
            Self::Read(path) => format!("read {}", line(path)),
            Self::Write(path) => format!("write {}", line(path)),
            Self::Edit(path) => format!("edit {}", line(path)),
            Self::Patch => "apply the patch".to_owned(),
            Self::List(path) => format!("list {}", line(path)),
            Self::Find(path) => format!("find files in {}", line(path)),
            Self::Search { path, .. } => format!("search in {}", line(path)),
            Self::Stat(path) => format!("look at {}", line(path)),
            Self::Delete(path) => format!("delete {}", line(path)),
            Self::Move(from, to) => format!("move {} to {}", line(from), line(to)),
        }
    }

    /// The tool that does it.
    pub(crate) fn tool(&self) -> Tool {
        match self {
            Self::Read(_) => Tool::ReadFile,
            Self::Write(_) => Tool::WriteFile,
            Self::Edit(_) => Tool::EditFile,
            Self::Patch => Tool::ApplyPatch,
            Self::List(_) => Tool::Ls,
            Self::Find(_) => Tool::Glob,
            Self::Search { .. } => Tool::Grep,
            Self::Stat(_) => Tool::Stat,
            Self::Delete(_) => Tool::DeleteFile,
            Self::Move(..) => Tool::MoveFile,
        }
    }
}

/// What is answered.
pub(crate) fn answer(answer: &FileAnswer, deed: &Deed, about: &About) -> String {
    match answer {
        FileAnswer::Read(file) => read(file, deed, about),
        FileAnswer::Written(file) => changes::written(file, deed, about),
        FileAnswer::Edited(file) => changes::edited(file, deed, about),
        FileAnswer::Patched(files) => changes::patched(files, about),
        FileAnswer::Listed(list) => lists::listed(list, about),
        FileAnswer::Found(found) => lists::found(found, about),
        FileAnswer::Grepped(found) => lists::grepped(found, deed, about),
        FileAnswer::Info(info) => match deed {
            Deed::Delete(_) => changes::deleted(info, about),
            Deed::Move(from, _) => changes::moved(info, from, about),
            _ => lists::info(info, about),
        },
    }
}

/// Why it was refused.
pub(crate) fn refusal(status: Status, denial: &Denial, deed: &Deed, about: &About) -> String {
    super::refusal::of_files(status, denial, &deed.words(), about)
}

fn read(file: &FileRead, deed: &Deed, about: &About) -> String {
    let name = asked(deed, &file.path, about);
    let size = ByteCount::bytes(file.size);
    let mut text = match &file.seen {
        Seen::Text { .. } => file.numbered_from(counts_from(about)),
        Seen::Image { mime, .. } => format!("[image {name}: {mime}, {size}]"),
        // No tool asks for it.
        Seen::Whole { .. } => format!("[whole file {name}: {size}]"),
        Seen::Binary { format, why } => {
            let format = format
                .as_ref()
                .map_or(String::new(), |format| format!(", {}", visible::line(format, 100)));
            let why = why
                .as_ref()
                .map_or(String::new(), |why| format!("; {}", visible::line(why, 300)));
            match about.offered.voice() {
                Voice::Pydantic => format!("[Binary file: {name} — cannot display as text]{why}"),
                Voice::Default | Voice::Codex | Voice::Claude | Voice::Camel => {
                    format!("[binary file {name}: {size}{format}; it cannot be shown as text{why}]")
                }
            }
        }
    };
    // Only whoever can hand it back has a use for it.
    if about.offered.takes(Tool::EditFile, "hash") || about.offered.takes(Tool::WriteFile, "hash") {
        add(&mut text, &format!("[hash {}]", file.hash.0));
    }
    text
}

/// The number that the first line has where the caller says at which one to begin.
fn counts_from(about: &About) -> u64 {
    let offset = about.offered.argument(Tool::ReadFile, "offset");
    u64::from(offset.is_some_and(|argument| argument.how == How::FromOne))
}

/// What an argument of ours is called where the caller would have to give it; nothing if it cannot.
fn argument(about: &About, tool: Tool, name: &'static str) -> Option<&'static str> {
    if !about.offered.takes(tool, name) {
        return None;
    }
    Some(
        about
            .offered
            .argument(tool, name)
            .map_or(name, |argument| argument.name),
    )
}

/// A path from the workspace, if it is in there.
fn shown(path: &Path, about: &About) -> String {
    let path = match path.strip_prefix(&about.workspace) {
        Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
        Ok(inside) => inside,
        Err(_) => path,
    };
    visible::line(&path.to_string_lossy(), SHOWN)
}

/// The path as it was asked for, in the dialects whose own words have it so.
fn asked(deed: &Deed, path: &Path, about: &About) -> String {
    match (about.offered.voice(), deed) {
        (
            Voice::Camel | Voice::Pydantic,
            Deed::Read(asked) | Deed::Write(asked) | Deed::Edit(asked) | Deed::List(asked) | Deed::Stat(asked),
        ) => visible::line(asked, SHOWN),
        _ => shown(path, about),
    }
}
