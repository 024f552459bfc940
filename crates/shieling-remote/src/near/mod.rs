//! The near side: an environment whose commands run on the other side of a stream.
//!
//! A thread of its own carries the stream, so that whoever asks something of it may block: facts and files are
//! looked up by callers that cannot wait otherwise.

mod arrived;
mod calls;
mod copy;
mod file;
mod job;
mod shell;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shieling::approval::Approved;
use shieling::environment::{
    Ability, AtEnd, Capabilities, EnforceError, Enforced, Enforcement, Environment, Files, Later, LimitCounts,
    Platform, WritablePaths,
};
use shieling::outcome::{Confinement, HeldBack, Outcome};
use shieling::process::{Process, SessionShell, SpawnError, Streams};
use shieling::request::Command;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::far::granted;
use crate::fault::word;
use crate::frame::{Channel, Frame, Kind};
use crate::link::{Handler, Link, LinkError, Timing};
use crate::message::{Description, Order, Said, Surroundings, WireCommand, WireOutcome, unpack};
use crate::wire_path::WirePath;

use crate::transport::{ConnectError, Connection, Transport, TransportError};

use self::arrived::Running;
use self::calls::{Near, ORDERS, Shared, Waiting};
pub use self::copy::{Base, Hides, Seen};

/// How long what explains an end is waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the other side may take to give back what it holds.
const CLOSING: Duration = Duration::from_secs(12);

