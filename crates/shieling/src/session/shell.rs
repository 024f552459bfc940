//! A session: a shell that is started for the first command, and restarted when a command has ended it, in the same
//! directory with the same exported variables. It runs one command at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{JobId, Recorder, SessionInfo, SessionName};
use crate::approval::Approved;
use crate::environment::Environment;
use crate::policy::DefinedNames;
use crate::process::{Process, SessionShell, ShellError, SpawnError};
use crate::request::Command;

/// The depth of nested shells. Each bash increments it, and a replacement shell must not be deeper than the one
/// before.
const LEVEL: &str = "SHLVL";

/// The largest variable that a new shell can be started with, as `NAME=value`: the kernel's limit for one string
/// (`MAX_ARG_STRLEN`, with its NUL). A running shell can have larger ones.
const ONE_VARIABLE: usize = 128 * 1024 - 1;
/// The most that it is started with in all: half of what the kernel takes under the usual limit of the stack.
const ALL_VARIABLES: usize = 1024 * 1024;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    name: SessionName,
    /// Held by the command that runs, from before it is judged, which depends on the session's directory, until it
    /// has ended.
    permit: Arc<tokio::sync::Mutex<CurrentShell>>,
    status: Mutex<SessionStatus>,
    /// Notified when its command continues in the background.
    backgrounded: tokio::sync::Notify,
    /// The recorder, if the session is recorded and has run a command.
    recorder: Mutex<Option<Recorder>>,
}

/// The shell of a session.
#[derive(Default)]
pub(crate) struct CurrentShell {
    shell: Option<Box<dyn SessionShell>>,
    /// Whether a shell has been started before.
    has_started: bool,
}

impl fmt::Debug for CurrentShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentShell")
            .field("has_started", &self.has_started)
            .finish_non_exhaustive()
    }
}

/// The state of a session that can be read while a command runs.
#[derive(Debug, Default)]
struct SessionStatus {
    /// The directory and the exported variables; `None` before the first command.
    state: Option<(PathBuf, BTreeMap<String, String>)>,
    /// The functions and aliases that the running shell has for certain, by which commands are judged.
    defined: DefinedNames,
    /// The directory of the first command.
    home: PathBuf,
    busy: Option<RunningCommand>,
    restarts: u32,
    commands: u64,
    /// The time at which the last command ended, if the shell is running.
    idle: Option<Instant>,
}

/// The command that a session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningCommand {
    /// The job of the command.
    pub(crate) job: JobId,
    /// The text of the command.
    pub(crate) command: String,
    /// Whether the command continues in the background, after the call that started it has returned.
    pub(crate) backgrounded: bool,
}

/// A command that was started in a session.
pub(crate) struct StartedCommand {
    /// The process of the command.
    pub(crate) process: Process,
    /// Whether the shell was restarted for it.
    pub(crate) restarted: bool,
}

/// The state of a session after a command.
pub(crate) struct CommandEnd {
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// Whether the shell stands in a directory that was removed. The working directory then is the last one that was there.
    pub(crate) deleted: bool,
    /// Whether the command ended the shell.
    pub(crate) ended: bool,
    /// The exported variables that a restarted shell does not get because they are not UTF-8, or too large.
    pub(crate) omitted: Vec<String>,
    /// Whether the DEBUG trap was removed because it prevented every further command.
    pub(crate) debug_trap_removed: bool,
}

pub(crate) type SessionPermit = tokio::sync::OwnedMutexGuard<CurrentShell>;

impl Session {
    pub(crate) fn new(name: SessionName) -> Self {
        Self {
            name,
            permit: Arc::default(),
            status: Mutex::default(),
            backgrounded: tokio::sync::Notify::new(),
            recorder: Mutex::default(),
        }
    }

    fn status(&self) -> MutexGuard<'_, SessionStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of the running command, and returns the permit to run the next one.
    ///
    /// # Cancel safety
    /// Cancel safe, but the place in the queue is lost.
    pub(crate) async fn acquire(&self) -> SessionPermit {
        Arc::clone(&self.permit).lock_owned().await
    }

