//! The nodes of the tree. They are shared until changed, so that a copy takes constant time.

use std::sync::Arc;
use std::time::SystemTime;

use imbl::OrdMap;

use super::host::Beneath;
use shieling::environment::Kind;

/// The identity of a node. Numbers are never reused.
pub(crate) type Id = u64;

/// The files at one time.
#[derive(Clone)]
pub(super) struct State {
    pub(super) nodes: OrdMap<Id, Inode>,
    /// The size of all files in memory.
    pub(super) bytes: u64,
}

/// The root directory.
pub(super) const ROOT: Id = 0;

/// A file, directory or link.
#[derive(Clone)]
pub(super) struct Inode {
    pub(super) body: Body,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
    /// The state, which changes with each change and is never reused.
    pub(super) version: u64,
}

/// The content of a node.
#[derive(Clone)]
pub(super) enum Body {
    File(Arc<Vec<u8>>),
    Directory(OrdMap<Arc<str>, Id>),
    Link(Arc<str>),
    /// An unchanged file of the host's folder.
    HostFile(Beneath),
    /// A directory of the host's folder that has not been visited.
    HostDirectory(Beneath),
}

impl Inode {
    pub(super) fn kind(&self) -> Kind {
        match &self.body {
            Body::File(_) | Body::HostFile(_) => Kind::File,
            Body::Directory(_) | Body::HostDirectory(_) => Kind::Directory,
            Body::Link(_) => Kind::Link,
        }
    }

    /// Returns the number of bytes of its content in memory.
    pub(super) fn bytes_in_memory(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.len() as u64,
            Body::Directory(_) | Body::Link(_) | Body::HostFile(_) | Body::HostDirectory(_) => 0,
        }
    }
}
