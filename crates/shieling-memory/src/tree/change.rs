//! Changes of the files. Each is done whole or not at all, before anybody else looks.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use imbl::OrdMap;

use super::fault::Room;
use super::host::Beneath;
use super::node::{Body, Id, Inode, ROOT};
use super::{DEEPEST, End, Fault, Follow, Inside, LONGEST_NAME, LONGEST_PATH, fresh};

/// A name in a directory that is there, and what stands there by now.
pub(crate) struct Spot {
    pub(crate) parent: Id,
    /// Its whole path, without links.
    pub(crate) path: String,
    /// What is missing of the way, the name itself last; one name if nothing else is.
    pub(crate) names: Vec<String>,
}

impl Spot {
    /// The path of the directory that is there.
    pub(crate) fn above(&self) -> &Path {
        Path::new(&self.path[..self.split().max(1)])
    }

    /// How much of its path is the directory that is there: nothing of it if that is the root.
    fn split(&self) -> usize {
        self.path.len() - self.names.iter().map(|name| name.len() + 1).sum::<usize>()
    }
}

/// What is to be written.
#[derive(Clone, Copy)]
pub(crate) enum Write<'a> {
    Replace(&'a [u8]),
    Append(&'a [u8]),
}

impl Inside<'_> {
    /// The spot that a path names. The root is none.
    pub(crate) fn spot(&mut self, path: &Path, links: Follow) -> Result<Spot, Fault> {
        let walked = self.walk(path, links)?;
        match walked.end {
            End::There { id: ROOT, .. } => Err(Fault::IsDirectory),
            End::There { parent, .. } => {
                let name = walked.path.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(Spot {
                    parent,
                    names: vec![name],
                    path: walked.path,
                })
            }
            End::Missing { parent, names } => Ok(Spot {
                parent,
                names,
                path: walked.path,
            }),
        }
    }

    /// What stands at a spot.
    pub(crate) fn current(&mut self, spot: &Spot) -> Result<Option<Id>, Fault> {
        let mut here = spot.parent;
        let mut end = spot.split();
        for name in &spot.names {
            let Some(&child) = self.children(here)?.get(name.as_str()) else {
                return Ok(None);
            };
            end += name.len() + 1;
            if self.hides(&spot.path[..end], self.is_directory(child)) {
                return Ok(None);
            }
            here = child;
        }
        Ok(Some(here))
    }

    /// Writes to the file at a spot, and makes it if it is not there (and, `parents`, what is missing of
    /// the way to it). `largest` is what this file may grow to.
    pub(crate) fn write(
        &mut self,
        spot: &Spot,
        what: Write<'_>,
        parents: bool,
        mode: u32,
        largest: Option<u64>,
    ) -> Result<Id, Fault> {
        self.may_change()?;
        let (Write::Replace(bytes) | Write::Append(bytes)) = what;
        if let Some(id) = self.current(spot)? {
            self.fill(id, what, largest)?;
            return Ok(id);
        }
        self.admit_size(bytes.len() as u64, largest)?;
        self.admit_bytes(bytes.len() as u64, 0)?;
        let body = Body::File(Arc::new(bytes.to_vec()));
        self.make(spot, body, parents, mode)
    }

    /// Makes a directory, and, `parents`, those that are missing on the way.
    pub(crate) fn make_directory(&mut self, spot: &Spot, parents: bool, mode: u32) -> Result<(), Fault> {
        self.may_change()?;
        match self.current(spot)? {
            Some(id) if parents && self.is_directory(id) => Ok(()),
            Some(_) => Err(Fault::Exists),
            None => self
                .make(spot, Body::Directory(OrdMap::new()), parents, mode)
                .map(|_| ()),
        }
    }

    /// Makes a link.
    pub(crate) fn link(&mut self, spot: &Spot, target: &str) -> Result<(), Fault> {
        self.may_change()?;
        if target.is_empty() {
            return Err(Fault::NotFound);
        }
        if target.len() > LONGEST_PATH {
            return Err(Fault::TooLong("it leads to more than 4,096 bytes"));
        }
        if self.current(spot)?.is_some() {
            return Err(Fault::Exists);
        }
        self.make(spot, Body::Link(target.into()), false, 0o777).map(|_| ())
    }

    /// Lays a folder of the host beneath a spot where nothing is: `single`, without its files that have
    /// more names than one.
    pub(crate) fn lay(&mut self, spot: &Spot, folder: &Path, single: bool) -> std::io::Result<()> {
        let body = Body::HostDirectory(Beneath::folder(folder, single)?);
        self.make(spot, body, true, 0o755)
            .map(|_| ())
            .map_err(|fault| fault.to_io())
    }

    /// Removes what stands at a spot: with all that is in it, if `recursive`.
    pub(crate) fn remove(&mut self, spot: &Spot, recursive: bool) -> Result<(), Fault> {
        self.may_change()?;
        let id = self.current(spot)?.ok_or(Fault::NotFound)?;
        self.may_leave(id, &spot.path)?;
        if self.is_directory(id) && !recursive && !self.children(id)?.is_empty() {
            return Err(Fault::NotEmpty);
        }
        self.unhook(spot);
        self.drop_all(id);
        Ok(())
    }

    /// Moves what stands at a spot to another one. What stands there makes room, if `replace`: a file
    /// for what is none, an empty directory for a directory.
    pub(crate) fn rename(&mut self, from: &Spot, to: &Spot, replace: bool, parents: bool) -> Result<(), Fault> {
        self.may_change()?;
        let id = self.current(from)?.ok_or(Fault::NotFound)?;
        if from.path == to.path {
            return if replace { Ok(()) } else { Err(Fault::Exists) };
        }
        self.may_leave(id, &from.path)?;
        let directory = self.is_directory(id);
        let below = to
            .path
            .strip_prefix(&*from.path)
            .is_some_and(|rest| rest.starts_with('/'));
        if directory && below {
            return Err(Fault::BadName("a directory cannot be moved into itself"));
        }
        if self.hides(&to.path, directory) {
            return Err(Fault::Hidden);
        }
        let there = self.current(to)?;
        if let Some(there) = there {
            match (directory, self.is_directory(there)) {
                _ if !replace => return Err(Fault::Exists),
                (true, false) => return Err(Fault::NotADirectory),
                (false, true) => return Err(Fault::IsDirectory),
                (true, true) if !self.children(there)?.is_empty() => return Err(Fault::NotEmpty),
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

    /// Copies a file, sharing its content until one of them is changed.
    pub(crate) fn copy(&mut self, from: Id, to: &Spot, largest: Option<u64>) -> Result<(), Fault> {
        self.may_change()?;
        if self.current(to)? == Some(from) {
            return Ok(());
        }
        let mode = self.node(from)?.mode;
        let content = self.content(from)?;
        self.write(to, Write::Replace(&content), false, mode, largest)
            .map(|_| ())
    }

    /// Changes what may be done with it.
    pub(crate) fn set_mode(&mut self, id: Id, mode: u32) -> Result<(), Fault> {
        self.may_change()?;
        self.node_mut(id)?.mode = mode & 0o7777;
        Ok(())
    }

    /// Changes when it was changed last.
    pub(crate) fn set_modified(&mut self, id: Id, time: SystemTime) -> Result<(), Fault> {
        self.may_change()?;
        if matches!(self.node(id)?.body, Body::HostFile(_)) {
            self.fill(id, Write::Append(&[]), None)?;
        }
        self.node_mut(id)?.modified = time;
        Ok(())
    }

    fn may_change(&self) -> Result<(), Fault> {
        if self.rules.readonly {
            Err(Fault::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// Whether it may be taken away from its path: the workspace stays, and what is hidden does not come
    /// to light, or go, with the directory it is in.
    fn may_leave(&mut self, id: Id, path: &str) -> Result<(), Fault> {
        let workspace = &self.rules.workspace;
        let holds = workspace == path || workspace.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        if holds || self.rules.hidden.is_some() && self.holds_hidden(id, path)? {
            return Err(Fault::Busy);
        }
        Ok(())
    }

    fn holds_hidden(&mut self, id: Id, path: &str) -> Result<bool, Fault> {
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

    fn admit_size(&self, size: u64, largest: Option<u64>) -> Result<(), Fault> {
        match largest {
            Some(largest) if size > largest => Err(Fault::TooLarge(largest)),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether there is room for so many bytes more, once so many are given back.
    fn admit_bytes(&self, more: u64, less: u64) -> Result<(), Fault> {
        let after = self.state.bytes.saturating_sub(less).saturating_add(more);
        if more > less && after > self.rules.bytes {
            return Err(Fault::NoRoom(Room::Bytes(self.rules.bytes)));
        }
        Ok(())
    }

    fn admit_name(&self, spot: &Spot) -> Result<(), Fault> {
        if spot.path.len() > LONGEST_PATH {
            return Err(Fault::TooLong("it is longer than 4,096 bytes"));
        }
        if spot.names.iter().any(|name| name.len() > LONGEST_NAME) {
            return Err(Fault::TooLong("a name in it is longer than 255 bytes"));
        }
        if spot.path.matches('/').count() > DEEPEST {
            return Err(Fault::TooLong("it is more than 200 directories deep"));
        }
        if spot.names.iter().any(|name| name.contains('\0')) {
            return Err(Fault::BadName("a name in it holds a NUL byte"));
        }
        Ok(())
    }

    fn make(&mut self, spot: &Spot, body: Body, parents: bool, mode: u32) -> Result<Id, Fault> {
        self.admit_name(spot)?;
        let directory = matches!(body, Body::Directory(_) | Body::HostDirectory(_));
        if self.hides(&spot.path, directory) {
            return Err(Fault::Hidden);
        }
        let parent = self.parent_of(spot, parents)?;
        self.add(parent, last(spot), body, mode)
    }

    /// The directory that a spot is in, made if it is missing.
    fn parent_of(&mut self, spot: &Spot, parents: bool) -> Result<Id, Fault> {
        let missing = &spot.names[..spot.names.len() - 1];
        // Nothing is made until all of it can be.
        let mut end = spot.split();
        for name in missing {
            end += name.len() + 1;
            if self.hides(&spot.path[..end], true) {
                return Err(Fault::Hidden);
            }
        }
        let mut here = spot.parent;
        for name in missing {
            here = match self.children(here)?.get(name.as_str()).copied() {
                Some(child) => child,
                None if parents => self.add(here, name, Body::Directory(OrdMap::new()), 0o755)?,
                None => return Err(Fault::NotFound),
            };
        }
        // Something else may stand there by now.
        self.children(here)?;
        Ok(here)
    }

    fn add(&mut self, parent: Id, name: &str, body: Body, mode: u32) -> Result<Id, Fault> {
        if self.state.nodes.len() as u64 >= self.rules.files {
            return Err(Fault::NoRoom(Room::Files(self.rules.files)));
        }
        let id = fresh();
        let node = Inode {
            body,
            mode,
            modified: (self.rules.clock)(),
            version: fresh(),
        };
        self.state.bytes += node.held();
        self.state.nodes.insert(id, node);
        self.hook(parent, name, id);
        Ok(id)
    }

    /// Writes to a file that is there.
    fn fill(&mut self, id: Id, what: Write<'_>, largest: Option<u64>) -> Result<(), Fault> {
        let node = self.node(id)?;
        let before = match &node.body {
            Body::File(content) => content.len() as u64,
            Body::HostFile(_) => 0,
            Body::Directory(_) | Body::HostDirectory(_) => return Err(Fault::IsDirectory),
            Body::Link(_) => return Err(Fault::Loop),
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
        let after = self.node(id)?.held();
        self.state.bytes = self.state.bytes - before + after;
        self.node_mut(id)?.modified = now;
        Ok(())
    }

    /// A node that is about to be another one.
    fn node_mut(&mut self, id: Id) -> Result<&mut Inode, Fault> {
        let node = self.state.nodes.get_mut(&id).ok_or(Fault::NotFound)?;
        node.version = fresh();
        Ok(node)
    }

    fn hook(&mut self, parent: Id, name: &str, id: Id) {
        self.change_names(parent, |names| {
            names.insert(name.into(), id);
        });
    }

    fn unhook(&mut self, spot: &Spot) {
        let mut here = spot.parent;
        for name in &spot.names[..spot.names.len() - 1] {
            match self.children(here).map(|names| names.get(name.as_str()).copied()) {
                Ok(Some(child)) => here = child,
                Ok(None) | Err(_) => return,
            }
        }
        self.change_names(here, |names| {
            names.remove(last(spot));
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
        self.state.bytes -= node.held();
        if let Body::Directory(names) = node.body {
            for (_, child) in names {
                self.drop_all(child);
            }
        }
    }
}

fn last(spot: &Spot) -> &str {
    spot.names.last().map_or("", String::as_str)
}
