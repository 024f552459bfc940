//! The library, set up as planned: environment, policy, approver, limits, log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::approval::{Approver, Mode};
use shieling::audit;
use shieling::environment::{
    self, Ability, Capabilities, EnforceError, Enforced, Enforcement, Environment, Later, Local, Network, Restrictions,
    Sandbox,
};
use shieling::outcome::Confinement;
use shieling::output::SpillTo;
use shieling::policy::{Policy, RuleFile};
use shieling::process::{Process, SpawnError, Streams};
use shieling::request::Command;
use shieling::session::{Human, RecordingSettings};
use shieling::{Builder, Shieling};
#[cfg(feature = "container")]
use shieling_container::Container;
#[cfg(feature = "memory")]
use shieling_memory::Memory;

use crate::bash;
use crate::config::{Printable, files, reason};
use crate::far::Far;
use crate::options::{Approval, EnvironmentName, Isolation, PolicyName, Prefix};
use crate::person::Person;
use crate::plan::Plan;
use crate::sandbox;
use crate::state;
use crate::words::Failure;

/// Where commands run.
pub(crate) enum Place {
    /// On this host, unconfined.
    Local(Arc<Local>),
    /// In a sandbox.
    Sandbox {
        /// The sandbox.
        sandbox: Arc<Sandbox>,
        /// One of the lesser tier, to see whether it would work where this one does not; nothing if
        /// it is of that tier itself, or the tier cannot do what is asked.
        lesser: Option<Box<Sandbox>>,
    },
    /// In memory.
    #[cfg(feature = "memory")]
    Memory(Arc<Memory>),
    /// In a container.
    #[cfg(feature = "container")]
    Container(Arc<Container>),
    /// On another machine.
    Far(Far),
}

impl Place {
    /// As planned. Nothing starts.
    pub(crate) fn new(plan: &Plan, caller: &sandbox::Caller) -> Result<Self, Failure> {
        if let Some(far) = &plan.far {
            return Ok(Self::Far(far.clone()));
        }
        #[cfg(feature = "memory")]
        if plan.env == EnvironmentName::Memory {
            return Ok(Self::Memory(Arc::new(memory(plan)?)));
        }
        #[cfg(feature = "container")]
        if let Some(wanted) = &plan.container {
            return Ok(Self::Container(Arc::new(crate::container::open(plan, wanted, caller)?)));
        }
        let shell = bash::find(plan.shell.as_deref())?;
        if plan.env == EnvironmentName::Local {
            let local = Local::new(shell).with_workspace(&plan.workspace);
            return Ok(Self::Local(Arc::new(if plan.once { local.once() } else { local })));
        }
        let policy = policy(plan)?;
        let restrictions = sandbox::restrictions(plan, &policy, caller, shell.program())?;
        let loopback = plan.network == crate::options::Network::Loopback;
        let can = plan.isolation != Isolation::Landlock
            && !(loopback && plan.network_asked)
            && policy.hidden().is_empty()
            && restrictions.write.is_empty()
            && restrictions.kept_home.is_none()
            && restrictions.staging.is_none();
        let lesser = can.then(|| {
            let mut lesser = restrictions.clone();
            lesser.isolation = environment::Isolation::Landlock;
            if loopback {
                lesser.network = Network::None;
            }
            lesser.limits = plan.asked;
            lesser
        });
        Ok(Self::Sandbox {
            sandbox: Arc::new(Sandbox::new(restrictions, shell.clone())),
            lesser: lesser.map(|lesser| Box::new(Sandbox::new(lesser, shell))),
        })
    }

