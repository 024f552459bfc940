//! The file tools' interface to the tree that commands use.

use std::any::Any;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tree::{Follow, Id, LockedTree, NodeInfo, ResolvedTarget, Tree, TreeError, Write};
use shieling::environment::{Content, Entry, Expect, FileError, Files, Links, Meta, Node, Stamp, WriteTarget};

/// The files of a memory.
pub(super) struct TreeFiles {
    tree: Arc<Tree>,
}

impl TreeFiles {
    pub(super) fn new(tree: Arc<Tree>) -> Self {
        Self { tree }
    }
}

fn follow(links: Links) -> Follow {
    match links {
        Links::Follow => Follow::All,
        Links::Keep => Follow::Parents,
    }
}

impl Files for TreeFiles {
    fn node(&self, path: &Path, links: Links) -> Result<Box<dyn Node>, FileError> {
        let mut inside = self.tree.enter();
        let walked = inside
            .walk(path, follow(links))
            .map_err(|fault| fault.at("look for", path))?;
        let Some(id) = walked.there() else {
            return Err(FileError::NotFound(path.to_path_buf()));
        };
        Ok(Box::new(OpenNode {
            tree: Arc::clone(&self.tree),
            id,
            path: walked.path.into(),
        }))
    }

    fn write_target(&self, path: &Path, links: Links) -> Result<Box<dyn WriteTarget>, FileError> {
        let place = self.tree.enter().write_target(path, follow(links));
        let place = place.map_err(|fault| fault.at("look for", path))?;
        Ok(Box::new(TreeTarget {
            tree: Arc::clone(&self.tree),
            path: PathBuf::from(&place.path),
            place,
        }))
    }
}

/// An existing file.
struct OpenNode {
    tree: Arc<Tree>,
    id: Id,
    path: PathBuf,
}

impl OpenNode {
    fn text(&self) -> &str {
        // Every path in the tree is UTF-8.
        self.path.to_str().unwrap_or_default()
    }
}

fn meta(about: NodeInfo) -> Meta {
    Meta {
        kind: about.kind,
        size: about.size,
        mode: about.mode,
        modified: about.modified,
        names: 1,
        stamp: Stamp(about.stamp),
    }
}

impl Node for OpenNode {
    fn path(&self) -> &Path {
        &self.path
    }

    fn meta(&self) -> Result<Meta, FileError> {
        let about = self.tree.enter().about(self.id);
        about.map(meta).map_err(|fault| fault.at("look at", &self.path))
    }

    fn open(&self) -> Result<Box<dyn Content>, FileError> {
        let inside = self.tree.enter();
        let opened = inside.about(self.id).and_then(|about| {
            let content = inside.content(self.id)?;
            Ok(Box::new(OpenContent { about, content }) as Box<dyn Content>)
        });
        opened.map_err(|fault| fault.at("read", &self.path))
    }

    fn entries(&self) -> Result<Vec<Entry>, FileError> {
        let mut inside = self.tree.enter();
        let listed = inside.list(self.id, self.text()).map(|listed| {
            let entry = |(name, id): (Arc<str>, Id)| {
                let kind = inside.kind(id)?;
                Some(Entry {
                    name: name.to_string().into(),
                    kind,
                })
            };
            listed.into_iter().filter_map(entry).collect()
        });
        listed.map_err(|fault| fault.at("list", &self.path))
    }

    fn child(&self, name: &OsStr) -> Result<Box<dyn Node>, FileError> {
        let path = self.path.join(name);
        let found = match name.to_str() {
            Some(name) => self.tree.enter().child(self.id, self.text(), name),
            None => return Err(FileError::NotFound(path)),
        };
        match found {
            Ok(id) => Ok(Box::new(Self {
                tree: Arc::clone(&self.tree),
                id,
                path,
            })),
            Err(fault) => Err(fault.at("look for", &path)),
        }
    }

    fn target(&self) -> Result<PathBuf, FileError> {
        let target = self.tree.enter().target(self.id);
        target
            .map(|target| PathBuf::from(&*target))
            .map_err(|fault| fault.at("read the link", &self.path))
    }
}

/// The content of a file at the time it was opened.
struct OpenContent {
    about: NodeInfo,
    content: Arc<Vec<u8>>,
}

impl Content for OpenContent {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.content.get(offset..))
            .unwrap_or_default();
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn meta(&self) -> Result<Meta, FileError> {
        Ok(meta(self.about.clone()))
    }
}

/// A name in a directory.
struct TreeTarget {
    tree: Arc<Tree>,
    place: ResolvedTarget,
    path: PathBuf,
}

