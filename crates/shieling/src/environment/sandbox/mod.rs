//! The sandbox: a view of this host that is built from nothing, and a program in it that starts
//! commands. What is not in the view does not exist, whatever a command's text says.
//!
//! ```text
//! Restrictions ─► view (what stands where) ─► Plan ─► shieling-jail ─► Ready: what holds
//!                 hidden, protected: before each command, what appeared since
//! ```
//!
//! [`Restrictions`] say what is asked for; nothing here sees a policy. If a layer is missing on this
//! host, nothing starts: [`SandboxError`] says which, and why.

mod restrictions;
mod prepare;
mod view;
mod view_error;
mod steps;
mod place;
mod etc;
mod git_settings;
mod toolchain;
mod caches;
mod writable;
mod kept;
mod places;
mod allowed;
mod masks;
mod protect;
mod homes;
mod beneath;
mod guard;
mod repository;
mod refused;
mod full;
mod hidden;
mod recover;
mod layer_bound;
mod fit;
mod error;
mod foreign;
mod held_port;
mod no_network;
mod outside;
mod accepting;
mod staging;
mod stage;
mod unsuitable;
mod write_back;
mod watched;
mod struck;
mod tracked;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use shieling_jail::message::{COVERS, Hide, Update};
use shieling_jail::plan::{self, Isolation};
use tokio::task::JoinSet;

use super::files::host::{Confined, HostFiles, View};
use super::{
    Ability, AcceptError, AtEnd, Capabilities, EnforceError, Enforced, Enforcement, Environment, Files, HeldBackReview,
    Later, Limit, LimitCounts, Network, Review, Shell, WritablePaths,
};
use crate::approval::Approved;
use crate::enforcement::{ONE_EACH, UNSTAGED};
use crate::outcome::{Changes, Confinement, Conflict, HeldBack, Hint, LimitHit, Outcome};
use crate::process::{self, Counts, Jail, JailError, Next, Ordered, Process, Sent, SessionShell, SpawnError, Streams};
use crate::request::Command;

use outside::Outside;

pub use error::SandboxError;
use guard::Guard;
pub use hidden::HiddenError;
use hidden::HiddenFiles;
use homes::Homes;
pub use place::leads_through;
use prepare::{Prepared, prepare};
pub(super) use protect::protected;
pub use repository::linked_repository;
pub use restrictions::{Restrictions, Sizes};
use stage::Stage;
pub use stage::StageError;
pub use staging::{ChangeRules, Staging};
use tracked::Tracked;
pub use unsuitable::{Unsuitable, check_copied};
pub use view_error::ViewError;
use watched::{AllRuns, Runs, Watched};
pub use writable::repository_above;
pub(crate) use write_back::HiddenPaths;
pub use write_back::{CopiedWorkspace, NotWrittenBack, WriteBack, WriteBackError};

/// How often what appeared is looked for before a command starts, until nothing more does.
const ROUNDS: usize = 100;

/// How long the end of a jail that nobody has closed is waited for, so that the last look comes after it.
const ENDING: Duration = Duration::from_secs(2);

/// How long commands may take to end when the sandbox closes.
const CLOSING: Duration = Duration::from_millis(500);

/// How many of the processes that there may be are for one shell that stays.
const SHARE: u64 = 4;

/// What is lost without namespaces, in the words of [`Confinement`].
const REDUCED: [&str; 11] = [
    "boundary",
    "user",
    "mount",
    "pid",
    "network",
    "ipc",
    "uts",
    "cgroup",
    "private /tmp",
    "allowed programs",
    "protected paths",
];

/// What the jail says is missing where caches have no private layer.
const UNLAYERED: &str = "private caches";

/// Commands run in a jail of their own, which all of them share: its `/tmp` and its home live as long
/// as it does.
#[derive(Debug)]
pub struct Sandbox {
    /// As it was made.
    made: Restrictions,
    /// With what a policy asks for, once it has been bound to one, or has started.
    bound: OnceLock<Restrictions>,
    /// What [`fit`] has found, for which it looks at the toolchains: once, and not before each command.
    fitted: OnceLock<Vec<(&'static str, String)>>,
    shell: Shell,
    running: tokio::sync::Mutex<Option<Arc<Running>>>,
    /// What [`Self::start_ahead`] has ordered.
    ahead: Mutex<Option<Ahead>>,
    /// What held when it was last started.
    holds: Mutex<Confinement>,
    /// What the limits of the jail that was started last do.
    counts: Mutex<Option<Arc<Counts>>>,
    /// Looks after the protected names of the jail that was started last.
    guard: Mutex<Guarding>,
    /// Where that jail's changes to the workspace go, if not into it.
    stage: Mutex<Option<Arc<Stage>>>,
    /// Judges what that jail's commands change in the workspace, if they change it at once.
    watching: Mutex<Watching>,
    /// How many commands run in it.
    runs: Arc<AllRuns>,
    /// The names that were held for hidden files in that jail, to explain what could not be renamed.
    held: Held,
    /// The hidden files that git tracks, as that jail's commands have found them.
    tracked: TrackedFiles,
    /// The network, where it is opened by name.
    outside: Outside,
}

/// The variables by which toolchains and caches say that they stand elsewhere than usual.
pub fn toolchain_variables() -> impl Iterator<Item = &'static str> {
    toolchain::variables().chain(caches::variables())
}

