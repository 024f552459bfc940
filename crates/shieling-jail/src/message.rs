//! What host and jail tell each other: the encoding of plans and requests, the answer to a plan, and
//! the fixed-size messages about one job.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The size of every message about a job.
pub const SIZE: usize = 48;
/// The longest answer to a plan, in bytes.
pub const LONGEST_ANSWER: usize = 160 * 1024;
/// The order to make a jail, on the orders socket. Its descriptors come with it, in this order: the
/// jail's control socket, its updates socket, and the encoded [`crate::plan::Plan`] (at offset 0).
pub const JAIL: &[u8] = b"jail";
/// The news that the next order will be for a jail with namespaces and a network of its own, so that these are made
/// while it is waited for. It may turn out to be wrong.
pub const LIKELY: &[u8] = b"likely";
/// What lies over hidden files and directories, by their paths in a jail's root: whatever is one of
/// these stands for something hidden.
pub const COVERS: [&str; 2] = ["/.shieling/link", "/.shieling/directory"];
/// The order to hide and protect more, on the updates socket, with an encoded [`Numbered`]. The answer
/// is an encoded [`Updated`].
pub const UPDATE: &[u8] = b"update";
/// The order to make more sockets in the jail's network, on the updates socket, with encoded
/// [`NumberedEndpoints`], at most [`SOCKETS_MOST`] of them. The answer is an encoded [`Updated`], with the sockets in
/// their order if it was done.
pub const LISTEN: &[u8] = b"listen";
/// On the control socket, before the [`Answer`]: the next sockets of [`crate::plan::Gateway::sockets`], at most
/// [`SOCKETS_MOST`].
pub const SOCKETS: &[u8] = b"sockets";
/// The largest number of sockets that one message brings.
pub const SOCKETS_MOST: usize = 32;
/// What the monitor says on the updates socket once every process of the jail is gone; it goes itself once it has
/// removed what it made for the jail's limits.
pub const GONE: &[u8] = b"gone";
/// The order to start a job, on the control socket. Its descriptors come with it, in this order: the
/// job's own socket, the encoded [`crate::plan::Request`] (at offset 0), standard input, output and
/// error, and the script if there is one.
///
/// It may be sent before the jail has answered its plan: no supervisor takes it until all of the plan holds.
pub const START: &[u8] = b"start";
/// As [`START`], for the last job of a jail, which ends by itself once no process of that job is left.
pub const LAST: &[u8] = b"last";

/// Encodes a plan, a request or an answer.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data of known length can always be encoded")
}

/// Decodes what [`encode`] gave; nothing if it is anything else.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

/// As [`decode`], of the first of these bytes; with the rest of them.
pub fn decode_first<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    postcard::take_from_bytes(bytes).ok()
}

/// What has appeared since the jail was made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Update {
    /// Whether what the host changed below a layer ([`Entry::Staged`](crate::plan::Entry::Staged)) is to be seen
    /// from now on. Done before all the rest.
    pub refresh: bool,
    /// What is to be hidden from now on, besides what is.
    pub hide: Vec<Hide>,
    /// What is to be protected from now on, besides what is.
    #[serde(with = "crate::bytes")]
    pub protect: Vec<PathBuf>,
    /// What is to keep its name from now on, and can still be changed inside.
    #[serde(with = "crate::bytes")]
    pub pin: Vec<PathBuf>,
    /// The same, by mounts that nobody meets, in what [`Entry::Unseen`](crate::plan::Entry::Unseen) names;
    /// directories and links.
    pub hold: Vec<Hide>,
}

/// Something that is to be hidden, or held: by its path, and only if it is what the host has seen there. Who
/// moves directories about could otherwise have another one hidden in its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hide {
    /// Where it was.
    #[serde(with = "crate::bytes")]
    pub target: PathBuf,
    /// What it was: the numbers of its device and of itself.
    pub file: (u64, u64),
}

/// An update with its number, so that its answer is not taken for another's.
pub type Numbered = (u64, Update);
/// The endpoints of more sockets, with a number of the same kind.
pub type NumberedEndpoints = (u64, Vec<crate::plan::Endpoint>);
/// What came of the update of this number.
pub type Updated = (u64, Result<Missed, Refusal>);

/// What was to be hidden or held and was not there any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Missed {
    /// Where it was.
    #[serde(with = "crate::bytes")]
    pub paths: Vec<PathBuf>,
}

/// What can be read from a descriptor about limits that were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counter {
    /// A file of the kernel's with the line `oom_kill N`: processes killed for the memory of their group.
    Kills,
    /// A file of the kernel's with the line `max N`: tasks that were refused to their group.
    Refusals,
    /// A file of the kernel's with a number: the most bytes that the group has had.
    Peak,
    /// A file of the kernel's in which lines say what kinds of memory the group has.
    Memory,
    /// What the jail has seen of processes that were killed for memory: see [`Killed`].
    Journal,
}

