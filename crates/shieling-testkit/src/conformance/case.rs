//! A case: a sentence, what it needs, the place it wants, and what is tried there.

use std::path::PathBuf;
use std::time::Duration;

use shieling::Builder;
use shieling::environment::{Ability, JailLimits, Later, Limit, Network};
use shieling::outcome::Status;
use shieling::policy::Policy;

use super::at::At;
use super::{Wishes, Wrong};

/// How long a step may run that does not say: long enough for a machine with much else to do.
const DEADLINE: Duration = Duration::from_secs(20);

/// Whether something holds.
pub(crate) type Checked = Result<(), Wrong>;

/// What an environment must have for a case to be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// This can be done in it.
    Can(Ability),
    /// Ignored paths do not exist in it.
    Hides,
    /// Under readonly, nothing can be changed in it.
    EnforcesReadonly,
    /// Under an allow list, nothing else can be executed in it.
    EnforcesAllow,
    /// It can set this limit.
    Limits(Limit),
    /// It can give this network.
    Gives(Network),
    /// Something lies beside the workspace.
    Outside,
    /// Its shell knows this program.
    Program(&'static str),
}

/// Code that looks at a place.
pub(crate) type Check = for<'a> fn(&'a At) -> Later<'a, Checked>;

/// What is tried.
pub(crate) enum Trial {
    /// Commands, one after the other.
    Steps(Vec<Step>),
    /// Something that takes more than a table.
    Code(Check),
}

/// A case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: Vec<Need>,
    pub(crate) wishes: Wishes,
    /// What the façade is built with besides.
    pub(crate) builder: fn(Builder) -> Builder,
    pub(crate) trial: Trial,
}

impl Case {
    fn new(name: &'static str, needs: Vec<Need>, trial: Trial) -> Self {
        Self {
            name,
            needs,
            wishes: Wishes::none(),
            builder: |builder| builder,
            trial,
        }
    }

    /// It also needs these.
    pub(crate) fn needs(mut self, more: impl IntoIterator<Item = Need>) -> Self {
        self.needs.extend(more);
        self
    }

    /// It also needs these programs.
    pub(crate) fn programs(self, names: &[&'static str]) -> Self {
        let needs: Vec<_> = names.iter().map(|name| Need::Program(name)).collect();
        self.needs(needs)
    }

    /// It begins with this file.
    pub(crate) fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.wishes.files.insert(PathBuf::from(path), content.into());
        self
    }

    /// It begins with these files.
    pub(crate) fn files(self, files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(self, |case, (path, content)| case.file(path, *content))
    }

    /// It is under this policy.
    pub(crate) fn under(mut self, policy: Policy) -> Self {
        self.wishes.policy = policy;
        self
    }

    /// Nothing may change.
    pub(crate) fn readonly(self) -> Self {
        self.under(Policy::open().with_readonly())
    }

    /// These paths are hidden.
    pub(crate) fn ignoring(self, patterns: &[&str]) -> Self {
        self.under(
            Policy::open()
                .with_ignore(patterns)
                .expect("patterns of ours can be read"),
        )
    }

    /// Its commands share these limits.
    pub(crate) fn limited(mut self, limits: JailLimits) -> Self {
        self.wishes.limits = limits;
        self
    }

    /// It reaches this of the network.
    pub(crate) fn network(mut self, network: Network) -> Self {
        self.wishes.network = Some(network);
        self
    }

    /// Its façade is built with this.
    pub(crate) fn built(mut self, builder: fn(Builder) -> Builder) -> Self {
        self.builder = builder;
        self
    }
}

/// A case of commands.
pub(crate) fn case(name: &'static str, steps: impl IntoIterator<Item = Step>) -> Case {
    let steps: Vec<Step> = steps.into_iter().collect();
    let mut needs = vec![Need::Can(Ability::Commands)];
    if steps.iter().any(|step| step.session.is_some()) {
        needs.push(Need::Can(Ability::Sessions));
    }
    Case::new(name, needs, Trial::Steps(steps))
}

/// A case of code that runs commands.
pub(crate) fn check(name: &'static str, check: Check) -> Case {
    Case::new(name, vec![Need::Can(Ability::Commands)], Trial::Code(check))
}

/// A case of code that needs nothing by itself.
pub(crate) fn look(name: &'static str, check: Check) -> Case {
    Case::new(name, Vec::new(), Trial::Code(check))
}

/// A case of files that are read.
pub(crate) fn reads(name: &'static str, check: Check) -> Case {
    Case::new(name, vec![Need::Can(Ability::ReadFiles)], Trial::Code(check))
}

/// A case of files that are written, and read again.
pub(crate) fn writes(name: &'static str, check: Check) -> Case {
    let needs = vec![Need::Can(Ability::ReadFiles), Need::Can(Ability::WriteFiles)];
    Case::new(name, needs, Trial::Code(check))
}

/// What is expected of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    /// This, with `{W}` for the workspace.
    Is(String),
    /// These, somewhere.
    Has(Vec<&'static str>),
    /// Anything.
    Any,
}

/// A command, and what is expected of it. Unless told: it exits with 0, without output.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) session: Option<&'static str>,
    pub(crate) deadline: Duration,
    pub(crate) status: Status,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    /// None if either is right.
    pub(crate) restarted: Option<bool>,
    pub(crate) cwd: Option<&'static str>,
    /// How much was written to each stream in all.
    pub(crate) bytes: Option<(u64, u64)>,
    /// Where it starts, relative to the workspace.
    pub(crate) directory: &'static str,
}

/// A command as a process of its own.
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

/// A command in the session `main`.
pub(crate) fn shell(text: impl Into<String>) -> Step {
    shell_in("main", text)
}

/// A command in this session.
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

    /// Something is told on standard error, as each shell words it.
    pub(crate) fn err_has(mut self, text: &'static str) -> Self {
        self.stderr = Text::Has(vec![text]);
        self
    }

    /// What it writes is not what the case is about.
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

    /// Its time is so short that it does not come to its end.
    pub(crate) fn times_out(mut self, milliseconds: u64) -> Self {
        self.deadline = Duration::from_millis(milliseconds);
        self.status = Status::TimedOut;
        self.code = Some(124);
        // What a shell says of children that a signal ended.
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
