//! What is to hold for one invocation: the layers' settings with the defaults filled in, and
//! refused where this version or this environment cannot honour them.
//!
//! Nothing is ever passed over: an option that would not hold is an error before anything starts.

use std::path::PathBuf;
use std::time::Duration;

use shieling::audit;
use shieling::environment::JailLimits;
use shieling::request::Command;
use shieling::units::ByteCount;

use crate::config::{self, Loaded};
use crate::options::{
    Approval, Assignment, Cpus, EnvironmentName, Home, Isolation, Network, Pids, PolicyName, Prefix, Rate, Settings,
    Size, Timeout, VariableName,
};
use crate::words::Failure;

/// How long a command of `exec` may take where nobody says: as long as most builds do.
const EXEC_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What the invocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// One command is run.
    Exec,
    /// Commands may start.
    Run,
    /// A person works in a shell of their own.
    Shell,
    /// The environment is described, as it would be.
    Describe,
    /// A command is judged; nothing starts, so nothing needs enforcing.
    Judge,
}

impl Purpose {
    /// The environment where nobody names one.
    pub(crate) fn default_environment(self) -> EnvironmentName {
        match self {
            Self::Exec | Self::Run | Self::Shell | Self::Describe => EnvironmentName::Sandbox,
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

/// What of the network can be reached where nobody says. A loopback of its own takes a network namespace.
pub(crate) fn default_network(env: EnvironmentName, isolation: Isolation) -> Network {
    match (env, isolation) {
        (EnvironmentName::Local, _) => Network::Host,
        (EnvironmentName::Sandbox, Isolation::Full) => Network::Loopback,
        (EnvironmentName::Sandbox, Isolation::Landlock) => Network::None,
        (EnvironmentName::Memory | EnvironmentName::Container, _) => Network::None,
    }
}

/// The limits where nobody sets one. Without namespaces memory and processes cannot be limited on
/// every host, so there they are only where somebody asks for it.
pub(crate) fn defaults(env: EnvironmentName, isolation: Isolation) -> Settings {
    let value = "a default of ours is well formed";
    let sandbox = env == EnvironmentName::Sandbox && isolation == Isolation::Full;
    Settings {
        timeout: Some("60s".parse::<Timeout>().expect(value)),
        max_output: Some("64KiB".parse::<Size>().expect(value)),
        max_image_bytes: Some("10MiB".parse::<Size>().expect(value)),
        max_repeats: Some(5),
        memory: match env {
            EnvironmentName::Memory => Some("256MiB".parse().expect(value)),
            EnvironmentName::Local | EnvironmentName::Sandbox | EnvironmentName::Container => {
                sandbox.then(|| "4GiB".parse().expect(value))
            }
        },
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
    /// How it is kept.
    pub(crate) audit_settings: audit::LogSettings,
    /// Whether what commands print is recorded.
    pub(crate) record: bool,
    /// Whether output beyond what an outcome keeps is stored, for `shieling log output`.
    pub(crate) store_output: bool,
    /// How much stands between a command and this host.
    pub(crate) isolation: Isolation,
    /// The limits that somebody asked for.
    pub(crate) asked: JailLimits,
    /// What of the network can be reached.
    pub(crate) network: Network,
    /// Whether somebody said so.
    pub(crate) network_asked: bool,
    /// More that can be read, absolute.
    pub(crate) read: Vec<PathBuf>,
    /// More that can be written, absolute.
    pub(crate) write: Vec<PathBuf>,
    /// Whether the home is kept.
    pub(crate) keeps_home: bool,
    /// Whether files that run code later can be changed.
    pub(crate) open_protected: bool,
    /// Whether the workspace may be a home, or hold one.
    pub(crate) allow_home: bool,
    /// The files of the workspace that decide what commands may do: its configuration, and policies.
    pub(crate) fixed: Vec<PathBuf>,
    /// The limits that hold, with the defaults.
    pub(crate) limits: JailLimits,
    /// Which tools a server offers.
    pub(crate) tools: ToolRules,
    /// Whether every command is asked about.
    pub(crate) require_shell_approval: bool,
    /// Whether every change of files by a tool is asked about.
    pub(crate) require_write_approval: bool,
    /// How long an answer is waited for; the library's own time if nobody says.
    pub(crate) patience: Option<Duration>,
    /// Whether one command is all that starts.
    pub(crate) once: bool,
    timeout: Duration,
    /// What somebody asked for; the default holds for outcomes alone.
    output_limit: Option<ByteCount>,
    max_output: Size,
    file_size: Option<Size>,
}

/// The rules for the tools of a server.
#[derive(Debug, Clone)]
pub(crate) struct ToolRules {
    /// Only these are offered; empty: all.
    pub(crate) included: Vec<String>,
    /// These are not.
    pub(crate) excluded: Vec<String>,
    /// The largest image that is given as one; none: no image is.
    pub(crate) images: Option<ByteCount>,
    /// How often the same failing call is tried; 0: as often as it is made.
    pub(crate) repeats: u32,
}

impl Plan {
    /// Fills in what nobody said, and refuses what cannot hold.
    pub(crate) fn new(loaded: Loaded, purpose: Purpose) -> Result<Self, Failure> {
        let env = loaded.settings.env.unwrap_or(purpose.default_environment());
        if purpose != Purpose::Judge {
            is_built(env)?;
            is_enforced(env, &loaded)?;
        }
        if purpose == Purpose::Shell {
            holds_unread(env, &loaded)?;
        }
        let typed_timeout = loaded.settings.timeout.filter(|_| loaded.file_of("timeout").is_none());
        let approval = loaded.settings.approval.unwrap_or(default_approval(env));
        if matches!(purpose, Purpose::Exec | Purpose::Run)
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
            settings,
            workspace,
            files,
            ..
        } = loaded;
        let policies = settings.policy.iter().filter_map(|name| match name {
            PolicyName::File(path) => Some(path.clone()),
            PolicyName::Preset(_) => None,
        });
        let mut fixed: Vec<PathBuf> = files.into_iter().chain(policies).collect();
        let writable: Vec<&PathBuf> = settings.write.iter().chain([&workspace]).collect();
        fixed.retain(|path| writable.iter().any(|root| config::files::leads_through(path, root)));
        let isolation = settings.isolation.unwrap_or(Isolation::Full);
        let limits = defaults(env, isolation);
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
            audit_settings: audit::LogSettings::default(),
            record: settings.record,
            store_output: true,
            isolation,
            asked: jail_limits(settings.memory, settings.pids, settings.cpus),
            network: settings.network.unwrap_or(default_network(env, isolation)),
            network_asked: settings.network.is_some(),
            read: settings.read,
            write: settings.write,
            keeps_home: settings.home == Some(Home::Persistent),
            open_protected: settings.open_protected,
            allow_home: settings.allow_home,
            fixed,
            limits: jail_limits(
                settings.memory.or(limits.memory),
                settings.pids.or(limits.pids),
                settings.cpus,
            ),
            patience: None,
            once: matches!(purpose, Purpose::Exec | Purpose::Shell | Purpose::Describe),
            timeout: match purpose {
                Purpose::Shell => typed_timeout.map_or(Duration::MAX, Timeout::get),
                Purpose::Exec => settings.timeout.map_or(EXEC_TIMEOUT, Timeout::get),
                Purpose::Run | Purpose::Describe | Purpose::Judge => {
                    settings.timeout.or(limits.timeout).expect(value).get()
                }
            },
            tools: ToolRules {
                included: settings.include_tool,
                excluded: settings.exclude_tool,
                images: settings
                    .max_image_bytes
                    .or(limits.max_image_bytes)
                    .filter(|_| !settings.no_images)
                    .map(Size::get),
                repeats: settings.max_repeats.or(limits.max_repeats).expect(value),
            },
            require_shell_approval: settings.require_shell_approval,
            require_write_approval: settings.require_write_approval,
            output_limit: settings.max_output.map(Size::get),
            max_output: settings.max_output.or(limits.max_output).expect(value),
            file_size: settings.file_size,
        })
    }

    /// The command that this text asks for, with everything of it but its variables.
    pub(crate) fn command(&self, text: &str) -> Result<Command, Failure> {
        Command::new(text, &self.workspace)
            .and_then(|command| command.with_deadline(self.timeout))
            .and_then(|command| command.with_output_kept(self.max_output.get()))
            .map(|command| command.with_file_size(self.file_size.map(Size::get)))
            .map_err(|error| Failure::new(error.to_string()))
    }

    /// How much memory all processes of the environment may use together.
    pub(crate) fn memory_limit(&self) -> Option<ByteCount> {
        self.limits.memory.map(ByteCount::bytes)
    }

    /// Whether commands can change the files of the workspace that decide what they may do, which then holds
    /// for whoever starts next.
    pub(crate) fn leaves_open(&self) -> bool {
        let kept = match self.env {
            EnvironmentName::Memory => true,
            EnvironmentName::Local => false,
            EnvironmentName::Sandbox | EnvironmentName::Container => self.readonly || self.isolation == Isolation::Full,
        };
        !kept && !self.fixed.is_empty()
    }

    /// How much of each stream is passed on; all if nobody set a limit.
    pub(crate) fn output_limit(&self) -> Option<ByteCount> {
        self.output_limit
    }
}

fn jail_limits(memory: Option<Size>, pids: Option<Pids>, cpus: Option<Cpus>) -> JailLimits {
    JailLimits {
        memory: memory.map(|size| size.get().get()),
        pids: pids.map(|pids| pids.get().into()),
        cpu_thousandths: cpus.map(Cpus::thousandths),
        open_files: None,
    }
}

/// Whether commands run in this environment in this version.
pub(crate) fn is_available(env: EnvironmentName) -> bool {
    match env {
        EnvironmentName::Sandbox | EnvironmentName::Local => true,
        EnvironmentName::Memory => cfg!(feature = "memory"),
        EnvironmentName::Container => false,
    }
}

fn is_built(env: EnvironmentName) -> Result<(), Failure> {
    if is_available(env) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the environment `{env}` is not in this version; nothing was started"
    ))
    .with(
        "because",
        "a command is never run with less confinement than was asked for",
    )
    .with(
        "instead",
        "use `--env sandbox`, which is the default, or `--env local --approval always` (nothing confines a command \
         there, and a person is asked about every one)",
    ))
}

