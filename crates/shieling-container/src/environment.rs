//! The environment itself: one container, made at first use, made anew once it is gone, removed at the end.

mod attached;
mod copy;
mod hidden;
mod image;
mod inner;
mod own;
mod per_command;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shieling::approval::Approved;
use shieling::changes::Rule;
use shieling::environment::{
    Ability, AtEnd, Capabilities, EnforceError, Enforced, Enforcement, Environment, Files, Later, Limit, LimitCounts,
    Network, Platform, WritablePaths,
};
use shieling::outcome::{Changes, Confinement, Outcome, Status};
use shieling::process::{Process, SessionShell, SpawnError, Streams};
use shieling::request::Command;
use shieling_remote::transport::{ConnectError, Transport};
use shieling_remote::{Remote, Timing};

pub use self::image::Progress;
use self::inner::{Alone, Inner, Running, lock, spawn_error};
use crate::agent::Agent;
use crate::check::{self, Inside};
use crate::client::Engine;
use crate::discover::{Choice, Surroundings, discover, sockets};
use crate::error::{ContainerError, EngineError};
use crate::isolation;
use crate::options::{Options, Reach, Run, WorkspaceCopy};
use crate::owner::short;
use crate::spec;

/// How long the end of a container is waited for once contact to it was lost.
const ENDING: Duration = Duration::from_secs(5);

/// An environment whose commands run in a container.
///
/// It is opened without a container: [`Self::open`] finds the engine and the image. The container is made by
/// [`Self::start`], or by the first command, and again by the next one if it is gone, as after its engine ended it.
/// It goes with [`close`](Environment::close), with the last that is made of it, and with this process, also if that
/// is killed; what an engine left behind all the same is removed by the next one that starts.
///
/// Every request to the engine is bounded in time ([`Options::engine_timeout`]). A start whose engine hangs fails with
/// what was asked and for how long, after twice that time at most and some seconds for the agent's answer.
/// `close` gives up a start that takes longer than 10 s, gives what runs 12 s to end and the engine 20 s to remove the
/// container, and [`left_at_close`](Environment::left_at_close) then says what may be left.
///
/// # What a policy means in it
/// *readonly* is enforced: nothing of this host can be changed, since the workspace and all volumes are mounted
/// read-only. A workspace that is copied is the container's own, and can be written. What is *hidden* is left out of a
/// workspace that is copied, and what commands make in its place is held back; in one that is mounted it is not
/// enforced. Lists of programs are not enforced: what cannot be decided by reading is asked about.
pub struct Container {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("engine", &self.inner.engine)
            .field("run", &self.inner.options.run)
            .finish_non_exhaustive()
    }
}

impl Container {
    /// Finds the engine and the image, which is pulled if that is wanted, or the container to attach to. Nothing is
    /// made. `state` is a directory of this host that only its user can write. The agent program is kept in `agents` below it,
    /// for the engine to mount. A workspace that is copied must not hold it, nor be in it.
    ///
    /// # Errors
    /// [`ContainerError`]: no engine, no image, or options that undo isolation without an acknowledgement.
    /// # Cancel safety
    /// Cancel safe; an engine may go on to pull.
    pub async fn open(
        options: Options,
        choice: Choice,
        surroundings: &Surroundings,
        state: &Path,
        progress: Option<Progress>,
    ) -> Result<Self, ContainerError> {
        let mounts = isolation::mounts(&options, &sockets(surroundings))?;
        isolation::holds_nothing_of_ours(&options, surroundings.home.as_deref(), state)?;
        let agent = Agent::in_directory(&state.join("agents"))?;
        let engine = discover(choice, surroundings).await?.within(options.engine_timeout);
        engine.has_architecture_of_agent().await?;
        let image = match &options.run {
            Run::Image { image, pull } => image::find(&engine, image, *pull, progress.clone()).await?,
            Run::Attached { container } => attached::look(&engine, container, &options).await?,
        };
        let owner = match options.user {
            Some(crate::options::User::Keep) => Some(isolation::owner(&options)?),
            Some(crate::options::User::Id { .. }) | None => None,
        };
        let user = spec::user(&options, owner);
        Ok(Self {
            inner: Arc::new(Inner {
                engine,
                options,
                image,
                mounts,
                user,
                agent,
                progress,
                policy: Mutex::default(),
                running: Mutex::default(),
                starting: tokio::sync::Mutex::default(),
                rules: Mutex::default(),
                has_lost_copy: AtomicBool::new(false),
                has_untold_loss: AtomicBool::new(false),
                settled: Mutex::default(),
                given_up: tokio::sync::Notify::new(),
                left: Mutex::default(),
                told_stuck: Mutex::default(),
                failure: Mutex::default(),
                alone: Alone::default(),
            }),
        })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The directory of the container that is worked in.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.inner.options.workdir
    }

