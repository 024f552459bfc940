//! One change set: what is in it, and what becomes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use shieling_gate::{Change as JudgedChange, Decision, Entry, Gate, Lead};

use crate::apply::{self, Direction, Ended, Places, REMOVED};
use crate::base::{self, Bases, CopyRecorder, Merged, Recorder};
use crate::diff::{Diff, DiffLimits};
use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::fingerprint::Fingerprint;
use crate::header::{self, Header, Mode, State, Summary};
use crate::held::{Held, HeldPaths, changes_owner, conceals, fixed, hidden, owned, ruled};
use crate::lock::Lock;
use crate::node::{Kind, Node, Time};
use crate::owners::Owners;
use crate::plan::{PLAN, Step, Writer};
use crate::renames::{Candidates, Rename};
use crate::rules::{Matcher, Rule, Tally};
use crate::scan::{self, Action, Change, Counts, Descent, Found};
use crate::stop::Stop;
use crate::tree::{Layered, entry_of};
use crate::undo;

/// The names of the layer and of the directory that an overlay works in.
pub(crate) const UPPER: &str = "upper";
pub(crate) const WORK: &str = "work";
/// Merged texts, under numbers.
pub(crate) const MERGED: &str = "merged";

/// How many paths and reasons are kept of one look; the numbers are exact beyond that.
const TOLD: usize = 200;

/// The bounds of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Changed paths.
    pub entries: u64,
    /// Bytes of blocks that added and modified files hold. Holes hold none, however long a file says it is.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 500_000,
            bytes: 8 << 30,
        }
    }
}

/// What the gate has to know beside the trees.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Paths in the workspace that the user's tools are led to from elsewhere.
    pub leads: Vec<Lead>,
    /// Directories outside to which links may lead.
    pub toolchains: Vec<PathBuf>,
    /// Paths in the workspace, relative to it, that decide what commands may do: they are held back whatever they are.
    pub fixed: Vec<PathBuf>,
    /// What the caller's policy holds back beside what the gate does.
    pub rules: Vec<Rule>,
    /// What of the workspace does not exist for commands. What they make there is held back, and is never a conflict.
    pub hidden: Option<Arc<dyn Matcher>>,
}

impl Surroundings {
    pub(crate) fn of_gate<'a>(
        &'a self,
        root: &'a Path,
        before: &'a Layered<'_>,
        after: &'a Layered<'_>,
    ) -> shieling_gate::Surroundings<'a> {
        shieling_gate::Surroundings {
            root,
            home: self.home.as_deref(),
            before,
            after,
            leads: &self.leads,
            toolchains: &self.toolchains,
        }
    }
}

/// What of a set is committed.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only these paths and what lies below them; everything if there are none.
    pub only: Vec<PathBuf>,
    /// Whether the set's version is taken where the workspace changed as well. The other is kept for undoing.
    pub overwrite: bool,
    /// Whether what is held back is committed too.
    pub accept_held_back: bool,
    /// What a person was shown of it, and within which bounds: anything else is not committed.
    pub shown: Option<(Fingerprint, DiffLimits)>,
}

impl Choice {
    /// Whether a path is chosen.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| path.starts_with(only))
    }

    /// Whether something that is chosen lies below a path that is not.
    pub(crate) fn is_below(&self, path: &Path) -> bool {
        !self.has(path) && self.only.iter().any(|only| only.starts_with(path))
    }
}

/// A path that changed on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// What both sides did.
    pub because: String,
}

/// What a look at a set found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// How much changed.
    pub counts: Counts,
    /// The first paths that were added.
    pub added: Vec<PathBuf>,
    /// The first paths that were modified.
    pub modified: Vec<PathBuf>,
    /// The first paths that were deleted.
    pub deleted: Vec<PathBuf>,
    /// The first of those deleted and added paths that are the same thing under another name.
    pub renamed: Vec<Rename>,
    /// How many renames there are.
    pub renames: u64,
    /// What is held back, the first of it.
    pub held: Vec<Held>,
    /// How much is held back.
    pub held_back: u64,
    /// What changed on both sides and cannot be merged, the first of it.
    pub conflicts: Vec<Conflict>,
    /// How much of that there is.
    pub conflicting: u64,
    /// How many texts that changed on both sides were merged.
    pub merged: u64,
    /// Which those are.
    pub(crate) merged_paths: Vec<PathBuf>,
    /// The added or modified file that holds the most, with the bytes that it holds.
    pub(crate) largest: Option<(PathBuf, u64)>,
}