/// A process that was killed for memory, as it stands in the journal: a file in memory that begins with how many
/// there were, in 8 bytes, and holds the last [`Killed::KEPT`] of them behind that, number `n` in place
/// `n % KEPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Killed {
    /// Its number in the jail.
    pub number: i32,
    /// The name of its program, as the kernel keeps it: cut to 15 bytes.
    pub name: [u8; 16],
    /// The memory that it was last seen to have, in bytes.
    pub bytes: u64,
    /// The memory of the whole jail at that time, in bytes.
    pub all: u64,
}

impl Killed {
    /// How many are kept.
    pub const KEPT: u64 = 64;
    /// The size of one.
    pub const SIZE: usize = 40;

    /// Where number `n` stands.
    pub fn place(n: u64) -> u64 {
        8 + n % Self::KEPT * Self::SIZE as u64
    }

    /// As it stands there.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let parts: [&[u8]; 4] = [
            &number(self.number).to_le_bytes(),
            &self.name,
            &self.bytes.to_le_bytes(),
            &self.all.to_le_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    /// From how it stands there.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            number: word(0)? as i32,
            name: bytes.get(8..24)?.try_into().ok()?,
            bytes: word(24)?,
            all: word(32)?,
        })
    }
}

/// The jail's answer to its plan, once. With [`Answer::Ready`] come, in this order, for a jail that has a view
/// of files a descriptor of its root, which has no effect by itself (`O_PATH`), and its [`Ready::counters`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It holds, and commands can start.
    Ready(Ready),
    /// It does not, and nothing is left.
    Refused(Refusal),
}

/// What holds, read back or probed from inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The process outside that is gone once every process of the jail is; in the host's numbers.
    pub monitor: i32,
    /// The layers in force.
    pub enforced: Vec<String>,
    /// What was asked for and is in force in a lesser way, or not at all.
    pub missing: Vec<String>,
    /// The effective limits.
    pub limits: crate::plan::Limits,
    /// The directory that was made for temporary files, where `/tmp` is the host's.
    #[serde(with = "crate::bytes")]
    pub temporary: Option<PathBuf>,
    /// What the descriptors are that come with it, after the root.
    pub counters: Vec<Counter>,
}

/// What could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The layer that is missing.
    pub layer: Layer,
    /// What was being done, and to what, in words.
    pub doing: String,
    /// The error number; 0 where the kernel gave none.
    pub errno: i32,
}

/// What a jail is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Layer {
    /// The plan itself was wrong, or the jail's own start failed.
    Start,
    /// User namespaces, and with them all the others.
    User,
    /// The mount namespace and the view of files in it.
    Mount,
    /// The pid namespace and its `/proc`.
    Pid,
    /// The network namespace.
    Network,
    /// The ipc, uts and cgroup namespaces.
    Other,
    /// Landlock.
    Landlock,
    /// The system call filter.
    Seccomp,
    /// Capabilities and `no_new_privs`.
    Capabilities,
    /// Control groups and resource limits.
    Limits,
    /// A probe from inside saw that something does not hold.
    Probe,
}

/// What failed before a program ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Preparing the supervisor itself.
    Setup,
    /// Entering the working directory.
    Directory,
    /// Setting a resource limit.
    Limit,
    /// Starting the program.
    Program,
    /// Confining it.
    Confine,
}

/// What the main process and the children that it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Microseconds of CPU time in user code.
    pub user_us: u64,
    /// Microseconds of CPU time in the kernel.
    pub system_us: u64,
    /// The largest resident set of one process, in KiB.
    pub peak_kib: u64,
}

/// From a job's supervisor to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The program runs.
    Started {
        /// Its number, in the jail's numbers.
        pid: i32,
    },
    /// It does not, and nothing is left.
    Failed {
        /// What failed.
        stage: Stage,
        /// The error number.
        errno: i32,
    },
    /// The main process ended.
    MainEnded {
        /// As `wait` gives it.
        status: i32,
        /// What it used.
        usage: Usage,
        /// Whether nothing else of the job was there either.
        gone: bool,
        /// Whether the memory limit killed a process of the jail while it ran.
        out_of_memory: bool,
    },
    /// No process of the job is left, except for `survivors`, which could not be ended.
    Gone {
        /// Processes besides the main one that were alive when it was ended.
        ended: u32,
        /// Processes that could not be ended.
        survivors: u32,
    },
    /// No process of a part of the job is left, except for `survivors`. The job goes on.
    PartEnded {
        /// The number of the order.
        number: u64,
        /// Processes that were alive when it was ended.
        ended: u32,
        /// Processes that could not be ended.
        survivors: u32,
    },
}

/// From the host to a job's supervisor. An end of file means: end everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// End the job: SIGTERM, this many milliseconds, SIGKILL.
    Stop {
        /// Milliseconds.
        grace_ms: u64,
    },
    /// End a part of the job: what its main process, or nobody any more, is the parent of and that
    /// started in this time, and what descends from it. SIGTERM, this many milliseconds, SIGKILL.
    EndPart {
        /// The order's number.
        number: u64,
        /// The signal that the main process gets before anything else; 0 for none.
        signal: i32,
        /// From this time on, in milliseconds since boot.
        since_ms: u64,
        /// Up to this time, in milliseconds since boot.
        until_ms: u64,
        /// Milliseconds.
        grace_ms: u64,
    },
}

