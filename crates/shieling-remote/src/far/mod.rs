//! The far side: does what it is told over its stream, and ends all of it when the stream ends.
//!
//! One handler takes orders in their order and never waits for what they do: each runs as a task of its
//! own, and all of them end with the link. What a call has made stays under its number until it is forgotten.

mod calls;
mod copies;
mod file;
mod job;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shieling::enforcement_of;
use shieling::environment::{EnforceError, Enforced, Enforcement, Environment, LimitCounts};
use shieling::policy::Policy;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::copy;
use crate::fault::{EnforceFault, ShellFault, SpawnFault};
use crate::flow::{Credit, Inbox};
use crate::frame::{Channel, Frame, Kind};
use crate::link::{Handler, Link, LinkError, Timing};
use crate::message::{Order, Said, Surroundings, Told, WireEnforced, WireStreams, unpack};
use crate::wire_path::WirePath;

pub use self::calls::Kills;
use self::calls::{Call, Far, Looks, MOST_CONTENT, Ordered};
use self::job::Start;

/// How many calls there may be at once: jobs, shells, handles of files.
const MOST_CALLS: usize = 16 * 1024;
/// How many bytes of orders may wait for their answers.
const MOST_ORDERED: usize = 16 * 1024 * 1024;
/// How many orders may be worked on at once; what else arrives waits in the stream.
pub(crate) const MOST_AT_ONCE: usize = 256;
/// How long an environment may take to give back what it holds.
const CLOSING: Duration = Duration::from_secs(10);

/// An environment that is served, and what is told of its place.
pub struct Served {
    /// The environment.
    pub environment: Arc<dyn Environment>,
    /// Its place.
    pub surroundings: Surroundings,
    /// How many processes the kernel has killed there for their memory until now, where the environment does not tell
    /// by itself that a command has used up its memory.
    pub kills: Option<Kills>,
    /// Whether the near side may copy directories to and from this host, where this process may read and write.
    pub copies: bool,
}

/// Serves an environment of which nothing is told but itself: [`Served::serve`].
///
/// # Cancel safety
/// As [`Served::serve`].
///
/// # Panics
/// As [`Served::serve`].
pub async fn serve(
    environment: Arc<dyn Environment>,
    reader: impl AsyncRead + Send,
    writer: impl AsyncWrite + Send,
    timing: Timing,
) -> LinkError {
    let surroundings = Surroundings::default();
    let served = Served {
        environment,
        surroundings,
        kills: None,
        copies: false,
    };
    served.serve(reader, writer, timing).await
}

impl Served {
    /// Serves it over one stream, until the stream ends; then everything that it ran is ended,
    /// and the environment is closed. Says why the stream ended.
    ///
    /// Nothing is judged here: whoever holds the other end of the stream has that authority, and the environment takes
    /// what arrives as approved.
    ///
    /// # Cancel safety
    /// Dropping the future ends everything that it ran; the environment is not closed.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn serve(
        self,
        reader: impl AsyncRead + Send,
        writer: impl AsyncWrite + Send,
        timing: Timing,
    ) -> LinkError {
        let (link, line) = Link::new(timing);
        let far = Arc::new(Far {
            environment: self.environment,
            surroundings: self.surroundings,
            kills: self.kills,
            copies: self.copies,
            link: Arc::clone(&link),
            calls: Mutex::default(),
            described: Mutex::default(),
            bytes: Arc::new(Semaphore::new(MOST_ORDERED)),
            turns: Arc::new(Semaphore::new(MOST_AT_ONCE)),
            contents: Arc::new(Semaphore::new(MOST_CONTENT)),
            looks: Mutex::new(Looks {
                last: 0,
                kept: VecDeque::from([LimitCounts::default()]),
                held_back: Vec::new(),
            }),
        });
        far.describe();
        let mut hands = Hands {
            far: Arc::clone(&far),
            tasks: JoinSet::new(),
        };
        let why = link.carry(reader, writer, line, &mut hands).await;
        hands.tasks.shutdown().await;
        let calls = std::mem::take(&mut *far.lock());
        drop(calls);
        // A start that was under way ends what it has started; so does the environment.
        let _ = tokio::time::timeout(CLOSING, far.environment.close()).await;
        why
    }
}

/// What takes orders, and the tasks that follow them.
struct Hands {
    far: Arc<Far>,
    tasks: JoinSet<()>,
}

impl Handler for Hands {
    async fn take(&mut self, frame: Frame) -> Result<(), String> {
        while self.tasks.try_join_next().is_some() {}
        match frame.kind {
            Kind::Beat => Ok(()),
            Kind::Message => self.order(frame.call, frame.body).await,
            Kind::Data(Channel::Input) => match self.input(frame.call) {
                Some(input) => input.push(frame.body),
                None => Ok(()),
            },
            Kind::End(Channel::Input) => {
                if let Some(input) = self.input(frame.call) {
                    input.end();
                }
                Ok(())
            }
            Kind::Credit(channel @ (Channel::Output | Channel::Errors)) => {
                if let Some(credit) = self.credit(frame.call, channel) {
                    credit.grant(granted(&frame.body));
                }
                Ok(())
            }
            Kind::Closed(channel @ (Channel::Output | Channel::Errors)) => {
                if let Some(credit) = self.credit(frame.call, channel) {
                    credit.close();
                }
                Ok(())
            }
            Kind::Data(_) | Kind::End(_) | Kind::Credit(_) | Kind::Closed(_) => {
                Err("a frame of a stream that goes the other way".to_owned())
            }
        }
    }
}

