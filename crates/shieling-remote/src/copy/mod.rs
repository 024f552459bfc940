//! Copies of directory trees over a stream: one side reads a tree and sends records, the other makes the tree.
//!
//! ```text
//! source: directory ─► pack ─► records, pieces of files ═══ a stream of a call ═══ unpack ─► directory
//! ```
//!
//! The format is the protocol's own, since both ends are always of one version, and `tar` leaves out what is needed:
//! holes that the reader can skip, times in nanoseconds, an end that shows that nothing was cut off, and names whose
//! length is bounded before they are read. Records name single entries of the directory that is open at that point, so
//! that no record can name anything outside of the destination.
//!
//! # What is copied
//! Directories, regular files with their holes, and symbolic links as links; permission bits, and modification times.
//! Set-id bits are dropped unless they are asked for. The user of the receiving side owns what is made. Names of one
//! file are copied as files of their own. Sockets, named pipes, devices, and what cannot be read are left out and
//! reported, and so is what something else is mounted at, on either side. Extended attributes and access lists are not copied.
//!
//! # What is never done
//! Below the two directories that the caller names no link is followed. A file gets its name once all of it is there;
//! what is cut off leaves at most files named `.shieling-copy-*`, where the system makes no files without a name.

mod blocking;
mod pack;
mod record;
mod unpack;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "trees are made and looked at")]
mod tests;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Statx, StatxFlags};

use serde::{Deserialize, Serialize};

use crate::wire_path::WirePath;

pub(crate) use self::blocking::{BlockingReader, BlockingWriter};
pub(crate) use self::pack::{All, Selection, Source, end, gone};
pub(crate) use self::unpack::{Gone, Made, Stamp, Target};

/// How deep directories nest at most in a copy.
pub const MAX_DEPTH: usize = 256;
/// How much of a copy may be on its way: engines pass streams on in small pieces, and credit comes back as late.
pub(crate) const WINDOW: usize = 4 * 1024 * 1024;
/// A little more than the coarsest tick by which file systems of Linux stamp files.
pub(crate) const TICK: Duration = Duration::from_millis(11);
/// Why something is left out that lies in another mount than the directory that is copied.
pub(crate) const ELSEWHERE: &str = "something else is mounted there";
/// How many paths of a report are kept; the number is exact beyond that.
const MAX_REPORTED: usize = 100;

/// Bounds of a copy, and what it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyOptions {
    /// Whether set-user-id and set-group-id bits of files are kept. Default: no.
    pub keep_set_id: bool,
    /// Files, directories and links. Default: 1,000,000.
    pub max_entries: u64,
    /// Bytes of files, without their holes. Default: 64 GiB.
    pub max_bytes: u64,
    /// Bytes of files, with their holes: what programs read that know nothing of holes. Default: 1 TiB.
    pub max_apparent_bytes: u64,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            keep_set_id: false,
            max_entries: 1_000_000,
            max_bytes: 64 << 30,
            max_apparent_bytes: 1 << 40,
        }
    }
}

/// What a copy has made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Directories, without the destination.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of files, without their holes.
    pub bytes: u64,
    /// What was left out, the first 100 of it.
    pub skipped: Vec<Skipped>,
    /// How much was left out.
    pub skipped_total: u64,
}

impl Copied {
    pub(crate) fn skip(&mut self, path: PathBuf, because: String) {
        self.skipped_total += 1;
        if self.skipped.len() < MAX_REPORTED {
            self.skipped.push(Skipped { path, because });
        }
    }

    fn entries(&self) -> u64 {
        self.files + self.directories + self.links
    }
}

/// An entry that was not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path, relative to the directory that is copied.
    pub path: PathBuf,
    /// Why: `it is a socket`, or what the system said.
    pub because: String,
}

/// Why a copy stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CopyErrorKind {
    /// The directory that is copied, or the destination, cannot be opened.
    Open,
    /// There is no space left at the destination, or no quota.
    Full,
    /// The user may not write at the destination.
    Denied,
    /// Something of another kind has the name at the destination.
    InTheWay,
    /// A bound of [`CopyOptions`], or [`MAX_DEPTH`], was reached.
    Limit,
    /// The system refused an operation.
    Io,
    /// The other side does not keep to the format, or ended in the middle.
    Stream,
    /// The link was lost, or the copy was given up.
    Lost,
    /// The other side copies no trees.
    Unsupported,
}

/// A mount, as far as the kernel tells: its id, or before Linux 5.8 the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mount {
    id: Option<u64>,
    device: (u32, u32),
}

impl Mount {
    /// The mount that something open is in.
    pub(crate) fn of(file: impl AsFd) -> Result<Self, rustix::io::Errno> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted).map(|found| Self::from(&found))
    }
}

