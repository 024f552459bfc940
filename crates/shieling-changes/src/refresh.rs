//! What a layer still has of changes that are in the workspace already.
//!
//! Nothing is removed from a layer while a sandbox uses it. So a committed file lies in the layer and hides what the
//! user makes of it in the workspace later. [`Shadows`] remembers both states as they were when it was committed: where
//! only the workspace's has changed since, the user's version is written into the layer through the overlay, so that
//! running programs see it too; where only the layer's has, a command changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::copied::Copied;
use crate::directory::{Directory, write_over};
use crate::error::{ChangesError, While as _};
use crate::node::{Kind, Node};
use crate::scan::{Action, Change};
use crate::set::ChangeSet;

/// The committed paths of a layer.
#[derive(Debug, Default)]
pub struct Shadows {
    paths: BTreeMap<PathBuf, Shadow>,
    /// Directories whose mode somebody else changed, with the layer's.
    modes: BTreeMap<PathBuf, u32>,
}

/// A path as it was on both sides. `None`: nothing.
#[derive(Debug)]
struct Shadow {
    layer: Option<Node>,
    workspace: Option<Node>,
}

impl Shadows {
    /// Returns how many paths there are.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether a difference between layer and workspace is not a command's doing.
    pub(crate) fn is_others(&self, change: &Change) -> bool {
        let is_directory = |node: &Option<Node>| node.as_ref().is_some_and(Node::is_directory);
        let mode = self.modes.get(&change.path);
        if is_directory(&change.old) && mode.is_some() && change.new.as_ref().map(|new| &new.mode) == mode {
            return true;
        }
        match self.paths.get(&change.path) {
            Some(shadow) => match (&shadow.layer, &change.new) {
                (None, None) => true,
                (Some(before), Some(now)) => before.is_untouched(now),
                _ => false,
            },
            // Somebody else made it in a directory that commands made and that was committed.
            None => {
                change.action == Action::Deleted
                    && change
                        .path
                        .ancestors()
                        .skip(1)
                        .filter(|above| !above.as_os_str().is_empty())
                        .any(|above| self.paths.get(above).is_some_and(|shadow| shadow.layer.is_some()))
            }
        }
    }

    /// Whether the workspace's side of a difference is what was committed from this layer.
    pub(crate) fn is_ours(&self, change: &Change) -> bool {
        let shadow = self.paths.get(&change.path);
        shadow.is_some_and(|shadow| match (&shadow.workspace, &change.old) {
            (None, None) => true,
            (Some(before), Some(now)) => before.is_untouched(now),
            _ => false,
        })
    }

    /// Remembers what was committed.
    pub(crate) fn add(&mut self, workspace: &Directory, copied: Copied) -> Result<(), ChangesError> {
        self.modes.extend(copied.modes);
        for (path, layer) in copied.same {
            let now = workspace.look_beneath(&path).doing("look at", &path)?;
            self.paths.insert(path, Shadow { layer, workspace: now });
        }
        for (path, layer) in copied.merged {
            // As if the user had made it just now: so it comes into the layer.
            self.paths.insert(path, Shadow { layer, workspace: None });
        }
        Ok(())
    }

    /// Removes from a set in which nobody works any more what was committed of it and is as it was then.
    ///
    /// # Errors
    /// If files cannot be looked at or removed.
    pub fn remove_committed(&self, set: &ChangeSet) -> Result<(), ChangesError> {
        let layers = self.paths.iter();
        let layers = layers.map(|(path, shadow)| (path.clone(), shadow.layer.clone()));
        set.remove_committed(&layers.collect(), false)
    }

    /// Removes once more, through the overlay's root, what commands removed of what was committed while they ran: to
    /// the kernel it was in the layer alone then, so that no mark says that it is gone, and the committed one shows.
    ///
    /// # Errors
    /// If files cannot be looked at or removed.
    pub fn withdraw(&self, set: &ChangeSet, view: std::os::fd::BorrowedFd<'_>) -> Result<(), ChangesError> {
        if self.paths.is_empty() {
            return Ok(());
        }
        let view = Directory::of(view).doing("open", "the view")?;
        let (layer, workspace) = (set.layer()?, set.tree()?);
        let mut gone = Vec::new();
        for (path, shadow) in &self.paths {
            if shadow.layer.is_some() && layer.look_beneath(path).doing("look at", path)?.is_none() {
                gone.push((path, shadow));
            }
        }
        // What lies in a directory comes before it, and keeps it if it stays.
        let mut kept: BTreeSet<&Path> = BTreeSet::new();
        for (path, shadow) in gone.into_iter().rev() {
            if kept.contains(path.as_path()) || !self.is_withdrawn(path, shadow, &view, &workspace)? {
                kept.extend(path.parent());
            }
        }
        Ok(())
    }

