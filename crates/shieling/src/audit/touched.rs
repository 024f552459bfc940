//! The recorded part of a file operation: the operation, its paths and sizes, but not the contents.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use crate::request::{Digest, FileOp, Operation};

/// The largest number of paths in a record; the others are counted.
pub const MAX_PATHS: usize = 64;

/// A recorded file operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileRecord {
    /// The operation that was performed or requested.
    pub operation: Operation,
    /// The first [`MAX_PATHS`] paths, absolute and resolved as far as they exist; bytes that are not UTF-8 are
    /// replaced.
    pub paths: Vec<String>,
    /// The number of further paths.
    pub paths_omitted: usize,
    /// The size of the file that was read or written, once known.
    pub bytes: Option<u64>,
    /// The digest of the change, as shown to an approver.
    pub change_digest: Option<Digest>,
}

impl From<&FileOp> for FileRecord {
    fn from(op: &FileOp) -> Self {
        let mut seen = HashSet::new();
        let paths = op.touched().iter().map(|touched| touched.path.as_path());
        let paths: Vec<&Path> = paths.filter(|path| seen.insert(*path)).collect();
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

/// Returns the path as text; bytes that are not UTF-8 are replaced.
pub(super) fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