/// Names in the workspace, relative to it.
type Held = Arc<Mutex<BTreeSet<PathBuf>>>;

/// What git tracks of hidden files, looked at before and after each command.
type TrackedFiles = Arc<Mutex<Option<Tracked>>>;

/// A guard that a jail and the ends of its commands share; none where nothing is protected.
type Guarding = Arc<Mutex<Option<Guard>>>;

/// What a jail and the ends of its commands share to judge what those changed; none where nothing is judged so.
type Watching = Arc<Mutex<Option<Watched>>>;

/// A jail, and what has to be looked after in it.
#[derive(Debug)]
struct Running {
    jail: Arc<Jail>,
    /// What is seen in it. Holds nothing of the jail but its root, so that the jail can end.
    files: Arc<HostFiles>,
    hidden: Mutex<Vec<HiddenFiles>>,
    guard: Guarding,
    watching: Watching,
    runs: Arc<AllRuns>,
    held: Held,
    tracked: TrackedFiles,
    workspace: PathBuf,
    /// Where changes to the workspace go, if not into it.
    stage: Option<Arc<Stage>>,
    /// Which directories lead to hidden names.
    hidden_notifier: Option<Arc<recover::Notifier>>,
    /// What covers these again if they are replaced, and what measures the staged changes.
    tasks: Mutex<JoinSet<()>>,
    /// Whether looking takes long enough to need a thread of its own.
    slow: bool,
    /// What has appeared, and of which it is not known that the jail has been told.
    pending: Mutex<Update>,
}

impl Sandbox {
    /// A sandbox that starts with its first command, or with [`Self::start`].
    pub fn new(restrictions: Restrictions, shell: Shell) -> Self {
        Self {
            made: restrictions,
            bound: OnceLock::new(),
            fitted: OnceLock::new(),
            shell,
            running: tokio::sync::Mutex::new(None),
            ahead: Mutex::default(),
            holds: Mutex::default(),
            counts: Mutex::default(),
            guard: Mutex::default(),
            stage: Mutex::default(),
            watching: Mutex::default(),
            runs: Arc::default(),
            held: Held::default(),
            tracked: TrackedFiles::default(),
            outside: Outside::default(),
        }
    }

    /// Starts it, if it does not run, and says what holds in it. If somebody has ended it, it is made
    /// anew, with an empty `/tmp` and home.
    ///
    /// # Errors
    /// [`SandboxError`]; nothing is left running.
    /// # Cancel safety
    /// Dropping the future ends what was started.
    pub async fn start(&self) -> Result<Confinement, SandboxError> {
        self.jail().await?;
        Ok(self.confinement())
    }

    /// The limits that hold, read back; those that were asked for before it is started.
    pub async fn limits(&self) -> plan::Limits {
        match &*self.running.lock().await {
            Some(running) => running.jail.ready().limits,
            None => self.restrictions().limits,
        }
    }

    /// Begins to start it, for a caller that has other things to do before the first command. Needs no runtime, and
    /// nothing is waited for. If it fails, whoever needs the sandbox is told why; if something is to be hidden, which
    /// takes longer to find, nothing happens.
    ///
    /// It starts as it is bound now: bind it to its policy before.
    pub fn start_ahead(&self) {
        let restrictions = self.bound.get_or_init(|| self.made.clone());
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        // A gateway needs a runtime.
        if ahead.is_none() && restrictions.hidden.is_none() && self.outside.can_open() {
            let outlet = self.outside.current();
            let prepared = outlet.and_then(|outlet| prepare(restrictions, outlet.as_deref()));
            *ahead = prepared.and_then(|prepared| Ahead::order(prepared, restrictions)).ok();
        }
    }

    fn take_ahead(&self) -> Option<Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn jail(&self) -> Result<Arc<Running>, SandboxError> {
        Ok(self.jail_for(None, "").await?.0)
    }

