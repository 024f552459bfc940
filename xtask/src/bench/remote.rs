//! What the environment protocol adds: over pipes to the agent program on this host, and over `ssh` on loopback.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use shieling::environment::Later;
use shieling_remote::agent::{Program, Setup, Wanted};
use shieling_remote::ssh::Ssh;
use shieling_remote::transport::{Connection, Guard, Transport, TransportError};
use shieling_remote::{Remote, Timing};
use shieling_testkit::ssh::{Login, Server, is_there};
use tokio::net::unix::pipe;

use super::measure::{Measured, Plan, Row, interleaved, shown};
use super::target::{Target, over, table};
use crate::subject::{Caller, Library, Place};

/// What the protocol may add to a command of a session.
const ADDED: Duration = Duration::from_micros(60);
/// And `ssh`, over a byte's way there and back.
const OVER_SSH: Duration = Duration::from_millis(2);
/// How many bytes a second of output go through, at least.
const OUTPUT: f64 = 500e6;
/// The output that is measured.
const FLOOD: u64 = 500_000_000;

/// The whole section.
pub(crate) fn run() -> anyhow::Result<String> {
    let scratch = tempfile::tempdir()?;
    let library = Library::new(&Caller::here(scratch.path())?)?;
    let program = Program::carried()?;
    let mut text = format!(
        "The agent program has {:.2} MB (target ≤ 8 MB, {}).\n\n",
        program.bytes().len() as f64 / 1e6,
        held(program.bytes().len() <= 8_000_000)
    );
    for (title, section) in [
        (
            "Over pipes, `local` at the far side",
            pipes(&library, &program, scratch.path()),
        ),
        (
            "Over `ssh` on loopback, `local` at the far side",
            ssh(&library, scratch.path()),
        ),
    ] {
        let section = section.unwrap_or_else(|error| format!("Not measured: {error:#}"));
        text.push_str(&format!("### {title}\n\n{}\n\n", section.trim_end()));
    }
    Ok(text)
}

fn held(held: bool) -> &'static str {
    if held { "held" } else { "**missed**" }
}

/// The agent program as a process of this host, over two pipes.
struct Pipes {
    program: std::path::PathBuf,
    setup: Setup,
}

/// Ends it.
struct Ending(Child);

impl Guard for Ending {
    fn end(self: Box<Self>) -> Later<'static, ()> {
        Box::pin(async move { drop(self) })
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // Its pipes are closed by now, which ends it.
        let _ = self.0.wait();
    }
}

impl Transport for Pipes {
    fn name(&self) -> &str {
        "pipes"
    }

    fn connect(&self) -> Later<'_, Result<Connection, TransportError>> {
        let open = || {
            let mut child = Command::new(&self.program)
                .args(self.setup.arguments())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (stdin, stdout) = child
                .stdin
                .take()
                .zip(child.stdout.take())
                .ok_or(std::io::ErrorKind::Other)?;
            let reader = pipe::Receiver::from_owned_fd(stdout.into())?;
            let writer = pipe::Sender::from_owned_fd(stdin.into())?;
            Ok(Connection::new(reader, writer).with_guard(Ending(child)))
        };
        let opened = open().map_err(|source| TransportError::NotStarted {
            what: self.program.display().to_string(),
            source,
        });
        Box::pin(async move { opened })
    }
}

/// Served unconfined in this directory.
fn local(workspace: &Path) -> anyhow::Result<Setup> {
    Ok(Setup {
        environment: Wanted::Local,
        workspace: Some(workspace.canonicalize()?),
        ..Setup::default()
    })
}

fn connected(library: &Library, transport: impl Transport + 'static) -> anyhow::Result<Remote> {
    let connecting = async { Remote::over(Arc::new(transport), Timing::default()).await };
    Ok(library.block_on(connecting)?)
}

