//! What was listed, found and searched.

use std::path::Path;

use shieling::environment::Kind;
use shieling::files::{FileInfo, Found, GrepMode, Grepped, Hit, Listed};
use shieling::units::ByteCount;

use super::{Deed, SHOWN, argument, shown};
use crate::dialect::Voice;
use crate::text::{About, add};
use crate::tools::Tool;
use crate::visible;

pub(super) fn listed(list: &Listed, about: &About) -> String {
    let mut text = String::new();
    if about.offered.voice() == Voice::Codex {
        let path = visible::line(&list.path.to_string_lossy(), SHOWN);
        text.push_str(&format!("Absolute path: {path}"));
    }
    if list.entries.is_empty() {
        let nothing = match about.offered.voice() {
            Voice::Pydantic => "Empty directory.",
            Voice::Default | Voice::Codex | Voice::Claude | Voice::Camel => "[the directory is empty]",
        };
        add(&mut text, nothing);
    }
    for entry in &list.entries {
        add(&mut text, &self::entry(entry));
    }
    more(&mut text, list.next.as_deref(), Tool::Ls, "after", about);
    text
}

fn entry(entry: &FileInfo) -> String {
    let name = visible::line(&entry.path.to_string_lossy(), SHOWN);
    match entry.kind {
        Kind::Directory => format!("{name}/"),
        Kind::File => {
            let size = entry
                .size
                .map_or(String::new(), |size| format!("  {}", ByteCount::bytes(size)));
            format!("{name}{size}")
        }
        Kind::Link => format!("{name}{}", leads(entry)),
        Kind::Fifo => format!("{name}  (a named pipe)"),
        Kind::Socket => format!("{name}  (a socket)"),
        Kind::Device => format!("{name}  (a device)"),
    }
}

fn leads(link: &FileInfo) -> String {
    let target = link
        .target
        .as_ref()
        .map_or_else(|| "?".to_owned(), |target| line(target));
    let nowhere = if link.dangling { " (leads nowhere here)" } else { "" };
    format!(" -> {target}{nowhere}")
}

fn line(path: &Path) -> String {
    visible::line(&path.to_string_lossy(), SHOWN)
}

pub(super) fn found(found: &Found, about: &About) -> String {
    let mut text = String::new();
    if found.paths.is_empty() {
        text.push_str(match about.offered.voice() {
            Voice::Pydantic => "No files found.",
            Voice::Claude => "No files found",
            Voice::Default | Voice::Codex | Voice::Camel => "[no files found]",
        });
    }
    for path in &found.paths {
        add(&mut text, &shown(&found.root.join(path), about));
    }
    more(&mut text, found.next.as_deref(), Tool::Glob, "after", about);
    unread(&mut text, found.unreadable);
    text
}

pub(super) fn grepped(found: &Grepped, deed: &Deed, about: &About) -> String {
    let (mode, numbered) = match deed {
        Deed::Search { mode, numbered, .. } => (*mode, *numbered),
        _ => (GrepMode::Content, true),
    };
    let mut text = match mode {
        _ if found.hits.is_empty() => nothing(found, mode, about),
        GrepMode::Content => lines(found, numbered, about),
        GrepMode::Files => files(found, about),
        GrepMode::Count => counts(found, about),
    };
    more(&mut text, found.next.as_deref(), Tool::Grep, "cursor", about);
    if found.binary > 0 && found.hits.is_empty() {
        add(
            &mut text,
            &format!(
                "[{} left out, being binary]",
                count(found.binary, "file was", "files were")
            ),
        );
    }
    unread(&mut text, found.unreadable);
    text
}

fn nothing(found: &Grepped, mode: GrepMode, about: &About) -> String {
    match about.offered.voice() {
        Voice::Pydantic => "No matches found.".to_owned(),
        Voice::Claude if mode == GrepMode::Files => "No files found".to_owned(),
        Voice::Claude => "No matches found".to_owned(),
        Voice::Default | Voice::Codex | Voice::Camel => {
            format!("[no matches in {}]", count(found.searched, "file", "files"))
        }
    }
}

