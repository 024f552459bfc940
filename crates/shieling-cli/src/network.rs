//! The network by name, from the options: hosts, secrets and the user's own proxy. Secrets are read here, outside of
//! every environment, and go nowhere but to the library.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shieling::approval::Mode;
use shieling::environment::Local;
use shieling::network::{NoProxy, Proxy, Secret, SecretSource, SecretSpec};
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::{Builder, Shieling};

use crate::bash;
use crate::config::{Printable, files, reason};
use crate::options::NamedSecret;
use crate::plan::Plan;
use crate::runtime;
use crate::words::Failure;

/// The variables that name the user's proxy, the strongest first.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The variables that name what goes around it.
const AROUND: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// How many descriptors this process may have where hosts are opened, as far as it can: with the usual 1024 the gateway
/// would serve 128 connections at once.
const DESCRIPTORS: u64 = 16_384;

/// With what the plan opens by name.
pub(crate) fn open(mut builder: Builder, plan: &Plan) -> Result<Builder, Failure> {
    // A rule of a policy file may open hosts, too.
    if plan.opens_hosts() || !plan.policies.is_empty() {
        allow_descriptors();
    }
    for host in plan.allow_host.iter().flat_map(|host| host.rules()) {
        builder = builder.allow_host(host.clone());
    }
    for secret in &plan.secret {
        builder = builder.secret(read(secret, plan)?);
    }
    match proxy()? {
        Some((proxy, around)) => Ok(builder.proxy(proxy, around)),
        None => Ok(builder),
    }
}

/// Lets this process have more descriptors. Commands keep the limit that it was started with: what starts them is there
/// before, since programs that use `select` rely on small numbers.
fn allow_descriptors() {
    if !shieling::process::has_copy() {
        shieling::process::start_ahead(true);
    }
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit {
            current: Some(most),
            ..limit
        };
        // Without it fewer connections are served at once, and a further one is told why.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// The user's own proxy, if there is one.
fn proxy() -> Result<Option<(Proxy, NoProxy)>, Failure> {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some((name, value)) = PROXIES.iter().find_map(|name| Some((name, set(name)?))) else {
        return Ok(None);
    };
    // The value may hold a password.
    let proxy = Proxy::parse(&value).map_err(|error| Failure::new(format!("{name} names no proxy: {error}")))?;
    let around = AROUND.iter().find_map(set).unwrap_or_default();
    Ok(Some((proxy, NoProxy::parse(&around))))
}

/// A secret with its value.
fn read(named: &NamedSecret, plan: &Plan) -> Result<Secret, Failure> {
    let spec = named.spec();
    let missing = |why: String, instead: &str| {
        Failure::new(format!("`--secret {named}` has no value: {why}; nothing was started")).with("instead", instead)
    };
    let value = match &spec.source {
        SecretSource::Variable(name) => std::env::var(name).map_err(|_| {
            let why = format!("the variable {name} is not set");
            missing(
                why,
                "set it, or name another source: `=env:NAME`, `=file:PATH` or `=cmd:COMMAND`",
            )
        })?,
        SecretSource::File(path) => {
            let unread = |why: String| missing(format!("{}: {why}", Printable(path)), "name a file that can be read");
            files::read(path, files::Links::Follow)
                .map_err(|error| unread(reason(&error)))?
                .ok_or_else(|| unread("there is no such file".to_owned()))?
        }
        SecretSource::Command(text) => {
            let told = |why: String| missing(why, "try the command in your own shell");
            printed(text, plan).map_err(told)?
        }
    };
    secret(spec, &value).map_err(|why| missing(why, "name another source"))
}

fn secret(spec: &SecretSpec, value: &str) -> Result<Secret, String> {
    Secret::new(spec.clone(), value).map_err(|error| error.to_string())
}

/// What a command of the user's own prints, run on this host as the user would.
fn printed(text: &str, plan: &Plan) -> Result<String, String> {
    let shell = bash::find(None).map_err(|failure| failure.what())?;
    let variables = std::env::vars().collect();
    let workspace = plan.workspace.clone();
    let command = Command::new(text, &workspace)
        .map_err(|error| error.to_string())?
        .with_variables(variables);
    // On a thread of its own, since an event loop may be around us.
    let asked = std::thread::spawn(move || {
        let local = Arc::new(Local::new(shell));
        let builder = Shieling::builder(local, Policy::open(), workspace).approval(Mode::Never);
        let shieling = builder.build().map_err(|error| error.to_string())?;
        let runtime = runtime::start().map_err(|failure| failure.what())?;
        let outcome = runtime.block_on(async {
            let outcome = shieling.run(command, None).await;
            shieling.close().await;
            outcome
        });
        match (outcome.status, outcome.exit_code) {
            (Status::Exited, Some(0)) => Ok(outcome.stdout),
            // Neither of its streams is shown: they may hold the secret.
            (Status::Exited, Some(code)) => Err(format!("its command ended with {code}")),
            (status, _) => Err(format!("its command ended as {}", status.name())),
        }
    });
    asked
        .join()
        .unwrap_or_else(|_| Err("its command could not be run".to_owned()))
}
