//! The state of a content as a short text, and whether a file is still in the state that was expected.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::reach::{self, CHUNK, Held};
use super::{Context, FileHash, FilesError, diff};
use crate::environment::{Content, FileError, Spot, Stamp};

/// The largest content of which every byte is digested, in bytes.
pub(super) const DIGESTED: u64 = 64 << 20;

/// How much of a SHA-256 is told: 128 bits, which no two files of a workspace share by chance.
const TOLD_BYTES: usize = 16;

/// Digests a content piece by piece.
pub(super) struct Digest(Sha256);

impl Digest {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    /// The next piece.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The state of a file that holds just this: the first 32 hexadecimal digits of its SHA-256.
    pub(super) fn hash(self) -> FileHash {
        FileHash(told(self.0))
    }
}

impl FileHash {
    /// The state of a file of at most 64 MiB that holds this.
    pub(super) fn of(content: &[u8]) -> Self {
        let mut digest = Digest::new();
        digest.feed(content);
        digest.hash()
    }

    /// The state of an open file, up to the size that it has now.
    ///
    /// # Errors
    /// [`FileError`].
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

    /// The state of a larger file: `stat-`, and a digest of its identity, size and times.
    pub(super) fn of_stamp(stamp: Stamp) -> Self {
        let mut hasher = Sha256::new();
        for part in stamp.0 {
            hasher.update(part.to_le_bytes());
        }
        Self(format!("stat-{}", told(hasher)))
    }

    /// Whether a read can have given it.
    ///
    /// # Errors
    /// [`FilesError::Argument`].
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

    /// The state of a larger file that was gone, or another one, before it could be looked at.
    fn lost(content: &[u8]) -> Self {
        let Self(digest) = Self::of(content);
        Self(format!("stat-{digest}"))
    }
}

/// The first half of a digest, in hexadecimal.
fn told(hasher: Sha256) -> String {
    hasher
        .finalize()
        .iter()
        .take(TOLD_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Held {
    /// The state of the file that this was read from.
    pub(super) fn hash(&self) -> FileHash {
        if self.content.len() as u64 > DIGESTED {
            FileHash::of_stamp(self.meta.stamp)
        } else {
            FileHash::of(&self.content)
        }
    }

    /// Whether this is what was expected.
    ///
    /// # Errors
    /// [`FilesError::Stale`], with what has changed if that is remembered.
    pub(super) fn check(&self, context: Context<'_>, path: &Path, expect: Option<&FileHash>) -> Result<(), FilesError> {
        let Some(expected) = expect else { return Ok(()) };
        expected.is_one()?;
        let now = self.hash();
        if now == *expected {
            return Ok(());
        }
        let names = diff::Names::same(context.workspace, path);
        let diff = context.remembered.recall(expected);
        let diff = diff.and_then(|was| diff::of_contents(&names, &was, &self.content));
        Err(FilesError::Stale {
            path: path.to_path_buf(),
            now,
            diff: diff.map(|diff| diff.text),
        })
    }
}

/// The state of what was just put at a spot. It cannot fail, since the change is made: where a content is
/// too large to be digested as a state and what stands there cannot be looked at any more, the state is
/// one that no file has, so that who expects it is told that the file has changed.
pub(super) fn written(spot: &dyn Spot, content: &[u8]) -> FileHash {
    if content.len() as u64 <= DIGESTED {
        return FileHash::of(content);
    }
    reach::stamp(spot).map_or_else(|_| FileHash::lost(content), FileHash::of_stamp)
}
