//! The OpenSSH client as a process of ours.
#![expect(clippy::disallowed_methods, reason = "the user's own client is started here")]

use std::ffi::OsString;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal};
use shieling::environment::Later;
use tokio::net::UnixStream;
use tokio::time::sleep;

use crate::transport::{Connection, Guard, Said};

/// How long the client may take to end once its stream has ended.
const ENDING: Duration = Duration::from_secs(3);
/// Between two looks whether it has.
const LOOKING: Duration = Duration::from_millis(5);

/// What the `ssh` on the caller's `PATH` says of itself, such as `OpenSSH_9.2p1 Debian-2+deb12u7`.
///
/// # Errors
/// It is not there, or cannot be started.
pub fn client_version() -> io::Result<String> {
    let told = Command::new("ssh").arg("-V").stdin(Stdio::null()).output()?;
    let text = [told.stderr, told.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    Ok(text.split([',', '\n']).next().unwrap_or_default().trim().to_owned())
}

/// What the client would do with these arguments, as it says by itself: one setting a line. Nothing if it does not say.
pub(super) fn settings(program: &Path, arguments: &[OsString]) -> Option<String> {
    let told = Command::new(program)
        .arg("-G")
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let told = told.ok().filter(|told| told.status.success())?;
    Some(String::from_utf8_lossy(&told.stdout).into_owned())
}

/// A client that runs. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Client {
    process: Process,
    stream: UnixStream,
    said: Said,
}

/// How a client ended.
#[derive(Debug)]
pub(super) struct ClientEnd {
    /// Its exit status, if it was not killed.
    pub(super) status: Option<i32>,
    /// What it printed as errors.
    pub(super) said: String,
}

impl Client {
    pub(super) fn start(program: &Path, arguments: Vec<OsString>) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        let theirs = OwnedFd::from(theirs);
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(theirs.try_clone()?)
            .stdout(theirs)
            .stderr(Stdio::piped())
            // What is typed to interrupt a command is for us, and not for the link.
            .process_group(0)
            // The client that a jump is made with gets no `BatchMode`, and would stop at a terminal for an answer. This
            // answers for all of them: no.
            .env("SSH_ASKPASS", "/bin/false")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .spawn()?;
        let said = Said::default();
        let errors = child.stderr.take();
        let process = Process(Some(child));
        if let Some(mut errors) = errors {
            let said = said.clone();
            // A shared connection that stays may hold it open for hours.
            let reading = thread::Builder::new().name("shieling-ssh".to_owned());
            reading.spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = errors.read(&mut buffer) {
                    said.push(buffer.get(..read).unwrap_or_default());
                }
            })?;
        }
        Ok(Self { process, stream, said })
    }

    pub(super) fn stream(&mut self) -> &mut UnixStream {
        &mut self.stream
    }

    /// The stream as it stands, with what ends the client.
    pub(super) fn connection(self) -> Connection {
        let Self { process, stream, said } = self;
        let (reader, writer) = stream.into_split();
        Connection::new(reader, writer).with_guard(process).with_said(said)
    }

    /// Ends it at once, with the clients that it has started for jumps. Gives what it has printed as errors.
    pub(super) fn kill(self) -> String {
        if let Some(child) = &self.process.0 {
            // Before it is reaped: its number is its own until then.
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                // They may have ended by themselves.
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
        }
        drop(self.process);
        self.said.text()
    }

    /// Waits for its end, which its stream has announced.
    pub(super) async fn end(self) -> ClientEnd {
        let Self {
            mut process,
            stream,
            said,
        } = self;
        drop(stream);
        let status = process.wait(ENDING).await;
        drop(process);
        let said = said.last(Duration::from_millis(500)).await;
        ClientEnd { status, said }
    }
}

/// The process. Dropping it kills it.
#[derive(Debug)]
struct Process(Option<Child>);

impl Process {
    /// Waits until it has ended, so long at most. Gives its exit status.
    async fn wait(&mut self, at_most: Duration) -> Option<i32> {
        let until = Instant::now() + at_most;
        while let Some(child) = &mut self.0 {
            match child.try_wait() {
                Ok(Some(status)) => {
                    self.0 = None;
                    return status.code();
                }
                Ok(None) if Instant::now() < until => sleep(LOOKING).await,
                Ok(None) | Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Guard for Process {
    fn end(mut self: Box<Self>) -> Later<'static, ()> {
        Box::pin(async move {
            self.wait(ENDING).await;
        })
    }
}
