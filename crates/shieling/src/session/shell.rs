//! One session: a shell that is started when its first command comes, and anew when a command has ended
//! it, in the same directory with the same exported variables. One command at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{JobId, SessionInfo, SessionName, Tape};
use crate::approval::Approved;
use crate::environment::Environment;
use crate::process::{Process, SessionShell, ShellError, SpawnError};
use crate::request::Command;

/// How many levels of shells a shell is in: each counts itself, and one that takes another's place is
/// not deeper than that was.
const LEVEL: &str = "SHLVL";

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    name: SessionName,
    /// Whose turn it is. Held from before a command is judged, since that depends on where the session
    /// stands, until it has ended.
    turn: Arc<tokio::sync::Mutex<Turn>>,
    known: Mutex<Known>,
    /// Told when its command goes on beyond its call.
    left: tokio::sync::Notify,
    /// Its recording, if it is recorded and has begun.
    tape: Mutex<Option<Tape>>,
}

/// The right to run a command, and the shell to run it in.
#[derive(Default)]
pub(crate) struct Turn {
    shell: Option<Box<dyn SessionShell>>,
    /// Whether there has been one.
    begun: bool,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

/// What is known of it, also while a command runs.
#[derive(Debug, Default)]
struct Known {
    /// Where it stands, with its exported variables; none before its first command.
    state: Option<(PathBuf, BTreeMap<String, String>)>,
    /// Where its first command stood.
    home: PathBuf,
    busy: Option<Busy>,
    restarts: u32,
    commands: u64,
    /// When its last command ended, if it has a shell.
    idle: Option<Instant>,
}

/// What a session is busy with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Busy {
    /// The job.
    pub(crate) job: JobId,
    /// Its text.
    pub(crate) command: String,
    /// Whether it goes on beyond its call.
    pub(crate) left: bool,
}

/// A command of a session that has begun.
pub(crate) struct Begun {
    /// It.
    pub(crate) process: Process,
    /// Whether the shell had to be started anew for it.
    pub(crate) restarted: bool,
}

/// How a session stands after a command.
pub(crate) struct After {
    /// Its directory.
    pub(crate) cwd: PathBuf,
    /// Whether the command has ended the shell.
    pub(crate) ended: bool,
    /// The exported variables that a new shell does not get, since they are not UTF-8.
    pub(crate) omitted: Vec<String>,
    /// Whether the DEBUG trap was removed, since it let no command run.
    pub(crate) debug_trap_removed: bool,
}

pub(crate) type Held = tokio::sync::OwnedMutexGuard<Turn>;

