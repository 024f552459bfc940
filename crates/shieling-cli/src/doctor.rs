//! `shieling doctor`: what this host and this version can enforce, without make-up.
//!
//! Sandboxes are really started, and commands in them; what they say from inside is what is shown. A
//! layer that no sandbox came to is `unknown`, and one that is not built is `missing`, not left out.
//! What was only looked up on the host stands apart, as a possible cause.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::{Printable, files};
use crate::host::{Cause, Host};
use crate::missing;
use crate::options::{Doctor, EnvironmentName, Isolation, Network, Settings};
use crate::plan;
use crate::run::{self, Tried};
use crate::words::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Missing,
    Unknown,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    /// Whether commands run in the default environment, with all of its layers.
    works: bool,
    layers: Vec<Finding>,
    /// What of this host may be the cause of what is missing; looked up, not tried.
    causes: Vec<Cause>,
    host: Host,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    layer: String,
    state: State,
    detail: String,
}

/// What was tried.
struct Trials {
    policy: Result<(), Failure>,
    local: Result<(), Failure>,
    memory: Result<(), Failure>,
    /// The engine that answers.
    container: Result<String, Failure>,
    bash: Option<PathBuf>,
    /// What the client says of itself, or what is missing.
    ssh: Result<String, String>,
    full: Tried,
    /// The same with the network of the host, if the former failed.
    without_network: Option<Tried>,
    landlock: Tried,
    cpus: Tried,
    gateway: Tried,
}

impl Trials {
    fn run() -> Self {
        let (policy, local) = run::probe();
        let sandbox = || Settings {
            env: Some(EnvironmentName::Sandbox.into()),
            ..Settings::default()
        };
        let full = run::try_sandbox(sandbox());
        let without_network = matches!(full, Tried::Refused { .. }).then(|| {
            run::try_sandbox(Settings {
                network: Some(Network::Host),
                ..sandbox()
            })
        });
        let landlock = run::try_sandbox(Settings {
            isolation: Some(Isolation::Landlock),
            ..sandbox()
        });
        let cpus = run::try_sandbox(Settings {
            cpus: "1".parse().ok(),
            ..sandbox()
        });
        let gateway = run::try_sandbox(Settings {
            allow_host: "host.internal:9".parse().into_iter().collect(),
            ..sandbox()
        });
        Self {
            gateway,
            policy,
            local,
            memory: run::try_memory(),
            container: run::find_engine(),
            bash: find_bash(),
            ssh: ssh(),
            full,
            without_network,
            landlock,
            cpus,
        }
    }
}

/// The user's own client, and whether there is an agent program to send.
fn ssh() -> Result<String, String> {
    let version = shieling_remote::ssh::client_version().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no `ssh` on PATH; install OpenSSH's client".to_owned(),
        _ => format!("`ssh` cannot be started: {error}"),
    })?;
    match shieling_remote::agent::Program::carried() {
        Ok(_) => Ok(version),
        Err(error) => Err(error.to_string()),
    }
}

/// Prints the findings. Exits 0 if commands run in the default environment, and 1 otherwise.
pub(crate) fn doctor(options: &Doctor) -> Result<u8, Failure> {
    let report = report(env!("CARGO_PKG_VERSION"), &Trials::run(), Host::look(Path::new("/")));
    if options.json {
        crate::print::print_json(&report)?;
    } else {
        crate::print::write_all(io::stdout().lock(), &page(&report))?;
    }
    Ok(u8::from(!report.works))
}

fn report(version: &'static str, trials: &Trials, host: Host) -> Report {
    let works = matches!(trials.full, Tried::Works(_));
    let mut causes = Vec::new();
    let refused = [&trials.full, &trials.landlock, &trials.cpus].into_iter();
    for refusal in refused.filter_map(Tried::refusal) {
        causes.extend(host.causes(refusal));
    }
    let mut seen = Vec::new();
    causes.retain(|cause: &Cause| {
        let new = !seen.contains(&cause.cause);
        seen.push(cause.cause);
        new
    });
    Report {
        version,
        works,
        layers: findings(trials),
        causes,
        host,
    }
}