/// An environment on the other side of a stream, where [`serve`](crate::serve) is.
///
/// What the policy asks to be enforced is sent, and counts as enforced as far as the other side says that it is: whoever
/// holds that end is trusted with it, as with everything that it does and tells.
///
/// Whoever has it, a process of it, a shell or a handle of its files keeps the link; with the last of them the
/// link ends, and with the link everything that the other side runs.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use shieling::Shieling;
/// use shieling::approval::Mode;
/// use shieling::policy::Policy;
/// use shieling::request::Command;
/// use shieling_memory::Memory;
/// use shieling_remote::{Remote, Timing, serve};
///
/// # tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
/// let (near, far) = tokio::io::duplex(64 * 1024);
/// let memory = Arc::new(Memory::builder("/work").build()?);
/// let (reader, writer) = tokio::io::split(far);
/// let serving = tokio::spawn(serve(memory, reader, writer, Timing::default()));
///
/// let remote = Remote::connect(async { Ok(tokio::io::split(near)) }, Timing::default()).await?;
/// let shieling = Shieling::builder(Arc::new(remote), Policy::open(), "/work")
///     .approval(Mode::OnAsk)
///     .build()?;
/// let outcome = shieling.run(Command::new("echo hello", "/work")?, None).await;
/// assert_eq!(outcome.stdout, "hello\n");
/// # drop(shieling);
/// # serving.await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Remote {
    near: Arc<Near>,
    name: String,
    of_this_host: bool,
    /// What was held back until it was closed, and is told afterwards.
    held_back: Mutex<Vec<HeldBack>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.name)
            .field("over", &self.near.shared.link.over())
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// Opens a stream and learns what environment is on its other side. `transport` runs, and its stream lives, on
    /// the thread that carries the stream: what it opens there belongs to that thread's runtime.
    ///
    /// # Errors
    /// [`LinkError`]: no stream, another version, or nothing that speaks this protocol, within the longest silence.
    /// # Cancel safety
    /// Dropping the future ends the link.
    pub async fn connect<R, W>(
        transport: impl Future<Output = io::Result<(R, W)>> + Send + 'static,
        timing: Timing,
    ) -> Result<Self, LinkError>
    where
        R: AsyncRead + Send + 'static,
        W: AsyncWrite + Send + 'static,
    {
        let transport = async move {
            let opened = transport.await.map_err(|source| TransportError::NotStarted {
                what: "the stream cannot be opened".to_owned(),
                source,
            });
            let (reader, writer) = opened?;
            Ok(Connection::new(reader, writer))
        };
        Self::begin(transport, timing).await.map_err(|error| match error {
            ConnectError::Link { why, .. } => why,
            ConnectError::Transport(error) => LinkError::Broken(error.to_string()),
        })
    }

    /// Reaches a place and learns what environment is served there. The connection is made, and lives, on the thread
    /// that carries the stream. The environment is called what the transport is called.
    ///
    /// # Errors
    /// [`ConnectError`]: the place cannot be reached, or what is reached does not speak this protocol, within the
    /// bounds of the transport and the longest silence.
    /// # Cancel safety
    /// Dropping the future ends the link.
    pub async fn over(transport: Arc<dyn Transport>, timing: Timing) -> Result<Self, ConnectError> {
        let name = transport.name().to_owned();
        let connecting = async move { Ok(transport.connect().await?) };
        Ok(Self::begin(connecting, timing).await?.named(name))
    }

    async fn begin(
        transport: impl Future<Output = Result<Connection, ConnectError>> + Send + 'static,
        timing: Timing,
    ) -> Result<Self, ConnectError> {
        let (link, line) = Link::new(timing);
        let shared = Arc::new(Shared {
            link: Arc::clone(&link),
            calls: Mutex::default(),
            description: watch::Sender::new(None),
        });
        let broken = |error: io::Error| ConnectError::Link {
            why: LinkError::Broken(error.to_string()),
            said: String::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(broken)?;
        let near = Arc::new(Near {
            shared: Arc::clone(&shared),
            runtime: runtime.handle().clone(),
            turns: Arc::new(Semaphore::new(ORDERS)),
        });
        let (opened, reached) = oneshot::channel();
        let carry = async move {
            let connection = tokio::select! {
                biased;
                why = shared.link.ended() => return shared.over(why),
                connection = transport => connection,
            };
            let connection = match connection {
                Ok(connection) => connection,
                Err(error) => {
                    shared.over(LinkError::Closed);
                    // Whoever does not wait any more does not want to know.
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            let Connection {
                reader,
                writer,
                guard,
                said,
            } = connection;
            let _ = opened.send(Ok(said));
            let link = Arc::clone(&shared.link);
            let why = link
                .carry(reader, writer, line, &mut Incoming(Arc::clone(&shared)))
                .await;
            shared.over(why);
            if let Some(guard) = guard {
                guard.end().await;
            }
        };
        std::thread::Builder::new()
            .name("shieling-remote".to_owned())
            .spawn(move || runtime.block_on(carry))
            .map_err(broken)?;
        // A future that is dropped here takes `near` with it, and so the link.
        let said = match reached.await {
            Ok(reached) => reached?,
            Err(_) => return Err(broken(io::Error::other("the thread that carries the stream is gone"))),
        };
        let mut description = near.shared.description.subscribe();
        let known = description.wait_for(Option::is_some);
        let name = tokio::select! {
            biased;
            why = link.ended() => Err(why),
            described = tokio::time::timeout(timing.max_silence, known) => match described {
                Ok(described) => Ok(described.ok().and_then(|known| Some(known.as_ref()?.name.clone()))),
                Err(_) => {
                    let for_ms = u64::try_from(timing.max_silence.as_millis()).unwrap_or(u64::MAX);
                    Err(LinkError::Silent { what: "has not said what it is", for_ms })
                }
            },
        };
        match name {
            Ok(name) => Ok(Self {
                near,
                name: name.unwrap_or_default(),
                of_this_host: false,
                held_back: Mutex::default(),
            }),
            Err(why) => {
                link.end(why.clone());
                // What explains it may come behind it.
                let said = said.last(LAST_WORDS).await;
                Err(ConnectError::Link { why, said })
            }
        }
    }

    /// The environment under another name, such as that of its transport.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { name, ..self }
    }

    /// The environment, whose other side is on this host: its commands are processes of this host, and this host's
    /// files say what they will see.
    #[must_use]
    pub fn of_this_host(self) -> Self {
        Self {
            of_this_host: true,
            ..self
        }
    }

    /// What the other side tells of its place.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        self.known(|known| known.surroundings.clone()).unwrap_or_default()
    }

    /// Why the link is over, if it is.
    #[must_use]
    pub fn end(&self) -> Option<LinkError> {
        self.near.shared.link.over()
    }

    /// Asks something and blocks for the answer.
    fn ask(&self, order: &Order) -> Option<Said> {
        self.near.wait(order, &[]).ok().map(|(said, _)| said)
    }
}

/// Handles the frames of the other side.
struct Incoming(Arc<Shared>);

impl Handler for Incoming {
    async fn take(&mut self, frame: Frame) -> Result<(), String> {
        match frame.kind {
            Kind::Beat => Ok(()),
            Kind::Message => self.hear(frame.call, &frame.body),
            Kind::Data(channel @ (Channel::Output | Channel::Errors)) => match self.job(frame.call) {
                Some(job) => job.inbox(channel).push(frame.body),
                None => Ok(()),
            },
            Kind::End(channel @ (Channel::Output | Channel::Errors)) => {
                if let Some(job) = self.job(frame.call) {
                    job.inbox(channel).end();
                }
                Ok(())
            }
            Kind::Credit(Channel::Input) => {
                if let Some(job) = self.job(frame.call) {
                    job.input.grant(granted(&frame.body));
                }
                Ok(())
            }
            Kind::Closed(Channel::Input) => {
                if let Some(job) = self.job(frame.call) {
                    job.input.close();
                }
                Ok(())
            }
            Kind::Data(_) | Kind::End(_) | Kind::Credit(_) | Kind::Closed(_) => {
                Err("a frame of a stream that goes the other way".to_owned())
            }
        }
    }
}

