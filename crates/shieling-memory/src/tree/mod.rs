//! The file tree: directories, files and links, with modes and times. It is a persistent value: copies take constant
//! time and share their contents until they are changed.
//!
//! The tree enforces what a policy requires for files, for all callers: hidden files do not exist, and a read-only
//! tree does not change. No path leads out, since there is nothing outside.

mod change;
mod fault;
mod host;
mod node;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use imbl::OrdMap;

use self::host::{Beneath, HostEntryKind};
use self::node::{Body, Inode, ROOT, State};
use shieling::environment::{Hidden, Kind};

pub(super) use self::change::{ResolvedTarget, Write};
pub(super) use self::fault::TreeError;
pub(super) use self::node::Id;

/// The longest name, in bytes, as on most file systems.
const LONGEST_NAME: usize = 255;
/// The longest path, in bytes, as in the kernel.
const LONGEST_PATH: usize = 4096;
/// The largest number of links in the resolution of one path.
const MOST_LINKS: usize = 40;
/// The deepest nesting of directories.
const DEEPEST: usize = 200;

/// The rules of a tree.
#[derive(Clone)]
pub(super) struct Rules {
    /// The workspace, absolute and normalised.
    pub(super) workspace: String,
    pub(super) readonly: bool,
    pub(super) hidden: Option<Arc<dyn Hidden>>,
    /// The largest size of all files together, in bytes.
    pub(super) bytes: u64,
    /// The largest number of files, directories and links.
    pub(super) files: u64,
    /// The clock.
    pub(super) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

/// The files of one memory.
pub(super) struct Tree {
    state: Mutex<State>,
    rules: Rules,
}

/// Which links of a path are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    /// None. A link before the last component is an error.
    None,
    /// Those before the last component.
    Parents,
    /// All.
    All,
}

/// A resolved path.
pub(super) struct Resolved {
    /// The path, without links.
    pub(super) path: String,
    pub(super) end: End,
}

/// The end of a resolved path.
pub(super) enum End {
    There {
        id: Id,
        /// The parent directory; the root is its own parent.
        parent: Id,
    },
    Missing {
        /// The last existing directory.
        parent: Id,
        /// The missing components, of which the last is the requested name.
        names: Vec<String>,
    },
}

impl Resolved {
    /// Returns the node, if it exists.
    pub(super) fn there(&self) -> Option<Id> {
        match self.end {
            End::There { id, .. } => Some(id),
            End::Missing { .. } => None,
        }
    }
}

/// The metadata of a node.
#[derive(Debug, Clone)]
pub(super) struct NodeInfo {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
    pub(super) stamp: [u64; 6],
}

