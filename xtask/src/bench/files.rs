//! What the file tools cost: a search of many files, lines out of a large one, an edit of one.
//!
//! Each has the program that people would use as its floor, and goes through the library's front door:
//! judged and recorded nowhere, in `local`.

mod edit;
mod grep;
mod read;

use std::path::Path;

use super::measure::not_measured;
use super::scratch::Scratch;
use crate::subject::{Caller, Library};

/// The whole section.
pub(crate) fn run() -> anyhow::Result<String> {
    let scratch = Scratch::new("files")?;
    let caller = Caller::here(scratch.path())?;
    let library = Library::new(&caller)?;
    let mut text = String::new();
    type Section = fn(&Library, &Path) -> anyhow::Result<String>;
    let sections: [(&str, Section); 3] = [
        ("A search of 100,000 files", grep::run),
        ("100 lines out of 1 GB", read::run),
        ("An edit of 50 MB", edit::run),
    ];
    for (title, section) in sections {
        let section = section(&library, scratch.path()).unwrap_or_else(not_measured);
        text.push_str(&format!("### {title}\n\n{}\n\n", section.trim_end()));
    }
    Ok(text)
}
