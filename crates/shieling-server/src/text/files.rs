//! The text of results and errors about files.
//!
//! Contents are returned unchanged, since edits have to match them. Names are escaped for display, and paths in the
//! workspace are relative to it.

mod action;
mod changes;
mod error;
mod lists;

use shieling::files::{FileContent, FileResponse, ReadResponse};
use shieling::outcome::{Denial, Status};
use shieling::units::ByteCount;

use super::context::{CallContext, add};
use crate::dialect::Style;
use crate::tools::Tool;
use crate::visible;

use action::{asked, counts_from};

pub(crate) use action::FileAction;
pub(crate) use error::{error, sentence};

/// Words a response.
pub(crate) fn answer(answer: &FileResponse, action: &FileAction, context: &CallContext) -> String {
    match answer {
        FileResponse::Read(file) => read(file, action, context),
        FileResponse::Write(file) => changes::written(file, action, context),
        FileResponse::Edit(file) => changes::edited(file, action, context),
        FileResponse::Patch(files) => changes::patched(files, context),
        FileResponse::List(list) => lists::listed(list, action, context),
        FileResponse::Glob(found) => lists::found(found, context),
        FileResponse::Grep(found) => lists::grepped(found, action, context),
        FileResponse::Info(info) => match action {
            FileAction::Delete(_) => changes::deleted(info, context),
            FileAction::Move(from, _) => changes::moved(info, from, context),
            _ => lists::info(info, action, context),
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
