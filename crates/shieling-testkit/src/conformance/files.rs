//! File operations of cases.

use std::path::Path;

use shieling::files::{
    DeleteRequest, EditRequest, EditResponse, FileContent, FileInfo, FilesError, GlobRequest, GlobResponse,
    GrepRequest, GrepResponse, ListRequest, ListResponse, MoveRequest, PatchRequest, PatchResponse, ReadRequest,
    ReadResponse, StatRequest, WriteRequest, WriteResponse,
};

use super::CheckFailure;
use super::context::Context;

impl Context {
    pub(crate) async fn read_as(&self, ask: ReadRequest) -> Result<ReadResponse, FilesError> {
        self.shieling.read_file(ask).await
    }

    pub(crate) async fn read(&self, path: impl AsRef<Path>) -> Result<ReadResponse, FilesError> {
        self.read_as(ReadRequest::new(path.as_ref())).await
    }

    /// Returns the text of a file.
    pub(crate) async fn text(&self, path: impl AsRef<Path>) -> Result<String, CheckFailure> {
        text_of(self.read(path).await?)
    }

    pub(crate) async fn write_as(&self, ask: WriteRequest) -> Result<WriteResponse, FilesError> {
        self.shieling.write_file(ask).await
    }

    pub(crate) async fn write(
        &self,
        path: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
    ) -> Result<WriteResponse, FilesError> {
        self.write_as(WriteRequest::new(path.as_ref(), content.as_ref())).await
    }

    pub(crate) async fn edit_as(&self, ask: EditRequest) -> Result<EditResponse, FilesError> {
        self.shieling.edit_file(ask).await
    }

    pub(crate) async fn edit(&self, path: &str, old: &str, new: &str) -> Result<EditResponse, FilesError> {
        self.edit_as(EditRequest::new(path, old, new)).await
    }

    pub(crate) async fn patch_as(&self, patch: &str, reverse: bool) -> Result<PatchResponse, FilesError> {
        let patch = patch.to_owned();
        self.shieling.apply_patch(PatchRequest { patch, reverse }).await
    }

    pub(crate) async fn patch(&self, patch: &str) -> Result<PatchResponse, FilesError> {
        self.patch_as(patch, false).await
    }

    pub(crate) async fn list_as(&self, ask: ListRequest) -> Result<ListResponse, FilesError> {
        self.shieling.list_files(ask).await
    }

    pub(crate) async fn list(&self, path: impl AsRef<Path>) -> Result<ListResponse, FilesError> {
        self.list_as(ListRequest::new(path.as_ref())).await
    }

    /// Returns the names in a directory, except for dotfiles: a sandbox may mask those from which tools would read
    /// settings.
    pub(crate) async fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>, CheckFailure> {
        let listed = self.list(path).await?;
        Ok(listed
            .entries
            .iter()
            .map(|entry| shown(&entry.path))
            .filter(|name| !name.starts_with('.'))
            .collect())
    }

    pub(crate) async fn glob_as(&self, ask: GlobRequest) -> Result<GlobResponse, FilesError> {
        self.shieling.glob(ask).await
    }

    /// Returns the paths that match.
    pub(crate) async fn glob(&self, pattern: &str) -> Result<Vec<String>, CheckFailure> {
        let found = self.glob_as(GlobRequest::new(pattern)).await?;
        Ok(found.paths.iter().map(|path| shown(path)).collect())
    }

    pub(crate) async fn grep_as(&self, ask: GrepRequest) -> Result<GrepResponse, FilesError> {
        self.shieling.grep(ask).await
    }

    /// Returns the matching lines as `path:line:text`.
    pub(crate) async fn grep(&self, pattern: &str) -> Result<Vec<String>, CheckFailure> {
        Ok(lines_of(&self.grep_as(GrepRequest::new(pattern)).await?))
    }

    pub(crate) async fn stat(&self, path: impl AsRef<Path>) -> Result<FileInfo, FilesError> {
        self.shieling.stat(StatRequest::new(path.as_ref())).await
    }

    pub(crate) async fn delete(&self, path: impl AsRef<Path>, recursive: bool) -> Result<FileInfo, FilesError> {
        let path = path.as_ref().into();
        self.shieling.delete_file(DeleteRequest { path, recursive }).await
    }

    pub(crate) async fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        replace: bool,
    ) -> Result<FileInfo, FilesError> {
        let (from, to) = (from.as_ref().into(), to.as_ref().into());
        self.shieling.move_file(MoveRequest { from, to, replace }).await
    }
}

/// Returns the text of a response.
pub(crate) fn text_of(read: ReadResponse) -> Result<String, CheckFailure> {
    match read.content {
        FileContent::Text { text, .. } => Ok(text),
        other @ (FileContent::Image { .. } | FileContent::Whole { .. } | FileContent::Binary { .. }) => {
            Err(CheckFailure::new("text", format!("{other:?}")))
        }
    }
}

/// Formats the results of a search as `path:line:text`.
pub(crate) fn lines_of(grepped: &GrepResponse) -> Vec<String> {
    let line = |hit: &shieling::files::Hit| {
        let (number, text) = (hit.line.unwrap_or(0), hit.text.as_deref().unwrap_or(""));
        format!("{}:{number}:{text}", hit.path.display())
    };
    grepped.hits.iter().map(line).collect()
}

/// Returns a path as text, for comparisons.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