    /// The variables that a command finds if nobody says otherwise: the image's, and a home that is there.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        let mut variables: BTreeMap<String, String> = self.inner.image.variables.iter().cloned().collect();
        let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        variables.entry("PATH".to_owned()).or_insert_with(|| usual.to_owned());
        let home = match (self.inner.options.is_hardened(), self.inner.is_root()) {
            (true, _) => "/tmp",
            (false, true) => "/root",
            (false, false) => "/",
        };
        if self.inner.options.is_hardened() {
            variables.insert("HOME".to_owned(), home.to_owned());
        } else {
            variables.entry("HOME".to_owned()).or_insert_with(|| home.to_owned());
        }
        variables
    }

    /// Makes the container, unless it is there. What takes long is done before by [`Self::open`]. With
    /// [`Options::per_command`] the first start makes one and removes it, so that it is known
    /// to work.
    ///
    /// # Errors
    /// [`ContainerError`]; nothing is left running.
    /// # Cancel safety
    /// Dropping the future removes what was made.
    pub async fn start(&self) -> Result<(), ContainerError> {
        if self.inner.options.per_command {
            return self.inner.try_single().await;
        }
        self.inner.running().await.map(drop)
    }

    /// Why the last start failed; nothing if it did not, or none was tried.
    #[must_use]
    pub fn last_failure(&self) -> Option<ContainerError> {
        lock(&self.inner.failure).clone()
    }

    /// The id of the container, once it was made; nothing for one that was there.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        self.inner.now()?.id.clone()
    }

    /// The shell that reads commands; nothing if the container has not started.
    #[must_use]
    pub fn shell(&self) -> Option<PathBuf> {
        let running = self.inner.seen()?;
        let shell = running.remote.surroundings().shell;
        (!shell.as_os_str().is_empty()).then_some(shell)
    }

    /// What the system inside says of itself, as `/etc/os-release` has it; nothing if it has not started.
    #[must_use]
    pub fn os_release(&self) -> Option<String> {
        Some(self.inner.seen()?.remote.surroundings().os_release)
    }

    /// What of the network is reached, as it was seen: `none`, `host`, or which one in words; nothing if it has not
    /// started.
    #[must_use]
    pub fn network(&self) -> Option<String> {
        Some(self.inner.seen()?.network.clone())
    }

    /// The limits that are asked for and checked: bytes of memory, and processes.
    #[must_use]
    pub fn limits(&self) -> (Option<u64>, Option<u64>) {
        let options = &self.inner.options;
        (options.memory_limit(), options.pids_limit())
    }
}

impl Inner {
    async fn running(self: &Arc<Self>) -> Result<Arc<Running>, ContainerError> {
        if let Some(running) = self.now() {
            return Ok(running);
        }
        let _turn = self.starting.lock().await;
        if let Some(running) = self.now() {
            return Ok(running);
        }
        let running = Arc::new(self.begun().await?);
        let before = self.lock().replace(Arc::clone(&running));
        if let Some(before) = before.filter(|_| self.options.workspace_copy.is_some()) {
            if before.copy.is_some() {
                self.has_lost_copy.store(true, Ordering::Relaxed);
            }
            if !before.is_end_told.load(Ordering::Relaxed) {
                self.has_untold_loss.store(true, Ordering::Relaxed);
            }
        }
        Ok(running)
    }

    /// Starts a container, unless that is given up meanwhile.
    async fn begun(self: &Arc<Self>) -> Result<Running, ContainerError> {
        let begun = tokio::select! {
            begun = self.begin() => begun,
            () = self.given_up.notified() => Err(ContainerError::Closed),
        };
        *lock(&self.failure) = begun.as_ref().err().cloned();
        begun
    }