/// How much a frame of credit grants.
pub(crate) fn granted(body: &[u8]) -> usize {
    <[u8; 4]>::try_from(body).map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
}

impl Hands {
    fn input(&self, call: u32) -> Option<Arc<Inbox>> {
        self.far.lock().get(&call)?.input.clone()
    }

    fn credit(&self, call: u32, channel: Channel) -> Option<Arc<Credit>> {
        let calls = self.far.lock();
        let [output, errors] = calls.get(&call)?.credits.as_ref()?;
        Some(Arc::clone(if channel == Channel::Output { output } else { errors }))
    }

    async fn order(&mut self, call: u32, body: Vec<u8>) -> Result<(), String> {
        let (order, bytes): (Order, &[u8]) = unpack(&body)?;
        match order {
            Order::Forget => {
                let forgotten = self.far.lock().remove(&call);
                if let Some(mut forgotten) = forgotten {
                    let finished = forgotten.finished.take();
                    drop(forgotten);
                    // Aborting a task only schedules the drop of its process. Without this wait an order that was sent
                    // after this one could take effect while the forgotten command still runs.
                    if let Some(finished) = finished {
                        let _ = finished.await;
                    }
                }
                return Ok(());
            }
            Order::Stop { grace_ms } => {
                return self.tell(call, Ordered::Stop(Duration::from_millis(grace_ms)));
            }
            Order::Resize { rows, columns } => return self.tell(call, Ordered::Resize(rows, columns)),
            Order::File(crate::message::FileOrder::Append { to }) => return self.far.append(to, bytes),
            _ => {}
        }
        let permit = self.room(body.len()).await;
        let bytes = bytes.to_vec();
        let mut made = Call::default();
        let far = Arc::clone(&self.far);
        let mut calls = self.far.lock();
        if calls.contains_key(&call) || call == 0 {
            return Err(format!("a second order of call {call}"));
        }
        if calls.len() >= MOST_CALLS {
            return Err(format!("more than {MOST_CALLS} calls at once"));
        }
        let work = work(&mut made, far, call, order, bytes, permit);
        let (running, finished) = oneshot::channel::<()>();
        made.finished = Some(finished);
        made.task = Some(self.tasks.spawn(async move {
            work.await;
            drop(running);
        }));
        calls.insert(call, made);
        Ok(())
    }

    /// Waits until an order of this length may be worked on.
    async fn room(&self, length: usize) -> [Option<OwnedSemaphorePermit>; 2] {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let turn = Arc::clone(&self.far.turns).acquire_owned().await.ok();
        let bytes = Arc::clone(&self.far.bytes).acquire_many_owned(length).await.ok();
        [turn, bytes]
    }

    fn tell(&self, call: u32, ordered: Ordered) -> Result<(), String> {
        if let Some(orders) = self.far.lock().get(&call).and_then(|call| call.orders.as_ref()) {
            // One that has this many waiting is told nothing new.
            let _ = orders.try_send(ordered);
        }
        Ok(())
    }
}