    /// As [`Self::jail`]. If the jail has to be made, this command is ordered with it, unless something is to be told
    /// to the jail before.
    async fn jail_for(&self, first: Option<First>, text: &str) -> Result<(Arc<Running>, Option<First>), SandboxError> {
        let mut running = self.running.lock().await;
        if let Some(running) = running.as_ref().filter(|running| running.jail.is_alive()) {
            return Ok((Arc::clone(running), first));
        }
        // What the one before has left must not be taken for the user's.
        if let Some(before) = running.take() {
            before.end(before.jail.close().await);
        }
        let restrictions = self.bound.get_or_init(|| self.made.clone());
        // Without hidden files a few are looked at; with them a whole tree is, on a thread of its own.
        let ahead = if let Some(ahead) = self.take_ahead() {
            Ok(ahead)
        } else if restrictions.hidden.is_some() {
            let restrictions = restrictions.clone();
            let outlet = self.outside.current()?;
            let ahead = tokio::task::spawn_blocking(move || {
                Ahead::order(prepare(&restrictions, outlet.as_deref())?, &restrictions)
            });
            let broken = || Err(SandboxError::Unsupported("preparing the sandbox was broken off"));
            ahead.await.unwrap_or_else(|_| broken())
        } else {
            let prepared = prepare(restrictions, self.outside.current()?.as_deref());
            prepared.and_then(|prepared| Ahead::order(prepared, restrictions))
        };
        let Ahead {
            ordered,
            isolation,
            hidden,
            mut guard,
            watched,
            stage,
        } = ahead?;
        if let Some(stage) = &stage {
            stage.name(text);
        }
        // Hidden by their paths so far; whether that met them is asked before the first command.
        let mut pending = Update {
            hide: hidden.iter().flat_map(HiddenFiles::told).collect(),
            ..Update::default()
        };
        if let Some(guard) = &mut guard {
            // What has appeared since it was prepared.
            guard.sweep();
            (pending.protect, pending.pin) = guard.refresh();
        }
        let first = match first {
            Some(first) if isolation == Isolation::Full && hidden.is_empty() && pending == Update::default() => {
                Some(first.order(&ordered))
            }
            first => first,
        };
        let has_begun = matches!(first, Some(First::Sent(..)));
        let jail = Arc::new(ordered.ready().await?);
        self.outside.attach(&jail)?;
        let slow = !hidden.is_empty() || stage.is_some() || guard.as_ref().is_some_and(Guard::is_large);
        let guarding = {
            let mut latest = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
            let told = lock(&latest).as_mut().map(Guard::take_held_back).unwrap_or_default();
            *latest = Arc::new(Mutex::new(guard.map(|guard| guard.with_held_back(told))));
            Arc::clone(&latest)
        };
        let watching = {
            let mut latest = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
            let told = watch(&latest).as_mut().map(Watched::take_told).unwrap_or_default();
            *latest = Arc::new(Mutex::new(watched.map(|watched| watched.with_told(told))));
            let its = Arc::downgrade(&jail);
            if let Some(watched) = &mut *watch(&latest) {
                let is_idle = move || its.upgrade().is_none_or(|jail| jail.is_idle());
                watched.start_judge_thread(&latest, &self.runs, (jail.monitor(), has_begun), is_idle)?;
            }
            Arc::clone(&latest)
        };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.tracked.lock().unwrap_or_else(PoisonError::into_inner) = Tracked::of(restrictions);
        *self.holds.lock().unwrap_or_else(PoisonError::into_inner) = Confinement {
            enforced: jail.ready().enforced.clone(),
            missing: missing(isolation, &jail),
        };
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(jail.counts()));
        let view = files_view(restrictions, &jail).map_err(|source| JailError::Program {
            what: "opening its files",
            source,
        })?;
        // One command sees nothing of what changes later, and may have ended with its jail by now.
        if let (Some(stage), Some(root), false) = (&stage, jail.root(), restrictions.once) {
            stage.started(root.as_fd())?;
        }
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage.clone();
        // In a staged view the cover lies over the layer's own file, whatever is replaced below.
        let hidden_notifier = match stage {
            None => recover::notifier(&hidden),
            Some(_) => None,
        };
        let started = Arc::new(Running {
            jail,
            hidden_notifier,
            tasks: Mutex::default(),
            stage,
            files: Arc::new(HostFiles::new(view)),
            hidden: Mutex::new(hidden),
            guard: guarding,
            watching,
            runs: Arc::clone(&self.runs),
            held: Arc::clone(&self.held),
            tracked: Arc::clone(&self.tracked),
            workspace: restrictions.workspace.clone(),
            slow,
            pending: Mutex::new(pending),
        });
        {
            let mut tasks = started.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(notifier) = &started.hidden_notifier {
                let (its, other) = (Arc::downgrade(&started), Arc::downgrade(&started));
                let replaced = move |names: &BTreeSet<PathBuf>, looks: bool| {
                    let running = its.upgrade()?;
                    let (update, is_above) = running.replaced(names, looks);
                    Some((update, is_above, Arc::clone(&running.jail)))
                };
                let done = move |update: &Update, missed: &[PathBuf]| {
                    if let Some(running) = other.upgrade() {
                        running.done(update, missed);
                    }
                };
                tasks.spawn(recover::keep_covered(
                    Arc::clone(notifier),
                    Arc::new(replaced),
                    Arc::new(done),
                ));
            }
            if let Some(stage) = &started.stage {
                let (stage, runs) = (Arc::clone(stage), Arc::clone(&started.runs));
                tasks.spawn(layer_bound::keep(stage, runs, Arc::downgrade(&started.jail)));
            }
        }
        *running = Some(Arc::clone(&started));
        Ok((started, first))
    }
}

/// Does what may take a while, where other tasks of the runtime can go on meanwhile.
fn apart<T>(act: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(act),
        Ok(_) | Err(_) => act(),
    }
}

fn not_committed(error: &StageError) -> String {
    let told = "the changes to the workspace were not committed";
    match error {
        StageError::Changes(error) => format!("{told}: {error}"),
        error => format!("{told}: {error}"),
    }
}

fn environment(error: SandboxError) -> SpawnError {
    SpawnError::Environment(Box::new(error))
}

