//! The watch itself.

mod accepted;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use shieling_gate::{Act, Change, Concern, Entry, Gate, HeldBack, Kind, LAYOUT, Surroundings, Tree, is_object_store};

use crate::handover::{Part, Reader, Writer};
use crate::look::{self, Ahead, First, Listed};
use crate::moved::Moved;
use crate::notifier::{Notified, Notifier};
use crate::plan::Plan;
use crate::replace::{Content, LEVELS, remove, replace};
use crate::tree::{self, Before, Directory, KEPT, Kept, LONGEST, Live, Now, Seen, Stamp, Time};

/// How many directories are looked at.
const DIRECTORIES: usize = 1_000_000;
/// Bytes of what is remembered of the first look. What is beyond is judged by its stamps, and cannot be put back.
const REMEMBERED: usize = 512 << 20;
/// How often all is looked at once more, after something was put back.
const ROUNDS: usize = 6;
/// The same, while commands run: a part that runs is taken back before the whole is looked at.
const ROUNDS_WHILE_RUNNING: usize = 3;
/// With how many leads links into packages are no longer followed.
const LEADS: usize = 10_000;

/// How long what may be half written is left alone while it changes, and how long in all.
const STILL: Duration = Duration::from_millis(50);
const HALF_WRITTEN: Duration = Duration::from_millis(200);

/// What runs while changes are judged, and whether an outcome is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Commands run, and no outcome is due.
    Running,
    /// An outcome is due, and something else may run on.
    Outcome,
    /// Nothing runs.
    Idle,
}

/// Something that was held back: what was there before stands there again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Where it was, relative to the root.
    pub path: PathBuf,
    /// Why.
    pub held: HeldBack,
    /// Whether the owner has kept it.
    pub is_kept: bool,
    /// Why it stands there still, if it could not be taken back.
    pub failed: Option<String>,
}

/// Why a tree cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot hold `{}`: {source}", path.display())]
pub struct WatchError {
    /// The directory.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: Errno,
}

/// What the first look has found.
#[derive(Debug, Default)]
struct Found {
    directories: HashMap<PathBuf, Seen>,
    before: BTreeMap<PathBuf, Kept>,
    /// What may have been made by a command meanwhile.
    new: BTreeSet<PathBuf>,
    bytes: usize,
    is_cut: bool,
}

impl Found {
    /// Adds what was found in a directory. `since` is when commands may have begun, if they may have.
    fn add(&mut self, listed: Listed, since: Option<Time>) {
        let may_be_moved = since.is_some_and(|since| listed.may_be_moved(since));
        let seen = Seen::of(&listed);
        for (path, mut kept) in listed.matter {
            let length = kept.content.as_ref().map_or(0, Vec::len);
            match self.bytes + length > REMEMBERED {
                true => kept.content = None,
                false => self.bytes += length,
            }
            // Nobody can set this time back.
            let is_old = since.is_none_or(|since| kept.stamp.changed < since) && !may_be_moved;
            match is_old || kept.entry.kind == Kind::Directory {
                true => {
                    self.before.insert(path, kept);
                }
                false => {
                    self.new.insert(path);
                }
            }
        }
        self.new.extend(listed.unsure);
        self.directories.insert(listed.ahead.path, seen);
    }
}

impl Seen {
    fn of(listed: &Listed) -> Self {
        Self {
            is_young: listed.is_young,
            stamp: listed.stamp,
            was_closed: listed.was_closed,
        }
    }

    /// Of a directory that cannot be read: it is looked at each time.
    const UNREAD: Self = Self {
        stamp: Stamp::NONE,
        is_young: true,
        was_closed: true,
    };

    fn is_unread(&self) -> bool {
        self.stamp == Stamp::NONE
    }
}

/// What of what is known changed.
#[derive(Debug, Default)]
struct Changed {
    /// All of it may have.
    everything: bool,
    leads: bool,
    directories: BTreeSet<PathBuf>,
    kept: BTreeSet<PathBuf>,
}

/// A tree that is watched.
#[derive(Debug)]
pub struct Watch {
    plan: Plan,
    live: Arc<Live>,
    notifier: Option<Arc<Notifier>>,
    first: Option<JoinHandle<Found>>,
    directories: HashMap<PathBuf, Seen>,
    before: Before,
    /// Paths that are to be judged whatever their stamps say.
    later: BTreeSet<PathBuf>,
    /// Whether some of them were not judged yet.
    has_new_later: bool,
    /// What may be half written, since when that is known, and whether it still was at the last look.
    half_written: BTreeMap<PathBuf, (Instant, bool)>,
    /// The paths reported since the last full scan that were not scanned since.
    notified: Notified,
    /// What changed since it was last handed over.
    changed: Changed,
    /// When the first look began.
    since: Time,
    /// Whether something is known to have changed.
    is_stale: bool,
    /// Whether settings were remembered that can lead elsewhere than those before.
    has_new_settings: bool,
    is_cut: bool,
    /// Directories that a command made or changed, and that cannot be read.
    unread: BTreeSet<PathBuf>,
    /// Those of them that were not told.
    unread_untold: BTreeSet<PathBuf>,
}

