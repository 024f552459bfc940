//! What was changed.

use shieling::environment::Kind;
use shieling::files::{Edited, FileInfo, Patched, PatchedFile, Written};
use shieling::units::ByteCount;

use super::{Deed, asked, shown};
use crate::dialect::Voice;
use crate::text::{About, add};
use crate::visible;

/// With what there is to know of where it is, in every voice: a file that will be gone is not "created".
fn noted(mut text: String, note: Option<&String>) -> String {
    if let Some(note) = note {
        add(&mut text, &format!("[{}]", visible::line(note, super::SHOWN)));
    }
    text
}

pub(super) fn written(file: &Written, deed: &Deed, about: &About) -> String {
    noted(written_words(file, deed, about), file.note.as_ref())
}

fn written_words(file: &Written, deed: &Deed, about: &About) -> String {
    let name = asked(deed, &file.path, about);
    let mut text = match (about.offered.voice(), file.created) {
        (Voice::Claude, true) => return format!("File created successfully at: {name}"),
        (Voice::Claude, false) => format!("The file {name} has been updated."),
        (Voice::Pydantic, _) => return format!("File written: {name}"),
        (Voice::Camel, _) => return format!("Content successfully written to '{name}'."),
        (Voice::Default | Voice::Codex, created) => {
            let done = if created { "created" } else { "replaced" };
            format!("{done} {name}: {}, hash {}", ByteCount::bytes(file.size), file.hash.0)
        }
    };
    if let Some(diff) = &file.diff {
        add(&mut text, diff);
    }
    text
}

pub(super) fn edited(file: &Edited, deed: &Deed, about: &About) -> String {
    noted(edited_words(file, deed, about), file.note.as_ref())
}

fn edited_words(file: &Edited, deed: &Deed, about: &About) -> String {
    let name = asked(deed, &file.path, about);
    let count = file.replacements;
    let occurrences = if count == 1 { "occurrence" } else { "occurrences" };
    let mut text = match about.offered.voice() {
        Voice::Pydantic => return format!("Replaced {count} {occurrences} in {name}."),
        Voice::Claude if count == 1 => format!("The file {name} has been updated."),
        Voice::Claude => format!("The file {name} has been updated. All {count} occurrences were replaced."),
        Voice::Default | Voice::Codex | Voice::Camel => {
            format!("replaced {count} {occurrences} in {name}, hash {}", file.hash.0)
        }
    };
    add(&mut text, &file.diff);
    text
}

pub(super) fn patched(patched: &Patched, about: &About) -> String {
    noted(patched_words(patched, about), patched.note.as_ref())
}

fn patched_words(patched: &Patched, about: &About) -> String {
    let mut text = String::new();
    if about.offered.voice() == Voice::Codex {
        text.push_str("Success. Updated the following files:");
        for file in &patched.files {
            let mark = match file.change {
                "added" => 'A',
                "removed" => 'D',
                _ => 'M',
            };
            add(&mut text, &format!("{mark} {}", shown(&file.path, about)));
        }
        return text;
    }
    for file in &patched.files {
        add(&mut text, &one(file, about));
    }
    if text.is_empty() {
        text.push_str("[the patch changes nothing]");
    }
    text
}

fn one(file: &PatchedFile, about: &About) -> String {
    let from = file
        .from
        .as_ref()
        .map_or(String::new(), |from| format!("{} to ", shown(from, about)));
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
    format!("{} {from}{}{lines}{hash}", file.change, shown(&file.path, about))
}

pub(super) fn deleted(info: &FileInfo, about: &About) -> String {
    let what = match info.kind {
        Kind::File => "the file",
        Kind::Directory => "the directory",
        Kind::Link => "the link",
        Kind::Fifo | Kind::Socket | Kind::Device => "",
    };
    format!("removed {what} {}", shown(&info.path, about)).replace("  ", " ")
}

pub(super) fn moved(info: &FileInfo, from: &str, about: &About) -> String {
    let from = visible::line(from, super::SHOWN);
    format!("moved {from} to {}", shown(&info.path, about))
}
