//! The host's side of a supervised job: makes its supervisor, hears its reports, lets go of it.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::message::{Order, Report, SIZE, Stage};
use super::supervisor::{self, Job};
use super::{Control, Ended, Event, MainEnd, Plan, SpawnError, Usage, sys};

/// The ends of a job's pipes that the job itself gets. None of them is 0, 1 or 2.
pub(super) struct Pipes {
    stdout: OwnedFd,
    stderr: OwnedFd,
    script: Option<OwnedFd>,
}

impl Pipes {
    pub(super) fn stdout(&self) -> RawFd {
        self.stdout.as_raw_fd()
    }

    pub(super) fn stderr(&self) -> RawFd {
        self.stderr.as_raw_fd()
    }

    pub(super) fn script(&self) -> Option<RawFd> {
        self.script.as_ref().map(|fd| fd.as_raw_fd())
    }
}

/// How long a supervisor may be silent at its start before it is told to go on.
const STOPPED: Duration = Duration::from_millis(50);

/// A job beside which a supervisor runs. Dropping it kills every process of the job.
pub(super) struct Supervised {
    control: AsyncFd<OwnedFd>,
    /// The supervisor.
    pidfd: OwnedFd,
    /// The main process, for the case that the supervisor is lost.
    main: Option<(Pid, OwnedFd)>,
    /// The second half of a message that said two things.
    pending: Option<Event>,
    reaped: bool,
}

/// Starts `plan`. Gives the job, its standard output and its standard error.
///
/// Up to the first `await` this takes as long as copying the page tables of this process.
pub(super) async fn start(plan: &Plan) -> Result<(Supervised, u32, pipe::Receiver, pipe::Receiver), SpawnError> {
    let (mut supervised, stdout, stderr) = launch(plan)?;
    // A command runs before its start is reported, and may have stopped its supervisor.
    let report = loop {
        let report = std::future::poll_fn(|cx| supervised.poll_report(cx));
        match tokio::time::timeout(STOPPED, report).await {
            Ok(report) => break report,
            Err(_) => {
                let _ = rustix::process::pidfd_send_signal(&supervised.pidfd, Signal::CONT);
            }
        }
    };
    let pid = match report {
        Some(Report::Started { pid }) => pid,
        Some(Report::Failed { stage, errno }) => {
            supervised.reap();
            return Err(explain(plan, stage, errno));
        }
        Some(Report::MainEnded { .. } | Report::Gone { .. }) | None => {
            // It ended by force, perhaps by that of the command itself: who knows what runs.
            return Err(SpawnError::Lost {
                program: plan.program.clone(),
            });
        }
    };
    // So soon after its start that its number cannot have gone around.
    if let Some(main) = Pid::from_raw(pid) {
        supervised.main = rustix::process::pidfd_open(main, PidfdFlags::empty())
            .ok()
            .map(|fd| (main, fd));
    }
    Ok((supervised, pid.unsigned_abs(), stdout, stderr))
}

fn launch(plan: &Plan) -> Result<(Supervised, pipe::Receiver, pipe::Receiver), SpawnError> {
    let failed = |what| move |source: io::Error| SpawnError::Supervisor { what, source };
    let (stdout_read, stdout) = pair().map_err(failed("making a pipe"))?;
    let (stderr_read, stderr) = pair().map_err(failed("making a pipe"))?;
    let script = plan
        .script
        .as_deref()
        .map(script_file)
        .transpose()
        .map_err(failed("keeping the script in memory"))?;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)
            .map_err(failed("making a control socket"))?;
    let theirs = above_standard(theirs).map_err(failed("making a control socket"))?;
    let pipes = Pipes { stdout, stderr, script };

    let directory = plan.directory()?;
    let launch = plan.launch(&pipes)?;
    let mut keep = [
        theirs.as_raw_fd(),
        pipes.stdout(),
        pipes.stderr(),
        pipes.script().unwrap_or(theirs.as_raw_fd()),
    ];
    keep.sort_unstable();
    let stdout_read = pipe::Receiver::from_owned_fd(stdout_read).map_err(failed("watching a pipe"))?;
    let stderr_read = pipe::Receiver::from_owned_fd(stderr_read).map_err(failed("watching a pipe"))?;
    let ours = sys::watch(ours).map_err(failed("watching a control socket"))?;
    let job = Job {
        launch: launch.pointers(),
        directory: &directory,
        file_size: plan.file_size.map(crate::units::ByteCount::get),
        host: rustix::process::getpid(),
        control: theirs.as_fd(),
        keep: &keep,
        keep_running: &[theirs.as_raw_fd()],
    };
    let pidfd = sys::clone_process(supervisor::supervise, &job).map_err(failed("making a supervisor"))?;
    Ok((
        Supervised {
            control: ours,
            pidfd,
            main: None,
            pending: None,
            reaped: false,
        },
        stdout_read,
        stderr_read,
    ))
}

