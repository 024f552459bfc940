//! Why something was not done with files, and what can be done about it.

use std::borrow::Cow;
use std::path::Component;

use shieling::environment::FileError;
use shieling::files::{Candidate, FilesError};

use super::{Deed, argument, counts_from};
use crate::dialect::Voice;
use crate::text::{About, add};
use crate::tools::Tool;
use crate::visible;

/// What is wrong, what is there instead, and what now.
pub(crate) fn error(error: &FilesError, deed: &Deed, about: &About) -> String {
    let mut text = headline(error, deed, about);
    match error {
        FilesError::NoMatch { nearest, .. } | FilesError::Misfit { nearest, .. } => {
            for candidate in nearest {
                add(&mut text, &self::candidate(candidate));
            }
        }
        FilesError::Ambiguous { count, lines, .. } => {
            let mut shown: Vec<String> = lines.iter().map(u64::to_string).collect();
            shown.dedup();
            let s = if shown.len() == 1 { "" } else { "s" };
            let more = if *count > lines.len() as u64 { ", …" } else { "" };
            add(&mut text, &format!("it begins at line{s} {}{more}", shown.join(", ")));
        }
        FilesError::Stale { now, diff, .. } => {
            if let Some(diff) = diff {
                add(&mut text, &format!("what has changed:\n{}", diff.trim_end()));
            }
            if argument(about, deed.tool(), "hash").is_some() {
                add(&mut text, &format!("its hash now: {}", now.0));
            }
        }
        _ => {}
    }
    if let Some(instead) = instead(error, deed, about) {
        add(&mut text, &format!("instead  {instead}"));
    }
    text
}

/// What is wrong, in one line.
pub(crate) fn sentence(error: &FilesError, about: &About) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    told(&text, about)
}

/// On one line, with paths from the workspace: the library tells whole ones.
fn told(text: &str, about: &About) -> String {
    let workspace = about.workspace.to_string_lossy();
    let text = match workspace.trim_end_matches('/') {
        "" => text.to_owned(),
        workspace => text
            .replace(&format!("`{workspace}/"), "`")
            .replace(&format!("`{workspace}`"), "`.`"),
    };
    visible::line(&text, 2_000)
}

fn headline(error: &FilesError, deed: &Deed, about: &About) -> String {
    match (about.offered.voice(), error) {
        (Voice::Pydantic, _) => pydantic(error, deed, about),
        (Voice::Camel, _) => format!("Error: {}", sentence(error, about)),
        (_, FilesError::BeyondEnd { path, offset, lines }) => {
            let name = argument(about, Tool::ReadFile, "offset").unwrap_or("offset");
            let first = offset.saturating_add(counts_from(about));
            let s = if *lines == 1 { "" } else { "s" };
            format!(
                "there is nothing at `{name}` {first}: `{}` has {lines} line{s}",
                super::shown(path, about)
            )
        }
        (_, FilesError::Argument { argument: name, why }) => of_argument(name, why, deed, about),
        (Voice::Default | Voice::Codex | Voice::Claude, _) => sentence(error, about),
    }
}

/// What is wrong with an argument, by the name that the caller knows it by.
fn of_argument(name: &'static str, why: &str, deed: &Deed, about: &About) -> String {
    let ours = if name == "globs" { "glob" } else { name };
    let name = argument(about, deed.tool(), ours).unwrap_or(ours);
    format!("`{name}`: {}", told(&with_what_there_is(why, deed, about), about))
}

/// Why an argument is wrong, without advice to use another one that the caller does not have.
fn with_what_there_is<'a>(why: &'a str, deed: &Deed, about: &About) -> Cow<'a, str> {
    for (name, otherwise) in [
        ("literal", "; a backslash takes the sign after it as it stands"),
        ("multiline", ""),
    ] {
        if let Some((fact, _)) = why.split_once(&format!("; set `{name}`"))
            && argument(about, deed.tool(), name).is_none()
        {
            return format!("{fact}{otherwise}").into();
        }
    }
    why.into()
}