impl Judged {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.counts.paths() == 0
    }

    pub(crate) fn note(&mut self, change: &Change) {
        self.counts.add(change);
        if let (Action::Added | Action::Modified, Some(new)) = (change.action, &change.new)
            && new.kind == Kind::File
            && new.share() > self.largest.as_ref().map_or(0, |(_, bytes)| *bytes)
        {
            self.largest = Some((change.path.clone(), new.share()));
        }
        let list = match change.action {
            Action::Added => &mut self.added,
            Action::Modified => &mut self.modified,
            Action::Deleted => &mut self.deleted,
            Action::Touched => return,
        };
        if list.len() < TOLD {
            list.push(change.path.clone());
        }
    }

    fn note_renames(&mut self, mut renames: Vec<Rename>) {
        self.renames = renames.len() as u64;
        renames.truncate(TOLD);
        self.renamed = renames;
    }

    /// Notes that a path is held back, once.
    fn hold(&mut self, reason: Held, held: &mut HeldPaths) {
        if held.insert(reason.path.clone()) {
            self.held_back += 1;
            if self.held.len() < TOLD {
                self.held.push(reason);
            }
        }
    }

    pub(crate) fn note_conflict(&mut self, path: &Path, because: String) {
        self.conflicting += 1;
        if self.conflicts.len() < TOLD {
            self.conflicts.push(Conflict {
                path: path.to_path_buf(),
                because,
            });
        }
    }
}

/// What is put into a set.
#[derive(Debug, Clone, Copy)]
pub enum Put<'p> {
    /// A file.
    File {
        /// What is in it.
        content: &'p [u8],
        /// Its permission bits.
        mode: u32,
    },
    /// A link to this target.
    Link(&'p Path),
}

/// What is in a set at a path, if it is a file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// A file.
    File {
        /// What is in it.
        content: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A link to this target.
    Link(PathBuf),
}

/// How a commit ended.
#[derive(Debug)]
pub struct Committed {
    /// The set whose changes are in the workspace now, which can be undone: this one, or a new one with a part of it.
    /// `None` if nothing was committed.
    pub id: Option<String>,
    /// What was committed, or would have been, and what was not.
    pub judged: Judged,
}

/// A set.
#[derive(Debug)]
pub struct ChangeSet {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    pub(crate) directory: Directory,
    pub(crate) header: Header,
    /// Held by the sandbox that works in it, or by whoever changes it.
    pub(crate) lock: Option<Lock>,
    /// Whether a sandbox works in it.
    pub(crate) is_live: bool,
    pub(crate) stop: Stop,
}

impl ChangeSet {
    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the workspace that it changes.
    pub fn workspace(&self) -> &Path {
        &self.header.workspace
    }

    /// Returns the mode in which it was made.
    pub fn mode(&self) -> Mode {
        self.header.mode
    }

    /// Returns its state.
    pub fn state(&self) -> State {
        self.header.state
    }

    /// Returns the directory that is an overlay's upper layer.
    pub fn upper(&self) -> PathBuf {
        self.path.join(UPPER)
    }

    /// Returns the directory that an overlay works in.
    pub fn work(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// Returns the directory that it is stored in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what a list shows of it.
    pub fn summary(&self) -> Summary {
        Summary {
            id: self.id.clone(),
            workspace: self.header.workspace.clone(),
            mode: self.header.mode,
            state: self.header.state,
            created: i64::try_from(self.header.created.div_euclid(1_000_000_000)).unwrap_or_default(),
            counts: self.header.counts,
            renames: self.header.renames,
            held_back: self.header.held_back,
            command: self.header.command.clone(),
            is_live: self.is_live,
        }
    }

    /// Says that a command begins, which sees the workspace as it is now.
    ///
    /// # Errors
    /// If the set cannot be written.
    pub fn begin(&mut self, command: &str) -> Result<(), ChangesError> {
        self.header.since = header::now(&self.directory)?;
        self.name(command)
    }

    /// Says which command makes its changes, without saying that it begins only now.
    ///
    /// # Errors
    /// If the set cannot be written.
    pub fn name(&mut self, command: &str) -> Result<(), ChangesError> {
        self.header.command = Some(command.lines().next().unwrap_or_default().chars().take(200).collect());
        self.header.write(&self.directory)
    }

    /// Says that no sandbox works in it any more. Only then are its files moved instead of copied.
    ///
    /// # Errors
    /// If what the overlay left cannot be removed.
    pub fn close(&mut self) -> Result<(), ChangesError> {
        self.is_live = false;
        self.directory.remove(WORK).doing("remove", WORK)
    }

    /// Puts a file or a link into it, at this path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&self, path: &Path, content: Put<'_>) -> Result<(), ChangesError> {
        use std::io::Write as _;
        let (directory, name) = self.make_above(path)?;
        directory.unlink_if_there(name).doing("replace", path)?;
        match content {
            Put::File { content, mode } => {
                let file = directory.create(name).map_err(std::io::Error::from);
                file.and_then(|mut file| file.write_all(content)).doing("write", path)?;
                directory.set_mode(name, mode & 0o777).doing("set the mode of", path)
            }
            Put::Link(target) => rustix::fs::symlinkat(target, &directory, name).doing("link", path),
        }
    }

