//! The directory that all sets are in.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::Mode as Bits;
use rustix::io::Errno;

use crate::base::Bases;
use crate::copied::Copied;
use crate::diff::DiffLimits;
use crate::directory::Directory;
use crate::discarded;
use crate::error::{ChangesError, While as _};
use crate::fingerprint::Fingerprint;
use crate::header::{self, Header, Mode, State, Summary};
use crate::held::{Held, HeldPaths};
use crate::lock::Lock;
use crate::node::Node;
use crate::refresh::Shadows;
use crate::scan::Counts;
use crate::set::{ChangeSet, Choice, Committed, Examined, Judged, Limits, UPPER, WORK};
use crate::shown::Shown;
use crate::snapshot::Snapshot;
use crate::stop::Stop;
use crate::surroundings::Surroundings;

/// The name of a set's lock.
const LOCK: &str = "lock";
/// How often a set's lock is tried, once a millisecond.
const LOCK_TRIES: usize = 8;
/// How long another commit in the same workspace is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the gate looks at what is left of a set once something was held back.
const ROUNDS: usize = 10;
/// How often a commit is tried again while the workspace changes, and how long that is waited for: a little more than
/// the coarsest tick by which file systems stamp files.
const RETRIES: usize = 5;
const TICK: Duration = Duration::from_millis(11);
/// How many committed sets are kept for undoing, in all workspaces together.
const KEPT: usize = 50;
/// How many more there are before the oldest are removed.
const AT_ONCE: usize = 16;

/// A copy of a set's changes.
#[derive(Debug)]
pub struct Frozen {
    /// The set that it is.
    pub set: ChangeSet,
    /// Whether the workspace had changed in the same places already, in a way that cannot be merged.
    pub has_conflicts: bool,
    /// What is held back since it cannot be copied. It is not in the set.
    pub uncopied: Vec<Held>,
    copied: Copied,
}