/// Refuses what would not hold for a person's shell, in which nobody reads what is typed.
fn holds_unread(env: EnvironmentName, loaded: &Loaded) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let refuse = |key: &str, why: &str, instead: &str| {
        let by = loaded
            .file_of(key)
            .map_or_else(String::new, |file| format!(" (set in {})", crate::escape::line(file)));
        Err(Failure::new(format!(
            "`--{key}` cannot hold in a shell for a person{by}; nothing was started"
        ))
        .with("because", why)
        .with("instead", instead))
    };
    let by_reading = "only reading each command could enforce it, and nobody reads what you type";
    let by_kernel = "use `--readonly`, `--ignore` or `--allow`, which the kernel enforces in `sandbox`";
    let has_rules = settings.policy.iter().any(|name| matches!(name, PolicyName::File(_)));
    for (key, given) in [
        ("deny", !settings.deny.is_empty()),
        ("policy", has_rules),
        ("rate", settings.rate.is_some()),
        ("approval", settings.approval == Some(Approval::Always)),
    ] {
        if given {
            return refuse(key, by_reading, by_kernel);
        }
    }
    if settings.max_output.is_some() && loaded.file_of("max-output").is_none() {
        return refuse("max-output", "what is shown on a terminal is not kept", "leave it out");
    }
    if settings.record && loaded.file_of("record").is_none() {
        return refuse("record", "what you do yourself is not recorded", "leave it out");
    }
    if env == EnvironmentName::Memory {
        return Err(
            Failure::new("there is no terminal in memory for a person's shell; nothing was started").with(
                "instead",
                "run commands with `shieling exec --env memory`, or use `--env sandbox`",
            ),
        );
    }
    if env == EnvironmentName::Local {
        let restricts = |name: &PolicyName| *name != PolicyName::Preset("open".to_owned());
        for (key, given) in [
            ("readonly", settings.readonly),
            ("ignore", !settings.ignore.is_empty()),
            ("allow", !settings.allow.is_empty()),
            ("policy", settings.policy.iter().any(restricts)),
        ] {
            if given {
                return refuse(
                    key,
                    "`local` confines nothing, and nobody reads what you type",
                    "use `--env sandbox`, in which the kernel enforces it",
                );
            }
        }
    }
    Ok(())
}