impl Session {
    pub(crate) fn new(name: SessionName) -> Self {
        Self {
            name,
            turn: Arc::default(),
            known: Mutex::default(),
            left: tokio::sync::Notify::new(),
            tape: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its turn, once the command before has ended.
    ///
    /// # Cancel safety
    /// Cancel safe; the place in the queue is lost.
    pub(crate) async fn turn(&self) -> Held {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// What it is busy with, once that goes on beyond its call.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn left(&self) -> Busy {
        loop {
            let left = self.left.notified();
            if let Some(busy) = self.busy().filter(|busy| busy.left) {
                return busy;
            }
            left.await;
        }
    }

    /// What it is busy with.
    pub(crate) fn busy(&self) -> Option<Busy> {
        self.known().busy.clone()
    }

    /// The command as this session would run it: where it stands, with its variables.
    pub(crate) fn here(&self, command: Command) -> Command {
        let mut known = self.known();
        if known.home.as_os_str().is_empty() {
            known.home = command.cwd().to_owned();
        }
        match &known.state {
            Some((cwd, variables)) => command.with_place(cwd.clone(), variables.clone()),
            None => command,
        }
    }

    /// Its recording, which is begun with the first command.
    pub(crate) fn tape(&self, begin: impl FnOnce() -> io::Result<Tape>) -> io::Result<Tape> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        match &*tape {
            Some(tape) => Ok(tape.clone()),
            None => Ok(tape.insert(begin()?).clone()),
        }
    }

    fn go_home(&self) {
        let mut known = self.known();
        let home = known.home.clone();
        if let Some((cwd, _)) = &mut known.state {
            *cwd = home;
        }
    }

    /// Begins a command. A shell is started if there is none.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing of the command runs.
    /// # Cancel safety
    /// Dropping the future ends what was started.
    pub(crate) async fn begin(
        &self,
        turn: &mut Turn,
        environment: &dyn Environment,
        approved: Approved<Command>,
        job: &JobId,
    ) -> Result<Begun, SpawnError> {
        let mut restarted = false;
        let process = loop {
            let shell = match &mut turn.shell {
                Some(shell) => shell,
                None => {
                    let opened = environment.open_shell(&approved).await;
                    if let Err(SpawnError::Directory { .. }) = &opened {
                        // Not for ever: the next command starts where the first one did.
                        self.go_home();
                    }
                    let opened = opened?;
                    if std::mem::replace(&mut turn.begun, true) {
                        restarted = true;
                    }
                    turn.shell.insert(opened)
                }
            };
            let after = environment.before(&approved).await?;
            match shell.run(approved.request().text()).await {
                Ok(process) => {
                    break match after {
                        Some(after) => process.with_end(after),
                        None => process,
                    };
                }
                // It ended between two commands: somebody has killed it.
                Err(ShellError::Ended | ShellError::Stuck) if !restarted => turn.shell = None,
                Err(error) => {
                    turn.shell = None;
                    return Err(SpawnError::Session { why: error.to_string() });
                }
            }
        };
        let mut known = self.known();
        known.commands += 1;
        known.restarts += u32::from(restarted);
        known.idle = None;
        known.busy = Some(Busy {
            job: job.clone(),
            command: approved.request().text().to_owned(),
            left: false,
        });
        Ok(Begun { process, restarted })
    }

    /// Since when it has a shell that runs nothing.
    pub(crate) fn idle(&self) -> Option<Instant> {
        self.known().idle
    }

    /// Ends its shell, if that runs nothing. Its directory and exported variables stay, and its next
    /// command says that the shell was started anew.
    pub(crate) fn rest(&self) {
        if let Ok(mut turn) = self.turn.try_lock() {
            turn.shell = None;
            self.known().idle = None;
        }
    }

    /// Whether it has a shell already.
    pub(crate) fn has_shell(turn: &Turn) -> bool {
        turn.shell.is_some()
    }

    /// The command goes on beyond its call.
    pub(crate) fn leave(&self) {
        if let Some(busy) = &mut self.known().busy {
            busy.left = true;
        }
        self.left.notify_waiters();
    }

    /// The command has ended.
    pub(crate) fn end(&self, turn: &mut Turn) -> After {
        let mut known = self.known();
        known.busy = None;
        known.idle = None;
        let mut ended = true;
        let mut omitted = Vec::new();
        let mut debug_trap_removed = false;
        if let Some(shell) = &turn.shell {
            let mut state = shell.state();
            state.variables.remove(LEVEL);
            ended = shell.has_ended();
            if ended && state.deleted {
                state.cwd = known.home.clone();
            }
            known.state = Some((state.cwd, state.variables));
            omitted = state.omitted;
            debug_trap_removed = state.debug_trap_removed;
        }
        if ended {
            known.restarts += 1;
            turn.shell = None;
            // The next shell is no surprise: this outcome has told of it.
            turn.begun = false;
        } else {
            known.idle = Some(Instant::now());
        }
        After {
            cwd: known.state.as_ref().map(|(cwd, _)| cwd.clone()).unwrap_or_default(),
            ended,
            omitted,
            debug_trap_removed,
        }
    }

    /// Its line in a list.
    pub(crate) fn info(&self, default: &std::path::Path) -> SessionInfo {
        let known = self.known();
        SessionInfo {
            session: self.name.clone(),
            cwd: known
                .state
                .as_ref()
                .map_or_else(|| default.to_owned(), |(cwd, _)| cwd.clone()),
            job: known.busy.as_ref().map(|busy| busy.job.clone()),
            restarts: known.restarts,
            commands: known.commands,
            recording: self
                .tape
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_ref()
                .map(Tape::id),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &SessionName {
        &self.name
    }
}
