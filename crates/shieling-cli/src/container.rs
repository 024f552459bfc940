//! Containers from options, and what keeps one from starting in words.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::EnvironmentFacts;
use shieling::units::ByteCount;
use shieling_container::{
    Choice, Container, ContainerError, Options, Preset, Progress, Pull, Reach, Run, Surroundings, User, Volume,
    WorkspaceCopy, discover,
};

use crate::config::{Printable, files};
use crate::options::{self, ContainerUser, Engine, Network};
use crate::plan::{ContainerPlan, Plan};
use crate::runtime;
use crate::sandbox::{self, Caller};
use crate::words::Failure;

/// What of this process says where engines listen.
fn surroundings() -> Surroundings {
    let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Surroundings {
        docker_host: text("DOCKER_HOST"),
        docker_context: text("DOCKER_CONTEXT"),
        docker_config: text("DOCKER_CONFIG").map(PathBuf::from),
        container_host: text("CONTAINER_HOST"),
        runtime_directory: text("XDG_RUNTIME_DIR").map(PathBuf::from),
        home: text("HOME").map(PathBuf::from),
    }
}

/// Finds the engine, and the image, which may be pulled. No container is made.
pub(crate) fn open(plan: &Plan, wanted: &ContainerPlan, caller: &Caller) -> Result<Container, Failure> {
    let Some(state) = &caller.state else {
        return Err(Failure::new(
            "there is no place for the program that containers are given: neither XDG_STATE_HOME nor HOME is set; \
             nothing was started",
        ));
    };
    let mut options = options(plan, wanted);
    options.workspace_copy = workspace_copy(plan, wanted, caller)?;
    let choice = choice(wanted.engine);
    let state = state.clone();
    let progress: Option<Progress> = (!plan.quiet).then(|| {
        let tell = |line: &str| {
            // Nobody is left to tell if this cannot be written.
            let _ = crate::print::write_all(io::stderr().lock(), &format!("{}\n", crate::escape::line(line)));
        };
        Arc::new(tell) as Progress
    });
    elsewhere(async move { Container::open(options, choice, &surroundings(), &state, progress).await })?
        .map_err(|error| failure(&error))
}

/// The engine that answers, in words.
pub(crate) fn find_engine() -> Result<String, Failure> {
    let found = elsewhere(async { discover(Choice::Auto, &surroundings()).await })?;
    found
        .map(|engine| format!("{} at `{}`", engine.name(), engine.endpoint()))
        .map_err(|error| failure(&error))
}

/// Waits for something on a thread of its own, since the caller may be in an event loop.
fn elsewhere<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Failure> {
    let runtime = runtime::start()?;
    let thread = std::thread::Builder::new().spawn(move || runtime.block_on(work));
    let waited = thread.map(std::thread::JoinHandle::join);
    match waited {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(Failure::new(
            "no thread could be made for the engine; nothing was started",
        )),
    }
}

fn choice(engine: Engine) -> Choice {
    match engine {
        Engine::Auto => Choice::Auto,
        Engine::Docker => Choice::Docker,
        Engine::Podman => Choice::Podman,
    }
}

/// How the workspace is copied, if it is.
fn workspace_copy(plan: &Plan, wanted: &ContainerPlan, caller: &Caller) -> Result<Option<WorkspaceCopy>, Failure> {
    Ok(match wanted.copied {
        None => None,
        Some(options::WorkspaceCopy::In) => Some(WorkspaceCopy::In),
        Some(options::WorkspaceCopy::Both) => Some(WorkspaceCopy::Both {
            sets: sandbox::change_sets(caller.state.as_deref(), "--workspace-copy in")?,
            home: caller.home.clone(),
            fixed: plan.fixed.clone(),
        }),
    })
}