    /// The container for a call of which somebody reads the result. If an earlier one has ended with its copy of the
    /// workspace, the first such call is refused: what it relies on may be gone.
    async fn ready(self: &Arc<Self>) -> Result<Arc<Running>, ContainerError> {
        let running = self.running().await?;
        match self.has_untold_loss.swap(false, Ordering::Relaxed) {
            true => Err(ContainerError::CopyLost),
            false => Ok(running),
        }
    }

    async fn begin(self: &Arc<Self>) -> Result<Running, ContainerError> {
        let failed = Arc::new(Mutex::new(None));
        let made = Arc::new(Mutex::new(None));
        let looked = Arc::new(Mutex::new(None));
        let way = Arc::new(Way {
            inner: Arc::clone(self),
            failed: Arc::clone(&failed),
            made: Arc::clone(&made),
            looked: Arc::clone(&looked),
        });
        let remote = Remote::over(way as Arc<dyn Transport>, Timing::default()).await;
        let remote = match remote {
            Ok(remote) => remote,
            Err(error) => {
                return Err(lock(&failed).take().unwrap_or_else(|| match error {
                    ConnectError::Link { why, said } => explained(&why.to_string(), &said),
                    other => ContainerError::NoAnswer { why: other.to_string() },
                }));
            }
        };
        let shown = remote.surroundings().shown;
        let inside = Inside(shown);
        let id = lock(&made).clone();
        let inspected = match &id {
            Some(id) => {
                let path = format!("/containers/{}/json", crate::client::escaped(id));
                match self.engine.get(&path, "to inspect a container").await {
                    Ok(inspected) => inspected,
                    Err(error) => {
                        let left = self.end(&remote, Some(id)).await.err();
                        return Err(own::may_be_left(error.into(), left.map(|_| short(id))));
                    }
                }
            }
            None => lock(&looked).take().unwrap_or_default(),
        };
        let asked = check::Asked {
            options: &self.options,
            mounts: &self.mounts,
            user: self.user.as_deref().filter(|_| !self.keep_id()),
            readonly: self.readonly(),
        };
        let checked = check::compare(&asked, &inside, &inspected).and_then(|confinement| {
            self.can_write(&remote.surroundings().unwritable)?;
            Ok(confinement)
        });
        // Before the copy, which may hide more by then.
        let is_hiding = self.hidden().is_some();
        let copied = match checked {
            Ok(confinement) => self.copy_workspace(&remote).await.map(|copy| (confinement, copy)),
            Err(error) => Err(error),
        };
        match copied {
            Ok((confinement, copy)) => Ok(Running {
                remote,
                confinement,
                network: check::network(&inside, &inspected),
                container: inspected["Id"].as_str().unwrap_or_default().to_owned(),
                is_hiding,
                is_end_told: AtomicBool::new(false),
                copy,
                id,
            }),
            Err(error) => {
                let left = self.end(&remote, id.as_deref()).await.err();
                let id = id.filter(|_| left.is_some());
                Err(own::may_be_left(error, id.as_deref().map(short)))
            }
        }
    }

