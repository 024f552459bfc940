//! A complete environment, made outside of the library: each command is `bash -c` in a process group of its own,
//! reached through plain pipes. It confines nothing, has no files, and says so. The public conformance suite
//! tells whether what it declares is true:
//!
//! ```sh
//! cargo run -p shieling --example environment
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "an environment starts processes, which is its business"
)]
#![allow(clippy::print_stdout, reason = "the report is what this prints")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use shieling::Shieling;
use shieling::approval::Approved;
use shieling::environment::{Ability, Capabilities, Environment, Later, Network};
use shieling::outcome::Confinement;
use shieling::policy::Policy;
use shieling::process::{Control, Ended, Event, MainEnd, Process, SpawnError, Streams, Usage};
use shieling::request::Command;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// The longest text that is passed as an argument, in bytes.
const LONGEST: usize = 100_000;

/// The environment.
pub struct Pipes;

impl Environment for Pipes {
    fn name(&self) -> &str {
        "pipes"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            networks: BTreeSet::from([Network::Host]),
            limits: BTreeSet::new(),
            abilities: BTreeSet::from([Ability::Commands, Ability::Jobs, Ability::Input]),
        }
    }

    fn confinement(&self) -> Confinement {
        Confinement::default()
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move { start(command.request(), streams) })
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {})
    }
}

fn start(command: &Command, streams: Streams) -> Result<Process, SpawnError> {
    let failed = |error: std::io::Error| SpawnError::Environment(Box::new(error));
    let stdin = match streams {
        Streams::Output => Stdio::null(),
        Streams::Input => Stdio::piped(),
        Streams::Given(given) => Stdio::from(given),
        Streams::Terminal(_) => {
            let environment = "pipes".to_owned();
            return Err(SpawnError::NoTerminal { environment });
        }
    };
    if command.file_size().is_some() {
        return Err(SpawnError::Environment("`pipes` limits no size of files".into()));
    }
    // What is too long for an argument is read from a file in memory, which this process holds meanwhile.
    let file = memfd_create("text", MemfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let mut file = std::fs::File::from(file);
    let text = if command.text().len() < LONGEST {
        command.text().to_owned()
    } else {
        file.write_all(command.text().as_bytes()).map_err(failed)?;
        format!(". /proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
    };
    let start = Instant::now();
    let mut child = std::process::Command::new("/bin/bash")
        .args(["-c", "--", &text])
        .env_clear()
        .envs(command.variables())
        .current_dir(command.cwd())
        .process_group(0)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (told, main) = oneshot::channel();
    let control = Group {
        group: Some(Pid::from_child(&child)),
        main: Some(main),
        _text: file,
        stopped: None,
        timer: Box::pin(sleep(Duration::ZERO)),
    };
    std::thread::spawn(move || told.send(child.wait()));
    let (stdout, stderr) = (stdout.expect("it is piped"), stderr.expect("it is piped"));
    // Whatever is no pipe goes into `from_streams` and `with_input`.
    let process = Process::from_parts(stdout.into(), stderr.into(), Box::new(control))
        .map_err(failed)?
        .with_start(start);
    match stdin {
        Some(stdin) => process.with_input_pipe(stdin.into()).map_err(failed),
        None => Ok(process),
    }
}

/// A process group: the main process until it has ended, and then those that it left behind.
struct Group {
    /// None once nothing of it is left: its number may be another's then.
    group: Option<Pid>,
    main: Option<oneshot::Receiver<std::io::Result<std::process::ExitStatus>>>,
    stopped: Option<Instant>,
    _text: std::fs::File,
    timer: Pin<Box<Sleep>>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        // Nobody may be there any more.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }
}

impl Control for Group {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Some(main) = &mut self.main
                && let Poll::Ready(status) = Pin::new(main).poll(cx)
            {
                self.main = None;
                let Ok(Ok(status)) = status else {
                    return Poll::Ready(Event::Lost);
                };
                let signalled = || MainEnd::Signalled(status.signal().unwrap_or(0));
                let end = status.code().map_or_else(signalled, MainEnd::Exited);
                return Poll::Ready(Event::MainEnded(end, Usage::default()));
            }
            let Some(group) = self.group else { return Poll::Pending };
            if self.main.is_none() && test_kill_process_group(group).is_err() {
                self.group = None;
                return Poll::Ready(Event::Gone(Ended::default()));
            }
            if self.stopped.is_some_and(|at| at <= Instant::now()) {
                self.signal(Signal::KILL);
            }
            ready!(self.timer.as_mut().poll(cx));
            self.timer.set(sleep(Duration::from_millis(5)));
        }
    }

    fn stop(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        self.stopped = Some(Instant::now() + grace);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shieling = Shieling::builder(Arc::new(Pipes), Policy::open(), "/tmp")
        .build()
        .expect("it serves no other policy");
    println!(
        "{}",
        shieling.run(Command::new("echo hello", "/tmp")?, None).await.stdout
    );
    Ok(())
}
