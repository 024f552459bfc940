//! `shieling describe`: the environment as a model would be told of it.

use std::io;
use std::path::{Path, PathBuf};

use shieling::EnvironmentFacts;
use shieling::describe::{Description, Persistence, PolicyInForce, ToolName};
use shieling::policy::PRESETS;

use crate::config::Printable;
use crate::options::{Describe, EnvironmentName, PolicyName, Prefix};
use crate::plan::{ContainerPlan, Plan, Purpose};
use crate::run::{self, Library};
use crate::setup;
use crate::words::Failure;

/// Prints the description.
pub(crate) fn describe(options: &Describe) -> Result<u8, Failure> {
    let plan = run::plan(&options.source, Purpose::Describe)?;
    let told = told(&plan, Persistence::Files)?;
    let described: Description = Library::open(&plan, None)?.describe(&plan, told, &ToolName::defaults())?;
    if options.json {
        crate::print::print_json(&described)?;
    } else {
        let mut page = described.to_string();
        if plan.timeout_of_exec != described.basis.limits.timeout {
            let minutes = plan.timeout_of_exec.as_secs() / 60;
            page += &format!(
                "\nThis is what the MCP server tells. With `shieling exec` a command may take {minutes} min.\n"
            );
        }
        crate::print::write_all(io::stdout().lock(), &page)?;
    }
    Ok(0)
}

/// What is known of the environment before it has started.
pub(crate) fn told(plan: &Plan, persistence: Persistence) -> Result<EnvironmentFacts, Failure> {
    Ok(EnvironmentFacts {
        shell: match plan.env {
            EnvironmentName::Memory => PathBuf::from("bash"),
            // Known once it has started.
            EnvironmentName::Container => PathBuf::from("sh"),
            EnvironmentName::Local | EnvironmentName::Sandbox | EnvironmentName::Ssh => setup::shell_of(plan)?,
        },
        network: match &plan.container {
            // Known once it has started.
            Some(container) if container.attach.is_some() => "that of the container".to_owned(),
            Some(ContainerPlan {
                network: Some(network), ..
            }) => format!("`{}` of the engine's", crate::escape::line(network)),
            Some(_) | None => plan.network.as_str().to_owned(),
        },
        hosts: hosts(plan),
        persistence,
        policies: policies(plan),
        // Known once the environment has started.
        memory: None,
        pids: None,
        rate: plan.rate.map(|rate| rate.to_string()),
        os_release: match plan.env {
            EnvironmentName::Memory => "PRETTY_NAME=\"files and a bash in memory\"".to_owned(),
            EnvironmentName::Container => String::new(),
            EnvironmentName::Local | EnvironmentName::Sandbox => setup::os_release(),
            EnvironmentName::Ssh => plan
                .far
                .as_ref()
                .map_or_else(String::new, |far| far.surroundings().os_release),
        },
    })
}

/// The hosts that are open by name.
fn hosts(plan: &Plan) -> Vec<String> {
    let of_secrets = plan.secret.iter().map(|secret| secret.spec().host.to_string());
    let mut hosts: Vec<String> = plan.allow_host.iter().map(ToString::to_string).collect();
    for host in of_secrets {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

fn is_configuration(plan: &Plan, path: &Path) -> bool {
    !plan
        .policies
        .iter()
        .any(|policy| matches!(policy, PolicyName::File(file) if file == path))
}

/// What becomes of a file of the workspace that decides what commands may do.
fn kept(plan: &Plan, path: &Path) -> &'static str {
    if !plan.fixed.iter().any(|fixed| fixed == path) {
        ""
    } else if plan.leaves_open() {
        ", which commands can change here"
    } else {
        ", which commands cannot change"
    }
}

/// The policies in force, each in half a sentence.
fn policies(plan: &Plan) -> Vec<PolicyInForce> {
    let in_force = |name: String, means: String, instead: Option<&str>| PolicyInForce {
        name,
        means,
        instead: instead.map(str::to_owned),
    };
    let list = |entries: &[Prefix]| {
        entries
            .iter()
            .map(|entry| format!("`{entry}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut all: Vec<_> = plan
        .policies
        .iter()
        .map(|policy| match policy {
            PolicyName::Preset(name) => {
                let means = PRESETS.iter().find(|(known, _)| known == name);
                in_force(name.clone(), means.map_or("", |(_, means)| means).to_owned(), None)
            }
            PolicyName::File(path) => {
                let means = format!("rules of a file{}", kept(plan, path));
                in_force(Printable(path).to_string(), means, None)
            }
        })
        .collect();
    for path in plan.fixed.iter().filter(|path| is_configuration(plan, path)) {
        let means = format!("settings of the workspace{}", kept(plan, path));
        all.push(in_force(Printable(path).to_string(), means, None));
    }
    if plan.readonly {
        let means = "nothing may change: files, repository, processes, clock, network";
        let instead = "Nothing may be written: print results instead of saving them.";
        all.push(in_force("readonly".to_owned(), means.to_owned(), Some(instead)));
    }
    if !plan.allow.is_empty() {
        all.push(in_force(
            "allow".to_owned(),
            format!("only {}", list(&plan.allow)),
            None,
        ));
    }
    if !plan.deny.is_empty() {
        all.push(in_force("deny".to_owned(), format!("not {}", list(&plan.deny)), None));
    }
    if !plan.ignore.is_empty() {
        let means = "some paths are hidden".to_owned();
        let instead = "Some paths are hidden: name the files you want, rather than reading whole directories.";
        all.push(in_force("ignore".to_owned(), means, Some(instead)));
    }
    if all.is_empty() {
        all.push(in_force("open".to_owned(), PRESETS[0].1.to_owned(), None));
    }
    all
}
