//! A workspace that commands write to at once: what they change is judged while they run, within milliseconds, and all of it
//! once more before an outcome is given. What is held back is kept as a change set, and put back to what was there before.
//!
//! ```text
//! prepare ─► first look ─► before each command: what the user changed is accepted ─► command ─► settle: judged, put back, told
//!                                                                                     └─ meanwhile: reported paths are judged (judge thread)
//! ```
//!
//! What changed while a command or something it left runs is the sandbox's: nobody can tell who changed a file. What changed
//! while nothing of it ran is the user's. The looking and judging is `shieling-watch`'s; only how that goes with the life of a
//! jail is said here.

mod judge_thread;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use shieling_jail::plan;
use shieling_settle::{Beginning, Entry, Log, Quarantine};
use shieling_watch::{Content, Plan, Taken, Watch, When};
use tokio::sync::Notify;

use super::{Restrictions, ViewError, stage, writable};
use crate::outcome::HeldBack;
use crate::process::{Settler, StopHandle};
use judge_thread::{JudgeThread, Next};

/// How long the start of a sandbox looks by itself. In that time it sees what commands come to first, and all of a small
/// workspace.
const FIRST_BUDGET: Duration = Duration::from_micros(700);

/// How much is told at once.
const TOLD: usize = 200;

/// The time at which a command is ended that makes something again and again, and at which several are of which one
/// does.
const TIMES: u32 = 5;
const TIMES_OF_SEVERAL: u32 = 10;

/// What is made again later than this is counted from the beginning: a person may have made it, too.
const SOON_AGAIN: Duration = Duration::from_secs(10);

/// How many paths are counted for that.
const STRUCK: usize = 10_000;

/// How often it is looked whether everything that ran has ended.
const LEFT: Duration = Duration::from_millis(500);

/// How often all is looked at where nothing tells of changes.
const UNTOLD: Duration = Duration::from_millis(25);

/// How often it is looked whether the first look is over.
const FIRST: Duration = Duration::from_millis(5);

/// How often a file is looked at that may be half written.
const HALF_WRITTEN: Duration = Duration::from_millis(25);

/// The trees that the commands of one jail write to.
#[derive(Debug)]
pub(super) struct Watched {
    workspace: PathBuf,
    trees: Vec<(PathBuf, Watch)>,
    store: Quarantine,
    /// What is told to the process that goes on if this one is killed, and the way to tell it that all is settled.
    log: Option<Log>,
    settler: Option<Settler>,
    is_once: bool,
    /// Whether something that a command left may have run since.
    has_left: bool,
    /// Whether nothing ran at the last judgement of the judge thread.
    has_passed: bool,
    /// How many commands have begun whose end was not told.
    open: usize,
    /// Whether one of them was ordered with the jail, and is yet to be named.
    has_unnamed: bool,
    /// Whether nothing can have changed since the last look.
    is_settled: bool,
    /// The thread that judges while commands run.
    judge_thread: Option<JudgeThread>,
    /// The first set in which something was kept and that was not told.
    id: Option<String>,
    /// The running commands, once the judge thread has started.
    runs: Option<Arc<AllRuns>>,
    /// What was made again after it was taken back, by its path.
    again: BTreeMap<PathBuf, Again>,
    /// What was ended for that, and is told with its end.
    endings: Vec<HeldBack>,
    told: Vec<HeldBack>,
    /// How many more there were than are told.
    untold: usize,
    /// How many more directories could not be read than are told.
    unread: usize,
    told_cut: bool,
}

/// How often something was made while just these ran, each time soon after the time before.
#[derive(Debug)]
struct Again {
    times: u32,
    suspects: BTreeSet<u64>,
    last: Instant,
}

/// The commands that run, by a number each, and whom the end of one wakes.
#[derive(Debug, Default)]
pub(super) struct AllRuns(Mutex<(u64, BTreeMap<u64, Run>)>, Notify);

/// A command that runs.
#[derive(Debug)]
struct Run {
    stop_handle: StopHandle,
    in_session: bool,
}

/// Counts a command as running for as long as it is there.
#[derive(Debug)]
pub(super) struct Runs {
    all: Arc<AllRuns>,
    number: u64,
    stop_handle: StopHandle,
}

impl AllRuns {
    /// How many run, or have left something that does.
    pub(super) fn count(&self) -> usize {
        self.lock().1.len()
    }

    /// The same without commands of sessions that have ended and left something: that is seen beside the shell, where
    /// what another command has left looks like a shell that waits.
    pub(super) fn commands(&self) -> usize {
        let runs = |run: &&Run| !(run.in_session && run.stop_handle.main_has_ended());
        self.lock().1.values().filter(runs).count()
    }