/// A jail that was ordered, and what is to be looked after in it.
#[derive(Debug)]
struct Ahead {
    ordered: Ordered,
    isolation: Isolation,
    hidden: Vec<HiddenFiles>,
    guard: Option<Guard>,
    watched: Option<Watched>,
    stage: Option<Arc<Stage>>,
}

impl Ahead {
    fn order(prepared: Prepared, restrictions: &Restrictions) -> Result<Self, SandboxError> {
        let ordered = Jail::order(&prepared.plan)?;
        Ok(Self {
            ordered,
            isolation: prepared.plan.isolation,
            hidden: prepared.hidden,
            guard: prepared.guard,
            // While the jail is made: no command has been ordered yet.
            watched: Watched::start(restrictions, &prepared.plan.view)?,
            stage: prepared.stage,
        })
    }

    /// Ends it, and waits until all of it is gone.
    async fn close(self) {
        let over = match self.ordered.ready().await {
            Ok(jail) => jail.close().await,
            Err(_) => true,
        };
        if let Some(mut guard) = self.guard.filter(|_| over) {
            guard.retire();
        }
        if let Some(stage) = self.stage {
            stage.end(over);
        }
    }
}

/// A command that needs a jail.
enum First {
    /// It is to be ordered.
    Waits(process::Plan, Streams, Next),
    /// It was ordered with the jail, or could not be.
    Sent(process::Plan, Result<Sent, SpawnError>),
}

impl First {
    fn order(self, jail: &Ordered) -> Self {
        match self {
            Self::Waits(plan, streams, next) => {
                let sent = jail.send(next, &plan, streams);
                Self::Sent(plan, sent)
            }
            sent @ Self::Sent(..) => sent,
        }
    }
}

/// What of files is reached: what the jail shows, or, where files keep their places, the workspace.
fn files_view(restrictions: &Restrictions, jail: &Jail) -> io::Result<View> {
    if let Some(root) = jail.root() {
        // What may be changed is the mounts' affair.
        return Ok(View::from_root(root.try_clone()?).powerless().with_covers(&COVERS)?);
    }
    let view = View::of_this_host(Confined {
        directory: restrictions.workspace.clone(),
        called: "the workspace",
    })?;
    // Commands have no capability, except where nothing at all confines them.
    let view = match restrictions.isolation {
        Isolation::Full | Isolation::Landlock => view.powerless(),
        Isolation::None => view,
    };
    Ok(if restrictions.readonly { view.readonly() } else { view })
}

fn missing(isolation: Isolation, jail: &Jail) -> Vec<String> {
    let reduced: &[&str] = match isolation {
        Isolation::Full => &[],
        Isolation::None | Isolation::Landlock => &REDUCED,
    };
    let reduced = reduced.iter().map(|&name| name.to_owned());
    reduced.chain(jail.ready().missing.iter().cloned()).collect()
}

fn lock(guard: &Guarding) -> MutexGuard<'_, Option<Guard>> {
    guard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(watching: &Watching) -> MutexGuard<'_, Option<Watched>> {
    watching.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves aside what stands at protected names that were not there.
fn sweep(guard: &Guarding) {
    if let Some(guard) = &mut *lock(guard) {
        guard.sweep();
    }
}

impl Running {
    /// Has the staged view of the workspace follow what the user changed.
    fn refresh(&self) -> Result<(), SandboxError> {
        if let Some(stage) = &self.stage
            && stage.refresh()?
        {
            self.pending.lock().unwrap_or_else(PoisonError::into_inner).refresh = true;
        }
        Ok(())
    }

    /// What appeared since the last command and is to be hidden, and to be protected.
    ///
    /// It is told until the jail has said that it is done: a caller may stop to wait in between.
    fn appeared(&self) -> Result<Update, HiddenError> {
        if let Some(tracked) = &mut *self.tracked.lock().unwrap_or_else(PoisonError::into_inner) {
            tracked.look();
        }
        {
            let mut all = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut hide, mut hold) = (Vec::new(), Vec::new());
            for hidden in &mut *all {
                let found = hidden.refresh()?;
                hide.extend(hidden.described(found));
                hold.extend(hidden.hold()?);
            }
            self.found(&all, hide, hold);
        }
        let (protect, pin) = match &mut *lock(&self.guard) {
            Some(guard) => {
                // What a job has made since the last command ended.
                guard.sweep();
                guard.refresh()
            }
            None => (Vec::new(), Vec::new()),
        };
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.protect.extend(protect);
        pending.pin.extend(pin);
        Ok(pending.clone())
    }

    /// What is hidden and was replaced under these names, or anywhere if `looks`, for the jail to be told at once; and
    /// whether something above it was, so that all has to be looked at. A command that begins meanwhile tells it as well.
    fn replaced(&self, names: &BTreeSet<PathBuf>, looks: bool) -> (Update, bool) {
        let mut all = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notifier) = self.hidden_notifier.as_ref().filter(|_| looks) {
            // Before it is looked: in a directory that has just been made, files may yet be.
            notifier.follow(&all);
        }
        let mut is_above = false;
        let mut update = Update::default();
        for hidden in &mut *all {
            let leading = hidden.leading();
            let mut found = Vec::new();
            for name in names {
                match hidden.changed(name, &leading) {
                    hidden::Change::None => {}
                    hidden::Change::Hidden(path) => found.push(path),
                    hidden::Change::Above => is_above |= !looks,
                }
            }
            if looks {
                if self
                    .hidden_notifier
                    .as_ref()
                    .is_some_and(|notifier| notifier.has_gaps())
                {
                    // Nobody tells of a file that lost its name for a moment, and its cover with it.
                    hidden.tell_again_below(Path::new(""));
                }
                // What cannot be looked at refuses the next command.
                found.extend(hidden.refresh().unwrap_or_default());
            }
            update.hide.extend(hidden.described(found));
            update.hold.extend(hidden.hold().unwrap_or_default());
        }
        self.found(&all, update.hide.clone(), update.hold.clone());
        (update, is_above)
    }

    /// Remembers what is to be hidden and held until the jail has said that it is done, and follows it.
    fn found(&self, all: &[HiddenFiles], hide: Vec<Hide>, hold: Vec<Hide>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(
            hold.iter()
                .filter_map(|held| Some(held.target.strip_prefix(&self.workspace).ok()?.to_path_buf())),
        );
        if let Some(notifier) = self.hidden_notifier.as_ref().filter(|_| !hide.is_empty()) {
            notifier.follow(all);
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.hide.extend(hide);
        pending.hold.extend(hold);
    }
}

