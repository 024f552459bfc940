//! `shieling mcp`: the library behind an MCP server on standard input and output.
//!
//! Standard output carries the protocol and nothing else; what there is to say goes to standard error.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shieling::EnvironmentFacts;
use shieling::approval::Approver;
use shieling::audit;
use shieling::describe::{ApprovalSetting, CommandLimits, EnvironmentInfo, Persistence, ShellInfo, ToolName, os_name};
use shieling::environment::WritablePaths;
use shieling::outcome::Confinement;
use shieling::units::ByteCount;
use shieling_server::{Dialect, ElicitationOr, Server, Toolset, UnknownTool, Workplace};
use tokio::task::JoinSet;

use crate::attach::{AttachServer, QuestionQueue, QueueApprover};
use crate::clients;
use crate::config::{Printable, files, reason};
use crate::describe;
use crate::options::{Approval, EnvironmentName, Mcp, Source};
use crate::plan::{Plan, Purpose};
use crate::run::{self, Library};
use crate::signals::Signals;
use crate::state;
use crate::words::Failure;

/// How much one file of the default log holds, and how many full ones are kept besides.
const LOG: ByteCount = ByteCount::mib(16);
const GENERATIONS: u32 = 4;

/// How long what was written last may take to be taken.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Serves until the client goes away, or a signal comes.
pub(crate) fn mcp(options: &Mcp, words: &[OsString]) -> Result<u8, Failure> {
    if let Some(client) = &options.print_config {
        let client = clients::named(client)?;
        let config = client.config(&clients::given(words.iter().cloned())?);
        crate::print::write_all(io::stderr().lock(), &format!("{}\n", client.place))?;
        crate::print::write_all(io::stdout().lock(), &config)?;
        return Ok(0);
    }
    let dialect = Dialect::named(&options.dialect).map_err(|error| Failure::new(error.to_string()))?;
    let source = Source {
        settings: options.tools.over(&options.source.settings),
        ..options.source.clone()
    };
    let mut plan = run::plan(&source, Purpose::Run)?;
    plan.asks_about_held_back = true;
    let toolset = toolset(&plan, dialect)?;
    // Memory leaves nothing on this host, unless somebody asks for it.
    let kept = plan.env != EnvironmentName::Memory;
    if plan.audit.is_none() && kept {
        plan.audit = Some(match &plan.far {
            // The same directory of two machines is not one workspace.
            Some(far) => default_audit(&far.place())?,
            None => default_audit(&plan.workspace)?,
        });
        plan.audit_settings = audit::LogSettings {
            bound: LOG,
            generations: GENERATIONS,
            ..audit::LogSettings::default()
        };
    }
    let told = describe::told(&plan, Persistence::Session)?;
    let questions = QuestionQueue::default();
    let approver = match plan.approval {
        Approval::Always | Approval::Policy => {
            Some(Arc::new(ElicitationOr(QueueApprover(questions.clone()))) as Arc<dyn Approver>)
        }
        Approval::Never => None,
    };
    // What is wrong in the options is found here, before the client is told anything; the sandbox
    // itself starts while the client begins.
    let library = Arc::new(Library::opened(
        &plan,
        approver,
        Some(Arc::new(questions.clone())),
        false,
    )?);
    run::tell_what_is_open(&plan)?;
    let abilities = library.shieling().environment().capabilities().abilities;
    if toolset.names(&abilities).is_empty() {
        return Err(Failure::new("no tool is left to be offered; nothing was started")
            .with(
                "because",
                format!("`{}` serves none of those that are included and not excluded", plan.env),
            )
            .with("instead", "include others, or exclude fewer"));
    }
    let places = library.shieling().environment().places();
    let instructions = shieling_server::instructions(basis(&plan, &told, places)?, &toolset, &abilities);
    let workplace = workplace(&plan, &library, told)?;
    let runtime = run::serving()?;
    let served = runtime.block_on(async {
        let mut signals = Signals::new()?;
        // Without the socket `shieling attach` finds no server; the agent is served all the same.
        let attach_server = state::directory()
            .filter(|_| kept)
            .and_then(|state| AttachServer::open(&state).ok());
        let mut people = JoinSet::new();
        if let Some(attach_server) = attach_server {
            let (shieling, questions) = (Arc::clone(library.shieling()), questions.clone());
            people.spawn(async move { attach_server.serve(shieling, questions).await });
        }
        let server = Server::new(workplace, toolset, &instructions);
        let mut by = 0;
        let stop = async {
            by = signals.recv().await;
        };
        let served = server.serve_stdio(stop).await;
        // Also removes the socket.
        people.shutdown().await;
        library.settle().await;
        served.map_err(|error| Failure::new(error.to_string()))?;
        Ok(if by == 0 { 0 } else { 128 + by })
    });
    library.tell_held_back()?;
    // A thread may still wait for a client that has not closed its end, and would be waited for.
    runtime.shutdown_timeout(LAST_WORDS);
    served
}