fn gate<'a>(plan: &'a Plan, before: &'a dyn Tree, after: &'a dyn Tree) -> Gate<'a> {
    Gate::new(Surroundings {
        root: &plan.root,
        home: plan.home.as_deref(),
        before,
        after,
        leads: &plan.leads,
        toolchains: &plan.toolchains,
    })
    .with_beside(&plan.beside)
    .piecemeal()
}

impl Watch {
    /// Begins to look at a tree, in which no command runs yet.
    ///
    /// # Errors
    /// [`WatchError`]: the root cannot be held.
    pub fn start(plan: Plan) -> Result<Self, WatchError> {
        let live = Live::hold(&plan.root).map_err(|source| WatchError {
            path: plan.root.clone(),
            source,
        })?;
        let live = Arc::new(live);
        let notifier = plan.has_notifier.then(Notifier::new).flatten().map(Arc::new);
        let mut found = Found::default();
        let until = Some(Instant::now() + plan.first_budget);
        // What changed until now, the user changed.
        let since = tree::now();
        let (ahead, seen) = first_look(
            (&plan, &live, notifier.as_deref()),
            (since, VecDeque::from([Ahead::new(PathBuf::new())]), 0),
            until,
            // Nothing runs yet that could be the sandbox's.
            &mut |listed| found.add(listed, None),
        );
        let mut watch = Self {
            first: None,
            directories: HashMap::new(),
            before: Before::default(),
            later: BTreeSet::new(),
            has_new_later: false,
            half_written: BTreeMap::new(),
            notified: Notified::default(),
            changed: Changed::default(),
            since,
            is_stale: notifier.is_none(),
            has_new_settings: false,
            is_cut: false,
            unread: BTreeSet::new(),
            unread_untold: BTreeSet::new(),
            plan,
            live,
            notifier,
        };
        if ahead.is_empty() {
            watch.take(found);
            return Ok(watch);
        }
        let (plan, live, notifier) = (watch.plan.clone(), Arc::clone(&watch.live), watch.notifier.clone());
        watch.first = std::thread::Builder::new()
            .name("first look".to_owned())
            .spawn(move || {
                let (ahead, _) = first_look(
                    (&plan, &live, notifier.as_deref()),
                    (since, ahead, seen),
                    None,
                    &mut |listed| found.add(listed, Some(since)),
                );
                found.is_cut = !ahead.is_empty();
                found
            })
            .ok();
        if watch.first.is_none() {
            return Err(WatchError {
                path: watch.plan.root,
                source: Errno::AGAIN,
            });
        }
        Ok(watch)
    }

    fn take(&mut self, found: Found) {
        self.directories = found.directories;
        self.before = Before(found.before);
        self.judge_later(found.new);
        self.is_cut = found.is_cut;
        self.changed.everything = true;
    }

    /// The directory that is watched.
    pub fn root(&self) -> &Path {
        &self.plan.root
    }

    /// The plan and the beginning, as bytes for [`Self::resume`].
    pub fn beginning(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.plan(&self.plan, self.since);
        writer.0
    }

    /// What became known since this was last asked, as bytes for [`Self::resume`], and whether that is everything. Nothing
    /// before the first look is over.
    pub fn hand_over(&mut self) -> (Vec<u8>, bool) {
        let changed = match self.first {
            Some(_) => Changed::default(),
            None => std::mem::take(&mut self.changed),
        };
        let mut writer = Writer::default();
        if changed.everything || changed.leads {
            self.plan.leads.iter().for_each(|lead| writer.lead(lead));
        }
        if changed.everything {
            for (path, seen) in &self.directories {
                writer.directory(path, Some(seen));
            }
            for (path, kept) in &self.before.0 {
                writer.kept(path, Some(kept));
            }
            for path in &self.later {
                writer.later(path);
            }
        } else {
            for path in &changed.directories {
                writer.directory(path, self.directories.get(path));
            }
            for path in &changed.kept {
                writer.kept(path, self.before.0.get(path));
            }
        }
        (writer.0, changed.everything)
    }

    /// Has the next [`Self::hand_over`] give everything.
    pub fn hand_over_again(&mut self) {
        self.changed.everything = true;
    }

