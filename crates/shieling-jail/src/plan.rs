//! What a jail is to be: what stands where in its file system, what of the network it reaches, and
//! its limits. And what it is asked to start.
//!
//! A plan is made by the host from what is asked and from what it finds; the jail applies it in the
//! order given and refuses at the first thing that it cannot do.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How much stands between a command and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Nothing: a supervisor alone, for commands on the host itself.
    None,
    /// Landlock, seccomp and resource limits, without namespaces: files keep their places, and
    /// processes of the user outside can be seen.
    Landlock,
    /// Namespaces (user, mount, pid, network, ipc, uts, cgroup), Landlock and seccomp.
    Full,
}

/// What of the network can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Nothing: a network of its own, with its loopback interface down.
    None,
    /// A network of its own, with its loopback interface up.
    Loopback,
    /// The host's.
    Host,
}

/// The jail's side of a gateway: a process of the host listens in the jail's network. Only with
/// [`Network::Loopback`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gateway {
    /// The networks that are local to the jail, each an address and the length of its prefix.
    pub routes: Vec<(IpAddr, u8)>,
    /// The sockets that are made before any command starts. The host is given them in this order.
    pub sockets: Vec<Endpoint>,
}

/// Where a socket of the host is bound in the jail's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Endpoint {
    /// A socket that listens for connections.
    Tcp(SocketAddr),
    /// A socket for datagrams.
    Udp(SocketAddr),
}

/// A jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How much stands between.
    pub isolation: Isolation,
    /// The network.
    pub network: Network,
    /// The way out of it, through the host.
    pub gateway: Option<Gateway>,
    /// What `uname -n` says, at most 64 bytes.
    pub hostname: String,
    /// What stands in the file system, in this order; what comes later lies over what came before.
    /// Without namespaces only [`Entry::Bind`] and [`Entry::Temporary`] mean something: they become
    /// Landlock's rules, the second for a directory that is made *in* its target.
    pub view: Vec<Entry>,
    /// What of the view belongs to another user of the host, and is shown as this user's own.
    pub foreign: Vec<Foreign>,
    /// The only files that can be executed, as they are seen inside, with everything below a
    /// directory; anything that is seen if there is no list.
    #[serde(with = "crate::bytes")]
    pub executable: Option<Vec<PathBuf>>,
    /// The limits.
    pub limits: Limits,
    /// Where a write must fail and where one must succeed, as probed from inside before the first
    /// command.
    pub probes: Vec<Probe>,
    /// Whether one command is expected: then neither a supervisor nor a jail is made before it is asked for.
    pub once: bool,
    /// Whether the kernel kills commands before what looks after them when memory runs out, also where nothing is
    /// confined. In a sandbox it always does.
    pub killed_first: bool,
}

/// A directory of the host that belongs to another user, shown as if it were this user's: what is made in it
/// becomes that user's. Only whoever may map users on this host can do so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Where it is on the host: the source of an [`Entry::Bind`].
    #[serde(with = "crate::bytes")]
    pub source: PathBuf,
    /// Whose it is.
    pub user: u32,
    /// Whose group's it is.
    pub group: u32,
    /// Whether the jail is refused where that cannot be done. Otherwise it is shown as it is.
    pub needed: bool,
}