    /// Waits until the running command continues in the background, and returns it.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn backgrounded(&self) -> RunningCommand {
        loop {
            let backgrounded = self.backgrounded.notified();
            if let Some(busy) = self.busy().filter(|busy| busy.backgrounded) {
                return busy;
            }
            backgrounded.await;
        }
    }

    /// Returns the command that is running.
    pub(crate) fn busy(&self) -> Option<RunningCommand> {
        self.status().busy.clone()
    }

    /// Moves a command into the session's directory, with the session's variables.
    pub(crate) fn in_session(&self, command: Command) -> Command {
        let mut status = self.status();
        if status.home.as_os_str().is_empty() {
            status.home = command.cwd().to_owned();
        }
        match &status.state {
            Some((cwd, variables)) => {
                // A new shell may be needed for it, also where no command has ended the one before.
                let mut variables = variables.clone();
                leave_out_what_is_too_large(&mut variables);
                command.with_place(cwd.clone(), variables)
            }
            None => command,
        }
    }

    /// Returns the recorder, and calls `begin` to create it for the first command.
    pub(crate) fn recorder(&self, begin: impl FnOnce() -> io::Result<Recorder>) -> io::Result<Recorder> {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        match &*recorder {
            Some(recorder) => Ok(recorder.clone()),
            None => Ok(recorder.insert(begin()?).clone()),
        }
    }

    /// Moves a session that has run commands to the directory of the first, and returns that.
    fn go_home(&self) -> Option<PathBuf> {
        let mut status = self.status();
        let home = status.home.clone();
        status.state.as_mut()?.0.clone_from(&home);
        Some(home)
    }

    /// Returns the functions and aliases that the running shell has for certain.
    pub(crate) fn defined(&self) -> DefinedNames {
        self.status().defined.clone()
    }

    /// Records functions and aliases that a command defined which ended by itself.
    pub(crate) fn has_defined(&self, names: DefinedNames) {
        self.status().defined.extend(names);
    }

    /// Starts a command, and a shell if none is running.
    ///
    /// # Errors
    /// [`SpawnError`] if the command could not be started, or was judged by functions of a shell that has gone since.
    /// # Cancel safety
    /// Dropping the future ends the command.
    pub(crate) async fn start(
        &self,
        current: &mut CurrentShell,
        environment: &dyn Environment,
        approved: Approved<Command>,
        job: &JobId,
    ) -> Result<StartedCommand, SpawnError> {
        let mut restarted = false;
        let process = loop {
            let shell = match &mut current.shell {
                Some(shell) => shell,
                None => {
                    if !std::mem::take(&mut self.status().defined).is_empty() {
                        let why = "its shell ended since its last command, and the functions and aliases that were \
                                   defined there are gone; define them again if they are needed, and repeat the command";
                        return Err(SpawnError::Session { why: why.to_owned() });
                    }
                    let opened = environment.open_shell(&approved).await;
                    let opened = match opened {
                        // A directory that is gone must not block the session forever. But a command that was meant for
                        // it runs nowhere else unsaid.
                        Err(SpawnError::Directory { path, source }) => {
                            let Some(home) = self.go_home() else {
                                return Err(SpawnError::Directory { path, source });
                            };
                            return Err(SpawnError::Session {
                                why: format!(
                                    "its directory `{}` cannot be entered ({source}); the next command starts in `{}`",
                                    path.display(),
                                    home.display()
                                ),
                            });
                        }
                        opened => opened?,
                    };
                    if std::mem::replace(&mut current.has_started, true) {
                        restarted = true;
                    }
                    current.shell.insert(opened)
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
                // The shell was killed between two commands.
                Err(ShellError::Ended | ShellError::Stuck) if !restarted => current.shell = None,
                Err(error) => {
                    current.shell = None;
                    return Err(SpawnError::Session { why: error.to_string() });
                }
            }
        };
        let mut status = self.status();
        status.commands += 1;
        status.restarts += u32::from(restarted);
        status.idle = None;
        status.busy = Some(RunningCommand {
            job: job.clone(),
            command: approved.request().text().to_owned(),
            backgrounded: false,
        });
        Ok(StartedCommand { process, restarted })
    }

    /// Returns the time since which the shell is idle.
    pub(crate) fn idle(&self) -> Option<Instant> {
        self.status().idle
    }

    /// Ends the shell if it is idle. The directory and the exported variables are kept, and the next command reports
    /// that the shell was restarted.
    pub(crate) fn close_idle_shell(&self) {
        if let Ok(mut current) = self.permit.try_lock() {
            current.shell = None;
            let mut status = self.status();
            status.idle = None;
            status.defined = DefinedNames::default();
        }
    }

    /// Returns whether a shell is running.
    pub(crate) fn has_shell(current: &CurrentShell) -> bool {
        current.shell.is_some()
    }

    /// Marks the running command as continuing in the background.
    pub(crate) fn set_backgrounded(&self) {
        if let Some(busy) = &mut self.status().busy {
            busy.backgrounded = true;
        }
        self.backgrounded.notify_waiters();
    }

    /// Records the end of the running command.
    pub(crate) fn end(&self, current: &mut CurrentShell) -> CommandEnd {
        let mut status = self.status();
        status.busy = None;
        status.idle = None;
        let mut ended = true;
        let mut omitted = Vec::new();
        let (mut debug_trap_removed, mut deleted) = (false, false);
        if let Some(shell) = &current.shell {
            let mut state = shell.state();
            state.variables.remove(LEVEL);
            ended = shell.has_ended();
            if ended && state.deleted {
                state.cwd = status.home.clone();
            }
            deleted = state.deleted && !ended;
            omitted = state.omitted;
            if ended {
                omitted.extend(leave_out_what_is_too_large(&mut state.variables));
            }
            status.state = Some((state.cwd, state.variables));
            debug_trap_removed = state.debug_trap_removed;
        }
        if ended {
            status.restarts += 1;
            status.defined = DefinedNames::default();
            current.shell = None;
            // The next start is not reported as a restart, since this outcome reports the end of the shell.
            current.has_started = false;
        } else {
            status.idle = Some(Instant::now());
        }
        CommandEnd {
            cwd: status.state.as_ref().map(|(cwd, _)| cwd.clone()).unwrap_or_default(),
            deleted,
            ended,
            omitted,
            debug_trap_removed,
        }
    }

    /// Returns the session's entry in a listing.
    pub(crate) fn info(&self, default: &std::path::Path) -> SessionInfo {
        let status = self.status();
        SessionInfo {
            session: self.name.clone(),
            cwd: status
                .state
                .as_ref()
                .map_or_else(|| default.to_owned(), |(cwd, _)| cwd.clone()),
            job: status.busy.as_ref().map(|busy| busy.job.clone()),
            restarts: status.restarts,
            commands: status.commands,
            recording: self
                .recorder
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_ref()
                .map(Recorder::id),
        }
    }

    /// Returns the session's name.
    pub(crate) fn name(&self) -> &SessionName {
        &self.name
    }
}