fn pipes(library: &Library, program: &Program, workspace: &Path) -> anyhow::Result<String> {
    let path = workspace.join("shieling-agent");
    std::fs::write(&path, program.bytes())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))?;
    let setup = local(workspace)?;
    let remote = connected(library, Pipes { program: path, setup })?;
    let (direct, behind) = (library.local(), library.over(Arc::new(remote.of_this_host())));
    let rows = vec![
        Row::new("a command of a session, `local`", || session(&direct)),
        Row::new("the same behind two pipes", || session(&behind)),
    ];
    let plan = Plan {
        rounds: 20,
        calls_a_round: 200,
    };
    let measured = interleaved(rows, plan)?;
    let mut text = table(&zipped(measured, [Target::None, Target::Over(ADDED)]));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (place, times) in [&direct, &behind].into_iter().zip(&mut times) {
            let start = Instant::now();
            let outcome = place.run(&format!("head -c {FLOOD} /dev/zero"))?;
            times.push(start.elapsed());
            ensure!(outcome.stdout_bytes == FLOOD, "not all arrived: {outcome:?}");
        }
    }
    let [direct_speed, behind_speed] = times.map(|times| {
        let median = Measured::new("", times).median();
        FLOOD as f64 / median.as_secs_f64()
    });
    text.push_str(&format!(
        "\n{} MB of output: {:.0} MB/s in `local`, {:.0} MB/s behind two pipes (target ≥ {:.0} MB/s, {}).\n",
        FLOOD / 1_000_000,
        direct_speed / 1e6,
        behind_speed / 1e6,
        OUTPUT / 1e6,
        held(behind_speed >= OUTPUT)
    ));
    behind.end();
    direct.end();
    Ok(text)
}

fn ssh(library: &Library, workspace: &Path) -> anyhow::Result<String> {
    ensure!(is_there(), "an SSH server, or root to start it, is missing");
    let server = Server::start();
    let settings = server.client_settings().display().to_string();
    let connect = || -> anyhow::Result<(Remote, Duration)> {
        let destination = format!("ssh://{}@far", Login::Root.name()).parse()?;
        let ssh = Ssh::new(destination, local(workspace)?)?.with_options(["-F", &settings]);
        let start = Instant::now();
        Ok((connected(library, ssh)?, start.elapsed()))
    };
    let (_, first) = connect()?;
    let (remote, second) = connect()?;
    let behind = library.over(Arc::new(remote));
    let mut echo = Echo::start(&settings)?;
    let rows = vec![
        Row::new("a byte there and back, by `ssh HOST cat`", || echo.round_trip()),
        Row::new("a command of a session", || session(&behind)),
        Row::new("a command by itself, `true`", || {
            let start = Instant::now();
            behind.run("true")?;
            Ok(start.elapsed())
        }),
    ];
    let plan = Plan {
        rounds: 10,
        calls_a_round: 100,
    };
    let measured = interleaved(rows, plan)?;
    let (byte, alone) = (
        measured.first().map(Measured::median),
        measured.get(2).map(Measured::median),
    );
    let more = byte
        .zip(alone)
        .map_or_else(String::new, |(byte, alone)| over(alone, byte));
    let targets = [Target::None, Target::Over(OVER_SSH), Target::Over(OVER_SSH)];
    let text = format!(
        "{}\nA command by itself takes {more} more than a byte. Connecting takes {} with the agent program sent, and {} \
         once it is there.\n",
        table(&zipped(measured, targets)),
        shown(first),
        shown(second)
    );
    behind.end();
    Ok(text)
}

fn zipped<const N: usize>(measured: Vec<Measured>, targets: [Target; N]) -> Vec<(Measured, Target)> {
    measured.into_iter().zip(targets).collect()
}

fn session(place: &Place<'_>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    place.session("main", ":")?;
    Ok(start.elapsed())
}

/// What a link costs by itself: `cat` at its other end.
struct Echo(Child);

impl Echo {
    fn start(settings: &str) -> anyhow::Result<Self> {
        let child = Command::new("ssh")
            .args(["-F", settings, "-T", "root@far", "exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self(child))
    }

    fn round_trip(&mut self) -> anyhow::Result<Duration> {
        let (input, output) = (self.0.stdin.as_mut(), self.0.stdout.as_mut());
        let (input, output) = input.zip(output).context("they are piped")?;
        let start = Instant::now();
        input.write_all(b"x")?;
        input.flush()?;
        output.read_exact(&mut [0])?;
        Ok(start.elapsed())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
