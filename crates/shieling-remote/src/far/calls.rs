//! What all calls of the far side share, and what each of them has made.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shieling::approval::{ApprovalContext, Approvals, Approved, Mode, NoApprover};
use shieling::environment::{Content, Entry, Environment, LimitCounts, Node, WriteTarget};
use shieling::outcome::HeldBack;
use shieling::policy::{Decision, Verdict};
use shieling::process::{SessionShell, SpawnError};
use shieling::request::{Command, Digest};
use shieling::units::SystemClock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::copy::Made;
use crate::flow::{Credit, Inbox};
use crate::link::{Link, LinkError};
use crate::message::{Description, Said, Surroundings, WireCommand, WireState, pack};

/// How many bytes of contents that are to be written may be held at once.
pub(super) const MOST_CONTENT: usize = 256 * 1024 * 1024;
/// How many looks at what limits have done are kept.
const MOST_LOOKS: usize = 64;
/// How much is kept of what was held back, until it is asked for.
const MOST_HELD_BACK: usize = 4096;

/// A count that only goes up.
pub type Kills = Box<dyn Fn() -> u64 + Send + Sync>;

/// What all calls share.
pub(super) struct Far {
    pub(super) environment: Arc<dyn Environment>,
    pub(super) surroundings: Surroundings,
    pub(super) kills: Option<Kills>,
    pub(super) copies: bool,
    pub(super) link: Arc<Link>,
    pub(super) calls: Mutex<HashMap<u32, Call>>,
    pub(super) described: Mutex<Option<Description>>,
    pub(super) bytes: Arc<Semaphore>,
    pub(super) turns: Arc<Semaphore>,
    pub(super) contents: Arc<Semaphore>,
    pub(super) looks: Mutex<Looks>,
}

/// What there is to tell of commands, and is not told yet.
pub(super) struct Looks {
    /// The number of the last one.
    pub(super) last: u64,
    /// The last looks at what limits have done.
    pub(super) kept: VecDeque<LimitCounts>,
    pub(super) held_back: Vec<HeldBack>,
}

impl Looks {
    /// The look with this number, or the oldest that is kept.
    pub(super) fn at(&self, number: u64) -> LimitCounts {
        let back = usize::try_from(self.last.saturating_sub(number)).unwrap_or(usize::MAX);
        let at = self.kept.len().saturating_sub(1).saturating_sub(back);
        self.kept.get(at).cloned().unwrap_or_default()
    }
}

/// What there is of a call.
#[derive(Default)]
pub(super) struct Call {
    pub(super) task: Option<AbortHandle>,
    /// Resolves when the task, and with it the process that it owns, has been dropped.
    pub(super) finished: Option<oneshot::Receiver<()>>,
    pub(super) orders: Option<mpsc::Sender<Ordered>>,
    pub(super) input: Option<Arc<Inbox>>,
    pub(super) credits: Option<[Arc<Credit>; 2]>,
    pub(super) thing: Option<Thing>,
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// A shell that stays. One text at a time begins in it.
pub(super) type Shell = Arc<tokio::sync::Mutex<Standing>>;

pub(super) struct Standing {
    pub(super) shell: Box<dyn SessionShell>,
    pub(super) told: (WireState, bool),
    pub(super) file_size: Option<shieling::units::ByteCount>,
}

impl Far {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<u32, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands under a number. That is no fault of the near side: it may have been forgotten.
    pub(super) fn thing<T>(&self, call: u32, of: impl Fn(&Thing) -> Option<T>) -> Option<T> {
        of(self.lock().get(&call)?.thing.as_ref()?)
    }

    /// Keeps what a call has made, unless it was forgotten.
    pub(super) fn keep(&self, call: u32, thing: Thing) {
        let mut calls = self.lock();
        let before = match calls.get_mut(&call) {
            Some(call) => call.thing.replace(thing),
            None => Some(thing),
        };
        drop(calls);
        drop(before);
    }

    /// Answers a call before whatever stands in line.
    pub(super) fn say(&self, call: u32, said: &Said, bytes: &[u8]) {
        match pack(call, said, bytes) {
            Some(frame) => self.link.urgent(frame),
            None => self
                .link
                .end(LinkError::Violated("an order whose answer is too long".to_owned())),
        }
    }

