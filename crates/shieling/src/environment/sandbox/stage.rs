//! A staged workspace: commands write into a private layer over it, and what they made is judged before it leaves that.
//!
//! ```text
//! prepare ─► the layer is mounted ─► before each command: what the user changed since ─► command
//!                                                                                          │
//!             end: what waits is kept, the rest is removed ◄── settle: committed, or waits ◄┘
//! ```
//!
//! The layer and what is kept of it are a [`ChangeSet`] of `shieling-changes`; only how it goes with the life of a jail
//! is said here. While the jail lives, files are copied out of the layer; a jail for one command has ended when its
//! changes are looked at, and they are moved.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode as Bits, OFlags, ResolveFlags};
use shieling_changes::{
    Change, ChangeSet, ChangesError, Choice, Committed, DiffLimits, Frozen, Held, Judged, Limits, Mode, Shadows, Stamp,
    State, Stop, Store, Surroundings, UNCOPIED,
};
use shieling_gate::{Lead, LeadKind};
use shieling_jail::plan::{Entry, Isolation};

use super::Restrictions;
use super::accepting;
use super::git_settings;
use super::homes;
use super::staging::Staging;
use super::unsuitable::Unsuitable;
use crate::environment::{AcceptError, HeldBackReview, Review};
use crate::outcome::{
    ChangeMode, ChangeState, ChangeTotals, Changes, Conflict, HeldBack, Outcome, PATHS_TOLD, Renamed, Status,
};
use crate::request::Access;

/// How many paths a person is asked about at once. More are looked at with `shieling changes show`.
const ASKED: u64 = 500;

/// How long the layer may be looked at once the sandbox ends. Clients wait some seconds before they kill their server.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// Why nothing of a command is committed whose supervisor is gone.
const LOST: &str = "contact to it is gone, and nobody knows how far it came";

/// How many parts are remembered that a person was or could be shown, and how long the text of each may be.
const SHOWN: usize = 128;
const SHOWN_BYTES: usize = 16 << 10;

/// A workspace that cannot be staged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// What is asked for does not go with staging.
    #[error("`--changes {mode}` cannot hold here: {why}; {instead}")]
    Unsupported {
        /// The mode.
        mode: &'static str,
        /// Why.
        why: String,
        /// What works instead.
        instead: &'static str,
    },
    /// The layer cannot be made.
    #[error("the workspace cannot be staged: {0}")]
    Changes(#[from] ChangesError),
}

/// What in the workspace the user's tools are led to: by links in homes, and by the user's own settings of git.
pub(super) fn leads(workspace: &Path, home: Option<&Path>) -> Vec<Lead> {
    let linked = homes::led_to(&homes::known(home), workspace);
    let linked = linked.into_iter().map(|path| (path, LeadKind::Code));
    let named = git_settings::leads(home, workspace);
    let leads = linked.chain(named).filter_map(|(path, kind)| {
        let path = path.strip_prefix(workspace).ok()?.to_path_buf();
        (!path.as_os_str().is_empty()).then_some(Lead { path, kind })
    });
    leads.collect()
}

/// The layer of one jail.
#[derive(Debug)]
pub(super) struct Stage {
    staging: Staging,
    workspace: PathBuf,
    /// Directories that commands only read.
    toolchains: OnceLock<Vec<PathBuf>>,
    /// Made for the first look, by when a policy is bound.
    surroundings: OnceLock<Surroundings>,
    home: Option<PathBuf>,
    leads: Vec<Lead>,
    fixed: Vec<PathBuf>,
    upper: PathBuf,
    work: PathBuf,
    /// Also while somebody looks at the layer.
    stop: Stop,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    /// None once the stage has ended.
    set: Option<ChangeSet>,
    shadows: Shadows,
    /// The overlay's top, through which the layer is changed from here.
    view: Option<OwnedFd>,
    /// Whether something may have been written to the layer, or looked up through it.
    is_used: bool,
    /// Commands that have begun and not been settled.
    running: u32,
    /// What a person is being asked about.
    asked: Option<Frozen>,
    /// What was made for a person to see of what is held back, and the state that it was made of: what is held back stays so
    /// over many commands, and each part is a copy.
    shown: BTreeMap<PathBuf, (Stamp, HeldBackReview)>,
    /// Why commands were ended that wrote too much, until the last of them has ended.
    exceeded: Option<String>,
}