    /// Asks all of them to end, and waits until they have.
    pub(super) async fn end_all(&self) {
        self.end_now();
        loop {
            let ended = self.1.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Asks all of them to end.
    pub(super) fn end_now(&self) {
        self.end(&self.numbers());
    }

    fn numbers(&self) -> BTreeSet<u64> {
        self.lock().1.keys().copied().collect()
    }

    /// Ends these.
    fn end(&self, numbers: &BTreeSet<u64>) {
        let all = self.lock();
        for number in numbers {
            if let Some(run) = all.1.get(number) {
                run.stop_handle.end();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Run>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    pub(super) fn one_of(all: &Arc<AllRuns>, in_session: bool) -> Self {
        let stop_handle = StopHandle::default();
        let run = Run {
            stop_handle: stop_handle.clone(),
            in_session,
        };
        let number = {
            let mut all = all.lock();
            let number = all.0;
            all.0 += 1;
            all.1.insert(number, run);
            number
        };
        Self {
            all: Arc::clone(all),
            number,
            stop_handle,
        }
    }

    pub(super) fn stop_handle(&self) -> StopHandle {
        self.stop_handle.clone()
    }
}

/// When what is due once nothing runs is judged as well.
fn once_idle(is_idle: bool) -> When {
    match is_idle {
        true => When::Idle,
        false => When::Outcome,
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.all.lock().1.remove(&self.number);
        self.all.1.notify_waiters();
    }
}

impl Watched {
    /// Looks at what there is, if changes are judged here. `view` says what else commands see.
    ///
    /// # Errors
    /// [`ViewError::NotHeld`].
    pub(super) fn start(restrictions: &Restrictions, view: &[plan::Entry]) -> Result<Option<Self>, ViewError> {
        let Some(directory) = restrictions.held_back.clone().filter(|_| restrictions.is_watched()) else {
            return Ok(None);
        };
        let toolchains = view.iter().filter_map(|entry| match entry {
            plan::Entry::Bind {
                target,
                writable: false,
                ..
            } => Some(target.clone()),
            _ => None,
        });
        let toolchains: Vec<PathBuf> = toolchains.collect();
        let mut roots = writable::directories(restrictions);
        roots.extend(restrictions.repository.clone());
        // What lies in another of them is judged there.
        let all = roots.clone();
        roots.retain(|root| !all.iter().any(|other| other != root && root.starts_with(other)));
        let mut trees = Vec::new();
        for root in roots {
            let is_workspace = root == restrictions.workspace;
            let plan = Plan {
                home: restrictions.home.clone(),
                leads: if is_workspace {
                    stage::leads(&restrictions.workspace, restrictions.home.as_deref())
                } else {
                    Vec::new()
                },
                toolchains: toolchains.clone(),
                beside: all.iter().filter(|other| **other != root).cloned().collect(),
                first_budget: FIRST_BUDGET,
                has_notifier: true,
                root: root.clone(),
            };
            let watch = Watch::start(plan).map_err(|error| ViewError::NotHeld {
                path: error.path,
                source: error.source.into(),
            })?;
            trees.push((root, watch));
        }
        Ok(Some(Self {
            workspace: restrictions.workspace.clone(),
            trees,
            store: Quarantine::new(directory),
            log: None,
            settler: None,
            is_once: restrictions.once,
            has_left: false,
            has_passed: false,
            open: 0,
            has_unnamed: false,
            is_settled: false,
            judge_thread: None,
            id: None,
            runs: None,
            again: BTreeMap::new(),
            endings: Vec::new(),
            told: Vec::new(),
            untold: 0,
            unread: 0,
            told_cut: false,
        }))
    }

    /// With what another one before it has taken back and nobody has asked for.
    pub(super) fn with_told(mut self, (told, id): (Vec<HeldBack>, Option<String>)) -> Self {
        (self.told, self.id) = (told, id);
        self
    }

    /// Begins to judge while commands run: `shared` is where this is, and so many commands run. `monitor` is the
    /// process that ends once nothing of the sandbox runs, `has_begun` whether a command was ordered with it, and `is_idle`
    /// whether nothing runs but shells that wait.
    ///
    /// # Errors
    /// If there are no more threads or descriptors.
    pub(super) fn start_judge_thread(
        &mut self,
        shared: &Arc<Mutex<Option<Self>>>,
        runs: &Arc<AllRuns>,
        (monitor, has_begun): (i32, bool),
        is_idle: impl Fn() -> bool + Send + 'static,
    ) -> Result<(), ViewError> {
        let notifiers = self.trees.iter().filter_map(|(_, watch)| watch.notifier()).collect();
        self.runs = Some(Arc::clone(runs));
        let (shared, runs) = (Arc::downgrade(shared), Arc::clone(runs));
        let tells = Weak::clone(&shared);
        let judge = move || {
            let shared = shared.upgrade()?;
            let mut watched = shared.lock().unwrap_or_else(PoisonError::into_inner);
            Some(watched.as_mut()?.judge_reported(runs.count(), &is_idle))
        };
        let not_held = |source: io::Error| ViewError::NotHeld {
            path: self.workspace.clone(),
            source,
        };
        let mut log = Log::new().map_err(|errno| not_held(errno.into()))?;
        let mut told = vec![
            Entry::Beginning(Beginning {
                host: i32::try_from(std::process::id()).unwrap_or_default(),
                monitor,
                store: self.store.directory().to_path_buf(),
            }),
            Entry::Settled(!has_begun),
        ];
        for ((_, watch), number) in self.trees.iter().zip(0..) {
            told.push(Entry::Root(number, watch.beginning()));
        }
        log.write(&told, false).map_err(|errno| not_held(errno.into()))?;
        let (settler, start) = Settler::new(&log).map_err(not_held)?;
        let first = move || {
            let started = start.start();
            if let (Err(error), Some(shared)) = (&started, tells.upgrade()) {
                let mut watched = shared.lock().unwrap_or_else(PoisonError::into_inner);
                watched
                    .iter_mut()
                    .for_each(|watched| watched.told.push(unattended(&watched.workspace, error)));
            }
            started.ok()
        };
        let judge_thread = JudgeThread::start(notifiers, first, Next::Within(LEFT), judge).map_err(not_held)?;
        self.judge_thread = Some(judge_thread);
        (self.settler, self.log) = (Some(settler), Some(log));
        (self.open, self.has_unnamed) = (usize::from(has_begun), has_begun);
        self.is_settled = !has_begun;
        self.hand_over();
        Ok(())
    }

    /// Judges the reported paths, on the judge thread.
    fn judge_reported(&mut self, running: usize, is_idle: impl Fn() -> bool) -> Next {
        // The last command ended between the event and now: later changes are the user's.
        if self.is_settled {
            return Next::Within(LEFT);
        }
        if !self.trees.iter().all(|(_, watch)| watch.has_looked()) {
            return Next::After(FIRST);
        }
        // The end of a command settles by itself, unless nobody waits for it.
        let may_be_over = running == 0 && self.has_passed && is_idle();
        self.judge(When::Running, false);
        if may_be_over {
            self.judge(When::Idle, true);
            self.has_left = false;
            // Of some the end is never told.
            self.open = 0;
            self.settled(true);
        }
        self.has_passed = running == 0;
        match running {
            _ if self.trees.iter().any(|(_, watch)| watch.notifier().is_none()) => Next::Within(UNTOLD),
            _ if self.trees.iter().any(|(_, watch)| watch.is_waiting()) => Next::Within(HALF_WRITTEN),
            // Also while commands run: a start can fail, and a process end, without a word.
            _ => Next::Within(LEFT),
        }
    }

    /// Says that a command begins.
    pub(super) fn begins(&mut self, text: &str) {
        if !std::mem::take(&mut self.has_unnamed) {
            self.open += 1;
        }
        self.has_passed = false;
        self.store.name(text);
        self.tell(&[Entry::Command(text.to_owned())]);
        self.settled(false);
    }

    /// Says whether nothing of the sandbox can change anything.
    fn settled(&mut self, is_settled: bool) {
        self.is_settled = is_settled;
        self.tell(&[Entry::Settled(is_settled)]);
        if let Some(judge_thread) = &self.judge_thread {
            judge_thread.arm(!is_settled);
        }
    }

    /// Takes what changed since the last look for the user's, if nothing of the sandbox runs or has run. Waits for the first
    /// look where something changed.
    pub(super) fn accept(&mut self, is_idle: impl FnOnce() -> bool) {
        // The end of a command that is over may not have been told yet.
        if self.is_once || self.has_left || self.open > 0 {
            return;
        }
        let mut changed = self.trees.iter_mut().map(|(_, watch)| watch).filter_map(|watch| {
            let differs = watch.may_differ();
            differs.then_some(watch)
        });
        let Some(first) = changed.next() else { return };
        if is_idle() {
            first.accept();
            changed.for_each(Watch::accept);
            self.hand_over();
        }
    }

    /// Takes these below a root for the user's, who has put them there.
    pub(super) fn accept_contents(&mut self, root: &Path, accepted: &[(PathBuf, Content)]) {
        for (path, _) in accepted {
            self.again.remove(&root.join(path));
        }
        for (_, watch) in self.trees.iter_mut().filter(|(watched, _)| watched == root) {
            watch.accept_contents(accepted);
        }
        self.hand_over();
    }

    /// Says that a command has ended, and settles. So many others run: a shell in which a command runs can look idle.
    pub(super) fn ended(&mut self, others: usize, is_idle: impl Fn() -> bool) {
        // What ends while it is looked at can have written after its file was.
        let was_busy = !self.is_once && !is_idle();
        self.has_left |= was_busy;
        self.judge(once_idle(others == 0 && !was_busy), true);
        let is_busy = !self.is_once && !is_idle();
        if was_busy && !is_busy {
            self.judge(once_idle(others == 0), true);
        }
        self.has_left = is_busy;
        self.open = self.open.saturating_sub(1);
        self.settled(self.open == 0 && !self.has_left);
    }

    /// Settles what was changed by something that was no command, or by something that runs on. So many commands are
    /// running.
    pub(super) fn settle(&mut self, running: usize) {
        let runs = running > 0 || self.has_left;
        self.judge(once_idle(!runs), runs);
    }

    /// The same, unless nothing ran since the last time: what changed is then the user's.
    pub(super) fn settle_unless_settled(&mut self, running: usize) {
        if !self.is_settled {
            self.settle(running);
        }
    }

    fn judge(&mut self, when: When, thoroughly: bool) {
        for number in 0..self.trees.len() {
            let Some((root, watch)) = self.trees.get_mut(number) else {
                break;
            };
            let kept = self.store.settle(root, |keep| watch.settle(when, thoroughly, keep));
            let is_cut = watch.is_cut() && !std::mem::replace(&mut self.told_cut, true);
            if let Some(set) = kept.set {
                self.id.get_or_insert(set);
            }
            let root = root.clone();
            let unread = watch.take_unread();
            if is_cut {
                self.told.push(too_much(&root));
            }
            self.tell_unread(&root, unread);
            for one in kept.taken {
                let id = kept.ids.get(&one.path);
                // At an outcome the command that it is of does not run any more. What stands there still was not made again.
                if when == When::Running && one.failed.is_none() {
                    self.strike(&root.join(&one.path));
                }
                let stays = one.failed.is_some();
                let held = self.word(&root, one, id);
                let is_told = |told: &&mut HeldBack| (&told.path, &told.because) == (&held.path, &held.because);
                if let Some(told) = self.told.iter_mut().find(is_told) {
                    // Of several versions the last is what a person would want.
                    if held.id.is_some() {
                        *told = held;
                    }
                    continue;
                }
                // What still stands there is told first, and always.
                match stays {
                    true => self.told.insert(0, held),
                    false if self.told.len() < TOLD => self.told.push(held),
                    false => self.untold += 1,
                }
            }
        }
        // The one command is over, and all is settled.
        if !self.is_once || when == When::Running {
            self.hand_over();
        }
    }

    /// Tells of directories that a command made or changed, and that cannot be read.
    fn tell_unread(&mut self, root: &Path, unread: BTreeSet<PathBuf>) {
        // What lies below one of them is of the same reason.
        for path in unread
            .iter()
            .filter(|path| !path.ancestors().skip(1).any(|above| unread.contains(above)))
        {
            match self.told.len() < TOLD {
                true => self.told.insert(0, not_read(&self.workspace, &root.join(path))),
                false => self.unread += 1,
            }
        }
    }

    /// Hands over what became known, to whoever goes on if this process is killed.
    fn hand_over(&mut self) {
        let Some(log) = &mut self.log else { return };
        let anew = log.is_large();
        let mut entries = Vec::new();
        if anew {
            entries.push(Entry::Command(self.store.command().to_owned()));
            entries.push(Entry::Settled(self.is_settled));
        }
        for ((_, watch), number) in self.trees.iter_mut().zip(0..) {
            if anew {
                watch.hand_over_again();
            }
            let (part, is_whole) = watch.hand_over();
            if is_whole || !part.is_empty() {
                entries.push(Entry::Tree(number, part, is_whole));
            }
        }
        if !entries.is_empty() && log.write(&entries, anew).is_err() {
            // No more memory: all of it the next time.
            self.trees.iter_mut().for_each(|(_, watch)| watch.hand_over_again());
        }
    }

    fn tell(&mut self, entries: &[Entry]) {
        if let Some(log) = &mut self.log {
            let _ = log.write(entries, false);
        }
    }

    /// The sandbox has ended: what changes from now on is the user's.
    pub(super) fn retire(&mut self) {
        if !self.is_settled {
            self.judge(When::Idle, true);
        }
        self.settler = None;
        self.judge_thread = None;
        self.trees.clear();
    }

    /// Leaves it to the process that goes on after a kill to judge once more when the sandbox has ended, whose end nobody has
    /// seen.
    pub(super) fn leave(&mut self) {
        if let Some(settler) = self.settler.take() {
            settler.leave();
        }
    }

    /// What was taken back since this was last asked, and the first set in which it is kept.
    pub(super) fn take_told(&mut self) -> (Vec<HeldBack>, Option<String>) {
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            self.told.push(HeldBack::new(
                self.workspace.clone(),
                format!("{untold} more paths were taken back"),
                "`shieling changes list` shows where they are kept",
            ));
        }
        let unread = std::mem::take(&mut self.unread);
        if unread > 0 {
            self.told.push(HeldBack::new(
                self.workspace.clone(),
                format!("{unread} more directories that a command made or changed could not be read"),
                "what is in them was not judged: look at it before a tool of yours does",
            ));
        }
        let id = self.told.iter().find_map(|told| told.id.clone());
        (std::mem::take(&mut self.told), id.or(self.id.take()))
    }

    /// Why commands were ended, for the outcome of one that was, or of the last that runs.
    pub(super) fn take_endings(&mut self, was_ended: bool) -> Vec<HeldBack> {
        match was_ended || self.open == 0 {
            true => std::mem::take(&mut self.endings),
            false => Vec::new(),
        }
    }

    /// Counts that something was taken back while commands run, and ends who makes it again and again.
    fn strike(&mut self, path: &Path) {
        let Some(runs) = &self.runs else { return };
        if self.again.len() >= STRUCK && !self.again.contains_key(path) {
            self.again.clear();
        }
        let running = runs.numbers();
        let now = Instant::now();
        let again = self.again.entry(path.to_path_buf()).or_insert_with(|| Again {
            times: 0,
            suspects: running.clone(),
            last: now,
        });
        // Whoever ran beside only some of the times is not to be ended for what others made.
        if again.suspects != running || now.duration_since(again.last) > SOON_AGAIN {
            (again.times, again.suspects) = (0, running);
        }
        again.last = now;
        again.times += 1;
        let limit = match again.suspects.len() {
            0 => return,
            1 => TIMES,
            _ => TIMES_OF_SEVERAL,
        };
        if again.times < limit {
            return;
        }
        runs.end(&again.suspects);
        let times = again.times;
        self.again.remove(path);
        let path = path.strip_prefix(&self.workspace).unwrap_or(path).to_path_buf();
        self.endings.push(HeldBack::new(
            &path,
            format!(
                "`{}` was made {times} times, and taken back each time: the command was ended",
                path.display()
            ),
            "do without it, or have a person accept it",
        ));
    }

    fn word(&self, root: &Path, taken: Taken, id: Option<&String>) -> HeldBack {
        let path = root.join(&taken.path);
        let path = path
            .strip_prefix(&self.workspace)
            .map(Path::to_path_buf)
            .unwrap_or(path);
        let held = taken.held;
        let stays = taken.failed.is_some();
        let instead = match (taken.failed, id) {
            (Some(why), _) => format!(
                "it still stands there: {why}; look at `{}` before a tool of yours reads it, and remove it",
                path.display()
            ),
            (None, Some(id)) => format!(
                "{}; it was taken back: {}",
                held.instead,
                stage::how_to_accept(id, &taken.path)
            ),
            (None, None) => format!("{}; it was taken back and could not be kept", held.instead),
        };
        let id = id.filter(|_| !stays).cloned();
        HeldBack::new(path, held.because, instead).with_id(id)
    }
}

fn unattended(workspace: &Path, error: &io::Error) -> HeldBack {
    HeldBack::new(
        workspace.to_path_buf(),
        format!("the process that judges what commands left if Shieling is killed could not be started: {error}"),
        "if it is killed, look at what is there before a tool of yours does",
    )
}

fn not_read(workspace: &Path, path: &Path) -> HeldBack {
    HeldBack::new(
        path.strip_prefix(workspace).unwrap_or(path).to_path_buf(),
        "a command made or changed this directory, and it cannot be read, so that what is in it was not judged",
        "look at what is in it before a tool of yours does, and remove what you do not want",
    )
}

fn too_much(root: &Path) -> HeldBack {
    HeldBack::new(
        root.to_path_buf(),
        "it has more directories than are looked at, so that not all that commands change in it is judged",
        "choose a smaller workspace, or use `--changes commit`",
    )
}
