//! A workspace, an environment over it, and short ways to ask for things.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::approval::Mode;
use shieling::environment::{Environment, FileError, Local, Restrictions, Sandbox, Shell};
use shieling::files::{DeleteAsk, EditAsk, FileAsk, FilesError, MoveAsk, PatchAsk, ReadAsk, Seen, WriteAsk};
use shieling::outcome::{Denial, Status};
use shieling::policy::Policy;
use shieling::{Builder, Shieling, restricted};
use shieling_testkit::Workspace;

/// Where files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum In {
    Local,
    Sandbox,
}

pub(crate) const BOTH: [In; 2] = [In::Local, In::Sandbox];

impl In {
    /// Over this workspace, with what the policy says asked about.
    pub(crate) fn builder(self, workspace: &Workspace, policy: Policy) -> Builder {
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let environment: Arc<dyn Environment> = match self {
            Self::Local => Arc::new(Local::new(shell).with_workspace(workspace.root())),
            Self::Sandbox => {
                let restrictions = Restrictions::new(workspace.root(), shell.program());
                Arc::new(Sandbox::new(restricted(restrictions, &policy), shell))
            }
        };
        Shieling::builder(environment, policy, workspace.root()).approval(Mode::OnAsk)
    }

    pub(crate) fn open(self, workspace: &Workspace) -> Shieling {
        self.builder(workspace, Policy::open()).build()
    }
}

pub(crate) fn write(path: impl Into<PathBuf>, content: &str) -> WriteAsk {
    WriteAsk {
        path: path.into(),
        content: content.into(),
        expect: None,
        create_only: false,
    }
}

pub(crate) fn edit(path: impl Into<PathBuf>, old: &str, new: &str) -> EditAsk {
    EditAsk {
        path: path.into(),
        old: old.to_owned(),
        new: new.to_owned(),
        replace_all: false,
        expect: None,
    }
}

pub(crate) fn delete(path: impl Into<PathBuf>, recursive: bool) -> DeleteAsk {
    DeleteAsk {
        path: path.into(),
        recursive,
    }
}

pub(crate) fn rename(from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> MoveAsk {
    MoveAsk {
        from: from.into(),
        to: to.into(),
        replace: false,
    }
}

/// A patch that makes one new file.
pub(crate) fn adding(path: &str) -> PatchAsk {
    PatchAsk {
        patch: format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n"),
        reverse: false,
    }
}

/// Every way to change `path`, which holds `old`.
pub(crate) fn changes(path: &str) -> Vec<FileAsk> {
    vec![
        FileAsk::Write(write(path, "new\n")),
        FileAsk::Edit(edit(path, "old", "new")),
        FileAsk::Patch(PatchAsk {
            patch: format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+new\n"),
            reverse: false,
        }),
        FileAsk::Delete(delete(path, false)),
        FileAsk::Move(rename(path, "elsewhere")),
    ]
}

/// The text of a file, as it is read.
pub(crate) async fn text(shieling: &Shieling, path: &str) -> Result<String, FilesError> {
    match shieling.read_file(ReadAsk::new(path)).await?.seen {
        Seen::Text { text, .. } => Ok(text),
        other @ (Seen::Image { .. } | Seen::Binary { .. }) => panic!("`{path}` is no text: {other:?}"),
    }
}

/// What stands in a file of the workspace.
pub(crate) fn content(workspace: &Workspace, path: &str) -> String {
    fs::read_to_string(workspace.path(path)).expect("it is there")
}

/// Why it was refused.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, FilesError>) -> (Status, Denial) {
    match result {
        Err(FilesError::Refused { status, denial }) => (status, denial),
        other => panic!("it should have been refused: {other:?}"),
    }
}

pub(crate) fn is_not_found<T>(result: &Result<T, FilesError>) -> bool {
    matches!(result, Err(FilesError::File(FileError::NotFound(_))))
}