    /// A watch that goes on where another one, whose process is gone, has been. `parts` are what that has handed over, the
    /// first of which is everything; if there are none, its first look was not over, and is taken now.
    ///
    /// # Errors
    /// [`WatchError`]: the root cannot be held, or the bytes cannot be read.
    pub fn resume(beginning: &[u8], parts: &[&[u8]]) -> Result<Self, WatchError> {
        let unreadable = || WatchError {
            path: PathBuf::new(),
            source: Errno::INVAL,
        };
        let (plan, since) = Reader(beginning).plan().ok_or_else(unreadable)?;
        let live = Live::hold(&plan.root).map_err(|source| WatchError {
            path: plan.root.clone(),
            source,
        })?;
        let mut watch = Self {
            plan,
            live: Arc::new(live),
            notifier: None,
            first: None,
            directories: HashMap::new(),
            before: Before::default(),
            later: BTreeSet::new(),
            has_new_later: false,
            half_written: BTreeMap::new(),
            notified: Notified::default(),
            changed: Changed::default(),
            since,
            is_stale: true,
            has_new_settings: false,
            is_cut: false,
            unread: BTreeSet::new(),
            unread_untold: BTreeSet::new(),
        };
        if parts.is_empty() {
            let mut found = Found::default();
            let ahead = VecDeque::from([Ahead::new(PathBuf::new())]);
            let (ahead, _) = first_look(
                (&watch.plan, &watch.live, None),
                (since, ahead, 0),
                None,
                &mut |listed| found.add(listed, Some(since)),
            );
            found.is_cut = !ahead.is_empty();
            watch.take(found);
        }
        for part in parts {
            let mut reader = Reader(part);
            while !reader.0.is_empty() {
                match reader.part().ok_or_else(unreadable)? {
                    // All are listed once more.
                    Part::Directory(path, Some(seen)) => {
                        watch.directories.insert(path, Seen { is_young: true, ..seen });
                    }
                    Part::Directory(path, None) => {
                        watch.directories.remove(&path);
                    }
                    Part::Kept(path, Some(kept)) => {
                        watch.before.0.insert(path, kept);
                    }
                    Part::Kept(path, None) => {
                        watch.before.0.remove(&path);
                    }
                    Part::Later(path) => {
                        watch.later.insert(path);
                    }
                    Part::Lead(lead) => {
                        if !watch.plan.leads.contains(&lead) {
                            watch.plan.leads.push(lead);
                        }
                    }
                }
            }
        }
        for (path, _) in watch.directories.iter().filter(|(_, seen)| seen.is_unread()) {
            watch.live.note_closed_before(path);
        }
        Ok(watch)
    }

    /// Waits for the first look.
    fn complete(&mut self) {
        if let Some(first) = self.first.take() {
            let found = first.join().unwrap_or_else(|_| Found {
                is_cut: true,
                ..Found::default()
            });
            self.take(found);
        }
    }

