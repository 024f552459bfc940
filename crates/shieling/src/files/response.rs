//! Responses to requests about files. Plain data. In JSON, bytes of a path that are not UTF-8 are replaced, since JSON
//! cannot represent them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::request::FileHash;
use crate::environment::Kind;
use crate::path;

/// Any response about files.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FileResponse {
    /// The response to [`FileRequest::Read`](super::FileRequest::Read).
    Read(ReadResponse),
    /// The response to [`FileRequest::Write`](super::FileRequest::Write).
    Write(WriteResponse),
    /// The response to [`FileRequest::Edit`](super::FileRequest::Edit).
    Edit(EditResponse),
    /// The response to [`FileRequest::Patch`](super::FileRequest::Patch).
    Patch(PatchResponse),
    /// The response to [`FileRequest::List`](super::FileRequest::List).
    List(ListResponse),
    /// The response to [`FileRequest::Glob`](super::FileRequest::Glob).
    Glob(GlobResponse),
    /// The response to [`FileRequest::Grep`](super::FileRequest::Grep).
    Grep(GrepResponse),
    /// The response to [`FileRequest::Stat`](super::FileRequest::Stat), to [`FileRequest::Delete`](super::FileRequest::Delete)
    /// (what was removed) and to [`FileRequest::Move`](super::FileRequest::Move) (the new path).
    Info(FileInfo),
}

impl FileResponse {
    /// Returns the paths that were changed.
    pub(crate) fn changed(&self) -> Vec<&Path> {
        match self {
            Self::Write(written) => vec![&written.path],
            Self::Edit(edited) => vec![&edited.path],
            Self::Patch(patched) => patched.files.iter().map(|file| &*file.path).collect(),
            Self::Info(info) => vec![&info.path],
            Self::Read(_) | Self::List(_) | Self::Glob(_) | Self::Grep(_) => Vec::new(),
        }
    }