impl Running {
    /// Looks for the last time if nothing runs any more that could make something after it. Otherwise another
    /// look is taken when this is dropped.
    fn end(&self, is_over: bool) {
        if let Some(watched) = &mut *watch(&self.watching) {
            match is_over {
                true => watched.retire(),
                false => watched.settle(self.runs.count()),
            }
        }
        if let Some(guard) = &mut *lock(&self.guard) {
            match is_over {
                true => guard.retire(),
                false => guard.sweep(),
            }
        }
        if let Some(stage) = &self.stage {
            stage.end(is_over);
        }
    }

    /// With the directory for temporary files, where it is no sandbox's own `/tmp`.
    fn with_temporary(&self, plan: process::Plan) -> process::Plan {
        match self.jail.ready().temporary.as_deref().and_then(Path::to_str) {
            Some(temporary) => plan.with_variable_unless_set("TMPDIR", temporary),
            None => plan,
        }
    }

    /// What is done once a command is over, which runs until then.
    fn sweeper(&self, runs: Runs) -> AtEnd {
        let guard = Arc::clone(&self.guard);
        let stop_handle = runs.stop_handle();
        let at_end = AtEnd::new(move || {
            sweep(&guard);
            drop(runs);
        });
        at_end.with_stop_handle(stop_handle)
    }

    /// Takes what changed since the last look for the user's, if nothing runs: a command that has not begun does not count,
    /// nor one whose end was told and that has left nothing.
    fn accept(&self) {
        apart(|| {
            if let Some(watched) = &mut *watch(&self.watching) {
                watched.accept(|| self.jail.is_idle());
            }
        });
    }

    /// Says that a command begins.
    fn begins(&self, text: &str) {
        if let Some(stage) = &self.stage {
            stage.command(text);
        }
        if let Some(watched) = &mut *watch(&self.watching) {
            watched.begins(text);
        }
    }

    /// An update has been made, but for what had moved, which is looked for again.
    fn done(&self, update: &Update, missed: &[PathBuf]) {
        for hidden in &mut *self.hidden.lock().unwrap_or_else(PoisonError::into_inner) {
            hidden.forget(missed);
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        // Thousands, each.
        let [hidden, held]: [HashSet<&Hide>; 2] = [&update.hide, &update.hold].map(|done| done.iter().collect());
        pending.hide.retain(|hide| !hidden.contains(hide));
        pending.hold.retain(|hold| !held.contains(hold));
        pending.protect.retain(|path| !update.protect.contains(path));
        pending.pin.retain(|path| !update.pin.contains(path));
        pending.refresh &= !update.refresh;
    }
}

impl Drop for Running {
    /// Ends the jail, where nobody has closed it, before the last look at what it has left. A command's own
    /// look after its end finds nothing more to do.
    fn drop(&mut self) {
        // A stage that has ended has the jail's end behind it.
        if self.stage.as_ref().is_some_and(|stage| stage.has_ended()) {
            return self.end(true);
        }
        let is_over = self.jail.close_blocking(ENDING);
        self.end(is_over);
        if !is_over && let Some(watched) = &mut *watch(&self.watching) {
            watched.leave();
        }
    }
}

impl Environment for Sandbox {
    fn name(&self) -> &str {
        "sandbox"
    }

    fn capabilities(&self) -> Capabilities {
        let full = self.restrictions().isolation == Isolation::Full;
        let mut networks = BTreeSet::from([Network::None, Network::Host]);
        if full {
            networks.insert(Network::Loopback);
        }
        Capabilities {
            networks,
            limits: BTreeSet::from([Limit::Memory, Limit::Pids, Limit::Cpus, Limit::FileSize]),
            abilities: Ability::ALL
                .into_iter()
                .filter(|ability| *ability != Ability::Sessions || self.shell.is_bash())
                .collect(),
        }
    }

