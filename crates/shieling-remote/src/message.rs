//! What the two sides say to each other, as postcard bytes. A change here is a new [`VERSION`].
//!
//! A message may be followed by bytes that are no part of it: a piece of a file.
//!
//! [`VERSION`]: crate::frame::VERSION

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shieling::environment::{
    Capabilities, Enforced, Environment, Expect, Kind as FileKind, Links, Meta, Platform, Stamp, WritablePaths,
};
use shieling::outcome::{Confinement, HeldBack, Hint, LimitHit, Outcome, Status};
use shieling::process::{Event, MainEnd, State, Usage};
use shieling::request::{Command, CommandError};
use shieling::units::ByteCount;

use crate::copy::{CopyFault, WireCopied, WireCopyOptions};
use crate::fault::{EnforceFault, FileFault, ShellFault, SpawnFault};
use crate::frame::{HEADER, Kind, LONGEST, room, seal};
use crate::wire_path::WirePath;

/// The most bytes of a file in one message.
pub(crate) const FILE_PIECE: usize = 256 * 1024;

/// What the near side tells the far side. The number of its call names what comes of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Start a command: [`Said::Started`].
    Spawn {
        command: WireCommand,
        streams: WireStreams,
        /// How much of each of its streams may be sent before any credit.
        window: u32,
    },
    /// Start a shell that stays: [`Said::Opened`]. The call names it afterwards.
    Open(WireCommand),
    /// Run a text in a shell: [`Said::Started`].
    Run { shell: u32, text: String, window: u32 },
    /// End what this call started, with so many milliseconds between SIGTERM and SIGKILL.
    Stop { grace_ms: u64 },
    /// Make the terminal of this call so large.
    Resize { rows: u16, columns: u16 },
    /// Nobody wants any more what this call names: whatever it runs is ended. Not answered.
    Forget,
    /// What does the shell say of a text? [`Said::SyntaxCheck`]
    SyntaxCheck(WireCommand),
    /// Those of these paths from which the user's own would run code: [`Said::Places`].
    UnprotectedPaths { paths: Vec<WirePath>, workspace: WirePath },
    /// Those of these paths that would be moved aside: [`Said::Places`].
    HoldsBack(Vec<WirePath>),
    /// What lies below and cannot be changed: [`Said::Paths`].
    KeptBelow(WirePath),
    /// The settings of a repository that cannot be changed: [`Said::Paths`].
    KeptSettings(WirePath),
    /// Enforce this from now on, for everything: [`Said::Enforced`].
    Enforce {
        workspace: WirePath,
        readonly: bool,
        /// The patterns of what is hidden, with `\0` between lists that are judged apart.
        hidden: Option<Vec<String>>,
        programs: Option<Vec<String>>,
    },
    /// What there is to tell of a command that has ended so, since the look with this number: [`Said::Told`].
    Tell { since: u64, outcome: Box<WireOutcome> },
    /// What was held back since this was last asked: [`Said::Told`].
    HeldBack,
    /// Give back what is held: [`Said::Told`], with what was held back until then.
    Close,
    /// Something of files.
    File(FileOrder),
    /// Make a tree of what its input says, at once [`WINDOW`](crate::copy::WINDOW) bytes of it at most:
    /// [`Said::Copied`]. `keep`: the call names what was made.
    CopyIn {
        to: WirePath,
        options: WireCopyOptions,
        keep: bool,
    },
    /// Send a tree on the output, what differs from what the call `since` made if there is one: [`Said::Copied`].
    CopyOut {
        from: WirePath,
        since: Option<u32>,
        window: u32,
    },
}

