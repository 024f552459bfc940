//! Changes of the tree. Each is atomic.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use imbl::OrdMap;

use super::fault::Room;
use super::host::Beneath;
use super::node::{Body, Id, Inode, ROOT};
use super::{DEEPEST, End, Follow, LONGEST_NAME, LONGEST_PATH, LockedTree, TreeError, fresh};

/// A path in an existing directory, to be written.
pub(crate) struct ResolvedTarget {
    pub(crate) parent: Id,
    /// The whole path, without links.
    pub(crate) path: String,
    /// The missing components; the last one is the name itself.
    pub(crate) names: Vec<String>,
}

impl ResolvedTarget {
    /// Returns the path of the existing directory.
    pub(crate) fn above(&self) -> &Path {
        Path::new(&self.path[..self.split().max(1)])
    }

    /// Returns the length of the existing directory's path; 0 for the root.
    fn split(&self) -> usize {
        self.path.len() - self.names.iter().map(|name| name.len() + 1).sum::<usize>()
    }
}

/// What to write.
#[derive(Clone, Copy)]
pub(crate) enum Write<'a> {
    Replace(&'a [u8]),
    Append(&'a [u8]),
}

impl LockedTree<'_> {
    /// Resolves a path to a write target. The root is none.
    pub(crate) fn write_target(&mut self, path: &Path, links: Follow) -> Result<ResolvedTarget, TreeError> {
        let walked = self.walk(path, links)?;
        match walked.end {
            End::There { id: ROOT, .. } => Err(TreeError::IsDirectory),
            End::There { parent, .. } => {
                let name = walked.path.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(ResolvedTarget {
                    parent,
                    names: vec![name],
                    path: walked.path,
                })
            }
            End::Missing { parent, names } => Ok(ResolvedTarget {
                parent,
                names,
                path: walked.path,
            }),
        }
    }

    /// Returns the node at a target.
    pub(crate) fn current(&mut self, write_target: &ResolvedTarget) -> Result<Option<Id>, TreeError> {
        let mut here = write_target.parent;
        let mut end = write_target.split();
        for name in &write_target.names {
            let Some(&child) = self.children(here)?.get(name.as_str()) else {
                return Ok(None);
            };
            end += name.len() + 1;
            if self.hides(&write_target.path[..end], self.is_directory(child)) {
                return Ok(None);
            }
            here = child;
        }
        Ok(Some(here))
    }

    /// Writes a file, and creates it if it does not exist; with `parents`, also the missing directories. `largest`
    /// bounds the size of the file.
    pub(crate) fn write(
        &mut self,
        write_target: &ResolvedTarget,
        what: Write<'_>,
        parents: bool,
        mode: u32,
        largest: Option<u64>,
    ) -> Result<Id, TreeError> {
        self.may_change()?;
        let (Write::Replace(bytes) | Write::Append(bytes)) = what;
        if let Some(id) = self.current(write_target)? {
            self.fill(id, what, largest)?;
            return Ok(id);
        }
        self.admit_size(bytes.len() as u64, largest)?;
        self.admit_bytes(bytes.len() as u64, 0)?;
        let body = Body::File(Arc::new(bytes.to_vec()));
        self.make(write_target, body, parents, mode)
    }

    /// Creates a directory; with `parents`, also the missing ones above it.
    pub(crate) fn make_directory(
        &mut self,
        write_target: &ResolvedTarget,
        parents: bool,
        mode: u32,
    ) -> Result<(), TreeError> {
        self.may_change()?;
        match self.current(write_target)? {
            Some(id) if parents && self.is_directory(id) => Ok(()),
            Some(_) => Err(TreeError::Exists),
            None => self
                .make(write_target, Body::Directory(OrdMap::new()), parents, mode)
                .map(|_| ()),
        }
    }

    /// Creates a link.
    pub(crate) fn link(&mut self, write_target: &ResolvedTarget, target: &str) -> Result<(), TreeError> {
        self.may_change()?;
        if target.is_empty() {
            return Err(TreeError::NotFound);
        }
        if target.len() > LONGEST_PATH {
            return Err(TreeError::TooLong("it leads to more than 4,096 bytes"));
        }
        if self.current(write_target)?.is_some() {
            return Err(TreeError::Exists);
        }
        self.make(write_target, Body::Link(target.into()), false, 0o777)
            .map(|_| ())
    }

    /// Mounts a folder of the host at a target that does not exist; with `single`, without files that have several
    /// names.
    pub(crate) fn lay(&mut self, write_target: &ResolvedTarget, folder: &Path, single: bool) -> std::io::Result<()> {
        let body = Body::HostDirectory(Beneath::folder(folder, single)?);
        self.make(write_target, body, true, 0o755)
            .map(|_| ())
            .map_err(|fault| fault.to_io())
    }

    /// Removes the node at a target; with `recursive`, everything below it.
    pub(crate) fn remove(&mut self, write_target: &ResolvedTarget, recursive: bool) -> Result<(), TreeError> {
        self.may_change()?;
        let id = self.current(write_target)?.ok_or(TreeError::NotFound)?;
        self.may_leave(id, &write_target.path)?;
        if self.is_directory(id) && !recursive && !self.children(id)?.is_empty() {
            return Err(TreeError::NotEmpty);
        }
        self.unhook(write_target);
        self.drop_all(id);
        Ok(())
    }

    /// Moves a node to another target. With `replace`, a file replaces a file, and a directory an empty directory.
    pub(crate) fn rename(
        &mut self,
        from: &ResolvedTarget,
        to: &ResolvedTarget,
        replace: bool,
        parents: bool,
    ) -> Result<(), TreeError> {
        self.may_change()?;
        let id = self.current(from)?.ok_or(TreeError::NotFound)?;
        if from.path == to.path {
            return if replace { Ok(()) } else { Err(TreeError::Exists) };
        }
        self.may_leave(id, &from.path)?;
        let directory = self.is_directory(id);
        let below = to
            .path
            .strip_prefix(&*from.path)
            .is_some_and(|rest| rest.starts_with('/'));
        if directory && below {
            return Err(TreeError::BadName("a directory cannot be moved into itself"));
        }
        if self.hides(&to.path, directory) {
            return Err(TreeError::Hidden);
        }
        let there = self.current(to)?;
        if let Some(there) = there {
            match (directory, self.is_directory(there)) {
                _ if !replace => return Err(TreeError::Exists),
                (true, false) => return Err(TreeError::NotADirectory),
                (false, true) => return Err(TreeError::IsDirectory),
                (true, true) if !self.children(there)?.is_empty() => return Err(TreeError::NotEmpty),
                (true, true) => self.may_leave(there, &to.path)?,
                (false, false) => {}
            }
        }
        self.admit_name(to)?;
        let parent = self.parent_of(to, parents)?;
        if let Some(there) = there {
            self.unhook(to);
            self.drop_all(there);
        }
        self.unhook(from);
        self.hook(parent, last(to), id);
        Ok(())
    }

    /// Copies a file. The copies share the content until one of them changes.
    pub(crate) fn copy(&mut self, from: Id, to: &ResolvedTarget, largest: Option<u64>) -> Result<(), TreeError> {
        self.may_change()?;
        if self.current(to)? == Some(from) {
            return Ok(());
        }
        let mode = self.node(from)?.mode;
        let content = self.content(from)?;
        self.write(to, Write::Replace(&content), false, mode, largest)
            .map(|_| ())
    }

    /// Sets the mode.
    pub(crate) fn set_mode(&mut self, id: Id, mode: u32) -> Result<(), TreeError> {
        self.may_change()?;
        self.node_mut(id)?.mode = mode & 0o7777;
        Ok(())
    }

    /// Sets the time of the last change.
    pub(crate) fn set_modified(&mut self, id: Id, time: SystemTime) -> Result<(), TreeError> {
        self.may_change()?;
        if matches!(self.node(id)?.body, Body::HostFile(_)) {
            self.fill(id, Write::Append(&[]), None)?;
        }
        self.node_mut(id)?.modified = time;
        Ok(())
    }

    fn may_change(&self) -> Result<(), TreeError> {
        if self.rules.readonly {
            Err(TreeError::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// Checks that a node may be moved or removed: the workspace stays, and hidden nodes must not become visible or
    /// be removed with the directory that contains them.
    fn may_leave(&mut self, id: Id, path: &str) -> Result<(), TreeError> {
        let workspace = &self.rules.workspace;
        let holds = workspace == path || workspace.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        if holds || self.rules.hidden.is_some() && self.holds_hidden(id, path)? {
            return Err(TreeError::Busy);
        }
        Ok(())
    }

    fn holds_hidden(&mut self, id: Id, path: &str) -> Result<bool, TreeError> {
        if !self.is_directory(id) {
            return Ok(false);
        }
        for (name, child) in self.children(id)?.clone() {
            let path = format!("{path}/{name}");
            if self.hides(&path, self.is_directory(child)) || self.holds_hidden(child, &path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn admit_size(&self, size: u64, largest: Option<u64>) -> Result<(), TreeError> {
        match largest {
            Some(largest) if size > largest => Err(TreeError::TooLarge(largest)),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that there is room for `more` bytes after `less` bytes were freed.
    fn admit_bytes(&self, more: u64, less: u64) -> Result<(), TreeError> {
        let after = self.state.bytes.saturating_sub(less).saturating_add(more);
        if more > less && after > self.rules.bytes {
            return Err(TreeError::NoRoom(Room::Bytes(self.rules.bytes)));
        }
        Ok(())
    }

    fn admit_name(&self, write_target: &ResolvedTarget) -> Result<(), TreeError> {
        if write_target.path.len() > LONGEST_PATH {
            return Err(TreeError::TooLong("it is longer than 4,096 bytes"));
        }
        if write_target.names.iter().any(|name| name.len() > LONGEST_NAME) {
            return Err(TreeError::TooLong("a name in it is longer than 255 bytes"));
        }
        if write_target.path.matches('/').count() > DEEPEST {
            return Err(TreeError::TooLong("it is more than 200 directories deep"));
        }
        if write_target.names.iter().any(|name| name.contains('\0')) {
            return Err(TreeError::BadName("a name in it holds a NUL byte"));
        }
        Ok(())
    }

    fn make(&mut self, write_target: &ResolvedTarget, body: Body, parents: bool, mode: u32) -> Result<Id, TreeError> {
        self.admit_name(write_target)?;
        let directory = matches!(body, Body::Directory(_) | Body::HostDirectory(_));
        if self.hides(&write_target.path, directory) {
            return Err(TreeError::Hidden);
        }
        let parent = self.parent_of(write_target, parents)?;
        self.add(parent, last(write_target), body, mode)
    }

    /// Returns the directory of a target, and creates missing ones.
    fn parent_of(&mut self, write_target: &ResolvedTarget, parents: bool) -> Result<Id, TreeError> {
        let missing = &write_target.names[..write_target.names.len() - 1];
        // Nothing is created until everything can be.
        let mut end = write_target.split();
        for name in missing {
            end += name.len() + 1;
            if self.hides(&write_target.path[..end], true) {
                return Err(TreeError::Hidden);
            }
        }
        let mut here = write_target.parent;
        for name in missing {
            here = match self.children(here)?.get(name.as_str()).copied() {
                Some(child) => child,
                None if parents => self.add(here, name, Body::Directory(OrdMap::new()), 0o755)?,
                None => return Err(TreeError::NotFound),
            };
        }
        // Another node may exist there by now.
        self.children(here)?;
        Ok(here)
    }

    fn add(&mut self, parent: Id, name: &str, body: Body, mode: u32) -> Result<Id, TreeError> {
        if self.state.nodes.len() as u64 >= self.rules.files {
            return Err(TreeError::NoRoom(Room::Files(self.rules.files)));
        }
        let id = fresh();
        let node = Inode {
            body,
            mode,
            modified: (self.rules.clock)(),
            version: fresh(),
        };
        self.state.bytes += node.bytes_in_memory();
        self.state.nodes.insert(id, node);
        self.hook(parent, name, id);
        Ok(id)
    }

    /// Writes to an existing file.
    fn fill(&mut self, id: Id, what: Write<'_>, largest: Option<u64>) -> Result<(), TreeError> {
        let node = self.node(id)?;
        let before = match &node.body {
            Body::File(content) => content.len() as u64,
            Body::HostFile(_) => 0,
            Body::Directory(_) | Body::HostDirectory(_) => return Err(TreeError::IsDirectory),
            Body::Link(_) => return Err(TreeError::Loop),
        };
        let now = (self.rules.clock)();
        match what {
            Write::Replace(bytes) => {
                self.admit_size(bytes.len() as u64, largest)?;
                self.admit_bytes(bytes.len() as u64, before)?;
                self.node_mut(id)?.body = Body::File(Arc::new(bytes.to_vec()));
            }
            Write::Append(bytes) => {
                let beneath = match &node.body {
                    Body::HostFile(beneath) => Some(beneath.read(self.rules.bytes)?),
                    Body::File(_) | Body::Directory(_) | Body::HostDirectory(_) | Body::Link(_) => None,
                };
                let after = beneath.as_ref().map_or(before, |content| content.len() as u64) + bytes.len() as u64;
                self.admit_size(after, largest)?;
                self.admit_bytes(after, before)?;
                let node = self.node_mut(id)?;
                if let Some(content) = beneath {
                    node.body = Body::File(Arc::new(content));
                }
                if let Body::File(content) = &mut node.body {
                    Arc::make_mut(content).extend_from_slice(bytes);
                }
            }
        }
        let after = self.node(id)?.bytes_in_memory();
        self.state.bytes = self.state.bytes - before + after;
        self.node_mut(id)?.modified = now;
        Ok(())
    }

    /// Returns a node that is about to be replaced.
    fn node_mut(&mut self, id: Id) -> Result<&mut Inode, TreeError> {
        let node = self.state.nodes.get_mut(&id).ok_or(TreeError::NotFound)?;
        node.version = fresh();
        Ok(node)
    }

    fn hook(&mut self, parent: Id, name: &str, id: Id) {
        self.change_names(parent, |names| {
            names.insert(name.into(), id);
        });
    }

    fn unhook(&mut self, write_target: &ResolvedTarget) {
        let mut here = write_target.parent;
        for name in &write_target.names[..write_target.names.len() - 1] {
            match self.children(here).map(|names| names.get(name.as_str()).copied()) {
                Ok(Some(child)) => here = child,
                Ok(None) | Err(_) => return,
            }
        }
        self.change_names(here, |names| {
            names.remove(last(write_target));
        });
    }

    fn change_names(&mut self, directory: Id, change: impl FnOnce(&mut OrdMap<Arc<str>, Id>)) {
        let now = (self.rules.clock)();
        if let Ok(node) = self.node_mut(directory) {
            node.modified = now;
            if let Body::Directory(names) = &mut node.body {
                change(names);
            }
        }
    }

    fn drop_all(&mut self, id: Id) {
        let Some(node) = self.state.nodes.remove(&id) else {
            return;
        };
        self.state.bytes -= node.bytes_in_memory();
        if let Body::Directory(names) = node.body {
            for (_, child) in names {
                self.drop_all(child);
            }
        }
    }
}

fn last(write_target: &ResolvedTarget) -> &str {
    write_target.names.last().map_or("", String::as_str)
}