/// In pydantic-ai's words, where it has some.
fn pydantic(error: &FilesError, deed: &Deed, about: &About) -> String {
    let path = match (deed, error) {
        (_, FilesError::Argument { argument: name, why }) => {
            return format!("Error: {}", of_argument(name, why, deed, about));
        }
        (Deed::Read(path) | Deed::Edit(path) | Deed::Write(path), _) => visible::line(path, super::SHOWN),
        _ => return format!("Error: {}", sentence(error, about)),
    };
    match error {
        FilesError::NoMatch { .. } => format!("old_string not found in {path}."),
        FilesError::Ambiguous { count, .. } => {
            format!("old_string found {count} times in {path}. Use replace_all=True or provide more context.")
        }
        FilesError::BeyondEnd { offset, lines, .. } => {
            format!("Error: Offset {offset} exceeds file length ({lines} lines).")
        }
        FilesError::File(FileError::NotFound(_)) => format!("Error: File not found: {path}"),
        FilesError::File(FileError::IsDirectory(_)) => format!("Error: '{path}' is a directory, not a file."),
        _ => format!("Error: {}", sentence(error, about)),
    }
}

fn candidate(candidate: &Candidate) -> String {
    let differs = candidate
        .differs
        .as_ref()
        .map_or(String::new(), |differs| format!(" ({})", visible::line(differs, 200)));
    let mut text = format!("most like it, from line {} on{differs}:", candidate.line);
    for line in candidate.text.lines() {
        // As it is, so that it can be copied; but for what would not be seen.
        add(&mut text, &format!("    {}", visible::visible(line)));
    }
    text
}

/// What would work, with the tools and arguments that the caller has.
fn instead(error: &FilesError, deed: &Deed, about: &About) -> Option<String> {
    let tool = |tool| about.tool(tool);
    let given = |name| argument(about, deed.tool(), name);
    match error {
        FilesError::File(error) => of_file(error, deed, about),
        FilesError::NoMatch { .. } => {
            let read = tool(Tool::ReadFile)?;
            Some(format!(
                "give the text exactly as {read} shows it, without the numbers of its lines"
            ))
        }
        FilesError::Ambiguous { .. } => {
            let all = given("replace_all").map_or(String::new(), |name| format!(", or set `{name}`"));
            Some(format!("add lines around it until it is there once{all}"))
        }
        FilesError::Stale { .. } => Some("look at what has changed, and do it again on top of that".to_owned()),
        FilesError::BeyondEnd { lines, .. } => {
            let name = argument(about, Tool::ReadFile, "offset")?;
            let last = lines.saturating_sub(1).saturating_add(counts_from(about));
            Some(format!("the last line is at `{name}` {last}"))
        }
        FilesError::Misfit { .. } => {
            Some("make the patch again from the file as it is now; nothing of it was applied".to_owned())
        }
        FilesError::BadPatch { .. } => {
            Some("write that line as the format has it; nothing of it was applied".to_owned())
        }
        FilesError::NotText { .. } => {
            let shell = tool(Tool::Shell)?;
            Some(format!("use a program for such files, with {shell}"))
        }
        _ => None,
    }
}

fn of_file(error: &FileError, deed: &Deed, about: &About) -> Option<String> {
    let tool = |tool| about.tool(tool);
    let given = |name| argument(about, deed.tool(), name);
    match error {
        FileError::NotFound(_) => match (tool(Tool::Glob), tool(Tool::Ls)) {
            (Some(glob), Some(ls)) => Some(format!("look for it with {glob} or {ls}")),
            (Some(one), None) | (None, Some(one)) => Some(format!("look for it with {one}")),
            (None, None) => None,
        },
        FileError::IsDirectory(_) if matches!(deed, Deed::Delete(_)) => {
            given("recursive").map(|name| format!("`{name}` removes it with all that is in it"))
        }
        FileError::IsDirectory(_) => tool(Tool::Ls).map(|ls| format!("list it with {ls}")),
        FileError::NotEmpty(_) => given("recursive").map(|name| format!("`{name}` removes it with all that is in it")),
        FileError::Exists(_) => match deed {
            Deed::Move(..) => given("replace").map(|name| format!("`{name}` replaces it")),
            Deed::Write(_) => given("create_only").map(|name| format!("without `{name}` it is replaced")),
            _ => None,
        },
        FileError::Outside { path, .. } => {
            let workspace = visible::line(&about.workspace.to_string_lossy(), 300);
            // By its name it is in there.
            let by_link =
                path.starts_with(&about.workspace) && !path.components().any(|part| part == Component::ParentDir);
            let why = if by_link { "a link leads out of it: " } else { "" };
            Some(format!("{why}name a path in the workspace, {workspace}"))
        }
        FileError::NotADirectory(_) if matches!(deed, Deed::List(_) | Deed::Find(_)) => {
            tool(Tool::ReadFile).map(|read| format!("give a directory, or read it with {read}"))
        }
        FileError::Changed(_) => Some("read it again, and try again".to_owned()),
        _ => None,
    }
}
