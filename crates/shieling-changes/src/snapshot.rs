//! Copies a part of a set's changes into a set of its own, which can then be committed as a whole while commands go on
//! in the first one.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::base::{Bases, Merged};
use crate::copied::Copied;
use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::held::{Held, HeldPaths};
use crate::node::{Identity, Kind, Node};
use crate::refresh::Shadows;
use crate::scan::{Action, Descent, Found};
use crate::set::{ChangeSet, Choice, Judged, Limits, check};
use crate::usage::Usage;

/// The owner's rights without which nothing can be put into a directory.
const OPEN: u32 = 0o700;

pub(crate) struct Snapshot<'s> {
    from: &'s ChangeSet,
    upper: &'s Directory,
    choice: &'s Choice,
    held: &'s HeldPaths,
    /// Whether it is only counted, and nothing copied.
    is_counting: bool,
    /// Where copies of files with several names are.
    links: HashMap<Identity, PathBuf>,
    /// Directories that are closed once everything is in them.
    closed: Vec<(PathBuf, u32)>,
    /// The directory that was copied to last.
    last: Option<(PathBuf, Directory)>,
    /// The path and node of everything that was copied.
    pub(crate) copied: Copied,
    pub(crate) judged: Judged,
    /// What cannot be copied, whatever was chosen, and so is held back.
    pub(crate) uncopied: Vec<Held>,
}

impl<'s> Snapshot<'s> {
    pub(crate) fn new(from: &'s ChangeSet, upper: &'s Directory, choice: &'s Choice, held: &'s HeldPaths) -> Self {
        Self {
            from,
            upper,
            choice,
            held,
            is_counting: false,
            links: HashMap::new(),
            closed: Vec::new(),
            last: None,
            copied: Copied::default(),
            judged: Judged::default(),
            uncopied: Vec::new(),
        }
    }

    /// Copies what is chosen and not held back, and neither committed before nor somebody else's change. Nothing is copied
    /// if that is more than the limits.
    pub(crate) fn take(
        &mut self,
        bases: &Bases,
        shadows: Option<&Shadows>,
        limits: Limits,
    ) -> Result<(), ChangesError> {
        // To copy it until it is too much takes minutes. A layer that is within the limits has no changes beyond them, but for
        // what is deleted with its directory, of which nothing is copied.
        if Usage::of(&self.from.upper(), limits)?.exceeds(limits) {
            let mut counted = Snapshot::new(self.from, self.upper, self.choice, self.held);
            counted.is_counting = true;
            counted.go_through(bases, shadows, limits)?;
        }
        self.go_through(bases, shadows, limits)
    }

    fn go_through(&mut self, bases: &Bases, shadows: Option<&Shadows>, limits: Limits) -> Result<(), ChangesError> {
        let from = self.from;
        let workspace = from.tree()?;
        // Below a directory that is gone as a whole.
        let mut whole: Option<PathBuf> = None;
        from.scan(&mut |found| {
            let change = found.change;
            let path = &change.path;
            if shadows.is_some_and(|shadows| shadows.is_others(change)) {
                return Ok(Descent::Enter);
            }
            if bases.keeps_mode(change) {
                if let Some(new) = &change.new {
                    self.copied.modes.push((path.clone(), new.mode));
                }
                return Ok(Descent::Enter);
            }
            if self.choice.is_below(path) && change.old.as_ref().is_some_and(|old| !old.is_directory()) {
                // It would be replaced by a directory unasked.
                let because = "what is chosen lies in it, and in the workspace it is no directory";
                self.judged.note_conflict(path, because.to_owned());
                return Ok(Descent::Enter);
            }
            if !self.choice.has(path) || self.is_held(path) {
                return Ok(Descent::Enter);
            }
            if let Some(new) = change
                .new
                .as_ref()
                .filter(|new| matches!(new.kind, Kind::Socket | Kind::Device))
            {
                self.uncopied.push(uncopied(path, new));
                return Ok(Descent::Enter);
            }
            self.judged.note(change);
            check(&self.judged, limits)?;
            if self.is_counting {
                return Ok(Descent::Enter);
            }
            let is_ours = shadows.is_some_and(|shadows| shadows.is_ours(change));
            if !is_ours && bases.has_moved(found)? {
                if let Some(merged) = bases.merge(found)? {
                    self.judged.merged += 1;
                    self.write(found, &merged, &workspace)?;
                    return Ok(Descent::Enter);
                }
                self.judged.note_conflict(path, bases.tell(found));
            }
            if whole.as_ref().is_some_and(|whole| path.starts_with(whole)) {
                return Ok(Descent::Enter);
            }
            match change.action {
                Action::Deleted if change.old.as_ref().is_some_and(Node::is_directory) => {
                    let mut below = self
                        .held
                        .range(path.clone()..)
                        .take_while(|held| held.starts_with(path));
                    if below.next().is_none() {
                        whole = Some(path.clone());
                        self.white_out(path, found.name, &workspace)?;
                    }
                }
                Action::Deleted => self.white_out(path, found.name, &workspace)?,
                Action::Added | Action::Modified | Action::Touched => {
                    self.copy(found, &workspace)?;
                    // What lies in a directory is gone with it, and there is no place for a mark of that.
                    let is_directory = |node: &Option<Node>| node.as_ref().is_some_and(Node::is_directory);
                    if is_directory(&change.old) && !is_directory(&change.new) {
                        whole = Some(path.clone());
                    }
                }
            }
            Ok(Descent::Enter)
        })?;
        self.close()
    }