    /// Makes the directories of the layer that a path lies in, and opens the last of them.
    fn make_above<'p>(&self, path: &'p Path) -> Result<(Directory, &'p OsStr), ChangesError> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL).doing("put", path);
        };
        let (layer, tree) = (self.layer()?, self.tree()?);
        let directory = layer.make_all(above).doing("create", above)?;
        // Those above are as they are in the workspace, so that they are no change.
        for one in above.ancestors().filter(|one| !one.as_os_str().is_empty()) {
            let mode = tree
                .look_beneath(one)
                .doing("look at", one)?
                .map_or(0o755, |node| node.mode);
            layer
                .set_mode_beneath(one, mode | 0o700)
                .doing("set the mode of", one)?;
        }
        Ok((directory, name))
    }

    /// Marks a path of the workspace as gone in the layer. In a directory that is gone, or that something else replaces,
    /// no mark is needed.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn put_gone(&self, path: &Path) -> Result<(), ChangesError> {
        let layer = self.layer()?;
        for one in path.ancestors().filter(|one| !one.as_os_str().is_empty()) {
            let there = layer.look_beneath(one).doing("look at", one)?;
            if there.is_some_and(|node| one == path || !node.is_directory()) {
                return Ok(());
            }
        }
        let tree = self.tree()?;
        let above = path.ancestors().skip(1).filter(|one| !one.as_os_str().is_empty());
        let mut modes = Vec::new();
        for one in above {
            let there = layer.look_beneath(one).doing("look at", one)?;
            let node = match &there {
                Some(_) => there.clone(),
                None => tree.look_beneath(one).doing("look at", one)?,
            };
            modes.push((one, node.map_or(0o755, |node| node.mode), there.is_some()));
        }
        for (one, mode, _) in modes
            .iter()
            .rev()
            .filter(|(_, mode, is_there)| *is_there && mode & 0o700 != 0o700)
        {
            layer.set_mode_beneath(one, mode | 0o700).doing("open", *one)?;
        }
        let (directory, name) = self.make_above(path)?;
        directory.white_out(name).doing("remove", path)?;
        // Commands may have given them other modes than the workspace, and modes that keep their owner out.
        for (one, mode, _) in modes {
            layer.set_mode_beneath(one, mode).doing("set the mode of", one)?;
        }
        Ok(())
    }

    /// Begins to record what the workspace is, for a set that is filled from a copy of it: what differs from that later
    /// is a conflict. The set is [incomplete](State::Incomplete) until [`Self::filled`].
    ///
    /// # Errors
    /// If the set cannot be written.
    pub fn record_copy(&mut self) -> Result<CopyRecorder, ChangesError> {
        self.header.state = State::Incomplete;
        self.header.is_copy = true;
        self.header.write(&self.directory)?;
        CopyRecorder::new(&self.directory)
    }

    /// Stores what did not exist for the commands that make the set: the patterns of [`Surroundings::hidden`], which
    /// whoever judges the set later makes that from ([`Self::hidden_patterns`]). Without any pattern it is stored that
    /// something was hidden.
    ///
    /// # Errors
    /// If the set cannot be written.
    pub fn hide(&mut self, patterns: &[String]) -> Result<(), ChangesError> {
        self.header.hidden = Some(patterns.to_vec());
        self.header.write(&self.directory)
    }

    /// Returns what [`Self::hide`] has stored. If that is something, judging the set without
    /// [`Surroundings::hidden`] is refused.
    #[must_use]
    pub fn hidden_patterns(&self) -> Option<&[String]> {
        self.header.hidden.as_deref()
    }

    /// Refuses to judge what was hidden as if nothing was.
    fn check_hides(&self, surroundings: &Surroundings) -> Result<(), ChangesError> {
        match (&self.header.hidden, &surroundings.hidden) {
            (Some(_), None) => Err(ChangesError::HiddenUnknown { id: self.id.clone() }),
            (Some(_), Some(_)) | (None, _) => Ok(()),
        }
    }

    /// Says that the layer has all that differs from the copy that was recorded. Paths that were not recorded count as
    /// new there, so that whatever has them in the workspace is a conflict. Directories get back the set-id bits and
    /// the sticky bit that the copy of them could not have, and files the attributes of those that they replace. If
    /// this is root, what replaces something gets its owner and group, and what is new those of its directory. What would
    /// have another owner all the same is held back.
    ///
    /// # Errors
    /// If the set cannot be read or written.
    pub fn filled(&mut self) -> Result<(), ChangesError> {
        self.close()?;
        let bases = Bases::load(&self.directory, &self.header)?;
        let mut recorder = CopyRecorder::new(&self.directory)?;
        let mut modes = Vec::new();
        let tree = self.tree()?;
        let mut owners = Owners::new(&tree);
        self.scan(&mut |found| {
            let Change { path, new, .. } = found.change;
            owners.take_over(found)?;
            match bases.recorded_mode(path) {
                None => recorder.record(path, None)?,
                Some(before) => {
                    let copied = new.as_ref().filter(|new| new.is_directory());
                    if copied.is_some_and(|copied| copied.mode != before && copied.mode & 0o777 == before & 0o777) {
                        modes.push((path.clone(), before));
                    }
                }
            }
            Ok(Descent::Enter)
        })?;
        recorder.finish()?;
        self.set_modes(&modes)?;
        // Last: until now it would be applied in part.
        self.header.state = State::Waiting;
        self.header.write(&self.directory)
    }

    /// Whether nothing was put into it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_unfilled(&self) -> Result<bool, ChangesError> {
        Ok(self.layer()?.names().doing("list", UPPER)?.is_empty())
    }

    /// Whether its process was killed before it put anything into it.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.header.state == State::Incomplete && self.lock.is_some() && self.is_unfilled().unwrap_or(false)
    }

    pub(crate) fn check_complete(&self) -> Result<(), ChangesError> {
        match self.header.state {
            State::Incomplete => Err(ChangesError::Incomplete {
                id: self.id.clone(),
                is_live: self.lock.is_none(),
            }),
            State::Waiting | State::Conflict | State::Committed | State::Undone => Ok(()),
        }
    }

    /// Whether it changes this very path.
    pub fn holds(&self, path: &Path) -> bool {
        let layer = self.layer();
        layer.is_ok_and(|layer| layer.look_beneath(path).is_ok_and(|node| node.is_some()))
    }

    /// Returns what it puts at a path: a file of at most `limit` bytes, or a link. `None` for anything else.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn stored(&self, path: &Path, limit: u64) -> Result<Option<Stored>, ChangesError> {
        let layer = self.layer()?;
        let Some((above, name)) = layer.parent_of(path).doing("open", path)? else {
            return Ok(None);
        };
        let node = above.look(name).doing("look at", path)?;
        Ok(match node {
            Some(node) if node.kind == Kind::File && node.size <= limit && !above.is_whiteout(name, &node) => {
                Some(Stored::File {
                    content: above.read_some(name, limit).doing("read", path)?,
                    mode: node.mode & 0o777,
                })
            }
            Some(node) if node.kind == Kind::Symlink => Some(Stored::Link(above.read_link(name).doing("read", path)?)),
            _ => None,
        })
    }

    /// Says that it is filled, and waits for a person, with this much in it.
    ///
    /// # Errors
    /// If the set cannot be written, or the workspace not be read.
    pub fn wait(&mut self, held_back: u64) -> Result<(), ChangesError> {
        self.record(true)?;
        let mut judged = Judged {
            held_back,
            ..Judged::default()
        };
        self.for_each(&mut |change| {
            judged.note(change);
            Ok(())
        })?;
        self.note(&judged, State::Waiting)
    }

    /// Goes through its changes.
    ///
    /// # Errors
    /// If files cannot be read, or a bound is exceeded; and what `visit` returns.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Change) -> Result<(), ChangesError>) -> Result<(), ChangesError> {
        self.scan(&mut |found| visit(found.change).map(|()| Descent::Enter))
    }

    /// Shows its changes, for a person.
    ///
    /// # Errors
    /// If files cannot be read, or a bound is exceeded.
    pub fn diff(&self, only: &[PathBuf], limits: DiffLimits) -> Result<Diff, ChangesError> {
        let choice = Choice {
            only: only.to_vec(),
            ..Choice::default()
        };
        let mut candidates = Candidates::default();
        self.for_each(&mut |change| {
            if choice.has(&change.path) {
                candidates.note(change);
            }
            Ok(())
        })?;
        let renames = candidates.find(&self.layer()?, &self.tree()?)?;
        self.diff_with(only, limits, &renames)
    }

    /// Shows its changes, with these renames told as such and without their contents.
    pub(crate) fn diff_with(
        &self,
        only: &[PathBuf],
        limits: DiffLimits,
        renames: &[Rename],
    ) -> Result<Diff, ChangesError> {
        let from: BTreeSet<&Path> = renames.iter().map(|rename| rename.from.as_path()).collect();
        let to: BTreeMap<&Path, &Rename> = renames.iter().map(|rename| (rename.to.as_path(), rename)).collect();
        let choice = Choice {
            only: only.to_vec(),
            ..Choice::default()
        };
        let bases = Bases::load(&self.directory, &self.header)?;
        let mut diff = Diff::default();
        self.scan(&mut |found| {
            let is_told = choice.has(&found.change.path) && found.change.action != Action::Touched;
            if let Some(rename) = to.get(found.change.path.as_path()) {
                diff.add_rename(rename, found.change, limits);
                return Ok(Descent::Skip);
            }
            if from.contains(found.change.path.as_path()) {
                return Ok(Descent::Skip);
            }
            if is_told && !bases.keeps_mode(found.change) {
                diff.add(found.change, found.upper, found.workspace, limits)?;
            }
            Ok(Descent::Enter)
        })?;
        Ok(diff)
    }

    /// Looks at its changes: counts and judges them, and compares them with what the workspace is now.
    ///
    /// # Errors
    /// If files cannot be read, or a bound is exceeded.
    pub fn judge(&self, surroundings: &Surroundings, limits: Limits) -> Result<Judged, ChangesError> {
        let bases = Bases::load(&self.directory, &self.header)?;
        let mut held = HeldPaths::new();
        let examined = self.examine(Some(surroundings), Some(&bases), limits, &mut held)?;
        Ok(examined.judged)
    }

    pub(crate) fn layer(&self) -> Result<Directory, ChangesError> {
        self.directory.child(UPPER).doing("open", UPPER)
    }

    pub(crate) fn tree(&self) -> Result<Directory, ChangesError> {
        Directory::open(&self.header.workspace)
    }

    pub(crate) fn scan(
        &self,
        visit: &mut dyn FnMut(&Found<'_>) -> Result<Descent, ChangesError>,
    ) -> Result<(), ChangesError> {
        scan::scan(&self.layer()?, &self.tree()?, &mut |found| {
            self.stop.check()?;
            visit(found)
        })
    }

    /// Judges the changes, compares them with the bases, and writes merged texts to the set.
    pub(crate) fn examine(
        &self,
        surroundings: Option<&Surroundings>,
        bases: Option<&Bases>,
        limits: Limits,
        held: &mut HeldPaths,
    ) -> Result<Examined, ChangesError> {
        surroundings.map_or(Ok(()), |around| self.check_hides(around))?;
        let (upper, workspace) = (self.layer()?, self.tree()?);
        let before = Layered::new(None, &workspace);
        let after = Layered::new(Some(&upper), &workspace);
        let gate = surroundings.map(|around| Gate::new(around.of_gate(&self.header.workspace, &before, &after)));
        let mut merges = Merges::new(&self.directory);
        let mut modes = Vec::new();
        let mut judged = Judged::default();
        // What was a directory and is none any more: what is held back in it goes with it.
        let mut replaced = Vec::new();
        let mut candidates = Candidates::default();
        let mut tally = Tally::new(surroundings.map_or(&[], |around| &around.rules));
        scan::scan(&upper, &workspace, &mut |found| {
            self.stop.check()?;
            let change = found.change;
            if bases.is_some_and(|bases| bases.keeps_mode(change)) {
                if let Some(old) = &change.old {
                    modes.push((change.path.clone(), old.mode));
                }
                return Ok(Descent::Enter);
            }
            judged.note(change);
            candidates.note(change);
            check(&judged, limits)?;
            let is_fixed = surroundings.is_some_and(|around| around.fixed.contains(&change.path));
            let reason = match &gate {
                Some(_) if is_fixed => Some(fixed(&change.path)),
                // A new name is a change of what it names.
                Some(gate) if change.action != Action::Touched || is_linked(change) => judge(gate, found)?,
                _ => None,
            };
            let hides = surroundings.and_then(|around| around.hidden.as_deref());
            let is_hidden = hides.is_some_and(|hides| conceals(hides, change));
            let is_taken = gate.is_some() && self.header.is_copy && changes_owner(change);
            let taken = change
                .old
                .as_ref()
                .filter(|_| is_taken)
                .map(|old| owned(&change.path, old));
            let was_directory = change.old.as_ref().is_some_and(Node::is_directory);
            if was_directory && change.new.as_ref().is_some_and(|new| !new.is_directory()) {
                replaced.push(change.path.clone());
            }
            let ruled = tally.add(change).map(|reason| ruled(&change.path, reason));
            let unseen = is_hidden.then(|| hidden(&change.path, change.new.is_some()));
            if let Some(reason) = unseen.or(reason).or(ruled).or(taken) {
                judged.hold(reason, held);
            }
            if let Some(bases) = bases
                && !is_hidden
                && bases.has_moved(found)?
            {
                match bases.merge(found)? {
                    Some(merged) => {
                        merges.add(found, &merged)?;
                        judged.merged += 1;
                        judged.merged_paths.push(change.path.clone());
                    }
                    None => judged.note_conflict(&change.path, bases.tell(found)),
                }
            }
            Ok(Descent::Enter)
        })?;
        judged.note_renames(candidates.find(&upper, &workspace)?);
        if tally.is_exceeded() {
            scan::scan(&upper, &workspace, &mut |found| {
                if let Some(reason) = tally.beyond(found.change) {
                    judged.hold(ruled(&found.change.path, reason), held);
                }
                Ok(Descent::Enter)
            })?;
        }
        for path in replaced {
            let inside = held.range(path.clone()..).take_while(|held| held.starts_with(&path));
            if inside.clone().any(|held| *held != path) {
                let reason = judged.held.iter().find(|held| held.path.starts_with(&path)).cloned();
                if let Some(reason) = reason {
                    judged.hold(Held { path, ..reason }, held);
                }
            }
        }
        Ok(Examined {
            judged,
            merges: merges.made,
            modes,
        })
    }

    /// Finds its changes of what commands cannot see.
    pub(crate) fn hidden(&self, surroundings: &Surroundings) -> Result<(HeldPaths, Vec<Held>), ChangesError> {
        self.check_hides(surroundings)?;
        let (mut paths, mut told) = (HeldPaths::new(), Vec::new());
        let Some(hides) = surroundings.hidden.as_deref() else {
            return Ok((paths, told));
        };
        self.for_each(&mut |change| {
            if conceals(hides, change) && paths.insert(change.path.clone()) && told.len() < TOLD {
                told.push(hidden(&change.path, change.new.is_some()));
            }
            Ok(())
        })?;
        Ok((paths, told))
    }

    /// Gives directories of the layer the modes that they have in the workspace.
    pub(crate) fn set_modes(&self, modes: &[(PathBuf, u32)]) -> Result<(), ChangesError> {
        let upper = self.layer()?;
        for (path, mode) in modes {
            upper.set_mode_beneath(path, *mode).doing("set the mode of", path)?;
        }
        Ok(())
    }

    /// Commits the set where it lies: its files are moved. Nobody may work in it.
    pub(crate) fn commit_whole(
        &mut self,
        since: Time,
        overwrite: bool,
        (counts, renames): (Counts, u64),
    ) -> Result<(), ChangesError> {
        plan(&self.directory, &self.layer()?, &self.tree()?, since, overwrite)?;
        (self.header.counts, self.header.renames) = (counts, renames);
        // Who finishes it after a kill has no other way to know them.
        self.header.write(&self.directory)?;
        match self.run(Direction::Forward, |_| Ok(()))? {
            Ended::Applied => {
                base::forget(&self.directory)?;
                self.directory.remove(MERGED).doing("remove", MERGED)
            }
            Ended::TakenBack { why, .. } => why.map_or(Ok(()), Err),
        }
    }

    /// Lets merged texts and the layer's change places.
    pub(crate) fn exchange_merged(&self, merges: &[(PathBuf, u64)]) -> Result<(), ChangesError> {
        if merges.is_empty() {
            return Ok(());
        }
        let upper = self.layer()?;
        let merged = self.directory.child(MERGED).doing("open", MERGED)?;
        for (path, number) in merges {
            if let Some((parent, name)) = upper.parent_of(path).doing("open", path)? {
                merged
                    .exchange(number.to_string().as_ref(), &parent, name)
                    .doing("merge", path)?;
            }
        }
        Ok(())
    }

    /// Goes on with what somebody began to commit or to undo and did not finish.
    pub(crate) fn recover(&mut self) -> Result<bool, ChangesError> {
        let Some(direction) = apply::unfinished(&self.directory)? else {
            return Ok(false);
        };
        if direction == Direction::Back && self.header.state == State::Committed {
            return match self.put_back(&Surroundings::default()) {
                Ok(()) | Err(ChangesError::Completes { .. }) => Ok(true),
                Err(error) => Err(error),
            };
        }
        let ended = self.run(direction, |_| Ok(()))?;
        if matches!(ended, Ended::Applied) {
            base::forget(&self.directory)?;
        }
        Ok(true)
    }

    /// Takes a committed set back. Its changes wait again.
    pub(crate) fn take_back(&mut self, surroundings: &Surroundings) -> Result<(), ChangesError> {
        let (State::Committed, Some(committed)) = (self.header.state, self.header.committed) else {
            return Err(self.wrong_state());
        };
        let (upper, workspace) = (self.layer()?, self.tree()?);
        let places = Places {
            set: &self.directory,
            upper: &upper,
            workspace: &workspace,
        };
        let paths = apply::changed_since(&places, committed)?;
        if !paths.is_empty() {
            return Err(ChangesError::ChangedSince { paths });
        }
        self.put_back(surroundings)
    }

    /// Puts back what was there before the set, unless that would make something run that was written since.
    fn put_back(&mut self, surroundings: &Surroundings) -> Result<(), ChangesError> {
        let root = self.header.workspace.clone();
        let committed = self.header.committed;
        let undone = self.run(Direction::Back, |places| {
            undo::check(places, surroundings, &root, committed)
        });
        if let Err(ChangesError::Completes { .. }) = &undone {
            self.run(Direction::Forward, |_| Ok(()))?;
        }
        undone.map(drop)
    }

    /// Does the steps of the plan, or takes them back, and records how that ended, once `check` has passed it.
    fn run(
        &mut self,
        direction: Direction,
        check: impl FnOnce(&Places<'_>) -> Result<(), ChangesError>,
    ) -> Result<Ended, ChangesError> {
        let (upper, workspace) = (self.layer()?, self.tree()?);
        let places = Places {
            set: &self.directory,
            upper: &upper,
            workspace: &workspace,
        };
        let (directory, header) = (&self.directory, &mut self.header);
        apply::run(&places, direction, |ended| {
            check(&places)?;
            settle(directory, header, ended)
        })
    }

    pub(crate) fn wrong_state(&self) -> ChangesError {
        ChangesError::WrongState {
            id: self.id.clone(),
            state: self.header.state.name(),
        }
    }

    /// Writes down what the workspace is now in the places that the set changes, so that later changes by others are
    /// noticed and texts can be merged.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn record_bases(&mut self) -> Result<(), ChangesError> {
        self.record(false)
    }

    /// As [`Self::record_bases`]; `is_known` if nobody can have changed anything since the set was made.
    pub(crate) fn record(&mut self, is_known: bool) -> Result<(), ChangesError> {
        let bases = Bases::load(&self.directory, &self.header)?;
        let mut recorder = Recorder::new(&self.directory, &bases)?;
        self.scan(&mut |found| {
            let is_others = !is_known && bases.keeps_mode(found.change);
            let is_changed = found.change.action != Action::Touched && !is_others;
            if is_changed {
                recorder.record(found, !is_known && bases.has_moved(found)?)?;
            }
            Ok(Descent::Enter)
        })?;
        recorder.finish()
    }

    /// Says that a part of it was committed, by which directories of the workspace changed.
    pub(crate) fn note_part(&mut self) -> Result<(), ChangesError> {
        self.header.parted = Some(header::now(&self.directory)?);
        self.header.write(&self.directory)
    }

    pub(crate) fn set_state(&mut self, state: State) -> Result<(), ChangesError> {
        self.header.state = state;
        self.header.write(&self.directory)
    }

    /// Stores what a look found, for lists.
    ///
    /// # Errors
    /// If the set cannot be written.
    pub fn note(&mut self, judged: &Judged, state: State) -> Result<(), ChangesError> {
        (self.header.counts, self.header.renames) = (judged.counts, judged.renames);
        self.header.held_back = judged.held_back;
        self.header.state = state;
        self.header.write(&self.directory)
    }
}