/// What is wanted of files. Handles are the numbers of the calls that made them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileOrder {
    /// [`Said::Node`]
    Node { path: WirePath, keep: bool },
    /// [`Said::Node`]
    Child { of: u32, name: WirePath },
    /// What stands at a write target: [`Said::Node`] or [`Said::Done`].
    Current { write_target: u32 },
    /// Of a node or an open file: [`Said::Meta`].
    Meta { of: u32 },
    /// [`Said::Meta`]
    ChildMeta { of: u32, name: WirePath },
    /// [`Said::Done`]; the call names the open file.
    Open { of: u32 },
    /// [`Said::Done`]
    OpenChild { of: u32, name: WirePath },
    /// [`Said::Bytes`], which follow.
    Read { of: u32, offset: u64, length: u32 },
    /// The first entries: [`Said::Entries`]. The call names the rest.
    Entries { of: u32 },
    /// The next ones of a listing: [`Said::Entries`].
    More { of: u32 },
    /// [`Said::Paths`]
    Target { of: u32 },
    /// [`Said::Node`], which is a write target.
    WriteTarget { path: WirePath, keep: bool },
    /// Room for a content of this length: [`Said::Done`]. The call names it.
    Content { length: u64 },
    /// The bytes that follow belong to a content. Not answered.
    Append { to: u32 },
    /// Puts a content, or the bytes that follow, at a write target: [`Said::Done`].
    Put {
        write_target: u32,
        content: Option<u32>,
        how: Put,
        expect: WireExpect,
    },
    /// [`Said::Done`]
    SetMode { write_target: u32, mode: u32 },
    /// [`Said::Done`]
    Remove { write_target: u32, recursive: bool },
    /// [`Said::Done`]
    Rename { write_target: u32, to: u32, replace: bool },
}

/// How a content is put.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Put {
    /// As a file of its own.
    Replace { executable: bool },
    /// As the file that once was.
    Restore(WireMeta),
}

/// What the far side says, to a call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    /// Of call 0, first of all and whenever it has changed: what the environment is.
    Described(Box<Description>),
    /// It runs. So much may be sent to it before any credit, if it has an input.
    Started { input: u32 },
    /// A shell stays.
    Opened(WireState),
    /// Nothing was started.
    NotStarted(SpawnFault),
    /// The shell did not take a text.
    NotRun(ShellFault),
    /// Of a shell's call: how it stands now.
    Stands { state: Box<WireState>, ended: bool },
    /// What happened to a job.
    Happened(WireEvent),
    /// What the shell says of a text.
    SyntaxCheck(Option<(i32, String)>),
    /// Some of those that were asked about, by their places.
    Places(Vec<u32>),
    /// Some paths.
    Paths(Vec<WirePath>),
    /// What is enforced.
    Enforced(WireEnforced),
    /// It cannot serve this policy.
    NotEnforced(EnforceFault),
    /// What there is to tell.
    Told(Told),
    /// It is done.
    Done,
    /// Something is there, or could be, at this path.
    Node(WirePath),
    /// What is known of it.
    Meta(WireMeta),
    /// The bytes that follow.
    Bytes,
    /// Some of a directory, and whether there is more.
    Entries {
        entries: Vec<(WirePath, FileKind)>,
        more: bool,
    },
    /// It could not be done with files.
    NotDone(FileFault),
    /// All was copied. What is sent is counted by the receiver.
    Copied(WireCopied),
    /// The copy stopped.
    NotCopied(CopyFault),
}

/// What is told of the place where an environment is served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The directory that is worked in there, absolute and without links; empty if nobody said.
    pub workspace: PathBuf,
    /// The shell there; empty if there is none.
    pub shell: PathBuf,
    /// The variables there that a command is given if nobody says otherwise.
    pub variables: BTreeMap<String, String>,
    /// Why commands there are not in a sandbox, if one was tried.
    pub unconfined: Option<String>,
    /// The files that were asked for and are there, with their text.
    pub shown: BTreeMap<String, String>,
    /// The directories of which was asked and that cannot be written.
    pub unwritable: Vec<PathBuf>,
    /// The kernel, its release and the processor, as `uname` has them; empty if nobody said.
    pub system: String,
    /// The text of the file in which the system names itself.
    pub os_release: String,
}

/// What an environment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) confinement: Confinement,
    pub(crate) platform: Option<(String, Vec<String>)>,
    pub(crate) places: Option<WritablePaths>,
    pub(crate) shells: u64,
    pub(crate) surroundings: Surroundings,
    pub(crate) added_variables: Vec<(String, String)>,
    /// Whether there can be anything to tell of a command.
    pub(crate) tells: bool,
    /// The number of the last look at what its limits have done.
    pub(crate) look: u64,
    /// Whether something was held back of which nobody was told.
    pub(crate) held_back: bool,
}