    fn is_held(&self, path: &Path) -> bool {
        // What lay in a directory whose place such a thing took stays as well. It comes right after it.
        let is_below = |uncopied: &Held| path.starts_with(&uncopied.path);
        self.uncopied.last().is_some_and(is_below)
            || !self.held.is_empty() && path.ancestors().any(|path| self.held.contains(path))
    }

    /// The copy's directory for a path, made like the one that will be there.
    fn parent(&mut self, path: &Path, workspace: &Directory) -> Result<&Directory, ChangesError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            let mut at = self.upper.try_clone().doing("open", parent)?;
            let mut here = PathBuf::new();
            for name in parent {
                here.push(name);
                match rustix::fs::mkdirat(&at, name, rustix::fs::Mode::RWXU) {
                    Ok(()) => {
                        let like = match workspace.look_beneath(&here).doing("look at", &here)? {
                            Some(node) if node.is_directory() => Some(node),
                            _ => self.from.layer()?.look_beneath(&here).doing("look at", &here)?,
                        };
                        let mode = like.map_or(0o755, |node| node.mode);
                        self.set_mode(&at, name, &here, mode)?;
                    }
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno).doing("create", &here),
                }
                at = at.child(name).doing("open", &here)?;
            }
            self.last = Some((parent.to_path_buf(), at));
        }
        let (_, directory) = self.last.as_ref().expect("just set");
        Ok(directory)
    }

    fn set_mode(&mut self, at: &Directory, name: &OsStr, path: &Path, mode: u32) -> Result<(), ChangesError> {
        if mode & OPEN != OPEN {
            self.closed.push((path.to_path_buf(), mode));
        }
        at.set_mode(name, mode | OPEN).doing("set the mode of", path)
    }

    fn copy(&mut self, found: &Found<'_>, workspace: &Directory) -> Result<(), ChangesError> {
        let path = &found.change.path;
        let (Some(new), Some(from)) = (&found.change.new, found.upper) else {
            return Ok(());
        };
        self.parent(path, workspace)?;
        if new.kind == Kind::File && new.links > 1 {
            let first = self.links.get(&new.identity()).cloned();
            if let Some(first) = first
                && let Some((directory, name)) = self.upper.parent_of(&first).doing("open", &first)?
            {
                let to = self.parent(path, workspace)?;
                rustix::fs::linkat(&directory, name, to, found.name, rustix::fs::AtFlags::empty())
                    .doing("link", path)?;
                self.copied.same.push((path.clone(), Some(new.clone())));
                return Ok(());
            }
            self.links.insert(new.identity(), path.clone());
        }
        let to = match self.last.as_ref() {
            Some((_, to)) => to,
            None => return Ok(()),
        };
        match from.copy(found.name, new, to, found.name) {
            Ok(()) => {}
            // A directory that was made for what is in it.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && new.is_directory() => {}
            // A command that still runs has removed it meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).doing("copy", path),
        }
        if new.is_directory() {
            if self.from.is_live && found.change.action != Action::Modified {
                // Once it is in the workspace too, the overlay would lay the one over the other for whoever comes to it by
                // its name, and not for whoever is in it already.
                from.make_opaque(found.name).doing("mark", path)?;
            }
            let to = to.try_clone().doing("open", path)?;
            self.set_mode(&to, found.name, path, new.mode)?;
        }
        self.copied.same.push((path.clone(), Some(new.clone())));
        Ok(())
    }

    fn write(&mut self, found: &Found<'_>, merged: &Merged, workspace: &Directory) -> Result<(), ChangesError> {
        use std::io::Write as _;
        let path = &found.change.path;
        let to = self.parent(path, workspace)?;
        let made = to.create(found.name).map_err(std::io::Error::from);
        made.and_then(|mut file| file.write_all(&merged.text))
            .doing("write", path)?;
        to.set_mode(found.name, merged.mode).doing("set the mode of", path)?;
        self.copied.merged.push((path.clone(), found.change.new.clone()));
        Ok(())
    }

    fn white_out(&mut self, path: &Path, name: &OsStr, workspace: &Directory) -> Result<(), ChangesError> {
        self.parent(path, workspace)?.white_out(name).doing("mark", path)?;
        self.copied.same.push((path.to_path_buf(), None));
        Ok(())
    }

    fn close(&mut self) -> Result<(), ChangesError> {
        self.last = None;
        while let Some((path, mode)) = self.closed.pop() {
            self.upper
                .set_mode_beneath(&path, mode)
                .doing("set the mode of", &path)?;
        }
        Ok(())
    }
}

/// The rule by which is held back what cannot be copied: no part of a set can be made of it.
pub const UNCOPIED: &str = "kind.uncopied";

fn uncopied(path: &Path, node: &Node) -> Held {
    Held {
        path: path.to_path_buf(),
        rule: UNCOPIED,
        because: format!(
            "it is a {}, which cannot be copied into the workspace",
            node.kind.name()
        ),
        instead: "make it in `/tmp`".to_owned(),
    }
}