    /// Says what the environment is, if that has changed: what confines commands may be known only once one runs.
    pub(super) fn describe(&self) {
        let looks = self.looks();
        let (look, held_back) = (looks.last, !looks.held_back.is_empty());
        drop(looks);
        let now = Description {
            look,
            held_back,
            ..Description::of(&*self.environment, &self.surroundings)
        };
        let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        if described.as_ref() != Some(&now) {
            self.say(0, &Said::Described(Box::new(now.clone())), &[]);
            *described = Some(now);
        }
    }

    pub(super) fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks, at the end of a command, whether there is something to tell of it, and says so.
    pub(super) fn look(&self) {
        if !self.environment.tells() {
            return;
        }
        let (limit_counts, held_back) = (self.environment.limit_counts(), self.environment.held_back());
        let mut looks = self.looks();
        if !looks.kept.back().is_some_and(|last| last.is_same(&limit_counts)) {
            looks.last += 1;
            looks.kept.push_back(limit_counts);
            if looks.kept.len() > MOST_LOOKS {
                looks.kept.pop_front();
            }
        }
        let room = MOST_HELD_BACK.saturating_sub(looks.held_back.len());
        looks.held_back.extend(held_back.into_iter().take(room));
        drop(looks);
        self.describe();
    }

    /// Whatever was held back of which nobody was told.
    pub(super) fn held_back(&self) -> Vec<HeldBack> {
        let mut held_back = std::mem::take(&mut self.looks().held_back);
        held_back.extend(self.environment.held_back());
        held_back
    }

    /// Takes a command as approved: it was, where the stream comes from.
    pub(super) async fn approved(&self, command: Command) -> Result<Approved<Command>, SpawnError> {
        let verdict = Verdict {
            decision: Decision::Allow,
            reasons: Vec::new(),
            commands: Vec::new(),
            effects: Vec::new(),
        };
        let case = ApprovalContext {
            verdict: &verdict,
            policy: Digest::of(b"whoever owns the stream"),
            environment: self.environment.name(),
            session: None,
        };
        let approvals = Approvals::new(Mode::Never, Arc::new(NoApprover), Arc::new(SystemClock));
        let approved = approvals.approve(command, &case, |_| Vec::new()).await;
        approved.map_err(|refused| SpawnError::Environment(Box::new(refused)))
    }

    pub(super) async fn received(&self, command: WireCommand) -> Result<Approved<Command>, SpawnError> {
        let command = command
            .command()
            .map_err(|error| SpawnError::Environment(Box::new(error)))?;
        self.approved(command).await
    }

    pub(super) async fn open(&self, call: u32, command: WireCommand) -> Result<(), SpawnError> {
        let approved = self.received(command).await?;
        let shell = self.environment.open_shell(&approved).await?;
        let state = WireState::of(shell.state());
        let standing = Standing {
            told: (state.clone(), shell.has_ended()),
            shell,
            file_size: approved.request().file_size(),
        };
        self.keep(call, Thing::Shell(Arc::new(tokio::sync::Mutex::new(standing))));
        self.describe();
        self.say(call, &Said::Opened(state), &[]);
        Ok(())
    }
}

/// What is ordered of a job that runs.
pub(super) enum Ordered {
    Stop(Duration),
    Resize(u16, u16),
}

/// What a call has made, and what its number stands for.
#[derive(Clone)]
pub(super) enum Thing {
    Shell(Shell),
    Node(Arc<dyn Node>),
    WriteTarget(Arc<Mutex<Box<dyn WriteTarget>>>),
    Open(Arc<Mutex<Box<dyn Content>>>),
    Listing(Arc<Mutex<std::iter::Peekable<std::vec::IntoIter<Entry>>>>),
    Content(Arc<Mutex<Gathered>>),
    Made(Arc<Mutex<Made>>),
}

impl Thing {
    pub(super) fn shell(&self) -> Option<Shell> {
        match self {
            Self::Shell(shell) => Some(Arc::clone(shell)),
            _ => None,
        }
    }
}

/// A content that arrives in pieces.
pub(super) struct Gathered {
    pub(super) bytes: Vec<u8>,
    pub(super) length: usize,
    pub(super) _room: OwnedSemaphorePermit,
}