/// The directory that all sets are in.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    directory: Directory,
    limits: Limits,
    stop: Stop,
    /// The threads that remove discarded sets.
    removals: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// Opens it. It is made if it is not there, for its owner alone; the directory that it is in is there. What is left of
    /// discarded sets is removed in the background.
    ///
    /// # Errors
    /// If it cannot be made or opened.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, ChangesError> {
        match rustix::fs::mkdir(path, Bits::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).doing("create", path),
        }
        let directory = Directory::open(path)?;
        let removal = discarded::go_on(&directory).doing("list", path)?;
        Ok(Self {
            path: path.to_path_buf(),
            directory,
            limits,
            stop: Stop::default(),
            removals: Mutex::new(removal.into_iter().collect()),
        })
    }

    /// What ends the looks at its sets.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Whether files can be moved between it and a workspace: both have to be in one mount.
    ///
    /// # Errors
    /// [`ChangesError::ApartMounts`] if not.
    pub fn check(&self, workspace: &Path) -> Result<(), ChangesError> {
        let there = Directory::open(workspace)?;
        let one = Node::mount_of(&self.directory).doing("look at", &self.path)?;
        let other = Node::mount_of(&there).doing("look at", workspace)?;
        match one == other {
            true => Ok(()),
            false => Err(ChangesError::ApartMounts {
                store: self.path.clone(),
                workspace: workspace.to_path_buf(),
            }),
        }
    }

    /// Whether a layer in it can say what its directories hide. Without that, an overlay is mounted all the same, and
    /// shows what was removed.
    ///
    /// # Errors
    /// [`ChangesError::NoAttributes`] if not.
    fn check_attributes(&self) -> Result<(), ChangesError> {
        const PROBE: &str = "user.overlay.probe";
        match rustix::fs::fsetxattr(&self.directory, PROBE, b"y", rustix::fs::XattrFlags::empty()) {
            Err(Errno::NOTSUP) => Err(ChangesError::NoAttributes {
                store: self.path.clone(),
            }),
            set => {
                set.doing("set an attribute of", &self.path)?;
                // Another process may have removed its own.
                match rustix::fs::fremovexattr(&self.directory, PROBE) {
                    Ok(()) | Err(Errno::NODATA) => Ok(()),
                    Err(errno) => Err(errno).doing("remove an attribute of", &self.path),
                }
            }
        }
    }

    /// Makes a set for a sandbox that is about to start over a workspace, and goes on with commits that were broken
    /// off there.
    ///
    /// # Errors
    /// If it cannot be made, if the workspace is in another mount, or if the file system has no user attributes.
    pub fn create(&self, workspace: &Path, mode: Mode) -> Result<ChangeSet, ChangesError> {
        self.check(workspace)?;
        self.check_attributes()?;
        self.recover(workspace)?;
        self.remove_unfilled()?;
        let mut set = self.make(workspace, mode)?;
        set.is_live = true;
        Ok(set)
    }

    /// Makes a set for what is taken back out of a workspace. [`ChangeSet::put`] fills it, and [`ChangeSet::wait`] ends
    /// that.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn hold(&self, workspace: &Path, command: &str) -> Result<ChangeSet, ChangesError> {
        let mut set = self.make(workspace, Mode::Direct)?;
        set.name(command)?;
        Ok(set)
    }

    fn make(&self, workspace: &Path, mode: Mode) -> Result<ChangeSet, ChangesError> {
        let (id, directory) = loop {
            let mut bytes = [0_u8; 4];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).doing("draw", "an id")?;
            let id = format!("{:08x}", u32::from_le_bytes(bytes));
            match rustix::fs::mkdirat(&self.directory, &*id, Bits::RWXU) {
                Ok(()) => {
                    let directory = self.directory.child(&id).doing("open", &id)?;
                    break (id, directory);
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno).doing("create", self.path.join(id)),
            }
        };
        let lock = lock(&directory)?;
        // The layer's top says of the overlay's top what it is.
        let mode_of_top = Directory::open(workspace).and_then(|top| Node::of(&top).doing("look at", workspace))?;
        rustix::fs::mkdirat(&directory, UPPER, Bits::RWXU).doing("create", UPPER)?;
        directory
            .set_mode(UPPER, mode_of_top.mode | 0o700)
            .doing("set the mode of", UPPER)?;
        rustix::fs::mkdirat(&directory, WORK, Bits::RWXU).doing("create", WORK)?;
        let header = Header::new(workspace, mode, header::now(&directory)?);
        header.write(&directory)?;
        Ok(ChangeSet {
            path: self.path.join(&id),
            id,
            directory,
            header,
            lock,
            is_live: false,
            stop: self.stop.clone(),
        })
    }

    /// Opens a set, and goes on with what somebody began with it and did not finish.
    ///
    /// # Errors
    /// [`ChangesError::Unknown`] if there is none; if it cannot be read.
    pub fn get(&self, id: &str) -> Result<ChangeSet, ChangesError> {
        let mut set = self.take(id)?;
        if !set.is_live && crate::apply::unfinished(&set.directory)?.is_some() {
            let _guard = self.lock_workspace(&set.header.workspace)?;
            set.recover()?;
        }
        Ok(set)
    }

    /// Opens a set as it is.
    fn take(&self, id: &str) -> Result<ChangeSet, ChangesError> {
        let unknown = || ChangesError::Unknown { id: id.to_owned() };
        if !is_id(id) {
            return Err(unknown());
        }
        let directory = match self.directory.child(id) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Err(unknown()),
            Err(errno) => return Err(errno).doing("open", self.path.join(id)),
        };
        let lock = lock(&directory)?;
        Ok(ChangeSet {
            id: id.to_owned(),
            path: self.path.join(id),
            header: Header::read(&directory, id)?,
            directory,
            is_live: lock.is_none(),
            lock,
            stop: self.stop.clone(),
        })
    }

    /// Lists the sets, the newest first. What cannot be read is left out, and what a process that was killed had not
    /// begun to fill is removed.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Summary>, ChangesError> {
        let mut sets = Vec::new();
        for name in self.directory.names().doing("list", &self.path)? {
            if let Some(set) = name.to_str().and_then(|name| self.get(name).ok()) {
                if set.is_abandoned() {
                    self.discard(set)?;
                    continue;
                }
                let mut summary = set.summary();
                // Whoever made it was killed before it was counted.
                if matches!(summary.state, State::Waiting | State::Incomplete)
                    && !summary.is_live
                    && summary.counts == Counts::default()
                {
                    let mut counts = Counts::default();
                    let counted = set.for_each(&mut |change| {
                        counts.add(change);
                        Ok(())
                    });
                    // What cannot be read is told by whatever is done with it.
                    summary.counts = counted.map_or(summary.counts, |()| counts);
                }
                sets.push((set.header.created, summary));
            }
        }
        sets.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
        Ok(sets.into_iter().map(|(_, summary)| summary).collect())
    }

    /// Removes the sets of processes that were killed before they put anything into them.
    fn remove_unfilled(&self) -> Result<(), ChangesError> {
        for name in self.directory.names().doing("list", &self.path)? {
            let Some(id) = name.to_str().filter(|id| is_id(id)) else {
                continue;
            };
            let header = self
                .directory
                .child(id)
                .ok()
                .and_then(|set| Header::read(&set, id).ok());
            if header.is_some_and(|header| header.state == State::Incomplete)
                && let Ok(set) = self.take(id)
                && set.is_abandoned()
            {
                self.discard(set)?;
            }
        }
        Ok(())
    }

    /// Goes on with what was begun in a workspace and not finished, by a process that was killed.
    ///
    /// # Errors
    /// If that is not possible, since files are in the way.
    pub fn recover(&self, workspace: &Path) -> Result<(), ChangesError> {
        for name in self.directory.names().doing("list", &self.path)? {
            let Some(id) = name.to_str().filter(|id| is_id(id)) else {
                continue;
            };
            let Ok(directory) = self.directory.child(id) else {
                continue;
            };
            if crate::apply::unfinished(&directory)?.is_some()
                && Header::read(&directory, id).is_ok_and(|header| header.workspace == workspace)
            {
                // Opening it does it.
                self.get(id)?;
            }
        }
        Ok(())
    }

    /// Commits a set, or a part of it. If nothing else was chosen, what the gate holds back stays in the set, and if
    /// the workspace changed in the same places, nothing is committed. `shadows` are those of the sandbox that works in
    /// the set.
    ///
    /// # Errors
    /// If it cannot be done; the workspace is then as it was.
    pub fn commit(
        &self,
        set: &mut ChangeSet,
        choice: &Choice,
        surroundings: &Surroundings,
        shadows: Option<&mut Shadows>,
    ) -> Result<Committed, ChangesError> {
        if set.header.state == State::Committed {
            return Err(set.wrong_state());
        }
        set.check_complete()?;
        let _guard = self.lock_workspace(&set.header.workspace)?;
        let mut shadows = shadows;
        for _ in 0..RETRIES {
            match self.try_commit(set, choice, surroundings, shadows.as_deref_mut()) {
                // Somebody writes at this moment, or wrote within the same tick of the file system's clock.
                Err(ChangesError::Moving { .. }) => std::thread::sleep(TICK),
                done => return done,
            }
        }
        self.try_commit(set, choice, surroundings, shadows)
    }

    /// Commits a set, or a part of it, in which no sandbox works, as [`Self::commit`] does, and removes it if nothing is
    /// left in it that is of any use.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn apply(
        &self,
        mut set: ChangeSet,
        choice: &Choice,
        surroundings: &Surroundings,
    ) -> Result<Committed, ChangesError> {
        let committed = self.commit(&mut set, choice, surroundings, None)?;
        if committed.id.as_deref() != Some(set.id()) && !set.is_live {
            match set.judge(surroundings, Limits::default()) {
                // It is committed, whatever becomes of what is left: a set that cannot be tidied is listed as before.
                Ok(left) if left.is_empty() => drop(self.discard(set)),
                Ok(left) if committed.id.is_some() => drop(set.note(&left, State::Waiting)),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(committed)
    }

    fn try_commit(
        &self,
        set: &mut ChangeSet,
        choice: &Choice,
        surroundings: &Surroundings,
        shadows: Option<&mut Shadows>,
    ) -> Result<Committed, ChangesError> {
        let now = header::now(&set.directory)?;
        let bases = Bases::load(&set.directory, &set.header)?;
        let mut held = HeldPaths::new();
        if !set.is_live && choice.only.is_empty() && choice.shown.is_none() {
            let gate = (!choice.accept_held_back).then_some(surroundings);
            let Examined { judged, merges, modes } = set.examine(gate, Some(&bases), self.limits, &mut held)?;
            if judged.conflicting > 0 && !choice.overwrite {
                return self.conflict(set, choice, judged);
            }
            if !merges.is_empty() && held.is_empty() {
                set.exchange_merged(&merges)?;
                // What was merged can mean something else than either side.
                let again = set.examine(gate, None, self.limits, &mut held);
                if again.is_err() || !held.is_empty() {
                    set.exchange_merged(&merges)?;
                }
                again?;
            }
            if held.is_empty() {
                set.set_modes(&modes)?;
                set.commit_whole(now, choice.overwrite, (judged.counts, judged.renames))?;
                if judged.is_empty() {
                    // Times alone may have changed.
                    return Ok(Committed { id: None, judged });
                }
                self.prune()?;
                return Ok(Committed {
                    id: Some(set.id.clone()),
                    judged,
                });
            }
        }
        self.commit_part(set, choice, surroundings, shadows, &bases, now)
    }

    fn conflict(&self, set: &mut ChangeSet, choice: &Choice, judged: Judged) -> Result<Committed, ChangesError> {
        match choice.only.is_empty() {
            true => set.note(&judged, State::Conflict)?,
            // Of a part nothing else is known of the whole.
            false => set.set_state(State::Conflict)?,
        }
        Ok(Committed { id: None, judged })
    }

    /// Copies what is to be committed, judges the copy, and commits it.
    fn commit_part(
        &self,
        set: &mut ChangeSet,
        choice: &Choice,
        surroundings: &Surroundings,
        mut shadows: Option<&mut Shadows>,
        bases: &Bases,
        now: i128,
    ) -> Result<Committed, ChangesError> {
        let (mut held, mut told) = match choice.accept_held_back {
            true => (HeldPaths::new(), Vec::new()),
            // What is not copied is no conflict.
            false => set.hidden(surroundings)?,
        };
        for _ in 0..ROUNDS {
            let mut part = self.make(&set.header.workspace, set.header.mode)?;
            part.header.command.clone_from(&set.header.command);
            part.header.is_copy = set.header.is_copy;
            part.header.hidden.clone_from(&set.header.hidden);
            let upper = part.layer()?;
            let mut snapshot = Snapshot::new(set, &upper, choice, &held);
            let taken = snapshot.take(bases, shadows.as_deref(), self.limits);
            let (mut judged, copied, uncopied) = (snapshot.judged, snapshot.copied, snapshot.uncopied);
            held.extend(uncopied.iter().map(|held| held.path.clone()));
            told.extend(uncopied);
            if let Err(error) = taken {
                self.discard(part)?;
                return Err(error);
            }
            if let Some((shown, limits)) = &choice.shown {
                let now = Fingerprint::of(&part, *limits);
                if now.as_ref().ok() != Some(shown) {
                    self.discard(part)?;
                    return Err(now.err().unwrap_or(ChangesError::NotAsShown));
                }
            }
            if judged.conflicting > 0 && !choice.overwrite {
                self.discard(part)?;
                return self.conflict(set, choice, judged);
            }
            // What is judged is the copy, which nobody can change any more.
            let gate = (!choice.accept_held_back).then_some(surroundings);
            let before = held.len();
            let examined = part.examine(gate, None, self.limits, &mut held);
            let found = match examined {
                Ok(examined) => examined.judged,
                Err(error) => {
                    self.discard(part)?;
                    return Err(error);
                }
            };
            (judged.renamed, judged.renames) = (found.renamed, found.renames);
            told.extend(found.held);
            if held.len() > before {
                self.discard(part)?;
                continue;
            }
            judged.held_back = held.len() as u64;
            judged.held = told;
            if copied.is_empty() {
                self.discard(part)?;
                let nothing_chosen = choice.only.first().filter(|_| judged.held_back == 0);
                if let Some(path) = nothing_chosen {
                    return Err(ChangesError::NothingThere { path: path.clone() });
                }
                return Ok(Committed { id: None, judged });
            }
            if let Err(error) = part.commit_whole(now, choice.overwrite, (judged.counts, judged.renames)) {
                if part.header.state != State::Committed && crate::apply::unfinished(&part.directory)?.is_none() {
                    self.discard(part)?;
                }
                return Err(error);
            }
            bases.replace(&set.directory, &set.tree()?, copied.paths())?;
            set.note_part()?;
            // Of a part that was chosen, the rest of the set may stand in the same directories.
            if !set.is_live && choice.only.is_empty() {
                set.remove_committed(&copied.layers(), true)?;
            }
            if let Some(shadows) = shadows.as_deref_mut() {
                shadows.add(&set.tree()?, copied)?;
            }
            if judged.is_empty() {
                // Times alone, which nobody takes back.
                self.discard(part)?;
                return Ok(Committed { id: None, judged });
            }
            self.prune()?;
            return Ok(Committed {
                id: Some(part.id.clone()),
                judged,
            });
        }
        Err(ChangesError::Moving {
            path: held.into_iter().next().unwrap_or_default(),
        })
    }

    /// Copies what a set changes, apart from what was committed before, into a set of its own, which no command can
    /// change any more: what a person is shown is then what is committed. Gives it with the paths in it; `None` if
    /// there is nothing.
    ///
    /// # Errors
    /// If files cannot be read or written, or a bound is exceeded.
    pub fn freeze(&self, set: &ChangeSet, shadows: Option<&Shadows>) -> Result<Option<Frozen>, ChangesError> {
        let mut frozen = self.copy(set, &Choice::default(), shadows, self.limits)?;
        if let Some(frozen) = &mut frozen {
            frozen.set.record(true)?;
        }
        Ok(frozen)
    }

    /// Shows what a set changes at these paths and below, as a copy that was made for that has it. `None` if that is
    /// nothing. Commit it with its [`Fingerprint`](crate::Fingerprint), so that it is this and nothing else.
    ///
    /// # Errors
    /// If files cannot be read or written, or a bound is exceeded.
    pub fn show(
        &self,
        set: &ChangeSet,
        only: &[PathBuf],
        shadows: Option<&Shadows>,
        (limits, diff): (Limits, DiffLimits),
    ) -> Result<Option<Shown>, ChangesError> {
        let choice = Choice {
            only: only.to_vec(),
            ..Choice::default()
        };
        let Some(frozen) = self.copy(set, &choice, shadows, limits)? else {
            return Ok(None);
        };
        let shown = Shown::of(&frozen.set, frozen.has_conflicts || !frozen.uncopied.is_empty(), diff);
        self.discard(frozen.set)?;
        shown.map(Some)
    }

    /// Copies what is chosen of a set into a set of its own.
    fn copy(
        &self,
        set: &ChangeSet,
        choice: &Choice,
        shadows: Option<&Shadows>,
        limits: Limits,
    ) -> Result<Option<Frozen>, ChangesError> {
        let bases = Bases::load(&set.directory, &set.header)?;
        let mut part = self.make(&set.header.workspace, set.header.mode)?;
        part.header.command.clone_from(&set.header.command);
        part.header.is_copy = set.header.is_copy;
        part.header.hidden.clone_from(&set.header.hidden);
        let upper = part.layer()?;
        let held = HeldPaths::new();
        let mut snapshot = Snapshot::new(set, &upper, choice, &held);
        let taken = snapshot.take(&bases, shadows, limits);
        let (judged, copied, uncopied) = (snapshot.judged, snapshot.copied, snapshot.uncopied);
        if taken.is_err() || copied.is_empty() {
            self.discard(part)?;
            return taken.map(|()| None);
        }
        Ok(Some(Frozen {
            set: part,
            has_conflicts: judged.conflicting > 0,
            uncopied,
            copied,
        }))
    }

    /// Says that a frozen set was committed, and with what result, to the set that it was taken from.
    ///
    /// # Errors
    /// If files cannot be looked at.
    pub fn thaw(
        &self,
        mut frozen: Frozen,
        judged: &Judged,
        from: &mut ChangeSet,
        shadows: &mut Shadows,
    ) -> Result<(), ChangesError> {
        // Of these the workspace has another version than the layer.
        let is_merged = |(path, _): &mut (PathBuf, Option<Node>)| judged.merged_paths.contains(path);
        frozen
            .copied
            .merged
            .extend(frozen.copied.same.extract_if(.., is_merged));
        let bases = Bases::load(&from.directory, &from.header)?;
        let workspace = from.tree()?;
        let paths = frozen.copied.paths();
        bases.replace(&from.directory, &workspace, paths)?;
        from.note_part()?;
        shadows.add(&workspace, frozen.copied)
    }

    /// Takes a committed set back out of the workspace.
    ///
    /// # Errors
    /// [`ChangesError::ChangedSince`] if that would lose what was changed since; [`ChangesError::Completes`] if it would
    /// make a repository in which git runs what was written since. The workspace is then as it was.
    pub fn undo(&self, set: &mut ChangeSet, surroundings: &Surroundings) -> Result<(), ChangesError> {
        let _guard = self.lock_workspace(&set.header.workspace)?;
        set.take_back(surroundings)?;
        set.record(true)
    }

    /// Removes a set. Its changes, or what undoing it needs, are gone. What takes long is removed in the background, and by
    /// whoever opens the store next if this process ends before.
    ///
    /// # Errors
    /// [`ChangesError::Busy`] if a sandbox of another process works in it; if it cannot be removed.
    pub fn discard(&self, set: ChangeSet) -> Result<(), ChangesError> {
        if set.lock.is_none() {
            return Err(ChangesError::Busy { id: set.id });
        }
        let removal = discarded::discard(&self.directory, &set.id).doing("remove", &set.path)?;
        let mut removals = self.removals();
        removals.retain(|thread| !thread.is_finished());
        removals.extend(removal);
        Ok(())
    }

    /// Waits until what was discarded is removed.
    pub fn finish_removals(&self) {
        let removals = std::mem::take(&mut *self.removals());
        removals.into_iter().for_each(|thread| drop(thread.join()));
    }

    fn removals(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the oldest committed sets beyond the number that is kept, several at a time.
    fn prune(&self) -> Result<(), ChangesError> {
        let names = self.directory.names().doing("list", &self.path)?;
        let ids = names.iter().filter_map(|name| name.to_str()).filter(|id| is_id(id));
        if ids.clone().count() <= KEPT + AT_ONCE {
            return Ok(());
        }
        let mut committed = Vec::new();
        for id in ids {
            // What cannot be read is not ours to remove.
            let header = self
                .directory
                .child(id)
                .ok()
                .and_then(|set| Header::read(&set, id).ok());
            committed.extend(
                header
                    .filter(|header| header.state == State::Committed)
                    .and_then(|header| Some((header.committed?, id))),
            );
        }
        committed.sort_unstable_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (_, id) in committed.into_iter().skip(KEPT) {
            if let Ok(set) = self.take(id)
                && !set.is_live
                && crate::apply::unfinished(&set.directory)?.is_none()
            {
                self.discard(set)?;
            }
        }
        Ok(())
    }

    /// Waits until nobody else commits in a workspace.
    fn lock_workspace(&self, workspace: &Path) -> Result<Lock, ChangesError> {
        use std::os::unix::ffi::OsStrExt as _;
        // One of a fixed number of locks, so that none has to be removed.
        let number = workspace
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(*byte))
            % 64;
        let name = format!("workspace.{number}");
        let until = Instant::now() + LOCK_TIMEOUT;
        while Instant::now() < until {
            if let Some(lock) = Lock::try_take(&self.directory, &name)? {
                return Ok(lock);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(ChangesError::Locked {
            workspace: workspace.to_path_buf(),
            seconds: LOCK_TIMEOUT.as_secs(),
        })
    }
}

/// Whether a name is that of a set.
fn is_id(name: &str) -> bool {
    name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Takes a set's lock; `None` if somebody has it.
fn lock(directory: &Directory) -> Result<Option<Lock>, ChangesError> {
    // A process that was killed has left its lock to one that it was starting, until that becomes another program.
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = Lock::try_take(directory, LOCK)? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use std::fs;

    use super::*;

    #[test]
    fn nothing_is_copied_of_what_is_more_than_the_limits() {
        let place = tempfile::tempdir().expect("a directory");
        let at = place.path().canonicalize().expect("it is there");
        fs::create_dir(at.join("workspace")).expect("made");
        let limits = Limits {
            entries: 20,
            bytes: 1 << 30,
        };
        let store = Store::open(&at.join("store"), limits).expect("opened");
        let [from, to] = [(), ()].map(|()| store.make(&at.join("workspace"), Mode::Commit).expect("made"));
        let copied = |names: std::ops::Range<u32>| {
            for name in names {
                fs::write(from.upper().join(name.to_string()), "x").expect("written");
            }
            let bases = Bases::load(&from.directory, &from.header).expect("none");
            let (upper, held, choice) = (to.layer().expect("opened"), HeldPaths::new(), Choice::default());
            let taken = Snapshot::new(&from, &upper, &choice, &held).take(&bases, None, limits);
            let names = upper.names().expect("listed").len();
            assert!(taken.is_ok() || names == 0, "{names} were copied");
            taken.map(|()| names)
        };
        let refused = copied(0..30).expect_err("30 paths");
        assert!(matches!(refused, ChangesError::TooMany { limit: 20 }), "{refused:?}");
        for name in 20..30 {
            fs::remove_file(from.upper().join(name.to_string())).expect("removed");
        }
        assert_eq!(copied(0..0).expect("20 paths"), 20);
    }
}