impl AsFd for ChangeSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Refuses what is beyond the bounds.
pub(crate) fn check(judged: &Judged, limits: Limits) -> Result<(), ChangesError> {
    let counts = &judged.counts;
    if counts.paths() > limits.entries {
        return Err(ChangesError::TooMany { limit: limits.entries });
    }
    if counts.bytes > limits.bytes {
        let (path, bytes) = judged.largest.clone().unwrap_or_default();
        return Err(ChangesError::TooLarge {
            limit: limits.bytes,
            path,
            bytes,
        });
    }
    Ok(())
}

/// What a look at a set found.
pub(crate) struct Examined {
    pub(crate) judged: Judged,
    /// Texts that were merged, by the numbers under which they are written.
    pub(crate) merges: Vec<(PathBuf, u64)>,
    /// Directories whose mode somebody else changed, with the mode that they are to have.
    pub(crate) modes: Vec<(PathBuf, u32)>,
}

/// Whether a file got another name in the layer.
fn is_linked(change: &Change) -> bool {
    change
        .new
        .as_ref()
        .is_some_and(|new| new.kind == Kind::File && new.links > 1)
}

/// One side of a change, as the gate has it.
pub(crate) fn entry(
    found: &Found<'_>,
    node: &Option<Node>,
    directory: Option<&Directory>,
) -> Result<Option<Entry>, ChangesError> {
    match (node, directory) {
        (Some(node), Some(directory)) => {
            let entry = entry_of(directory, found.name, node);
            entry.map(Some).doing("read", &found.change.path)
        }
        _ => Ok(None),
    }
}