/// Returns a number that is unique in this process, for identities and states of nodes.
fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(ROOT + 1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Tree {
    /// Creates a tree with only a root.
    pub(super) fn new(rules: Rules) -> Self {
        let root = Inode {
            body: Body::Directory(OrdMap::new()),
            mode: 0o755,
            modified: (rules.clock)(),
            version: fresh(),
        };
        Self {
            state: Mutex::new(State {
                nodes: OrdMap::unit(ROOT, root),
                bytes: 0,
            }),
            rules,
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the present files.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot(self.lock().clone())
    }

    /// Restores files.
    pub(super) fn restore(&self, snapshot: &Snapshot) {
        *self.lock() = snapshot.0.clone();
    }

    /// Creates another tree with the present files.
    pub(super) fn fork(&self) -> Self {
        Self {
            state: Mutex::new(self.lock().clone()),
            rules: self.rules.clone(),
        }
    }

    /// Creates a tree with the same files under these rules.
    pub(super) fn ruled(self, readonly: bool, hidden: Option<Arc<dyn Hidden>>) -> Self {
        Self {
            state: self.state,
            rules: Rules {
                readonly,
                hidden,
                ..self.rules
            },
        }
    }

    /// Locks the tree for reads and changes.
    pub(super) fn enter(&self) -> LockedTree<'_> {
        LockedTree {
            rules: &self.rules,
            state: self.lock(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is only ever replaced as a whole, so a panic cannot have left it incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of a memory at one time. Copies take constant time and share their contents.
#[derive(Clone)]
pub struct Snapshot(State);

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("files", &self.0.nodes.len())
            .field("bytes", &self.0.bytes)
            .finish()
    }
}

/// The locked tree.
pub(super) struct LockedTree<'a> {
    rules: &'a Rules,
    state: MutexGuard<'a, State>,
}

impl LockedTree<'_> {
    /// Resolves a path. Hidden files do not exist.
    pub(super) fn walk(&mut self, path: &Path, links: Follow) -> Result<Resolved, TreeError> {
        let text = path.to_str().ok_or(TreeError::BadName("it is not UTF-8"))?;
        if !text.starts_with('/') {
            return Err(TreeError::BadName("it is not absolute"));
        }
        if text.len() > LONGEST_PATH {
            return Err(TreeError::TooLong("it is longer than 4,096 bytes"));
        }
        let mut pending: Vec<String> = components(text).rev().map(str::to_owned).collect();
        let mut trail = vec![(ROOT, 0)];
        let mut at = String::new();
        let mut hops = 0;
        while let Some(name) = pending.pop() {
            let &(here, length) = trail.last().expect("the root is never left");
            if name == ".." {
                if trail.len() > 1 {
                    trail.pop();
                }
                at.truncate(trail.last().map_or(0, |&(_, length)| length));
                continue;
            }
            let child = self.children(here)?.get(name.as_str()).copied();
            at.push('/');
            at.push_str(&name);
            let Some(id) = child.filter(|&id| !self.hides(&at, self.is_directory(id))) else {
                let names: Vec<String> = std::iter::once(name).chain(pending.into_iter().rev()).collect();
                if names.iter().any(|name| name == "..") {
                    return Err(TreeError::NotFound);
                }
                for name in &names[1..] {
                    at.push('/');
                    at.push_str(name);
                }
                let end = End::Missing { parent: here, names };
                return Ok(Resolved { path: at, end });
            };
            let followed = match links {
                Follow::None => false,
                Follow::Parents => !pending.is_empty(),
                Follow::All => true,
            };
            if let (true, Body::Link(target)) = (followed, &self.node(id)?.body) {
                hops += 1;
                if hops > MOST_LINKS {
                    return Err(TreeError::Loop);
                }
                at.truncate(length);
                if target.starts_with('/') {
                    trail.truncate(1);
                    at.clear();
                }
                pending.extend(components(target).rev().map(str::to_owned));
                continue;
            }
            trail.push((id, at.len()));
        }
        let id = trail.pop().map_or(ROOT, |(id, _)| id);
        let parent = trail.pop().map_or(ROOT, |(id, _)| id);
        let path = if at.is_empty() { "/".to_owned() } else { at };
        Ok(Resolved {
            path,
            end: End::There { id, parent },
        })
    }

    /// Returns the node at a path.
    pub(super) fn find(&mut self, path: &Path, links: Follow) -> Result<Id, TreeError> {
        match self.walk(path, links)?.end {
            End::There { id, .. } => Ok(id),
            End::Missing { .. } => Err(TreeError::NotFound),
        }
    }

    /// Returns the type of a node, if it exists.
    pub(super) fn kind(&self, id: Id) -> Option<Kind> {
        self.node(id).ok().map(Inode::kind)
    }

    /// Returns the metadata of a node.
    pub(super) fn about(&self, id: Id) -> Result<NodeInfo, TreeError> {
        let node = self.node(id)?;
        let mut about = NodeInfo {
            kind: node.kind(),
            size: node.bytes_in_memory(),
            mode: node.mode,
            modified: node.modified,
            stamp: [id, node.version, 0, 0, 0, 0],
        };
        match &node.body {
            Body::Link(target) => about.size = target.len() as u64,
            Body::HostFile(beneath) => {
                let look = beneath.stat()?;
                about.size = look.size;
                about.modified = look.modified;
                let (seconds, nanoseconds, inode) = look.changed;
                about.stamp[3..].copy_from_slice(&[seconds, nanoseconds, inode]);
            }
            Body::File(_) | Body::Directory(_) | Body::HostDirectory(_) => {}
        }
        about.stamp[2] = about.size;
        Ok(about)
    }

    /// Returns the content of a file.
    pub(super) fn content(&self, id: Id) -> Result<Arc<Vec<u8>>, TreeError> {
        match &self.node(id)?.body {
            Body::File(content) => Ok(Arc::clone(content)),
            Body::HostFile(beneath) => Ok(Arc::new(beneath.read(self.rules.bytes)?)),
            Body::Directory(_) | Body::HostDirectory(_) => Err(TreeError::IsDirectory),
            Body::Link(_) => Err(TreeError::Loop),
        }
    }

    /// Returns the visible entries of a directory.
    pub(super) fn list(&mut self, id: Id, path: &str) -> Result<Vec<(Arc<str>, Id)>, TreeError> {
        let children = self.children(id)?.clone();
        let path = path.trim_end_matches('/');
        let seen = |name: &str, id: Id| {
            self.rules.hidden.is_none() || !self.hides(&format!("{path}/{name}"), self.is_directory(id))
        };
        Ok(children.into_iter().filter(|(name, id)| seen(name, *id)).collect())
    }

    /// Returns an entry of a directory.
    pub(super) fn child(&mut self, id: Id, path: &str, name: &str) -> Result<Id, TreeError> {
        let child = self.children(id)?.get(name).copied().ok_or(TreeError::NotFound)?;
        let path = format!("{}/{name}", path.trim_end_matches('/'));
        if self.hides(&path, self.is_directory(child)) {
            return Err(TreeError::NotFound);
        }
        Ok(child)
    }

    /// Returns the target of a link, as it is written.
    pub(super) fn target(&self, id: Id) -> Result<Arc<str>, TreeError> {
        match &self.node(id)?.body {
            Body::Link(target) => Ok(Arc::clone(target)),
            Body::File(_) | Body::Directory(_) | Body::HostFile(_) | Body::HostDirectory(_) => {
                Err(TreeError::BadName("it is no link"))
            }
        }
    }

    /// Returns the current time of the files.
    pub(super) fn now(&self) -> SystemTime {
        (self.rules.clock)()
    }

    /// Returns the size of all files, and the number of nodes.
    pub(super) fn usage(&self) -> (u64, u64) {
        (self.state.bytes, self.state.nodes.len() as u64)
    }

    fn node(&self, id: Id) -> Result<&Inode, TreeError> {
        self.state.nodes.get(&id).ok_or(TreeError::NotFound)
    }

    fn is_directory(&self, id: Id) -> bool {
        self.node(id).is_ok_and(|node| node.kind() == Kind::Directory)
    }

    /// Returns whether a path without links is hidden. Its parents were checked during the resolution.
    fn hides(&self, path: &str, is_directory: bool) -> bool {
        let Some(hidden) = &self.rules.hidden else { return false };
        let below = path.strip_prefix(&*self.rules.workspace).and_then(|rest| {
            if self.rules.workspace == "/" {
                Some(rest)
            } else {
                rest.strip_prefix('/')
            }
        });
        below.is_some_and(|path| !path.is_empty() && hidden.hides(Path::new(path), is_directory))
    }

    /// Returns the names in a directory, which is read now if it is in the folder of the host.
    fn children(&mut self, id: Id) -> Result<&OrdMap<Arc<str>, Id>, TreeError> {
        if let Body::HostDirectory(beneath) = &self.node(id)?.body {
            let beneath = beneath.clone();
            self.look_into(id, &beneath)?;
        }
        match &self.node(id)?.body {
            Body::Directory(children) => Ok(children),
            Body::File(_) | Body::Link(_) | Body::HostFile(_) | Body::HostDirectory(_) => Err(TreeError::NotADirectory),
        }
    }

    fn look_into(&mut self, id: Id, beneath: &Beneath) -> Result<(), TreeError> {
        let mut children = OrdMap::new();
        for found in beneath.entries()? {
            let child = fresh();
            let body = match found.what {
                HostEntryKind::File(beneath) => Body::HostFile(beneath),
                HostEntryKind::Directory(beneath) => Body::HostDirectory(beneath),
                HostEntryKind::Link(target) => Body::Link(target.into()),
            };
            let node = Inode {
                body,
                mode: found.mode,
                modified: found.modified,
                version: fresh(),
            };
            self.state.nodes.insert(child, node);
            children.insert(found.name.into(), child);
        }
        if let Some(node) = self.state.nodes.get_mut(&id) {
            node.body = Body::Directory(children);
        }
        Ok(())
    }
}

/// Normalises the components of a path.
fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}