const STAGES: [Stage; 5] = [
    Stage::Setup,
    Stage::Directory,
    Stage::Limit,
    Stage::Program,
    Stage::Confine,
];

impl Report {
    /// As it travels.
    pub fn encode(self) -> [u8; SIZE] {
        match self {
            Self::Started { pid } => pack([1, number(pid), 0, 0, 0, 0]),
            Self::Failed { stage, errno } => pack([2, stage as u64, number(errno), 0, 0, 0]),
            Self::MainEnded {
                status,
                usage,
                gone,
                out_of_memory,
            } => pack([
                3,
                number(status),
                usage.user_us,
                usage.system_us,
                usage.peak_kib,
                u64::from(gone) | u64::from(out_of_memory) << 1,
            ]),
            Self::Gone { ended, survivors } => pack([4, ended.into(), survivors.into(), 0, 0, 0]),
            Self::PartEnded {
                number,
                ended,
                survivors,
            } => pack([5, ended.into(), survivors.into(), number, 0, 0]),
        }
    }

    /// From how it travelled; nothing if it is no report.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [kind, a, b, c, d, e] = unpack(bytes)?;
        Some(match kind {
            1 => Self::Started { pid: a as i32 },
            2 => Self::Failed {
                stage: *STAGES.get(usize::try_from(a).ok()?)?,
                errno: b as i32,
            },
            3 => Self::MainEnded {
                status: a as i32,
                usage: Usage {
                    user_us: b,
                    system_us: c,
                    peak_kib: d,
                },
                gone: e & 1 != 0,
                out_of_memory: e & 2 != 0,
            },
            4 => Self::Gone {
                ended: a as u32,
                survivors: b as u32,
            },
            5 => Self::PartEnded {
                number: c,
                ended: a as u32,
                survivors: b as u32,
            },
            _ => return None,
        })
    }
}

impl Order {
    /// As it travels.
    pub fn encode(self) -> [u8; SIZE] {
        match self {
            Self::Stop { grace_ms } => pack([1, grace_ms, 0, 0, 0, 0]),
            Self::EndPart {
                number,
                signal,
                since_ms,
                until_ms,
                grace_ms,
            } => pack([2, grace_ms, number, since_ms, until_ms, self::number(signal)]),
        }
    }

    /// From how it travelled; nothing if it is no order.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match unpack(bytes)? {
            [1, grace_ms, ..] => Some(Self::Stop { grace_ms }),
            [2, grace_ms, number, since_ms, until_ms, signal] => Some(Self::EndPart {
                number,
                signal: signal as i32,
                since_ms,
                until_ms,
                grace_ms,
            }),
            _ => None,
        }
    }
}

fn number(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

fn pack(fields: [u64; 6]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
        to.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

fn unpack(bytes: &[u8]) -> Option<[u64; 6]> {
    let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
    let mut fields = [0; 6];
    for (field, from) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
        *field = u64::from_le_bytes(from.try_into().ok()?);
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_survives_the_wire() {
        let usage = Usage {
            user_us: 1,
            system_us: u64::MAX,
            peak_kib: 3,
        };
        let ended = |gone, out_of_memory| Report::MainEnded {
            status: -1,
            usage,
            gone,
            out_of_memory,
        };
        for report in [
            Report::Started { pid: 4_194_303 },
            ended(true, false),
            ended(false, true),
            Report::Gone {
                ended: 7,
                survivors: u32::MAX,
            },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        for stage in STAGES {
            let report = Report::Failed { stage, errno: 2 };
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        let part = Report::PartEnded {
            number: 1 << 40,
            ended: 3,
            survivors: 1,
        };
        assert_eq!(Report::decode(&part.encode()), Some(part));
        let part = Order::EndPart {
            number: 9,
            signal: 59,
            since_ms: u64::MAX,
            until_ms: 1,
            grace_ms: 2,
        };
        for order in [Order::Stop { grace_ms: 500 }, part] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        assert_eq!(Report::decode(b"short"), None);
    }

    #[test]
    fn an_entry_of_the_journal_survives_its_file() {
        let killed = Killed {
            number: 305,
            name: *b"a name of 15 by\0",
            bytes: 1 << 30,
            all: u64::MAX,
        };
        assert_eq!(Killed::decode(&killed.encode()), Some(killed));
        assert_eq!(Killed::place(0), Killed::place(Killed::KEPT));
    }

    #[test]
    fn what_is_longer_or_shorter_than_it_should_be_is_not_decoded() {
        let mut bytes = encode(&vec![1_u32, 2]);
        assert_eq!(decode::<Vec<u32>>(&bytes), Some(vec![1, 2]));
        bytes.push(0);
        assert_eq!(decode::<Vec<u32>>(&bytes), None);
        assert_eq!(decode::<Vec<u32>>(&[]), None);
    }
}
