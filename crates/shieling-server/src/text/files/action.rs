//! What a call does with files, and how messages name it.

use std::path::Path;

use shieling::files::GrepMode;

use crate::dialect::{Conversion, Style};
use crate::text::context::CallContext;
use crate::tools::Tool;
use crate::visible;

/// The length of a path in a message.
pub(super) const SHOWN: usize = 1_000;

/// The request, as far as messages about it need it. Paths are as the caller wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read(String),
    Write(String),
    Edit(String),
    Patch,
    List {
        path: String,
        /// The name that the listing continues after.
        after: Option<String>,
    },
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
    pub(super) fn words(&self) -> String {
        let line = |path: &str| visible::line(path, SHOWN);
        match self {
            Self::Read(path) => format!("read {}", line(path)),
            Self::Write(path) => format!("write {}", line(path)),
            Self::Edit(path) => format!("edit {}", line(path)),
            Self::Patch => "apply the patch".to_owned(),
            Self::List { path, .. } => format!("list {}", line(path)),
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
            Self::List { .. } => Tool::Ls,
            Self::Find(_) => Tool::Glob,
            Self::Search { .. } => Tool::Grep,
            Self::Stat(_) => Tool::Stat,
            Self::Delete(_) => Tool::DeleteFile,
            Self::Move(..) => Tool::MoveFile,
        }
    }
}

/// Returns the number of the first line in the caller's count.
pub(super) fn counts_from(context: &CallContext) -> u64 {
    let offset = context.offered.argument(Tool::ReadFile, "offset");
    u64::from(offset.is_some_and(|argument| argument.how == Conversion::FromOne))
}

/// Returns the dialect's name of an argument of ours; `None` if the caller cannot pass it.
pub(super) fn argument(context: &CallContext, tool: Tool, name: &'static str) -> Option<&'static str> {
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
pub(super) fn shown(path: &Path, context: &CallContext) -> String {
    let path = match path.strip_prefix(&context.workspace) {
        Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
        Ok(inside) => inside,
        Err(_) => path,
    };
    visible::line(&path.to_string_lossy(), SHOWN)
}

/// Returns the path as the caller wrote it, in dialects whose original does so.
pub(super) fn asked(action: &FileAction, path: &Path, context: &CallContext) -> String {
    match (context.offered.style(), action) {
        (
            Style::Camel | Style::Pydantic,
            FileAction::Read(asked)
            | FileAction::Write(asked)
            | FileAction::Edit(asked)
            | FileAction::List { path: asked, .. }
            | FileAction::Stat(asked),
        ) => visible::line(asked, SHOWN),
        _ => shown(path, context),
    }
}
