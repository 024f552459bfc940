//! Does a plan's steps, or takes them back, so that all of them hold in the end or none.
//!
//! ```text
//!            journal `forward`            journal gone
//! planned ─────────────────────► applying ────────────► applied
//!                                   │ a step fails          │ undo: journal `back`
//!                                   ▼ journal `back`        ▼
//!                                taking back ◄──────────────┘
//!                                   │ journal gone
//!                                   ▼
//!                                 as before
//! ```
//!
//! Whoever finds a journal goes on in its direction: each step shows by the files themselves whether it is done. What
//! somebody else changed since the plan was made is not overwritten: the step fails, and all is taken back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::{Identity, Node, Time};
use crate::plan::{PLAN, Reader, Step};

/// The name of the journal, and of the directory with what was removed from the workspace.
const JOURNAL: &str = "journal";
pub(crate) const REMOVED: &str = "removed";

/// Which way steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Back,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// All steps hold.
    Applied,
    /// None does, but for what somebody changed meanwhile, which is left as it is; this is why, unless it was asked for.
    TakenBack { why: Option<ChangesError>, is_whole: bool },
}

/// The three directories between which steps move.
pub(crate) struct Places<'d> {
    pub(crate) set: &'d Directory,
    pub(crate) upper: &'d Directory,
    pub(crate) workspace: &'d Directory,
}

/// Returns in which direction somebody was going who did not finish.
pub(crate) fn unfinished(set: &Directory) -> Result<Option<Direction>, ChangesError> {
    match set.read_some(JOURNAL, 16) {
        Ok(text) if text == b"forward" => Ok(Some(Direction::Forward)),
        Ok(_) => Ok(Some(Direction::Back)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).doing("read", JOURNAL),
    }
}

/// Writes down the direction, and goes. `end` is called before the journal is removed, to record how it ended.
pub(crate) fn run(
    places: &Places<'_>,
    direction: Direction,
    end: impl FnOnce(&Ended) -> Result<(), ChangesError>,
) -> Result<Ended, ChangesError> {
    let note = |direction| {
        let text: &[u8] = match direction {
            Direction::Forward => b"forward",
            Direction::Back => b"back",
        };
        places.set.replace(JOURNAL, text).doing("write", JOURNAL)
    };
    note(direction)?;
    let removed = places.set.make_all(Path::new(REMOVED)).doing("create", REMOVED)?;
    let mut steps = Steps {
        places,
        removed,
        last: None,
        put: None,
        is_whole: true,
    };
    let done = match direction {
        Direction::Forward => steps.forward().map_err(Some),
        Direction::Back => Err(None),
    };
    let ended = match done {
        Ok(()) => Ended::Applied,
        Err(why) => {
            if why.is_some() {
                note(Direction::Back)?;
            }
            steps.back()?;
            Ended::TakenBack {
                why,
                is_whole: steps.is_whole,
            }
        }
    };
    end(&ended)?;
    places.set.unlink_if_there(JOURNAL).doing("remove", JOURNAL)?;
    if let Ended::TakenBack { .. } = ended {
        // Not before: whoever finds the journal needs the plan.
        forget(places.set)?;
    }
    Ok(ended)
}

/// Returns the paths that changed since the plan was applied, the first few.
pub(crate) fn changed_since(places: &Places<'_>, committed: i128) -> Result<Vec<PathBuf>, ChangesError> {
    const TOLD: usize = 20;
    let mut changed = Vec::new();
    let Some(mut reader) = Reader::open(places.set, PLAN)? else {
        return Ok(changed);
    };
    let put = Planned::of(places)?;
    while let Some(step) = reader.next::<Step>()? {
        if changed.len() >= TOLD {
            break;
        }
        match step {
            Step::Holds { .. } => {}
            Step::Put { path, new, .. } => {
                let now = places.workspace.look_beneath(&path).doing("look at", &path)?;
                match now {
                    // What others do in a directory shows in what is in it.
                    Some(now) if now.is_same(&new) && now.is_directory() => {
                        let room = TOLD - changed.len();
                        changed
                            .extend(put.altered_in(places.workspace, &path, room, &|node| node.changed <= committed)?);
                    }
                    Some(now) if now.is_same(&new) && now.changed <= committed => {}
                    Some(_) | None => changed.push(path),
                }
            }
            Step::Remove { path, .. } => {
                let now = places.workspace.look_beneath(&path).doing("look at", &path)?;
                let parent = path.parent().unwrap_or(Path::new(""));
                // Its directory may be gone too, and then it cannot come back to it.
                if now.is_some() || places.workspace.beneath(parent).doing("open", parent)?.is_none() {
                    changed.push(path);
                }
            }
            Step::SetMode { path, node, new, .. } => {
                let now = places.workspace.look_beneath(&path).doing("look at", &path)?;
                if now.is_none_or(|now| now.identity() != node || now.mode != new) {
                    changed.push(path);
                }
            }
            Step::SetTimes { path, node, new, .. } => {
                let now = places.workspace.look_beneath(&path).doing("look at", &path)?;
                if now.is_none_or(|now| now.identity() != node || now.modified != new.1) {
                    changed.push(path);
                }
            }
        }
    }
    Ok(changed)
}

