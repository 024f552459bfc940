//! What was copied out of a layer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::node::Node;

/// What went into a copy, with what is in the layer.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    /// As it is in the layer. `None`: nothing.
    pub(crate) same: Vec<(PathBuf, Option<Node>)>,
    /// Merged with what is in the workspace, so that the layer has another version.
    pub(crate) merged: Vec<(PathBuf, Option<Node>)>,
    /// Directories that stay as they are in the workspace, with the mode that they have in the layer.
    pub(crate) modes: Vec<(PathBuf, u32)>,
}

impl Copied {
    pub(crate) fn is_empty(&self) -> bool {
        self.same.is_empty() && self.merged.is_empty()
    }

    /// What was copied, as it is in the layer.
    pub(crate) fn layers(&self) -> BTreeMap<PathBuf, Option<Node>> {
        self.same.iter().chain(&self.merged).cloned().collect()
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.same.iter().chain(&self.merged).map(|(path, _)| path.as_path())
    }
}