fn options(plan: &Plan, wanted: &ContainerPlan) -> Options {
    let mut options = match (&wanted.image, &wanted.attach) {
        (_, Some(container)) => Options::attached(container),
        (image, None) => Options::image(image.clone().unwrap_or_default()),
    };
    if let Run::Image { pull, .. } = &mut options.run {
        *pull = match wanted.pull {
            options::Pull::Auto => Pull::Auto,
            options::Pull::Never => Pull::Never,
            options::Pull::Always => Pull::Always,
        };
    }
    options.preset = match wanted.preset {
        options::Preset::Hardened => Preset::Hardened,
        options::Preset::Plain => Preset::Plain,
    };
    options.workspace = wanted.mounted.clone();
    options.per_command = wanted.per_command;
    options.workdir = plan.workspace.clone();
    options.writable = wanted.writable;
    options.volumes = wanted
        .volumes
        .iter()
        .map(|volume| Volume {
            source: volume.source.clone(),
            target: volume.target.clone(),
            readonly: volume.readonly,
        })
        .collect();
    options.user = wanted.user.map(|user| match user {
        ContainerUser::Id(uid, gid) => User::Id { uid, gid },
        ContainerUser::Keep => User::Keep,
    });
    options.runtime = wanted.runtime.clone();
    options.unlimited = wanted.unlimited;
    options.memory = plan.asked.memory;
    options.pids = plan.asked.pids;
    options.cpu_thousandths = plan
        .asked
        .cpu_thousandths
        .map(|cpus| u32::try_from(cpus).unwrap_or(u32::MAX));
    options.network = match (&wanted.network, plan.network) {
        (Some(name), _) => Reach::Named(name.clone()),
        (None, Network::Host) => Reach::Host,
        (None, Network::None | Network::Loopback) => Reach::None,
    };
    options.privileged = wanted.privileged;
    options.devices = wanted.devices.clone();
    options.capabilities = wanted.capabilities.clone();
    options.acknowledge_unsafe = wanted.acknowledged;
    options
}

/// What a command finds as its variables: the image's, under what the options set.
pub(crate) fn variables(
    plan: &Plan,
    container: &Container,
    built: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut variables = container.variables();
    let chosen = |name: &str| {
        plan.set_env.iter().any(|set| set.name.as_str() == name)
            || plan.pass_env.iter().any(|passed| passed.as_str() == name)
    };
    // The caller's own say where things are on this host.
    let of_this_host = ["PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR", "TZ"];
    for (name, value) in built {
        if chosen(&name) || !of_this_host.contains(&name.as_str()) && !variables.contains_key(&name) {
            variables.insert(name, value);
        }
    }
    variables
}

/// Adds what is known of a container once it has started.
pub(crate) fn learn(container: &Container, told: &mut EnvironmentFacts) {
    let (memory, pids) = container.limits();
    told.memory = memory.map(ByteCount::bytes);
    told.pids = pids;
    if let Some(network) = container.network() {
        told.network = crate::escape::line(&network);
    }
    if let Some(shell) = container.shell() {
        told.shell = shell;
    }
    told.os_release = container.os_release().unwrap_or_default();
}

/// Why no command can run in a container, in words.
pub(crate) fn failure(error: &ContainerError) -> Failure {
    let failure = Failure::new(format!(
        "{}; nothing was started",
        crate::escape::line(&error.to_string())
    ));
    match error.instead() {
        Some(instead) => failure.with("instead", instead),
        None => failure,
    }
}

/// Refuses an audit file that a command in the container could see.
pub(crate) fn keep_out(plan: &Plan) -> Result<(), Failure> {
    let (Some(audit), Some(container)) = (&plan.audit, &plan.container) else {
        return Ok(());
    };
    let volumes = container.volumes.iter().map(|volume| &volume.source);
    let mut seen = container.mounted.iter().chain(volumes);
    let Some(mount) = seen.find(|mount| {
        let real = files::canonical(mount).unwrap_or_else(|_| (*mount).clone());
        files::leads_through(audit, &real)
    }) else {
        return Ok(());
    };
    Err(Failure::new(format!(
        "the audit file `{}` would be inside the container, in `{}`; nothing was started",
        Printable(audit),
        Printable(mount)
    ))
    .with("because", "a command could read or rewrite the record of what it did")
    .with(
        "instead",
        "give `--audit` a file outside the workspace and outside every `--volume`",
    ))
}