impl Stage {
    /// Makes a layer, if one is asked for. `homes` are the homes that there are.
    pub(super) fn prepare(
        restrictions: &Restrictions,
        homes: &BTreeSet<PathBuf>,
    ) -> Result<Option<Arc<Self>>, StageError> {
        let Some(staging) = restrictions.staging.clone().filter(|_| !restrictions.readonly) else {
            return Ok(None);
        };
        check(restrictions, &staging, homes)?;
        let store = Store::open(&staging.directory, staging.limits)?;
        let set = store.create(&restrictions.workspace, staging.mode)?;
        Ok(Some(Arc::new(Self {
            workspace: restrictions.workspace.clone(),
            toolchains: OnceLock::new(),
            surroundings: OnceLock::new(),
            home: restrictions.home.clone(),
            leads: leads(&restrictions.workspace, restrictions.home.as_deref()),
            fixed: restrictions
                .fixed
                .iter()
                .filter_map(|path| Some(path.strip_prefix(&restrictions.workspace).ok()?.to_path_buf()))
                .collect(),
            upper: set.upper(),
            work: set.work(),
            stop: store.stop().clone(),
            staging,
            inner: Mutex::new(Inner {
                store,
                set: Some(set),
                shadows: Shadows::default(),
                view: None,
                is_used: false,
                running: 0,
                asked: None,
                shown: BTreeMap::new(),
                exceeded: None,
            }),
        })))
    }

    /// Says what else commands see: links to what they only read do no harm.
    pub(super) fn shows(&self, view: &[Entry]) {
        let toolchains = view.iter().filter_map(|entry| match entry {
            Entry::Bind {
                target,
                writable: false,
                ..
            } => Some(target.clone()),
            _ => None,
        });
        let _ = self.toolchains.set(toolchains.collect());
    }

    fn surroundings(&self) -> &Surroundings {
        self.surroundings.get_or_init(|| {
            let mut rules = self.staging.rules.bound();
            // A person sees the whole set anyway.
            rules.retain(|rule| !(rule.asks && self.staging.mode == Mode::Review));
            Surroundings {
                home: self.home.clone(),
                leads: self.leads.clone(),
                toolchains: self.toolchains.get().cloned().unwrap_or_default(),
                fixed: self.fixed.clone(),
                rules,
                hidden: None,
            }
        })
    }

