//! From a path that was asked for to what stands there, past the gate.

use std::path::Path;

use super::{Context, FilesError};
use crate::environment::{FileError, Kind, Links, Node};

impl Context<'_> {
    /// What stands at a path, if it may be read: the gate is asked about the name itself and about where
    /// it leads.
    ///
    /// # Errors
    /// [`FileError::NotFound`] with the path as it was asked for if one of the two is hidden, and others.
    pub(crate) fn reach(&self, asked: &Path, links: Links) -> Result<Box<dyn Node>, FilesError> {
        let path = self.absolute(asked);
        let named = self.files.node(&path, Links::Keep)?;
        let named = self.visible(named, asked)?;
        if links == Links::Keep || named.meta()?.kind != Kind::Link {
            return self.readable(named);
        }
        let led = self.files.node(&path, Links::Follow)?;
        self.visible(led, asked).and_then(|led| self.readable(led))
    }

    /// Whether what a handle stands for is hidden.
    pub(crate) fn hides(&self, node: &dyn Node) -> Result<bool, FileError> {
        Ok(self.gate.hides(node.path(), node.meta()?.kind == Kind::Directory))
    }

    fn visible(&self, node: Box<dyn Node>, asked: &Path) -> Result<Box<dyn Node>, FilesError> {
        match self.hides(&*node)? {
            true => Err(FileError::NotFound(asked.to_path_buf()).into()),
            false => Ok(node),
        }
    }

    fn readable(&self, node: Box<dyn Node>) -> Result<Box<dyn Node>, FilesError> {
        self.gate.reads(node.path()).map(|()| node)
    }
}
