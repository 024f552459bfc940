//! The shell of a session: a bash in memory that keeps its variables, functions, directory and options.
//!
//! An interrupted text leaves the files as they are at that point, but the shell as it was before the text: it could
//! have been inside of a function, or of a subshell whose variables are not those of the shell.

use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::bash::{Engine, Ran, SessionState, Stdin, Stdio, ThreadPool};
use super::memory::{Inner, pipe};
use super::running::{Progress, Running};
use super::tree::Follow;
use shieling::environment::Kind;
use shieling::process::{MainEnd, Process, SessionShell, ShellError, Starting, State};
use shieling::request::Command;

/// The time that an interrupted text has to end, before the shell counts as stuck.
const SETTLING: Duration = Duration::from_secs(4);

/// The shell of a session.
pub(super) struct Shell {
    inner: Arc<Inner>,
    slot: Arc<Mutex<ShellSlot>>,
    /// The previous text.
    last: Option<Arc<Progress>>,
    pool: ThreadPool,
    largest: Option<u64>,
}

/// The idle bash, and its state after the last text.
struct ShellSlot {
    bash: Option<Engine>,
    state: State,
    ended: bool,
}

impl Shell {
    pub(super) fn new(inner: Arc<Inner>, first: &Command) -> Self {
        let bash = inner.config.bash(first.cwd(), first.variables());
        let state = State {
            cwd: first.cwd().to_path_buf(),
            variables: first.variables().clone(),
            ..State::default()
        };
        Self {
            inner,
            slot: Arc::new(Mutex::new(ShellSlot {
                bash: Some(bash),
                state,
                ended: false,
            })),
            last: None,
            pool: ThreadPool::get(),
            largest: first.file_size().map(shieling::units::ByteCount::get),
        }
    }

    fn slot(&self) -> MutexGuard<'_, ShellSlot> {
        lock(&self.slot)
    }

    async fn start(&mut self, text: &str) -> Result<Process, ShellError> {
        if let Some(last) = self.last.take() {
            let ended = poll_fn(|cx| last.poll_end(cx));
            if tokio::time::timeout(SETTLING, ended).await.is_err() {
                self.last = Some(last);
                return Err(ShellError::Stuck);
            }
        }
        if self.slot().bash.is_none() {
            return Err(ShellError::Ended);
        }
        let failed = |what| {
            move |error: std::io::Error| ShellError::Order {
                what,
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            }
        };
        let (stdout_read, stdout) = pipe().map_err(failed("making a pipe"))?;
        let (stderr_read, stderr) = pipe().map_err(failed("making a pipe"))?;
        let progress = Arc::new(Progress::default());
        let running = Running::new(Arc::clone(&progress));
        let process = Process::from_parts(stdout_read, stderr_read, Box::new(running));
        let process = process.map_err(failed("watching a pipe"))?;
        let stdio = Stdio {
            input: Stdin::Empty,
            stdout,
            stderr,
        };
        let (inner, slot, text) = (Arc::clone(&self.inner), Arc::clone(&self.slot), text.to_owned());
        let largest = self.largest;
        let accepted = Arc::clone(&progress);
        let work = move |runtime: &tokio::runtime::Runtime| {
            progress.follow(|| {
                // Taken only now, so that the bash is kept if the text is refused before.
                let bash = lock(&slot).bash.take();
                let mut bash = bash.expect("the text before has ended, and put it back");
                if !progress.begin(bash.token()) {
                    lock(&slot).bash = Some(bash);
                    return Ran::broken_off().end;
                }
                let memo = bash.remember();
                let ran = runtime.block_on(async {
                    bash.stay().await;
                    bash.run(&text, stdio, largest, &inner.config).await
                });
                if ran.broken_off {
                    // A new one, since the old one is still inside of the text.
                    let before = lock(&slot).state.clone();
                    bash = inner.config.bash(&before.cwd, &before.variables);
                    bash.come_back(&memo);
                }
                let standing = bash.settle(ran);
                inner.put_back(&slot, bash, standing, ran)
            });
        };
        self.pool.take(Box::new(work)).map_err(failed("starting it"))?;
        self.last = Some(accepted);
        Ok(process)
    }
}

impl Inner {
    /// Stores the bash after a text.
    fn put_back(&self, slot: &Mutex<ShellSlot>, bash: Engine, standing: SessionState, ran: Ran) -> MainEnd {
        let mut slot = lock(slot);
        let there = self.is_directory(&standing.cwd);
        // As in bash: if the directory was deleted, the last existing one is kept.
        slot.state = State {
            cwd: standing.cwd,
            deleted: !there,
            variables: standing.variables,
            omitted: Vec::new(),
            debug_trap_removed: false,
        };
        // As in a session of bash, a failure under `set -e` ends the text but not the shell.
        slot.ended = ran.exited;
        slot.bash = (!ran.exited).then_some(bash);
        ran.end
    }

    pub(super) fn is_directory(&self, path: &Path) -> bool {
        let mut inside = self.tree.enter();
        inside
            .find(path, Follow::All)
            .and_then(|id| inside.about(id))
            .is_ok_and(|about| about.kind == Kind::Directory)
    }
}

impl SessionShell for Shell {
    fn run<'a>(&'a mut self, text: &'a str) -> Starting<'a> {
        Box::pin(self.start(text))
    }

    fn state(&self) -> State {
        self.slot().state.clone()
    }

    fn has_ended(&self) -> bool {
        self.slot().ended
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(last) = &self.last {
            last.break_off();
        }
    }
}

fn lock(slot: &Mutex<ShellSlot>) -> MutexGuard<'_, ShellSlot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Shell, ShellError, ThreadPool};
    use crate::Memory;
    use shieling::process::SessionShell as _;
    use shieling::request::Command;

    #[tokio::test]
    async fn a_text_that_cannot_be_started_leaves_the_shell_as_it_was() {
        let memory = Memory::builder("/work").build().expect("a memory");
        let first = Command::new("true", "/work").expect("a command");
        let mut shell = Shell::new(std::sync::Arc::clone(&memory.inner), &first);
        shell.pool = ThreadPool::of(0);
        for _ in 0..2 {
            let refused = shell.run("true").await.err();
            assert!(matches!(refused, Some(ShellError::Order { .. })), "{refused:?}");
            assert!(!shell.has_ended());
        }
        shell.pool = ThreadPool::get();
        assert!(shell.run("true").await.is_ok());
    }
}