fn finding(layer: impl Into<String>, state: State, detail: impl Into<String>) -> Finding {
    Finding {
        layer: layer.into(),
        state,
        detail: detail.into(),
    }
}

fn findings(trials: &Trials) -> Vec<Finding> {
    let probed = |layer, result: &Result<(), Failure>, detail: &str| match result {
        Ok(()) => finding(layer, State::Ok, detail),
        Err(failure) => finding(layer, State::Missing, failure.what()),
    };
    let mut all = vec![
        probed("policy", &trials.policy, "commands are judged before they start"),
        match &trials.bash {
            Some(bash) => finding("bash", State::Ok, Printable(bash).to_string()),
            None => finding(
                "bash",
                State::Missing,
                "no bash in /bin, /usr/bin or on PATH; install it, or name one with --shell",
            ),
        },
        tier(
            "sandbox",
            &trials.full,
            "a command ran in it, and probes from inside found it closed",
        ),
    ];
    all.extend(layers(trials));
    all.extend(limits(trials));
    all.push(tier(
        "network.gateway",
        &trials.gateway,
        "`--allow-host` works: names are answered and sockets bound in a sandbox's network",
    ));
    all.push(tier(
        "sandbox.landlock",
        &trials.landlock,
        "`--isolation landlock` works: a guard-rail, not a boundary; see `shieling exec --help`",
    ));
    all.push(probed(
        "local",
        &trials.local,
        "commands start and end; nothing confines them",
    ));
    all.push(match &trials.ssh {
        Ok(version) => finding("ssh", State::Ok, format!("`--env ssh://HOST` uses {version}")),
        Err(why) => finding("ssh", State::Missing, why.as_str()),
    });
    if plan::is_available(EnvironmentName::Memory) {
        all.push(probed(
            "memory",
            &trials.memory,
            "commands run in it, without a process and without a file of this host",
        ));
    }
    if plan::is_available(EnvironmentName::Container) {
        all.push(match &trials.container {
            Ok(engine) => finding(
                "container",
                State::Ok,
                format!("{engine} answers; `--image NAME` is needed"),
            ),
            Err(failure) => finding("container", State::Missing, failure.what()),
        });
    }
    for env in [EnvironmentName::Memory, EnvironmentName::Container] {
        if !plan::is_available(env) {
            all.push(finding(env.as_str(), State::Missing, "not in this version"));
        }
    }
    all
}

fn tier(name: &str, tried: &Tried, works: &str) -> Finding {
    match tried {
        Tried::Works(_) => finding(name, State::Ok, works),
        Tried::Refused { layer, what, .. } => {
            finding(name, State::Missing, format!("{}: {what}", missing::meaning(*layer)))
        }
        Tried::Failed(what) => finding(name, State::Missing, what.as_str()),
    }
}

/// The layers of the full tier, in the order in which a sandbox makes them, each by the names that
/// `confinement` has for it.
const LAYERS: [(&str, &[&str]); 7] = [
    ("user", &["user", "user.bounds"]),
    ("pid", &["pid"]),
    ("ipc", &["ipc", "uts", "cgroup"]),
    ("network", &["network"]),
    ("mount", &["mount"]),
    ("landlock", &["landlock", "landlock.tcp", "landlock.scope"]),
    ("seccomp", &["seccomp", "capabilities"]),
];