impl Incoming {
    fn job(&self, call: u32) -> Option<Arc<Running>> {
        self.0.lock().open.get(&call)?.job.clone()
    }

    fn hear(&self, call: u32, body: &[u8]) -> Result<(), String> {
        let (said, bytes): (Said, &[u8]) = unpack(body)?;
        match said {
            Said::Described(description) if call == 0 => {
                self.0.description.send_replace(Some(*description));
            }
            Said::Described(_) => return Err("a description of a call".to_owned()),
            Said::Happened(event) => {
                if let Some(job) = self.job(call) {
                    job.happened(event.event());
                }
            }
            Said::Stands { state, ended } => {
                let shell = self.0.lock().open.get(&call).and_then(|call| call.shell.clone());
                if let Some(shell) = shell {
                    shell.stands(state.state(), ended);
                }
            }
            answer => {
                let waiting = self.0.lock().open.get_mut(&call).and_then(|call| call.answer.take());
                if let Some(waiting) = waiting {
                    // Who does not wait any more has forgotten the call.
                    let _ = waiting.send((answer, bytes.to_vec()));
                }
            }
        }
        Ok(())
    }
}

impl Remote {
    fn known<T>(&self, of: impl FnOnce(&Description) -> T) -> Option<T> {
        self.near.shared.description.borrow().as_ref().map(of)
    }

    fn places_in(&self, order: &Order, paths: usize) -> Option<Vec<usize>> {
        match self.ask(order)? {
            Said::Places(found) => Some(
                found
                    .into_iter()
                    .map(|at| at as usize)
                    .filter(|at| *at < paths)
                    .collect(),
            ),
            _ => None,
        }
    }

    fn paths_of(&self, order: &Order) -> Vec<PathBuf> {
        match self.ask(order) {
            Some(Said::Paths(paths)) => paths.into_iter().map(WirePath::path).collect(),
            _ => Vec::new(),
        }
    }
}

fn wire(paths: &[&Path]) -> Vec<WirePath> {
    paths.iter().map(|path| WirePath::of(path)).collect()
}

