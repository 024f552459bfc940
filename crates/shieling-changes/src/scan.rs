//! Works out what a layer changes in a workspace, one path after the other.
//!
//! A directory's own change comes before those in it. Names are taken in the order of their bytes, so that two scans of
//! the same state give the same list.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::directory::{Directory, LEVELS};
use crate::error::{ChangesError, While as _};
use crate::node::{Kind, Node};

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is new.
    Added,
    /// Its content, its kind or its mode changed.
    Modified,
    /// It is gone.
    Deleted,
    /// Only its times changed, or which other names it has. Not counted.
    Touched,
}

/// A changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// What happened.
    pub action: Action,
    /// What is in the workspace.
    pub old: Option<Node>,
    /// What is in the layer.
    pub new: Option<Node>,
}

/// How many paths changed, and how many bytes of new content there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Added paths.
    pub added: u64,
    /// Modified paths.
    pub modified: u64,
    /// Deleted paths.
    pub deleted: u64,
    /// The bytes of blocks that added and modified files hold. Holes hold none.
    pub bytes: u64,
}

impl Counts {
    /// Counts a change.
    pub fn add(&mut self, change: &Change) {
        match change.action {
            Action::Added => self.added += 1,
            Action::Modified => self.modified += 1,
            Action::Deleted => self.deleted += 1,
            Action::Touched => {}
        }
        if matches!(change.action, Action::Added | Action::Modified)
            && let Some(new) = change.new.as_ref().filter(|new| new.kind == Kind::File)
        {
            self.bytes = self.bytes.saturating_add(new.share());
        }
    }

    /// Returns how many paths changed.
    pub fn paths(&self) -> u64 {
        self.added + self.modified + self.deleted
    }
}

/// A change, where it was found.
pub(crate) struct Found<'a> {
    pub(crate) change: &'a Change,
    pub(crate) name: &'a OsStr,
    /// The layer's directory that it is in; none below what is deleted as a whole.
    pub(crate) upper: Option<&'a Directory>,
    /// The workspace's directory that it is in; none below what is new there.
    pub(crate) workspace: Option<&'a Directory>,
    /// Whether it lies in a directory that is new or gone, whose own change came before.
    pub(crate) is_inside: bool,
}

/// Whether what lies in a directory is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descent {
    Enter,
    Skip,
}

type Visit<'v> = dyn FnMut(&Found<'_>) -> Result<Descent, ChangesError> + 'v;

/// Goes through all changes.
pub(crate) fn scan(upper: &Directory, workspace: &Directory, visit: &mut Visit<'_>) -> Result<(), ChangesError> {
    let mut walk = Walk {
        path: PathBuf::new(),
        levels: LEVELS,
        visit,
    };
    walk.directory(upper, Some(workspace), false, false)
}

struct Walk<'v, 'f> {
    path: PathBuf,
    levels: usize,
    visit: &'v mut Visit<'f>,
}

impl Walk<'_, '_> {
    /// A directory of the layer, over one of the workspace or over nothing.
    fn directory(
        &mut self,
        upper: &Directory,
        workspace: Option<&Directory>,
        is_inside: bool,
        is_hiding: bool,
    ) -> Result<(), ChangesError> {
        // What lies in a directory that hides the one below it hides too, marked or not.
        let is_hiding = is_hiding || workspace.is_some() && upper.is_opaque();
        let names = upper.names().doing("list", &self.path)?;
        let hides = match workspace {
            Some(workspace) if is_hiding => {
                let below = workspace.names().doing("list", &self.path)?;
                below
                    .into_iter()
                    .filter(|name| names.binary_search(name).is_err())
                    .collect()
            }
            _ => Vec::new(),
        };
        // Both are sorted, and so is what comes of them.
        let mut hidden = hides.into_iter().peekable();
        for name in names {
            while let Some(hidden) = hidden.next_if(|hidden| *hidden < name) {
                self.in_level(&hidden, |walk| walk.deleted(Some(upper), workspace, &hidden))?;
            }
            self.in_level(&name, |walk| walk.entry(upper, workspace, &name, is_inside, is_hiding))?;
        }
        for name in hidden {
            self.in_level(&name, |walk| walk.deleted(Some(upper), workspace, &name))?;
        }
        Ok(())
    }

    fn in_level(
        &mut self,
        name: &OsStr,
        act: impl FnOnce(&mut Self) -> Result<(), ChangesError>,
    ) -> Result<(), ChangesError> {
        self.path.push(name);
        if self.levels == 0 {
            return Err(ChangesError::TooDeep {
                path: self.path.clone(),
                levels: LEVELS,
            });
        }
        self.levels -= 1;
        let done = act(self);
        self.levels += 1;
        self.path.pop();
        done
    }

