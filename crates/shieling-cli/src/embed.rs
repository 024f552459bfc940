//! Environments for other programs: opened from the same options as those of the command line, in the form that
//! `shieling.toml` has. Reads no configuration file, and prints nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::approval::Approver;
use shieling::describe::{Description, Persistence, ToolName};
use shieling::outcome::{Outcome, Status};
use shieling::request::Command;
use shieling::units::ByteCount;

use crate::config::{self, Loaded, Surroundings};
use crate::describe;
use crate::options::{EnvironmentName, Settings, Source};
use crate::plan::{Plan, Purpose};
use crate::run::Library;
use crate::state;

/// What an environment is opened with, besides its settings.
#[derive(Default)]
pub struct Opening {
    /// Who is asked; nobody without one.
    pub approver: Option<Arc<dyn Approver>>,
    /// How long an answer is waited for; without it 10 minutes.
    pub answer_timeout: Option<Duration>,
    /// Whether whole outputs are kept in the state directory.
    pub store_output: bool,
    /// How much a command may print, both streams together, before it is ended; without it any amount.
    pub output_limit: Option<ByteCount>,
}

/// An environment, with its policy, its approvals, its bounds and its log.
pub struct Embedded {
    plan: Plan,
    library: Library,
}

/// Changes of one command against the plan.
#[derive(Debug, Default)]
pub struct Adjust {
    /// Its directory, absolute or relative to the workspace.
    pub cwd: Option<PathBuf>,
    /// Variables that it gets besides, or does not get.
    pub variables: Vec<(String, Option<String>)>,
    /// Its time.
    pub deadline: Option<Duration>,
    /// How many bytes of each stream its outcome keeps.
    pub output_kept: Option<ByteCount>,
}

impl Embedded {
    /// Opens an environment from settings in JSON, whose keys are the long names of the options. Nothing starts.
    ///
    /// # Errors
    /// What is wrong in the settings, or cannot be enforced here, in words.
    pub fn open(settings: &str, workspace: &Path, opening: Opening) -> Result<Self, String> {
        let settings: Settings = serde_json::from_str(settings).map_err(|error| error.to_string())?;
        let loaded = if settings.env == Some(EnvironmentName::Memory.into()) {
            // Its workspace is only a name in it.
            Loaded::only(settings, workspace.components().collect())
        } else {
            let source = Source {
                workspace: Some(workspace.to_owned()).filter(|workspace| !workspace.as_os_str().is_empty()),
                trust_workspace_config: false,
                no_config: true,
                settings,
            };
            let surroundings = Surroundings::of_this_process().map_err(|failure| failure.to_string())?;
            config::load(&source, &surroundings, Purpose::Run.default_environment())
                .map_err(|failure| failure.to_string())?
        };
        let mut plan = Plan::new(loaded, Purpose::Run).map_err(|failure| failure.to_string())?;
        plan.answer_timeout = opening.answer_timeout;
        plan.quiet = true;
        plan.store_output = opening.store_output && plan.env != EnvironmentName::Memory;
        plan.most_output = opening.output_limit;
        let library = Library::opened(&plan, opening.approver, None, false).map_err(|failure| failure.to_string())?;
        Ok(Self { plan, library })
    }

    /// The library itself.
    pub fn shieling(&self) -> &Arc<Shieling> {
        self.library.shieling()
    }

    /// Whether hosts are opened by name, so that connections to others are asked about.
    pub fn opens_hosts(&self) -> bool {
        self.plan.opens_hosts()
    }

    /// The workspace, absolute.
    pub fn workspace(&self) -> &Path {
        &self.plan.workspace
    }

    /// The command that this text asks for.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn command(&self, text: &str, adjust: Adjust) -> Result<Command, String> {
        let mut command = self
            .library
            .command(&self.plan, text)
            .map_err(|failure| failure.to_string())?;
        if let Some(cwd) = adjust.cwd {
            let cwd = self.plan.workspace.join(cwd);
            command = command.with_cwd(cwd).map_err(|error| error.to_string())?;
        }
        if !adjust.variables.is_empty() {
            let variables = adjusted(command.variables().clone(), adjust.variables)?;
            command = command.with_variables(variables);
        }
        if let Some(deadline) = adjust.deadline {
            command = command.with_deadline(deadline).map_err(|error| error.to_string())?;
        }
        if let Some(kept) = adjust.output_kept {
            command = command.with_output_kept(kept).map_err(|error| error.to_string())?;
        }
        Ok(command)
    }

    /// Adds to an outcome of status `failed` why commands cannot run here, if they cannot because of the environment.
    pub async fn explain(&self, outcome: &mut Outcome) {
        if outcome.status == Status::Failed
            && let Some(failure) = self.library.missing().await
        {
            outcome.error = Some(failure.to_string());
        }
    }

    /// The environment as a model would be told of it. Starts it.
    ///
    /// # Errors
    /// Why it cannot be started, in words.
    pub async fn describe(&self, tools: Option<&[String]>) -> Result<Description, String> {
        let tools = match tools {
            None => ToolName::defaults(),
            Some(names) => names
                .iter()
                .map(|name| {
                    name.parse()
                        .map_err(|error| format!("`{}`: {error}", name.escape_debug()))
                })
                .collect::<Result<_, String>>()?,
        };
        let words = |failure: crate::words::Failure| failure.to_string();
        let told = describe::told(&self.plan, Persistence::Session).map_err(words)?;
        self.library.described(&self.plan, told, &tools).await.map_err(words)
    }

    /// Where the whole outputs of this user's commands are kept, if that is known.
    pub fn outputs() -> Option<PathBuf> {
        state::directory().map(|state| state::outputs(&state))
    }
}

/// The variables with these changes.
fn adjusted(
    mut variables: BTreeMap<String, String>,
    changes: Vec<(String, Option<String>)>,
) -> Result<BTreeMap<String, String>, String> {
    for (name, value) in changes {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("`{}` cannot be the name of a variable", name.escape_debug()));
        }
        match value {
            Some(value) if value.contains('\0') => return Err(format!("the value of `{name}` holds a NUL byte")),
            Some(value) => variables.insert(name, value),
            None => variables.remove(&name),
        };
    }
    Ok(variables)
}
