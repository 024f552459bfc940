//! What the gate is told beside a change, and what it tells of a path.

use std::path::{Path, PathBuf};

use crate::change::Tree;

/// What the gate knows beside the change itself.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The absolute path of the root of both trees, without links: absolute links and paths in settings are compared
    /// with it.
    pub root: &'a Path,
    /// The user's home, absolute, without links. Start-up files in it are judged if it is the root, lies in it, or
    /// holds it.
    pub home: Option<&'a Path>,
    /// The tree before all changes of this set.
    pub before: &'a dyn Tree,
    /// The tree as it is with all changes of this set: what is judged with a part of a set applied must be that part.
    pub after: &'a dyn Tree,
    /// Paths in the root that tools of the user are led to from elsewhere.
    pub leads: &'a [Lead],
    /// Absolute paths outside of the root to which links may lead, besides the system's directories: toolchains that
    /// commands can read.
    pub toolchains: &'a [PathBuf],
}

/// A path in the tree that a tool of the user is led to by settings or links outside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// Relative to the root. A directory stands for all in it, but for [`LeadKind::Program`].
    pub path: PathBuf,
    /// What it is taken for.
    pub kind: LeadKind,
}

impl Lead {
    /// Whether it leads to this path.
    pub(crate) fn is_to(&self, path: &Path) -> bool {
        match self.kind {
            LeadKind::Program => path == self.path,
            LeadKind::GitSettings | LeadKind::Code | LeadKind::Folder => path.starts_with(&self.path),
        }
    }
}

/// What a tool takes a [`Lead`] for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadKind {
    /// A file of git's settings.
    GitSettings,
    /// Something that is executed, or a directory of such.
    Code,
    /// A file that a word of a command may execute. A word may mean anything (`!make test`), so that what lies in a directory
    /// of that name is not led to.
    Program,
    /// A directory among packages that is opened as a folder, by a link to it: see [`Gate::opened_by`](crate::Gate::opened_by).
    Folder,
}

/// What of a path has to be remembered: see [`Gate::concern`](crate::Gate::concern).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Nothing: an ordinary file.
    Nothing,
    /// That it is there, and what it is.
    Presence,
    /// What it says too.
    Content,
}
