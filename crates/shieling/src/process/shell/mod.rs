//! A bash that stays: one command after another, each with pipes of its own, and how each ended. The
//! part of it that is in bash is the crate `shieling-bash`.
//!
//! ```text
//! Shell ── order: number, text, two pipes ──►  bash, which runs it
//!   │  ◄── done: status, directory, variables that changed ──┘
//!   └──── its supervisor: end this command, and what it started; the shell stays
//! ```

mod shell_channel;
mod running;
mod state;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SendFlags;
use shieling_bash::message::{KEY, LONGEST_TEXT, order as ordered};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use self::running::{Running, since_boot};
use self::shell_channel::ShellChannel;
pub use self::state::State;
use super::error::SpawnError;
use super::handle::Process;
use super::job::Supervised;
use super::{memory, pipes, socket};

/// The builtin, of this very version.
static BUILTIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libshieling_bash.so"));

/// How long bash may take to load the builtin.
const GREETING: Duration = Duration::from_secs(10);
/// How long a shell may take to notice that a call which nobody waits for any more was broken off.
const SETTLING: Duration = Duration::from_secs(4);

/// How long it may take before it is told again.
const INSISTING: Duration = Duration::from_millis(60);

/// The builtin's file, one for all shells.
pub(super) fn builtin() -> io::Result<OwnedFd> {
    static FILE: OnceLock<OwnedFd> = OnceLock::new();
    let file = match FILE.get() {
        Some(file) => file,
        None => {
            let made = memory::program("shieling-bash", BUILTIN)?;
            FILE.get_or_init(|| made)
        }
    };
    // Bash opens it anew, by its name in `/proc`.
    Ok(rustix::io::fcntl_dupfd_cloexec(file, memory::FIRST_FREE)?)
}

/// A shell that stays, wherever it runs. Dropping it ends it, with everything that its commands have
/// left behind.
pub trait SessionShell: Send {
    /// Runs a text. The process that this gives is that text alone: its output, its end (whose code is
    /// the shell's `$?`), and [`stop`](Process::stop), after which the shell stays. If the text ends the
    /// shell, it ends as the shell did.
    ///
    /// One at a time: a further call waits until the one before has ended, if nobody waits for that.
    ///
    /// # Errors
    /// [`ShellError`]; the text does not run.
    /// # Cancel safety
    /// Cancel safe: nothing runs before this returns.
    fn run<'a>(&'a mut self, text: &'a str) -> Starting<'a>;

    /// How it stands, as it has told after its last command, or at its end.
    fn state(&self) -> State;

    /// Whether it takes no command any more.
    fn has_ended(&self) -> bool;
}

/// A command of a shell that is about to run.
pub type Starting<'a> = Pin<Box<dyn Future<Output = Result<Process, ShellError>> + Send + 'a>>;

impl SessionShell for Shell {
    fn run<'a>(&'a mut self, text: &'a str) -> Starting<'a> {
        Box::pin(self.order(text))
    }

    fn state(&self) -> State {
        self.channel().state()
    }

    fn has_ended(&self) -> bool {
        self.channel().has_ended()
    }
}

/// A bash that stays. Dropping it ends it, with everything that its commands have left behind.
#[derive(Debug)]
pub struct Shell {
    channel: Arc<Mutex<ShellChannel>>,
}

