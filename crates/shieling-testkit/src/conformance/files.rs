//! What cases ask of files, each with the answer of its kind.

use std::path::Path;

use shieling::files::{
    DeleteAsk, EditAsk, Edited, FileAnswer, FileAsk, FileInfo, FileRead, FilesError, Found, Glob, GlobAsk, GrepAsk,
    GrepMode, Grepped, ListAsk, Listed, MoveAsk, PatchAsk, Patched, ReadAsk, Seen, StatAsk, WriteAsk, Written,
};

use super::Wrong;
use super::at::At;

/// The answer of this kind; another kind is no answer.
macro_rules! answer {
    ($at:expr, $ask:expr, $kind:ident) => {
        match $at.shieling.file($ask).await? {
            FileAnswer::$kind(answer) => Ok(answer),
            other => Err(FilesError::Fault(format!("answered with another kind: {other:?}"))),
        }
    };
}

/// A search for this pattern in the whole workspace, at its defaults.
pub(crate) fn grep(pattern: &str) -> GrepAsk {
    GrepAsk {
        pattern: pattern.to_owned(),
        path: ".".into(),
        literal: false,
        ignore_case: false,
        multiline: false,
        globs: Vec::new(),
        of: Glob::default(),
        before: 0,
        after_lines: 0,
        mode: GrepMode::Content,
        limit: 200,
        cursor: None,
    }
}

/// Files of the whole workspace that match this pattern, at its defaults.
pub(crate) fn glob(pattern: &str) -> GlobAsk {
    GlobAsk {
        pattern: pattern.to_owned(),
        path: ".".into(),
        of: Glob::default(),
        limit: 1_000,
        after: None,
    }
}

/// An edit of the one place where `old` stands.
pub(crate) fn edit(path: impl AsRef<Path>, old: &str, new: &str) -> EditAsk {
    EditAsk {
        path: path.as_ref().into(),
        old: old.to_owned(),
        new: new.to_owned(),
        replace_all: false,
        expect: None,
    }
}

/// A whole file, whatever is there.
pub(crate) fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> WriteAsk {
    WriteAsk {
        path: path.as_ref().into(),
        content: content.as_ref().to_vec(),
        expect: None,
        create_only: false,
    }
}

impl At {
    pub(crate) async fn read_as(&self, ask: ReadAsk) -> Result<FileRead, FilesError> {
        answer!(self, FileAsk::Read(ask), Read)
    }

    pub(crate) async fn read(&self, path: impl AsRef<Path>) -> Result<FileRead, FilesError> {
        self.read_as(ReadAsk::new(path.as_ref())).await
    }

    /// The text of a file.
    pub(crate) async fn text(&self, path: impl AsRef<Path>) -> Result<String, Wrong> {
        text_of(self.read(path).await?)
    }

    pub(crate) async fn write_as(&self, ask: WriteAsk) -> Result<Written, FilesError> {
        answer!(self, FileAsk::Write(ask), Written)
    }

    pub(crate) async fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<Written, FilesError> {
        self.write_as(write(path, content)).await
    }

    pub(crate) async fn edit_as(&self, ask: EditAsk) -> Result<Edited, FilesError> {
        answer!(self, FileAsk::Edit(ask), Edited)
    }

    pub(crate) async fn edit(&self, path: &str, old: &str, new: &str) -> Result<Edited, FilesError> {
        self.edit_as(edit(path, old, new)).await
    }

    pub(crate) async fn patch_as(&self, patch: &str, reverse: bool) -> Result<Patched, FilesError> {
        let patch = patch.to_owned();
        answer!(self, FileAsk::Patch(PatchAsk { patch, reverse }), Patched)
    }

    pub(crate) async fn patch(&self, patch: &str) -> Result<Patched, FilesError> {
        self.patch_as(patch, false).await
    }

    pub(crate) async fn list_as(&self, ask: ListAsk) -> Result<Listed, FilesError> {
        answer!(self, FileAsk::List(ask), Listed)
    }

    pub(crate) async fn list(&self, path: impl AsRef<Path>) -> Result<Listed, FilesError> {
        let path = path.as_ref().into();
        self.list_as(ListAsk {
            path,
            limit: 1_000,
            after: None,
        })
        .await
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
        answer!(self, FileAsk::Glob(ask), Found)
    }

    /// The paths that match.
    pub(crate) async fn glob(&self, pattern: &str) -> Result<Vec<String>, Wrong> {
        let found = self.glob_as(glob(pattern)).await?;
        Ok(found.paths.iter().map(|path| shown(path)).collect())
    }

    pub(crate) async fn grep_as(&self, ask: GrepAsk) -> Result<Grepped, FilesError> {
        answer!(self, FileAsk::Grep(ask), Grepped)
    }

    /// The lines that match: `path:line:text`.
    pub(crate) async fn grep(&self, pattern: &str) -> Result<Vec<String>, Wrong> {
        Ok(lines_of(&self.grep_as(grep(pattern)).await?))
    }

    pub(crate) async fn stat(&self, path: impl AsRef<Path>) -> Result<FileInfo, FilesError> {
        let path = path.as_ref().into();
        answer!(self, FileAsk::Stat(StatAsk { path }), Info)
    }

    pub(crate) async fn delete(&self, path: impl AsRef<Path>, recursive: bool) -> Result<FileInfo, FilesError> {
        let path = path.as_ref().into();
        answer!(self, FileAsk::Delete(DeleteAsk { path, recursive }), Info)
    }

    pub(crate) async fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        replace: bool,
    ) -> Result<FileInfo, FilesError> {
        let (from, to) = (from.as_ref().into(), to.as_ref().into());
        answer!(self, FileAsk::Move(MoveAsk { from, to, replace }), Info)
    }
}

/// The text that was read.
pub(crate) fn text_of(read: FileRead) -> Result<String, Wrong> {
    match read.seen {
        Seen::Text { text, .. } => Ok(text),
        other @ (Seen::Image { .. } | Seen::Binary { .. }) => Err(Wrong::new("text", format!("{other:?}"))),
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
