//! What is to hold for one invocation: the layers' settings with the defaults filled in, and
//! refused where this version or this environment cannot honour them.
//!
//! Nothing is ever passed over: an option that would not hold is an error before anything starts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use shieling::audit;
use shieling::environment::{self, JailLimits};
use shieling::request::Command;
use shieling::units::ByteCount;
use shieling_remote::agent::{Setup, Wanted};

use crate::config::{self, Loaded};
use crate::defaults;
use crate::far::{Far, Unreached};
use crate::options::{
    AllowedHost, Approval, Assignment, Changes, Chosen, ContainerUser, Cpus, Engine, EnvironmentName, Home, Isolation,
    Mounted, NamedSecret, Network, Pids, PolicyName, Prefix, Preset, Pull, Rate, Settings, Size, Timeout, VariableName,
    WorkspaceCopy, is_below_root,
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

/// What holds.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where commands run.
    pub(crate) env: EnvironmentName,
    /// Whether somebody said so.
    pub(crate) env_named: bool,
    /// What that amounts to: on another machine, a sandbox or `local` there.
    pub(crate) amounts_to: EnvironmentName,
    /// The other machine, once it was reached.
    pub(crate) far: Option<Far>,
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
    /// How much a command may print before the library ends it.
    pub(crate) most_output: Option<ByteCount>,
    /// How much stands between a command and this host.
    pub(crate) isolation: Isolation,
    /// The limits that somebody asked for.
    pub(crate) asked: JailLimits,
    /// What of the network can be reached.
    pub(crate) network: Network,
    /// Whether somebody said so.
    pub(crate) network_asked: bool,
    /// The hosts that are opened by name.
    pub(crate) allow_host: Vec<AllowedHost>,
    /// The secrets that go to hosts.
    pub(crate) secret: Vec<NamedSecret>,
    /// More that can be read, absolute.
    pub(crate) read: Vec<PathBuf>,
    /// More that can be written, absolute.
    pub(crate) write: Vec<PathBuf>,
    /// Whether the home is kept.
    pub(crate) keeps_home: bool,
    /// Where changes to the workspace go.
    pub(crate) changes: Changes,
    /// Whether that was said for this run, and not in a file.
    pub(crate) changes_named: bool,
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
    pub(crate) answer_timeout: Option<Duration>,
    /// Whether a person is asked about what was held back of a command.
    pub(crate) asks_about_held_back: bool,
    /// Whether one command is all that starts.
    pub(crate) once: bool,
    /// What the container is to be, in which commands run.
    pub(crate) container: Option<ContainerPlan>,
    /// Whether nothing may be printed besides.
    pub(crate) quiet: bool,
    timeout: Duration,
    /// The same for `exec`, whose default fits builds.
    pub(crate) timeout_of_exec: Duration,
    /// What somebody asked for; the default holds for outcomes alone.
    output_limit: Option<ByteCount>,
    max_output: Size,
    file_size: Option<Size>,
}

/// What a container is to be.
#[derive(Debug, Clone)]
pub(crate) struct ContainerPlan {
    /// The image, unless there is a container already.
    pub(crate) image: Option<String>,
    /// The container to attach to.
    pub(crate) attach: Option<String>,
    /// The engine.
    pub(crate) engine: Engine,
    /// When the image is pulled.
    pub(crate) pull: Pull,
    /// The workspace on this host, unless none is mounted.
    pub(crate) mounted: Option<PathBuf>,
    /// How the workspace is copied instead, if it is.
    pub(crate) copied: Option<WorkspaceCopy>,
    /// Whether each command gets a container of its own.
    pub(crate) per_command: bool,
    /// What else is mounted.
    pub(crate) volumes: Vec<Mounted>,
    /// Who commands run as.
    pub(crate) user: Option<ContainerUser>,
    /// Whether the workspace can be written.
    pub(crate) writable: bool,
    /// The runtime.
    pub(crate) runtime: Option<String>,
    /// How closed it is.
    pub(crate) preset: Preset,
    /// Whether the default limits are left out.
    pub(crate) unlimited: bool,
    /// The network of the engine's.
    pub(crate) network: Option<String>,
    /// Whether it is privileged.
    pub(crate) privileged: bool,
    /// Devices of this host.
    pub(crate) devices: Vec<PathBuf>,
    /// More capabilities.
    pub(crate) capabilities: Vec<String>,
    /// Whether what undoes isolation was acknowledged.
    pub(crate) acknowledged: bool,
}

