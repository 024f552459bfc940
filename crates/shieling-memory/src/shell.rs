//! A bash in memory that stays: its variables, functions, directory and options live from one text to
//! the next.
//!
//! A text that is broken off in the middle leaves its files as they are by then, and the shell as it
//! was before that text: where in it the shell stood, in a function or in a subshell whose variables
//! are not its own, cannot be told.

use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::bash::{Crew, Engine, Ran, Standing, Stdin, Stdio};
use super::running::{Progress, Running};
use super::tree::Follow;
use super::{Inner, pipe};
use shieling::environment::Kind;
use shieling::process::{MainEnd, Process, SessionShell, ShellError, Starting, State};
use shieling::request::Command;

/// How long a text may take to notice that it was broken off, before the shell counts as stuck.
const SETTLING: Duration = Duration::from_secs(4);

/// A bash that stays.
pub(super) struct Shell {
    inner: Arc<Inner>,
    seat: Arc<Mutex<Seat>>,
    /// The text before.
    last: Option<Arc<Progress>>,
    crew: Crew,
    largest: Option<u64>,
}

/// Where the bash is while it runs nothing, and how it stood after its last text.
struct Seat {
    bash: Option<Engine>,
    state: State,
    ended: bool,
}

impl Shell {
    pub(super) fn new(inner: Arc<Inner>, first: &Command) -> Self {
        let bash = inner.kit.bash(first.cwd(), first.variables());
        let state = State {
            cwd: first.cwd().to_path_buf(),
            variables: first.variables().clone(),
            ..State::default()
        };
        Self {
            inner,
            seat: Arc::new(Mutex::new(Seat {
                bash: Some(bash),
                state,
                ended: false,
            })),
            last: None,
            crew: Crew::get(),
            largest: first.file_size().map(shieling::units::ByteCount::get),
        }
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        lock(&self.seat)
    }

    async fn start(&mut self, text: &str) -> Result<Process, ShellError> {
        if let Some(last) = self.last.take() {
            let ended = poll_fn(|cx| last.poll_end(cx));
            if tokio::time::timeout(SETTLING, ended).await.is_err() {
                self.last = Some(last);
                return Err(ShellError::Stuck);
            }
        }
        if self.seat().bash.is_none() {
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
        let (inner, seat, text) = (Arc::clone(&self.inner), Arc::clone(&self.seat), text.to_owned());
        let largest = self.largest;
        let accepted = Arc::clone(&progress);
        let work = move |runtime: &tokio::runtime::Runtime| {
            progress.follow(|| {
                // Only now is it taken: whatever is refused before leaves it where it is.
                let bash = lock(&seat).bash.take();
                let mut bash = bash.expect("the text before has ended, and put it back");
                if !progress.begin(bash.token()) {
                    lock(&seat).bash = Some(bash);
                    return Ran::broken_off().end;
                }
                let memo = bash.remember();
                let ran = runtime.block_on(async {
                    bash.stay().await;
                    bash.run(&text, stdio, largest, &inner.kit).await
                });
                if ran.broken_off {
                    // A new one: the old one still stands in the middle.
                    let before = lock(&seat).state.clone();
                    bash = inner.kit.bash(&before.cwd, &before.variables);
                    bash.come_back(&memo);
                }
                let standing = bash.settle(ran);
                inner.seated(&seat, bash, standing, ran)
            });
        };
        self.crew.take(Box::new(work)).map_err(failed("starting it"))?;
        self.last = Some(accepted);
        Ok(process)
    }
}

impl Inner {
    /// Puts a bash back after a text.
    fn seated(&self, seat: &Mutex<Seat>, bash: Engine, standing: Standing, ran: Ran) -> MainEnd {
        let mut seat = lock(seat);
        let there = self.is_directory(&standing.cwd);
        // As a shell of the system: a directory that was deleted is the last one that there was.
        seat.state = State {
            cwd: standing.cwd,
            deleted: !there,
            variables: standing.variables,
            omitted: Vec::new(),
            debug_trap_removed: false,
        };
        // A failure under `set -e` ends the text and not the shell, as in a shell of the system.
        seat.ended = ran.exited;
        seat.bash = (!ran.exited).then_some(bash);
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
        self.seat().state.clone()
    }

    fn has_ended(&self) -> bool {
        self.seat().ended
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(last) = &self.last {
            last.break_off();
        }
    }
}

fn lock(seat: &Mutex<Seat>) -> MutexGuard<'_, Seat> {
    seat.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Crew, Shell, ShellError};
    use crate::Memory;
    use shieling::process::SessionShell as _;
    use shieling::request::Command;

    #[tokio::test]
    async fn a_text_that_cannot_be_started_leaves_the_shell_as_it_was() {
        let memory = Memory::builder("/work").build().expect("a memory");
        let first = Command::new("true", "/work").expect("a command");
        let mut shell = Shell::new(std::sync::Arc::clone(&memory.inner), &first);
        shell.crew = Crew::of(0);
        for _ in 0..2 {
            let refused = shell.run("true").await.err();
            assert!(matches!(refused, Some(ShellError::Order { .. })), "{refused:?}");
            assert!(!shell.has_ended());
        }
        shell.crew = Crew::get();
        assert!(shell.run("true").await.is_ok());
    }
}