impl Description {
    pub(crate) fn of(environment: &dyn Environment, surroundings: &Surroundings) -> Self {
        let platform = environment.platform();
        Self {
            name: environment.name().to_owned(),
            capabilities: environment.capabilities(),
            confinement: environment.confinement(),
            platform: platform.map(|Platform { kernel, advice }| (kernel, advice)),
            places: environment.places(),
            shells: environment.shells() as u64,
            surroundings: surroundings.clone(),
            added_variables: added_variables(environment),
            tells: environment.tells(),
            look: 0,
            held_back: false,
        }
    }
}

fn added_variables(environment: &dyn Environment) -> Vec<(String, String)> {
    let added = environment.added_variables().into_iter();
    added.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What is enforced.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireEnforced {
    readonly: bool,
    hidden: bool,
    programs: bool,
}

impl WireEnforced {
    pub(crate) fn of(enforced: Enforced) -> Self {
        let Enforced {
            readonly,
            hidden,
            programs,
        } = enforced;
        Self {
            readonly,
            hidden,
            programs,
        }
    }

    pub(crate) fn enforced(self) -> Enforced {
        let Self {
            readonly,
            hidden,
            programs,
        } = self;
        Enforced {
            readonly,
            hidden,
            programs,
        }
    }
}

/// What there is to tell of a command besides its own end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) held_back: Vec<HeldBack>,
    pub(crate) hints: Vec<Hint>,
    pub(crate) limits_hit: Vec<LimitHit>,
}

/// What of an outcome an environment looks at to explain it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireOutcome {
    status: Status,
    exit_code: Option<i32>,
    signal: Option<i32>,
    stdout: String,
    stderr: String,
    duration_ms: f64,
    cwd: WirePath,
}

/// How much of each stream is looked at, from its end.
const LOOKED_AT: usize = 256 * 1024;

impl WireOutcome {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let end = |text: &str| {
            let start = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT));
            text.get(start..).unwrap_or_default().to_owned()
        };
        Self {
            status: outcome.status,
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            stdout: end(&outcome.stdout),
            stderr: end(&outcome.stderr),
            duration_ms: outcome.duration_ms,
            cwd: WirePath::of(&outcome.cwd),
        }
    }

    pub(crate) fn outcome(self, environment: &str) -> Outcome {
        Outcome {
            exit_code: self.exit_code,
            signal: self.signal,
            stdout: self.stdout,
            stderr: self.stderr,
            duration_ms: self.duration_ms,
            ..Outcome::blank(self.status, self.cwd.path(), environment)
        }
    }
}

/// A command that was approved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireCommand {
    text: String,
    cwd: WirePath,
    variables: BTreeMap<String, String>,
    deadline: Duration,
    grace: Duration,
    keep: u64,
    file_size: Option<u64>,
}

impl WireCommand {
    pub(crate) fn of(command: &Command) -> Self {
        Self {
            text: command.text().to_owned(),
            cwd: WirePath::of(command.cwd()),
            variables: command.variables().clone(),
            deadline: command.deadline(),
            grace: command.grace(),
            keep: command.output_kept().get(),
            file_size: command.file_size().map(ByteCount::get),
        }
    }

    pub(crate) fn command(self) -> Result<Command, CommandError> {
        Ok(Command::new(self.text, self.cwd.path())?
            .with_variables(self.variables)
            .with_deadline(self.deadline)?
            .with_grace(self.grace)
            .with_output_kept(ByteCount::bytes(self.keep))?
            .with_file_size(self.file_size.map(ByteCount::bytes)))
    }
}

/// What stands at the streams of a command.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum WireStreams {
    /// No input.
    Output,
    /// An input that is written to while it runs.
    Input,
    /// An input that was there before.
    Given,
    /// A terminal of this size.
    Terminal { rows: u16, columns: u16 },
}

/// How a shell stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireState {
    cwd: WirePath,
    deleted: bool,
    variables: BTreeMap<String, String>,
    omitted: Vec<String>,
    debug_trap_removed: bool,
}

impl WireState {
    pub(crate) fn of(state: State) -> Self {
        Self {
            cwd: WirePath::of(&state.cwd),
            deleted: state.deleted,
            variables: state.variables,
            omitted: state.omitted,
            debug_trap_removed: state.debug_trap_removed,
        }
    }

    pub(crate) fn state(self) -> State {
        State {
            cwd: self.cwd.path(),
            deleted: self.deleted,
            variables: self.variables,
            omitted: self.omitted,
            debug_trap_removed: self.debug_trap_removed,
        }
    }
}