fn layers(trials: &Trials) -> Vec<Finding> {
    let held = |tried: &Tried, name: &str| match tried {
        Tried::Works(confinement) => confinement.enforced.iter().any(|held| held == name),
        Tried::Refused { .. } | Tried::Failed(_) => false,
    };
    let failed = match &trials.full {
        Tried::Refused { layer, .. } => Some(missing::name(*layer)),
        Tried::Works(_) | Tried::Failed(_) => None,
    };
    let without = trials.without_network.as_ref();
    // A sandbox makes one after the other.
    let stopped = LAYERS.iter().position(|(group, _)| match failed {
        // What probes try is what comes last.
        Some("probe" | "capabilities") => *group == "landlock",
        Some(failed) => failed == *group,
        None => false,
    });
    let passed = |group: &str| LAYERS.iter().position(|(one, _)| *one == group) < stopped && stopped.is_some();
    let names = LAYERS
        .iter()
        .flat_map(|(group, names)| names.iter().map(move |name| (*group, *name)));
    names
        .map(|(group, name)| {
            if held(&trials.full, name) {
                finding(name, State::Ok, "in force")
            } else if without.is_some_and(|tried| held(tried, name)) {
                finding(name, State::Ok, "in force in a sandbox with the host's network")
            } else if held(&trials.landlock, name) {
                finding(name, State::Ok, "in force with `--isolation landlock`")
            } else if matches!(trials.full, Tried::Works(_)) {
                finding(name, State::Missing, "this kernel does not have it")
            } else if failed == Some(group) || name == "network" && without.is_some_and(|tried| tried.works()) {
                finding(name, State::Missing, "here the sandbox was refused")
            } else if passed(group) {
                finding(name, State::Ok, "made, before the sandbox was refused")
            } else {
                finding(name, State::Unknown, "no sandbox came to it")
            }
        })
        .collect()
}

fn limits(trials: &Trials) -> Vec<Finding> {
    let one = |limit: &str, tried: &Tried| {
        let name = format!("limit.{limit}");
        match tried {
            Tried::Works(confinement) => {
                let by = confinement.enforced.iter().find_map(|held| {
                    let (way, what) = held.split_once('.')?;
                    (what == limit).then_some(way)
                });
                match by {
                    Some("cgroup") => finding(name, State::Ok, "by a control group"),
                    Some("rlimit") => finding(name, State::Ok, "by a resource limit"),
                    Some("watch") => finding(name, State::Ok, "by watching, and ending what uses more"),
                    Some(_) | None => finding(name, State::Missing, "no sandbox says that it holds"),
                }
            }
            Tried::Refused { layer, what, .. } if missing::name(*layer) == "limits" => {
                finding(name, State::Missing, what.as_str())
            }
            Tried::Refused { .. } | Tried::Failed(_) => finding(name, State::Unknown, "no sandbox came to it"),
        }
    };
    vec![
        one("memory", &trials.full),
        one("pids", &trials.full),
        one("cpu", &trials.cpus),
    ]
}

fn find_bash() -> Option<PathBuf> {
    let usual = ["/bin/bash", "/usr/bin/bash"].map(PathBuf::from);
    let usual = usual.into_iter().find(|bash| files::is_executable(bash));
    usual.or_else(|| files::on_path(Path::new("bash"), &std::env::var_os("PATH")?))
}