/// Takes out what no shell could be started with, the largest first, and returns the names.
fn leave_out_what_is_too_large(variables: &mut BTreeMap<String, String>) -> Vec<String> {
    let size = |name: &str, value: &str| name.len() + value.len() + 2;
    let mut all: usize = variables.iter().map(|(name, value)| size(name, value)).sum();
    let fits = all <= ALL_VARIABLES && variables.iter().all(|(name, value)| size(name, value) <= ONE_VARIABLE);
    if fits {
        return Vec::new();
    }
    let mut by_size: Vec<(usize, String)> = variables
        .iter()
        .map(|(name, value)| (size(name, value), name.clone()))
        .collect();
    by_size.sort_unstable_by(|one, other| other.cmp(one));
    let mut omitted = Vec::new();
    for (bytes, name) in by_size {
        if bytes <= ONE_VARIABLE && all <= ALL_VARIABLES {
            break;
        }
        all -= bytes;
        variables.remove(&name);
        omitted.push(name);
    }
    omitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_new_shell_cannot_be_started_with_is_left_out_the_largest_first() {
        let variables = |sizes: &[(&str, usize)]| -> BTreeMap<String, String> {
            sizes
                .iter()
                .map(|(name, size)| ((*name).to_owned(), "x".repeat(*size)))
                .collect()
        };
        let mut one = variables(&[("A", 10), ("BIG", 200_000), ("JUST", ONE_VARIABLE - 6)]);
        assert_eq!(leave_out_what_is_too_large(&mut one), ["BIG"]);
        assert_eq!(one.len(), 2);
        let names: Vec<String> = (0..60).map(|number| format!("V{number:02}")).collect();
        let many: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 100_000)).collect();
        let mut many = variables(&many);
        many.insert("SMALL".to_owned(), "x".to_owned());
        assert_eq!(leave_out_what_is_too_large(&mut many).len(), 50);
        assert!(many.contains_key("SMALL"));
        assert_eq!(
            leave_out_what_is_too_large(&mut variables(&[("A", 10)])),
            Vec::<String>::new()
        );
    }
}