    /// What the jail is to show.
    pub(super) fn entry(&self, executable: bool) -> Entry {
        Entry::Staged {
            source: self.workspace.clone(),
            target: self.workspace.clone(),
            upper: self.upper.clone(),
            work: self.work.clone(),
            executable,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The jail shows it, below this root.
    pub(super) fn started(&self, root: BorrowedFd<'_>) -> Result<(), StageError> {
        let inside = self.workspace.strip_prefix("/").unwrap_or(&self.workspace);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let view = rustix::fs::openat2(root, inside, flags, Bits::empty(), how).map_err(|errno| ChangesError::Io {
            doing: "open the staged view of",
            path: self.workspace.clone(),
            source: errno.into(),
        })?;
        self.lock().view = Some(view);
        Ok(())
    }

    /// Brings what the user changed since the last command into the layer, where that hides it. Whether the jail's
    /// kernel may know names that are no longer true.
    pub(super) fn refresh(&self) -> Result<bool, StageError> {
        let mut inner = self.lock();
        if !inner.is_used {
            inner.is_used = true;
            return Ok(false);
        }
        if inner.running > 0 {
            // What running commands have made so far was made of the workspace as it was so far.
            match self.staging.mode {
                Mode::Commit if inner.exceeded.is_some() => {}
                Mode::Commit => drop(self.commit(&mut inner)),
                Mode::Review => self.record(&mut inner)?,
                Mode::Discard | Mode::Direct => {}
            }
        }
        let Inner { set, shadows, view, .. } = &mut *inner;
        if let (Some(set), Some(view)) = (set, view) {
            shadows.refresh(set, view.as_fd())?;
            let command = set.summary().command.unwrap_or_default();
            set.begin(&command)?;
        }
        Ok(true)
    }

    /// Says that a command begins.
    pub(super) fn command(&self, text: &str) {
        let mut inner = self.lock();
        inner.is_used = true;
        inner.running += 1;
        name(&mut inner, text);
    }

    /// Says which command is about to begin.
    pub(super) fn name(&self, text: &str) {
        if !text.is_empty() {
            name(&mut self.lock(), text);
        }
    }

    /// The directories that commands fill, and how much may be in them.
    pub(super) fn bounded(&self) -> ([PathBuf; 2], Limits) {
        ([self.upper.clone(), self.work.clone()], self.staging.limits)
    }

    /// Says that commands are being ended, and why.
    pub(super) fn exceeded(&self, why: &str) {
        self.lock().exceeded.get_or_insert(why.to_owned());
    }

    /// Why commands were ended, for the outcome of one that was and is settled, or of the last that ran.
    pub(super) fn take_exceeded(&self, was_ended: bool) -> Option<String> {
        let mut inner = self.lock();
        match inner.running {
            0 => inner.exceeded.take(),
            _ => inner.exceeded.clone().filter(|_| was_ended),
        }
    }

    /// Says that nothing can write to the layer any more.
    pub(super) fn close(&self) -> Result<(), StageError> {
        let mut inner = self.lock();
        inner.view = None;
        if let Some(set) = &mut inner.set {
            set.close()?;
        }
        Ok(())
    }

    /// A command has ended: commits what is in the layer, or says what waits.
    pub(super) fn settle(&self, outcome: &Outcome) -> (Option<Changes>, Option<StageError>) {
        let mut inner = self.lock();
        inner.running = inner.running.saturating_sub(1);
        // Nobody knows how far it came.
        if outcome.status == Status::Lost {
            inner.exceeded.get_or_insert_with(|| LOST.to_owned());
        }
        self.settle_now(&mut inner)
    }

    /// As [`Self::settle`], of something that was no command.
    pub(super) fn settle_files(&self) -> (Option<Changes>, Option<StageError>) {
        self.settle_now(&mut self.lock())
    }

    fn settle_now(&self, inner: &mut Inner) -> (Option<Changes>, Option<StageError>) {
        let settled = match self.staging.mode {
            // It is measured by the room that it takes, and a commit goes by what the files hold, which can be less: the
            // work of commands that were ended halfway is not committed as if they had come to their end.
            Mode::Commit if inner.exceeded.is_some() => {
                let id = inner.set.as_ref().map(|set| set.id().to_owned());
                Ok(Some(uncounted(Mode::Commit, id, ChangeState::Waiting)))
            }
            Mode::Commit => self.commit(inner),
            Mode::Review | Mode::Discard | Mode::Direct => self.look(inner),
        };
        match settled {
            Ok(changes) => (changes, None),
            Err(error) => self.failed(inner, error),
        }
    }

    /// Says that what is in the layer could not be committed or looked at. Nobody knows how much it is.
    fn failed(&self, inner: &Inner, error: StageError) -> (Option<Changes>, Option<StageError>) {
        let id = inner.set.as_ref().map(|set| set.id().to_owned());
        (
            Some(uncounted(self.staging.mode, id, ChangeState::Waiting)),
            Some(error),
        )
    }

    /// The same, if the layer could not be closed.
    pub(super) fn not_closed(&self, error: StageError) -> (Option<Changes>, Option<StageError>) {
        self.failed(&self.lock(), error)
    }

    fn commit(&self, inner: &mut Inner) -> Result<Option<Changes>, StageError> {
        withdraw(inner)?;
        let Inner {
            store, set, shadows, ..
        } = inner;
        let Some(set) = set else { return Ok(None) };
        let mode = self.staging.mode;
        let changes = commit(
            mode,
            store,
            set,
            self.surroundings(),
            self.staging.limits,
            Some(shadows),
        )?;
        Ok(Some(changes))
    }

    /// Looks at what waits.
    fn look(&self, inner: &mut Inner) -> Result<Option<Changes>, StageError> {
        withdraw(inner)?;
        let Some(set) = &mut inner.set else { return Ok(None) };
        let judged = set.judge(self.surroundings(), self.staging.limits)?;
        let id = set.id().to_owned();
        if self.staging.mode == Mode::Discard {
            return Ok(Some(changes_of(
                self.staging.mode,
                None,
                ChangeState::Discarded,
                &judged,
                None,
            )));
        }
        let state = match judged.conflicting {
            0 => State::Waiting,
            _ => State::Conflict,
        };
        set.note(&judged, state)?;
        self.record(inner)?;
        let (told, state) = match (judged.is_empty(), judged.conflicting) {
            (true, _) => (None, ChangeState::Committed),
            (_, 0) => (Some(id.clone()), ChangeState::Waiting),
            _ => (Some(id.clone()), ChangeState::Conflict),
        };
        Ok(Some(changes_of(self.staging.mode, told, state, &judged, Some(&id))))
    }

    fn record(&self, inner: &mut Inner) -> Result<(), StageError> {
        if let Some(set) = &mut inner.set {
            set.record_bases()?;
        }
        Ok(())
    }

    /// What a person is to decide about. From here on no command can change it.
    pub(super) fn review(&self) -> Result<Option<Review>, StageError> {
        let mut inner = self.lock();
        let Inner {
            store,
            set,
            shadows,
            asked,
            ..
        } = &mut *inner;
        let (Mode::Review, Some(set)) = (self.staging.mode, set) else {
            return Ok(None);
        };
        if let Some(before) = asked.take() {
            store.discard(before.set)?;
        }
        let Some(frozen) = store.freeze(set, Some(shadows))? else {
            return Ok(None);
        };
        let mut paths = Vec::new();
        let mut is_cut = frozen.has_conflicts;
        frozen.set.for_each(&mut |change: &Change| {
            let access = match change.action {
                shieling_changes::Action::Deleted => Access::Remove,
                shieling_changes::Action::Touched => return Ok(()),
                shieling_changes::Action::Added | shieling_changes::Action::Modified => Access::Write,
            };
            match paths.len() as u64 >= ASKED {
                true => is_cut = true,
                false => paths.push((access, self.workspace.join(&change.path))),
            }
            Ok(())
        })?;
        let limits = DiffLimits::default();
        let diff = frozen.set.diff(&[], limits)?;
        *asked = Some(frozen);
        Ok(Some(Review {
            paths,
            is_cut: is_cut || diff.left_out > 0 || diff.text.len() >= limits.bytes,
            diff: diff.text,
        }))
    }

    /// Commits what a person was asked about, or keeps it waiting.
    pub(super) fn decide(&self, yes: bool) -> Result<Option<Changes>, StageError> {
        let mut inner = self.lock();
        let Inner {
            store,
            set,
            shadows,
            asked,
            ..
        } = &mut *inner;
        let (Some(mut frozen), Some(set)) = (asked.take(), set) else {
            return Ok(None);
        };
        if !yes {
            store.discard(frozen.set)?;
            return Ok(None);
        }
        let own = set.id().to_owned();
        let done = store.commit(&mut frozen.set, &Choice::default(), self.surroundings(), None);
        let Committed { id, mut judged } = match done {
            Ok(done) => done,
            Err(error) => {
                store.discard(frozen.set)?;
                return Err(error.into());
            }
        };
        judged.held_back += frozen.uncopied.len() as u64;
        judged.held.extend(frozen.uncopied.iter().cloned());
        // What was not committed of the copy is in the layer still.
        if id.as_deref() != Some(frozen.set.id()) {
            let rest = store.get(frozen.set.id());
            if let (Some(_), Ok(_)) = (&id, &rest) {
                store.thaw(frozen, &judged, set, shadows)?;
            } else {
                store.discard(frozen.set)?;
            }
        } else {
            store.thaw(frozen, &judged, set, shadows)?;
        }
        Ok(Some(committed(self.staging.mode, &own, id, &judged)))
    }

    /// What a person is to decide about of what was held back, if it waits in this layer.
    pub(super) fn review_held_back(&self, held: &HeldBack) -> Result<Option<HeldBackReview>, ChangesError> {
        let mut inner = self.lock();
        let Inner {
            store,
            set,
            shadows,
            shown,
            ..
        } = &mut *inner;
        let Some(set) = set.as_ref().filter(|set| held.id.as_deref() == Some(set.id())) else {
            return Ok(None);
        };
        // From before it is looked at: what changes meanwhile has another.
        let stamp = set.stamp(&held.path);
        if let (Some(stamp), Some((of, review))) = (stamp, shown.get(&held.path))
            && stamp == *of
        {
            return Ok(Some(review.clone()));
        }
        let review = accepting::look(store, set, Some(shadows), &held.path)?;
        shown.remove(&held.path);
        if let (Some(stamp), Some(review)) = (stamp, &review)
            && review.review.diff.len() <= SHOWN_BYTES
        {
            if shown.len() >= SHOWN {
                shown.clear();
            }
            shown.insert(held.path.clone(), (stamp, review.clone()));
        }
        Ok(review)
    }

    /// Commits exactly what a person was shown of it.
    pub(super) fn accept_held_back(&self, reviewed: &HeldBackReview) -> Result<Changes, AcceptError> {
        let mut inner = self.lock();
        let Inner {
            store, set, shadows, ..
        } = &mut *inner;
        let Some(set) = set.as_mut().filter(|set| set.id() == reviewed.id) else {
            return Err(AcceptError::Changed);
        };
        let choice = accepting::choice(reviewed);
        let committed = store.commit(set, &choice, self.surroundings(), Some(shadows));
        let Committed { id, judged } = committed.map_err(accepting::failed)?;
        let id = id.ok_or(AcceptError::Changed)?;
        // For lists alone: the next look says the same.
        let state = set.state();
        let _ = set
            .judge(self.surroundings(), self.staging.limits)
            .and_then(|left| set.note(&left, state));
        Ok(changes_of(
            self.staging.mode,
            Some(id),
            ChangeState::Committed,
            &judged,
            None,
        ))
    }

    /// The sandbox is about to end: looks at the layer are ended in a moment. What they would have found waits in the set.
    pub(super) fn hurry(&self) {
        self.stop.at(Instant::now() + LAST_LOOK);
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().set.is_none()
    }

    /// The jail has ended: what waits is kept, and the rest removed. Whatever cannot be done here is done by whoever
    /// looks at the sets next.
    pub(super) fn end(&self, is_over: bool) {
        let mut inner = self.lock();
        inner.view = None;
        let Some(mut set) = inner.set.take() else { return };
        if let Some(asked) = inner.asked.take() {
            let _ = inner.store.discard(asked.set);
        }
        let is_committed = set.state() == State::Committed;
        if !is_over || is_committed && set.summary().counts.paths() > 0 {
            // Something may still write; or its changes are in the workspace, and can be undone.
            return;
        }
        if set.close().is_err() {
            return;
        }
        // What cannot be removed is in the set once more, as it was before.
        let _ = inner.shadows.remove_committed(&set);
        // What was looked at before took of the time for that.
        self.hurry();
        let is_empty = || {
            set.judge(self.surroundings(), self.staging.limits)
                .is_ok_and(|judged| judged.is_empty())
        };
        if self.staging.mode == Mode::Discard || !inner.is_used || is_committed || is_empty() {
            let _ = inner.store.discard(set);
        }
    }
}

/// Commits a set, and prepares what waits in it for a person.
pub(super) fn commit(
    mode: Mode,
    store: &Store,
    set: &mut ChangeSet,
    surroundings: &Surroundings,
    limits: Limits,
    shadows: Option<&mut Shadows>,
) -> Result<Changes, ChangesError> {
    let Committed { id, judged } = store.commit(set, &Choice::default(), surroundings, shadows)?;
    let waits = judged.held_back > 0 || judged.conflicting > 0;
    let own = set.id().to_owned();
    if waits && set.state() != State::Committed {
        // What happens to these paths from now on, no command knows of.
        set.record_bases()?;
        if judged.conflicting == 0 {
            let left = set.judge(surroundings, limits)?;
            set.note(&left, State::Waiting)?;
        }
    }
    Ok(committed(mode, &own, id, &judged))
}

/// Says what a commit of the set `own` came to. `id` is the set that was committed, if one was.
fn committed(mode: Mode, own: &str, id: Option<String>, judged: &Judged) -> Changes {
    let (told, state) = match judged.conflicting {
        0 => (id, ChangeState::Committed),
        _ => (Some(own.to_owned()), ChangeState::Conflict),
    };
    changes_of(mode, told, state, judged, Some(own))
}

/// Says what became of changes of which nobody knows how many there are.
pub(super) fn uncounted(mode: Mode, id: Option<String>, state: ChangeState) -> Changes {
    let mut changes = changes_of(mode, id, state, &Judged::default(), None);
    (changes.added, changes.modified, changes.deleted, changes.totals) = (None, None, None, None);
    changes.renamed = None;
    changes
}

/// Says what became of the changes. `waits` is the set with what was held back.
pub(super) fn changes_of(
    mode: Mode,
    id: Option<String>,
    state: ChangeState,
    judged: &Judged,
    waits: Option<&str>,
) -> Changes {
    let cut = |paths: &[PathBuf]| Some(paths.iter().take(PATHS_TOLD).cloned().collect());
    let mode = match mode {
        Mode::Commit => ChangeMode::Commit,
        Mode::Review => ChangeMode::Review,
        Mode::Discard => ChangeMode::Discard,
        Mode::Direct => ChangeMode::Direct,
    };
    let accept = |held: &Held| match waits {
        // It has no copy that a part of the set could be made of.
        Some(id) if held.rule == UNCOPIED => {
            format!("; a person can accept it with all of the set: `shieling changes apply {id} --accept-held-back`")
        }
        Some(id) => format!("; {}", how_to_accept(id, &held.path)),
        None => String::new(),
    };
    let held_back = judged.held.iter().map(|held| {
        let instead = format!("{}{}", held.instead, accept(held));
        // No part of the set can be made of what cannot be copied.
        let id = waits.filter(|_| held.rule != UNCOPIED).map(str::to_owned);
        HeldBack::new(&held.path, &held.because, instead).with_id(id)
    });
    let conflicts = judged.conflicts.iter().map(|conflict| Conflict {
        path: conflict.path.clone(),
        because: conflict.because.clone(),
        instead: match &id {
            Some(id) => format!(
                "nothing of the set was committed, and both versions are kept: look with `shieling changes show \
                 {id}`; `shieling changes apply {id} --overwrite` takes the set's"
            ),
            None => "make the change again from what is there now".to_owned(),
        },
    });
    let renamed = judged.renamed.iter().take(PATHS_TOLD).map(|rename| Renamed {
        old_path: rename.from.clone(),
        new_path: rename.to.clone(),
    });
    Changes {
        mode,
        state,
        added: cut(&judged.added),
        modified: cut(&judged.modified),
        deleted: cut(&judged.deleted),
        renamed: Some(renamed.collect()),
        totals: Some(ChangeTotals {
            renamed: judged.renames,
            held_back: judged.held_back,
            conflicts: judged.conflicting,
            ..judged.counts.into()
        }),
        held_back: held_back.collect(),
        accepted: Vec::new(),
        conflicts: conflicts.collect(),
        answer: None,
        id,
    }
}

/// Finds what running commands removed of what was committed meanwhile.
fn withdraw(inner: &Inner) -> Result<(), ChangesError> {
    match (&inner.set, &inner.view) {
        (Some(set), Some(view)) => inner.shadows.withdraw(set, view.as_fd()),
        _ => Ok(()),
    }
}

fn name(inner: &mut Inner, text: &str) {
    if let Some(set) = inner
        .set
        .as_mut()
        .filter(|set| set.summary().command.as_deref() != Some(text))
    {
        // Only for lists; what cannot be written here cannot be committed either, and that is told.
        let _ = set.name(text);
    }
}

/// Refuses what does not go with a layer over the workspace.
fn check(restrictions: &Restrictions, staging: &Staging, homes: &BTreeSet<PathBuf>) -> Result<(), StageError> {
    let workspace = &restrictions.workspace;
    let refuse = |why: String, instead| {
        Err(StageError::Unsupported {
            mode: staging.mode.name(),
            why,
            instead,
        })
    };
    if restrictions.isolation != Isolation::Full {
        return refuse(
            "without namespaces no layer can lie over the workspace".to_owned(),
            "use the full isolation, or `--changes direct`",
        );
    }
    if !restrictions.write.is_empty() {
        return refuse(
            "what is written by `--write` would not be staged".to_owned(),
            "leave `--write` out, or use `--changes direct`",
        );
    }
    if let Err(unsuitable) = Unsuitable::look(workspace, homes, &[("change sets", &staging.directory)]) {
        let instead = match unsuitable {
            Unsuitable::Home { .. } => "choose a project directory, or `--changes direct`",
            Unsuitable::Stored { .. } => unsuitable.instead(),
        };
        return refuse(unsuitable.to_string(), instead);
    }
    if let Some(mounted) = mount_inside(workspace) {
        return refuse(
            format!(
                "`{}` is mounted in the workspace, and a layer shows nothing of it",
                mounted.display()
            ),
            "choose the mounted directory itself, or `--changes direct`",
        );
    }
    Ok(())
}

/// Something that is mounted below a directory, if anything is.
fn mount_inside(directory: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let file = rustix::fs::open("/proc/self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Bits::empty()).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes).ok()?;
    let mut points = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.find_map(|point| {
        // Blanks are written as `\040`.
        let mut path = Vec::with_capacity(point.len());
        let mut rest = point.iter().copied();
        while let Some(byte) = rest.next() {
            path.push(match byte {
                b'\\' => rest.by_ref().take(3).fold(0_u8, |value, digit| {
                    value.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0'))
                }),
                byte => byte,
            });
        }
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        (path != directory && path.starts_with(directory)).then_some(path)
    })
}

/// How a person accepts what is held back of a path and kept in a set, as a command that can be pasted.
pub(super) fn how_to_accept(id: &str, path: &Path) -> String {
    format!(
        "a person can accept it with `shieling changes apply {id} --accept-held-back --only {}`",
        shieling_shell::quoted_name(path.as_os_str())
    )
}
