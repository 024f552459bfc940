//! What is asked of files. Plain data; paths are absolute, or relative to the workspace.

use std::path::PathBuf;

use serde::Serialize;

use crate::units::ByteCount;

/// The state of a file's content, as a read gave it: an edit or a write that brings it is refused once
/// the file is another. Of a file of at most 64 MiB it is a digest of its bytes; of a larger one it is
/// made of its identity, size and times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct FileHash(pub String);

/// Anything that can be asked of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAsk {
    /// Read a file.
    Read(ReadAsk),
    /// Write a whole file.
    Write(WriteAsk),
    /// Replace text in a file.
    Edit(EditAsk),
    /// Change several files at once.
    Patch(PatchAsk),
    /// List a directory.
    List(ListAsk),
    /// Find files by their names.
    Glob(GlobAsk),
    /// Search in files.
    Grep(GrepAsk),
    /// Look at what something is.
    Stat(StatAsk),
    /// Remove something.
    Delete(DeleteAsk),
    /// Move something.
    Move(MoveAsk),
}

/// Read lines of a text, or an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAsk {
    /// The file.
    pub path: PathBuf,
    /// The first line, counted from 0.
    pub offset: u64,
    /// At most so many lines (default 2,000; 0 is refused).
    pub limit: u64,
    /// At most so many bytes of text (default 64 KiB). A longer line is cut, and says so.
    pub max_bytes: ByteCount,
    /// Images up to this size are given as images (default 10 MiB); none: they are binary files.
    pub max_image: Option<ByteCount>,
    /// The whole content as it is, whatever that is, of a file up to this size, at most 64 MiB (default: not).
    /// Lines and images then do not matter.
    pub whole: Option<ByteCount>,
}

impl ReadAsk {
    /// The first lines of a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            offset: 0,
            limit: 2_000,
            max_bytes: ByteCount::kib(64),
            max_image: Some(ByteCount::mib(10)),
            whole: None,
        }
    }
}

/// Write a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteAsk {
    /// The file. Directories that are missing are made.
    pub path: PathBuf,
    /// What it is to hold, byte for byte.
    pub content: Vec<u8>,
    /// The state that it must be in, from a read.
    pub expect: Option<FileHash>,
    /// Refuse if there is something already.
    pub create_only: bool,
}

impl WriteAsk {
    /// This content, whatever is there.
    pub fn new(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            expect: None,
            create_only: false,
        }
    }
}

/// Replace text in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditAsk {
    /// The file.
    pub path: PathBuf,
    /// What is there, exactly. Where the file ends its lines with `\r\n`, `\n` stands for that.
    pub old: String,
    /// What is to be there instead.
    pub new: String,
    /// Replace each occurrence; otherwise there must be exactly one.
    pub replace_all: bool,
    /// The state that the file must be in, from a read.
    pub expect: Option<FileHash>,
}

impl EditAsk {
    /// The one place where `old` stands, whatever else is in the file.
    pub fn new(path: impl Into<PathBuf>, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            old: old.into(),
            new: new.into(),
            replace_all: false,
            expect: None,
        }
    }
}

/// Change several files at once, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchAsk {
    /// A unified diff, as git and diff write it, or a patch that begins with `*** Begin Patch`.
    pub patch: String,
    /// Apply it backwards (unified diffs only).
    pub reverse: bool,
}

impl PatchAsk {
    /// This patch, forwards.
    pub fn new(patch: impl Into<String>) -> Self {
        Self {
            patch: patch.into(),
            reverse: false,
        }
    }
}

/// List a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListAsk {
    /// The directory.
    pub path: PathBuf,
    /// At most so many entries (default 1,000).
    pub limit: u64,
    /// Go on after this name.
    pub after: Option<String>,
}

impl ListAsk {
    /// The first entries of a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            limit: 1_000,
            after: None,
        }
    }
}

/// What of a tree is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glob {
    /// Also what `.gitignore` and its like leave out (`.git` itself never is looked into).
    pub ignored: bool,
    /// Also names that begin with a dot.
    pub dotted: bool,
}

/// Find files by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobAsk {
    /// The pattern, relative to `path`: `**/*.rs`. Without a slash it is looked for in every directory;
    /// one that ends with a slash finds directories. One that names something with a dot at its beginning
    /// also looks at names that begin with one.
    pub pattern: String,
    /// Where to look (default: the workspace).
    pub path: PathBuf,
    /// What is looked at.
    pub of: Glob,
    /// At most so many paths (default 1,000).
    pub limit: u64,
    /// Go on after this path, as `next` gave it.
    pub after: Option<String>,
}

impl GlobAsk {
    /// The first files of the workspace that match.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: ".".into(),
            of: Glob::default(),
            limit: 1_000,
            after: None,
        }
    }
}

/// Search in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepAsk {
    /// A regular expression, of which every search takes time in proportion to the text.
    pub pattern: String,
    /// A file or a directory (default: the workspace).
    pub path: PathBuf,
    /// Take the pattern as it stands.
    pub literal: bool,
    /// Whatever the case of letters.
    pub ignore_case: bool,
    /// A match may go over several lines, and `.` fits a line end.
    pub multiline: bool,
    /// Only in files that match one of these globs; one that begins with `!` leaves out. None brings back
    /// what is ignored.
    pub globs: Vec<String>,
    /// What is looked at.
    pub of: Glob,
    /// So many lines before each match.
    pub before: u64,
    /// So many lines after each match.
    pub after_lines: u64,
    /// What is given.
    pub mode: GrepMode,
    /// At most so many lines with a match, or files (default 200).
    pub limit: u64,
    /// Go on where `next` says.
    pub cursor: Option<String>,
}

impl GrepAsk {
    /// The first lines in the workspace that match, alone.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: ".".into(),
            literal: false,
            ignore_case: false,
            multiline: false,
            globs: Vec::new(),
            of: Glob::default(),
            before: 0,
            after_lines: 0,
            mode: GrepMode::default(),
            limit: 200,
            cursor: None,
        }
    }
}

/// What a search gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrepMode {
    /// The lines that match.
    #[default]
    Content,
    /// The files that have one.
    Files,
    /// How many lines match in each file that has one.
    Count,
}

/// Look at what something is. A link is followed if it leads somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatAsk {
    /// It.
    pub path: PathBuf,
}

impl StatAsk {
    /// What is there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

/// Remove something. A link is removed, not what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteAsk {
    /// It.
    pub path: PathBuf,
    /// Also a directory with all that is in it.
    pub recursive: bool,
}

impl DeleteAsk {
    /// A file, a link or an empty directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            recursive: false,
        }
    }
}

/// Move something, within the same environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveAsk {
    /// It. A link is moved, not what it leads to.
    pub from: PathBuf,
    /// Where to. A directory that is there gets it inside.
    pub to: PathBuf,
    /// Replace a file that is there.
    pub replace: bool,
}

impl MoveAsk {
    /// To where no file is.
    pub fn new(from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            replace: false,
        }
    }
}