    /// Adds a remark about the directory of the changed files.
    pub(crate) fn add_note(&mut self, text: String) {
        match self {
            Self::Write(WriteResponse { note, .. })
            | Self::Edit(EditResponse { note, .. })
            | Self::Patch(PatchResponse { note, .. })
            | Self::Info(FileInfo { note, .. }) => match note {
                Some(note) => {
                    note.push_str("; ");
                    note.push_str(&text);
                }
                None => *note = Some(text),
            },
            Self::Read(_) | Self::List(_) | Self::Glob(_) | Self::Grep(_) => {}
        }
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadResponse {
    /// The file's resolved path, without links.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its state.
    pub hash: FileHash,
    /// The content that was read.
    #[serde(flatten)]
    pub content: FileContent,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FileContent {
    /// Lines of text.
    Text {
        /// The requested lines as UTF-8, without a byte-order mark. They keep their line ends, `\n` or `\r\n`; a line
        /// ends at `\n` alone.
        text: String,
        /// The number of the first line, counted from 0.
        offset: u64,
        /// The number of lines. Text after the last `\n` counts as a line unless it is empty.
        lines: u64,
        /// The number of lines in the file; `None` if the file was not read to its end.
        total_lines: Option<u64>,
        /// The offset of the next line, if there are more.
        next_offset: Option<u64>,
        /// The file's encoding: `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, or the name of another encoding, which is then
        /// a guess; with `-lossy` behind it if bytes of the text are invalid in it.
        encoding: String,
        /// The number of bytes that were cut from the end of the last line.
        cut_bytes: u64,
    },
    /// An image, recognised by its content.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        mime: String,
        /// The image's bytes, which are not part of the JSON form.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// The whole content, if it was requested.
    Whole {
        /// The file's bytes, which are not part of the JSON form.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// Neither text nor an image.
    Binary {
        /// The format that the first bytes suggest.
        format: Option<String>,
        /// Why an image was not returned as one.
        why: Option<String>,
    },
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WriteResponse {
    /// The file's resolved path.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// Whether the file did not exist before.
    pub created: bool,
    /// Its new size in bytes.
    pub size: u64,
    /// Its new state.
    pub hash: FileHash,
    /// The change as a unified diff of at most 32 KiB; `None` if the file is new or is not text.
    pub diff: Option<String>,
    /// A remark about the file's directory, such as that it is private to the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A file that was edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EditResponse {
    /// The file's resolved path.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// The number of occurrences that were replaced.
    pub replacements: u64,
    /// The change as a unified diff of at most 32 KiB.
    pub diff: String,
    /// The file's new size in bytes.
    pub size: u64,
    /// Its new state.
    pub hash: FileHash,
    /// A remark about the file's directory, such as that it is private to the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The files that a patch changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchResponse {
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
    /// A remark about the files' directories, such as that they are private to the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A file that a patch changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchedFile {
    /// The file's path; its former path if it was removed.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// `added`, `changed`, `removed` or `moved`.
    pub change: &'static str,
    /// The former path, if the file was moved.
    #[serde(serialize_with = "path::some")]
    pub from: Option<PathBuf>,
    /// The number of lines added.
    pub added: u64,
    /// The number of lines removed.
    pub removed: u64,
    /// The file's new state, unless it was removed.
    pub hash: Option<FileHash>,
}

/// A directory that was listed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListResponse {
    /// The directory's resolved path.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// The entries, sorted by the bytes of their names.
    pub entries: Vec<FileInfo>,
    /// The name to continue after, if there are more entries.
    pub next: Option<String>,
}

/// The metadata of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileInfo {
    /// The path; in a directory listing, the name of the entry.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// The type of the file.
    pub kind: Kind,
    /// The size in bytes of a regular file.
    pub size: Option<u64>,
    /// The permission bits in octal. Empty in a listing for entries that are not files, as in `/proc`.
    pub mode: String,
    /// The time of the last change of the content, in RFC 3339. Empty where `mode` is empty.
    pub modified: String,
    /// The target of a link, as the link has it. In a response to [`FileRequest::Stat`](super::FileRequest::Stat) also
    /// if the requested path is a link and everything else describes the file that it leads to.
    #[serde(serialize_with = "path::some")]
    pub target: Option<PathBuf>,
    /// Whether this is a link whose target is missing or hidden.
    pub dangling: bool,
    /// The state, in a response to [`FileRequest::Stat`](super::FileRequest::Stat) about a readable file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<FileHash>,
    /// In a response to a removal or a move: what is worth knowing of it, such as that it was held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The files that a search by name found, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GlobResponse {
    /// The resolved path of the directory that was searched.
    #[serde(serialize_with = "path::one")]
    pub root: PathBuf,
    /// The paths that match, relative to `root`.
    #[serde(serialize_with = "path::list")]
    pub paths: Vec<PathBuf>,
    /// The path to continue after, if there are more.
    pub next: Option<String>,
    /// The number of files and directories that could not be read.
    pub unreadable: u64,
}

/// The matches of a content search, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrepResponse {
    /// The resolved path of the directory that was searched, or of the parent of a single file.
    #[serde(serialize_with = "path::one")]
    pub root: PathBuf,
    /// Lines in the mode [`GrepMode::Content`](super::GrepMode::Content), otherwise files.
    pub hits: Vec<Hit>,
    /// The cursor to continue at, if there is more.
    pub next: Option<String>,
    /// The number of files that were searched for this response alone, as are the other numbers.
    pub searched: u64,
    /// The number of files that were skipped because they are binary.
    pub binary: u64,
    /// The number of files and directories that could not be read.
    pub unreadable: u64,
}

/// A line or a file that a content search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The file, relative to the root of the search.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// The number of the line, counted from 1; `None` for a file.
    pub line: Option<u64>,
    /// The line without its line end, or the lines of a match that spans several. At most 1,000 characters around the
    /// match, with `…` where text was cut.
    pub text: Option<String>,
    /// Whether the line matches. Otherwise it is a context line.
    pub matched: bool,
    /// The number of matching lines, in the mode [`GrepMode::Count`](super::GrepMode::Count).
    pub count: Option<u64>,
}
