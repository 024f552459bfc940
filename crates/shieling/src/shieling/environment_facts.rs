//! Finding out what a description tells: asks the tools of this environment for their versions.
//!
//! A probe is a command of our own wording, `TOOL --version`, and not one that the policy's user
//! wrote, so nobody is asked about it. Programs that the workspace itself puts on the PATH are left
//! out, since starting them would be running the workspace's code unasked; and it runs in `/`, since
//! some tools read the directory that they start in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Shieling, unjudged};
use crate::approval::Mode;
use crate::describe::{
    ApprovalSetting, CommandLimits, Description, EnvironmentInfo, Persistence, PolicyInForce, Probe, ProbeLimits,
    ToolName,
};
use crate::describe::{ShellInfo, os_name, version_of};
use crate::environment::kernel;
use crate::outcome::{Outcome, WritablePaths};
use crate::policy::{Facts, Policy};
use crate::process::run_to_end;
use crate::request::Command;
use crate::units::ByteCount;

/// How long one tool may take; the description waits less than that for it.
const DEADLINE: Duration = Duration::from_secs(5);

/// What the caller knows of the environment that is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFacts {
    /// The shell that reads the commands.
    pub shell: PathBuf,
    /// What a command can reach: `none`, `loopback` or `host`.
    pub network: String,
    /// The hosts that are open by name besides, as `--allow-host` takes them.
    pub hosts: Vec<String>,
    /// What lasts from one command to the next, as the caller runs them.
    pub persistence: Persistence,
    /// The policies in force, by the names that the caller has for them.
    pub policies: Vec<PolicyInForce>,
    /// The memory of all processes together, if it is limited.
    pub memory: Option<ByteCount>,
    /// The number of processes, if it is limited.
    pub pids: Option<u64>,
    /// The rate limit, as people read it.
    pub rate: Option<String>,
    /// The text of the file in which the system names itself (`/etc/os-release`).
    pub os_release: String,
}

impl Shieling {
    /// Describes the environment as commands like `example` find it: in its directory, with its
    /// variables and limits. The text of `example` does not matter, and does not run.
    ///
    /// # Cancel safety
    /// Dropping the future ends the tools that are being asked.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn describe(&self, example: &Command, told: EnvironmentFacts, tools: &[ToolName]) -> Description {
        let probe = Asked {
            shieling: self,
            variables: without(example.variables(), &self.workspace),
        };
        let printed = probe.run(&format!("'{}' --version", told.shell.display())).await;
        let platform = self.environment.platform();
        let basis = EnvironmentInfo {
            environment: self.environment.name().to_owned(),
            os: os_name(&told.os_release).unwrap_or_else(|| "an unnamed system".to_owned()),
            kernel: platform
                .as_ref()
                .map_or_else(kernel, |platform| platform.kernel.clone()),
            shell: ShellInfo {
                version: printed
                    .as_ref()
                    .and_then(shell_version)
                    .unwrap_or_else(|| "of unknown version".to_owned()),
                path: told.shell,
            },
            cwd: example.cwd().to_owned(),
            network: told.network,
            hosts: told.hosts,
            limits: CommandLimits {
                timeout: example.deadline(),
                output: example.output_kept(),
                memory: told.memory,
                pids: told.pids,
                file_size: example.file_size(),
                rate: told.rate,
            },
            policies: told.policies,
            asking: match self.approvals.mode() {
                Mode::Always => ApprovalSetting::Always,
                Mode::OnAsk => ApprovalSetting::Policy,
                Mode::Never => ApprovalSetting::Never,
            },
            persistence: told.persistence,
            confinement: self.environment.confinement(),
            places: self.environment.places().map(with_size),
        };
        let mut described = Description::probe(basis, tools, &probe, ProbeLimits::default()).await;
        described
            .advice
            .extend(platform.into_iter().flat_map(|platform| platform.advice));
        described
    }
}

/// How many files of a kept home are counted at most.
const COUNTED: usize = 100_000;

/// With how much is in the kept home.
#[expect(
    clippy::disallowed_methods,
    reason = "the sizes of the files in a kept home are added up here"
)]
fn with_size(mut places: WritablePaths) -> WritablePaths {
    let Some((_, kept)) = &places.kept_home else {
        return places;
    };
    let (mut bytes, mut files) = (0_u64, 0);
    let mut ahead = vec![kept.clone()];
    while let Some(directory) = ahead.pop().filter(|_| files < COUNTED) {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            files += 1;
            // Of a link itself, and not of what it leads to.
            match entry.metadata() {
                Ok(found) if found.is_dir() => ahead.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    let at_least = if files < COUNTED { "" } else { "at least " };
    places.notes.push(format!(
        "The kept home holds {at_least}{}; start-up files that were left in it run in the shells here.",
        ByteCount::bytes(bytes)
    ));
    places
}

/// `5.2.15` of `GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)`.
fn shell_version(outcome: &Outcome) -> Option<String> {
    let line = version_of(outcome.exit_code, &outcome.stdout, &outcome.stderr)?;
    let number = line
        .split(' ')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(number.split('(').next().unwrap_or(number).to_owned())
}

/// The variables, with nothing of the workspace on the PATH.
fn without(variables: &BTreeMap<String, String>, workspace: &Path) -> BTreeMap<String, String> {
    let mut variables = variables.clone();
    if let Some(path) = variables.get_mut("PATH") {
        let outside = |part: &&str| Path::new(part).is_absolute() && !Path::new(part).starts_with(workspace);
        *path = path.split(':').filter(outside).collect::<Vec<_>>().join(":");
    }
    variables
}

/// Runs `TOOL --version` in the environment, like any other command but for who is asked.
struct Asked<'a> {
    shieling: &'a Shieling,
    variables: BTreeMap<String, String>,
}

impl Asked<'_> {
    async fn run(&self, text: &str) -> Option<Outcome> {
        let root = Path::new("/");
        let command = Command::new(text, root)
            .ok()?
            .with_deadline(DEADLINE)
            .ok()?
            .with_variables(self.variables.clone());
        let verdict = Policy::open().judge(&command, &Facts::new(root, root));
        let environment = &self.shieling.environment;
        let limits = crate::process::Limits::of(&command);
        let approved = unjudged::approved(command.clone(), &verdict, environment.as_ref())
            .await
            .ok()?;
        let process = environment
            .spawn(approved, crate::process::Streams::Output)
            .await
            .ok()?;
        let finished = run_to_end(process, &limits, None, None).await;
        let blank = super::entry::blank(
            &command,
            environment.name(),
            environment.confinement(),
            crate::outcome::Status::Exited,
        );
        Some(finished.into_outcome(blank))
    }
}

impl Probe for Asked<'_> {
    async fn version(&self, tool: &ToolName) -> Option<String> {
        let ended = self.run(&format!("{tool} --version")).await?;
        version_of(ended.exit_code, &ended.stdout, &ended.stderr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_workspace_are_not_started_unasked() {
        let path = "/usr/bin:.:/work/.venv/bin::/work:/opt/bin";
        let variables = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        assert_eq!(without(&variables, Path::new("/work"))["PATH"], "/usr/bin:/opt/bin");
    }
}
