//! Requests to read, search and change files. Plain data; paths are absolute, or relative to the workspace.

use std::path::PathBuf;

use serde::Serialize;

use crate::units::ByteCount;

/// The state of a file's content, as returned by a read.
///
/// An edit or a write that carries the state of an earlier read is refused if the file has changed since. The state
/// of a file of at most 64 MiB is a digest of its bytes; that of a larger file is made of its identity, size and times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct FileHash(pub String);

/// Any request about files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRequest {
    /// Read a file.
    Read(ReadRequest),
    /// Write a whole file.
    Write(WriteRequest),
    /// Replace text in a file.
    Edit(EditRequest),
    /// Change several files at once.
    Patch(PatchRequest),
    /// List a directory.
    List(ListRequest),
    /// Find files by name.
    Glob(GlobRequest),
    /// Search the contents of files.
    Grep(GrepRequest),
    /// Query the metadata of a path.
    Stat(StatRequest),
    /// Remove a file or a directory.
    Delete(DeleteRequest),
    /// Move a file or a directory.
    Move(MoveRequest),
}

/// A request to read lines of text, an image, or a whole file as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// The file.
    pub path: PathBuf,
    /// The first line, counted from 0.
    pub offset: u64,
    /// The largest number of lines (default: 2,000; 0 is refused).
    pub limit: u64,
    /// The largest number of bytes of text (default: 64 KiB). A longer line is cut, and the response says so.
    pub max_bytes: ByteCount,
    /// The largest image that is returned as an image (default: 10 MiB). With `None`, images count as binary files.
    pub max_image: Option<ByteCount>,
    /// Returns the whole content as bytes, whatever its format, if the file has at most this size (default: `None`;
    /// at most 64 MiB). The fields about lines and images are then ignored.
    pub whole: Option<ByteCount>,
}

impl ReadRequest {
    /// Creates a request for the first lines of a file.
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

/// A request to write a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRequest {
    /// The file. Missing parent directories are created.
    pub path: PathBuf,
    /// The new content, byte for byte.
    pub content: Vec<u8>,
    /// The state that the file must be in, from an earlier read.
    pub expect: Option<FileHash>,
    /// Fails if the path already exists.
    pub create_only: bool,
}

impl WriteRequest {
    /// Creates a request that replaces whatever content the file has.
    pub fn new(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            expect: None,
            create_only: false,
        }
    }
}

/// A request to replace text in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditRequest {
    /// The file.
    pub path: PathBuf,
    /// The text to replace, exactly as it is in the file. `\n` also matches the line end `\r\n` in a file that uses it.
    pub old: String,
    /// The replacement.
    pub new: String,
    /// Replaces every occurrence. Otherwise exactly one occurrence must exist.
    pub replace_all: bool,
    /// The state that the file must be in, from an earlier read.
    pub expect: Option<FileHash>,
}

impl EditRequest {
    /// Creates a request to replace the only occurrence of `old`, whatever state the file is in.
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

/// A request to change several files, either all of them or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchRequest {
    /// A unified diff, as written by git and diff, or a patch that begins with `*** Begin Patch`.
    pub patch: String,
    /// Applies a unified diff in reverse.
    pub reverse: bool,
}

impl PatchRequest {
    /// Creates a request to apply a patch forwards.
    pub fn new(patch: impl Into<String>) -> Self {
        Self {
            patch: patch.into(),
            reverse: false,
        }
    }
}

/// A request to list a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// The directory.
    pub path: PathBuf,
    /// The largest number of entries (default: 1,000).
    pub limit: u64,
    /// Continues after the entry of this name.
    pub after: Option<String>,
}

impl ListRequest {
    /// Creates a request for the first entries of a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            limit: 1_000,
            after: None,
        }
    }
}

/// Which files a search includes besides the default ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Include {
    /// Includes files that `.gitignore` and similar files exclude. `.git` itself is never searched.
    pub ignored: bool,
    /// Includes names that begin with a dot.
    pub dotfiles: bool,
}

/// A request to find files by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobRequest {
    /// The pattern, relative to `path`, such as `**/*.rs`. A pattern without a slash matches in every directory; one
    /// with a trailing slash matches directories. A pattern that names a dotfile includes dotfiles in the search.
    pub pattern: String,
    /// The directory to search (default: the workspace).
    pub path: PathBuf,
    /// Which files to search.
    pub include: Include,
    /// The largest number of paths (default: 1,000).
    pub limit: u64,
    /// Continues after this path, which an earlier response returned as `next`.
    pub after: Option<String>,
}

impl GlobRequest {
    /// Creates a request for the first files of the workspace that match.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: ".".into(),
            include: Include::default(),
            limit: 1_000,
            after: None,
        }
    }
}

/// A request to search the contents of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepRequest {
    /// A regular expression. Searching takes time linear in the length of the text.
    pub pattern: String,
    /// The file or the directory to search (default: the workspace).
    pub path: PathBuf,
    /// Searches for the pattern as literal text.
    pub literal: bool,
    /// Ignores the case of letters.
    pub ignore_case: bool,
    /// Lets a match span several lines, and `.` match a line end.
    pub multiline: bool,
    /// Searches only files that match one of these globs. A glob that begins with `!` excludes files. Globs do not
    /// include ignored files.
    pub globs: Vec<String>,
    /// Which files to search.
    pub include: Include,
    /// The number of context lines before each match.
    pub before: u64,
    /// The number of context lines after each match.
    pub after_lines: u64,
    /// What the response contains.
    pub mode: GrepMode,
    /// The largest number of matching lines, or of files (default: 200).
    pub limit: u64,
    /// Continues at this cursor, which an earlier response returned as `next`.
    pub cursor: Option<String>,
}

impl GrepRequest {
    /// Creates a request for the first matching lines in the workspace, without context.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: ".".into(),
            literal: false,
            ignore_case: false,
            multiline: false,
            globs: Vec::new(),
            include: Include::default(),
            before: 0,
            after_lines: 0,
            mode: GrepMode::default(),
            limit: 200,
            cursor: None,
        }
    }
}

/// What the response to a content search contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrepMode {
    /// The matching lines.
    #[default]
    Content,
    /// The files with at least one match.
    Files,
    /// The number of matching lines of each file with at least one match.
    Count,
}

/// A request for the metadata of a path. A link is followed unless it dangles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatRequest {
    /// The path.
    pub path: PathBuf,
}

impl StatRequest {
    /// Creates a request for the metadata of a path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

/// A request to remove a file or a directory. A link is removed itself, not its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRequest {
    /// The path to remove.
    pub path: PathBuf,
    /// Removes a directory with everything in it.
    pub recursive: bool,
}

impl DeleteRequest {
    /// Creates a request to remove a file, a link or an empty directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            recursive: false,
        }
    }
}

/// A request to move a file or a directory within one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveRequest {
    /// The path to move. A link is moved itself, not its target.
    pub from: PathBuf,
    /// The new path. If it is an existing directory, `from` is moved into it.
    pub to: PathBuf,
    /// Replaces an existing file.
    pub replace: bool,
}

impl MoveRequest {
    /// Creates a request that fails if a file exists at the new path.
    pub fn new(from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            replace: false,
        }
    }
}
