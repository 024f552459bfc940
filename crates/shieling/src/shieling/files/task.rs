//! One thing that is asked of files: what it is called, what it names, and which operation does it.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::files::{self, Context, FileAnswer, FileAsk, FilesError, Planned};
use crate::request::{Access, Digest, FileOp, Operation};

/// What is asked, taken apart.
pub(super) struct Task {
    ask: FileAsk,
    operation: Operation,
    /// What else decides what it does, as it stands in its text.
    words: Vec<String>,
    /// The digest of what is to be written, replaced or applied.
    content: Digest,
}

impl Task {
    /// Digests what is to be written, which takes seconds where that is a gigabyte.
    pub(super) fn new(ask: FileAsk) -> Self {
        let option = |set: bool, name: &str| if set { vec![name.to_owned()] } else { Vec::new() };
        let (operation, words) = match &ask {
            FileAsk::Read(_) => (Operation::ReadFile, Vec::new()),
            FileAsk::Write(ask) => (Operation::WriteFile, option(ask.create_only, "--new")),
            FileAsk::Edit(ask) => (Operation::EditFile, option(ask.replace_all, "--all")),
            FileAsk::Patch(ask) => (Operation::ApplyPatch, option(ask.reverse, "--reverse")),
            FileAsk::List(_) => (Operation::ListFiles, Vec::new()),
            FileAsk::Glob(ask) => (Operation::Glob, vec![ask.pattern.clone()]),
            FileAsk::Grep(ask) => (Operation::Grep, vec![ask.pattern.clone()]),
            FileAsk::Stat(_) => (Operation::Stat, Vec::new()),
            FileAsk::Delete(ask) => (Operation::DeleteFile, option(ask.recursive, "--recursive")),
            FileAsk::Move(ask) => (Operation::MoveFile, option(ask.replace, "--replace")),
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
            FileAsk::Read(ask) => vec![(Access::Read, &ask.path)],
            FileAsk::Write(ask) => vec![(Access::Write, &ask.path)],
            FileAsk::Edit(ask) => vec![(Access::Write, &ask.path)],
            FileAsk::Patch(_) => Vec::new(),
            FileAsk::List(ask) => vec![(Access::Read, &ask.path)],
            FileAsk::Glob(ask) => vec![(Access::Read, &ask.path)],
            FileAsk::Grep(ask) => vec![(Access::Read, &ask.path)],
            FileAsk::Stat(ask) => vec![(Access::Read, &ask.path)],
            FileAsk::Delete(ask) => vec![(Access::Remove, &ask.path)],
            FileAsk::Move(ask) => vec![(Access::Remove, &ask.from), (Access::Write, &ask.to)],
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
            FileAsk::Read(ask) => Worked::Done(FileAnswer::Read(files::read(with, ask)?)),
            FileAsk::List(ask) => Worked::Done(FileAnswer::Listed(files::list(with, ask)?)),
            FileAsk::Glob(ask) => Worked::Done(FileAnswer::Found(files::find(with, ask, stopped)?)),
            FileAsk::Grep(ask) => Worked::Done(FileAnswer::Grepped(files::grep(with, ask, stopped)?)),
            FileAsk::Stat(ask) => Worked::Done(FileAnswer::Info(files::stat(with, ask)?)),
            FileAsk::Write(ask) => Worked::Planned(files::plan_write(with, ask)?),
            FileAsk::Edit(ask) => Worked::Planned(files::plan_edit(with, ask)?),
            FileAsk::Patch(ask) => Worked::Planned(files::plan_patch(with, ask)?),
            FileAsk::Delete(ask) => Worked::Planned(files::plan_delete(with, ask)?),
            FileAsk::Move(ask) => Worked::Planned(files::plan_move(with, ask)?),
        })
    }
}

/// The digest of what is to be written, replaced or applied.
fn content(ask: &FileAsk) -> Digest {
    match ask {
        FileAsk::Write(ask) => Digest::of(&ask.content),
        FileAsk::Edit(ask) => {
            let [old, new] = [&ask.old, &ask.new].map(|text| Digest::of(text.as_bytes()));
            Digest::of(format!("{old} {new}").as_bytes())
        }
        FileAsk::Patch(ask) => Digest::of(ask.patch.as_bytes()),
        FileAsk::Read(_)
        | FileAsk::List(_)
        | FileAsk::Glob(_)
        | FileAsk::Grep(_)
        | FileAsk::Stat(_)
        | FileAsk::Delete(_)
        | FileAsk::Move(_) => Digest::of(b""),
    }
}

/// What came of working it out.
pub(super) enum Worked {
    /// It only reads, and this is what it read.
    Done(FileAnswer),
    /// It changes something, and has not yet.
    Planned(Planned),
}

/// Where what was answered stands, if the answer says so.
pub(super) fn own_path(answer: &FileAnswer) -> Option<&Path> {
    match answer {
        FileAnswer::Read(read) => Some(&read.path),
        FileAnswer::Written(written) => Some(&written.path),
        FileAnswer::Edited(edited) => Some(&edited.path),
        FileAnswer::Listed(listed) => Some(&listed.path),
        FileAnswer::Info(info) => Some(&info.path),
        FileAnswer::Patched(_) | FileAnswer::Found(_) | FileAnswer::Grepped(_) => None,
    }
}

/// The size of the file that was read or written, if it is one.
pub(super) fn size(answer: &FileAnswer) -> Option<u64> {
    match answer {
        FileAnswer::Read(read) => Some(read.size),
        FileAnswer::Written(written) => Some(written.size),
        FileAnswer::Edited(edited) => Some(edited.size),
        FileAnswer::Patched(_)
        | FileAnswer::Listed(_)
        | FileAnswer::Found(_)
        | FileAnswer::Grepped(_)
        | FileAnswer::Info(_) => None,
    }
}