impl ContainerPlan {
    /// What these settings say; the directory of the container that is worked in besides.
    fn new(settings: &Settings, workspace: &Path) -> Result<(Self, PathBuf), Failure> {
        // Both together were refused before.
        if settings.image.is_none() && settings.container.is_none() {
            return Err(
                Failure::new("`--env container` needs an image; nothing was started").with(
                    "instead",
                    "name one with `--image debian:12`, or a container that runs with `--container NAME`",
                ),
            );
        }
        let workdir = settings.workdir.clone();
        // Where an attached container is worked in depends on what it has.
        let default = if settings.container.is_some() {
            "/"
        } else {
            "/workspace"
        };
        let workdir = workdir.unwrap_or_else(|| default.into());
        if settings.container.is_none() {
            is_below_root(&workdir)
                .map_err(|why| Failure::new(format!("`--workdir {}`: {why}", config::Printable(&workdir))))?;
        }
        let plan = Self {
            image: settings.image.clone(),
            attach: settings.container.clone(),
            engine: settings.engine.unwrap_or(Engine::Auto),
            pull: settings.pull.unwrap_or(Pull::Auto),
            mounted: (settings.container.is_none() && !settings.no_mount).then(|| workspace.to_owned()),
            copied: settings.workspace_copy,
            per_command: settings.per_command,
            volumes: settings.volume.clone(),
            user: settings.user,
            writable: settings.writable,
            runtime: settings.runtime.clone(),
            preset: settings.preset.unwrap_or(Preset::Hardened),
            unlimited: settings.unlimited,
            network: settings.engine_network.clone(),
            privileged: settings.privileged,
            devices: settings.device.clone(),
            capabilities: settings.cap_add.clone(),
            acknowledged: settings.acknowledge_unsafe,
        };
        Ok((plan, workdir))
    }
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
        let env_named = loaded.settings.env.is_some();
        let changes_named = loaded.settings.changes.is_some() && loaded.file_of("changes").is_none();
        let chosen = loaded.settings.env.clone();
        let chosen = chosen.unwrap_or(Chosen::Here(purpose.default_environment()));
        let env = chosen.name();
        let far = match &chosen {
            Chosen::Ssh(destination) if purpose != Purpose::Judge => {
                // What no sandbox could hold needs no other machine to be refused.
                is_enforced(EnvironmentName::Sandbox, &format!("`{chosen}`"), &loaded)?;
                Some(Far::reach(destination, far_setup(&loaded)).map_err(unreached)?)
            }
            Chosen::Ssh(_) | Chosen::Here(_) => None,
        };
        // What cannot be had over there is refused as it is here.
        let (amounts_to, place) = match (&far, env) {
            (Some(far), _) if far.is_confined() => (EnvironmentName::Sandbox, far.to_string()),
            (Some(far), _) => (EnvironmentName::Local, far.to_string()),
            (None, EnvironmentName::Ssh) => (EnvironmentName::Local, format!("`{chosen}`")),
            (None, env) => (env, format!("`{env}`")),
        };
        if purpose != Purpose::Judge {
            is_built(env)?;
            is_enforced(amounts_to, &place, &loaded)?;
            leaves_room(amounts_to, &place, &loaded)?;
        }
        if purpose == Purpose::Shell {
            holds_unread(amounts_to, &place, &loaded)?;
        }
        let typed_timeout = loaded.settings.timeout.filter(|_| loaded.file_of("timeout").is_none());
        let approval = loaded.settings.approval.unwrap_or(defaults::approval(amounts_to));
        if matches!(purpose, Purpose::Exec | Purpose::Run)
            && amounts_to == EnvironmentName::Local
            && approval == Approval::Never
            && !loaded.settings.acknowledge_unsafe
        {
            return Err(Failure::new(format!(
                "`--env {chosen} --approval never` was not acknowledged, so nothing was started"
            ))
            .with(
                "because",
                format!("nothing confines a command in {place}, and nobody would be asked about it"),
            )
            .with(
                "instead",
                "use `--approval policy` or `--approval always`, or add `--acknowledge-unsafe`",
            ));
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
        if far.is_some() {
            // They are files of this machine.
            fixed.clear();
        }
        let workspace = far.as_ref().map_or(workspace, |far| far.surroundings().workspace);
        let isolation = settings.isolation.unwrap_or(Isolation::Full);
        let mut limits = defaults::settings(amounts_to, isolation);
        let (container, workspace) = match env {
            EnvironmentName::Container if purpose != Purpose::Judge => {
                let (container, workdir) = ContainerPlan::new(&settings, &workspace)?;
                if container.unlimited || container.preset == Preset::Plain || container.attach.is_some() {
                    (limits.memory, limits.pids) = (None, None);
                }
                (Some(container), workdir)
            }
            EnvironmentName::Container
            | EnvironmentName::Local
            | EnvironmentName::Sandbox
            | EnvironmentName::Ssh
            | EnvironmentName::Memory => (None, workspace),
        };
        let value = "every environment has this default";
        let timeout_of_exec = settings.timeout.map_or(EXEC_TIMEOUT, Timeout::get);
        Ok(Self {
            env,
            env_named,
            amounts_to,
            far,
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
            most_output: None,
            isolation,
            asked: jail_limits(settings.memory, settings.pids, settings.cpus),
            network: settings.network.unwrap_or(defaults::network(amounts_to, isolation)),
            network_asked: settings.network.is_some(),
            allow_host: settings.allow_host,
            secret: settings.secret,
            read: settings.read,
            write: settings.write,
            keeps_home: settings.home == Some(Home::Persistent),
            changes: settings.changes.unwrap_or_default(),
            changes_named,
            open_protected: settings.open_protected,
            allow_home: settings.allow_home,
            fixed,
            limits: jail_limits(
                settings.memory.or(limits.memory),
                settings.pids.or(limits.pids),
                settings.cpus,
            ),
            answer_timeout: None,
            asks_about_held_back: false,
            container,
            quiet: false,
            // A description asks several programs at once.
            once: matches!(purpose, Purpose::Exec | Purpose::Shell),
            timeout_of_exec,
            timeout: match purpose {
                Purpose::Shell => typed_timeout.map_or(Duration::MAX, Timeout::get),
                Purpose::Exec => timeout_of_exec,
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

    /// Whether hosts are opened by name.
    pub(crate) fn opens_hosts(&self) -> bool {
        !self.allow_host.is_empty() || !self.secret.is_empty()
    }

    /// Whether commands can change the files of the workspace that decide what they may do, which then holds
    /// for whoever starts next.
    pub(crate) fn leaves_open(&self) -> bool {
        let kept = match self.env {
            EnvironmentName::Memory => true,
            EnvironmentName::Local => false,
            EnvironmentName::Container => {
                let writes = |plan: &ContainerPlan| plan.writable || plan.volumes.iter().any(|volume| !volume.readonly);
                self.readonly || !self.container.as_ref().is_some_and(writes)
            }
            EnvironmentName::Sandbox | EnvironmentName::Ssh => self.readonly || self.isolation == Isolation::Full,
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

/// What the agent program is told. Limits that nobody asked for are those of a sandbox here.
fn far_setup(loaded: &Loaded) -> Setup {
    let settings = &loaded.settings;
    let isolation = settings.isolation.unwrap_or(Isolation::Full);
    let sandbox = defaults::settings(EnvironmentName::Sandbox, isolation);
    let network = settings
        .network
        .unwrap_or(defaults::network(EnvironmentName::Sandbox, isolation));
    Setup {
        environment: Wanted::Auto,
        workspace: Some(loaded.workspace.clone()).filter(|workspace| !workspace.as_os_str().is_empty()),
        shell: settings.shell.clone(),
        programs: None,
        network: match network {
            Network::None => environment::Network::None,
            Network::Loopback => environment::Network::Loopback,
            Network::Host => environment::Network::Host,
        },
        isolation: match isolation {
            Isolation::Full => environment::Isolation::Full,
            Isolation::Landlock => environment::Isolation::Landlock,
        },
        limits: jail_limits(
            settings.memory.or(sandbox.memory),
            settings.pids.or(sandbox.pids),
            settings.cpus,
        ),
        read: settings.read.clone(),
        write: settings.write.clone(),
        open_protected: settings.open_protected,
        allow_home: settings.allow_home,
        ..Setup::default()
    }
}

/// Why another machine cannot be used, or not any more.
pub(crate) fn unreached(why: Unreached) -> Failure {
    let Unreached { what, because, instead } = why;
    let mut failure = Failure::new(what);
    if let Some(because) = because {
        failure = failure.with("because", because);
    }
    match instead {
        Some(instead) => failure.with("instead", instead),
        None => failure,
    }
}

/// Whether commands run in this environment in this version.
pub(crate) fn is_available(env: EnvironmentName) -> bool {
    match env {
        EnvironmentName::Sandbox | EnvironmentName::Local | EnvironmentName::Ssh => true,
        EnvironmentName::Memory => cfg!(feature = "memory"),
        EnvironmentName::Container => cfg!(feature = "container"),
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
fn holds_unread(env: EnvironmentName, place: &str, loaded: &Loaded) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let refuse = |key: &str, why: &str, instead: &str| {
        let by = loaded.set_in(key);
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
    if env == EnvironmentName::Container {
        let restricts = |name: &PolicyName| {
            let known = |preset: &str| *name == PolicyName::Preset(preset.to_owned());
            !known("open") && !known("readonly")
        };
        for (key, given) in [
            ("ignore", !settings.ignore.is_empty()),
            ("allow", !settings.allow.is_empty()),
            ("policy", settings.policy.iter().any(restricts)),
        ] {
            if given {
                return refuse(
                    key,
                    "a container enforces `--readonly` alone, and nobody reads what you type",
                    by_kernel,
                );
            }
        }
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
                    &format!("{place} confines nothing, and nobody reads what you type"),
                    "use `--env sandbox`, in which the kernel enforces it",
                );
            }
        }
    }
    Ok(())
}

/// The least memory in which a command can start, and what takes it; nothing where memory is not limited.
fn least_memory(env: EnvironmentName) -> Option<(Size, &'static str)> {
    let size = |text: &str| text.parse().expect("a bound of ours is well formed");
    match env {
        EnvironmentName::Sandbox | EnvironmentName::Ssh => Some((size("4MiB"), "the shell alone takes about 1 MiB")),
        EnvironmentName::Memory => Some((size("256KiB"), "the buffers of a command alone take some KiB")),
        EnvironmentName::Container => Some((size("6MiB"), "engines refuse less")),
        EnvironmentName::Local => None,
    }
}

/// Refuses a limit under which nothing could start.
fn leaves_room(env: EnvironmentName, place: &str, loaded: &Loaded) -> Result<(), Failure> {
    let (Some(memory), Some((least, because))) = (loaded.settings.memory, least_memory(env)) else {
        return Ok(());
    };
    if memory >= least {
        return Ok(());
    }
    let by = loaded.set_in("memory");
    let least = least.get().to_string().replace(' ', "");
    Err(Failure::new(format!(
        "`--memory {}`{by} is too little for a command in {place}; nothing was started",
        memory.get().to_string().replace(' ', "")
    ))
    .with("because", format!("{because}; at least {least} are needed"))
    .with(
        "instead",
        format!("allow more with `--memory {least}`, or leave the limit out"),
    ))
}

/// Refuses what says how a container is made, where one is taken that is there: none of it would hold.
fn fits_as_it_is(loaded: &Loaded) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let of_the_owner = settings.user == Some(ContainerUser::Keep);
    let given = [
        ("image", settings.image.is_some()),
        ("network", settings.network.is_some()),
        ("engine-network", settings.engine_network.is_some()),
        ("preset", settings.preset.is_some()),
        ("workspace", loaded.workspace_named),
        ("workspace-copy", settings.workspace_copy.is_some()),
        ("per-command", settings.per_command),
        ("no-mount", settings.no_mount),
        ("pull", settings.pull.is_some()),
        ("volume", !settings.volume.is_empty()),
        ("writable", settings.writable),
        ("user keep", of_the_owner),
        ("runtime", settings.runtime.is_some()),
        ("unlimited", settings.unlimited),
        ("memory", settings.memory.is_some()),
        ("pids", settings.pids.is_some()),
        ("cpus", settings.cpus.is_some()),
        ("privileged", settings.privileged),
        ("device", !settings.device.is_empty()),
        ("cap-add", !settings.cap_add.is_empty()),
    ];
    let Some((key, _)) = given.into_iter().find(|(_, given)| *given) else {
        return Ok(());
    };
    let by = loaded.set_in(key);
    let instead = match key {
        "image" => "leave one of them out".to_owned(),
        "workspace" => "leave it out; `--workdir DIR` is the directory of the container that is worked in".to_owned(),
        _ => format!("leave `--{key}` out, or make a container of your own with `--image NAME`"),
    };
    Err(Failure::new(format!(
        "`--{key}` has no effect with `--container`{by}; nothing was started"
    ))
    .with(
        "because",
        "it says how a container is made, and that one is there already",
    )
    .with("instead", instead))
}

/// Refuses what has no effect on a workspace that is copied into a container.
fn fits_a_copy(loaded: &Loaded) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let Some(copied) = settings.workspace_copy else {
        return Ok(());
    };
    let comes_back = copied == WorkspaceCopy::Both;
    let (key, because, instead) = if settings.writable {
        (
            "writable",
            "it is about a workspace that is mounted, and a copy can always be written",
            "leave `--writable` out",
        )
    } else if settings.no_mount {
        (
            "no-mount",
            "it is for work without the workspace, and this copies it",
            "leave one of them out",
        )
    } else if settings.per_command && comes_back {
        (
            "per-command",
            "each command would have a copy of its own, and what several copies bring back is no one change",
            "use `--workspace-copy in`, or leave `--per-command` out",
        )
    } else if settings.readonly && comes_back {
        (
            "readonly",
            "it lets nothing of the workspace change, and `both` is for what changes in it",
            "use `--workspace-copy in`, or leave `--readonly` out",
        )
    } else {
        return Ok(());
    };
    let by = loaded.set_in(loaded.file_of(key).map_or("workspace-copy", |_| key));
    Err(Failure::new(format!(
        "`--{key}` does not go with `--workspace-copy`{by}; nothing was started"
    ))
    .with("because", because)
    .with("instead", instead))
}

/// Refuses what the environment cannot enforce.
fn is_enforced(env: EnvironmentName, place: &str, loaded: &Loaded) -> Result<(), Failure> {
    let refuse = |key: &str, why: &str, instead: &str| {
        let by = loaded.set_in(key);
        Err(Failure::new(format!(
            "`--{key}` cannot be enforced in {place}{by}; nothing was started"
        ))
        .with("because", why)
        .with("instead", instead))
    };
    let settings = &loaded.settings;
    let by_name = [
        ("allow-host", !settings.allow_host.is_empty()),
        ("secret", !settings.secret.is_empty()),
    ];
    for (key, _) in by_name.into_iter().filter(|(_, given)| *given) {
        let far = matches!(loaded.settings.env, Some(Chosen::Ssh(_)));
        let (why, instead) = match env {
            _ if far => (
                "a gateway is on the machine where commands run, and none is made on another one",
                "use `--env sandbox`, or `--network host` there",
            ),
            EnvironmentName::Container => (
                "containers have no gateway",
                "use `--env sandbox`, or a network of the engine's with `--engine-network NAME`",
            ),
            EnvironmentName::Memory => ("there is no network in memory", "use `--env sandbox`"),
            EnvironmentName::Local => (
                "this environment reaches all that this host reaches",
                "use `--env sandbox`, which reaches these hosts alone",
            ),
            EnvironmentName::Sandbox | EnvironmentName::Ssh => match (settings.isolation, settings.network) {
                (Some(Isolation::Landlock), _) => (
                    "a gateway needs a network namespace, and `--isolation landlock` does without",
                    "leave `--isolation landlock` out",
                ),
                (_, Some(Network::Host)) => (
                    "with `--network host` everything can be reached already",
                    "leave `--network host` out, so that these hosts alone can be reached",
                ),
                (_, Some(Network::None)) => (
                    "with `--network none` there is not even a loopback, through which they are reached",
                    "leave `--network none` out; nothing else can be reached then either",
                ),
                (_, Some(Network::Loopback) | None) => continue,
            },
        };
        return refuse(key, why, instead);
    }
    let is_staged = settings.changes.is_some_and(|changes| changes != Changes::Direct);
    let is_far = loaded.settings.env.as_ref().map(Chosen::name) == Some(EnvironmentName::Ssh);
    if is_staged && (env != EnvironmentName::Sandbox || is_far) {
        let why = match env {
            _ if is_far => "changes are staged on this machine alone",
            EnvironmentName::Container if settings.workspace_copy == Some(WorkspaceCopy::Both) => {
                "what changes in a copy of the workspace is judged and moved at the end by `--workspace-copy both` itself"
            }
            EnvironmentName::Container => "a container writes into what is mounted in it, at once",
            EnvironmentName::Memory => {
                "files in memory are no workspace of yours: nothing of them reaches one, and all of them end with it"
            }
            EnvironmentName::Local | EnvironmentName::Ssh => "nothing stands between a command and the workspace here",
            EnvironmentName::Sandbox => "",
        };
        let instead = match env {
            EnvironmentName::Memory => {
                "leave it out here: it is as `discard` would be; the library takes a state back with `Memory::snapshot` and \
                 `restore`; `--env sandbox` stages changes of a workspace"
            }
            EnvironmentName::Container if settings.workspace_copy == Some(WorkspaceCopy::Both) => "leave it out here",
            EnvironmentName::Container => {
                "leave it out here; `--workspace-copy both` judges what changes and moves it at the end, and `--env sandbox` \
                 stages changes"
            }
            _ => "leave it out here, or use `--env sandbox`, which stages changes",
        };
        return refuse("changes", why, instead);
    }
    if env == EnvironmentName::Container {
        let (unknown, leave) = (
            "it is about sandboxes on this host",
            "leave it out here, or use `--env sandbox`",
        );
        for (key, given) in [
            ("isolation", settings.isolation.is_some()),
            ("shell", settings.shell.is_some()),
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
        return match settings.container {
            Some(_) => fits_as_it_is(loaded),
            None => fits_a_copy(loaded),
        };
    }
    for (key, given) in [
        ("image", settings.image.is_some()),
        ("engine", settings.engine.is_some()),
        ("pull", settings.pull.is_some()),
        ("container", settings.container.is_some()),
        ("volume", !settings.volume.is_empty()),
        ("user", settings.user.is_some()),
        ("writable", settings.writable),
        ("runtime", settings.runtime.is_some()),
        ("preset", settings.preset.is_some()),
        ("unlimited", settings.unlimited),
        ("engine-network", settings.engine_network.is_some()),
        ("workdir", settings.workdir.is_some()),
        ("workspace-copy", settings.workspace_copy.is_some()),
        ("per-command", settings.per_command),
        ("no-mount", settings.no_mount),
        ("privileged", settings.privileged),
        ("device", !settings.device.is_empty()),
        ("cap-add", !settings.cap_add.is_empty()),
    ] {
        if given {
            return refuse(
                key,
                "it is about containers",
                "leave it out here, or use `--env container`",
            );
        }
    }
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
    if loaded.settings.env.as_ref().map(Chosen::name) == Some(EnvironmentName::Ssh) && settings.home.is_some() {
        return refuse("home", "no home is kept on another machine", "leave it out here");
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
    let unlimited = match loaded.settings.env {
        Some(Chosen::Ssh(_)) => "commands are ordinary processes of that machine, unconfined",
        Some(Chosen::Here(_)) | None => unlimited,
    };
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
