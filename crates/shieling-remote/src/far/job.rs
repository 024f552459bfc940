//! One job of the far side: its streams to the near side, its orders, its end.

use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustix::pipe::PipeFlags;
use shieling::environment::AtEnd;
use shieling::process::{
    Control, DRAIN, Event, LARGE, LARGE_PIPE, MainEnd, OpenStreams, Process, ShellError, SpawnError, Streams,
};
use shieling::request::Command;
use shieling::session::{Pty, TerminalSize};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::calls::{Far, Ordered, Shell, Standing, Thing};
use crate::carry::{Outlet, Spring, Terminal, read_now};
use crate::flow::{Credit, Inbox};
use crate::frame::{Channel, INPUT};
use crate::link::Link;
use crate::message::{Said, WireCommand, WireEvent, WireState, WireStreams, pack};

/// The signal that the kernel sends for memory.
const KILL: i32 = 9;
/// With what a shell ends whose last command ended by it.
const AFTER_KILL: i32 = 128 + KILL;

/// How often it is looked whether what holds a stream up is who reads it.
const LOOKING: Duration = Duration::from_millis(20);

/// The streams of a job that is about to start.
pub(super) struct Start {
    link: Arc<Link>,
    call: u32,
    streams: WireStreams,
    input: Option<Arc<Inbox>>,
    credits: [Arc<Credit>; 2],
}

impl Start {
    pub(super) fn new(link: &Arc<Link>, call: u32, streams: WireStreams, window: u32) -> Self {
        let input = match streams {
            WireStreams::Output => None,
            WireStreams::Input | WireStreams::Given | WireStreams::Terminal { .. } => {
                Some(Inbox::new(link, call, Channel::Input, INPUT))
            }
        };
        let credit = || Credit::new(window as usize);
        Self {
            link: Arc::clone(link),
            call,
            streams,
            input,
            credits: [credit(), credit()],
        }
    }

    pub(super) fn input(&self) -> Option<Arc<Inbox>> {
        self.input.clone()
    }

    pub(super) fn credits(&self) -> [Arc<Credit>; 2] {
        self.credits.clone()
    }

    fn outlet(&self, channel: Channel) -> Outlet {
        let [output, errors] = &self.credits;
        Outlet {
            link: Arc::clone(&self.link),
            call: self.call,
            channel,
            credit: Arc::clone(if channel == Channel::Errors { errors } else { output }),
        }
    }
}

/// A job that runs.
pub(super) struct Job {
    start: Start,
    process: Process,
    /// The write end of an input that was there before.
    given: Option<pipe::Sender>,
    terminal: Option<Terminal>,
    shell: Option<(u32, Shell)>,
    at_end: AtLast,
}

/// Does at its end what is to be done then.
struct AtLast(Option<AtEnd>);

impl Drop for AtLast {
    fn drop(&mut self) {
        if let Some(at_end) = self.0.take() {
            at_end.act();
        }
    }
}

impl Far {
    /// Starts a command.
    pub(super) async fn spawn(&self, start: Start, command: WireCommand) -> Result<Job, SpawnError> {
        let failed = |what| move |source: io::Error| SpawnError::Supervisor { what, source };
        let approved = self.received(command).await?;
        let (mut given, mut terminal) = (None, None);
        let streams = match start.streams {
            WireStreams::Output => Streams::Output,
            WireStreams::Input => Streams::Input,
            WireStreams::Given => {
                let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
                    .map_err(io::Error::from)
                    .map_err(failed("making a pipe"))?;
                given = Some(pipe::Sender::from_owned_fd(write).map_err(failed("watching a pipe"))?);
                Streams::Given(read)
            }
            WireStreams::Terminal { rows, columns } => {
                let size = TerminalSize { rows, columns };
                let pair = Pty::open_in(self.environment.terminals().await?, size);
                let pair = pair.map_err(failed("making a terminal"))?;
                terminal = Some(Terminal::new(pair.ours).map_err(failed("watching a terminal"))?);
                Streams::Terminal(pair.theirs)
            }
        };
        let process = self.environment.spawn(approved, streams).await?;
        Ok(Job {
            start,
            process,
            given,
            terminal,
            shell: None,
            at_end: AtLast(None),
        })
    }

    /// An event as it is if it is no end by a kill for memory: of the main process, or of what a shell ends with.
    fn with_memory(&self, event: Event, kills_before: Option<u64>) -> Event {
        match event {
            Event::MainEnded(MainEnd::Signalled(KILL) | MainEnd::Exited(AFTER_KILL), usage)
                if self.kills.as_ref().map(|kills| kills()) > kills_before =>
            {
                Event::MainEnded(MainEnd::OutOfMemory, usage)
            }
            other => other,
        }
    }

