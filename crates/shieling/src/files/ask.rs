//! What is asked of files, and what is answered. Plain data; paths are absolute, or relative to the
//! workspace. In JSON, what of a path is not UTF-8 is replaced: it could not be told at all otherwise.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::environment::Kind;
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

/// What is answered, kind by kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FileAnswer {
    /// To [`FileAsk::Read`].
    Read(FileRead),
    /// To [`FileAsk::Write`].
    Written(Written),
    /// To [`FileAsk::Edit`].
    Edited(Edited),
    /// To [`FileAsk::Patch`].
    Patched(Patched),
    /// To [`FileAsk::List`].
    Listed(Listed),
    /// To [`FileAsk::Glob`].
    Found(Found),
    /// To [`FileAsk::Grep`].
    Grepped(Grepped),
    /// To [`FileAsk::Stat`], [`FileAsk::Delete`] (what was removed) and [`FileAsk::Move`] (where it is now).
    Info(FileInfo),
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
        }
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileRead {
    /// The file: its own path, with no link in it.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its state.
    pub hash: FileHash,
    /// What is in it.
    #[serde(flatten)]
    pub seen: Seen,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Seen {
    /// Text.
    Text {
        /// The lines that were asked for, as UTF-8, with the line ends that they have (`\n`, or
        /// `\r\n`, since a line ends at `\n` alone). No byte-order mark.
        text: String,
        /// The first of them, counted from 0.
        offset: u64,
        /// How many they are. What follows the last `\n` is a line, too, if it is not empty.
        lines: u64,
        /// How many lines the file has; none if it was not read to its end.
        total_lines: Option<u64>,
        /// Where to read on, if there is more.
        next_offset: Option<u64>,
        /// How the file is encoded: `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, or the name of
        /// another encoding that it was found to have.
        encoding: String,
        /// Bytes of the last line shown that were left out, since it is longer than what is shown at
        /// once.
        cut_bytes: u64,
    },
    /// An image, by its content.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif`, `image/webp`.
        mime: String,
        /// Its bytes; in JSON they stand elsewhere.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// Neither.
    Binary {
        /// What it may be, by its first bytes.
        format: Option<String>,
        /// Why an image is not given as one.
        why: Option<String>,
    },
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

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Its own path.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Whether it is new.
    pub created: bool,
    /// Its size now.
    pub size: u64,
    /// Its state now.
    pub hash: FileHash,
    /// What changed, as a unified diff of at most 32 KiB; none if it is new or not text.
    pub diff: Option<String>,
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

/// A file that was edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edited {
    /// Its own path.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// How many occurrences were replaced.
    pub replacements: u64,
    /// What changed, as a unified diff of at most 32 KiB.
    pub diff: String,
    /// Its size now.
    pub size: u64,
    /// Its state now.
    pub hash: FileHash,
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

/// What a patch has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Patched {
    /// The files, as they stand in the patch.
    pub files: Vec<PatchedFile>,
}

/// A file that a patch has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchedFile {
    /// Its path now, or the one that it had if it was removed.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// `added`, `changed`, `removed` or `moved`.
    pub change: &'static str,
    /// Where it was, if it was moved.
    #[serde(serialize_with = "as_text_if_any")]
    pub from: Option<PathBuf>,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Its state now, if it is there.
    pub hash: Option<FileHash>,
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

/// A directory that was listed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Its own path.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Its entries, sorted by the bytes of their names.
    pub entries: Vec<FileInfo>,
    /// The name to go on after, if there is more.
    pub next: Option<String>,
}

/// What is known of something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileInfo {
    /// Its path, or, in a list, its name.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes, if it is a file.
    pub size: Option<u64>,
    /// Its permission bits, in octal; empty in a list for what is no file, such as `/proc`.
    pub mode: String,
    /// When its content last changed, in RFC 3339; empty likewise.
    pub modified: String,
    /// Where it leads, if it is a link.
    #[serde(serialize_with = "as_text_if_any")]
    pub target: Option<PathBuf>,
    /// Whether it is a link that leads nowhere, or to where nothing may be seen.
    pub dangling: bool,
    /// Its state, for [`FileAsk::Stat`] of a file that may be read; none of anything else, and none in a
    /// list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<FileHash>,
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

/// Files that were found, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Where was looked: the directory's own path.
    #[serde(serialize_with = "as_text")]
    pub root: PathBuf,
    /// Their paths, relative to the root.
    #[serde(serialize_with = "as_texts")]
    pub paths: Vec<PathBuf>,
    /// The path to go on after, if there is more.
    pub next: Option<String>,
    /// How many directories or files could not be looked at.
    pub unreadable: u64,
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

/// What was found by searching, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grepped {
    /// Where was searched: the directory's own path, or that of the one which a single file is in.
    #[serde(serialize_with = "as_text")]
    pub root: PathBuf,
    /// Lines, for [`GrepMode::Content`]; files otherwise.
    pub hits: Vec<Hit>,
    /// Where to go on, if there is more.
    pub next: Option<String>,
    /// How many files were searched, from where this answer begins to where it ends, as are the others.
    pub searched: u64,
    /// How many were left out since they are binary.
    pub binary: u64,
    /// How many directories or files could not be looked at.
    pub unreadable: u64,
}

/// A line or a file that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The file, relative to the root.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The line's number, counted from 1; none for a file.
    pub line: Option<u64>,
    /// The line without its end, or the lines of a match over several: at most 1,000 characters of it,
    /// from around the match, and `…` where something was left out.
    pub text: Option<String>,
    /// Whether it matches, or only stands beside a line that does.
    pub matched: bool,
    /// How many lines match, for [`GrepMode::Count`].
    pub count: Option<u64>,
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

fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn as_text_if_any<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(serializer)
}

fn as_texts<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
