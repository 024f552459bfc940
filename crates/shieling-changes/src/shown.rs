//! What a person is shown of a set before they decide about it, and what tells whether it is that still.
//!
//! Both are made of the same copy of what is new, which nobody else can change. What was there before is read in the
//! workspace, where a command may run: the digest is of the text that was shown as well, and both are made once more
//! before anything is committed.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::diff::{Diff, DiffLimits};
use crate::directory::{Directory, fill, next_data};
use crate::error::{ChangesError, While as _};
use crate::fingerprint::Fingerprint;
use crate::node::{Kind, Node};
use crate::scan::{Action, Descent, Found};
use crate::set::ChangeSet;

/// How much of a file is read at a time.
const PIECE: usize = 64 << 10;

/// A part of a set, as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What changes, with control characters escaped.
    pub diff: Diff,
    /// Whether that is not all of it, or contents are told by their sizes alone.
    pub is_cut: bool,
    /// The paths, relative to the workspace, and what happens to each.
    pub paths: Vec<(PathBuf, Action)>,
    /// Whether it cannot be committed as it is: the workspace has changed in the same places, or something of it cannot
    /// be copied.
    pub is_blocked: bool,
    /// What tells it from anything else.
    pub fingerprint: Fingerprint,
}

impl Shown {
    pub(crate) fn of(copy: &ChangeSet, is_blocked: bool, limits: DiffLimits) -> Result<Self, ChangesError> {
        // With all contents: they may have another meaning at another name.
        let diff = copy.diff_with(&[], limits, &[])?;
        let mut paths = Vec::new();
        copy.for_each(&mut |change| {
            if change.action != Action::Touched {
                paths.push((change.path.clone(), change.action));
            }
            Ok(())
        })?;
        let fingerprint = Fingerprint::of_text(copy, &diff.text)?;
        Ok(Self {
            is_cut: diff.left_out > 0 || diff.sizes_only > 0 || diff.text.len() >= limits.bytes,
            diff,
            paths,
            is_blocked,
            fingerprint,
        })
    }
}

impl Fingerprint {
    /// That of a copy and of what is shown of it now, within these bounds.
    pub(crate) fn of(copy: &ChangeSet, limits: DiffLimits) -> Result<Self, ChangesError> {
        Self::of_text(copy, &copy.diff_with(&[], limits, &[])?.text)
    }

    fn of_text(copy: &ChangeSet, shown: &str) -> Result<Self, ChangesError> {
        let mut hash = Sha256::new();
        field(&mut hash, shown.as_bytes());
        copy.scan(&mut |found| {
            let change = found.change;
            field(&mut hash, change.path.as_os_str().as_encoded_bytes());
            hash.update([change.action as u8]);
            if change.action != Action::Touched {
                side(&mut hash, found, change.old.as_ref(), found.workspace)?;
                side(&mut hash, found, change.new.as_ref(), found.upper)?;
            }
            Ok(Descent::Enter)
        })?;
        let sha256: [u8; 32] = hash.finalize().into();
        Ok(Self::from(sha256))
    }
}

fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// One side of a change.
fn side(
    hash: &mut Sha256,
    found: &Found<'_>,
    node: Option<&Node>,
    directory: Option<&Directory>,
) -> Result<(), ChangesError> {
    let Some(node) = node else {
        hash.update([0]);
        return Ok(());
    };
    hash.update([1, node.kind as u8]);
    hash.update(node.mode.to_le_bytes());
    let (path, Some(directory)) = (&found.change.path, directory) else {
        return Ok(());
    };
    if node.kind != Kind::Symlink {
        let attributes = directory
            .attributes_of(found.name)
            .doing("read the attributes of", path)?;
        hash.update((attributes.len() as u64).to_le_bytes());
        for (name, value) in &attributes {
            field(hash, name.as_encoded_bytes());
            field(hash, value);
        }
    }
    match node.kind {
        Kind::File => {
            let file = directory.read(found.name).doing("read", path)?;
            let mut piece = vec![0; PIECE];
            let mut at = 0_u64;
            // Pieces of zeros alone are left out, whether they are holes or not: a hole may be longer than could ever be
            // read, and where there is one a copy may have zeros.
            while let Some(start) = next_data(&file, at).doing("read", path)? {
                at = start - start % PIECE as u64;
                let read = fill(&file, &mut piece, at).doing("read", path)?;
                let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
                    break;
                };
                if bytes.iter().any(|byte| *byte != 0) {
                    hash.update(at.to_le_bytes());
                    field(hash, bytes);
                }
                at += PIECE as u64;
            }
            hash.update(u64::MAX.to_le_bytes());
            hash.update(Node::of(&file).doing("look at", path)?.size.to_le_bytes());
        }
        Kind::Symlink => {
            let target = directory.read_link(found.name).doing("read", path)?;
            field(hash, target.as_os_str().as_encoded_bytes());
        }
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::Device => {}
    }
    Ok(())
}
