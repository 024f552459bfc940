//! What the gate is told of a change and of what is around it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling_gate::{Entry, Lead};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::Node;
use crate::rules::{Matcher, Rule};
use crate::scan::Found;
use crate::tree::{Layered, entry_of};

/// What the gate has to know beside the trees.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Paths in the workspace that the user's tools are led to from elsewhere.
    pub leads: Vec<Lead>,
    /// Directories outside to which links may lead.
    pub toolchains: Vec<PathBuf>,
    /// Paths in the workspace, relative to it, that decide what commands may do: they are held back whatever they are.
    pub fixed: Vec<PathBuf>,
    /// What the caller's policy holds back beside what the gate does.
    pub rules: Vec<Rule>,
    /// What of the workspace does not exist for commands. What they make there is held back, and is never a conflict.
    pub hidden: Option<Arc<dyn Matcher>>,
}

impl Surroundings {
    pub(crate) fn of_gate<'a>(
        &'a self,
        root: &'a Path,
        before: &'a Layered<'_>,
        after: &'a Layered<'_>,
    ) -> shieling_gate::Surroundings<'a> {
        shieling_gate::Surroundings {
            root,
            home: self.home.as_deref(),
            before,
            after,
            leads: &self.leads,
            toolchains: &self.toolchains,
        }
    }
}

/// One side of a change, as the gate has it.
pub(crate) fn entry(
    found: &Found<'_>,
    node: &Option<Node>,
    directory: Option<&Directory>,
) -> Result<Option<Entry>, ChangesError> {
    match (node, directory) {
        (Some(node), Some(directory)) => {
            let entry = entry_of(directory, found.name, node);
            entry.map(Some).doing("read", &found.change.path)
        }
        _ => Ok(None),
    }
}