/// A pipe, its write end above the standard descriptors.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((read, above_standard(write)?))
}

/// A host may have closed its own standard streams; ours must not land there, since the job's
/// standard streams are put over them.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        Ok(fd)
    } else {
        Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?)
    }
}

fn script_file(text: &str) -> io::Result<OwnedFd> {
    let file = above_standard(rustix::fs::memfd_create(c"script", MemfdFlags::CLOEXEC)?)?;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

fn explain(plan: &Plan, stage: Stage, errno: i32) -> SpawnError {
    let program = plan.program.clone();
    let source = io::Error::from_raw_os_error(errno);
    match (stage, Errno::from_raw_os_error(errno)) {
        (Stage::Setup, _) => SpawnError::Supervisor {
            what: "preparing a supervisor",
            source,
        },
        (Stage::Directory, _) => SpawnError::Directory {
            path: plan.cwd.clone(),
            source,
        },
        (Stage::Limit, _) => SpawnError::Limit { program, source },
        (Stage::Program, Errno::NOENT) => SpawnError::Missing { program },
        (Stage::Program, Errno::ACCESS | Errno::NOEXEC | Errno::ISDIR | Errno::PERM | Errno::NOTDIR) => {
            SpawnError::NotExecutable { program, source }
        }
        (Stage::Program, Errno::TOOBIG) => SpawnError::TooBig {
            program,
            bytes: plan.size(),
        },
        (Stage::Program, _) => SpawnError::Program { program, source },
    }
}

impl Supervised {
    /// The next report, or `None` if the supervisor is gone without a word.
    fn poll_report(&mut self, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        loop {
            let Ok(mut ready) = ready!(self.control.poll_read_ready(cx)) else {
                return Poll::Ready(None);
            };
            let mut bytes = [0_u8; SIZE];
            match rustix::net::recv(self.control.get_ref(), &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, length)) => return Poll::Ready(bytes.get(..length).and_then(Report::decode)),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(_) => return Poll::Ready(None),
            }
        }
    }

    /// Reaps the supervisor, which has said its last word and takes microseconds to exit.
    fn reap(&mut self) {
        self.reaped = true;
        // ECHILD would mean that somebody reaped it for us, which is as good.
        let _ = sys::reap_cloned(self.pidfd.as_fd());
    }

    /// What can still be done when the supervisor is gone before its job: somebody killed it.
    fn lost(&mut self) -> Event {
        if let Some((pid, pidfd)) = self.main.take()
            && rustix::process::pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
        {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        self.reap();
        Event::Lost
    }
}

impl Control for Supervised {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.pending.take() {
            return Poll::Ready(event);
        }
        if self.reaped {
            return Poll::Pending;
        }
        let event = match ready!(self.poll_report(cx)) {
            Some(Report::MainEnded { status, usage, gone }) => {
                if gone {
                    // The same supervisor says it again, to a host that has stopped to listen.
                    self.reap();
                    self.pending = Some(Event::Gone(Ended::default()));
                }
                let end = if libc::WIFSIGNALED(status) {
                    MainEnd::Signalled(libc::WTERMSIG(status))
                } else {
                    MainEnd::Exited(libc::WEXITSTATUS(status))
                };
                Event::MainEnded(end, Usage::from(usage))
            }
            Some(Report::Gone { ended, survivors }) => {
                self.reap();
                Event::Gone(Ended { ended, survivors })
            }
            Some(Report::Started { .. } | Report::Failed { .. }) | None => self.lost(),
        };
        Poll::Ready(event)
    }

    fn stop(&mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        // A job may have stopped its supervisor with SIGSTOP.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::CONT);
        // If it cannot be sent, the supervisor is gone, and the next event says so.
        let _ = rustix::net::send(
            self.control.get_ref(),
            &Order::Stop { grace_ms }.encode(),
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        );
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // Not by closing alone: a process that this host forked may hold a copy of the socket.
        let _ = rustix::net::shutdown(self.control.get_ref(), Shutdown::Both);
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::CONT);
        // Ending a tree takes milliseconds, too long to wait for in a destructor.
        match self.pidfd.try_clone() {
            Ok(pidfd) => {
                let reaper = std::thread::Builder::new()
                    .name("shieling-reaper".into())
                    .stack_size(64 * 1024);
                if reaper.spawn(move || sys::reap_cloned(pidfd.as_fd())).is_err() {
                    self.reap();
                }
            }
            Err(_) => self.reap(),
        }
    }
}