/// What is known of what a plan puts.
struct Planned {
    /// The directories that lie in those which are put.
    inside: HashSet<Identity>,
    /// When the plan was made. Nothing in what it puts has changed after it but by others.
    planned: Time,
}

impl Planned {
    fn of(places: &Places<'_>) -> Result<Self, ChangesError> {
        let planned = places.set.look(PLAN).doing("look at", PLAN)?;
        let mut put = Self {
            inside: HashSet::new(),
            planned: planned.map_or(Time::MAX, |plan| plan.changed),
        };
        if let Some(mut reader) = Reader::open(places.set, PLAN)? {
            while let Some(step) = reader.next::<Step>()? {
                if let Step::Holds { node } = step {
                    put.inside.insert(node);
                }
            }
        }
        Ok(put)
    }

    /// Returns what others changed in a directory that was put, or moved into it, the first few.
    fn altered_in(
        &self,
        workspace: &Directory,
        path: &Path,
        most: usize,
        is_unchanged: &dyn Fn(&Node) -> bool,
    ) -> Result<Vec<PathBuf>, ChangesError> {
        let mut altered = Vec::new();
        let Some(inside) = workspace.beneath(path).doing("open", path)? else {
            return Ok(altered);
        };
        crate::scan::walk_all(&inside, path, &mut |path, node| {
            let is_ours = match node.is_directory() {
                true => self.inside.contains(&node.identity()),
                false => is_unchanged(node),
            };
            if !is_ours && altered.len() < most {
                altered.push(path.to_path_buf());
            }
            Ok(())
        })?;
        Ok(altered)
    }

    /// Whether others changed what was put.
    fn is_altered(&self, path: &Path, new: &Node, here: &Node, workspace: &Directory) -> Result<bool, ChangesError> {
        match here.is_directory() {
            true => {
                // Steps change another name of the same file.
                let is_unchanged = |node: &Node| node.changed <= self.planned || node.links > 1;
                Ok(!self.altered_in(workspace, path, 1, &is_unchanged)?.is_empty())
            }
            false => Ok(!new.is_unchanged(here)),
        }
    }
}

struct Steps<'p> {
    places: &'p Places<'p>,
    removed: Directory,
    /// The directories of the last step: the next is often in them too.
    last: Option<(PathBuf, Directory, Option<Directory>)>,
    /// Known once steps are taken back.
    put: Option<Planned>,
    /// Whether all steps so far could be taken back.
    is_whole: bool,
}

