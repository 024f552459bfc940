//! A command on the other side, as a process here.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::termios::OptionalActions;
use shieling::process::{Control, Event, Process, SpawnError, Streams};
use shieling::request::Command;
use tokio::io::{AsyncReadExt as _, duplex};
use tokio::time::sleep;

use super::arrived::{Running, Standing};
use super::calls::{Call, Near, Unanswered, Waiting};
use crate::carry::{Given, Outlet, Stream, Terminal};
use crate::frame::Channel;
use crate::message::{Order, Said, WireCommand, WireStreams};

/// How much of each stream may be on its way, while few commands run.
const WINDOW: usize = 1024 * 1024;
/// And while many do.
const SMALL_WINDOW: usize = 64 * 1024;
/// How many are few.
const FEW: usize = 32;
/// How much of an input waits here.
const TYPED: usize = 64 * 1024;
/// How often a terminal is asked for its size, which nobody tells of.
const LOOKING: Duration = Duration::from_millis(50);

/// The way to a job on the other side. Dropping it has the job ended there.
struct Away {
    call: Call,
    running: Arc<Running>,
    told: bool,
    over: bool,
    /// How the shell stands in which it runs, if it is a text of one.
    shell: Option<Arc<Standing>>,
    /// Whether its ends wait until what was printed before them is on its terminal. For pipes, `Process::from_streams`
    /// sees to that.
    waits: bool,
}

impl Away {
    fn new(call: Call, running: Arc<Running>, waits: bool) -> Self {
        Self {
            call,
            running,
            told: false,
            over: false,
            shell: None,
            waits,
        }
    }

    /// Whether the shell in which it runs has ended. It takes with it what its commands have left behind, so that the
    /// other side tells both ends at once, though in two messages.
    fn is_last_of_a_shell(&self) -> bool {
        self.shell.as_ref().is_some_and(|standing| standing.lock().1)
    }
}

impl Control for Away {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.over {
            return Poll::Pending;
        }
        let mut happened = self.running.lock();
        happened.waker = Some(cx.waker().clone());
        let (main, last) = (happened.main.filter(|_| !self.told), happened.last);
        drop(happened);
        if let Some((main, printed)) = main {
            if last.is_none() && self.is_last_of_a_shell() {
                return Poll::Pending;
            }
            if self.waits {
                ready!(self.running.output.poll_passed_on(cx, printed));
            }
            self.told = true;
            return Poll::Ready(main);
        }
        if let Some(last) = last {
            // Its whole output has arrived, and whoever carries that goes once it is on the terminal.
            if self.waits && last != Event::Lost {
                ready!(self.running.output.poll_passed_on(cx, u64::MAX));
            }
            self.over = true;
            return Poll::Ready(last);
        }
        Poll::Pending
    }

    fn stop(&mut self, grace: Duration) {
        self.waits = false;
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.call.near.send(self.call.number, &Order::Stop { grace_ms });
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // Whoever carries its input waits for nothing any more, and whoever prints on a terminal lets go of it.
        self.running.input.close();
        self.running.output.leave();
        self.running.errors.leave();
    }
}

/// A job that is ordered now: where what it says will arrive.
pub(super) struct Ordered {
    /// Its time counts from here on.
    pub(super) began: Instant,
    pub(super) window: u32,
    running: Arc<Mutex<Option<Arc<Running>>>>,
}

impl Ordered {
    pub(super) fn new(near: &Near) -> Self {
        let many = near.shared.lock().open.len() > FEW;
        let window = if many { SMALL_WINDOW } else { WINDOW };
        Self {
            began: Instant::now(),
            window: u32::try_from(window).unwrap_or(u32::MAX),
            running: Arc::default(),
        }
    }

    pub(super) fn waiting(&self, near: &Near, call: u32) -> Waiting {
        let running = Running::new(&near.shared.link, call, self.window as usize);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&running));
        Waiting {
            job: Some(running),
            ..Waiting::default()
        }
    }

    pub(super) fn begun(self, input: u32) -> Option<Arc<Running>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        running.input.grant(input as usize);
        Some(running)
    }
}

/// The process of a job whose output is read through pipes, and which runs in this shell, if in one.
pub(super) fn process(call: Call, running: &Arc<Running>, shell: Option<Arc<Standing>>) -> io::Result<Process> {
    let (output, errors) = (running.output.reader(), running.errors.reader());
    let mut away = Away::new(call, Arc::clone(running), false);
    away.shell = shell;
    Process::from_streams(output, errors, Box::new(away))
}

/// What is said where no answer has come.
pub(super) fn unanswered(name: &str, why: Unanswered) -> SpawnError {
    match why {
        Unanswered::NotSent(why) => SpawnError::Environment(format!("`{name}` cannot be reached: {why}").into()),
        Unanswered::Lost(_) => SpawnError::Lost {
            program: PathBuf::from(name),
        },
    }
}

