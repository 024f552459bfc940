//! Starts a text as a job, with nothing in between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::environment::Shell;
use crate::outcome::{Outcome, Status};
use crate::process::{Jail, Process, Streams};
use crate::request::Command;
use crate::session::terminal::Terminal;
use crate::session::{Job, JobError, JobId, JobInput, JobSetup, Pty, TerminalSize, Until, ViewRequest, ViewResponse};

/// A job, and all that was told of its end.
pub(super) struct Started {
    pub(super) job: Arc<Job>,
    pub(super) told: Arc<Mutex<Vec<Outcome>>>,
    /// What it runs in; without it there is nothing to end it.
    _jail: Jail,
}

impl std::ops::Deref for Started {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

pub(super) fn command(text: &str) -> Command {
    let path = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    Command::new(text, "/tmp")
        .expect("a good command")
        .with_variables(path)
        .with_grace(Duration::from_millis(200))
}

pub(super) fn blank(command: &Command) -> Outcome {
    Outcome::blank(Status::Running, command.cwd(), "local")
}

/// A job that stands alone, with an input.
pub(super) async fn start(text: &str) -> Started {
    start_with(text, |_| ()).await
}

/// The same, set up otherwise.
pub(super) async fn start_with(text: &str, change: impl FnOnce(&mut JobSetup)) -> Started {
    let command = command(text);
    let (process, jail) = spawn(&command, Streams::Input).await;
    begin(process, jail, command, change)
}

/// A job on a terminal.
pub(super) async fn start_on_terminal(text: &str, change: impl FnOnce(&mut JobSetup)) -> Started {
    let pair = Pty::open(TerminalSize::default()).expect("there are terminals");
    let command = command(text);
    let (process, jail) = spawn(&command, Streams::Terminal(pair.theirs)).await;
    begin(process, jail, command, |setup| {
        setup.terminal = Some(Terminal::new(pair.ours).expect("it can be watched"));
        change(setup);
    })
}

async fn spawn(command: &Command, streams: Streams) -> (Process, Jail) {
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    let jail = Jail::unconfined().await.expect("what starts commands");
    let process = jail.spawn(&shell.plan(command), streams).await.expect("it starts");
    (process, jail)
}

fn begin(mut process: Process, jail: Jail, command: Command, change: impl FnOnce(&mut JobSetup)) -> Started {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let mut setup = JobSetup {
        id: JobId::numbered(1),
        session: None,
        blank: blank(&command),
        kill_leftovers: true,
        terminal: None,
        stdin: process.take_input(),
        watcher: None,
        progress: None,
        output_limit: None,
        spill: None,
        at_end: Box::new(move |outcome| telling.lock().expect("nobody panics").push(outcome.clone())),
        command,
    };
    change(&mut setup);
    Started {
        job: Job::start(process, setup),
        told,
        _jail: jail,
    }
}

impl Started {
    /// A view, as the façade makes it.
    pub(super) async fn view(&self, ask: &ViewRequest) -> Result<ViewResponse, JobError> {
        self.job.await_view(ask).await?;
        Ok(self.job.look(ask.cursor, ask.screen))
    }

    /// What is new, at once.
    pub(super) async fn now(&self) -> ViewResponse {
        self.view(&self.ask()).await.expect("a view")
    }

    /// What is new, once there is something.
    pub(super) async fn next(&self) -> ViewResponse {
        self.waiting(Until::Output, Duration::from_secs(10)).await
    }

    pub(super) async fn waiting(&self, until: Until, wait: Duration) -> ViewResponse {
        let ask = ViewRequest {
            until,
            wait,
            ..self.ask()
        };
        self.view(&ask).await.expect("a view")
    }

    pub(super) fn ask(&self) -> ViewRequest {
        ViewRequest::new(self.job.id().clone())
    }

    /// Types a line, and waits for the answer.
    pub(super) async fn line(&self, text: &str, wait: Duration) -> ViewResponse {
        let input = JobInput {
            text: text.to_owned(),
            enter: true,
            ..JobInput::default()
        };
        self.job.write(&input, wait).await.expect("it is written")
    }

    pub(super) fn ends_told(&self) -> Vec<Outcome> {
        self.told.lock().expect("nobody panics").clone()
    }
}

/// A number of seconds to sleep that no other process uses, by which to find the sleeper.
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("3700.{:07}{number:04}", std::process::id()))
    }

    /// How many processes with it among their arguments are alive.
    pub(super) fn alive(&self) -> usize {
        let entries = std::fs::read_dir("/proc").expect("proc is mounted");
        let pids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        pids.filter(|pid| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.split(|&byte| byte == 0).any(|each| each == self.0.as_bytes())
        })
        .count()
    }

    pub(super) async fn wait_for(&self, count: usize) {
        let begun = Instant::now();
        while self.alive() != count {
            assert!(begun.elapsed() < Duration::from_secs(10), "{} alive", self.alive());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
