//! The text of changes to files.

use shieling::environment::Kind;
use shieling::files::{EditResponse, FileInfo, PatchResponse, PatchedFile, WriteResponse};
use shieling::units::ByteCount;

use super::action::{FileAction, SHOWN, asked, shown};
use crate::dialect::Style;
use crate::text::context::{CallContext, add};
use crate::visible;

/// Adds a remark about the directory. It applies to every style: a file that will be removed with the environment is
/// not just "created".
fn noted(mut text: String, note: Option<&String>) -> String {
    if let Some(note) = note {
        add(&mut text, &format!("[{}]", visible::line(note, SHOWN)));
    }
    text
}

pub(super) fn written(file: &WriteResponse, action: &FileAction, context: &CallContext) -> String {
    noted(written_words(file, action, context), file.note.as_ref())
}

fn written_words(file: &WriteResponse, action: &FileAction, context: &CallContext) -> String {
    let name = asked(action, &file.path, context);
    let mut text = match (context.offered.style(), file.created) {
        (Style::Claude, true) => return format!("File created successfully at: {name}"),
        (Style::Claude, false) => format!("The file {name} has been updated."),
        (Style::Pydantic, _) => return format!("File written: {name}"),
        (Style::Camel, _) => return format!("Content successfully written to '{name}'."),
        (Style::Default | Style::Codex, created) => {
            let done = if created { "created" } else { "replaced" };
            format!("{done} {name}: {}, hash {}", ByteCount::bytes(file.size), file.hash.0)
        }
    };
    if let Some(diff) = &file.diff {
        add(&mut text, diff);
    }
    text
}

pub(super) fn edited(file: &EditResponse, action: &FileAction, context: &CallContext) -> String {
    noted(edited_words(file, action, context), file.note.as_ref())
}

fn edited_words(file: &EditResponse, action: &FileAction, context: &CallContext) -> String {
    let name = asked(action, &file.path, context);
    let count = file.replacements;
    let occurrences = if count == 1 { "occurrence" } else { "occurrences" };
    let mut text = match context.offered.style() {
        Style::Pydantic => return format!("Replaced {count} {occurrences} in {name}."),
        Style::Claude if count == 1 => format!("The file {name} has been updated."),
        Style::Claude => format!("The file {name} has been updated. All {count} occurrences were replaced."),
        Style::Default | Style::Codex | Style::Camel => {
            format!("replaced {count} {occurrences} in {name}, hash {}", file.hash.0)
        }
    };
    add(&mut text, &file.diff);
    text
}

pub(super) fn patched(patched: &PatchResponse, context: &CallContext) -> String {
    noted(patched_words(patched, context), patched.note.as_ref())
}

fn patched_words(patched: &PatchResponse, context: &CallContext) -> String {
    let mut text = String::new();
    if context.offered.style() == Style::Codex {
        text.push_str("Success. Updated the following files:");
        for file in &patched.files {
            let mark = match file.change {
                "added" => 'A',
                "removed" => 'D',
                _ => 'M',
            };
            add(&mut text, &format!("{mark} {}", shown(&file.path, context)));
        }
        return text;
    }
    for file in &patched.files {
        add(&mut text, &patched_file(file, context));
    }
    if text.is_empty() {
        text.push_str("[the patch changes nothing]");
    }
    text
}

fn patched_file(file: &PatchedFile, context: &CallContext) -> String {
    let from = file
        .from
        .as_ref()
        .map_or(String::new(), |from| format!("{} to ", shown(from, context)));
    let lines = match (file.added, file.removed) {
        (0, 0) => String::new(),
        (added, 0) => format!(" (+{added})"),
        (0, removed) => format!(" (-{removed})"),
        (added, removed) => format!(" (+{added} -{removed})"),
    };
    let hash = file
        .hash
        .as_ref()
        .map_or(String::new(), |hash| format!(", hash {}", hash.0));
    format!("{} {from}{}{lines}{hash}", file.change, shown(&file.path, context))
}

pub(super) fn deleted(info: &FileInfo, context: &CallContext) -> String {
    let what = match info.kind {
        Kind::File => "the file",
        Kind::Directory => "the directory",
        Kind::Link => "the link",
        Kind::Fifo | Kind::Socket | Kind::Device => "",
    };
    let text = format!("removed {what} {}", shown(&info.path, context)).replace("  ", " ");
    noted(text, info.note.as_ref())
}

pub(super) fn moved(info: &FileInfo, from: &str, context: &CallContext) -> String {
    let from = visible::line(from, SHOWN);
    noted(
        format!("moved {from} to {}", shown(&info.path, context)),
        info.note.as_ref(),
    )
}
