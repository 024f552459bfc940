//! The state of a file's content as a short text, and the check of an expected state.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::resolve::{self, CHUNK, LoadedFile};
use super::{Context, FileHash, FilesError, diff};
use crate::environment::{Content, FileError, Stamp, WriteTarget};

/// The largest content whose state is a digest of all bytes, in bytes.
pub(super) const DIGESTED: u64 = 64 << 20;

/// The part of a SHA-256 that is used: 128 bits, enough to exclude accidental collisions.
const TOLD_BYTES: usize = 16;

/// Computes the state of a content from consecutive pieces.
pub(super) struct Digest(Sha256);

impl Digest {
    /// Creates a digest of no bytes.
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds the next piece.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Returns the state: the first 32 hexadecimal digits of the SHA-256.
    pub(super) fn hash(self) -> FileHash {
        FileHash(hex_prefix(self.0))
    }
}

impl FileHash {
    /// Returns the state of a file of at most 64 MiB with this content.
    pub(super) fn of(content: &[u8]) -> Self {
        let mut digest = Digest::new();
        digest.feed(content);
        digest.hash()
    }

    /// Returns the state of an open file, up to its present size.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read.
    pub(super) fn of_open(file: &mut dyn Content) -> Result<Self, FileError> {
        let meta = file.meta()?;
        if meta.size > DIGESTED {
            return Ok(Self::of_stamp(meta.stamp));
        }
        let mut digest = Digest::new();
        let mut piece = vec![0; CHUNK];
        let mut at = 0;
        while at < meta.size {
            let room = piece.len().min((meta.size - at) as usize);
            let filled = file.read_at(at, &mut piece[..room])?;
            if filled == 0 {
                break;
            }
            digest.feed(&piece[..filled]);
            at += filled as u64;
        }
        Ok(digest.hash())
    }

    /// Returns the state of a larger file: `stat-` and a digest of its identity, size and times.
    pub(super) fn of_stamp(stamp: Stamp) -> Self {
        let mut hasher = Sha256::new();
        for part in stamp.0 {
            hasher.update(part.to_le_bytes());
        }
        Self(format!("stat-{}", hex_prefix(hasher)))
    }

    /// Checks that this has the form of a state that reads return.
    ///
    /// # Errors
    /// [`FilesError::Argument`] if it does not.
    pub(super) fn is_one(&self) -> Result<(), FilesError> {
        let digits = self.0.strip_prefix("stat-").unwrap_or(&self.0);
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 2 * TOLD_BYTES && digits.bytes().all(is_digit) {
            return Ok(());
        }
        Err(FilesError::Argument {
            argument: "hash",
            why: "no read gives such a hash: bring it as the last read of this file gave it, all 32 digits".to_owned(),
        })
    }

    /// Returns a state that no file has, for a larger file that was replaced before its metadata could be read.
    fn lost(content: &[u8]) -> Self {
        let Self(digest) = Self::of(content);
        Self(format!("stat-{digest}"))
    }
}

/// Formats the first half of a digest in hexadecimal.
fn hex_prefix(hasher: Sha256) -> String {
    hasher
        .finalize()
        .iter()
        .take(TOLD_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl LoadedFile {
    /// Returns the state of the file.
    pub(super) fn hash(&self) -> FileHash {
        if self.content.len() as u64 > DIGESTED {
            FileHash::of_stamp(self.meta.stamp)
        } else {
            FileHash::of(&self.content)
        }
    }

    /// Checks that the file is in the expected state.
    ///
    /// # Errors
    /// [`FilesError::Stale`], with the difference if the expected content is cached.
    pub(super) fn check(&self, context: Context<'_>, path: &Path, expect: Option<&FileHash>) -> Result<(), FilesError> {
        let Some(expected) = expect else { return Ok(()) };
        expected.is_one()?;
        let now = self.hash();
        if now == *expected {
            return Ok(());
        }
        let names = diff::Names::same(context.workspace, path);
        let diff = context.cache.get(expected);
        let diff = diff.and_then(|was| diff::of_contents(&names, &was, &self.content));
        Err(FilesError::Stale {
            path: path.to_path_buf(),
            now,
            diff: diff.map(|diff| diff.text),
        })
    }
}

/// Returns the state of a file that was just written. It does not fail, since the change is made: if the content is
/// too large for a digest and the metadata cannot be read any more, the result is a state that no file has, so that a
/// later request which expects it is told that the file has changed.
pub(super) fn written(write_target: &dyn WriteTarget, content: &[u8]) -> FileHash {
    if content.len() as u64 <= DIGESTED {
        return FileHash::of(content);
    }
    resolve::stamp(write_target).map_or_else(|_| FileHash::lost(content), FileHash::of_stamp)
}