    /// Whether a container is known to run no more, so long at most as it takes to end one.
    async fn has_ended(&self, container: &str) -> bool {
        let path = format!("/containers/{}/json", crate::client::escaped(container));
        let looking = async {
            loop {
                match self.engine.get(&path, "to inspect a container").await {
                    Err(EngineError::Refused { status: 404, .. }) => return,
                    Ok(found) if found["State"]["Running"] == false => return,
                    Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        tokio::time::timeout(ENDING, looking).await.is_ok()
    }

    /// Ends a link, and waits until its container is removed. One whose removal fails is tried again for as long as this
    /// process runs and that may help, and removed by the next start otherwise.
    async fn end(&self, remote: &Remote, id: Option<&str>) -> Result<(), EngineError> {
        remote.close().await;
        match id {
            Some(id) => {
                let removed = crate::owner::remove(&self.engine, id).await;
                if removed.is_err() {
                    own::remove_later(&self.engine, id, true);
                }
                removed
            }
            None => Ok(()),
        }
    }

    /// Ends a container, and keeps what may be left of it to be told.
    async fn end_and_tell(&self, running: &Running) {
        if let Err(error) = self.end(&running.remote, running.id.as_deref()).await {
            let error = own::may_be_left(error.into(), running.id.as_deref().map(short));
            self.may_leave(&error);
        }
    }

    /// Ends each start that is under way or waits for its turn.
    async fn give_up(&self) -> tokio::sync::MutexGuard<'_, ()> {
        loop {
            // It reaches those alone that wait at this moment.
            self.given_up.notify_waiters();
            if let Ok(turn) = tokio::time::timeout(Duration::from_millis(50), self.starting.lock()).await {
                return turn;
            }
        }
    }

    /// Keeps what is told once everything is closed.
    fn may_leave(&self, error: &ContainerError) {
        let told = match error.instead() {
            Some(instead) => format!("{error}; {instead}"),
            None => error.to_string(),
        };
        *lock(&self.left) = Some(told);
    }

    /// Whether something may be left that was not told yet.
    fn may_have_left(&self) -> bool {
        lock(&self.left).is_some()
    }

    /// The container, or what is known of the latest one that had a single command.
    fn seen(&self) -> Option<Arc<Running>> {
        self.now().or_else(|| self.alone.latest())
    }
}

/// A refusal of the agent, by what it says.
fn explained(why: &str, said: &str) -> ContainerError {
    let why = if said.is_empty() {
        why.to_owned()
    } else {
        format!("{why}; it said: {}", said.escape_debug())
    };
    ContainerError::NoAnswer { why }
}

/// The way into a container.
struct Way {
    inner: Arc<Inner>,
    failed: Arc<Mutex<Option<ContainerError>>>,
    made: Arc<Mutex<Option<String>>>,
    looked: Arc<Mutex<Option<serde_json::Value>>>,
}

impl Transport for Way {
    fn name(&self) -> &str {
        "container"
    }

    fn connect(
        &self,
    ) -> Later<'_, Result<shieling_remote::transport::Connection, shieling_remote::transport::TransportError>> {
        Box::pin(async move {
            let made = |id: String| *lock(&self.made) = Some(id);
            let looked = |found| *lock(&self.looked) = Some(found);
            let connected = match &self.inner.options.run {
                Run::Image { .. } => own::connect(&self.inner, made).await,
                Run::Attached { container } => attached::connect(&self.inner, container, looked).await,
            };
            connected.map_err(|error| {
                let refused = shieling_remote::transport::TransportError::Refused {
                    what: error.to_string(),
                    instead: error.instead(),
                };
                *lock(&self.failed) = Some(error);
                refused
            })
        })
    }
}

impl Engine {
    /// Whether the agent program of this version runs on the engine's processors.
    async fn has_architecture_of_agent(&self) -> Result<(), ContainerError> {
        let needs = image::architecture(self).await?;
        let has = image::of_this_program();
        if needs == has {
            return Ok(());
        }
        Err(ContainerError::Agent {
            why: format!("the engine's processors are {needs}, and this version carries a program for {has}"),
        })
    }
}

impl Environment for Container {
    fn name(&self) -> &str {
        "container"
    }

    fn capabilities(&self) -> Capabilities {
        let options = &self.inner.options;
        let abilities = match self.inner.seen() {
            Some(running) => running.remote.capabilities().abilities,
            None => Ability::ALL.into(),
        };
        let has = |ability: &Ability| match ability {
            Ability::Processes => false,
            Ability::Sessions => !options.per_command,
            // Of a directory that goes with each command there is nothing to read.
            Ability::ReadFiles | Ability::WriteFiles => !options.per_command || options.mounted_workspace().is_some(),
            _ => true,
        };
        Capabilities {
            networks: self.networks(),
            limits: self.limited(),
            abilities: abilities.into_iter().filter(has).collect(),
        }
    }

    fn enforce(&self, asked: &Enforcement) -> Result<Enforced, EnforceError> {
        let options = &self.inner.options;
        let mut policy = lock(&self.inner.policy);
        if let Some(bound) = policy.as_ref()
            && !bound.covers(asked)
        {
            return Err(EnforceError::Bound {
                environment: self.name().to_owned(),
                why: "serves another policy already",
                cure: "open a container for each policy",
            });
        }
        policy.get_or_insert_with(|| asked.clone());
        let closed = options.is_own()
            && options.network == Reach::None
            && !options.privileged
            && options.devices.is_empty()
            && options.capabilities.is_empty();
        Ok(Enforced {
            readonly: asked.readonly && closed,
            // It is left out of the copy, and what is made in its place does not come back.
            // One that was copied before the policy was known has all.
            hidden: self.inner.hides(asked) && self.inner.lock().as_ref().is_none_or(|running| running.is_hiding),
            programs: false,
        })
    }