    /// Whether there is more than is looked at, so that some of it is not judged.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Directories that a command made or changed since this was last asked, and in which nothing is judged, since they
    /// cannot be read: they are of another user, their path is too long, or they were closed before any command ran.
    pub fn take_unread(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.unread_untold)
    }

    /// Whether something may have changed since the last look, as far as that is known without looking.
    pub fn may_differ(&mut self) -> bool {
        self.is_stale |= self.was_notified();
        self.is_stale
    }

    fn was_notified(&mut self) -> bool {
        match &self.notifier {
            Some(notifier) => notifier.listen(&mut self.notified),
            None => self.notified.spread(),
        }
        !self.notified.is_empty()
    }

    /// What becomes readable when something changed; `None` where the kernel cannot tell, or not of everything.
    pub fn notifier(&self) -> Option<Arc<dyn AsFd + Send + Sync>> {
        let notifier = self.notifier.clone().filter(|notifier| !notifier.has_gaps())?;
        Some(notifier)
    }

    /// Whether something is to be looked at in a moment, whether it changes or not: it may be half written, or settings
    /// lead to it by now.
    pub fn is_waiting(&self) -> bool {
        !self.half_written.is_empty() || !self.notified.is_empty()
    }

    /// Whether the first look is over, so that nothing is waited for.
    pub fn has_looked(&self) -> bool {
        self.first.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Judges what changed since the last look, and puts back what is held back, once `keep` has kept it. Waits for the
    /// first look.
    ///
    /// What ordinary commands need while they run is judged later, as each rule says ([`Act`]). While commands run and no
    /// outcome is due, only the reported paths are scanned. With `thoroughly`, what is remembered by its
    /// content is read again: a process that has run since can have written through a mapping, which changes no stamp.
    pub fn settle(
        &mut self,
        when: When,
        thoroughly: bool,
        keep: &mut dyn FnMut(&Path, &Content) -> bool,
    ) -> Vec<Taken> {
        self.complete();
        if when == When::Running {
            let mut taken = BTreeMap::new();
            self.settle_notified(keep, &mut taken);
            return taken.into_values().collect();
        }
        self.live.leave_closed(false);
        let taken = self.settle_all(when, thoroughly, keep);
        self.live.leave_closed(true);
        taken
    }

    /// Judges all that changed.
    fn settle_all(
        &mut self,
        when: When,
        thoroughly: bool,
        keep: &mut dyn FnMut(&Path, &Content) -> bool,
    ) -> Vec<Taken> {
        let mut taken = BTreeMap::new();
        // A file can be written by a name that is gone, of which no directory tells.
        let may_differ = self.may_differ();
        if !may_differ
            && !self
                .before
                .0
                .iter()
                .any(|(path, kept)| self.differs(path, kept, thoroughly))
        {
            return Vec::new();
        }
        self.is_stale = false;
        self.has_new_later = false;
        self.half_written.clear();
        let mut again = BTreeSet::new();
        for round in 0..ROUNDS {
            let is_last = round + 1 == ROUNDS;
            let mut found = self.look(thoroughly && round == 0);
            found.changed.append(&mut self.later);
            // Those of the round before wait until this is over.
            found.changed.append(&mut again);
            let held = self.judge(found);
            let leads_elsewhere = self.leads_elsewhere();
            if !self.take_back_all(held, (when, is_last), &mut again, &mut taken, keep) {
                if leads_elsewhere {
                    // Something that runs changes settings all the time.
                    self.is_stale |= is_last;
                    continue;
                }
                break;
            }
            if is_last {
                for path in &again {
                    if let (Some(one), Ok(Some(_))) = (taken.get_mut(path), self.live.node(path)) {
                        one.failed
                            .get_or_insert_with(|| "it was made again each time it was taken back".to_owned());
                    }
                }
                self.judge_later(std::mem::take(&mut again));
            }
        }
        // What can be read by now was judged.
        let known = &self.directories;
        self.unread.retain(|path| known.get(path).is_some_and(Seen::is_unread));
        taken.into_values().collect()
    }

    /// Judges the reported paths.
    fn settle_notified(&mut self, keep: &mut dyn FnMut(&Path, &Content) -> bool, taken: &mut BTreeMap<PathBuf, Taken>) {
        // Those that are half written still are added again.
        let mut again: BTreeSet<PathBuf> = self.half_written.keys().cloned().collect();
        self.half_written.values_mut().for_each(|(_, still)| *still = false);
        for round in 0..ROUNDS_WHILE_RUNNING {
            // The look before the outcome goes through everything.
            self.is_stale |= self.was_notified();
            let notified = std::mem::take(&mut self.notified);
            let mut found = match notified.everywhere {
                true => self.look(false),
                false => self.look_at(notified),
            };
            if std::mem::take(&mut self.has_new_later) {
                found.changed.extend(self.later.iter().cloned());
            }
            found.changed.append(&mut again);
            if found.changed.is_empty() && found.directories.is_empty() {
                break;
            }
            let held = self.judge(found);
            if self.leads_elsewhere() {
                self.notified.spread();
            }
            let is_last = round + 1 == ROUNDS_WHILE_RUNNING;
            self.take_back_all(held, (When::Running, is_last), &mut again, taken, keep);
        }
        self.half_written.retain(|_, (_, still)| *still);
        self.judge_later(again);
    }

    /// Has these judged at the next look, whether an event tells of them or not.
    fn judge_later(&mut self, paths: BTreeSet<PathBuf>) {
        self.is_stale |= !paths.is_empty();
        self.has_new_later |= !paths.is_empty();
        self.later.extend(paths);
    }

    /// Whether something is to be taken back now, as its rule says.
    fn is_due(&mut self, when: When, held: &Held) -> bool {
        match (when, held.why.act) {
            (_, Act::AtOnce)
            | (When::Outcome | When::Idle, Act::OnceStill | Act::BeforeOutcome)
            | (When::Idle, Act::OnceIdle) => true,
            (When::Running, Act::BeforeOutcome | Act::OnceIdle) | (When::Outcome, Act::OnceIdle) => false,
            (When::Running, Act::OnceStill) => {
                let first = || (Instant::now(), true);
                let (since, is_still) = self.half_written.entry(held.path.clone()).or_insert_with(first);
                *is_still = true;
                let since = *since;
                let still = Time::try_from(STILL.as_nanos()).unwrap_or_default();
                let changed = held.after.as_ref().map_or(0, |(_, stamp)| stamp.changed);
                let is_due = since.elapsed() >= HALF_WRITTEN || changed + still < tree::now();
                if is_due {
                    self.half_written.remove(&held.path);
                }
                is_due
            }
        }
    }

    /// Takes back what is due, and whether anything was. What is to be judged in the next round goes into `again`.
    fn take_back_all(
        &mut self,
        mut held: Vec<Held>,
        (when, is_last): (When, bool),
        again: &mut BTreeSet<PathBuf>,
        taken: &mut BTreeMap<PathBuf, Taken>,
        keep: &mut dyn FnMut(&Path, &Content) -> bool,
    ) -> bool {
        held.retain(|held| {
            // What is in a directory that is left closed is judged before the outcome.
            let is_closed = || {
                let glance = self.live.glance(&held.path);
                self.live.leaves_closed() && glance.is_err_and(|errno| errno == Errno::ACCESS)
            };
            let is_due = !is_closed() && self.is_due(when, held);
            if !is_due {
                self.later.insert(held.path.clone());
                self.is_stale = true;
            }
            is_due
        });
        // Without the part that git would run, the rest of a repository can stay.
        let is_layout = |why: &HeldBack| why.rule == LAYOUT;
        let parts_first = !is_last && held.iter().any(|held| !is_layout(&held.why));
        let any = !held.is_empty();
        for held in held {
            again.insert(held.path.clone());
            if parts_first && is_layout(&held.why) {
                continue;
            }
            // It may be another by now, which is judged first, as long as there is a next round.
            let is_another = held
                .after
                .as_ref()
                .is_some_and(|(_, stamp)| self.live.glance(&held.path).is_ok_and(|now| now != Some(*stamp)));
            if is_another && !is_last {
                continue;
            }
            let path = held.path.clone();
            if let Some(one) = self.take_back(held, keep) {
                taken.insert(path, one);
            }
        }
        any
    }

    /// Whether settings changed since this was last asked, so that other files matter than before: then all directories
    /// are listed at the next look.
    fn leads_elsewhere(&mut self) -> bool {
        let changed = std::mem::take(&mut self.has_new_settings);
        if changed {
            self.directories.values_mut().for_each(|seen| seen.is_young = true);
        }
        changed
    }

    /// Whether a path has the stamp that is remembered. Others than files change with the directory in which they are.
    fn is_as_seen(&self, path: &Path, kept: &Kept) -> bool {
        kept.entry.kind != Kind::File
            || !kept.is_young
                // Where that cannot be told, its directory is looked at.
                && self.live.glance(path).map_or(true, |stamp| stamp == Some(kept.stamp))
    }

    /// Whether a file differs from what is remembered, by its stamps; with `thoroughly`, by what it says as well.
    fn differs(&self, path: &Path, kept: &Kept, thoroughly: bool) -> bool {
        let says_other = |content: &Vec<u8>| self.live.read(path, KEPT).is_ok_and(|now| now != *content);
        !self.is_as_seen(path, kept) || thoroughly && kept.content.as_ref().is_some_and(says_other)
    }

    /// Finds what differs from what is remembered, by its stamps; with `thoroughly`, by what it says as well.
    fn look(&mut self, thoroughly: bool) -> Differs {
        // Later events are for the next scan.
        let _ = self.was_notified();
        self.notified = Notified::default();
        let mut differs = Differs::default();
        let mut ahead = VecDeque::new();
        self.compare(&mut differs, &mut ahead, &|_| true, thoroughly);
        self.list(&mut differs, ahead, true);
        self.complete_look(&mut differs);
        differs
    }

    /// Finds what differs from what is remembered, of the paths of which this holds.
    fn compare(
        &self,
        differs: &mut Differs,
        ahead: &mut VecDeque<Ahead>,
        is_meant: &dyn Fn(&Path) -> bool,
        thoroughly: bool,
    ) {
        for (path, seen) in self.directories.iter().filter(|(path, _)| is_meant(path)) {
            match self.live.glance(path) {
                Ok(Some(stamp)) if stamp == seen.stamp && !seen.is_young => {}
                Ok(None) => {
                    differs.directories.insert(path.clone(), None);
                }
                // Something else, or a directory above it is closed.
                Ok(Some(_)) | Err(_) => ahead.push_back(Ahead::new(path.clone())),
            }
        }
        for (path, kept) in self.before.0.iter().filter(|(path, _)| is_meant(path)) {
            if self.differs(path, kept, thoroughly) {
                differs.changed.insert(path.clone());
            }
        }
    }

    /// Finds what differs at the reported paths.
    fn look_at(&mut self, notified: Notified) -> Differs {
        let mut differs = Differs::default();
        let mut ahead = VecDeque::new();
        // Of those that were moved away and are back, earlier events may have led nowhere.
        let is_back = |path: &&PathBuf| notified.has_moves && self.directories.contains_key(*path);
        let back: BTreeSet<PathBuf> = notified.directories.iter().filter(is_back).cloned().collect();
        if !back.is_empty() {
            let is_below = |path: &Path| path.ancestors().skip(1).any(|above| back.contains(above));
            self.compare(&mut differs, &mut ahead, &is_below, false);
        }
        for path in notified.directories {
            if self
                .before
                .0
                .get(&path)
                .is_some_and(|was| was.entry.kind != Kind::Directory)
            {
                differs.changed.insert(path.clone());
            }
            match self.live.glance(&path) {
                Ok(None) => {
                    differs.directories.insert(path, None);
                }
                Ok(Some(_)) | Err(_) if is_object_store(&path) => {}
                // That it was opened by us is an event as well. Otherwise looking would ring for itself.
                Ok(Some(stamp)) if self.was_opened_by_us(&path, stamp) => self.is_stale = true,
                Ok(Some(_)) | Err(_) => ahead.push_back(Ahead::new(path)),
            }
        }
        let places: Vec<PathBuf> = notified.places.into_iter().collect();
        for places in places.chunks(100) {
            let gate = gate(&self.plan, &self.before, &*self.live);
            for path in places {
                let was = self.before.0.get(path);
                let (entry, stamp) = match self.live.node(path) {
                    Ok(Some(node)) => node,
                    Ok(None) => {
                        if was.is_some() {
                            differs.changed.insert(path.clone());
                        }
                        continue;
                    }
                    Err(_) => {
                        differs.changed.insert(path.clone());
                        continue;
                    }
                };
                if entry.kind == Kind::Directory && !self.was_opened_by_us(path, stamp) {
                    ahead.push_back(Ahead::new(path.clone()));
                }
                let is_plain = matches!(entry.kind, Kind::File | Kind::Directory);
                let concern = gate.concern(path).unwrap_or(Concern::Content);
                let is_same = was.is_some_and(|was| !was.is_young && was.stamp == stamp && was.entry == entry);
                if !is_same && (!is_plain || concern != Concern::Nothing) {
                    differs.changed.insert(path.clone());
                }
            }
        }
        self.list(&mut differs, ahead, notified.has_moves);
        self.complete_look(&mut differs);
        differs
    }

    /// Whether a directory is as it was left after it was opened to be looked at.
    fn was_opened_by_us(&self, path: &Path, stamp: Stamp) -> bool {
        let seen = self.directories.get(path);
        seen.is_some_and(|seen| seen.was_closed && seen.stamp == stamp)
    }

    /// Notes that a directory cannot be read.
    fn note_unread(&mut self, path: &Path) {
        // What could not be read before either was told, or is as the user has it.
        let is_new = self.directories.get(path).is_none_or(|seen| !seen.is_unread());
        if is_new && self.unread.len() < DIRECTORIES && self.unread.insert(path.to_path_buf()) {
            self.unread_untold.insert(path.to_path_buf());
        }
    }

    /// Lists these directories, and those in them that are not known. If some may have been moved here, finds where they
    /// were.
    fn list(&mut self, differs: &mut Differs, mut ahead: VecDeque<Ahead>, may_be_moved: bool) {
        let mut known: Option<HashMap<(u64, u64), &PathBuf>> = None;
        let mut unread = Vec::new();
        while !ahead.is_empty() {
            let gate = gate(&self.plan, &self.before, &*self.live);
            for one in ahead.drain(..ahead.len().min(100)).collect::<Vec<_>>() {
                if differs.directories.len() >= DIRECTORIES {
                    self.is_cut = true;
                    break;
                }
                let path = one.path.clone();
                let listed = match look::list(&self.live, &gate, self.notifier.as_deref(), one, false) {
                    Ok(listed) => listed,
                    Err(errno) if look::is_gone(errno) => {
                        differs.directories.insert(path, None);
                        continue;
                    }
                    Err(_) if let Some(is_changed) = self.live.was_closed_before(&path) => {
                        // A command can have opened and closed it.
                        if is_changed && !self.live.leaves_closed() {
                            self.unread_untold.insert(path.clone());
                        }
                        differs.directories.insert(path, Some(Seen::UNREAD));
                        continue;
                    }
                    Err(_) if self.live.leaves_closed() => {
                        self.is_stale = true;
                        differs.unlisted.insert(path);
                        continue;
                    }
                    // What is remembered of what is in it stands until it can be read.
                    Err(_) => {
                        unread.push(path.clone());
                        differs.directories.insert(path, Some(Seen::UNREAD));
                        continue;
                    }
                };
                let stamp = listed.stamp;
                self.live.note_read(&stamp);
                let is_where_it_was = self
                    .directories
                    .get(&path)
                    .is_some_and(|seen| seen.stamp.is_same(&stamp));
                if !is_where_it_was && may_be_moved {
                    let known = known.get_or_insert_with(|| {
                        let all = self.directories.iter();
                        all.map(|(path, seen)| ((seen.stamp.device, seen.stamp.inode), path))
                            .collect()
                    });
                    if let Some(was) = known.get(&(stamp.device, stamp.inode)) {
                        differs.moved.0.push((path.clone(), (*was).clone()));
                    }
                }
                for (inside, inode) in &listed.directories {
                    let is_known = self
                        .directories
                        .get(inside)
                        .is_some_and(|seen| seen.stamp.inode == *inode);
                    if !is_known && !differs.directories.contains_key(inside) {
                        ahead.push_back(Ahead::new(inside.clone()));
                    }
                }
                for (inside, kept) in &listed.matter {
                    let is_same = self.before.0.get(inside).is_some_and(|was| {
                        let is_directory = kept.entry.kind == Kind::Directory && was.entry.kind == Kind::Directory;
                        is_directory || !was.is_young && was.stamp == kept.stamp && was.entry == kept.entry
                    });
                    // It is there since before, and matters only now. A name that is given to a file changes its stamp.
                    let is_old =
                        is_where_it_was && !self.before.0.contains_key(inside) && kept.stamp.changed < self.since;
                    if is_old {
                        differs.old.push((inside.clone(), kept.clone()));
                    } else if !is_same {
                        differs.changed.insert(inside.clone());
                    }
                }
                differs.changed.extend(listed.unsure.iter().cloned());
                let here: BTreeSet<&PathBuf> = listed.matter.iter().map(|(path, _)| path).collect();
                let gone = self.before.below(&path).map(|(inside, _)| inside);
                let gone = gone.filter(|inside| inside.parent() == Some(&path) && !here.contains(inside));
                differs.changed.extend(gone.cloned());
                differs.directories.insert(path, Some(Seen::of(&listed)));
            }
            if self.is_cut {
                break;
            }
        }
        unread.iter().for_each(|path| self.note_unread(path));
    }

    /// Adds what is gone with directories that are, and remembers what was there before the first look.
    fn complete_look(&mut self, differs: &mut Differs) {
        let gone: BTreeSet<PathBuf> = differs
            .directories
            .iter()
            .filter(|(_, seen)| seen.is_none())
            .map(|(path, _)| path.clone())
            .collect();
        for gone in &gone {
            differs
                .changed
                .extend(self.before.below(gone).map(|(path, _)| path.clone()));
        }
        // A link in the place of one of them shows what is below it, and is not followed.
        if !gone.is_empty() {
            for path in self.directories.keys() {
                if path.ancestors().any(|above| gone.contains(above)) {
                    differs.directories.insert(path.clone(), None);
                }
            }
        }
        for (path, mut kept) in std::mem::take(&mut differs.old) {
            kept.content = match kept.entry.kind {
                Kind::File => self.live.read(&path, KEPT).ok(),
                _ => None,
            };
            self.changed.kept.insert(path.clone());
            self.before.0.insert(path, kept);
        }
    }

    /// Remembers directories as they were listed, and that those `unlisted` were not.
    fn remember(&mut self, directories: HashMap<PathBuf, Option<Seen>>, unlisted: &BTreeSet<PathBuf>) {
        let mut gone = Vec::new();
        for (path, seen) in directories {
            self.changed.directories.insert(path.clone());
            match seen {
                Some(seen) => {
                    self.directories.insert(path, seen);
                }
                None => {
                    self.directories.remove(&path);
                    gone.push(path);
                }
            }
        }
        gone.iter().chain(unlisted).for_each(|path| self.list_above_again(path));
    }

    /// Has the directory above a path listed at the next full look, although its stamp may be the same: what is not there now
    /// can have been moved away with a directory further above, and back.
    fn list_above_again(&mut self, path: &Path) {
        if let Some(above) = path.parent().and_then(|above| self.directories.get_mut(above)) {
            above.is_young = true;
        }
    }

    /// Judges what differs, remembers what passes as it was judged, and gives the rest, with what it says.
    fn judge(&mut self, differs: Differs) -> Vec<Held> {
        // Before what is gone by now is found.
        self.remember(differs.directories, &differs.unlisted);
        let live = Arc::clone(&self.live);
        let now = Now::new(&live);
        let mut held = Vec::new();
        let mut passed = Vec::new();
        {
            let gate = gate(&self.plan, &self.before, &now);
            for path in differs.changed {
                let origin = differs
                    .moved
                    .origin(&path)
                    .filter(|(to, origin)| {
                        self.before.0.contains_key(origin) && gate.is_moved_whole(to, &path).unwrap_or(false)
                    })
                    .map(|(_, origin)| origin);
                let was = self.before.0.get(origin.as_ref().unwrap_or(&path));
                let after = match now.entry(&path) {
                    Ok(after) => after,
                    Err(error) => {
                        let why = HeldBack::unreadable(&error);
                        held.push(Held { path, why, after: None });
                        continue;
                    }
                };
                let change = Change {
                    path: &path,
                    from: origin.as_deref(),
                    before: was.map(|was| was.entry.clone()),
                    after,
                };
                match gate.judge(&change).held_back() {
                    None => {
                        // What is judged by nothing but its name is remembered by what it says as well.
                        if gate.concern(&path).is_ok_and(|concern| concern == Concern::Content) {
                            let _ = now.read(&path, LONGEST);
                        }
                        passed.push(path);
                    }
                    // It went while it was judged; should it come back, it differs again.
                    Some(_) if matches!(self.live.node(&path), Ok(None)) => {}
                    Some(why) => {
                        let why = why.clone();
                        let after = now.node(&path).ok().flatten();
                        held.push(Held { path, why, after });
                    }
                }
            }
        }
        for path in passed {
            self.set(&path, &now);
        }
        held.sort_by(|one, other| one.order().cmp(&other.order()));
        held
    }

    /// Remembers a path as it is in this look.
    fn set(&mut self, path: &Path, now: &Now<'_>) {
        self.changed.kept.insert(path.to_path_buf());
        let Ok(Some((entry, stamp))) = now.node(path) else {
            self.before.0.remove(path);
            self.list_above_again(path);
            return;
        };
        if matches!(entry.kind, Kind::Link(_)) {
            self.follow_into_packages(path);
        }
        let mut content = now.content(path);
        if let Some(short) = &content
            && (short.len() as u64) < entry.size
        {
            // Too long to be judged by what it says, and not to be put back.
            content = self.live.read(path, KEPT).ok();
        }
        if is_settings(path) && self.before.0.get(path).is_none_or(|was| was.content != content) {
            self.has_new_settings = true;
        }
        self.before.0.insert(
            path.to_path_buf(),
            Kept {
                is_young: now.is_young(&stamp),
                content,
                entry,
                stamp,
            },
        );
    }

    /// Has what lies in a directory among packages judged from now on, if a new link leads to it.
    fn follow_into_packages(&mut self, link: &Path) {
        let opened = gate(&self.plan, &self.before, &*self.live).opened_by(link);
        if let Ok(Some(lead)) = opened
            && !self.plan.leads.contains(&lead)
        {
            if self.plan.leads.len() >= LEADS {
                self.is_cut = true;
                return;
            }
            self.plan.leads.push(lead);
            self.changed.leads = true;
            self.has_new_settings = true;
        }
    }

    /// Puts back what was there. Nothing is told of a file that has another name and gets a content of its own.
    fn take_back(&self, held: Held, keep: &mut dyn FnMut(&Path, &Content) -> bool) -> Option<Taken> {
        let Held {
            path,
            why: mut held,
            after,
        } = held;
        let (path, stamp) = (path.as_path(), after.as_ref().map(|(_, stamp)| stamp));
        let after = after.as_ref().map(|(after, _)| after);
        // One after the other: all of them could be more than there is memory.
        let content = match after.map(|after| (&after.kind, after.mode)) {
            Some((Kind::File, mode)) => {
                let content = self.live.read(path, KEPT + 1).ok();
                let content = content.filter(|content| content.len() <= KEPT);
                content.map(|content| Content::File(content, mode & 0o777))
            }
            Some((Kind::Link(target), _)) => Some(Content::Link(target.clone())),
            _ => None,
        };
        let was = self.before.0.get(path);
        let owner = was.map(|was| was.stamp.owner).or(stamp.map(|stamp| stamp.owner));
        if held.rule.as_str() == "git.hard-link" {
            let failed = match &content {
                Some(content) => self.replace(path, content, owner).err().map(|errno| errno.to_string()),
                // It is the user's as well, under its other name.
                None => Some("it has another name, and is too large to be copied".to_owned()),
            };
            return failed.map(|failed| Taken {
                path: path.to_path_buf(),
                held,
                is_kept: false,
                failed: Some(failed),
            });
        }
        let is_too_large = content.is_none() && after.is_some_and(|after| after.kind == Kind::File);
        let is_kept = content.is_some_and(|content| keep(path, &content));
        let rest = held
            .rest
            .take()
            .zip(after)
            .map(|(rest, after)| Content::File(rest, after.mode & 0o777));
        let before = was.and_then(|was| match (&was.entry.kind, &was.content) {
            (Kind::File, Some(content)) if content.len() as u64 == was.entry.size => {
                Some(Content::File(content.clone(), was.entry.mode & 0o777))
            }
            (Kind::Link(target), _) => Some(Content::Link(target.clone())),
            _ => None,
        });
        if rest.is_some() {
            held.instead.push_str("; the rest of the file stays");
        }
        let before = rest.or(before);
        if before.is_none() && was.is_some_and(|was| was.entry.kind == Kind::File) {
            if is_too_large {
                return Some(Taken {
                    path: path.to_path_buf(),
                    held,
                    is_kept,
                    failed: Some("it was there before, and is too large to be kept".to_owned()),
                });
            }
            held.instead.push_str("; what was there before was not kept");
        }
        // What is no directory may have been exchanged for one meanwhile, which was not judged.
        let levels = LEVELS * usize::from(after.is_some_and(|after| after.kind == Kind::Directory));
        let done = match before {
            Some(before) => self.replace(path, &before, owner),
            None => match self.within(path, |above, name| remove(above, name, levels)) {
                Err(Errno::ISDIR) if levels == 0 => return None,
                removed => removed,
            },
        };
        Some(Taken {
            path: path.to_path_buf(),
            held,
            is_kept,
            failed: done.err().map(|errno| std::io::Error::from(errno).to_string()),
        })
    }

    fn replace(&self, path: &Path, content: &Content, owner: Option<(u32, u32)>) -> Result<(), Errno> {
        self.within(path, |above, name| replace(above.as_fd(), name, content, owner))
    }

    /// Does something in the directory in which a path is, also if a command has taken the right to write to it away.
    fn within(&self, path: &Path, act: impl Fn(&Directory, &OsStr) -> Result<(), Errno>) -> Result<(), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let above = match self.live.directory(path.parent().unwrap_or(Path::new(""))) {
            Ok(above) => above,
            Err(errno) if look::is_gone(errno) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        match act(&above, name) {
            Err(Errno::ACCESS) => {
                let _widened = self.live.writable(&above)?;
                act(&above, name)
            }
            done => done,
        }
    }
}