/// The tools as the options say.
fn toolset(plan: &Plan, dialect: Dialect) -> Result<Toolset, Failure> {
    let unknown = |error: UnknownTool| Failure::new(format!("{error}; nothing was started"));
    let mut toolset = Toolset::new(dialect)
        .with_images(plan.tools.images)
        .with_repeats(plan.tools.repeats);
    if !plan.tools.included.is_empty() {
        toolset = toolset.including(&plan.tools.included).map_err(unknown)?;
    }
    toolset.excluding(&plan.tools.excluded).map_err(unknown)
}

fn workplace(plan: &Plan, library: &Arc<Library>, told: EnvironmentFacts) -> Result<Workplace, Failure> {
    let (prepared, learned) = (library.clone(), library.clone());
    Ok(Workplace {
        core: library.shieling().clone(),
        template: library.command(plan, "true")?,
        told: Box::new(move || {
            let (library, mut told) = (learned.clone(), told.clone());
            Box::pin(async move {
                library.learn(&mut told).await;
                told
            })
        }),
        tools: ToolName::defaults(),
        prepare: Box::new(move || {
            let library = prepared.clone();
            Box::pin(async move {
                library
                    .missing()
                    .await
                    .map_or(Ok(()), |failure| Err(failure.to_string()))
            })
        }),
    })
}

/// Where commands of a workspace are recorded unless somebody says otherwise: in a file of its own, by its
/// last name for people and by a digest of its whole path.
fn default_audit(workspace: &Path) -> Result<std::path::PathBuf, Failure> {
    let nowhere = |why: String| {
        Failure::new(format!(
            "there is no place to record commands in: {why}; nothing was started"
        ))
        .with("because", "a command does not start if it cannot be recorded")
        .with("instead", "name a file with `--audit FILE`, outside the workspace")
    };
    let state = state::directory().ok_or_else(|| nowhere("neither XDG_STATE_HOME nor HOME is set".to_owned()))?;
    let directory = state.join("audit");
    match files::private(&directory) {
        Ok(()) => Ok(directory.join(log_name(workspace))),
        Err(error) => Err(nowhere(format!("`{}`: {}", Printable(&directory), reason(&error)))),
    }
}

fn log_name(workspace: &Path) -> String {
    format!("mcp-{}.jsonl", files::name_of(workspace))
}

/// What is known before anything has started, for the client's prompt.
fn basis(plan: &Plan, told: &EnvironmentFacts, places: Option<WritablePaths>) -> Result<EnvironmentInfo, Failure> {
    let example = plan.command("true")?;
    Ok(EnvironmentInfo {
        environment: plan.env.as_str().to_owned(),
        os: os_name(&told.os_release).unwrap_or_else(|| "an unnamed system".to_owned()),
        kernel: String::new(),
        shell: ShellInfo {
            path: told.shell.clone(),
            version: String::new(),
        },
        cwd: Path::new(&plan.workspace).to_owned(),
        network: told.network.clone(),
        hosts: told.hosts.clone(),
        limits: CommandLimits {
            timeout: example.deadline(),
            output: example.output_kept(),
            memory: None,
            pids: None,
            file_size: example.file_size(),
            rate: told.rate.clone(),
        },
        policies: told.policies.clone(),
        asking: match plan.approval {
            Approval::Always => ApprovalSetting::Always,
            Approval::Policy => ApprovalSetting::Policy,
            Approval::Never => ApprovalSetting::Never,
        },
        persistence: Persistence::Session,
        confinement: Confinement::default(),
        places,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workspace_has_a_log_of_its_own_with_a_name_that_is_no_path() {
        let name = |path: &str| log_name(Path::new(path));
        assert!(name("/home/u/app").starts_with("mcp-app-"), "{}", name("/home/u/app"));
        assert_ne!(name("/home/u/app"), name("/home/v/app"));
        for odd in [
            "/",
            "/w/..x/../é\u{1b}[2K",
            "/w/a b\n",
            &format!("/{}", "x".repeat(200)),
        ] {
            let name = name(odd);
            assert!(
                name.len() < 80 && name.is_ascii() && !name.contains(['/', ' ', '\n', '\u{1b}']),
                "{name}"
            );
        }
    }
}