    fn confinement(&self) -> Confinement {
        // Also of one that has ended: it is told of the command that ended with it.
        let running = self.inner.lock().clone().or_else(|| self.inner.alone.latest());
        running.map(|running| running.confinement.clone()).unwrap_or_default()
    }

    /// Whether the container of a command that was lost has ended, and so the command, is asked of the engine.
    fn tell(&self, outcome: &mut Outcome, before: &LimitCounts) {
        outcome.add_held_back(self.held_back());
        outcome.hints = self.hints(outcome);
        outcome.limits_hit = self.limits_hit(outcome, before);
        if outcome.status != Status::Lost {
            return;
        }
        if self.inner.options.per_command {
            if inner::apart(self.inner.ended_are_removed(ENDING)) == Some(true) {
                outcome.survivors = 0;
                outcome.error = Some("its container has ended".to_owned());
            }
            return;
        }
        let running = self.inner.lock().clone();
        let Some(running) = running.filter(|running| running.remote.end().is_some()) else {
            return;
        };
        running.is_end_told.store(true, Ordering::Relaxed);
        let inner = Arc::clone(&self.inner);
        let looking = async move { inner.has_ended(&running.container).await };
        if inner::apart(looking) == Some(true) {
            outcome.survivors = 0;
            let new = match (self.inner.options.is_own(), &self.inner.options.workspace_copy) {
                (true, Some(_)) => {
                    "what had been changed in its copy of the workspace is lost; the next command gets another one with \
                     a new copy, in which nothing of its `/tmp`, its files and its jobs is left"
                }
                (true, None) => {
                    "the next command gets another one, in which nothing of its `/tmp`, its files and its jobs is left"
                }
                (false, _) => "all that ran in it has ended",
            };
            outcome.error = Some(format!("the container has ended; {new}"));
        }
    }

    fn platform(&self) -> Option<Platform> {
        let platform = self.inner.seen()?.remote.platform()?;
        let advice = match self.inner.options.workspace_copy {
            _ if self.inner.options.per_command => {
                "Each command runs in a new container, which is removed after it: what it leaves outside a mounted \
                 directory, and what it leaves running, is gone before the next one."
            }
            None => "Commands run in a container: what is not in a mounted directory goes with it.",
            Some(WorkspaceCopy::In) => {
                "Commands run in a container, and the workspace is a copy in its memory: what changes there goes with \
                 the container, and the user's own files stay as they are. What is to be kept has to be told."
            }
            Some(WorkspaceCopy::Both { .. }) if self.inner.readonly() => {
                "Commands run in a container, and the workspace is a copy in its memory: what changes there goes with \
                 the container, since nothing of the user's may change."
            }
            Some(WorkspaceCopy::Both { .. }) => {
                "Commands run in a container, and the workspace is a copy in its memory: what changes there is moved \
                 into the user's workspace only when all work here is over, all of it or nothing. What would run code \
                 as the user later is held back, and where the user changed the same files meanwhile, nothing is moved \
                 and the user decides."
            }
        };
        let advice = advice.to_owned();
        Some(Platform {
            advice: vec![advice],
            ..platform
        })
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move {
            if self.inner.options.per_command {
                return self.inner.spawn_alone(command, streams).await;
            }
            let running = self.inner.ready().await.map_err(spawn_error)?;
            running.remote.spawn(command, streams).await
        })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        Box::pin(async move {
            if self.inner.options.per_command {
                let why = "each command has a container of its own, so that no shell stays; run it without a session \
                           (`session` empty)"
                    .to_owned();
                return Err(SpawnError::Session { why });
            }
            let running = self.inner.ready().await.map_err(spawn_error)?;
            running.remote.open_shell(first).await
        })
    }