    /// Runs a text in a shell that stays.
    pub(super) async fn run(&self, start: Start, number: u32, text: &str) -> Result<Job, ShellError> {
        let shell = self.thing(number, Thing::shell).ok_or(ShellError::Ended)?;
        let mut standing = shell.lock().await;
        let unprepared = || ShellError::Order {
            what: "preparing its place",
            errno: rustix::io::Errno::IO,
        };
        let state = standing.shell.state();
        let next = Command::new(text, state.cwd).map_err(|_| unprepared())?;
        let next = next.with_variables(state.variables).with_file_size(standing.file_size);
        let next = self.approved(next).await.map_err(|_| unprepared())?;
        let act = self.environment.before(&next).await.map_err(|_| unprepared())?;
        let at_end = AtLast(act);
        let process = standing.shell.run(text).await?;
        drop(standing);
        Ok(Job {
            start,
            process,
            given: None,
            terminal: None,
            shell: Some((number, shell)),
            at_end,
        })
    }
}

impl Job {
    /// Carries its streams, follows its orders and tells what happens to it, until nothing is left of it.
    pub(super) async fn follow(self, far: &Far, mut ordered: mpsc::Receiver<Ordered>) {
        let Self {
            start,
            process,
            given,
            terminal,
            shell,
            at_end,
        } = self;
        far.describe();
        // A kill for memory in between may be of another command; who was killed is not told.
        let kills_before = far.kills.as_ref().map(|kills| kills());
        let granted = if start.input.is_some() { INPUT } else { 0 };
        let input = u32::try_from(granted).unwrap_or(u32::MAX);
        far.say(start.call, &Said::Started { input }, &[]);
        let OpenStreams {
            stdout,
            stderr,
            input,
            mut control,
        } = process.into_streams();
        let (gone, ended) = (watch::Sender::new(false), watch::Sender::new(false));
        let mut caught_up = Vec::new();
        let mut carriers = tokio::task::JoinSet::new();
        // Only who carries keeps it open: once nobody types any more, whoever has its other end is hung up on.
        let sized = terminal.as_ref().map(Terminal::weak);
        match terminal {
            Some(terminal) => {
                let outlet = start.outlet(Channel::Output);
                let (printed, caught) = Draining::new(terminal.clone(), &gone, &ended);
                caught_up.push((caught, Arc::clone(&outlet.credit)));
                let typed = start.input.as_ref().map(Inbox::reader);
                carriers.spawn(async move {
                    let printing = outlet.send(printed);
                    let typing = async {
                        match typed {
                            Some(typed) => terminal.write(typed).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        _ = printing => {}
                        () = typing => {}
                    }
                });
            }
            None => {
                for (channel, pipe) in [(Channel::Output, stdout), (Channel::Errors, stderr)] {
                    let outlet = start.outlet(channel);
                    let (printed, caught) = Draining::new(Printed { pipe, total: 0 }, &gone, &ended);
                    caught_up.push((caught, Arc::clone(&outlet.credit)));
                    carriers.spawn(async move {
                        // A link that is over ends all of this.
                        let _ = outlet.send(printed).await;
                    });
                }
                if let Some((inbox, mut input)) = start.input.as_ref().zip(input.or(given)) {
                    let mut typed = inbox.reader();
                    let mut gone = gone.subscribe();
                    // Apart from the others: an input that nobody ends keeps no job.
                    carriers.spawn(async move {
                        tokio::select! {
                            _ = tokio::io::copy(&mut typed, &mut input) => {}
                            _ = gone.wait_for(|gone| *gone) => {}
                        }
                    });
                }
            }
        }
        let mut stopped = false;
        let (main, last) = loop {
            let event = tokio::select! {
                biased;
                event = std::future::poll_fn(|cx| control.poll_event(cx)) => event,
                order = ordered.recv() => {
                    match order {
                        Some(Ordered::Stop(grace)) => {
                            stopped = true;
                            control.stop(grace);
                        }
                        Some(Ordered::Resize(rows, columns)) => {
                            if let Some(terminal) = sized.as_ref().and_then(Terminal::of) {
                                terminal.resize(rows, columns);
                            }
                        }
                        // It is forgotten, and this future with it.
                        None => std::future::pending().await,
                    }
                    continue;
                }
            };
            let event = far.with_memory(event, kills_before);
            if let Event::MainEnded(..) = event {
                // If nothing else is left, both are told behind the output: nobody there is to take the time that it
                // needs for that of something that was left behind.
                let next = std::future::poll_fn(|cx| Poll::Ready(control.poll_event(cx))).await;
                if let Poll::Ready(last) = next {
                    break (Some(event), last);
                }
                ended.send_replace(true);
                stopped |= catch_up(std::mem::take(&mut caught_up), &mut ordered, &mut *control).await;
                tell_state(far, shell.as_ref()).await;
                if tell(far, start.call, event).await.is_err() {
                    return;
                }
                continue;
            }
            break (None, event);
        };
        gone.send_replace(true);
        let carried = async { while carriers.join_next().await.is_some() {} };
        if stopped {
            let _ = timeout(DRAIN, carried).await;
        } else {
            // An order to stop is one not to wait.
            tokio::select! {
                () = carried => {}
                () = told_to_stop(&mut ordered) => {}
            }
        }
        drop(at_end);
        far.look();
        tell_state(far, shell.as_ref()).await;
        // Behind the last piece of its output.
        for event in main.into_iter().chain([last]) {
            if tell(far, start.call, event).await.is_err() {
                return;
            }
        }
        while carriers.join_next().await.is_some() {}
    }
}

/// Waits until what was printed by now stands in line, or may not be sent for now. Whether it was told to stop meanwhile.
async fn catch_up(
    springs: Vec<(oneshot::Receiver<()>, Arc<Credit>)>,
    ordered: &mut mpsc::Receiver<Ordered>,
    control: &mut dyn Control,
) -> bool {
    for (mut caught, credit) in springs {
        loop {
            tokio::select! {
                biased;
                // One that nobody reads any more is dropped.
                _ = &mut caught => break,
                Some(order) = ordered.recv() => {
                    if let Ordered::Stop(grace) = order {
                        control.stop(grace);
                        return true;
                    }
                }
                () = tokio::time::sleep(LOOKING) => {
                    if credit.is_spent() {
                        break;
                    }
                }
            }
        }
    }
    false
}

async fn told_to_stop(ordered: &mut mpsc::Receiver<Ordered>) {
    loop {
        match ordered.recv().await {
            Some(Ordered::Stop(_)) => return tokio::time::sleep(DRAIN).await,
            Some(Ordered::Resize(..)) => {}
            None => std::future::pending().await,
        }
    }
}

/// Tells what happened, behind the output that stands in line.
async fn tell(far: &Far, call: u32, event: Event) -> Result<(), ()> {
    let said = Said::Happened(WireEvent::of(event));
    let frame = pack(call, &said, &[]).ok_or(())?;
    far.link.in_line(frame).await.map_err(|_| ())
}

/// Tells how a shell stands, if that has changed. One that begins another text tells with that.
async fn tell_state(far: &Far, shell: Option<&(u32, Shell)>) {
    let Some((number, shell)) = shell else { return };
    let Ok(mut standing) = shell.try_lock() else { return };
    let Standing { shell, told, .. } = &mut *standing;
    let now = (WireState::of(shell.state()), shell.has_ended());
    if *told == now {
        return;
    }
    *told = now.clone();
    drop(standing);
    let (state, ended) = now;
    let said = Said::Stands {
        state: Box::new(state),
        ended,
    };
    if let Some(frame) = pack(*number, &said, &[]) {
        // A link that is over ends all of this.
        let _ = far.link.in_line(frame).await;
    }
}

/// What a process prints into its pipe.
struct Printed {
    pipe: pipe::Receiver,
    total: u64,
}

impl Spring for Printed {
    async fn next(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        loop {
            self.pipe.readable().await?;
            let start = into.len();
            into.resize(start + most, 0);
            let read = self.pipe.try_read(into.get_mut(start..).unwrap_or_default());
            into.truncate(start + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(read) => {
                    self.total += read as u64;
                    if self.total > LARGE && self.total - read as u64 <= LARGE {
                        // Over the user's budget it stays as it was, only slower.
                        let _ = rustix::pipe::fcntl_setpipe_size(&self.pipe, LARGE_PIPE);
                    }
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn waiting(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.pipe).unwrap_or(0)
    }

    fn now(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        read_now(&self.pipe, into, most)
    }
}

/// A spring that says when all is sent that was there as the main process ended, and is at its end once its job is gone
/// and nothing has come from it for a moment.
struct Draining<S> {
    from: S,
    gone: watch::Receiver<bool>,
    ended: watch::Receiver<bool>,
    /// How much of what was there then is still to be sent, once that is known.
    left: Option<u64>,
    caught: Option<oneshot::Sender<()>>,
}

impl<S: Spring> Draining<S> {
    fn new(from: S, gone: &watch::Sender<bool>, ended: &watch::Sender<bool>) -> (Self, oneshot::Receiver<()>) {
        let (caught, catching) = oneshot::channel();
        let draining = Self {
            from,
            gone: gone.subscribe(),
            ended: ended.subscribe(),
            left: None,
            caught: Some(caught),
        };
        (draining, catching)
    }

    /// Says that all is sent, if it is: what was given before is, since more is asked for.
    fn look(&mut self) {
        if self.caught.is_some() && *self.ended.borrow() {
            let left = *self.left.get_or_insert_with(|| self.from.waiting());
            if left == 0
                && let Some(caught) = self.caught.take()
            {
                // Who does not wait any more has been told to stop.
                let _ = caught.send(());
            }
        }
    }
}

impl<S: Spring + Send + Sync> Spring for Draining<S> {
    async fn next(&mut self, into: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let read = loop {
            self.look();
            let asked = self.caught.is_some() && !*self.ended.borrow();
            if *self.gone.borrow() {
                break match timeout(DRAIN, self.from.next(into, most)).await {
                    Ok(read) => read,
                    // The runtime may not have looked since the last bytes came.
                    Err(_) => self.from.now(into, most),
                };
            }
            tokio::select! {
                biased;
                read = self.from.next(into, most) => break read,
                _ = self.gone.wait_for(|gone| *gone) => {}
                _ = self.ended.wait_for(|ended| *ended), if asked => {}
            }
        };
        if let (Ok(read), Some(left)) = (&read, &mut self.left) {
            *left = left.saturating_sub(*read as u64);
        }
        read
    }
}
