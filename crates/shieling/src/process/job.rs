//! The host's side of one job: hears its supervisor's reports, gives it orders, lets go of it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::process::Signal;
use shieling_jail::message::{Order, Report, SIZE, Stage};
use tokio::io::unix::AsyncFd;

use super::error::SpawnError;
use super::event::{Control, Ended, Event, MainEnd, Usage};
use super::handle::Process;
use super::plan::Plan;
use super::{socket, sys};

/// The ends of a job's pipes that the host reads.
pub(super) struct Pipes {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// The way to a job's supervisor. Dropping it kills every process of the job.
pub(super) struct Supervised {
    control: AsyncFd<OwnedFd>,
    /// The process that looks after the supervisor.
    monitor: Arc<OwnedFd>,
    /// The second half of a message that said two things.
    pending: Option<Event>,
    over: bool,
}

/// The process of a job that was ordered, once its program runs. `known` is whether its number is one
/// of this host.
pub(super) async fn started(
    plan: &Plan,
    way: (OwnedFd, Arc<OwnedFd>),
    pipes: Pipes,
    known: bool,
    started: Instant,
) -> Result<Process, SpawnError> {
    let (supervised, pid) = Supervised::started(plan, way).await?;
    let made = Process::from_parts(pipes.stdout, pipes.stderr, Box::new(supervised));
    let process = made.map_err(|source| SpawnError::Supervisor {
        what: "watching a pipe",
        source,
    })?;
    Ok(process.with_origin(known.then_some(pid.unsigned_abs()), started))
}

fn explain(plan: &Plan, stage: Stage, errno: i32) -> SpawnError {
    let program = plan.program.clone();
    let source = io::Error::from_raw_os_error(errno);
    match (stage, Errno::from_raw_os_error(errno)) {
        (Stage::Setup, _) => SpawnError::Supervisor {
            what: "preparing a supervisor",
            source,
        },
        (Stage::Confine, _) => SpawnError::Supervisor {
            what: "confining the command",
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
    /// The way to a job that was ordered, once its program runs, and the program's number.
    pub(super) async fn started(
        plan: &Plan,
        (control, monitor): (OwnedFd, Arc<OwnedFd>),
    ) -> Result<(Self, i32), SpawnError> {
        let control = sys::watch(control).map_err(|source| SpawnError::Supervisor {
            what: "watching a control socket",
            source,
        })?;
        let mut supervised = Self {
            control,
            monitor,
            pending: None,
            over: false,
        };
        match std::future::poll_fn(|cx| supervised.poll_report(cx)).await {
            Some(Report::Started { pid }) => Ok((supervised, pid)),
            Some(Report::Failed { stage, errno }) => Err(explain(plan, stage, errno)),
            // It ended by force, perhaps by that of the command itself: who knows what runs.
            Some(Report::MainEnded { .. } | Report::Gone { .. } | Report::PartEnded { .. }) | None => {
                Err(SpawnError::Lost {
                    program: plan.program.clone(),
                })
            }
        }
    }

    /// Gives the supervisor an order. If it cannot be sent, the supervisor is gone, and the next report
    /// says so.
    pub(super) fn order(&self, order: Order) {
        // On this host a command may stop it with SIGSTOP; going on, it sees that its supervisor is stopped.
        let _ = rustix::process::pidfd_send_signal(&*self.monitor, Signal::CONT);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = rustix::net::send(self.control.get_ref(), &order.encode(), flags);
    }

    /// The next report, or `None` if the supervisor is gone without a word.
    pub(super) fn poll_report(&mut self, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        loop {
            let Ok(mut ready) = ready!(self.control.poll_read_ready(cx)) else {
                return Poll::Ready(None);
            };
            let mut bytes = [0_u8; SIZE];
            match rustix::net::recv(self.control.get_ref(), &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, length)) => return Poll::Ready(bytes.get(..length).and_then(Report::decode)),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) if socket::once_more(errno) => {}
                Err(_) => return Poll::Ready(None),
            }
        }
    }
}

impl Control for Supervised {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.pending.take() {
            return Poll::Ready(event);
        }
        if self.over {
            return Poll::Pending;
        }
        let event = match ready!(self.poll_report(cx)) {
            Some(Report::MainEnded {
                status,
                usage,
                gone,
                out_of_memory,
            }) => {
                if gone {
                    // The same supervisor says it again, to a host that has stopped to listen.
                    self.over = true;
                    self.pending = Some(Event::Gone(Ended::default()));
                }
                let end = main_end(status, out_of_memory);
                Event::MainEnded(end, Usage::from(usage))
            }
            Some(Report::Gone { ended, survivors }) => {
                self.over = true;
                Event::Gone(Ended { ended, survivors })
            }
            Some(Report::Started { .. } | Report::Failed { .. } | Report::PartEnded { .. }) | None => {
                self.over = true;
                Event::Lost
            }
        };
        Poll::Ready(event)
    }

    fn stop(&mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.order(Order::Stop { grace_ms });
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // Not by closing alone: a process that this host forked may hold a copy of the socket.
        let _ = rustix::net::shutdown(self.control.get_ref(), Shutdown::Both);
    }
}

/// What a status of the kernel's says.
pub(super) fn main_end(status: i32, out_of_memory: bool) -> MainEnd {
    if libc::WIFSIGNALED(status) {
        match libc::WTERMSIG(status) {
            libc::SIGKILL if out_of_memory => MainEnd::OutOfMemory,
            signal => MainEnd::Signalled(signal),
        }
    } else {
        MainEnd::Exited(libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    use super::*;

    /// A host's side, and the supervisor's end of its socket.
    fn supervised() -> (Supervised, OwnedFd) {
        let (control, supervisor) = socket::pair().expect("two ends");
        let monitor = pidfd_open(getpid(), PidfdFlags::empty()).expect("this process");
        let supervised = Supervised {
            control: sys::watch(control).expect("a runtime"),
            monitor: Arc::new(monitor),
            pending: None,
            over: false,
        };
        (supervised, supervisor)
    }

    #[tokio::test]
    async fn an_order_that_crosses_the_end_of_a_job_hides_no_report() {
        let (mut supervised, supervisor) = supervised();
        for report in [
            Report::MainEnded {
                status: 0,
                usage: Default::default(),
                gone: false,
                out_of_memory: false,
            },
            Report::Gone { ended: 2, survivors: 0 },
        ] {
            rustix::net::send(&supervisor, &report.encode(), SendFlags::empty()).expect("room");
        }
        supervised.stop(Duration::ZERO);
        // It ends without having read the order.
        drop(supervisor);
        let mut events = Vec::new();
        while !supervised.over {
            events.push(std::future::poll_fn(|cx| supervised.poll_event(cx)).await);
        }
        assert!(
            matches!(
                events[..],
                [
                    Event::MainEnded(MainEnd::Exited(0), _),
                    Event::Gone(Ended { ended: 2, survivors: 0 })
                ]
            ),
            "{events:?}"
        );
    }

    #[tokio::test]
    async fn a_supervisor_that_ends_without_a_report_is_lost() {
        let (mut supervised, supervisor) = supervised();
        supervised.stop(Duration::ZERO);
        drop(supervisor);
        let event = std::future::poll_fn(|cx| supervised.poll_event(cx)).await;
        assert!(matches!(event, Event::Lost), "{event:?}");
    }
}
