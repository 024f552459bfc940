//! Gives what was copied into a layer the owners and the attributes of what it replaces.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::{Kind, Node};
use crate::scan::Found;

/// The owners of a workspace's files and directories.
pub(crate) struct Owners<'w> {
    workspace: &'w Directory,
    /// The owner of what is new in a directory.
    of_new: HashMap<PathBuf, (Uid, Gid)>,
    can_give: bool,
}

impl<'w> Owners<'w> {
    pub(crate) fn new(workspace: &'w Directory) -> Self {
        Self {
            workspace,
            of_new: HashMap::new(),
            can_give: rustix::process::geteuid().is_root(),
        }
    }

    /// Gives what is in the layer the attributes of the file that it replaces, and, as root, the owner. A file whose
    /// owner cannot be changed stays as it is.
    pub(crate) fn take_over(&mut self, found: &Found<'_>) -> Result<(), ChangesError> {
        let change = found.change;
        let path = &change.path;
        let (Some(new), Some(upper)) = (&change.new, found.upper) else {
            return Ok(());
        };
        if new.is_directory() && change.old.as_ref().is_some_and(Node::is_directory) {
            return Ok(());
        }
        let replaced = change.old.as_ref().zip(found.workspace);
        if let Some((old, workspace)) = replaced
            && old.kind == Kind::File
            && new.kind == Kind::File
        {
            upper
                .take_attributes(found.name, workspace, new.mode)
                .doing("copy the attributes of", path)?;
        }
        if !self.can_give {
            return Ok(());
        }
        let owner = match replaced {
            Some((_, workspace)) => workspace.owner_of(found.name).doing("look at", path)?,
            None => None,
        };
        let owner = match owner {
            Some(owner) => owner,
            None => self.of_new_in(path.parent().unwrap_or(Path::new("")))?,
        };
        // Where it cannot be given: the owner is compared before the change is applied.
        upper.give(found.name, owner, new).doing("set the owner of", path)
    }

    /// The owner of the nearest directory that the workspace has of these.
    fn of_new_in(&mut self, directory: &Path) -> Result<(Uid, Gid), ChangesError> {
        if let Some(owner) = self.of_new.get(directory) {
            return Ok(*owner);
        }
        let there = match directory.as_os_str().is_empty() {
            true => Some(self.workspace.owner().doing("look at", directory)?),
            false => match self.workspace.parent_of(directory).doing("open", directory)? {
                Some((above, name)) => {
                    let is_directory = above.look(name).doing("look at", directory)?;
                    match is_directory.is_some_and(|node| node.is_directory()) {
                        true => above.owner_of(name).doing("look at", directory)?,
                        false => None,
                    }
                }
                None => None,
            },
        };
        let owner = match there {
            Some(owner) => owner,
            None => self.of_new_in(directory.parent().unwrap_or(Path::new("")))?,
        };
        self.of_new.insert(directory.to_path_buf(), owner);
        Ok(owner)
    }
}
