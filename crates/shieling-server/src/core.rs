//! The interface of the library that the tools use, which tests implement without a shell.
//!
//! [`Core`] is the façade's interface to sessions, jobs and files, and gives no access around the policy.
//! [`Workplace`] combines a core with everything that a call leaves open.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::describe::{Description, ToolName};
use shieling::environment::{Capabilities, Later};
use shieling::files::{FileRequest, FileResponse, FilesError};
use shieling::outcome::Outcome;
use shieling::output::SpillTo;
use shieling::request::Command;
use shieling::session::{
    AskHumanResponse, JobError, JobId, JobInput, JobRequest, Listing, SessionName, TerminalSize, ViewRequest,
    ViewResponse, WaitFor,
};

/// The methods of the library that the tools call. Each corresponds to the method of [`Shieling`] with the same name.
pub trait Core: Send + Sync + 'static {
    /// Runs a command in a session, or in a process of its own.
    fn run(&self, session: Option<SessionName>, request: JobRequest) -> Later<'_, Outcome>;
    /// Starts a command as a job, in the place of a session or outside of every session.
    fn start(&self, session: Option<SessionName>, request: JobRequest) -> Later<'_, Outcome>;
    /// Returns the new output of a job.
    fn view(&self, ask: ViewRequest) -> Later<'_, Result<ViewResponse, JobError>>;
    /// Writes input to a job.
    fn write<'a>(
        &'a self,
        job: &'a JobId,
        input: JobInput,
        wait: Duration,
    ) -> Later<'a, Result<ViewResponse, JobError>>;
    /// Resizes the terminal of a job.
    fn resize(&self, job: &JobId, size: TerminalSize) -> Result<(), JobError>;
    /// Ends a job.
    fn kill<'a>(&'a self, job: &'a JobId) -> Later<'a, Result<ViewResponse, JobError>>;
    /// Waits for a condition of a job.
    fn wait_for<'a>(
        &'a self,
        job: &'a JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Later<'a, Result<(bool, ViewResponse), JobError>>;
    /// Lists the sessions and jobs.
    fn list(&self) -> Listing;
    /// Asks a person.
    fn ask_human<'a>(
        &'a self,
        prompt: &'a str,
        job: Option<&'a JobId>,
    ) -> Later<'a, Result<AskHumanResponse, JobError>>;
    /// Describes the environment for a model.
    fn describe<'a>(
        &'a self,
        example: &'a Command,
        told: shieling::EnvironmentFacts,
        tools: &'a [ToolName],
    ) -> Later<'a, Description>;
    /// Performs a file operation.
    fn file(&self, ask: FileRequest) -> Later<'_, Result<FileResponse, FilesError>>;
    /// Returns what the environment supports and enforces.
    fn capabilities(&self) -> Capabilities;
    /// Returns how many commands the rate limit would let through now.
    fn room(&self) -> Option<usize>;
    /// Returns where whole outputs are stored.
    fn spill(&self) -> Option<&SpillTo>;
    /// Ends all jobs and sessions, and closes the environment.
    fn close(&self) -> Later<'_, ()>;
}

impl Core for Shieling {
    fn run(&self, session: Option<SessionName>, request: JobRequest) -> Later<'_, Outcome> {
        Box::pin(async move {
            match session {
                Some(name) => self.session(name).run(request).await,
                None => self.run_job(request).await,
            }
        })
    }

    fn start(&self, session: Option<SessionName>, request: JobRequest) -> Later<'_, Outcome> {
        Box::pin(async move {
            match session {
                Some(name) => self.session(name).start(request).await,
                None => self.start_job(request).await,
            }
        })
    }

    fn view(&self, ask: ViewRequest) -> Later<'_, Result<ViewResponse, JobError>> {
        Box::pin(self.view(ask))
    }

    fn write<'a>(
        &'a self,
        job: &'a JobId,
        input: JobInput,
        wait: Duration,
    ) -> Later<'a, Result<ViewResponse, JobError>> {
        Box::pin(self.write(job, input, wait))
    }

    fn resize(&self, job: &JobId, size: TerminalSize) -> Result<(), JobError> {
        self.resize(job, size)
    }

    fn kill<'a>(&'a self, job: &'a JobId) -> Later<'a, Result<ViewResponse, JobError>> {
        Box::pin(self.kill(job))
    }

    fn wait_for<'a>(
        &'a self,
        job: &'a JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Later<'a, Result<(bool, ViewResponse), JobError>> {
        Box::pin(self.wait_for(job, what, budget))
    }

    fn list(&self) -> Listing {
        self.list()
    }

    fn ask_human<'a>(
        &'a self,
        prompt: &'a str,
        job: Option<&'a JobId>,
    ) -> Later<'a, Result<AskHumanResponse, JobError>> {
        Box::pin(self.ask_human(prompt, job))
    }

    fn describe<'a>(
        &'a self,
        example: &'a Command,
        told: shieling::EnvironmentFacts,
        tools: &'a [ToolName],
    ) -> Later<'a, Description> {
        Box::pin(self.describe(example, told, tools))
    }

    fn file(&self, ask: FileRequest) -> Later<'_, Result<FileResponse, FilesError>> {
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

/// Starts the environment, unless it is running. The error explains in lines why it cannot start.
pub type Prepare = Box<dyn Fn() -> Later<'static, Result<(), String>> + Send + Sync>;

/// Returns the facts about the environment, once it has started.
pub type FactsProvider = Box<dyn Fn() -> Later<'static, shieling::EnvironmentFacts> + Send + Sync>;

/// The place where the tools work: the library, and the defaults of its calls.
///
/// ```
/// use std::sync::Arc;
///
/// use shieling::describe::{Persistence, ToolName};
/// use shieling::request::{Command, CommandError};
/// use shieling::{EnvironmentFacts, Shieling};
/// use shieling_server::Workplace;
///
/// fn workplace(shieling: Arc<Shieling>) -> Result<Workplace, CommandError> {
///     let told = || EnvironmentFacts {
///         shell: "/bin/bash".into(),
///         network: "none".to_owned(),
///         hosts: Vec::new(),
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
    /// The template of commands, for everything that a call leaves open: directory, variables, deadline, limits. Its
    /// text is never run.
    pub template: Command,
    /// Returns the facts about the environment, once it has started.
    pub told: FactsProvider,
    /// The programs whose versions a description contains.
    pub tools: Vec<ToolName>,
    /// Starts the environment ahead of the first command, or explains why it cannot start.
    pub prepare: Prepare,
}

impl fmt::Debug for Workplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workplace")
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}
