//! What the tests share: running a text, and looking for processes by a mark that only they carry.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use shieling::environment::Shell;
use shieling::process::{Finished, Jail, Limits, Plan, Process, SpawnError, Streams, run_to_end};
use shieling::request::Command;

pub(crate) fn shell() -> Shell {
    Shell::find(None).expect("there is a shell on every host that runs tests")
}

/// A command in `/tmp` with an ordinary PATH.
pub(crate) fn command(text: &str) -> Command {
    let path = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    Command::new(text, "/tmp").expect("a good command").with_variables(path)
}

pub(crate) fn plan(text: &str) -> Plan {
    shell().plan(&command(text))
}

pub(crate) async fn run(text: &str) -> Finished {
    run_within(text, Duration::from_secs(20)).await
}

pub(crate) async fn run_within(text: &str, deadline: Duration) -> Finished {
    let command = command(text).with_deadline(deadline).expect("more than zero");
    run_command(&command).await
}

pub(crate) async fn run_command(command: &Command) -> Finished {
    let (process, _jail) = start(&shell().plan(command)).await.expect("it starts");
    run_to_end(process, &Limits::of(command), None, None).await
}

/// Times are measured by many tests at once, and by none beside a test that loads the machine.
static LOAD: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

/// For a test that measures time.
pub(crate) async fn quiet() -> tokio::sync::RwLockReadGuard<'static, ()> {
    LOAD.read().await
}

/// For a test that loads the machine.
pub(crate) async fn loud() -> tokio::sync::RwLockWriteGuard<'static, ()> {
    LOAD.write().await
}

/// A number of seconds to sleep that no other process uses, by which to find the sleeper.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("3600.{:07}{number:04}", std::process::id()))
    }

    /// The pids of the living processes with the mark among their arguments.
    pub(crate) fn alive(&self) -> Vec<u32> {
        processes()
            .filter(|&pid| {
                let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                let arguments = read("cmdline");
                let zombie = String::from_utf8_lossy(&read("stat"))
                    .rsplit(')')
                    .next()
                    .is_some_and(|rest| rest.trim_start().starts_with('Z'));
                !zombie
                    && arguments
                        .split(|&byte| byte == 0)
                        .any(|argument| argument == self.0.as_bytes())
            })
            .collect()
    }

    /// Waits until so many are alive.
    pub(crate) fn wait_for(&self, count: usize) {
        let start = Instant::now();
        while self.alive().len() != count {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "{} alive, waited for {count}",
                self.alive().len()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("proc is mounted");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Starts a process in a jail of its own that confines nothing, and that ends it when dropped.
pub(crate) async fn start(plan: &Plan) -> Result<(Process, Jail), SpawnError> {
    let jail = Jail::unconfined().await.map_err(SpawnError::Jail)?;
    Ok((jail.spawn(plan, Streams::Output).await?, jail))
}

/// Children of this test process that are supervisors or their remains.
pub(crate) fn own_children() -> Vec<u32> {
    let me = std::process::id();
    processes()
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat
                .rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            parent == Some(me)
        })
        .collect()
}
