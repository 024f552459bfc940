//! The text of results and errors about files.
//!
//! Contents are returned unchanged, since edits have to match them. Names are escaped for display, and paths in the
//! workspace are relative to it.

mod changes;
mod error;
mod lists;

use std::path::Path;

use shieling::files::{FileContent, FileResponse, GrepMode, ReadResponse};
use shieling::outcome::{Denial, Status};
use shieling::units::ByteCount;

use super::{CallContext, add};
use crate::dialect::{Conversion, Style};
use crate::tools::Tool;
use crate::visible;

pub(crate) use error::{error, sentence};

/// The length of a path in a message.
const SHOWN: usize = 1_000;

/// The request, as far as messages about it need it. Paths are as the caller wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read(String),
    Write(String),
    Edit(String),
    Patch,
    List(String),
    Find(String),
    Search {
        path: String,
        mode: GrepMode,
        /// Whether lines are numbered.
        numbered: bool,
    },
    Stat(String),
    Delete(String),
    Move(String, String),
}

impl FileAction {
    /// Describes the request in a few words.
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

    /// Returns the tool that makes the request.
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

/// Words a response.
pub(crate) fn answer(answer: &FileResponse, action: &FileAction, context: &CallContext) -> String {
    match answer {
        FileResponse::Read(file) => read(file, action, context),
        FileResponse::Write(file) => changes::written(file, action, context),
        FileResponse::Edit(file) => changes::edited(file, action, context),
        FileResponse::Patch(files) => changes::patched(files, context),
        FileResponse::List(list) => lists::listed(list, context),
        FileResponse::Glob(found) => lists::found(found, context),
        FileResponse::Grep(found) => lists::grepped(found, action, context),
        FileResponse::Info(info) => match action {
            FileAction::Delete(_) => changes::deleted(info, context),
            FileAction::Move(from, _) => changes::moved(info, from, context),
            _ => lists::info(info, context),
        },
    }
}

/// Words a refusal.
pub(crate) fn refusal(status: Status, denial: &Denial, action: &FileAction, context: &CallContext) -> String {
    super::refusal::of_files(status, denial, &action.words(), context)
}

fn read(file: &ReadResponse, action: &FileAction, context: &CallContext) -> String {
    let name = asked(action, &file.path, context);
    let size = ByteCount::bytes(file.size);
    let mut text = match &file.content {
        FileContent::Text { .. } => file.numbered_from(counts_from(context)),
        FileContent::Image { mime, .. } => format!("[image {name}: {mime}, {size}]"),
        // No tool requests it.
        FileContent::Whole { .. } => format!("[whole file {name}: {size}]"),
        FileContent::Binary { format, why } => {
            let format = format
                .as_ref()
                .map_or(String::new(), |format| format!(", {}", visible::line(format, 100)));
            let why = why
                .as_ref()
                .map_or(String::new(), |why| format!("; {}", visible::line(why, 300)));
            match context.offered.style() {
                Style::Pydantic => format!("[Binary file: {name} — cannot display as text]{why}"),
                Style::Default | Style::Codex | Style::Claude | Style::Camel => {
                    format!("[binary file {name}: {size}{format}; it cannot be shown as text{why}]")
                }
            }
        }
    };
    // Only offered tools that accept the hash have a use for it.
    if context.offered.takes(Tool::EditFile, "hash") || context.offered.takes(Tool::WriteFile, "hash") {
        add(&mut text, &format!("[hash {}]", file.hash.0));
    }
    text
}

/// Returns the number of the first line in the caller's count.
fn counts_from(context: &CallContext) -> u64 {
    let offset = context.offered.argument(Tool::ReadFile, "offset");
    u64::from(offset.is_some_and(|argument| argument.how == Conversion::FromOne))
}

/// Returns the dialect's name of an argument of ours; `None` if the caller cannot pass it.
fn argument(context: &CallContext, tool: Tool, name: &'static str) -> Option<&'static str> {
    if !context.offered.takes(tool, name) {
        return None;
    }
    Some(
        context
            .offered
            .argument(tool, name)
            .map_or(name, |argument| argument.name),
    )
}

/// Returns a path for display, relative to the workspace if it is inside.
fn shown(path: &Path, context: &CallContext) -> String {
    let path = match path.strip_prefix(&context.workspace) {
        Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
        Ok(inside) => inside,
        Err(_) => path,
    };
    visible::line(&path.to_string_lossy(), SHOWN)
}

/// Returns the path as the caller wrote it, in dialects whose original does so.
fn asked(action: &FileAction, path: &Path, context: &CallContext) -> String {
    match (context.offered.style(), action) {
        (
            Style::Camel | Style::Pydantic,
            FileAction::Read(asked)
            | FileAction::Write(asked)
            | FileAction::Edit(asked)
            | FileAction::List(asked)
            | FileAction::Stat(asked),
        ) => visible::line(asked, SHOWN),
        _ => shown(path, context),
    }
}