    /// Begins to start it, as it is bound now. Nothing is waited for.
    pub(crate) fn start_ahead(&self) {
        match self {
            Self::Local(local) => local.start_ahead(),
            Self::Sandbox { sandbox, .. } => sandbox.start_ahead(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
            #[cfg(feature = "container")]
            Self::Container(_) => {}
            // What is reached from here starts with the first command that is let through.
            Self::Far(_) => {}
        }
    }

    fn environment(&self) -> Arc<dyn Environment> {
        match self {
            Self::Local(local) => local.clone(),
            Self::Sandbox { sandbox, .. } => sandbox.clone(),
            #[cfg(feature = "memory")]
            Self::Memory(memory) => memory.clone(),
            #[cfg(feature = "container")]
            Self::Container(container) => container.clone(),
            Self::Far(far) => far.environment(),
        }
    }
}

/// A memory, empty but for its directories. The workspace's path is a name in it, and nothing of the
/// host's.
#[cfg(feature = "memory")]
fn memory(plan: &Plan) -> Result<Memory, Failure> {
    let asked = shieling::enforcement_of(&policy(plan)?, &plan.workspace);
    let mut builder = Memory::builder(&plan.workspace).enforcing(asked);
    if let Some(limit) = plan.memory_limit() {
        builder = builder.memory(limit);
    }
    builder.build().map_err(|error| Failure::new(error.to_string()))
}

/// The library as `exec` needs it: what is let through runs.
pub(crate) fn for_running(
    plan: &Plan,
    place: &Place,
    approver: Option<Arc<dyn Approver>>,
    state: Option<&Path>,
    human: Option<Arc<dyn Human>>,
) -> Result<Shieling, Failure> {
    let mut builder = builder(plan, place.environment())?;
    if let Some(approver) = approver {
        builder = builder.approver(approver);
    }
    builder = builder
        .require_shell_approval(plan.require_shell_approval)
        .require_write_approval(plan.require_write_approval)
        .ask_about_held_back(plan.asks_about_held_back);
    if let Some(answer_timeout) = plan.answer_timeout {
        builder = builder.answer_timeout(answer_timeout);
    }
    if let Some(human) = human.or_else(|| Person::find().map(|person| Arc::new(person) as Arc<dyn Human>)) {
        builder = builder.human(human);
    }
    if let Some(rate) = plan.rate {
        let limit = rate.to_string().parse();
        builder = builder.rate(limit.map_err(|error: shieling::rate::RateLimitError| Failure::new(error.to_string()))?);
    }
    if let Some(path) = &plan.audit {
        let log = audit::LogFile::open(path, plan.audit_settings);
        builder = builder.audit(Arc::new(log.map_err(|error| {
            Failure::new(error.to_string()).with("because", "a command does not start if it cannot be recorded")
        })?));
    }
    builder = crate::network::open(builder, plan)?;
    // They are there by now; what is not cannot be read either.
    let own = plan.audit.iter().map(PathBuf::as_path).chain(state);
    // Of this machine, whose files are not reached then.
    let own = own.filter(|_| plan.far.is_none());
    builder = builder.own_files(own.filter_map(|path| files::canonical(path).ok()).collect());
    if let Some(state) = state.filter(|_| plan.store_output) {
        builder = builder.spill(SpillTo {
            per_command: state::WHOLE,
            ..SpillTo::new(state::outputs(state))
        });
    }
    if let Some(most) = plan.most_output {
        builder = builder.output_limit(most);
    }
    if plan.record {
        let Some(state) = state else {
            return Err(Failure::new(
                "there is no place for recordings: neither XDG_STATE_HOME nor HOME is set; nothing was started",
            ));
        };
        builder = builder.recordings(RecordingSettings::new(state::recordings(state)));
    }
    bound(builder)
}

/// The library as `why` needs it: it judges as this environment would, and nothing can start.
pub(crate) fn for_judging(plan: &Plan) -> Result<Shieling, Failure> {
    let environment = OnPaper {
        name: plan.env,
        isolation: plan.isolation,
        protecting: protecting(plan),
    };
    bound(builder(plan, Arc::new(environment))?)
}

/// The sandbox in which a command would run, as far as it says what is protected; nothing where nothing is.
fn protecting(plan: &Plan) -> Option<Sandbox> {
    let direct = plan.changes == crate::options::Changes::Direct;
    if plan.env != EnvironmentName::Sandbox || plan.isolation != Isolation::Full || !direct {
        return None;
    }
    let shell = bash::find(plan.shell.as_deref()).ok()?;
    let mut restrictions = Restrictions::new(&plan.workspace, shell.program());
    restrictions.readonly = plan.readonly;
    restrictions.write = plan
        .write
        .iter()
        .filter_map(|path| files::canonical(path).ok())
        .collect();
    restrictions.path = std::env::var("PATH").unwrap_or_default();
    restrictions.home = std::env::var_os("HOME").map(PathBuf::from);
    restrictions.repository = environment::linked_repository(&plan.workspace);
    restrictions.open_protected = plan.open_protected;
    // Where what is taken back can be kept, nothing but policy files is protected.
    restrictions.held_back = state::directory()
        .filter(|state| files::make(state))
        .map(|state| state::change_sets(&state));
    restrictions.allow_home = plan.allow_home;
    restrictions.fixed = plan.fixed.clone();
    Some(Sandbox::new(restrictions, shell))
}

/// With the environment bound to the policy.
fn bound(builder: Builder) -> Result<Shieling, Failure> {
    builder.build().map_err(|error| Failure::new(error.to_string()))
}

/// What the system says of itself; nothing if it does not.
pub(crate) fn os_release() -> String {
    let text = files::read(Path::new("/etc/os-release"), files::Links::Follow);
    text.ok().flatten().unwrap_or_default()
}

/// The shell of commands, as planned.
pub(crate) fn shell_of(plan: &Plan) -> Result<PathBuf, Failure> {
    match &plan.far {
        Some(far) => Ok(far.surroundings().shell),
        None => Ok(bash::find(plan.shell.as_deref())?.program().to_owned()),
    }
}

fn builder(plan: &Plan, environment: Arc<dyn Environment>) -> Result<Builder, Failure> {
    Ok(
        Shieling::builder(environment, policy(plan)?, &plan.workspace).approval(match plan.approval {
            Approval::Always => Mode::Always,
            Approval::Policy => Mode::OnAsk,
            Approval::Never => Mode::Never,
        }),
    )
}

/// All that the options say of what may run.
pub(crate) fn policy(plan: &Plan) -> Result<Policy, Failure> {
    let wrong = |error: &dyn std::error::Error| Failure::new(error.to_string());
    let mut policy = Policy::open();
    for name in &plan.policies {
        policy = match name {
            PolicyName::Preset(name) => policy.with_preset(name).map_err(|error| wrong(&error))?,
            PolicyName::File(path) => policy.with_rules(rules(path, Some(&plan.workspace))?),
        };
    }
    if plan.readonly {
        policy = policy.with_readonly();
    }
    let words = |list: &[Prefix]| list.iter().map(|entry| entry.as_str().to_owned()).collect::<Vec<_>>();
    policy
        .with_allow(&words(&plan.allow))
        .map_err(|error| wrong(&error).with("rule", "--allow"))?
        .with_deny(&words(&plan.deny))
        .map_err(|error| wrong(&error).with("rule", "--deny"))?
        .with_ignore(&plan.ignore)
        .map_err(|error| wrong(&error).with("rule", "--ignore"))
}

/// The rules of a policy file, whose examples hold. A file in the workspace goes by its short name.
pub(crate) fn rules(path: &Path, workspace: Option<&Path>) -> Result<RuleFile, Failure> {
    let unreadable = |why: String| Failure::new(format!("the policy {} cannot be read: {why}", Printable(path)));
    let text = files::read(path, files::Links::Follow)
        .map_err(|error| unreadable(reason(&error)))?
        .ok_or_else(|| unreadable("there is no such file".to_owned()))?;
    let name = workspace
        .and_then(|workspace| path.strip_prefix(workspace).ok())
        .unwrap_or(path);
    RuleFile::parse(&name.to_string_lossy(), &text).map_err(|error| Failure::new(error.to_string()))
}

/// An environment that enforces what the named one is to enforce, and in which nothing can start.
struct OnPaper {
    name: EnvironmentName,
    isolation: Isolation,
    /// Knows what is protected. It is never started.
    protecting: Option<Sandbox>,
}

impl Environment for OnPaper {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            networks: [Network::None].into(),
            limits: [].into(),
            abilities: match self.name {
                // Nothing of this host says anything about it.
                EnvironmentName::Memory | EnvironmentName::Ssh => [Ability::Commands].into(),
                EnvironmentName::Local | EnvironmentName::Sandbox | EnvironmentName::Container => {
                    BTreeSet::from(Ability::ALL)
                }
            },
        }
    }

    fn enforce(&self, _: &Enforcement) -> Result<Enforced, EnforceError> {
        let (readonly, hidden, programs) = match self.name {
            // The guard-rail holds no list of programs; that it hides nothing keeps `exec` from starting.
            EnvironmentName::Sandbox if self.isolation == Isolation::Landlock => (true, false, false),
            // Whether the other machine can have a sandbox is not known before it is reached.
            EnvironmentName::Local | EnvironmentName::Ssh => (false, false, false),
            EnvironmentName::Sandbox | EnvironmentName::Memory => (true, true, true),
            EnvironmentName::Container => (true, false, false),
        };
        Ok(Enforced {
            readonly,
            hidden,
            programs,
        })
    }

    fn kept_below(&self, path: &Path) -> Vec<PathBuf> {
        let protecting = self.protecting.as_ref();
        protecting.map_or_else(Vec::new, |sandbox| sandbox.kept_below(path))
    }

    fn kept_settings(&self, directory: &Path) -> Option<PathBuf> {
        self.protecting.as_ref()?.kept_settings(directory)
    }

    fn hold_back(&self, _: Vec<shieling::changes::Rule>) -> Result<(), EnforceError> {
        // Nothing runs, so that nothing changes.
        Ok(())
    }

    fn confinement(&self) -> Confinement {
        Confinement::default()
    }

    fn spawn(&self, _: shieling::approval::Approved<Command>, _: Streams) -> Later<'_, Result<Process, SpawnError>> {
        let source = std::io::Error::other("commands are judged here and not started");
        Box::pin(async move {
            Err(SpawnError::Supervisor {
                what: "starting",
                source,
            })
        })
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {})
    }
}
