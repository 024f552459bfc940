//! What is to hold for one invocation: the layers' settings with the defaults filled in, and
//! refused where this version or this environment cannot honour them.
//!
//! Nothing is ever passed over: an option that would not hold is an error before anything starts.

use std::path::PathBuf;

use shieling::request::Command;
use shieling::units::ByteCount;

use crate::config::Loaded;
use crate::options::{
    Approval, Assignment, EnvironmentName, Network, PolicyName, Prefix, Rate, Settings, Size, Timeout, VariableName,
};
use crate::words::Failure;

/// What the invocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A command may start.
    Run,
    /// The environment is described, as it would be.
    Describe,
    /// A command is judged; nothing starts, so nothing needs enforcing.
    Judge,
}

impl Purpose {
    /// The environment where nobody names one.
    pub(crate) fn default_environment(self) -> EnvironmentName {
        match self {
            Self::Run | Self::Describe => EnvironmentName::Sandbox,
            Self::Judge => EnvironmentName::Local,
        }
    }
}

/// Who is asked where nobody says.
pub(crate) fn default_approval(env: EnvironmentName) -> Approval {
    match env {
        EnvironmentName::Local => Approval::Always,
        EnvironmentName::Sandbox | EnvironmentName::Memory | EnvironmentName::Container => Approval::Policy,
    }
}

/// What of the network can be reached where nobody says.
pub(crate) fn default_network(env: EnvironmentName) -> Network {
    match env {
        EnvironmentName::Local => Network::Host,
        EnvironmentName::Sandbox | EnvironmentName::Memory | EnvironmentName::Container => Network::None,
    }
}

/// The limits where nobody sets one.
pub(crate) fn defaults(env: EnvironmentName) -> Settings {
    let value = "a default of ours is well formed";
    let sandbox = env == EnvironmentName::Sandbox;
    Settings {
        timeout: Some("60s".parse::<Timeout>().expect(value)),
        max_output: Some("64KiB".parse::<Size>().expect(value)),
        memory: sandbox.then(|| "4GiB".parse().expect(value)),
        pids: sandbox.then(|| "512".parse().expect(value)),
        ..Settings::default()
    }
}

/// What holds.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where commands run.
    pub(crate) env: EnvironmentName,
    /// The workspace, absolute and without symbolic links.
    pub(crate) workspace: PathBuf,
    /// The shell that was chosen.
    pub(crate) shell: Option<PathBuf>,
    /// Every policy; the strictest verdict wins.
    pub(crate) policies: Vec<PolicyName>,
    /// Whether nothing may change.
    pub(crate) readonly: bool,
    /// The allow list; empty for all.
    pub(crate) allow: Vec<Prefix>,
    /// The deny list.
    pub(crate) deny: Vec<Prefix>,
    /// What is hidden.
    pub(crate) ignore: Vec<String>,
    /// Who is asked.
    pub(crate) approval: Approval,
    /// Variables that are set.
    pub(crate) set_env: Vec<Assignment>,
    /// Variables that are passed on.
    pub(crate) pass_env: Vec<VariableName>,
    /// The rate limit.
    pub(crate) rate: Option<Rate>,
    /// The audit file.
    pub(crate) audit: Option<PathBuf>,
    timeout: Timeout,
    max_output: Size,
    file_size: Option<Size>,
}

