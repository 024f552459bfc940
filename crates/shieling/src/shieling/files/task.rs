//! One thing that is asked of files: what it is called, what it names, and which operation does it.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::files::{self, Context, FileRequest, FileResponse, FilesError, PlannedChange};
use crate::request::{Access, Digest, FileOp, Operation};

/// What is asked, taken apart.
pub(super) struct Task {
    ask: FileRequest,
    operation: Operation,
    /// What else decides what it does, as it stands in its text.
    words: Vec<String>,
    /// The digest of what is to be written, replaced or applied.
    content: Digest,
}

impl Task {
    /// Digests what is to be written, which takes seconds where that is a gigabyte.
    pub(super) fn new(ask: FileRequest) -> Self {
        let option = |set: bool, name: &str| if set { vec![name.to_owned()] } else { Vec::new() };
        let (operation, words) = match &ask {
            FileRequest::Read(_) => (Operation::ReadFile, Vec::new()),
            FileRequest::Write(ask) => (Operation::WriteFile, option(ask.create_only, "--new")),
            FileRequest::Edit(ask) => (Operation::EditFile, option(ask.replace_all, "--all")),
            FileRequest::Patch(ask) => (Operation::ApplyPatch, option(ask.reverse, "--reverse")),
            FileRequest::List(_) => (Operation::ListFiles, Vec::new()),
            FileRequest::Glob(ask) => (Operation::Glob, vec![ask.pattern.clone()]),
            FileRequest::Grep(ask) => (Operation::Grep, vec![ask.pattern.clone()]),
            FileRequest::Stat(_) => (Operation::Stat, Vec::new()),
            FileRequest::Delete(ask) => (Operation::DeleteFile, option(ask.recursive, "--recursive")),
            FileRequest::Move(ask) => (Operation::MoveFile, option(ask.replace, "--replace")),
        };
        let content = content(&ask);
        Self {
            ask,
            operation,
            words,
            content,
        }
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether many files are looked at, of which one that may not be read is left out.
    pub(super) fn is_search(&self) -> bool {
        matches!(self.operation, Operation::Glob | Operation::Grep)
    }

    /// The paths as they were asked for. A patch names its own.
    pub(super) fn asked(&self) -> Vec<(Access, &Path)> {
        match &self.ask {
            FileRequest::Read(ask) => vec![(Access::Read, &ask.path)],
            FileRequest::Write(ask) => vec![(Access::Write, &ask.path)],
            FileRequest::Edit(ask) => vec![(Access::Write, &ask.path)],
            FileRequest::Patch(_) => Vec::new(),
            FileRequest::List(ask) => vec![(Access::Read, &ask.path)],
            FileRequest::Glob(ask) => vec![(Access::Read, &ask.path)],
            FileRequest::Grep(ask) => vec![(Access::Read, &ask.path)],
            FileRequest::Stat(ask) => vec![(Access::Read, &ask.path)],
            FileRequest::Delete(ask) => vec![(Access::Remove, &ask.path)],
            FileRequest::Move(ask) => vec![(Access::Remove, &ask.from), (Access::Write, &ask.to)],
        }
    }

    /// The operation on these paths, as it is judged and recorded.
    pub(super) fn op(&self, workspace: &Path, paths: Vec<(Access, PathBuf)>) -> FileOp {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        FileOp::new(self.operation, workspace, &words, paths).with_content(self.content)
    }

    /// The operation on the paths that were asked for, wherever links would lead.
    pub(super) fn op_as_asked(&self, workspace: &Path) -> FileOp {
        let plain = |path: &Path| {
            let whole = workspace.join(path);
            let parts = || whole.components().filter(|part| *part != Component::CurDir);
            files::cut(&whole).unwrap_or_else(|| parts().collect())
        };
        let paths = self.asked().into_iter().map(|(access, path)| (access, plain(path)));
        self.op(workspace, paths.collect())
    }

    /// Works out what would be answered or changed. Blocks; a search ends early once it is `stopped`.
    pub(super) fn work(&self, with: Context<'_>, stopped: &AtomicBool) -> Result<Worked, FilesError> {
        Ok(match &self.ask {
            FileRequest::Read(ask) => Worked::Done(FileResponse::Read(files::read(with, ask)?)),
            FileRequest::List(ask) => Worked::Done(FileResponse::List(files::list(with, ask)?)),
            FileRequest::Glob(ask) => Worked::Done(FileResponse::Glob(files::find(with, ask, stopped)?)),
            FileRequest::Grep(ask) => Worked::Done(FileResponse::Grep(files::grep(with, ask, stopped)?)),
            FileRequest::Stat(ask) => Worked::Done(FileResponse::Info(files::stat(with, ask)?)),
            FileRequest::Write(ask) => Worked::Planned(files::plan_write(with, ask)?),
            FileRequest::Edit(ask) => Worked::Planned(files::plan_edit(with, ask)?),
            FileRequest::Patch(ask) => Worked::Planned(files::plan_patch(with, ask)?),
            FileRequest::Delete(ask) => Worked::Planned(files::plan_delete(with, ask)?),
            FileRequest::Move(ask) => Worked::Planned(files::plan_move(with, ask)?),
        })
    }
}

/// The digest of what is to be written, replaced or applied.
fn content(ask: &FileRequest) -> Digest {
    match ask {
        FileRequest::Write(ask) => Digest::of(&ask.content),
        FileRequest::Edit(ask) => {
            let [old, new] = [&ask.old, &ask.new].map(|text| Digest::of(text.as_bytes()));
            Digest::of(format!("{old} {new}").as_bytes())
        }
        FileRequest::Patch(ask) => Digest::of(ask.patch.as_bytes()),
        FileRequest::Read(_)
        | FileRequest::List(_)
        | FileRequest::Glob(_)
        | FileRequest::Grep(_)
        | FileRequest::Stat(_)
        | FileRequest::Delete(_)
        | FileRequest::Move(_) => Digest::of(b""),
    }
}

/// What came of working it out.
pub(super) enum Worked {
    /// It only reads, and this is what it read.
    Done(FileResponse),
    /// It changes something, and has not yet.
    Planned(PlannedChange),
}

/// Where what was answered stands, if the answer says so.
pub(super) fn own_path(answer: &FileResponse) -> Option<&Path> {
    match answer {
        FileResponse::Read(read) => Some(&read.path),
        FileResponse::Write(written) => Some(&written.path),
        FileResponse::Edit(edited) => Some(&edited.path),
        FileResponse::List(listed) => Some(&listed.path),
        FileResponse::Info(info) => Some(&info.path),
        FileResponse::Patch(_) | FileResponse::Glob(_) | FileResponse::Grep(_) => None,
    }
}

/// The size of the file that was read or written, if it is one.
pub(super) fn size(answer: &FileResponse) -> Option<u64> {
    match answer {
        FileResponse::Read(read) => Some(read.size),
        FileResponse::Write(written) => Some(written.size),
        FileResponse::Edit(edited) => Some(edited.size),
        FileResponse::Patch(_)
        | FileResponse::List(_)
        | FileResponse::Glob(_)
        | FileResponse::Grep(_)
        | FileResponse::Info(_) => None,
    }
}