    /// A name in the layer.
    fn entry(
        &mut self,
        upper: &Directory,
        workspace: Option<&Directory>,
        name: &OsStr,
        is_inside: bool,
        is_hiding: bool,
    ) -> Result<(), ChangesError> {
        let Some(new) = upper.look(name).doing("look at", &self.path)? else {
            // A program that still runs has removed it meanwhile.
            return Ok(());
        };
        if upper.is_whiteout(name, &new) {
            return self.deleted(Some(upper), workspace, name);
        }
        let old = match workspace {
            Some(workspace) => workspace.look(name).doing("look at", &self.path)?,
            None => None,
        };
        let action = match &old {
            None => Some(Action::Added),
            Some(old) if old.kind != new.kind => Some(Action::Modified),
            Some(old) => self.compare(upper, workspace, name, old, &new)?,
        };
        let is_new = old.as_ref().is_none_or(|old| !old.is_directory());
        let mut descent = Descent::Enter;
        // What is replaced by another kind is gone with all that is in it.
        let gone = old.as_ref().filter(|old| old.is_directory() && !new.is_directory());
        let gone = gone.is_some();
        let is_directory = new.is_directory();
        if let Some(action) = action {
            let change = self.change(action, old, Some(new));
            descent = self.tell(&change, name, Some(upper), workspace, is_inside)?;
        }
        if descent == Descent::Skip {
            return Ok(());
        }
        if gone && let Some(workspace) = workspace {
            let below = workspace.child(name).doing("open", &self.path)?;
            self.all_gone(&below)?;
        }
        if is_directory {
            let child = upper.child(name).doing("open", &self.path)?;
            let below = match workspace.filter(|_| !is_new) {
                Some(workspace) => Some(workspace.child(name).doing("open", &self.path)?),
                None => None,
            };
            self.directory(&child, below.as_ref(), is_new, is_hiding)?;
        }
        Ok(())
    }

    /// What differs between two nodes of the same kind.
    fn compare(
        &self,
        upper: &Directory,
        workspace: Option<&Directory>,
        name: &OsStr,
        old: &Node,
        new: &Node,
    ) -> Result<Option<Action>, ChangesError> {
        if old.kind != Kind::Symlink && old.mode != new.mode {
            return Ok(Some(Action::Modified));
        }
        if old.kind == Kind::File && old.size != new.size {
            return Ok(Some(Action::Modified));
        }
        let Some(workspace) = workspace else { return Ok(None) };
        if !upper
            .has_same_content(name, workspace, old.kind)
            .doing("compare", &self.path)?
        {
            return Ok(Some(Action::Modified));
        }
        if old.kind == Kind::File
            && !upper
                .has_same_attributes(name, workspace)
                .doing("compare", &self.path)?
        {
            return Ok(Some(Action::Modified));
        }
        // With the same content it may still be the same file as another name, and was not before.
        let is_linked = new.links > 1 && new.links != old.links;
        let is_touched = old.kind == Kind::File && (old.modified != new.modified || is_linked);
        Ok(is_touched.then_some(Action::Touched))
    }

    /// A name that is gone, if it is in the workspace at all.
    fn deleted(
        &mut self,
        upper: Option<&Directory>,
        workspace: Option<&Directory>,
        name: &OsStr,
    ) -> Result<(), ChangesError> {
        let Some(workspace) = workspace else { return Ok(()) };
        let Some(old) = workspace.look(name).doing("look at", &self.path)? else {
            return Ok(());
        };
        let is_directory = old.is_directory();
        let change = self.change(Action::Deleted, Some(old), None);
        let descent = self.tell(&change, name, upper, Some(workspace), false)?;
        if is_directory && descent == Descent::Enter {
            let below = workspace.child(name).doing("open", &self.path)?;
            self.all_gone(&below)?;
        }
        Ok(())
    }

    /// Everything in a directory of the workspace is gone.
    fn all_gone(&mut self, workspace: &Directory) -> Result<(), ChangesError> {
        for name in workspace.names().doing("list", &self.path)? {
            self.in_level(&name, |walk| {
                let Some(old) = workspace.look(&name).doing("look at", &walk.path)? else {
                    return Ok(());
                };
                let is_directory = old.is_directory();
                let change = walk.change(Action::Deleted, Some(old), None);
                let descent = walk.tell(&change, &name, None, Some(workspace), true)?;
                if is_directory && descent == Descent::Enter {
                    let below = workspace.child(&name).doing("open", &walk.path)?;
                    walk.all_gone(&below)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn change(&self, action: Action, old: Option<Node>, new: Option<Node>) -> Change {
        Change {
            path: self.path.clone(),
            action,
            old,
            new,
        }
    }

    fn tell(
        &mut self,
        change: &Change,
        name: &OsStr,
        upper: Option<&Directory>,
        workspace: Option<&Directory>,
        is_inside: bool,
    ) -> Result<Descent, ChangesError> {
        (self.visit)(&Found {
            change,
            name,
            upper,
            workspace,
            is_inside,
        })
    }
}

/// Goes through everything below a directory, itself not included.
pub(crate) fn walk_all(
    directory: &Directory,
    path: &Path,
    visit: &mut dyn FnMut(&Path, &Node) -> Result<(), ChangesError>,
) -> Result<(), ChangesError> {
    fn go(
        directory: &Directory,
        path: &mut PathBuf,
        levels: usize,
        visit: &mut dyn FnMut(&Path, &Node) -> Result<(), ChangesError>,
    ) -> Result<(), ChangesError> {
        for name in directory.names().doing("list", &*path)? {
            path.push(&name);
            if levels == 0 {
                let path = path.clone();
                return Err(ChangesError::TooDeep { path, levels: LEVELS });
            }
            if let Some(node) = directory.look(&name).doing("look at", &*path)? {
                visit(path, &node)?;
                if node.is_directory() {
                    let child = directory.child(&name).doing("open", &*path)?;
                    go(&child, path, levels - 1, visit)?;
                }
            }
            path.pop();
        }
        Ok(())
    }
    go(directory, &mut path.to_path_buf(), LEVELS, visit)
}
