//! What one writes first: `bash -c` as a child, which is all that is ended.

use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;

use shieling::process::{Control, Ended, Event, MainEnd, Process, SpawnError, Usage};
use shieling::request::Command;
use tokio::sync::oneshot;

/// Starts it.
pub(crate) fn spawn(command: &Command) -> Result<Process, SpawnError> {
    let failed = |error: std::io::Error| SpawnError::Environment(Box::new(error));
    let mut child = prepared(command.text(), command)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdout: OwnedFd = child.stdout.take().expect("piped above").into();
    let stderr: OwnedFd = child.stderr.take().expect("piped above").into();
    let pid = rustix::process::Pid::from_child(&child);
    let (told, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // Nobody may listen any more.
        let _ = told.send(waited(child));
    });
    let control = Direct {
        pid,
        ended,
        main: false,
    };
    Process::from_parts(stdout, stderr, Box::new(control)).map_err(failed)
}

/// Starts something beside a command, with its variables, that nobody waits for.
pub(crate) fn spawn_silent(text: &str, command: &Command) {
    let child = prepared(text, command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(child) = child {
        std::thread::spawn(move || waited(child));
    }
}

fn prepared(text: &str, command: &Command) -> std::process::Command {
    let mut bash = std::process::Command::new("/bin/bash");
    bash.args(["-c", text])
        .env_clear()
        .envs(command.variables())
        .current_dir(command.cwd())
        .stdin(Stdio::null());
    bash
}

fn waited(mut child: Child) -> MainEnd {
    use std::os::unix::process::ExitStatusExt as _;
    let status = child.wait().expect("our own child");
    match (status.code(), status.signal()) {
        (Some(code), _) => MainEnd::Exited(code),
        (None, signal) => MainEnd::Signalled(signal.unwrap_or(0)),
    }
}

/// Ends the child, and says that all is gone.
struct Direct {
    pid: rustix::process::Pid,
    ended: oneshot::Receiver<MainEnd>,
    main: bool,
}

impl Control for Direct {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.main {
            return Poll::Ready(Event::Gone(Ended::default()));
        }
        std::pin::Pin::new(&mut self.ended).poll(cx).map(|end| {
            self.main = true;
            Event::MainEnded(end.unwrap_or(MainEnd::Exited(0)), Usage::default())
        })
    }

    fn stop(&mut self, _grace: Duration) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
    }
}