    fn shells(&self) -> usize {
        self.inner.now().map_or(usize::MAX, |running| running.remote.shells())
    }

    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        Box::pin(async move {
            if self.inner.options.per_command {
                return None;
            }
            self.inner.running().await.ok()?.remote.syntax_check(command).await
        })
    }

    fn before<'a>(&'a self, _next: &'a Approved<Command>) -> Later<'a, Result<Option<AtEnd>, SpawnError>> {
        Box::pin(async { Ok(None) })
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        Box::pin(async move {
            let options = &self.inner.options;
            if options.per_command && options.mounted_workspace().is_none() {
                let why = "each command has a container of its own, and with it the directory that it works in";
                return Err(SpawnError::Environment(why.into()));
            }
            let running = self.inner.ready().await.map_err(spawn_error)?;
            running.remote.files().await
        })
    }

    fn unprotected_paths(&self, paths: &[&Path], workspace: &Path) -> Vec<usize> {
        let options = &self.inner.options;
        if options.is_own() && (options.mounted_workspace().is_none() || !options.writable || self.inner.readonly()) {
            return Vec::new();
        }
        let running = match self.inner.options.per_command {
            true => inner::apart(self.inner.running()).and_then(Result::ok),
            false => self.inner.now(),
        };
        match running {
            Some(running) => running.remote.unprotected_paths(paths, workspace),
            // What is not known yet is asked about.
            None => (0..paths.len()).collect(),
        }
    }

    /// What comes back of a copied workspace is judged, so that something can be held back of it.
    fn hold_back(&self, rules: Vec<Rule>) -> Result<(), EnforceError> {
        let comes_back = matches!(self.inner.options.workspace_copy, Some(WorkspaceCopy::Both { .. }));
        if rules.is_empty() && !comes_back {
            return Ok(());
        }
        let refuse = |why| {
            Err(EnforceError::Unsupported {
                environment: self.name().to_owned(),
                why,
            })
        };
        if !comes_back {
            return refuse(
                "it has rules about what changes (`changes`, `adds`, `deletes`, `max_files`, `max_bytes`), which hold \
                 in a container with `--workspace-copy both`",
            );
        }
        let mut bound = lock(&self.inner.rules);
        match &*bound {
            Some(bound) if *bound != rules => refuse("it holds other changes back already"),
            Some(_) | None => {
                *bound = Some(rules);
                Ok(())
            }
        }
    }

    fn left_at_close(&self) -> Option<String> {
        lock(&self.inner.left).take()
    }

    fn settled_at_close(&self) -> Option<(Changes, Option<String>)> {
        lock(&self.inner.settled).take()
    }

    fn places(&self) -> Option<WritablePaths> {
        None
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {
            // A start that is under way would bring up another one. One that takes long is given up.
            let _turn = match tokio::time::timeout(self.inner.engine.quick(), self.inner.starting.lock()).await {
                Ok(turn) => turn,
                Err(_) => {
                    let turn = self.inner.give_up().await;
                    if self.inner.lock().is_none() && self.inner.options.is_own() {
                        self.inner.may_leave(&ContainerError::Closed);
                    }
                    turn
                }
            };
            self.inner.end_all_single().await;
            let running = self.inner.lock().take();
            if let Some(running) = running {
                self.inner.write_back(&running).await;
                self.inner.end_and_tell(&running).await;
            }
        })
    }
}

impl Container {
    fn networks(&self) -> BTreeSet<Network> {
        if !self.inner.options.is_own() && !self.inner.image.is_closed {
            return [Network::Host].into();
        }
        match self.inner.options.network {
            Reach::None => [Network::None, Network::Loopback].into(),
            Reach::Host | Reach::Named(_) => [Network::Host].into(),
        }
    }

    /// A container that is made without limits sets those alone that are named.
    fn limited(&self) -> BTreeSet<Limit> {
        let options = &self.inner.options;
        let own = [
            (Limit::Memory, options.memory.is_some()),
            (Limit::Pids, options.pids.is_some()),
            (Limit::Cpus, options.cpu_thousandths.is_some()),
        ];
        let set = own
            .into_iter()
            .filter(|(_, named)| options.is_own() && (*named || !options.unlimited))
            .map(|(limit, _)| limit);
        set.chain([Limit::FileSize]).collect()
    }
}
