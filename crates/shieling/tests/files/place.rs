//! A workspace, an environment over it, and short ways to ask for things.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::approval::Mode;
use shieling::environment::{Environment, FileError, Local, Restrictions, Sandbox, Shell};
use shieling::files::{
    DeleteRequest, EditRequest, FileContent, FileRequest, FilesError, MoveRequest, PatchRequest, ReadRequest,
    WriteRequest,
};
use shieling::outcome::{Denial, Status};
use shieling::policy::Policy;
use shieling::{Builder, Shieling};
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
                Arc::new(Sandbox::new(restrictions, shell))
            }
        };
        Shieling::builder(environment, policy, workspace.root()).approval(Mode::OnAsk)
    }

    pub(crate) fn open(self, workspace: &Workspace) -> Shieling {
        self.builder(workspace, Policy::open())
            .build()
            .expect("it serves no other policy")
    }
}

pub(crate) fn delete(path: impl Into<PathBuf>, recursive: bool) -> DeleteRequest {
    DeleteRequest {
        path: path.into(),
        recursive,
    }
}

/// A patch that makes one new file.
pub(crate) fn adding(path: &str) -> PatchRequest {
    PatchRequest::new(format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n"))
}

/// Every way to change `path`, which holds `old`.
pub(crate) fn changes(path: &str) -> Vec<FileRequest> {
    vec![
        FileRequest::Write(WriteRequest::new(path, "new\n")),
        FileRequest::Edit(EditRequest::new(path, "old", "new")),
        FileRequest::Patch(PatchRequest::new(format!(
            "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+new\n"
        ))),
        FileRequest::Delete(delete(path, false)),
        FileRequest::Move(MoveRequest::new(path, "elsewhere")),
    ]
}

/// The text of a file, as it is read.
pub(crate) async fn text(shieling: &Shieling, path: &str) -> Result<String, FilesError> {
    match shieling.read_file(ReadRequest::new(path)).await?.content {
        FileContent::Text { text, .. } => Ok(text),
        other @ (FileContent::Image { .. } | FileContent::Whole { .. } | FileContent::Binary { .. }) => {
            panic!("`{path}` is no text: {other:?}")
        }
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
