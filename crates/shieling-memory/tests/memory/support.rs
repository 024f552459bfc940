//! What the tests share: a memory, and running a text in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shieling::environment::{Enforcement, Environment as _, Hidden};
use shieling::process::{End, Finished, Limits, Process, SessionShell, Streams, run_to_end};
use shieling::request::Command;
use shieling_memory::Memory;
use shieling_testkit::approved;

pub(crate) const WORKSPACE: &str = "/work";

pub(crate) fn memory() -> Memory {
    Memory::builder(WORKSPACE).build().expect("an empty memory")
}

/// What commands are given.
pub(crate) const VARIABLES: [(&str, &str); 3] =
    [("PATH", "/usr/bin:/bin"), ("HOME", "/home/user"), ("LC_ALL", "C.UTF-8")];

pub(crate) fn command(text: &str) -> Command {
    let variables: BTreeMap<_, _> = VARIABLES
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Command::new(text, WORKSPACE)
        .expect("a good command")
        .with_variables(variables)
        .with_deadline(Duration::from_secs(60))
        .expect("more than zero")
}

pub(crate) async fn run_command(memory: &Memory, command: Command, streams: Streams) -> Finished {
    let limits = Limits::of(&command);
    let process = memory.spawn(approved(command), streams).await.expect("it starts");
    run_to_end(process, &limits, None, None).await
}

pub(crate) async fn run(memory: &Memory, text: &str) -> Finished {
    run_command(memory, command(text), Streams::Output).await
}

/// Runs a text that has to end with another status than 0.
pub(crate) async fn failing(memory: &Memory, text: &str) -> Finished {
    let ran = run(memory, text).await;
    assert!(
        matches!(ran.end, End::Exited(code) if code != 0),
        "{text}: {:?}",
        ran.end
    );
    ran
}

/// What a text prints, if it ends with 0.
pub(crate) async fn printed(memory: &Memory, text: &str) -> String {
    let ran = run(memory, text).await;
    assert_eq!(ran.end, End::Exited(0), "{text}: {}", ran.stderr.text());
    ran.stdout.text()
}

pub(crate) async fn shell(memory: &Memory) -> Box<dyn SessionShell> {
    let first = approved(command("true"));
    memory.open_shell(&first).await.expect("a shell")
}

pub(crate) async fn finished(process: Process, deadline: Duration) -> Finished {
    let limits = Limits {
        deadline,
        ..Limits::of(&command("true"))
    };
    run_to_end(process, &limits, None, None).await
}

/// Hides what begins with `.env`, and a directory `secrets`.
pub(crate) struct Secrets;

impl Hidden for Secrets {
    fn hides(&self, relative: &Path, is_directory: bool) -> bool {
        let name = relative
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        name.starts_with(".env") || is_directory && name == "secrets"
    }
}

pub(crate) fn secrets() -> Enforcement {
    Enforcement {
        hidden: Some(Arc::new(Secrets)),
        ..Enforcement::default()
    }
}

/// With only these programs.
pub(crate) fn programs(names: Vec<String>) -> Enforcement {
    Enforcement {
        programs: Some(names),
        ..Enforcement::default()
    }
}