/// A shell that takes no command any more. Another one can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// It has ended.
    #[error("the session's shell has ended")]
    Ended,
    /// What was broken off in it did not end in time, and neither did it.
    #[error("the session's shell did not stop what it was told to break off")]
    Stuck,
    /// A command could not be handed over.
    #[error("a command cannot be handed to the session's shell: {what}: {errno}")]
    Order {
        /// What failed.
        what: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

impl Shell {
    /// Agrees on a key with a shell that was just started.
    pub(super) async fn greet(supervised: Supervised, socket: OwnedFd, errors: OwnedFd) -> Result<Self, SpawnError> {
        let failed = |what| move |source: io::Error| SpawnError::Supervisor { what, source };
        let mut key = [0; KEY];
        rustix::rand::getrandom(&mut key[..], rustix::rand::GetRandomFlags::empty())
            .map_err(io::Error::from)
            .map_err(failed("making a session's key"))?;
        let sent = rustix::net::send(&socket, &key, SendFlags::NOSIGNAL);
        let channel = ShellChannel::new(supervised, socket, key).map_err(failed("watching a session's socket"))?;
        let shell = Self {
            channel: Arc::new(Mutex::new(channel)),
        };
        let greeted = std::future::poll_fn(|cx| shell.channel().poll_settled(cx));
        let greeted = tokio::time::timeout(GREETING, greeted).await;
        if sent.is_ok() && greeted == Ok(true) {
            return Ok(shell);
        }
        let mut said = String::new();
        if let Ok(errors) = pipe::Receiver::from_owned_fd(errors) {
            let read = async { errors.take(2_000).read_to_string(&mut said).await };
            // What it has not said by now it will not say.
            let _ = tokio::time::timeout(Duration::from_millis(100), read).await;
        }
        let why = match said.trim() {
            "" => "it ended, or did not answer, while it loaded the builtin that sessions need".to_owned(),
            said => format!("it said: {said}"),
        };
        Err(SpawnError::Session { why })
    }

    fn channel(&self) -> MutexGuard<'_, ShellChannel> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn order(&mut self, text: &str) -> Result<Process, ShellError> {
        let settled = async {
            loop {
                let settled = std::future::poll_fn(|cx| self.channel().poll_settled(cx));
                match tokio::time::timeout(INSISTING, settled).await {
                    Ok(settled) => break settled,
                    Err(_) => self.channel().insist(),
                }
            }
        };
        match tokio::time::timeout(SETTLING, settled).await {
            Ok(true) => {}
            Ok(false) => return Err(ShellError::Ended),
            Err(_) => return Err(ShellError::Stuck),
        }
        let failed = |what| {
            move |error: io::Error| ShellError::Order {
                what,
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            }
        };
        let (stdout_read, stdout) = pipes::pipe().map_err(failed("making a pipe"))?;
        let (stderr_read, stderr) = pipes::pipe().map_err(failed("making a pipe"))?;
        let kept = |pipe: &OwnedFd| {
            let kept = rustix::io::fcntl_dupfd_cloexec(pipe, memory::FIRST_FREE);
            kept.map_err(io::Error::from).map_err(failed("keeping a pipe"))
        };
        let pipes = [kept(&stdout_read)?, kept(&stderr_read)?];
        // Before it can start anything.
        let since = since_boot();
        let mut channel = self.channel();
        let number = channel.next();
        if text.len() <= LONGEST_TEXT {
            let message = [&ordered(number, 0)[..], text.as_bytes()].concat();
            channel.send(&message, &[stdout.as_fd(), stderr.as_fd()])?;
        } else {
            let ended = [text.as_bytes(), b"\0"].concat();
            let file = memory::file("text", &ended).map_err(failed("keeping its text"))?;
            let message = ordered(number, text.len() as u64);
            channel.send(&message, &[stdout.as_fd(), stderr.as_fd(), file.as_fd()])?;
        }
        channel.begin((number, since), pipes);
        drop(channel);
        let running = Running::new(Arc::clone(&self.channel), number, since);
        Process::from_parts(stdout_read, stderr_read, Box::new(running)).map_err(failed("watching a pipe"))
    }
}

impl ShellChannel {
    fn send(&self, message: &[u8], fds: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), ShellError> {
        socket::send(self.socket(), message, fds).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::PIPE | Errno::CONNRESET) | None => ShellError::Ended,
            Some(errno) => ShellError::Order {
                what: "sending it",
                errno,
            },
        })
    }
}
