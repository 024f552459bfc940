//! Files of this host: its own, confined to a workspace, or those that a sandbox sees, through a
//! descriptor of the sandbox's root.
//!
//! ```text
//! path ──openat2──► handle ──its own path, its file system──► may it be reached? ──► used by the handle
//! ```
//!
//! Nothing is looked at by one path and used by another: a path leads to a descriptor that has no
//! effect (`O_PATH`), the descriptor tells where it really is, and reading, writing and removing go
//! from there by descriptors and single names. Who swaps a directory for a link meanwhile has moved
//! what a path means, and not what is held.
//!
//! What is never reached this way: files of the kernel (`/proc`, `/sys`…), which are no files on a disk
//! and tell of the process that reads them; and whatever is mounted over, in a sandbox, to hide or to
//! protect it ([`look`]).
//!
//! Kernel: `openat2` (5.6), `statx` with mounts (5.8).

mod error;
mod stat;
mod node;
mod dropped_caps;
mod remove;
mod rename;
mod resolve;
mod write_target;
mod temporary;
mod view;
mod write;

pub(in crate::environment) use view::{Confined, View};

use std::path::Path;
use std::sync::Arc;

use node::HostNode;
use resolve::Located;
use write_target::HostWriteTarget;

use super::{FileError, Files, Links, Node, WriteTarget};

/// The files of a view.
#[derive(Debug)]
pub(in crate::environment) struct HostFiles {
    view: Arc<View>,
}

impl HostFiles {
    /// Those of this view.
    pub(in crate::environment) fn new(view: View) -> Self {
        Self { view: Arc::new(view) }
    }
}

impl Files for HostFiles {
    fn node(&self, path: &Path, links: Links) -> Result<Box<dyn Node>, FileError> {
        let _dropped = self.view.drop_caps()?;
        match self.view.locate(path, links)? {
            Located::There(handle) => Ok(Box::new(HostNode::new(Arc::clone(&self.view), handle))),
            Located::Missing { .. } => Err(FileError::NotFound(path.to_path_buf())),
        }
    }

    fn write_target(&self, path: &Path, links: Links) -> Result<Box<dyn WriteTarget>, FileError> {
        let _dropped = self.view.drop_caps()?;
        Ok(Box::new(HostWriteTarget::find(&self.view, path, links)?))
    }
}
