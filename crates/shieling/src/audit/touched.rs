//! What a record says of an operation on files: which, and how much; never what is in them.

use std::path::Path;

use serde::Serialize;

use super::{Record, lossy};
use crate::request::{Digest, FileOp, Operation};

/// The largest number of paths that a record names; the rest is counted.
pub const MAX_PATHS: usize = 64;

/// An operation on files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilesTouched {
    /// What was done, or was to be.
    pub operation: Operation,
    /// The first [`MAX_PATHS`] paths, absolute and with no link in them, as far as they were found;
    /// bytes that are not UTF-8 are replaced.
    pub paths: Vec<String>,
    /// How many more there were.
    pub paths_omitted: usize,
    /// The size of the file that was read, or is there now, once that is known.
    pub bytes: Option<u64>,
    /// The digest of what somebody who is asked is shown of the change.
    pub change_digest: Option<Digest>,
}

impl From<&FileOp> for FilesTouched {
    fn from(op: &FileOp) -> Self {
        let mut paths: Vec<&Path> = Vec::new();
        for touched in op.touched() {
            if !paths.contains(&touched.path.as_path()) {
                paths.push(&touched.path);
            }
        }
        let named = &paths[..paths.len().min(MAX_PATHS)];
        Self {
            operation: op.operation(),
            paths: named.iter().map(|path| lossy(path)).collect(),
            paths_omitted: paths.len() - named.len(),
            bytes: None,
            change_digest: op.change().map(|change| Digest::of(change.as_bytes())),
        }
    }
}

impl Record {
    /// Has the record report this operation on files.
    pub(crate) fn set_files(&mut self, op: &FileOp) {
        self.file = Some(op.into());
    }
}