impl TreeTarget {
    /// Locks the tree, if the directory still has the path that was resolved. It cannot be moved while the lock is
    /// held.
    fn enter(&self) -> Result<LockedTree<'_>, FileError> {
        let mut inside = self.tree.enter();
        self.check_place(&mut inside)?;
        Ok(inside)
    }

    fn check_place(&self, inside: &mut LockedTree<'_>) -> Result<(), FileError> {
        match inside
            .walk(self.place.above(), Follow::None)
            .map(|walked| walked.there())
        {
            Ok(Some(id)) if id == self.place.parent => Ok(()),
            Ok(_) | Err(_) => Err(FileError::Changed(self.path.clone())),
        }
    }

    /// Writes content, if the file is in the expected state. A new file gets this mode.
    fn put(&self, inside: &mut LockedTree<'_>, content: &[u8], mode: u32, expect: Expect) -> Result<Id, FileError> {
        let current = inside.current(&self.place);
        let current = current.map_err(|fault| fault.at("look at", &self.path))?;
        let stamp = match current.map(|id| inside.about(id)) {
            Some(about) => Some(Stamp(about.map_err(|fault| fault.at("look at", &self.path))?.stamp)),
            None => None,
        };
        let expected = match (expect, stamp) {
            (Expect::Any, _) | (Expect::Nothing, None) => true,
            (Expect::Stamp(expected), Some(stamp)) => expected == stamp,
            (Expect::Nothing, Some(_)) | (Expect::Stamp(_), None) => false,
        };
        if !expected {
            return Err(FileError::Changed(self.path.clone()));
        }
        inside
            .write(&self.place, Write::Replace(content), true, mode, None)
            .map_err(|fault| fault.at("write", &self.path))
    }
}

impl WriteTarget for TreeTarget {
    fn path(&self) -> &Path {
        &self.path
    }

    fn current(&self) -> Result<Option<Box<dyn Node>>, FileError> {
        let current = self.enter()?.current(&self.place);
        let here = |id| {
            Box::new(OpenNode {
                tree: Arc::clone(&self.tree),
                id,
                path: self.path.clone(),
            }) as Box<dyn Node>
        };
        current
            .map(|id| id.map(here))
            .map_err(|fault| fault.at("look at", &self.path))
    }

    fn replace(&self, content: &[u8], executable: bool, expect: Expect) -> Result<(), FileError> {
        let mode = if executable { 0o755 } else { 0o644 };
        self.put(&mut self.enter()?, content, mode, expect).map(|_| ())
    }

    fn restore(&self, content: &[u8], was: &Meta, expect: Expect) -> Result<(), FileError> {
        let mut inside = self.enter()?;
        let id = self.put(&mut inside, content, was.mode, expect)?;
        let restored = inside.set_mode(id, was.mode & 0o1777);
        restored
            .and_then(|()| inside.set_modified(id, was.modified))
            .map_err(|fault| fault.at("write", &self.path))
    }

    fn set_mode(&self, mode: u32) -> Result<(), FileError> {
        let mut inside = self.enter()?;
        let current = inside.current(&self.place);
        let Some(id) = current.map_err(|fault| fault.at("look at", &self.path))? else {
            return Err(FileError::NotFound(self.path.clone()));
        };
        let set = inside.set_mode(id, mode & 0o777);
        set.map_err(|fault| fault.at("change the permissions of", &self.path))
    }

    fn remove(&self, recursive: bool) -> Result<(), FileError> {
        let removed = self.enter()?.remove(&self.place, recursive);
        removed.map_err(|fault| fault.at("remove", &self.path))
    }

    fn rename(&self, to: &dyn WriteTarget, replace: bool) -> Result<(), FileError> {
        let to = to
            .as_any()
            .downcast_ref::<Self>()
            .filter(|to| Arc::ptr_eq(&to.tree, &self.tree))
            .ok_or(FileError::Unsupported("a file is moved within one memory only"))?;
        let mut inside = self.enter()?;
        to.check_place(&mut inside)?;
        let into = inside.current(&to.place).ok().flatten();
        if into.is_some_and(|id| inside.kind(id) == Some(shieling::environment::Kind::Directory)) {
            return Err(FileError::Exists(to.path.clone()));
        }
        let renamed = inside.rename(&self.place, &to.place, replace, true);
        renamed.map_err(|fault| {
            let stays = matches!(fault, TreeError::Busy);
            fault.at("move", if stays { &self.path } else { &to.path })
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