    fn enforce(&self, asked: &Enforcement) -> Result<Enforced, EnforceError> {
        if !self.restrictions().enforcement().covers(asked) {
            let wanted = self.made.clone().enforcing(asked)?;
            let bound = self.bound.get_or_init(|| wanted);
            if !bound.enforcement().covers(asked) {
                return Err(EnforceError::Bound {
                    environment: self.name().to_owned(),
                    why: if bound.enforcement().is_empty() {
                        "has started without what the policy asks for"
                    } else {
                        "serves another policy already"
                    },
                    cure: ONE_EACH,
                });
            }
        }
        let holds = self.restrictions();
        let full = holds.isolation == Isolation::Full;
        Ok(Enforced {
            readonly: holds.readonly,
            hidden: full,
            programs: full && holds.programs.is_some(),
        })
    }

    fn hold_back(&self, rules: Vec<shieling_changes::Rule>) -> Result<(), EnforceError> {
        match &self.restrictions().staging {
            _ if rules.is_empty() || self.restrictions().readonly => Ok(()),
            Some(staging) => staging.rules.bind(rules).map_err(|staging::Bound| EnforceError::Bound {
                environment: self.name().to_owned(),
                why: "holds back what another policy says",
                cure: ONE_EACH,
            }),
            None => Err(EnforceError::Unsupported {
                environment: self.name().to_owned(),
                why: UNSTAGED,
            }),
        }
    }

    #[cfg(feature = "gateway")]
    fn open_network(&self, access: crate::network::NetworkAccess) -> Result<(), EnforceError> {
        let holds = self.restrictions();
        self.outside.open(access, holds.isolation, holds.network)
    }

    fn shares_network(&self) -> bool {
        !self.confinement().enforced.iter().any(|layer| layer == "network")
    }

    fn confinement(&self) -> Confinement {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move {
            let next = if self.restrictions().once {
                Next::Nothing
            } else {
                Next::Others
            };
            if self.outside.can_open() {
                // Its placeholders are in the variables of the command.
                self.outside.current().map_err(environment)?;
            }
            let runs = Runs::one_of(&self.runs, false);
            let terminal = matches!(streams, Streams::Terminal(_));
            let first = First::Waits(self.plan(command.request()), streams, next);
            let text = command.request().text();
            let (running, first) = self.ready_for(first, text).await?;
            running.begins(text);
            let process = match first {
                First::Sent(plan, sent) => running.jail.join(&plan, sent?).await,
                First::Waits(plan, streams, next) => {
                    let plan = running.with_temporary(plan);
                    running.jail.spawn_before(next, &plan, streams).await
                }
            };
            let process = self.outside.redacted(process?, terminal)?;
            Ok(process.with_end(running.sweeper(runs)))
        })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        Box::pin(async move {
            self.shell.can_stay()?;
            let running = self.ready().await?;
            let shell = running
                .jail
                .spawn_shell(running.with_temporary(self.plan(first.request())))
                .await?;
            Ok(self.outside.redacted_shell(Box::new(shell)))
        })
    }

    fn before<'a>(&'a self, next: &'a Approved<Command>) -> Later<'a, Result<Option<AtEnd>, SpawnError>> {
        Box::pin(async move {
            let runs = Runs::one_of(&self.runs, true);
            let running = self.ready().await?;
            running.begins(next.request().text());
            Ok(Some(running.sweeper(runs)))
        })
    }

