//! The text of listings and search results.

use std::path::Path;

use shieling::environment::Kind;
use shieling::files::{FileInfo, GlobResponse, GrepMode, GrepResponse, Hit, ListResponse};
use shieling::units::ByteCount;

use super::action::{FileAction, SHOWN, argument, shown};
use crate::dialect::Style;
use crate::text::context::{CallContext, add};
use crate::tools::Tool;
use crate::visible;

pub(super) fn listed(list: &ListResponse, action: &FileAction, context: &CallContext) -> String {
    let mut text = String::new();
    if context.offered.style() == Style::Codex {
        let path = visible::line(&list.path.to_string_lossy(), SHOWN);
        text.push_str(&format!("Absolute path: {path}"));
    }
    if list.entries.is_empty() {
        let nothing = match (context.offered.style(), action) {
            (_, FileAction::List { after: Some(after), .. }) => {
                let name = argument(context, Tool::Ls, "after").unwrap_or("after");
                &format!(
                    "[there are no entries after `{name}` {}]",
                    serde_json::Value::from(after.as_str())
                )
            }
            (Style::Pydantic, _) => "Empty directory.",
            (Style::Default | Style::Codex | Style::Claude | Style::Camel, _) => "[the directory is empty]",
        };
        add(&mut text, nothing);
    }
    for entry in &list.entries {
        add(&mut text, &self::entry(entry));
    }
    more(&mut text, list.next.as_deref(), Tool::Ls, "after", context);
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

pub(super) fn found(found: &GlobResponse, context: &CallContext) -> String {
    let mut text = String::new();
    if found.paths.is_empty() {
        text.push_str(match context.offered.style() {
            Style::Pydantic => "No files found.",
            Style::Claude => "No files found",
            Style::Default | Style::Codex | Style::Camel => "[no files found]",
        });
    }
    for path in &found.paths {
        add(&mut text, &shown(&found.root.join(path), context));
    }
    more(&mut text, found.next.as_deref(), Tool::Glob, "after", context);
    unread(&mut text, found.unreadable);
    text
}

pub(super) fn grepped(found: &GrepResponse, action: &FileAction, context: &CallContext) -> String {
    let (mode, numbered) = match action {
        FileAction::Search { mode, numbered, .. } => (*mode, *numbered),
        _ => (GrepMode::Content, true),
    };
    let mut text = match mode {
        _ if found.hits.is_empty() => nothing(found, mode, context),
        GrepMode::Content => lines(found, numbered, context),
        GrepMode::Files => files(found, context),
        GrepMode::Count => counts(found, context),
    };
    more(&mut text, found.next.as_deref(), Tool::Grep, "cursor", context);
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

fn nothing(found: &GrepResponse, mode: GrepMode, context: &CallContext) -> String {
    match context.offered.style() {
        Style::Pydantic => "No matches found.".to_owned(),
        Style::Claude if mode == GrepMode::Files => "No files found".to_owned(),
        Style::Claude => "No matches found".to_owned(),
        Style::Default | Style::Codex | Style::Camel => {
            format!("[no matches in {}]", count(found.searched, "file", "files"))
        }
    }
}

/// Formats `path:12:a matching line`, `path-13-a context line`, and `--` between groups.
fn lines(found: &GrepResponse, numbered: bool, context: &CallContext) -> String {
    let mut text = String::new();
    let around = found.hits.iter().any(|hit| !hit.matched);
    let mut before: Option<(&Path, u64)> = None;
    for hit in &found.hits {
        let path = hit_path(found, hit, context);
        let first = hit.line.unwrap_or(0);
        let mark = if hit.matched { ':' } else { '-' };
        let follows = before == Some((&hit.path, first));
        if around && before.is_some() && !follows {
            add(&mut text, "--");
        }
        // The text of a multi-line match contains all its lines.
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

/// Returns the path of a hit in a form that other tools accept.
fn hit_path(found: &GrepResponse, hit: &Hit, context: &CallContext) -> String {
    shown(&found.root.join(&hit.path), context)
}

fn files(found: &GrepResponse, context: &CallContext) -> String {
    let mut text = match context.offered.style() {
        Style::Claude => format!("Found {}", count(found.hits.len() as u64, "file", "files")),
        Style::Default | Style::Codex | Style::Camel | Style::Pydantic => String::new(),
    };
    for hit in &found.hits {
        add(&mut text, &hit_path(found, hit, context));
    }
    text
}

fn counts(found: &GrepResponse, context: &CallContext) -> String {
    let mut text = String::new();
    let mut all = 0_u64;
    for hit in &found.hits {
        let lines = hit.count.unwrap_or(0);
        all = all.saturating_add(lines);
        add(&mut text, &format!("{}:{lines}", hit_path(found, hit, context)));
    }
    if context.offered.style() == Style::Claude {
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

pub(super) fn info(info: &FileInfo, action: &FileAction, context: &CallContext) -> String {
    let mut name = shown(&info.path, context);
    // The rest describes what the link leads to.
    if let (FileAction::Stat(asked), Some(target), true) = (action, &info.target, info.kind != Kind::Link) {
        let target = line(target);
        let at = if target == name {
            String::new()
        } else {
            format!(" ({name})")
        };
        name = format!("{} -> {target}{at}", visible::line(asked, SHOWN));
    }
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

/// Words that there is more, and how to get it.
fn more(text: &mut String, next: Option<&str>, tool: Tool, name: &'static str, context: &CallContext) {
    let Some(next) = next else { return };
    let shown = serde_json::Value::from(next);
    let line = match argument(context, tool, name) {
        Some(name) => format!("[there is more: go on with `{name}` {shown}]"),
        None => match argument(context, tool, "limit") {
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

/// Formats `1 file`, `2 files`.
fn count(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}