impl Environment for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.known(|known| known.capabilities.clone()).unwrap_or(Capabilities {
            networks: std::collections::BTreeSet::new(),
            limits: std::collections::BTreeSet::new(),
            abilities: std::collections::BTreeSet::new(),
        });
        // Elsewhere they have no numbers of this host, and its files say nothing about them.
        if !self.of_this_host {
            capabilities.abilities.remove(&Ability::Processes);
        }
        capabilities
    }

    fn confinement(&self) -> Confinement {
        let told = |known: &Description| {
            let mut confinement = known.confinement.clone();
            if known.surroundings.unconfined.is_some() {
                // It was asked for, where that place can have one.
                confinement.missing.push("sandbox".to_owned());
            }
            confinement
        };
        self.known(told).unwrap_or_default()
    }

    fn platform(&self) -> Option<Platform> {
        let (platform, name, surroundings) =
            self.known(|known| (known.platform.clone(), known.name.clone(), known.surroundings.clone()))?;
        if let Some((kernel, advice)) = platform {
            return Some(Platform { kernel, advice });
        }
        if self.of_this_host || surroundings.system.is_empty() {
            return None;
        }
        let confined = match surroundings.unconfined {
            Some(why) => format!("unconfined, since it can have no sandbox: {why}"),
            None => format!("in its environment `{name}`"),
        };
        Some(Platform {
            kernel: surroundings.system,
            advice: vec![format!("Commands and files are on another machine, {confined}.")],
        })
    }

    fn places(&self) -> Option<WritablePaths> {
        self.known(|known| known.places.clone())?
    }

    fn shells(&self) -> usize {
        self.known(|known| usize::try_from(known.shells).unwrap_or(usize::MAX))
            .unwrap_or(usize::MAX)
    }

    fn enforce(&self, asked: &Enforcement) -> Result<Enforced, EnforceError> {
        // What is not made of patterns cannot be said: it stays unenforced, and is asked about.
        let patterns = asked.hidden.as_ref().map(|hidden| hidden.patterns().to_vec());
        let order = Order::Enforce {
            workspace: WirePath::of(&asked.workspace),
            readonly: asked.readonly,
            hidden: patterns.clone().filter(|patterns| !patterns.is_empty()),
            programs: asked.programs.clone(),
        };
        let unsaid = patterns.is_some_and(|patterns| patterns.is_empty());
        match self.ask(&order) {
            Some(Said::Enforced(enforced)) => {
                let enforced = enforced.enforced();
                Ok(Enforced {
                    hidden: enforced.hidden && !unsaid,
                    ..enforced
                })
            }
            Some(Said::NotEnforced(fault)) => Err(fault.error()),
            _ => Err(EnforceError::Unsupported {
                environment: self.name.clone(),
                why: "it has not answered what it enforces",
            }),
        }
    }

    fn tells(&self) -> bool {
        self.known(|known| known.tells).unwrap_or(false)
    }

    /// Asks only where there can be something to tell: of a command that has printed or failed, or at whose end the
    /// other side has said so.
    fn tell(&self, outcome: &mut Outcome, before: &LimitCounts) {
        let Some((true, look, held_back)) = self.known(|known| (known.tells, known.look, known.held_back)) else {
            return;
        };
        let quiet = outcome.exit_code == Some(0) && outcome.stdout.is_empty() && outcome.stderr.is_empty();
        if quiet && look == before.mark() && !held_back {
            return;
        }
        let order = Order::Tell {
            since: before.mark(),
            outcome: Box::new(WireOutcome::of(outcome)),
        };
        if let Some(Said::Told(told)) = self.ask(&order) {
            outcome.add_held_back(told.held_back);
            outcome.hints = told.hints;
            outcome.limits_hit = told.limits_hit;
        }
    }

    fn limit_counts(&self) -> LimitCounts {
        LimitCounts::marked(self.known(|known| known.look).unwrap_or_default())
    }

    fn held_back(&self) -> Vec<HeldBack> {
        let mut held_back = std::mem::take(&mut *self.held_back.lock().unwrap_or_else(PoisonError::into_inner));
        if self.tells()
            && let Some(Said::Told(told)) = self.ask(&Order::HeldBack)
        {
            held_back.extend(told.held_back);
        }
        held_back
    }

    fn added_variables(&self) -> Vec<(&'static str, String)> {
        let added = self.known(|known| known.added_variables.clone()).unwrap_or_default();
        added.into_iter().map(|(name, value)| (word(&name), value)).collect()
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move { job::spawn(&self.near, &self.name, command.request(), streams).await })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        Box::pin(async move {
            let shell = shell::open(&self.near, &self.name, first.request()).await?;
            Ok(Box::new(shell) as Box<dyn SessionShell>)
        })
    }

    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        Box::pin(async move {
            let order = Order::SyntaxCheck(WireCommand::of(command));
            match self.near.call(&order, &[], |_| Waiting::default()).await {
                Ok((_, Said::SyntaxCheck(said), _)) => said,
                _ => None,
            }
        })
    }

    // What the other side does before a command of a shell, it does when that is ordered.
    fn before<'a>(&'a self, _next: &'a Approved<Command>) -> Later<'a, Result<Option<AtEnd>, SpawnError>> {
        Box::pin(async { Ok(None) })
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        let can = self.capabilities().abilities.contains(&Ability::ReadFiles);
        let files = match self.end() {
            Some(why) => Err(SpawnError::Environment(Box::new(why))),
            None if !can => {
                let why = format!("`{}` has no files that could be reached", self.name);
                Err(SpawnError::Environment(why.into()))
            }
            None => Ok(Arc::new(file::Remote(Arc::clone(&self.near))) as Arc<dyn Files>),
        };
        Box::pin(async move { files })
    }

    fn unprotected_paths(&self, paths: &[&Path], workspace: &Path) -> Vec<usize> {
        let order = Order::UnprotectedPaths {
            paths: wire(paths),
            workspace: WirePath::of(workspace),
        };
        // What is not known is asked about.
        self.places_in(&order, paths.len())
            .unwrap_or_else(|| (0..paths.len()).collect())
    }

    fn holds_back(&self, paths: &[&Path]) -> Vec<usize> {
        self.places_in(&Order::HoldsBack(wire(paths)), paths.len())
            .unwrap_or_default()
    }

    fn kept_below(&self, path: &Path) -> Vec<PathBuf> {
        self.paths_of(&Order::KeptBelow(WirePath::of(path)))
    }

    fn kept_settings(&self, directory: &Path) -> Option<PathBuf> {
        self.paths_of(&Order::KeptSettings(WirePath::of(directory))).pop()
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {
            let closing = self.near.call(&Order::Close, &[], |_| Waiting::default());
            // What does not close in time ends with the link.
            if let Ok(Ok((_, Said::Told(told), _))) = tokio::time::timeout(CLOSING, closing).await {
                let mut held_back = self.held_back.lock().unwrap_or_else(PoisonError::into_inner);
                held_back.extend(told.held_back);
            }
            self.near.shared.link.end(LinkError::Closed);
        })
    }
}
