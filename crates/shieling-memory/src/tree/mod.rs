//! The files in memory: directories, files and links, with modes and times, as one value that is copied
//! in no time and shared until it is changed.
//!
//! Whatever a policy says of files holds here, for whoever comes: what is hidden does not exist, and
//! where nothing may change, nothing does. No path leads out, since there is nothing outside.

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

use self::host::{Beneath, What};
use self::node::{Body, Inode, ROOT, State};
use shieling::environment::{Hidden, Kind};

pub(super) use self::change::{Spot, Write};
pub(super) use self::fault::Fault;
pub(super) use self::node::Id;

/// The longest name, in bytes, as on most file systems.
const LONGEST_NAME: usize = 255;
/// The longest path, in bytes, as the kernel takes it.
const LONGEST_PATH: usize = 4096;
/// How many links are followed on one way.
const MOST_LINKS: usize = 40;
/// How deep directories stand in each other.
const DEEPEST: usize = 200;

/// What holds for all of the files.
#[derive(Clone)]
pub(super) struct Rules {
    /// The directory that is worked in, absolute and clean.
    pub(super) workspace: String,
    pub(super) readonly: bool,
    pub(super) hidden: Option<Arc<dyn Hidden>>,
    /// How many bytes the files hold together.
    pub(super) bytes: u64,
    /// How many files, directories and links there are.
    pub(super) files: u64,
    /// What time it is.
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
    /// None: one on the way is no directory.
    None,
    /// Those on the way.
    Parents,
    /// All.
    All,
}

/// Where a path leads.
pub(super) struct Walked {
    /// The way there, without links.
    pub(super) path: String,
    pub(super) end: End,
}

/// What is at the end of it.
pub(super) enum End {
    There {
        id: Id,
        /// The directory it stands in; itself for the root.
        parent: Id,
    },
    Missing {
        /// The last directory that is there.
        parent: Id,
        /// What is not, the last one being the name that was asked for.
        names: Vec<String>,
    },
}

impl Walked {
    /// What is there.
    pub(super) fn there(&self) -> Option<Id> {
        match self.end {
            End::There { id, .. } => Some(id),
            End::Missing { .. } => None,
        }
    }
}

/// What is known of a node.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
    pub(super) stamp: [u64; 6],
}