fn judge(gate: &Gate<'_>, found: &Found<'_>) -> Result<Option<Held>, ChangesError> {
    let change = found.change;
    let decision = gate.judge(&JudgedChange {
        path: &change.path,
        from: None,
        before: entry(found, &change.old, found.workspace)?,
        after: entry(found, &change.new, found.upper)?,
    });
    Ok(match decision {
        Decision::Pass => None,
        Decision::HeldBack(held) => Some(Held {
            path: change.path.clone(),
            rule: held.rule.as_str(),
            because: held.because,
            instead: held.instead,
        }),
    })
}

/// Records how a commit or an undo ended.
fn settle(directory: &Directory, header: &mut Header, ended: &Ended) -> Result<(), ChangesError> {
    match ended {
        Ended::Applied => {
            header.state = State::Committed;
            header.committed = Some(header::now(directory)?);
        }
        Ended::TakenBack { is_whole, .. } => {
            if header.state == State::Committed {
                header.state = State::Undone;
                header.since = header::now(directory)?;
            }
            if !is_whole {
                header.state = State::Conflict;
            }
            header.committed = None;
            // Directories changed and were changed back.
            header.parted = Some(header::now(directory)?);
        }
    }
    header.write(directory)
}

/// Writes the steps that bring the layer's changes into the workspace, and takes an overlay's marks off what moves.
fn plan(
    set: &Directory,
    upper: &Directory,
    workspace: &Directory,
    since: Time,
    overwrite: bool,
) -> Result<(), ChangesError> {
    set.remove(REMOVED).doing("remove", REMOVED)?;
    let mut writer = Writer::create(set, PLAN)?;
    let mut number = 0;
    scan::scan(upper, workspace, &mut |found| {
        let Change { path, action, old, new } = found.change;
        let is_directory = |node: &Option<Node>| node.as_ref().is_some_and(Node::is_directory);
        let is_kept_directory = is_directory(old) && is_directory(new);
        // What changed after the look at both sides was not looked at.
        if let Some(old) = old
            && !overwrite
            && !is_kept_directory
            && old.changed >= since
        {
            return Err(ChangesError::Moving { path: path.clone() });
        }
        if let (Some(_), Some(upper)) = (new, found.upper)
            && !is_kept_directory
            && (*action != Action::Touched || new.as_ref().is_some_and(|new| new.links > 1))
        {
            upper.unmark(found.name).doing("take the marks off", path)?;
            if is_directory(new) {
                let inside = upper.child(found.name).doing("open", path)?;
                for name in inside.names().doing("list", path)? {
                    let node = inside.look(&name).doing("look at", path)?;
                    if node.is_some_and(|node| inside.is_whiteout(&name, &node)) {
                        inside.unlink_if_there(&name).doing("remove a mark in", path)?;
                    }
                }
            }
        }
        if found.is_inside {
            if let Some(new) = new.as_ref().filter(|new| new.is_directory()) {
                writer.write(&Step::Holds { node: new.identity() })?;
            }
            return Ok(Descent::Enter);
        }
        let path = path.clone();
        match (action, old, new) {
            (Action::Modified, Some(old), Some(new)) if is_kept_directory => writer.write(&Step::SetMode {
                path,
                node: old.identity(),
                old: old.mode,
                new: new.mode,
            })?,
            (Action::Added | Action::Modified, old, Some(new)) => writer.write(&Step::Put {
                path,
                new: new.clone(),
                old: old.clone(),
            })?,
            (Action::Deleted, Some(old), None) => {
                writer.write(&Step::Remove {
                    path,
                    old: old.clone(),
                    number,
                })?;
                number += 1;
            }
            (Action::Touched, Some(old), Some(new)) if new.links > 1 => writer.write(&Step::Put {
                path,
                new: new.clone(),
                old: Some(old.clone()),
            })?,
            (Action::Touched, Some(old), Some(new)) => writer.write(&Step::SetTimes {
                path,
                node: old.identity(),
                old: (old.accessed, old.modified),
                new: (new.accessed, new.modified),
            })?,
            (Action::Added | Action::Modified | Action::Deleted | Action::Touched, ..) => {}
        }
        Ok(Descent::Enter)
    })?;
    writer.finish()
}

/// Texts that were merged, in a directory of the set.
pub(crate) struct Merges<'s> {
    set: &'s Directory,
    directory: Option<Directory>,
    pub(crate) made: Vec<(PathBuf, u64)>,
}

impl<'s> Merges<'s> {
    pub(crate) fn new(set: &'s Directory) -> Self {
        Self {
            set,
            directory: None,
            made: Vec::new(),
        }
    }

    /// Writes a merged text.
    fn add(&mut self, found: &Found<'_>, merged: &Merged) -> Result<(), ChangesError> {
        use std::io::Write as _;
        let path = &found.change.path;
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => {
                self.set.remove(MERGED).doing("remove", MERGED)?;
                self.set.make_all(Path::new(MERGED)).doing("create", MERGED)?
            }
        };
        let number = self.made.len() as u64;
        let name = number.to_string();
        let written = directory.create(&name).map_err(std::io::Error::from);
        written
            .and_then(|mut file| file.write_all(&merged.text))
            .doing("write", path)?;
        directory.set_mode(&name, merged.mode).doing("set the mode of", path)?;
        self.directory = Some(directory);
        self.made.push((path.clone(), number));
        Ok(())
    }
}
