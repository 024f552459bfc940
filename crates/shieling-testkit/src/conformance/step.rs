//! The steps of a case: commands with their expected results.

use std::time::Duration;

use shieling::environment::{Ability, Limit, Network};
use shieling::outcome::Status;

/// The default deadline of a step, long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// What an environment must have for a case to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// An ability.
    Can(Ability),
    /// Ignored paths do not exist in it.
    Hides,
    /// Under readonly, nothing can be changed in it.
    EnforcesReadonly,
    /// Under an allow list, nothing else can be executed in it.
    EnforcesAllow,
    /// It can set this limit.
    Limits(Limit),
    /// It supports this network.
    Gives(Network),
    /// There is a directory beside the workspace.
    OutsideDirectory,
    /// Its shell has this program.
    Program(&'static str),
}

/// The expected content of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    /// This text, with `{W}` for the workspace.
    Is(String),
    /// Contains these texts.
    Has(Vec<&'static str>),
    /// Any text.
    Any,
}

/// A command with its expected result: by default, exit code 0 and no output.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) session: Option<&'static str>,
    pub(crate) deadline: Duration,
    pub(crate) status: Status,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    /// `None` accepts either.
    pub(crate) restarted: Option<bool>,
    pub(crate) cwd: Option<&'static str>,
    /// The expected total size of each stream.
    pub(crate) bytes: Option<(u64, u64)>,
    /// The working directory, relative to the workspace.
    pub(crate) directory: &'static str,
}

impl Step {
    pub(crate) fn out(mut self, text: impl Into<String>) -> Self {
        self.stdout = Text::Is(text.into());
        self
    }

    pub(crate) fn err(mut self, text: impl Into<String>) -> Self {
        self.stderr = Text::Is(text.into());
        self
    }

    /// Expects a message on standard error, whose text depends on the shell.
    pub(crate) fn err_has(mut self, text: &'static str) -> Self {
        self.stderr = Text::Has(vec![text]);
        self
    }

    /// Accepts any output.
    pub(crate) fn noisy(mut self) -> Self {
        (self.stdout, self.stderr) = (Text::Any, Text::Any);
        self
    }

    pub(crate) fn code(mut self, code: i32) -> Self {
        self.code = Some(code);
        self
    }

    pub(crate) fn any_code(mut self) -> Self {
        self.code = None;
        self
    }

    pub(crate) fn signalled(mut self, signal: i32) -> Self {
        self.status = Status::Signalled;
        self.code = Some(128 + signal);
        self
    }

    /// Sets a deadline that is too short for the command.
    pub(crate) fn times_out(mut self, milliseconds: u64) -> Self {
        self.deadline = Duration::from_millis(milliseconds);
        self.status = Status::TimedOut;
        self.code = Some(124);
        // The message of the shell about children that were killed by a signal.
        self.stderr = Text::Any;
        self
    }

    pub(crate) fn restarted(mut self) -> Self {
        self.restarted = Some(true);
        self
    }

    pub(crate) fn cwd(mut self, cwd: &'static str) -> Self {
        self.cwd = Some(cwd);
        self
    }

    pub(crate) fn bytes(mut self, stdout: u64, stderr: u64) -> Self {
        self.bytes = Some((stdout, stderr));
        self
    }

    pub(crate) fn starting_in(mut self, directory: &'static str) -> Self {
        self.directory = directory;
        self
    }
}

/// Creates a step in a new process.
pub(crate) fn run(text: impl Into<String>) -> Step {
    Step {
        text: text.into(),
        session: None,
        deadline: DEADLINE,
        status: Status::Exited,
        code: Some(0),
        stdout: Text::Is(String::new()),
        stderr: Text::Is(String::new()),
        restarted: Some(false),
        cwd: None,
        bytes: None,
        directory: "",
    }
}

/// Creates a step in the session `main`.
pub(crate) fn shell(text: impl Into<String>) -> Step {
    shell_in("main", text)
}

/// Creates a step in this session.
pub(crate) fn shell_in(session: &'static str, text: impl Into<String>) -> Step {
    Step {
        session: Some(session),
        ..run(text)
    }
}