/// `path:12:a line that matches`, `path-13-a line beside it`, and `--` where lines are left out.
fn lines(found: &Grepped, numbered: bool, about: &About) -> String {
    let mut text = String::new();
    let around = found.hits.iter().any(|hit| !hit.matched);
    let mut before: Option<(&Path, u64)> = None;
    for hit in &found.hits {
        let path = place(found, hit, about);
        let first = hit.line.unwrap_or(0);
        let mark = if hit.matched { ':' } else { '-' };
        let follows = before == Some((&hit.path, first));
        if around && before.is_some() && !follows {
            add(&mut text, "--");
        }
        // The text of a match over several lines has them all.
        let shown = hit.text.as_deref().unwrap_or_default();
        let mut number = first;
        for one in shown.split('\n') {
            let one = visible::visible(one.trim_end_matches('\r'));
            let prefix = if numbered && hit.line.is_some() {
                format!("{path}{mark}{number}{mark}")
            } else {
                format!("{path}{mark}")
            };
            add(&mut text, &format!("{prefix}{one}"));
            number = number.saturating_add(1);
        }
        before = Some((&hit.path, number));
    }
    text
}

/// Where a hit is, as a path that can be asked for.
fn place(found: &Grepped, hit: &Hit, about: &About) -> String {
    shown(&found.root.join(&hit.path), about)
}

fn files(found: &Grepped, about: &About) -> String {
    let mut text = match about.offered.voice() {
        Voice::Claude => format!("Found {}", count(found.hits.len() as u64, "file", "files")),
        Voice::Default | Voice::Codex | Voice::Camel | Voice::Pydantic => String::new(),
    };
    for hit in &found.hits {
        add(&mut text, &place(found, hit, about));
    }
    text
}

fn counts(found: &Grepped, about: &About) -> String {
    let mut text = String::new();
    let mut all = 0_u64;
    for hit in &found.hits {
        let lines = hit.count.unwrap_or(0);
        all = all.saturating_add(lines);
        add(&mut text, &format!("{}:{lines}", place(found, hit, about)));
    }
    if about.offered.voice() == Voice::Claude {
        let files = count(found.hits.len() as u64, "file", "files");
        add(
            &mut text,
            &format!(
                "\nFound {} across {files}.",
                count(all, "matching line", "matching lines")
            ),
        );
    }
    text
}

pub(super) fn info(info: &FileInfo, about: &About) -> String {
    let name = shown(&info.path, about);
    let kind = match info.kind {
        Kind::File => "file".to_owned(),
        Kind::Directory => "directory".to_owned(),
        Kind::Link => format!("link{}", leads(info)),
        Kind::Fifo => "named pipe".to_owned(),
        Kind::Socket => "socket".to_owned(),
        Kind::Device => "device".to_owned(),
    };
    let mut parts = vec![format!("{name}: {kind}")];
    if info.kind == Kind::File {
        parts.extend(info.size.map(|size| ByteCount::bytes(size).to_string()));
    }
    parts.push(format!("mode {}", info.mode));
    parts.push(format!("changed {}", info.modified));
    parts.extend(info.hash.as_ref().map(|hash| format!("hash {}", hash.0)));
    parts.join(", ")
}

/// Says that there is more, and how to get at it.
fn more(text: &mut String, next: Option<&str>, tool: Tool, name: &'static str, about: &About) {
    let Some(next) = next else { return };
    let shown = serde_json::Value::from(next);
    let line = match argument(about, tool, name) {
        Some(name) => format!("[there is more: go on with `{name}` {shown}]"),
        None => match argument(about, tool, "limit") {
            Some(limit) => format!("[there is more: narrow it, or ask with a larger `{limit}`]"),
            None => "[there is more: narrow it]".to_owned(),
        },
    };
    add(text, &line);
}

fn unread(text: &mut String, unreadable: u64) {
    if unreadable > 0 {
        let what = count(unreadable, "file or directory", "files or directories");
        add(text, &format!("[{what} could not be looked at]"));
    }
}

/// `1 file`, `2 files`.
fn count(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}
