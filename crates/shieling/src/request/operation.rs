//! The kinds of file operations.

use serde::Serialize;

/// The kind of a file operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Read a file.
    ReadFile,
    /// Write a whole file.
    WriteFile,
    /// Replace text in a file.
    EditFile,
    /// Change several files at once.
    ApplyPatch,
    /// List a directory.
    ListFiles,
    /// Find files by name.
    Glob,
    /// Search the contents of files.
    Grep,
    /// Query metadata.
    Stat,
    /// Remove a file or a directory.
    DeleteFile,
    /// Move a file or a directory.
    MoveFile,
    /// Move staged changes into the workspace.
    CommitChanges,
    /// Move something into the workspace that a command made and that was held back.
    AcceptHeldBack,
}

impl Operation {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::ApplyPatch => "apply_patch",
            Self::ListFiles => "list_files",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Stat => "stat",
            Self::DeleteFile => "delete_file",
            Self::MoveFile => "move_file",
            Self::CommitChanges => "commit_changes",
            Self::AcceptHeldBack => "accept_held_back",
        }
    }

    /// Returns whether it changes files.
    pub fn changes(self) -> bool {
        match self {
            Self::WriteFile
            | Self::EditFile
            | Self::ApplyPatch
            | Self::DeleteFile
            | Self::MoveFile
            | Self::CommitChanges
            | Self::AcceptHeldBack => true,
            Self::ReadFile | Self::ListFiles | Self::Glob | Self::Grep | Self::Stat => false,
        }
    }
}
