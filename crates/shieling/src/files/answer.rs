//! What is answered about files. Plain data. In JSON, what of a path is not UTF-8 is replaced: it could
//! not be told at all otherwise.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::ask::FileHash;
use crate::environment::Kind;

/// What is answered, kind by kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FileAnswer {
    /// To [`FileAsk::Read`](super::FileAsk::Read).
    Read(FileRead),
    /// To [`FileAsk::Write`](super::FileAsk::Write).
    Written(Written),
    /// To [`FileAsk::Edit`](super::FileAsk::Edit).
    Edited(Edited),
    /// To [`FileAsk::Patch`](super::FileAsk::Patch).
    Patched(Patched),
    /// To [`FileAsk::List`](super::FileAsk::List).
    Listed(Listed),
    /// To [`FileAsk::Glob`](super::FileAsk::Glob).
    Found(Found),
    /// To [`FileAsk::Grep`](super::FileAsk::Grep).
    Grepped(Grepped),
    /// To [`FileAsk::Stat`](super::FileAsk::Stat), [`FileAsk::Delete`](super::FileAsk::Delete) (what was
    /// removed) and [`FileAsk::Move`](super::FileAsk::Move) (where it is now).
    Info(FileInfo),
}

impl FileAnswer {
    /// The paths that were changed.
    pub(crate) fn changed(&self) -> Vec<&Path> {
        match self {
            Self::Written(written) => vec![&written.path],
            Self::Edited(edited) => vec![&edited.path],
            Self::Patched(patched) => patched.files.iter().map(|file| &*file.path).collect(),
            Self::Read(_) | Self::Listed(_) | Self::Found(_) | Self::Grepped(_) | Self::Info(_) => Vec::new(),
        }
    }

    /// Adds what there is to know of where that is.
    pub(crate) fn add_note(&mut self, text: String) {
        match self {
            Self::Written(Written { note, .. })
            | Self::Edited(Edited { note, .. })
            | Self::Patched(Patched { note, .. }) => *note = Some(text),
            Self::Read(_) | Self::Listed(_) | Self::Found(_) | Self::Grepped(_) | Self::Info(_) => {}
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
    /// The whole content, if that was asked for.
    Whole {
        /// Its bytes; in JSON they stand elsewhere.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// Neither text nor an image.
    Binary {
        /// What it may be, by its first bytes.
        format: Option<String>,
        /// Why an image is not given as one.
        why: Option<String>,
    },
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
    /// What there is to know of where it is, such as that it does not last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
    /// What there is to know of where it is, such as that it does not last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a patch has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Patched {
    /// The files, as they stand in the patch.
    pub files: Vec<PatchedFile>,
    /// What there is to know of where it is, such as that it does not last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
    /// Its state, for [`FileAsk::Stat`](super::FileAsk::Stat) of a file that may be read; none of anything
    /// else, and none in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<FileHash>,
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

/// What was found by searching, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grepped {
    /// Where was searched: the directory's own path, or that of the one which a single file is in.
    #[serde(serialize_with = "as_text")]
    pub root: PathBuf,
    /// Lines, for [`GrepMode::Content`](super::GrepMode::Content); files otherwise.
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
    /// How many lines match, for [`GrepMode::Count`](super::GrepMode::Count).
    pub count: Option<u64>,
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