    fn terminals(&self) -> Later<'_, Result<Option<OwnedFd>, SpawnError>> {
        Box::pin(async move {
            let running = self.ready().await?;
            let Some(root) = running.jail.root() else {
                return Ok(None);
            };
            // The name is ours, in a directory that no command can write to.
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let opened = rustix::fs::openat2(root, c"dev/pts/ptmx", flags, Mode::empty(), how);
            opened.map(Some).map_err(|errno| SpawnError::Supervisor {
                what: "opening the sandbox's own terminals",
                source: errno.into(),
            })
        })
    }

    fn shells(&self) -> usize {
        // Each takes two processes, of which it leaves as many to what runs.
        let pids = self.restrictions().limits.pids.unwrap_or(u64::MAX);
        usize::try_from(pids / SHARE).unwrap_or(usize::MAX).max(1)
    }

    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        Box::pin(async move {
            let running = self.ready().await.ok()?;
            self.shell.syntax_check(&running.jail, command).await
        })
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        Box::pin(async move {
            let running = self.ready().await?;
            Ok(Arc::clone(&running.files) as Arc<dyn Files>)
        })
    }

    fn unprotected_paths(&self, paths: &[&Path], workspace: &Path) -> Vec<usize> {
        // With a view of its own it is protected there.
        if self.restrictions().isolation == Isolation::Full || self.restrictions().open_protected {
            return Vec::new();
        }
        protected(paths, workspace)
    }

    fn held_back(&self) -> Vec<HeldBack> {
        let mut held_back = self.guarded_names();
        apart(|| {
            if let Some(watched) = &mut *watch(&self.watching()) {
                watched.settle_unless_settled(self.runs.count());
                held_back.extend(watched.take_told().0);
            }
        });
        held_back
    }

    fn hints(&self, outcome: &Outcome) -> Vec<Hint> {
        let guard = self.guarding();
        let mut hints = lock(&guard)
            .as_mut()
            .map_or_else(Vec::new, |guard| guard.explain(outcome));
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for hint in hidden::explain(&outcome.stderr, &held, self.restrictions().hidden.as_deref()) {
            if hints.iter().all(|other| other.path != hint.path) {
                hints.push(hint);
            }
        }
        drop(held);
        hints.extend(refused::explain(&outcome.stderr));
        hints.extend(full::explain(self.restrictions(), outcome));
        let opened = self.outside.is_open();
        hints.extend(no_network::hint(self.restrictions().network, opened, outcome));
        hints.extend(held_port::hint(&self.outside.held_ports(), outcome));
        places::explain(self.restrictions(), outcome, &mut hints);
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        hints.extend(tracked.as_mut().and_then(Tracked::explain));
        hints
    }

    fn tell(&self, outcome: &mut Outcome, before: &LimitCounts) {
        outcome.add_held_back(self.guarded_names());
        apart(|| {
            let watching = self.watching();
            let Some(watched) = &mut *watch(&watching) else {
                return;
            };
            watched.ended(self.runs.commands(), || self.is_idle());
            let (mut held_back, id) = watched.take_told();
            held_back.extend(watched.take_endings(outcome.signal.is_some()));
            outcome.add_held_back(held_back);
            if let Some(changes) = &mut outcome.changes {
                changes.id = id;
            }
        });
        self.outside.tell(outcome, before);
        outcome.hints = self.hints(outcome);
        outcome.limits_hit = self.limits_hit(outcome, before);
        let Some(stage) = self.stage() else { return };
        let (changes, error) = apart(|| {
            // The jail ends with its one command. What nobody can write to any more is moved and not copied.
            let running = self.running.try_lock().ok().and_then(|running| running.clone());
            if self.restrictions().once
                && running.is_some_and(|running| running.jail.close_blocking(ENDING))
                && let Err(error) = stage.close()
            {
                return stage.not_closed(error);
            }
            stage.settle(outcome)
        });
        if let Some(why) = stage.take_exceeded(outcome.signal.is_some()) {
            outcome.error.get_or_insert(format!("the command was ended: {why}"));
        }
        outcome.changes = changes;
        if let Some(error) = error {
            outcome.error.get_or_insert_with(|| not_committed(&error));
        }
    }

    fn settle(&self) -> Option<Changes> {
        if let Some(watched) = &mut *watch(&self.watching()) {
            watched.settle(self.runs.count());
            let (held_back, id) = watched.take_told();
            return (!held_back.is_empty()).then(|| Changes {
                id,
                held_back,
                ..Changes::direct()
            });
        }
        let (mut changes, error) = self.stage()?.settle_files();
        if let (Some(changes), Some(error)) = (&mut changes, error) {
            changes.conflicts.push(Conflict {
                path: PathBuf::from("."),
                because: not_committed(&error),
                instead: "look with `shieling changes list`".to_owned(),
            });
        }
        changes
    }

    fn review(&self) -> Option<Result<Review, String>> {
        let reviewed = apart(|| self.stage()?.review().transpose());
        reviewed.map(|review| review.map_err(|error| not_committed(&error)))
    }

    fn decide(&self, yes: bool) -> Option<Result<Changes, String>> {
        let decided = apart(|| self.stage()?.decide(yes).transpose());
        decided.map(|changes| changes.map_err(|error| not_committed(&error)))
    }

    fn review_held_back(&self, held: &HeldBack) -> Option<Result<HeldBackReview, String>> {
        let reviewed = apart(|| match self.stage() {
            Some(stage) => stage.review_held_back(held),
            None => accepting::review(self.restrictions(), held),
        });
        reviewed
            .transpose()
            .map(|review| review.map_err(|error| error.to_string()))
    }

    fn accept_held_back(&self, reviewed: &HeldBackReview) -> Result<Changes, AcceptError> {
        apart(|| match self.stage() {
            Some(stage) => stage.accept_held_back(reviewed),
            None => {
                // Nothing is judged between the change and the word that it is the user's.
                let watching = self.watching();
                let mut watched = watch(&watching);
                accepting::accept(self.restrictions(), reviewed, |root, accepted| {
                    if let Some(watched) = watched.as_mut() {
                        watched.accept_contents(root, accepted);
                    }
                })
            }
        })
    }

    fn limit_counts(&self) -> LimitCounts {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        LimitCounts {
            struck: counts.as_ref().map(|counts| counts.now()).unwrap_or_default(),
            of: counts,
            #[cfg(feature = "gateway")]
            network: self.outside.look(),
            ..LimitCounts::default()
        }
    }

    fn limits_hit(&self, outcome: &Outcome, before: &LimitCounts) -> Vec<LimitHit> {
        struck::hits(outcome, before, &self.limit_counts())
    }

    fn kept_below(&self, path: &Path) -> Vec<PathBuf> {
        self.guarded(|guard| guard.kept_below(path)).unwrap_or_default()
    }

    fn kept_settings(&self, directory: &Path) -> Option<PathBuf> {
        self.guarded(|guard| guard.kept_settings(directory)).flatten()
    }

    fn added_variables(&self) -> Vec<(&'static str, String)> {
        let reaches = |name: &str| self.outside.reaches(name);
        let fitted = || fit::variables(self.restrictions(), rustix::process::geteuid().is_root(), reaches);
        self.fitted.get_or_init(fitted).clone()
    }

    fn places(&self) -> Option<WritablePaths> {
        let unlayered = self.confinement().missing.iter().any(|missing| missing == UNLAYERED);
        Some(places::of(self.restrictions(), unlayered))
    }

    fn holds_back(&self, paths: &[&Path]) -> Vec<usize> {
        let guard = self.guarding();
        lock(&guard)
            .as_ref()
            .map_or_else(Vec::new, |guard| guard.holds_back(paths))
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {
            if let Some(stage) = self.stage() {
                stage.hurry();
            }
            if let Some(ahead) = self.take_ahead() {
                ahead.close().await;
            }
            // Commands end before the jail does, so that somebody sees how.
            let _ = tokio::time::timeout(CLOSING, self.runs.end_all()).await;
            // Also where a command that starts at this moment holds it.
            if let Some(running) = self.running.lock().await.take() {
                running.end(running.jail.close().await);
            }
            self.outside.close().await;
        })
    }
}

