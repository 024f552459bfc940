//! What the tree is made of. All of it is shared until it is changed, so that a copy costs nothing.

use std::sync::Arc;
use std::time::SystemTime;

use imbl::OrdMap;

use super::host::Beneath;
use shieling::environment::Kind;

/// What tells one file from every other of the same tree, for ever: no number is given twice.
pub(crate) type Id = u64;

/// The files as they are at one time.
#[derive(Clone)]
pub(super) struct State {
    pub(super) nodes: OrdMap<Id, Inode>,
    /// The bytes of all files that are in memory.
    pub(super) bytes: u64,
}

/// The directory that has no name.
pub(super) const ROOT: Id = 0;

/// One file, directory or link.
#[derive(Clone)]
pub(super) struct Inode {
    pub(super) body: Body,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
    /// Another one after each change, and never one that was there before.
    pub(super) version: u64,
}

/// What it holds.
#[derive(Clone)]
pub(super) enum Body {
    File(Arc<Vec<u8>>),
    Directory(OrdMap<Arc<str>, Id>),
    Link(Arc<str>),
    /// A file of the folder beneath that nothing has changed yet.
    HostFile(Beneath),
    /// A directory of the folder beneath that nobody has looked into yet.
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

    /// How many bytes of its content are in memory.
    pub(super) fn held(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.len() as u64,
            Body::Directory(_) | Body::Link(_) | Body::HostFile(_) | Body::HostDirectory(_) => 0,
        }
    }
}