/// Refuses what the environment cannot enforce.
fn is_enforced(env: EnvironmentName, loaded: &Loaded) -> Result<(), Failure> {
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
    let settings = &loaded.settings;
    if env == EnvironmentName::Memory {
        let unknown = "files and a bash in memory have nothing that it would be about";
        let leave = "leave it out here, or use `--env sandbox`";
        for (key, given) in [
            ("isolation", settings.isolation.is_some()),
            ("shell", settings.shell.is_some()),
            ("pids", settings.pids.is_some()),
            ("cpus", settings.cpus.is_some()),
            ("read", !settings.read.is_empty()),
            ("write", !settings.write.is_empty()),
            ("home", settings.home.is_some()),
            ("open-protected", settings.open_protected),
            ("allow-home", settings.allow_home),
        ] {
            if given {
                return refuse(key, unknown, leave);
            }
        }
        return match settings.network {
            Some(Network::Loopback | Network::Host) => refuse("network", "there is no network in memory", leave),
            Some(Network::None) | None => Ok(()),
        };
    }
    if env != EnvironmentName::Local {
        // The policy may bring hidden paths too: those are looked at where it is known.
        return match (settings.isolation, settings.network) {
            (Some(Isolation::Landlock), Some(Network::Loopback)) => refuse(
                "network",
                "`--isolation landlock` does without namespaces, and a loopback of its own needs one",
                "use `--network none` or `--network host`, or leave `--isolation landlock` out",
            ),
            _ => Ok(()),
        };
    }
    let unlimited = "this environment runs commands as ordinary processes of this host, unconfined";
    let leave = "leave it out here, or use `--env sandbox`, which enforces it";
    for (key, given) in [
        ("isolation", settings.isolation.is_some()),
        ("memory", settings.memory.is_some()),
        ("pids", settings.pids.is_some()),
        ("cpus", settings.cpus.is_some()),
        ("read", !settings.read.is_empty()),
        ("write", !settings.write.is_empty()),
        ("home", settings.home.is_some()),
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
            "use `--network host`, or leave it out here, or use `--env sandbox`, which enforces it",
        ),
        Some(Network::Host) | None => Ok(()),
    }
}