    /// Removes one of these through the overlay's root, unless somebody else has changed it or put something into it since.
    fn is_withdrawn(
        &self,
        path: &Path,
        shadow: &Shadow,
        view: &Directory,
        workspace: &Directory,
    ) -> Result<bool, ChangesError> {
        let Some(now) = workspace.look_beneath(path).doing("look at", path)? else {
            return Ok(true);
        };
        let Some(before) = &shadow.workspace else {
            return Ok(false);
        };
        let Some((at, name)) = view.parent_of(path).doing("open", path)? else {
            return Ok(true);
        };
        let Some(seen) = at.look(name).doing("look at", path)? else {
            return Ok(true);
        };
        let is_it = (now.kind, now.mode, now.modified) == (seen.kind, seen.mode, seen.modified);
        let flags = match now.is_directory() {
            true if before.is_same(&now) && seen.is_directory() => {
                let inside = workspace.beneath(path).doing("open", path)?;
                let names = inside.map(|inside| inside.names()).transpose().doing("list", path)?;
                let mut names = names.into_iter().flatten();
                if names.any(|name| !self.paths.contains_key(&path.join(name))) {
                    return Ok(false);
                }
                AtFlags::REMOVEDIR
            }
            false if before.is_untouched(&now) && is_it => AtFlags::empty(),
            _ => return Ok(false),
        };
        match at.unlink(name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => Ok(false),
            Err(errno) => Err(errno).doing("remove", path),
        }
    }

    /// Brings what others changed in the workspace into the layer, through the overlay's root. Gives how many paths.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn refresh(&mut self, set: &ChangeSet, view: std::os::fd::BorrowedFd<'_>) -> Result<u64, ChangesError> {
        if self.paths.is_empty() {
            return Ok(0);
        }
        let view = Directory::of(view).doing("open", "the view")?;
        let (layer, workspace) = (set.layer()?, set.tree()?);
        let mut changed = Vec::new();
        for (path, shadow) in &self.paths {
            let now = workspace.look_beneath(path).doing("look at", path)?;
            let same = match (&shadow.workspace, &now) {
                (None, None) => true,
                (Some(before), Some(now)) if now.is_directory() => {
                    before.is_same(now) && before.mode == now.mode && before.changed == now.changed
                }
                (Some(before), Some(now)) => before.is_untouched(now),
                _ => false,
            };
            if !same {
                changed.push((path.clone(), now));
            }
        }
        let mut count = 0;
        for (path, now) in changed {
            let Some(shadow) = self.paths.get(&path) else { continue };
            let in_layer = layer.look_beneath(&path).doing("look at", &path)?;
            let in_layer = in_layer.filter(|node| !node.is_zero_device);
            let untouched = match (&shadow.layer, &in_layer) {
                (None, None) => true,
                (Some(before), Some(now)) => before.is_untouched(now),
                _ => false,
            };
            if !untouched {
                // Both changed: that is for the next commit to find.
                continue;
            }
            count += 1;
            let both_directories =
                shadow.layer.as_ref().is_some_and(Node::is_directory) && now.as_ref().is_some_and(Node::is_directory);
            if both_directories {
                self.fill(&path, &view, &workspace, &layer)?;
            } else {
                import(&path, now.as_ref(), &view, &workspace)?;
            }
            self.remember(&path, &layer, &workspace)?;
        }
        Ok(count)
    }

    fn remember(&mut self, path: &Path, layer: &Directory, workspace: &Directory) -> Result<(), ChangesError> {
        let in_layer = layer.look_beneath(path).doing("look at", path)?;
        let shadow = Shadow {
            layer: in_layer.filter(|node| !node.is_zero_device),
            workspace: workspace.look_beneath(path).doing("look at", path)?,
        };
        self.paths.insert(path.to_path_buf(), shadow);
        Ok(())
    }

    /// Brings what is new in a directory, which the layer hides, into it.
    fn fill(
        &mut self,
        path: &Path,
        view: &Directory,
        workspace: &Directory,
        layer: &Directory,
    ) -> Result<(), ChangesError> {
        let Some(here) = workspace.beneath(path).doing("open", path)? else {
            return Ok(());
        };
        for name in here.names().doing("list", path)? {
            let inside = path.join(&name);
            let seen = view.look_beneath(&inside).doing("look at", &inside)?;
            if seen.is_some() || self.paths.contains_key(&inside) {
                continue;
            }
            let Some(node) = here.look(&name).doing("look at", &inside)? else {
                continue;
            };
            import(&inside, Some(&node), view, workspace)?;
            self.remember(&inside, layer, workspace)?;
            if node.is_directory() {
                self.fill(&inside, view, workspace, layer)?;
            }
        }
        Ok(())
    }
}

/// Makes a path in the view what it is in the workspace. A file that stays one is written to, so that whoever has it
/// open or watches it sees that.
fn import(path: &Path, node: Option<&Node>, view: &Directory, workspace: &Directory) -> Result<(), ChangesError> {
    let Some((to, name)) = view.parent_of(path).doing("open", path)? else {
        return Ok(());
    };
    let seen = to.look(name).doing("look at", path)?;
    let Some(node) = node else {
        return to.remove(name).doing("remove", path);
    };
    let Some((from, _)) = workspace.parent_of(path).doing("open", path)? else {
        return Ok(());
    };
    if let Some(seen) = &seen {
        if seen.kind == Kind::File && node.kind == Kind::File {
            let source = from.read(name).doing("read", path)?;
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            if let Ok(target) = rustix::fs::openat(&to, name, flags, Mode::empty()) {
                let target = std::fs::File::from(target);
                // At no moment is it empty for whoever reads it.
                write_over(&source, &target).doing("write", path)?;
                to.set_mode(name, node.mode).doing("set the mode of", path)?;
                return to
                    .set_times(name, node.accessed, node.modified)
                    .doing("set the times of", path);
            }
        }
        if seen.is_directory() && node.is_directory() {
            return to.set_mode(name, node.mode).doing("set the mode of", path);
        }
        to.remove(name).doing("remove", path)?;
    }
    from.copy(name, node, &to, name).doing("copy", path)
}