/// What follows an order.
fn work(
    made: &mut Call,
    far: Arc<Far>,
    call: u32,
    order: Order,
    bytes: Vec<u8>,
    permit: [Option<OwnedSemaphorePermit>; 2],
) -> impl Future<Output = ()> + Send + use<> {
    let start = match &order {
        Order::Spawn { streams, window, .. } => Some((*streams, *window)),
        Order::Run { window, .. } => Some((WireStreams::Output, *window)),
        _ => None,
    };
    let start = start.map(|(streams, window)| {
        let start = Start::new(&far.link, call, streams, window);
        made.input = start.input();
        made.credits = Some(start.credits());
        let (orders, ordered) = mpsc::channel(16);
        made.orders = Some(orders);
        (start, ordered)
    });
    if let Order::CopyIn { .. } = &order {
        made.input = Some(Inbox::new(&far.link, call, Channel::Input, copy::WINDOW));
    }
    if let Order::CopyOut { window, .. } = &order {
        let credit = || Credit::new(*window as usize);
        made.credits = Some([credit(), credit()]);
    }
    let (input, credits) = (made.input.clone(), made.credits.clone());
    async move {
        let permit = permit;
        match (order, start) {
            (Order::Spawn { command, .. }, Some((start, ordered))) => match far.spawn(start, command).await {
                Ok(job) => {
                    drop(permit);
                    job.follow(&far, ordered).await;
                }
                Err(error) => far.say(call, &Said::NotStarted(SpawnFault::of(&error)), &[]),
            },
            (Order::Run { shell, text, .. }, Some((start, ordered))) => match far.run(start, shell, &text).await {
                Ok(job) => {
                    drop(permit);
                    job.follow(&far, ordered).await;
                }
                Err(error) => far.say(call, &Said::NotRun(ShellFault::of(&error)), &[]),
            },
            (Order::Open(command), _) => match far.open(call, command).await {
                Ok(()) => return,
                Err(error) => far.say(call, &Said::NotStarted(SpawnFault::of(&error)), &[]),
            },
            (Order::File(order), _) => {
                if far.file(call, order, bytes).await {
                    return;
                }
            }
            (Order::CopyIn { to, options, keep }, _) => {
                if let Some(input) = input
                    && far.copy_in(call, input, &to.path(), options.options(), keep).await
                {
                    return;
                }
            }
            (Order::CopyOut { from, since, .. }, _) => {
                if let Some([output, _]) = credits {
                    far.copy_out(call, output, &from.path(), since).await;
                }
            }
            (Order::Close, _) => {
                far.environment.close().await;
                let held_back = far.held_back();
                let told = Told {
                    held_back,
                    ..Told::default()
                };
                far.say(call, &Said::Told(told), &[]);
            }
            (Order::SyntaxCheck(command), _) => {
                let said = match command.command() {
                    Ok(command) => far.environment.syntax_check(&command).await,
                    Err(_) => None,
                };
                far.say(call, &Said::SyntaxCheck(said), &[]);
            }
            (order, _) => far.ask(call, order).await,
        }
        // Nothing of it is left that a number would name.
        let over = far.lock().remove(&call);
        if let Some(mut over) = over {
            // This is that task.
            over.task = None;
        }
    }
}

impl Far {
    /// Answers a question that the environment may block for.
    async fn ask(self: &Arc<Self>, call: u32, order: Order) {
        let far = Arc::clone(self);
        let asked = tokio::task::spawn_blocking(move || {
            let environment = &far.environment;
            let places =
                |found: Vec<usize>| Said::Places(found.into_iter().filter_map(|at| u32::try_from(at).ok()).collect());
            let owned = |paths: Vec<WirePath>| paths.into_iter().map(WirePath::path).collect::<Vec<_>>();
            match order {
                Order::UnprotectedPaths { paths, workspace } => {
                    let paths = owned(paths);
                    let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
                    places(environment.unprotected_paths(&paths, &workspace.path()))
                }
                Order::HoldsBack(paths) => {
                    let paths = owned(paths);
                    let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
                    places(environment.holds_back(&paths))
                }
                Order::KeptBelow(path) => {
                    let kept = environment.kept_below(&path.path());
                    Said::Paths(kept.iter().map(|path| WirePath::of(path)).collect())
                }
                Order::KeptSettings(path) => {
                    let kept = environment.kept_settings(&path.path());
                    Said::Paths(kept.iter().map(|path| WirePath::of(path)).collect())
                }
                Order::Enforce {
                    workspace,
                    readonly,
                    hidden,
                    programs,
                } => match enforce(&**environment, workspace.path(), readonly, hidden, programs) {
                    Ok(enforced) => Said::Enforced(WireEnforced::of(enforced)),
                    Err(error) => Said::NotEnforced(EnforceFault::of(&error)),
                },
                Order::Tell { since, outcome } => {
                    let before = far.looks().at(since);
                    let mut outcome = outcome.outcome(environment.name());
                    environment.tell(&mut outcome, &before);
                    let mut held_back = far.held_back();
                    held_back.extend(outcome.changes.into_iter().flat_map(|changes| changes.held_back));
                    Said::Told(Told {
                        held_back,
                        hints: outcome.hints,
                        limits_hit: outcome.limits_hit,
                    })
                }
                Order::HeldBack => Said::Told(Told {
                    held_back: far.held_back(),
                    ..Told::default()
                }),
                _ => Said::Done,
            }
        });
        let said = asked.await.unwrap_or(Said::Done);
        // What was told is not there to be told any more.
        self.describe();
        self.say(call, &said, &[]);
    }
}

/// Binds an environment to what a policy asks. What is hidden arrives as its patterns.
fn enforce(
    environment: &dyn Environment,
    workspace: PathBuf,
    readonly: bool,
    hidden: Option<Vec<String>>,
    programs: Option<Vec<String>>,
) -> Result<Enforced, EnforceError> {
    let lists = hidden.iter().flat_map(|lines| lines.split(|line| line == "\0"));
    let mut policy = Policy::open();
    for list in lists.filter(|list| !list.is_empty()) {
        policy = policy.with_ignore(list).map_err(|_| EnforceError::Unsupported {
            environment: environment.name().to_owned(),
            why: "a pattern of what is hidden cannot be read there",
        })?;
    }
    let hidden = enforcement_of(&policy, &workspace).hidden;
    environment.enforce(&Enforcement {
        workspace,
        readonly,
        hidden,
        programs,
    })
}