impl Plan {
    /// Fills in what nobody said, and refuses what cannot hold.
    pub(crate) fn new(loaded: Loaded, purpose: Purpose) -> Result<Self, Failure> {
        let env = loaded.settings.env.unwrap_or(purpose.default_environment());
        if purpose != Purpose::Judge {
            is_built(env, &loaded)?;
            is_enforced(env, &loaded)?;
        }
        let approval = loaded.settings.approval.unwrap_or(default_approval(env));
        if purpose == Purpose::Run
            && env == EnvironmentName::Local
            && approval == Approval::Never
            && !loaded.settings.acknowledge_unsafe
        {
            return Err(
                Failure::new("`--env local --approval never` was not acknowledged, so nothing was started")
                    .with(
                        "because",
                        "nothing confines a command in `local`, and nobody would be asked about it",
                    )
                    .with(
                        "instead",
                        "use `--approval policy` or `--approval always`, or add `--acknowledge-unsafe`",
                    ),
            );
        }
        let Loaded {
            settings, workspace, ..
        } = loaded;
        let limits = defaults(env);
        let value = "every environment has this default";
        Ok(Self {
            env,
            workspace,
            shell: settings.shell,
            policies: settings.policy,
            readonly: settings.readonly,
            allow: settings.allow,
            deny: settings.deny,
            ignore: settings.ignore,
            approval,
            set_env: settings.set_env,
            pass_env: settings.pass_env,
            rate: settings.rate,
            audit: settings.audit,
            timeout: settings.timeout.or(limits.timeout).expect(value),
            max_output: settings.max_output.or(limits.max_output).expect(value),
            file_size: settings.file_size,
        })
    }

    /// The command that this text asks for, with everything of it but its variables.
    pub(crate) fn command(&self, text: &str) -> Result<Command, Failure> {
        Command::new(text, &self.workspace)
            .and_then(|command| command.with_deadline(self.timeout.get()))
            .and_then(|command| command.with_output_kept(self.max_output.get()))
            .map(|command| command.with_file_size(self.file_size.map(Size::get)))
            .map_err(|error| Failure::new(error.to_string()))
    }

    /// How much is kept of each stream.
    pub(crate) fn output_kept(&self) -> ByteCount {
        self.max_output.get()
    }
}

fn is_built(env: EnvironmentName, loaded: &Loaded) -> Result<(), Failure> {
    match env {
        EnvironmentName::Local => Ok(()),
        EnvironmentName::Sandbox | EnvironmentName::Memory | EnvironmentName::Container => {
            let by_default = if loaded.settings.env.is_none() {
                ", and it is the default"
            } else {
                ""
            };
            Err(Failure::new(format!(
                "the environment `{env}` is not in this version{by_default}; nothing was started"
            ))
            .with(
                "because",
                "a command is never run with less confinement than was asked for",
            )
            .with(
                "instead",
                "use `--env local --approval always` (a person is asked about every command), or \
                     `--env local --approval policy` (about those that the policy does not decide); nothing \
                     confines a command there",
            ))
        }
    }
}

/// Refuses what `local` cannot enforce. It is the only environment of this version.
fn is_enforced(env: EnvironmentName, loaded: &Loaded) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let refuse = |key: &str, why: &str, instead: &str| {
        let by = loaded
            .file_of(key)
            .map_or_else(String::new, |file| format!(" (set in {})", crate::escape::line(file)));
        Err(Failure::new(format!(
            "`--{key}` cannot be enforced in `{env}`{by}; nothing was started"
        ))
        .with("because", why)
        .with("instead", instead))
    };
    let unlimited = "this environment runs commands as ordinary processes of this host, unconfined";
    let leave = "leave it out here; the environment `sandbox`, which is to enforce it, is not in this version";
    for (key, given) in [
        ("memory", settings.memory.is_some()),
        ("pids", settings.pids.is_some()),
        ("cpus", settings.cpus.is_some()),
        ("read", !settings.read.is_empty()),
    ] {
        if given {
            return refuse(key, unlimited, leave);
        }
    }
    match settings.network {
        Some(network @ (Network::None | Network::Loopback)) => refuse(
            "network",
            &format!(
                "this environment reaches all that this host reaches, so `{}` would not hold",
                network.as_str()
            ),
            "use `--network host`, or leave it out here; the environment `sandbox`, which is to enforce it, is not \
             in this version",
        ),
        Some(Network::Host) | None => Ok(()),
    }
}