/// What is held back.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    why: HeldBack,
    /// What stands there.
    after: Option<(Entry, Stamp)>,
}

impl Held {
    /// The order in which all is taken back: what may run at once first, what lies in a directory before it, and what
    /// holds others, so that each of them is kept by itself, last.
    fn order(&self) -> (bool, Act, std::cmp::Reverse<&Path>) {
        let is_directory = self
            .after
            .as_ref()
            .is_some_and(|(after, _)| after.kind == Kind::Directory);
        let act = if is_directory { Act::OnceIdle } else { self.why.act };
        (is_directory, act, std::cmp::Reverse(&self.path))
    }
}

/// What differs from what is remembered.
#[derive(Debug, Default)]
struct Differs {
    changed: BTreeSet<PathBuf>,
    /// Directories that were listed, and those that are gone or closed.
    directories: HashMap<PathBuf, Option<Seen>>,
    /// Directories that are left closed for now.
    unlisted: BTreeSet<PathBuf>,
    /// What was there before the first look and was of no concern until now.
    old: Vec<(PathBuf, Kept)>,
    /// Directories that were at another path before: where they are, and where they were.
    moved: Moved,
}

/// Whether a file can say which other files matter.
fn is_settings(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| [".git", "config", "config.worktree", "commondir", "gitdir"].contains(&name))
}

/// Goes on with a first look, and gives what is still ahead, and how many directories were seen.
fn first_look(
    (plan, live, notifier): (&Plan, &Live, Option<&Notifier>),
    (since, ahead, seen): (Time, VecDeque<Ahead>, usize),
    until: Option<Instant>,
    found: &mut dyn FnMut(Listed),
) -> (VecDeque<Ahead>, usize) {
    let make = || gate(plan, live, live);
    let mut first = First {
        live,
        notifier,
        since,
        gate: &make,
        ahead,
        most: DIRECTORIES,
        seen,
    };
    first.go(until, found);
    (first.ahead, first.seen)
}

#[cfg(test)]
mod tests;
