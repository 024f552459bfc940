//! The two trees that the gate reads: the workspace as it is, and with a layer over it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;
use shieling_gate::{Entry, Kind as Judged, Tree};

use crate::directory::Directory;
use crate::node::{Kind, Node};

/// The directories that a name is looked for in: the layer's, and the workspace's unless the layer hides it.
struct Place {
    upper: Option<Directory>,
    below: Option<Directory>,
}

impl Place {
    /// Finds where a name is.
    fn find(&self, name: &OsStr) -> io::Result<Option<(&Directory, Node)>> {
        if let Some(upper) = &self.upper
            && let Some(node) = upper.look(name)?
        {
            return Ok((!upper.is_whiteout(name, &node)).then_some((upper, node)));
        }
        match &self.below {
            Some(below) => Ok(below.look(name)?.map(|node| (below, node))),
            None => Ok(None),
        }
    }

    /// Steps into a directory.
    fn step(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let child = |directory: &Directory| match directory.child(name) {
            Ok(child) => Ok(Some(child)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        };
        let Some((_, node)) = self.find(name)? else {
            return Ok(None);
        };
        if !node.is_directory() {
            return Ok(None);
        }
        let upper = match &self.upper {
            Some(upper) => child(upper)?,
            None => None,
        };
        let hides = upper.as_ref().is_some_and(Directory::is_opaque);
        let below = match &self.below {
            Some(below) if !hides => child(below)?,
            _ => None,
        };
        Ok(Some(Self { upper, below }))
    }

    fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = BTreeSet::new();
        if let Some(below) = &self.below {
            names.extend(below.names()?);
        }
        if let Some(upper) = &self.upper {
            for name in upper.names()? {
                let gone = upper.look(&name)?.is_none_or(|node| upper.is_whiteout(&name, &node));
                match gone {
                    true => names.remove(&name),
                    false => names.insert(name),
                };
            }
        }
        Ok(names.into_iter().collect())
    }
}

/// A workspace, with a layer over it or without.
pub(crate) struct Layered<'d> {
    upper: Option<&'d Directory>,
    below: &'d Directory,
    /// The directory that was looked at last, since the next path is often in it too.
    last: RefCell<Option<(PathBuf, Rc<Place>)>>,
}

impl<'d> Layered<'d> {
    pub(crate) fn new(upper: Option<&'d Directory>, below: &'d Directory) -> Self {
        Self {
            upper,
            below,
            last: RefCell::default(),
        }
    }

    fn place(&self, directory: &Path) -> io::Result<Option<Rc<Place>>> {
        if let Some((path, place)) = &*self.last.borrow()
            && path == directory
        {
            return Ok(Some(Rc::clone(place)));
        }
        let mut place = Place {
            upper: self.upper.map(Directory::try_clone).transpose()?,
            below: Some(self.below.try_clone()?),
        };
        for component in directory.components() {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            match place.step(name)? {
                Some(next) => place = next,
                None => return Ok(None),
            }
        }
        let place = Rc::new(place);
        *self.last.borrow_mut() = Some((directory.to_path_buf(), Rc::clone(&place)));
        Ok(Some(place))
    }

    fn parent<'p>(&self, path: &'p Path) -> io::Result<Option<(Rc<Place>, &'p OsStr)>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(self.place(parent)?.map(|place| (place, name)))
    }
}

/// What a node is to the gate.
pub(crate) fn entry_of(directory: &Directory, name: &OsStr, node: &Node) -> io::Result<Entry> {
    Ok(Entry {
        kind: match node.kind {
            Kind::File => Judged::File,
            Kind::Directory => Judged::Directory,
            Kind::Symlink => Judged::Link(directory.read_link(name)?),
            Kind::Fifo => Judged::Fifo,
            Kind::Socket => Judged::Socket,
            Kind::Device => Judged::Device,
        },
        mode: node.mode,
        links: node.links,
        size: node.size,
    })
}

impl Tree for Layered<'_> {
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        if path.as_os_str().is_empty() {
            let node = Node::of(self.below)?;
            return Ok(Some(Entry::directory(node.mode)));
        }
        let Some((place, name)) = self.parent(path)? else {
            return Ok(None);
        };
        let Some((directory, node)) = place.find(name)? else {
            return Ok(None);
        };
        entry_of(directory, name, &node).map(Some)
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let Some((place, name)) = self.parent(path)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        match place.find(name)? {
            Some((directory, _)) => directory.read_some(name, limit as u64),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        match self.place(directory)? {
            Some(place) => place.names(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
