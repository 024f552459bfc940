//! The text of errors about files, and what to do about them.

use std::borrow::Cow;
use std::path::Component;

use shieling::environment::FileError;
use shieling::files::{Candidate, FilesError};

use super::action::{FileAction, SHOWN, argument, counts_from, shown};
use crate::dialect::Style;
use crate::text::context::{CallContext, add};
use crate::tools::Tool;
use crate::visible;

/// Words what is wrong, what is there instead, and what to do.
pub(crate) fn error(error: &FilesError, action: &FileAction, context: &CallContext) -> String {
    let mut text = headline(error, action, context);
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
            if argument(context, action.tool(), "hash").is_some() {
                add(&mut text, &format!("its hash now: {}", now.0));
            }
        }
        _ => {}
    }
    if let Some(instead) = instead(error, action, context) {
        add(&mut text, &format!("instead  {instead}"));
    }
    text
}

/// Words what is wrong, in one line.
pub(crate) fn sentence(error: &FilesError, context: &CallContext) -> String {
    escape_message(&shieling::outcome::with_causes(error), context)
}

/// Escapes a message of the library into one line, with paths relative to the workspace.
fn escape_message(text: &str, context: &CallContext) -> String {
    let workspace = context.workspace.to_string_lossy();
    let text = match workspace.trim_end_matches('/') {
        "" => text.to_owned(),
        workspace => text
            .replace(&format!("`{workspace}/"), "`")
            .replace(&format!("`{workspace}`"), "`.`"),
    };
    visible::line(&text, 2_000)
}

fn headline(error: &FilesError, action: &FileAction, context: &CallContext) -> String {
    match (context.offered.style(), error) {
        (Style::Pydantic, _) => pydantic(error, action, context),
        (Style::Camel, _) => format!("Error: {}", sentence(error, context)),
        (_, FilesError::BeyondEnd { path, offset, lines }) => {
            let name = argument(context, Tool::ReadFile, "offset").unwrap_or("offset");
            let first = offset.saturating_add(counts_from(context));
            let s = if *lines == 1 { "" } else { "s" };
            format!(
                "there is nothing at `{name}` {first}: `{}` has {lines} line{s}",
                shown(path, context)
            )
        }
        (_, FilesError::Argument { argument: name, why }) => of_argument(name, why, action, context),
        (Style::Default | Style::Codex | Style::Claude, _) => sentence(error, context),
    }
}

/// Words what is wrong with an argument, by the dialect's name of it.
fn of_argument(name: &'static str, why: &str, action: &FileAction, context: &CallContext) -> String {
    let ours = if name == "globs" { "glob" } else { name };
    let name = argument(context, action.tool(), ours).unwrap_or(ours);
    format!(
        "`{name}`: {}",
        escape_message(&with_what_there_is(why, action, context), context)
    )
}

/// Removes advice to use an argument that the caller does not have.
fn with_what_there_is<'a>(why: &'a str, action: &FileAction, context: &CallContext) -> Cow<'a, str> {
    for (name, otherwise) in [
        ("literal", "; a backslash takes the sign after it as it stands"),
        ("multiline", ""),
    ] {
        if let Some((fact, _)) = why.split_once(&format!("; set `{name}`"))
            && argument(context, action.tool(), name).is_none()
        {
            return format!("{fact}{otherwise}").into();
        }
    }
    why.into()
}

/// Words an error as pydantic-ai does, where it has text for it.
fn pydantic(error: &FilesError, action: &FileAction, context: &CallContext) -> String {
    let path = match (action, error) {
        (_, FilesError::Argument { argument: name, why }) => {
            return format!("Error: {}", of_argument(name, why, action, context));
        }
        (FileAction::Read(path) | FileAction::Edit(path) | FileAction::Write(path), _) => visible::line(path, SHOWN),
        _ => return format!("Error: {}", sentence(error, context)),
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
        _ => format!("Error: {}", sentence(error, context)),
    }
}

fn candidate(candidate: &Candidate) -> String {
    let differs = candidate
        .differs
        .as_ref()
        .map_or(String::new(), |differs| format!(" ({})", visible::line(differs, 200)));
    let mut text = format!("most like it, from line {} on{differs}:", candidate.line);
    for line in candidate.text.lines() {
        // Unescaped, so that it can be copied, except for invisible characters.
        add(&mut text, &format!("    {}", visible::visible(line)));
    }
    text
}

/// Words what would work, with the caller's tools and arguments.
fn instead(error: &FilesError, action: &FileAction, context: &CallContext) -> Option<String> {
    let tool = |tool| context.tool(tool);
    let given = |name| argument(context, action.tool(), name);
    match error {
        FilesError::File(error) => of_file(error, action, context),
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
            let name = argument(context, Tool::ReadFile, "offset")?;
            let last = lines.saturating_sub(1).saturating_add(counts_from(context));
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

fn of_file(error: &FileError, action: &FileAction, context: &CallContext) -> Option<String> {
    let tool = |tool| context.tool(tool);
    let given = |name| argument(context, action.tool(), name);
    match error {
        FileError::NotFound(_) => match (tool(Tool::Glob), tool(Tool::Ls)) {
            (Some(glob), Some(ls)) => Some(format!("look for it with {glob} or {ls}")),
            (Some(one), None) | (None, Some(one)) => Some(format!("look for it with {one}")),
            (None, None) => None,
        },
        FileError::IsDirectory(_) if matches!(action, FileAction::Delete(_)) => {
            given("recursive").map(|name| format!("`{name}` removes it with all that is in it"))
        }
        FileError::IsDirectory(_) => tool(Tool::Ls).map(|ls| format!("list it with {ls}")),
        FileError::NotEmpty(_) => given("recursive").map(|name| format!("`{name}` removes it with all that is in it")),
        FileError::Exists(_) => match action {
            FileAction::Move(..) => given("replace").map(|name| format!("`{name}` replaces it")),
            FileAction::Write(_) => given("create_only").map(|name| format!("without `{name}` it is replaced")),
            _ => None,
        },
        FileError::Outside { path, .. } => {
            let workspace = visible::line(&context.workspace.to_string_lossy(), 300);
            // The file is there under its resolved path.
            let by_link =
                path.starts_with(&context.workspace) && !path.components().any(|part| part == Component::ParentDir);
            let why = if by_link { "a link leads out of it: " } else { "" };
            Some(format!("{why}name a path in the workspace, {workspace}"))
        }
        FileError::ReadOnly(path) if !path.starts_with(&context.workspace) => {
            let workspace = visible::line(&context.workspace.to_string_lossy(), 300);
            Some(format!(
                "write below {workspace}; a person can make another place of a sandbox writable with `--write`"
            ))
        }
        FileError::NotADirectory(_) if matches!(action, FileAction::List { .. } | FileAction::Find(_)) => {
            tool(Tool::ReadFile).map(|read| format!("give a directory, or read it with {read}"))
        }
        FileError::Changed(_) => Some("read it again, and try again".to_owned()),
        _ => None,
    }
}