impl From<&Statx> for Mount {
    fn from(found: &Statx) -> Self {
        let has_id = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Self {
            id: has_id.then_some(found.stx_mnt_id),
            // Subvolumes of one mount have devices of their own.
            device: match has_id {
                true => (0, 0),
                false => (found.stx_dev_major, found.stx_dev_minor),
            },
        }
    }
}

/// A copy that stopped. What was copied before stays; no file is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct CopyError {
    /// Why.
    pub kind: CopyErrorKind,
    /// What it was about, relative to the destination or the directory that is copied, or as the caller named it.
    pub path: PathBuf,
    /// What the system said, or which bound it was.
    pub detail: String,
}

impl CopyError {
    pub(crate) fn new(kind: CopyErrorKind, path: impl Into<PathBuf>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.into(),
            detail: detail.into(),
        }
    }

    pub(crate) fn stream(detail: impl Into<String>) -> Self {
        Self::new(CopyErrorKind::Stream, "", detail)
    }

    pub(crate) fn lost(detail: impl std::fmt::Display) -> Self {
        Self::new(CopyErrorKind::Lost, "", detail.to_string())
    }

    /// What the system refused at the destination.
    pub(crate) fn at(path: &Path, errno: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        let kind = match errno {
            Errno::NOSPC | Errno::DQUOT => CopyErrorKind::Full,
            Errno::ACCESS | Errno::PERM => CopyErrorKind::Denied,
            Errno::ISDIR | Errno::NOTDIR | Errno::EXIST | Errno::LOOP => CopyErrorKind::InTheWay,
            _ => CopyErrorKind::Io,
        };
        Self::new(kind, path, std::io::Error::from(errno).to_string())
    }

    fn words(&self) -> String {
        let (path, detail) = (self.path.display(), &self.detail);
        match self.kind {
            CopyErrorKind::Open => format!("`{path}` cannot be opened as a directory: {detail}"),
            CopyErrorKind::Full => format!("`{path}` does not fit: {detail}"),
            CopyErrorKind::InTheWay => {
                format!("`{path}` cannot be made: something of another kind has that name ({detail})")
            }
            CopyErrorKind::Limit => format!("the copy is too large: {detail}"),
            CopyErrorKind::Io | CopyErrorKind::Denied => format!("`{path}` cannot be copied: {detail}"),
            CopyErrorKind::Stream => format!("the copy was broken off: the other side sent {detail}"),
            CopyErrorKind::Lost => format!("the copy was broken off: {detail}"),
            CopyErrorKind::Unsupported => format!("the other side copies no directories: {detail}"),
        }
    }
}

/// [`CopyError`] as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CopyFault {
    kind: CopyErrorKind,
    path: WirePath,
    detail: String,
}

impl CopyFault {
    pub(crate) fn of(error: &CopyError) -> Self {
        Self {
            kind: error.kind,
            path: WirePath::of(&error.path),
            detail: error.detail.clone(),
        }
    }

    pub(crate) fn error(self) -> CopyError {
        CopyError {
            kind: self.kind,
            path: self.path.path(),
            detail: self.detail,
        }
    }
}

/// [`Copied`] as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireCopied {
    counts: [u64; 4],
    skipped: Vec<(WirePath, String)>,
    skipped_total: u64,
}

impl WireCopied {
    pub(crate) fn of(copied: &Copied) -> Self {
        let skipped = copied.skipped.iter();
        Self {
            counts: [copied.files, copied.directories, copied.links, copied.bytes],
            skipped: skipped
                .map(|skipped| (WirePath::of(&skipped.path), skipped.because.clone()))
                .collect(),
            skipped_total: copied.skipped_total,
        }
    }

    pub(crate) fn copied(self) -> Copied {
        let [files, directories, links, bytes] = self.counts;
        let skipped = self.skipped.into_iter().take(MAX_REPORTED);
        Copied {
            files,
            directories,
            links,
            bytes,
            skipped: skipped
                .map(|(path, because)| Skipped {
                    path: path.path(),
                    because,
                })
                .collect(),
            skipped_total: self.skipped_total,
        }
    }
}

/// [`CopyOptions`] as they are sent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireCopyOptions {
    keep_set_id: bool,
    max_entries: u64,
    max_bytes: u64,
    max_apparent_bytes: u64,
}

impl WireCopyOptions {
    pub(crate) fn of(options: CopyOptions) -> Self {
        let CopyOptions {
            keep_set_id,
            max_entries,
            max_bytes,
            max_apparent_bytes,
        } = options;
        Self {
            keep_set_id,
            max_entries,
            max_bytes,
            max_apparent_bytes,
        }
    }

    pub(crate) fn options(self) -> CopyOptions {
        let Self {
            keep_set_id,
            max_entries,
            max_bytes,
            max_apparent_bytes,
        } = self;
        CopyOptions {
            keep_set_id,
            max_entries,
            max_bytes,
            max_apparent_bytes,
        }
    }
}