impl Steps<'_> {
    fn reader(&self) -> Result<Reader, ChangesError> {
        let missing = || Err(std::io::Error::from(std::io::ErrorKind::NotFound)).doing("read", PLAN);
        Reader::open(self.places.set, PLAN)?.map_or_else(missing, Ok)
    }

    fn forward(&mut self) -> Result<(), ChangesError> {
        let mut reader = self.reader()?;
        while let Some(step) = reader.next::<Step>()? {
            self.go(&step, Direction::Forward)?;
        }
        Ok(())
    }

    fn back(&mut self) -> Result<(), ChangesError> {
        self.put = Some(Planned::of(self.places)?);
        let mut reader = self.reader()?;
        reader.seek_end();
        while let Some(step) = reader.previous::<Step>()? {
            self.go(&step, Direction::Back)?;
        }
        Ok(())
    }

    /// The directory of the workspace that a path is in, and the layer's.
    fn parents(&mut self, path: &Path) -> Result<(&Directory, Option<&Directory>), ChangesError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if self.last.as_ref().is_none_or(|(last, ..)| last != parent) {
            let moving = || ChangesError::Moving {
                path: path.to_path_buf(),
            };
            let workspace = self.places.workspace.beneath(parent).doing("open", parent)?;
            let upper = self.places.upper.beneath(parent).doing("open", parent)?;
            self.last = Some((parent.to_path_buf(), workspace.ok_or_else(moving)?, upper));
        }
        let (_, workspace, upper) = self.last.as_ref().expect("just set");
        Ok((workspace, upper.as_ref()))
    }

    fn go(&mut self, step: &Step, direction: Direction) -> Result<(), ChangesError> {
        let forward = direction == Direction::Forward;
        match step {
            Step::Holds { .. } => Ok(()),
            Step::Put { path, new, old } => {
                let moving = || ChangesError::Moving { path: path.clone() };
                let name = path.file_name().unwrap_or_default();
                let (workspace, _) = self.parents(path)?;
                let here = workspace.look(name).doing("look at", path)?;
                let done = here.as_ref().filter(|here| here.is_same(new));
                if done.is_some() == forward {
                    return Ok(());
                }
                if let (Some(done), Some(put)) = (done, &self.put)
                    && put.is_altered(path, new, done, self.places.workspace)?
                {
                    // It stays where whoever changed it looks for it.
                    self.is_whole = false;
                    return Ok(());
                }
                let (workspace, upper) = self.parents(path)?;
                let upper = upper.ok_or_else(moving)?;
                if !forward {
                    return match old {
                        None => workspace.rename(name, upper, name),
                        Some(_) => workspace.exchange(name, upper, name),
                    }
                    .doing("take back", path);
                }
                let there = upper.look(name).doing("look at", path)?;
                if there.is_none_or(|there| !there.is_same(new)) {
                    return Err(moving());
                }
                match (old, here) {
                    (None, None) => match upper.rename(name, workspace, name) {
                        Err(Errno::EXIST) => Err(moving()),
                        renamed => renamed.doing("move into the workspace", path),
                    },
                    (Some(old), Some(here)) if is_as_planned(old, &here) => {
                        upper
                            .exchange(name, workspace, name)
                            .doing("move into the workspace", path)?;
                        let got = upper.look(name).doing("look at", path)?;
                        if got.is_some_and(|got| is_as_planned(old, &got)) {
                            return Ok(());
                        }
                        upper.exchange(name, workspace, name).doing("take back", path)?;
                        Err(moving())
                    }
                    _ => Err(moving()),
                }
            }
            Step::Remove { path, old, number } => {
                let moving = || ChangesError::Moving { path: path.clone() };
                let removed = self.removed.try_clone().doing("hold", REMOVED)?;
                let number = number.to_string();
                let number = number.as_ref();
                let is_done = removed.look(number).doing("look at", path)?.is_some();
                if is_done == forward {
                    return Ok(());
                }
                let name = path.file_name().unwrap_or_default();
                let (workspace, _) = self.parents(path)?;
                if !forward {
                    return removed.rename(number, workspace, name).doing("take back", path);
                }
                let here = workspace.look(name).doing("look at", path)?;
                if here.is_none_or(|here| !is_as_planned(old, &here)) {
                    return Err(moving());
                }
                workspace.rename(name, &removed, number).doing("remove", path)?;
                let got = removed.look(number).doing("look at", path)?;
                if got.is_some_and(|got| is_as_planned(old, &got)) {
                    return Ok(());
                }
                removed.rename(number, workspace, name).doing("take back", path)?;
                Err(moving())
            }
            Step::SetMode { path, node, old, new } => {
                let name = path.file_name().unwrap_or_default();
                let (workspace, _) = self.parents(path)?;
                let here = workspace.look(name).doing("look at", path)?;
                let (from, to) = if forward { (*old, *new) } else { (*new, *old) };
                match here.filter(|here| here.identity() == *node) {
                    Some(here) if here.mode == to => Ok(()),
                    Some(here) if here.mode == from => workspace.set_mode(name, to).doing("set the mode of", path),
                    // Somebody else has changed it; what he made of it stays.
                    _ if !forward => Ok(()),
                    _ => Err(ChangesError::Moving { path: path.clone() }),
                }
            }
            Step::SetTimes { path, node, old, new } => {
                let name = path.file_name().unwrap_or_default();
                let (workspace, _) = self.parents(path)?;
                let here = workspace.look(name).doing("look at", path)?;
                let (from, to) = if forward { (old, new) } else { (new, old) };
                match here.filter(|here| here.identity() == *node) {
                    Some(here) if here.modified == to.1 => Ok(()),
                    Some(here) if here.modified == from.1 => {
                        workspace.set_times(name, to.0, to.1).doing("set the times of", path)
                    }
                    _ if !forward => Ok(()),
                    _ => Err(ChangesError::Moving { path: path.clone() }),
                }
            }
        }
    }
}

/// Whether a node is the one of the plan. What is in a directory was looked at when the plan was made.
fn is_as_planned(planned: &Node, now: &Node) -> bool {
    planned.is_unchanged(now)
}

/// Removes what only undoing needs, once nothing is to be undone.
fn forget(set: &Directory) -> Result<(), ChangesError> {
    set.unlink_if_there(PLAN).doing("remove", PLAN)?;
    set.remove(REMOVED).doing("remove", REMOVED)
}