/// Gives numbers that no other node, and no other state of one, in this process has.
fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(ROOT + 1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Tree {
    /// With nothing in it but the root.
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

    /// The files as they are now.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot(self.lock().clone())
    }

    /// The files as they were then.
    pub(super) fn restore(&self, snapshot: &Snapshot) {
        *self.lock() = snapshot.0.clone();
    }

    /// Another tree, with these files as they are now.
    pub(super) fn fork(&self) -> Self {
        Self {
            state: Mutex::new(self.lock().clone()),
            rules: self.rules.clone(),
        }
    }

    /// The same files, which these rules hold for from now on.
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

    /// Looks around, and changes things, with nobody else doing so.
    pub(super) fn enter(&self) -> Inside<'_> {
        Inside {
            rules: &self.rules,
            state: self.lock(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is only ever replaced by a whole one, so that a panic in between has not broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files as they were at one time. A copy costs nothing, and holds what it shares with nobody else.
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

/// The tree, while nobody else changes it.
pub(super) struct Inside<'a> {
    rules: &'a Rules,
    state: MutexGuard<'a, State>,
}

impl Inside<'_> {
    /// Where a path leads. Hidden things are not there.
    pub(super) fn walk(&mut self, path: &Path, links: Follow) -> Result<Walked, Fault> {
        let text = path.to_str().ok_or(Fault::BadName("it is not UTF-8"))?;
        if !text.starts_with('/') {
            return Err(Fault::BadName("it is not absolute"));
        }
        if text.len() > LONGEST_PATH {
            return Err(Fault::TooLong("it is longer than 4,096 bytes"));
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
                    return Err(Fault::NotFound);
                }
                for name in &names[1..] {
                    at.push('/');
                    at.push_str(name);
                }
                let end = End::Missing { parent: here, names };
                return Ok(Walked { path: at, end });
            };
            let followed = match links {
                Follow::None => false,
                Follow::Parents => !pending.is_empty(),
                Follow::All => true,
            };
            if let (true, Body::Link(target)) = (followed, &self.node(id)?.body) {
                hops += 1;
                if hops > MOST_LINKS {
                    return Err(Fault::Loop);
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
        Ok(Walked {
            path,
            end: End::There { id, parent },
        })
    }

    /// The node at a path.
    pub(super) fn find(&mut self, path: &Path, links: Follow) -> Result<Id, Fault> {
        match self.walk(path, links)?.end {
            End::There { id, .. } => Ok(id),
            End::Missing { .. } => Err(Fault::NotFound),
        }
    }

    /// What a node is, if it is there.
    pub(super) fn kind(&self, id: Id) -> Option<Kind> {
        self.node(id).ok().map(Inode::kind)
    }

    /// What is known of a node.
    pub(super) fn about(&self, id: Id) -> Result<About, Fault> {
        let node = self.node(id)?;
        let mut about = About {
            kind: node.kind(),
            size: node.held(),
            mode: node.mode,
            modified: node.modified,
            stamp: [id, node.version, 0, 0, 0, 0],
        };
        match &node.body {
            Body::Link(target) => about.size = target.len() as u64,
            Body::HostFile(beneath) => {
                let look = beneath.look()?;
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

    /// The bytes of a file.
    pub(super) fn content(&self, id: Id) -> Result<Arc<Vec<u8>>, Fault> {
        match &self.node(id)?.body {
            Body::File(content) => Ok(Arc::clone(content)),
            Body::HostFile(beneath) => Ok(Arc::new(beneath.read(self.rules.bytes)?)),
            Body::Directory(_) | Body::HostDirectory(_) => Err(Fault::IsDirectory),
            Body::Link(_) => Err(Fault::Loop),
        }
    }

    /// What a directory holds that is not hidden, by its path.
    pub(super) fn list(&mut self, id: Id, path: &str) -> Result<Vec<(Arc<str>, Id)>, Fault> {
        let children = self.children(id)?.clone();
        let path = path.trim_end_matches('/');
        let seen = |name: &str, id: Id| {
            self.rules.hidden.is_none() || !self.hides(&format!("{path}/{name}"), self.is_directory(id))
        };
        Ok(children.into_iter().filter(|(name, id)| seen(name, *id)).collect())
    }

    /// What a directory holds under a name, by its path.
    pub(super) fn child(&mut self, id: Id, path: &str, name: &str) -> Result<Id, Fault> {
        let child = self.children(id)?.get(name).copied().ok_or(Fault::NotFound)?;
        let path = format!("{}/{name}", path.trim_end_matches('/'));
        if self.hides(&path, self.is_directory(child)) {
            return Err(Fault::NotFound);
        }
        Ok(child)
    }

    /// Where a link leads, as it is written.
    pub(super) fn target(&self, id: Id) -> Result<Arc<str>, Fault> {
        match &self.node(id)?.body {
            Body::Link(target) => Ok(Arc::clone(target)),
            Body::File(_) | Body::Directory(_) | Body::HostFile(_) | Body::HostDirectory(_) => {
                Err(Fault::BadName("it is no link"))
            }
        }
    }

    /// What time it is for the files.
    pub(super) fn now(&self) -> SystemTime {
        (self.rules.clock)()
    }

    /// How many bytes the files hold, and how many files and directories there are.
    pub(super) fn usage(&self) -> (u64, u64) {
        (self.state.bytes, self.state.nodes.len() as u64)
    }

    fn node(&self, id: Id) -> Result<&Inode, Fault> {
        self.state.nodes.get(&id).ok_or(Fault::NotFound)
    }

    fn is_directory(&self, id: Id) -> bool {
        self.node(id).is_ok_and(|node| node.kind() == Kind::Directory)
    }

    /// Whether a path, without links, is hidden. Those above it were asked about on the way.
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

    /// The names in a directory, which is read now if it lies beneath.
    fn children(&mut self, id: Id) -> Result<&OrdMap<Arc<str>, Id>, Fault> {
        if let Body::HostDirectory(beneath) = &self.node(id)?.body {
            let beneath = beneath.clone();
            self.look_into(id, &beneath)?;
        }
        match &self.node(id)?.body {
            Body::Directory(children) => Ok(children),
            Body::File(_) | Body::Link(_) | Body::HostFile(_) | Body::HostDirectory(_) => Err(Fault::NotADirectory),
        }
    }

    fn look_into(&mut self, id: Id, beneath: &Beneath) -> Result<(), Fault> {
        let mut children = OrdMap::new();
        for found in beneath.entries()? {
            let child = fresh();
            let body = match found.what {
                What::File(beneath) => Body::HostFile(beneath),
                What::Directory(beneath) => Body::HostDirectory(beneath),
                What::Link(target) => Body::Link(target.into()),
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

/// The names on a way, without those that stay where they are.
fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}
