//! A case: its name, its needs, the environment that it requires, and its checks.

use std::path::PathBuf;
use std::time::Duration;

use shieling::Builder;
use shieling::environment::{Ability, JailLimits, Later, Limit, Network};
use shieling::outcome::Status;
use shieling::policy::Policy;

use super::context::Context;
use super::{CheckFailure, Requirements};

/// The default deadline of a step, long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// The result of a check.
pub(crate) type Checked = Result<(), CheckFailure>;

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

/// A check in code.
pub(crate) type Check = for<'a> fn(&'a Context) -> Later<'a, Checked>;

/// What a case does.
pub(crate) enum Procedure {
    /// Runs commands in order.
    Steps(Vec<Step>),
    /// Runs code.
    Code(Check),
}

/// A case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: Vec<Need>,
    pub(crate) requirements: Requirements,
    /// Further configuration of the façade.
    pub(crate) builder: fn(Builder) -> Builder,
    pub(crate) trial: Procedure,
}

impl Case {
    fn new(name: &'static str, needs: Vec<Need>, trial: Procedure) -> Self {
        Self {
            name,
            needs,
            requirements: Requirements::none(),
            builder: |builder| builder,
            trial,
        }
    }

    /// Adds needs.
    pub(crate) fn needs(mut self, more: impl IntoIterator<Item = Need>) -> Self {
        self.needs.extend(more);
        self
    }

    /// Adds needed programs.
    pub(crate) fn programs(self, names: &[&'static str]) -> Self {
        let needs: Vec<_> = names.iter().map(|name| Need::Program(name)).collect();
        self.needs(needs)
    }

    /// Adds an initial file.
    pub(crate) fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.requirements.files.insert(PathBuf::from(path), content.into());
        self
    }

    /// Adds initial files.
    pub(crate) fn files(self, files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(self, |case, (path, content)| case.file(path, *content))
    }

    /// Sets the policy.
    pub(crate) fn under(mut self, policy: Policy) -> Self {
        self.requirements.policy = policy;
        self
    }

    /// Makes the environment read-only.
    pub(crate) fn readonly(self) -> Self {
        self.under(Policy::open().with_readonly())
    }

    /// Hides these paths.
    pub(crate) fn ignoring(self, patterns: &[&str]) -> Self {
        self.under(
            Policy::open()
                .with_ignore(patterns)
                .expect("patterns of ours can be read"),
        )
    }

    /// Sets limits that its commands share.
    pub(crate) fn limited(mut self, limits: JailLimits) -> Self {
        self.requirements.limits = limits;
        self
    }

    /// Sets the network.
    pub(crate) fn network(mut self, network: Network) -> Self {
        self.requirements.network = Some(network);
        self
    }

    /// Configures the façade.
    pub(crate) fn built(mut self, builder: fn(Builder) -> Builder) -> Self {
        self.builder = builder;
        self
    }
}

/// Creates a case of commands.
pub(crate) fn case(name: &'static str, steps: impl IntoIterator<Item = Step>) -> Case {
    let steps: Vec<Step> = steps.into_iter().collect();
    let mut needs = vec![Need::Can(Ability::Commands)];
    if steps.iter().any(|step| step.session.is_some()) {
        needs.push(Need::Can(Ability::Sessions));
    }
    Case::new(name, needs, Procedure::Steps(steps))
}

/// Creates a case of code that runs commands.
pub(crate) fn check(name: &'static str, check: Check) -> Case {
    Case::new(name, vec![Need::Can(Ability::Commands)], Procedure::Code(check))
}

/// Creates a case of code without needs.
pub(crate) fn look(name: &'static str, check: Check) -> Case {
    Case::new(name, Vec::new(), Procedure::Code(check))
}

/// Creates a case that reads files.
pub(crate) fn reads(name: &'static str, check: Check) -> Case {
    Case::new(name, vec![Need::Can(Ability::ReadFiles)], Procedure::Code(check))
}

/// Creates a case that writes files and reads them again.
pub(crate) fn writes(name: &'static str, check: Check) -> Case {
    let needs = vec![Need::Can(Ability::ReadFiles), Need::Can(Ability::WriteFiles)];
    Case::new(name, needs, Procedure::Code(check))
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