/// What happened to a job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum WireEvent {
    Exited(i32, WireUsage),
    Signalled(i32, WireUsage),
    OutOfMemory(WireUsage),
    Gone { ended: u32, survivors: u32 },
    Lost,
}

/// What a main process used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireUsage {
    user: Duration,
    system: Duration,
    peak_memory: u64,
}

impl WireEvent {
    pub(crate) fn of(event: Event) -> Self {
        match event {
            Event::MainEnded(end, usage) => {
                let usage = WireUsage {
                    user: usage.user,
                    system: usage.system,
                    peak_memory: usage.peak_memory,
                };
                match end {
                    MainEnd::Exited(code) => Self::Exited(code, usage),
                    MainEnd::Signalled(signal) => Self::Signalled(signal, usage),
                    MainEnd::OutOfMemory => Self::OutOfMemory(usage),
                }
            }
            Event::Gone(ended) => Self::Gone {
                ended: ended.ended,
                survivors: ended.survivors,
            },
            Event::Lost => Self::Lost,
        }
    }

    pub(crate) fn event(self) -> Event {
        let usage = |usage: WireUsage| Usage {
            user: usage.user,
            system: usage.system,
            peak_memory: usage.peak_memory,
        };
        match self {
            Self::Exited(code, used) => Event::MainEnded(MainEnd::Exited(code), usage(used)),
            Self::Signalled(signal, used) => Event::MainEnded(MainEnd::Signalled(signal), usage(used)),
            Self::OutOfMemory(used) => Event::MainEnded(MainEnd::OutOfMemory, usage(used)),
            Self::Gone { ended, survivors } => Event::Gone(shieling::process::Ended { ended, survivors }),
            Self::Lost => Event::Lost,
        }
    }
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireMeta {
    kind: FileKind,
    size: u64,
    mode: u32,
    /// Seconds and nanoseconds since 1970; before that, they count backwards from it.
    modified: (bool, Duration),
    names: u64,
    stamp: [u64; 6],
}

impl WireMeta {
    pub(crate) fn of(meta: &Meta) -> Self {
        let since = meta.modified.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            kind: meta.kind,
            size: meta.size,
            mode: meta.mode,
            modified: since.map_or_else(|before| (true, before.duration()), |after| (false, after)),
            names: meta.names,
            stamp: meta.stamp.0,
        }
    }

    pub(crate) fn meta(self) -> Meta {
        let epoch = SystemTime::UNIX_EPOCH;
        let modified = match self.modified {
            (true, before) => epoch.checked_sub(before),
            (false, after) => epoch.checked_add(after),
        };
        Meta {
            kind: self.kind,
            size: self.size,
            mode: self.mode,
            modified: modified.unwrap_or(epoch),
            names: self.names,
            stamp: Stamp(self.stamp),
        }
    }
}

/// What must stand at a write target.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum WireExpect {
    Any,
    Nothing,
    Stamp([u64; 6]),
}

impl WireExpect {
    pub(crate) fn of(expect: Expect) -> Self {
        match expect {
            Expect::Any => Self::Any,
            Expect::Nothing => Self::Nothing,
            Expect::Stamp(stamp) => Self::Stamp(stamp.0),
        }
    }

    pub(crate) fn expect(self) -> Expect {
        match self {
            Self::Any => Expect::Any,
            Self::Nothing => Expect::Nothing,
            Self::Stamp(stamp) => Expect::Stamp(Stamp(stamp)),
        }
    }
}

/// Whether a link is kept, as the seam says it.
pub(crate) fn links(keep: bool) -> Links {
    if keep { Links::Keep } else { Links::Follow }
}

/// A message of a call, as a frame, with the bytes that follow it. Nothing if that is too long for one.
pub(crate) fn pack(call: u32, message: &impl Serialize, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut frame = postcard::to_extend(message, room(bytes.len() + 64)).ok()?;
    frame.extend_from_slice(bytes);
    (frame.len() - HEADER <= LONGEST).then(|| seal(frame, Kind::Message, call))
}

/// The message of a frame, and the bytes that follow it.
pub(crate) fn unpack<M: DeserializeOwned>(body: &[u8]) -> Result<(M, &[u8]), String> {
    postcard::take_from_bytes(body).map_err(|error| format!("a message that cannot be read ({error})"))
}
