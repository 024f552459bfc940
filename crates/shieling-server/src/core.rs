//! What the tools need of the library, so that they can be tried without a shell behind them.
//!
//! [`Core`] is the façade's surface for sessions, jobs and files, and nothing else: it has no way around the
//! policy. [`Workplace`] is a core with all that a call leaves open.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::describe::{Description, ToolName};
use shieling::environment::{Capabilities, Later};
use shieling::files::{FileAnswer, FileAsk, FilesError};
use shieling::outcome::Outcome;
use shieling::output::SpillTo;
use shieling::request::Command;
use shieling::session::{Answered, Call, Input, JobError, JobId, Listing, Size, View, ViewAsk, WaitFor};

/// What the tools call. Each method is the one of [`Shieling`] that has its name.
pub trait Core: Send + Sync + 'static {
    /// Runs a command.
    fn shell(&self, call: Call) -> Later<'_, Outcome>;
    /// What is new of a job.
    fn view(&self, ask: ViewAsk) -> Later<'_, Result<View, JobError>>;
    /// Types into a job.
    fn write<'a>(&'a self, job: &'a JobId, input: Input, wait: Duration) -> Later<'a, Result<View, JobError>>;
    /// Makes a job's terminal so large.
    fn resize(&self, job: &JobId, size: Size) -> Result<(), JobError>;
    /// Ends a job.
    fn kill<'a>(&'a self, job: &'a JobId) -> Later<'a, Result<View, JobError>>;
    /// Waits for something of a job.
    fn wait_for<'a>(
        &'a self,
        job: &'a JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Later<'a, Result<(bool, View), JobError>>;
    /// The sessions and jobs.
    fn list(&self) -> Listing;
    /// Asks a person.
    fn ask_human<'a>(&'a self, prompt: &'a str, job: Option<&'a JobId>) -> Later<'a, Result<Answered, JobError>>;
    /// The environment as a model should be told of it.
    fn describe<'a>(
        &'a self,
        example: &'a Command,
        told: shieling::Told,
        tools: &'a [ToolName],
    ) -> Later<'a, Description>;
    /// Does what is asked of files.
    fn file(&self, ask: FileAsk) -> Later<'_, Result<FileAnswer, FilesError>>;
    /// What the environment can do and enforce.
    fn capabilities(&self) -> Capabilities;
    /// How many commands the rate limit would let through now.
    fn room(&self) -> Option<usize>;
    /// Where whole outputs are.
    fn spill(&self) -> Option<&SpillTo>;
    /// Ends all of it.
    fn close(&self) -> Later<'_, ()>;
}

impl Core for Shieling {
    fn shell(&self, call: Call) -> Later<'_, Outcome> {
        Box::pin(self.shell(call))
    }

    fn view(&self, ask: ViewAsk) -> Later<'_, Result<View, JobError>> {
        Box::pin(self.view(ask))
    }

    fn write<'a>(&'a self, job: &'a JobId, input: Input, wait: Duration) -> Later<'a, Result<View, JobError>> {
        Box::pin(self.write(job, input, wait))
    }

    fn resize(&self, job: &JobId, size: Size) -> Result<(), JobError> {
        self.resize(job, size)
    }

    fn kill<'a>(&'a self, job: &'a JobId) -> Later<'a, Result<View, JobError>> {
        Box::pin(self.kill(job))
    }

    fn wait_for<'a>(
        &'a self,
        job: &'a JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Later<'a, Result<(bool, View), JobError>> {
        Box::pin(self.wait_for(job, what, budget))
    }

    fn list(&self) -> Listing {
        self.list()
    }

    fn ask_human<'a>(&'a self, prompt: &'a str, job: Option<&'a JobId>) -> Later<'a, Result<Answered, JobError>> {
        Box::pin(self.ask_human(prompt, job))
    }

    fn describe<'a>(
        &'a self,
        example: &'a Command,
        told: shieling::Told,
        tools: &'a [ToolName],
    ) -> Later<'a, Description> {
        Box::pin(self.describe(example, told, tools))
    }

    fn file(&self, ask: FileAsk) -> Later<'_, Result<FileAnswer, FilesError>> {
        Box::pin(self.file(ask))
    }

    fn capabilities(&self) -> Capabilities {
        self.environment().capabilities()
    }

    fn room(&self) -> Option<usize> {
        self.room()
    }

    fn spill(&self) -> Option<&SpillTo> {
        self.spill()
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(self.close())
    }
}

/// Starts the environment, if it is not started. An error says why it cannot be, in lines.
pub type Prepare = Box<dyn Fn() -> Later<'static, Result<(), String>> + Send + Sync>;

/// Gives what is known of the environment, once that has started.
pub type Told = Box<dyn Fn() -> Later<'static, shieling::Told> + Send + Sync>;

/// Where the tools work.
///
/// ```
/// use std::sync::Arc;
///
/// use shieling::describe::{Persistence, ToolName};
/// use shieling::request::{Command, CommandError};
/// use shieling::{Shieling, Told};
/// use shieling_server::Workplace;
///
/// fn workplace(shieling: Arc<Shieling>) -> Result<Workplace, CommandError> {
///     let told = || Told {
///         shell: "/bin/bash".into(),
///         network: "none".to_owned(),
///         persistence: Persistence::Session,
///         policies: Vec::new(),
///         memory: None,
///         pids: None,
///         rate: None,
///         os_release: String::new(),
///     };
///     Ok(Workplace {
///         core: shieling,
///         template: Command::new("true", "/work")?,
///         told: Box::new(move || Box::pin(async move { told() })),
///         tools: ToolName::defaults(),
///         prepare: Box::new(|| Box::pin(async { Ok(()) })),
///     })
/// }
/// ```
pub struct Workplace {
    /// The library.
    pub core: Arc<dyn Core>,
    /// A command with all that a call leaves open: directory, variables, time, limits. Its text is
    /// never run.
    pub template: Command,
    /// Gives what its owner knows of the environment, once that has started.
    pub told: Told,
    /// The programs whose versions a description names.
    pub tools: Vec<ToolName>,
    /// Starts the environment ahead of the first command, and says why one cannot start.
    pub prepare: Prepare,
}

impl fmt::Debug for Workplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workplace")
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}