impl Sandbox {
    /// A running jail, in which all is hidden and protected that is to be, as things stand now.
    async fn ready(&self) -> Result<Arc<Running>, SpawnError> {
        let running = self.jail().await.map_err(environment)?;
        running.accept();
        self.look(running).await
    }

    /// As [`Self::ready`], for a command that may be ordered with the jail.
    async fn ready_for(&self, first: First, text: &str) -> Result<(Arc<Running>, First), SpawnError> {
        match self.jail_for(Some(first), text).await.map_err(environment)? {
            // It was looked at before.
            (running, Some(sent @ First::Sent(..))) => Ok((running, sent)),
            (running, Some(waits)) => {
                running.accept();
                Ok((self.look(running).await?, waits))
            }
            (_, None) => unreachable!("what is given is given back"),
        }
    }

    /// Has the jail told what has appeared, until nothing more does.
    async fn look(&self, running: Arc<Running>) -> Result<Arc<Running>, SpawnError> {
        for round in 0..ROUNDS {
            let looked = Arc::clone(&running);
            let appeared = if running.slow {
                tokio::task::spawn_blocking(move || {
                    if round == 0 {
                        looked.refresh()?;
                    }
                    looked.appeared().map_err(SandboxError::from)
                })
                .await
                .map_err(|_| SpawnError::Environment("looking for hidden and protected files was broken off".into()))?
            } else {
                looked.appeared().map_err(SandboxError::from)
            };
            let update = appeared.map_err(environment)?;
            if update == Update::default() {
                return Ok(running);
            }
            let missed = running.jail.update(&update).await.map_err(SpawnError::Jail)?;
            running.done(&update, &missed);
        }
        let workspace = self.restrictions().workspace.clone();
        Err(SpawnError::Environment(Box::new(HiddenError::Moving { workspace })))
    }

    fn plan(&self, command: &Command) -> process::Plan {
        let added = self.added_variables().into_iter();
        let plan = added.fold(self.shell.plan(command), |plan, (name, value)| {
            plan.with_variable_unless_set(name, &value)
        });
        let outside = self.outside.variables().into_iter();
        outside.fold(plan, |plan, (name, value)| plan.with_variable(&name, &value))
    }

    /// What is kept, as the running sandbox knows it, or one that would start now.
    fn guarded<T>(&self, look: impl FnOnce(&Guard) -> T) -> Option<T> {
        if let Some(guard) = &*lock(&self.guarding()) {
            return Some(look(guard));
        }
        // In a staged workspace nothing is held: what is changed is judged when it leaves.
        if self.restrictions().isolation != Isolation::Full || self.restrictions().staging.is_some() {
            return None;
        }
        let (mut guard, _) = Guard::start(self.restrictions(), &Homes::default()).ok()??;
        let found = look(&guard);
        guard.forget();
        Some(found)
    }

    fn stage(&self) -> Option<Arc<Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was moved aside since this was last asked.
    fn guarded_names(&self) -> Vec<HeldBack> {
        let guard = self.guarding();
        let mut guard = lock(&guard);
        guard.as_mut().map_or_else(Vec::new, |guard| {
            guard.sweep();
            guard.take_held_back()
        })
    }

    fn watching(&self) -> Watching {
        Arc::clone(&self.watching.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether nothing runs in it but shells that wait. If it cannot be asked, something may.
    fn is_idle(&self) -> bool {
        let running = self.running.try_lock();
        running.is_ok_and(|running| running.as_ref().is_none_or(|running| running.jail.is_idle()))
    }

    fn guarding(&self) -> Guarding {
        Arc::clone(&self.guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is asked of it, with what its policy asks.
    fn restrictions(&self) -> &Restrictions {
        self.bound.get().unwrap_or(&self.made)
    }

    /// Where the home of commands is.
    pub fn home(&self) -> PathBuf {
        place::home(self.restrictions())
    }

    /// The directory that is worked in.
    pub fn workspace(&self) -> &Path {
        &self.restrictions().workspace
    }
}

#[cfg(test)]
mod tests;