fn page(report: &Report) -> String {
    let mut page = format!("shieling {}\n", report.version);
    for finding in &report.layers {
        let state = match finding.state {
            State::Ok => "ok",
            State::Missing => "missing",
            State::Unknown => "unknown",
        };
        page.push_str(&format!(
            "{:<16} {state:<8} {}\n",
            finding.layer,
            crate::escape::line(&finding.detail)
        ));
    }
    for cause in &report.causes {
        page.push_str(&format!(
            "\nbecause  {} (looked up, not tried)\nfix      {}\n",
            crate::escape::line(&cause.because),
            cause.fix
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use shieling::outcome::Confinement;
    use shieling::process::{JailLayer as Layer, JailRefusal};

    use super::*;

    fn works(names: &str) -> Tried {
        Tried::Works(Confinement {
            enforced: names.split(' ').map(str::to_owned).collect(),
            missing: Vec::new(),
        })
    }

    fn refused(layer: Layer, doing: &str, errno: i32) -> Tried {
        let refusal = JailRefusal {
            layer,
            doing: doing.to_owned(),
            errno,
        };
        Tried::Refused {
            layer,
            what: format!("{doing}\u{1b}"),
            refusal,
        }
    }

    const FULL: &str = "user user.bounds mount pid ipc uts cgroup network capabilities landlock landlock.tcp landlock.scope seccomp \
                        watch.memory rlimit.pids rlimit.core";
    const REDUCED: &str = "capabilities landlock landlock.tcp landlock.scope seccomp rlimit.core";

    fn shown(trials: &Trials, host: Host) -> String {
        let report = report("VERSION", trials, host);
        assert!(serde_json::to_string(&report).is_ok());
        format!("{}works: {}\n", page(&report), report.works)
    }

    #[test]
    fn a_host_that_has_all_of_it() {
        insta::assert_snapshot!(shown(
            &Trials {
                policy: Ok(()),
                local: Ok(()),
                memory: Ok(()),
                container: Ok("docker at `unix:///var/run/docker.sock`".to_owned()),
                bash: Some("/bin/bash".into()),
                ssh: Ok("OpenSSH_9.2p1".to_owned()),
                full: works(FULL),
                without_network: None,
                landlock: works(REDUCED),
                cpus: refused(Layer::Limits, "to limit processor time", 13),
                gateway: works(FULL),
            },
            Host::default()
        ));
    }

    #[test]
    fn what_no_sandbox_came_to_is_unknown_and_what_failed_has_its_cause() {
        let host = Host {
            apparmor_restricts_user_namespaces: Some(true),
            ..Host::default()
        };
        let without_namespaces = shown(
            &Trials {
                policy: Ok(()),
                local: Ok(()),
                memory: Ok(()),
                container: Ok("docker at `unix:///var/run/docker.sock`".to_owned()),
                bash: Some("/bin/bash".into()),
                ssh: Ok("OpenSSH_9.2p1".to_owned()),
                full: refused(Layer::User, "making namespaces", 1),
                without_network: Some(refused(Layer::User, "making namespaces", 1)),
                landlock: works(REDUCED),
                cpus: refused(Layer::User, "making namespaces", 1),
                gateway: refused(Layer::User, "making namespaces", 1),
            },
            host,
        );
        let without_network = shown(
            &Trials {
                policy: Ok(()),
                local: Ok(()),
                memory: Ok(()),
                container: Ok("docker at `unix:///var/run/docker.sock`".to_owned()),
                bash: Some("/bin/bash".into()),
                ssh: Ok("OpenSSH_9.2p1".to_owned()),
                full: refused(Layer::User, "making namespaces", 22),
                without_network: Some(works("user mount pid ipc uts cgroup capabilities landlock seccomp")),
                landlock: refused(
                    Layer::Landlock,
                    "this kernel's Landlock is version 3, and 6 is needed",
                    0,
                ),
                cpus: refused(Layer::User, "making namespaces", 22),
                gateway: refused(Layer::User, "making namespaces", 22),
            },
            Host {
                kernel: "6.5.0-1".to_owned(),
                ..Host::default()
            },
        );
        let nothing = || Err(Failure::new("no shell\u{1b} at all").with("instead", "install one"));
        let failed = || Tried::Failed("no shell at all".to_owned());
        let without_bash = shown(
            &Trials {
                policy: nothing(),
                local: nothing(),
                memory: nothing(),
                container: Err(Failure::new("no container engine answers")),
                bash: None,
                ssh: Err("there is no `ssh` on PATH; install OpenSSH's client".to_owned()),
                full: failed(),
                without_network: None,
                landlock: failed(),
                cpus: failed(),
                gateway: failed(),
            },
            Host::default(),
        );
        insta::assert_snapshot!([without_namespaces, without_network, without_bash].join("\n"));
    }
}