/// What is said where the answer fits no question.
pub(super) fn unfitting() -> SpawnError {
    SpawnError::Environment("the other side has answered what was not asked".into())
}

/// Starts a command on the other side.
pub(super) async fn spawn(
    near: &Arc<Near>,
    name: &str,
    command: &Command,
    streams: Streams,
) -> Result<Process, SpawnError> {
    let failed = |what| move |source: io::Error| SpawnError::Supervisor { what, source };
    let terminal = match &streams {
        Streams::Terminal(theirs) => {
            // What is typed and printed passes through unchanged: the terminal that commands have is over there.
            let mut modes = rustix::termios::tcgetattr(theirs).map_err(io::Error::from);
            if let Ok(modes) = &mut modes {
                modes.make_raw();
                modes.local_modes -= rustix::termios::LocalModes::ECHO;
            }
            modes
                .and_then(|modes| Ok(rustix::termios::tcsetattr(theirs, OptionalActions::Now, &modes)?))
                .map_err(failed("preparing a terminal"))?;
            let size = rustix::termios::tcgetwinsize(theirs).map_err(io::Error::from);
            Some(size.map_err(failed("asking a terminal for its size"))?)
        }
        _ => None,
    };
    let wire = match (&streams, terminal) {
        (Streams::Output, _) => WireStreams::Output,
        (Streams::Input, _) => WireStreams::Input,
        (Streams::Given(_), _) => WireStreams::Given,
        // One that has no size yet has none that a terminal over there could have.
        (Streams::Terminal(_), size) => WireStreams::Terminal {
            rows: size.map(|size| size.ws_row).filter(|rows| *rows > 0).unwrap_or(24),
            columns: size
                .map(|size| size.ws_col)
                .filter(|columns| *columns > 0)
                .unwrap_or(80),
        },
    };
    let ordered = Ordered::new(near);
    let order = Order::Spawn {
        command: WireCommand::of(command),
        streams: wire,
        window: ordered.window,
    };
    let answered = near.call(&order, &[], |call| ordered.waiting(near, call)).await;
    let (call, input) = match answered {
        Ok((call, Said::Started { input }, _)) => (call, input),
        Ok((_, Said::NotStarted(fault), _)) => return Err(fault.error()),
        Ok(_) => return Err(unfitting()),
        Err(why) => return Err(unanswered(name, why)),
    };
    let began = ordered.began;
    let running = ordered.begun(input).ok_or_else(unfitting)?;
    let outlet = Outlet {
        link: Arc::clone(&near.shared.link),
        call: call.number,
        channel: Channel::Input,
        credit: Arc::clone(&running.input),
    };
    // What carries belongs to the thread that carries the stream.
    let entered = near.runtime.enter();
    match streams {
        Streams::Output => drop(outlet),
        Streams::Given(given) => {
            let given = Given::new(given).map_err(failed("watching an input"))?;
            near.runtime.spawn(async move {
                // A link that is over ends the job, too.
                let _ = outlet.send(given).await;
            });
        }
        Streams::Input => {
            let (ours, theirs) = duplex(TYPED);
            near.runtime.spawn(async move {
                let _ = outlet.send(Stream(ours)).await;
            });
            drop(entered);
            let process = process(call, &running, None).and_then(|process| process.with_input(theirs));
            let process = process.map(|process| process.with_start(began));
            return process.map_err(failed("making a pipe"));
        }
        Streams::Terminal(theirs) => {
            let terminal = Terminal::new(theirs).map_err(failed("watching a terminal"))?;
            let (number, link) = (call.number, Arc::downgrade(near));
            let printed = running.output.reader();
            near.runtime.spawn(async move {
                let looking = async {
                    let mut size = terminal.size();
                    loop {
                        sleep(LOOKING).await;
                        let now = terminal.size();
                        if now != size
                            && let Some((rows, columns)) = now
                            && let Some(near) = link.upgrade()
                        {
                            near.send(number, &Order::Resize { rows, columns });
                            size = now;
                        }
                    }
                };
                let typing = async {
                    let _ = outlet.send(terminal.clone()).await;
                    // What is printed has an end of its own, also if nobody reads what is typed.
                    std::future::pending::<()>().await;
                };
                // Once all is printed, whoever reads the terminal reads its end.
                tokio::select! {
                    () = terminal.write(printed) => {}
                    () = typing => {}
                    () = looking => {}
                }
            });
            drop(entered);
            let away = Away::new(call, running, true);
            let nothing = tokio::io::empty;
            let process = Process::from_streams(nothing().take(0), nothing().take(0), Box::new(away));
            let process = process.map(|process| process.with_start(began));
            return process.map_err(failed("making a pipe"));
        }
    }
    drop(entered);
    let process = process(call, &running, None).map(|process| process.with_start(began));
    process.map_err(failed("making a pipe"))
}
