//! What cases ask of files.

use std::path::Path;

use shieling::files::{
    DeleteAsk, EditAsk, Edited, FileInfo, FileRead, FilesError, Found, GlobAsk, GrepAsk, Grepped, ListAsk, Listed,
    MoveAsk, PatchAsk, Patched, ReadAsk, Seen, StatAsk, WriteAsk, Written,
};

use super::Wrong;
use super::at::At;

impl At {
    pub(crate) async fn read_as(&self, ask: ReadAsk) -> Result<FileRead, FilesError> {
        self.shieling.read_file(ask).await
    }

    pub(crate) async fn read(&self, path: impl AsRef<Path>) -> Result<FileRead, FilesError> {
        self.read_as(ReadAsk::new(path.as_ref())).await
    }

    /// The text of a file.
    pub(crate) async fn text(&self, path: impl AsRef<Path>) -> Result<String, Wrong> {
        text_of(self.read(path).await?)
    }

    pub(crate) async fn write_as(&self, ask: WriteAsk) -> Result<Written, FilesError> {
        self.shieling.write_file(ask).await
    }

    pub(crate) async fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<Written, FilesError> {
        self.write_as(WriteAsk::new(path.as_ref(), content.as_ref())).await
    }

    pub(crate) async fn edit_as(&self, ask: EditAsk) -> Result<Edited, FilesError> {
        self.shieling.edit_file(ask).await
    }

    pub(crate) async fn edit(&self, path: &str, old: &str, new: &str) -> Result<Edited, FilesError> {
        self.edit_as(EditAsk::new(path, old, new)).await
    }

    pub(crate) async fn patch_as(&self, patch: &str, reverse: bool) -> Result<Patched, FilesError> {
        let patch = patch.to_owned();
        self.shieling.apply_patch(PatchAsk { patch, reverse }).await
    }

    pub(crate) async fn patch(&self, patch: &str) -> Result<Patched, FilesError> {
        self.patch_as(patch, false).await
    }

    pub(crate) async fn list_as(&self, ask: ListAsk) -> Result<Listed, FilesError> {
        self.shieling.list_files(ask).await
    }

    pub(crate) async fn list(&self, path: impl AsRef<Path>) -> Result<Listed, FilesError> {
        self.list_as(ListAsk::new(path.as_ref())).await
    }

    /// The names in a directory, but for those that begin with a dot: a sandbox may stand in for some of
    /// those that tools would take settings from.
    pub(crate) async fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>, Wrong> {
        let listed = self.list(path).await?;
        Ok(listed
            .entries
            .iter()
            .map(|entry| shown(&entry.path))
            .filter(|name| !name.starts_with('.'))
            .collect())
    }

    pub(crate) async fn glob_as(&self, ask: GlobAsk) -> Result<Found, FilesError> {
        self.shieling.glob(ask).await
    }

    /// The paths that match.
    pub(crate) async fn glob(&self, pattern: &str) -> Result<Vec<String>, Wrong> {
        let found = self.glob_as(GlobAsk::new(pattern)).await?;
        Ok(found.paths.iter().map(|path| shown(path)).collect())
    }

    pub(crate) async fn grep_as(&self, ask: GrepAsk) -> Result<Grepped, FilesError> {
        self.shieling.grep(ask).await
    }

    /// The lines that match: `path:line:text`.
    pub(crate) async fn grep(&self, pattern: &str) -> Result<Vec<String>, Wrong> {
        Ok(lines_of(&self.grep_as(GrepAsk::new(pattern)).await?))
    }

    pub(crate) async fn stat(&self, path: impl AsRef<Path>) -> Result<FileInfo, FilesError> {
        self.shieling.stat(StatAsk::new(path.as_ref())).await
    }

    pub(crate) async fn delete(&self, path: impl AsRef<Path>, recursive: bool) -> Result<FileInfo, FilesError> {
        let path = path.as_ref().into();
        self.shieling.delete_file(DeleteAsk { path, recursive }).await
    }

    pub(crate) async fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        replace: bool,
    ) -> Result<FileInfo, FilesError> {
        let (from, to) = (from.as_ref().into(), to.as_ref().into());
        self.shieling.move_file(MoveAsk { from, to, replace }).await
    }
}

/// The text that was read.
pub(crate) fn text_of(read: FileRead) -> Result<String, Wrong> {
    match read.seen {
        Seen::Text { text, .. } => Ok(text),
        other @ (Seen::Image { .. } | Seen::Whole { .. } | Seen::Binary { .. }) => {
            Err(Wrong::new("text", format!("{other:?}")))
        }
    }
}

/// The lines of a search: `path:line:text`.
pub(crate) fn lines_of(grepped: &Grepped) -> Vec<String> {
    let line = |hit: &shieling::files::Hit| {
        let (number, text) = (hit.line.unwrap_or(0), hit.text.as_deref().unwrap_or(""));
        format!("{}:{number}:{text}", hit.path.display())
    };
    grepped.hits.iter().map(line).collect()
}

/// A path, as it is compared.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