/// What stands at one place of the jail's file system. Every path is absolute and has no `.` and no
/// `..`; a target's missing parents are made, as directories that everyone can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A file or directory of the host, with everything that is mounted below it. Set-user-id bits
    /// and devices mean nothing in it.
    Bind {
        /// Where it is on the host. Links on the way to it are followed only if it is optional: what
        /// must be there was judged by this path, and somebody may since have put a link on it.
        #[serde(with = "crate::bytes")]
        source: PathBuf,
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// Whether it can be changed.
        writable: bool,
        /// Whether files in it can be executed.
        executable: bool,
        /// Whether it is passed over where the source is not there or cannot be reached.
        optional: bool,
    },
    /// A directory of the host that is only read, under a private layer in memory: what is written here
    /// is seen here alone, and gone with the jail. Passed over where the source is not there or a link
    /// is on the way to it. Where the kernel lays no layer over it, it is read-only, and the report of
    /// what is missing says so. Only with namespaces.
    Layered {
        /// Where it is on the host.
        #[serde(with = "crate::bytes")]
        source: PathBuf,
        /// Where it is seen. No link on the way to it is followed.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// How much is written at most in all layers together, in bytes; the first one's counts.
        bytes: u64,
        /// How many files are written at most in all layers together; the first one's counts.
        files: u64,
        /// Whether files in it can be executed.
        executable: bool,
    },
    /// A directory of the host that is only read, under a layer in another directory of the host, which takes what is
    /// written. What changes below the layer is seen after the next [`Update`](crate::message::Update) with
    /// `refresh`. No link on the way to any of these places is followed. Only with namespaces.
    Staged {
        /// Where it is on the host.
        #[serde(with = "crate::bytes")]
        source: PathBuf,
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// The layer: a directory of the host.
        #[serde(with = "crate::bytes")]
        upper: PathBuf,
        /// An empty directory beside it, for the kernel.
        #[serde(with = "crate::bytes")]
        work: PathBuf,
        /// Whether files in it can be executed.
        executable: bool,
    },
    /// An entry of a directory of the host, at its own place, as it was listed: it may be gone since, or closed
    /// to its own owner, and is then passed over. No link is followed, neither on the way nor in its place.
    Listed {
        /// Where it is on the host, and where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// Whether it can be changed.
        writable: bool,
        /// Whether files in it can be executed.
        executable: bool,
    },
    /// A private directory in memory, which can be written to and is gone with the jail.
    Temporary {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// How much it holds at most.
        bytes: u64,
        /// How many files it holds at most.
        files: u64,
        /// Its mode, such as `0o1777`.
        mode: u32,
        /// Whether files in it can be executed.
        executable: bool,
    },
    /// An empty directory that cannot be written to, also in the place of one of the host's that was
    /// put there before. Later entries can put something into it.
    Directory {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
    },
    /// A file of its own, read-only.
    File {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// What is in it.
        content: Vec<u8>,
    },
    /// A file of its own, read-only, over one that was put here before. Links to it are followed. Nothing there
    /// means nothing to do.
    Over {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// What is in it.
        content: Vec<u8>,
    },
    /// A symbolic link.
    Link {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// What it says.
        #[serde(with = "crate::bytes")]
        to: PathBuf,
    },
    /// The jail's own processes, read-only.
    Proc {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
    },
    /// A minimal `/dev`: null, zero, full, random, urandom, tty, own terminals, `shm`.
    Dev {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// How much `shm` in it holds at most, in bytes.
        shm: u64,
    },
    /// What was put here before can no longer be reached: a file is not found, a directory is empty.
    /// The last name of the path is not followed if it is a link, and no link on the way to it is.
    /// Nothing there means nothing to do.
    Hide {
        /// What is hidden.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
    },
    /// What was put here before, once more over itself, so that it can be neither renamed nor removed.
    /// Taken from the view and never from the host, and no link to it is followed: whoever can write
    /// here can put a link to anything in its place. Nothing there, or a link, means nothing to do.
    Again {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
        /// Whether it can be changed.
        writable: bool,
        /// Whether files in it can be executed.
        executable: bool,
    },
    /// What was put here before, a second time in a place that no path leads to. The mounts stand there that
    /// keep names ([`Update::hold`](crate::message::Update::hold)): what is mounted on in any of its places can
    /// be renamed in none, and where nobody sees the mount, no rename and no link has to cross it.
    Unseen {
        /// Where it is seen.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
    },
    /// What was put here before can still be read, and no longer changed, replaced or removed. Nothing
    /// there means nothing to do.
    Protect {
        /// What is protected.
        #[serde(with = "crate::bytes")]
        target: PathBuf,
    },
}

impl Entry {
    /// Where it is seen.
    pub fn target(&self) -> &Path {
        match self {
            Self::Bind { target, .. }
            | Self::Layered { target, .. }
            | Self::Staged { target, .. }
            | Self::Listed { target, .. }
            | Self::Temporary { target, .. }
            | Self::Directory { target }
            | Self::File { target, .. }
            | Self::Over { target, .. }
            | Self::Link { target, .. }
            | Self::Proc { target }
            | Self::Dev { target, .. }
            | Self::Hide { target }
            | Self::Again { target, .. }
            | Self::Unseen { target }
            | Self::Protect { target } => target,
        }
    }
}

/// What all processes of a jail may use together, and each alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of all processes together, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub pids: Option<u64>,
    /// Processor time per time that passes, in thousandths.
    pub cpu_thousandths: Option<u64>,
    /// Open files of each process, in number.
    pub open_files: Option<u64>,
}

/// Something tried from inside before the first command, confined as it will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Probe {
    /// A file must not be made in this directory.
    NoWrite(#[serde(with = "crate::bytes")] PathBuf),
    /// A file must be made in this directory, and removed.
    Write(#[serde(with = "crate::bytes")] PathBuf),
    /// This must not be found, or be empty.
    Hidden(#[serde(with = "crate::bytes")] PathBuf),
    /// A connection to a host that is not this one must fail at once.
    NoConnect,
}

/// A program to start in the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its file, as it is seen inside.
    pub program: Vec<u8>,
    /// Its arguments; the first is its name for itself.
    pub argv: Vec<Vec<u8>>,
    /// Its whole environment, as `NAME=value`.
    pub variables: Vec<Vec<u8>>,
    /// Where it starts, as it is seen inside.
    pub directory: Vec<u8>,
    /// The largest file that it may write, in bytes.
    pub file_size: Option<u64>,
    /// Whether standard input, output and error are one terminal, which becomes its own.
    pub terminal: bool,
}
