//! What a container is asked to be. Defaults are those of the preset `hardened`.

use std::path::PathBuf;
use std::time::Duration;

use crate::client::SLOW;

/// The directory of the container that is worked in, unless another one is named.
pub(crate) const WORKDIR: &str = "/workspace";
/// The hardened limit on memory: 512 MiB.
pub(crate) const MEMORY: u64 = 512 << 20;
/// The hardened limit on processes.
pub(crate) const PIDS: u64 = 256;
/// The size of `/tmp`, of which memory is the limit: 64 MiB.
pub(crate) const TMP: u64 = 64 << 20;
/// The user `nobody` of most systems.
pub(crate) const NOBODY: u32 = 65534;

/// Which container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// One of our own, made at first use and removed at the end.
    Image {
        /// The name of its image.
        image: String,
        /// Whether the image is pulled.
        pull: Pull,
    },
    /// One that runs already. The agent program is copied in and executed, and its file removed at once.
    Attached {
        /// Its name or id.
        container: String,
    },
}

/// When an image is pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pull {
    /// If the engine does not have it.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Before each container.
    Always,
}

/// What holds where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// User 65534, read-only root, no capabilities, no new privileges, 512 MiB, 256 processes, a private `/tmp` of
    /// 64 MiB.
    #[default]
    Hardened,
    /// What the engine does by itself: the image's user, a root that can be written, the engine's capabilities, no
    /// limits. The network is `none` all the same.
    Plain,
}

/// Who commands run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// This user and group, by number.
    Id {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// The owner of the workspace, and its group.
    Keep,
}

/// What of the network is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reach {
    /// A loopback of the container's own.
    #[default]
    None,
    /// The network of the host, which undoes isolation.
    Host,
    /// A network of the engine's by name, such as `bridge`.
    Named(String),
}

/// A file or directory of the host that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The path on the host, absolute.
    pub source: PathBuf,
    /// The path in the container, absolute.
    pub target: PathBuf,
    /// Whether it cannot be written.
    pub readonly: bool,
}

/// How a workspace is copied instead of mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkspaceCopy {
    /// It is copied into memory of the container when that is made. What commands change in the copy goes with the
    /// container.
    In,
    /// As [`Self::In`], and what commands changed is moved into the workspace when the environment is closed: judged as
    /// changes of a staged workspace are, all of it or nothing. If the user changed the same places meanwhile, nothing
    /// is moved, and the changes wait as a change set. They are lost with a container that ends before. Under a policy
    /// that lets nothing change, nothing comes back.
    Both {
        /// The directory that change sets are stored in: in the same mount as the workspace, and not inside it.
        sets: PathBuf,
        /// The user's home, whose tools are not to run what commands left.
        home: Option<PathBuf>,
        /// Paths in the workspace, absolute, that decide what commands may do. Changes of them are held back.
        fixed: Vec<PathBuf>,
    },
}

/// What a container is asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which container.
    pub run: Run,
    /// What holds where nothing else is said.
    pub preset: Preset,
    /// The directory of this host that is mounted to be worked in; an empty one in memory, of at most the size of
    /// [`Self::tmp`], if there is none.
    pub workspace: Option<PathBuf>,
    /// Copies the workspace instead of mounting it, into a directory in memory of at most three quarters of the limit
    /// on memory. Default: it is mounted. In a container of our own alone, without [`Self::writable`].
    pub workspace_copy: Option<WorkspaceCopy>,
    /// Whether each command gets a container of its own, with the same limits, which is removed once nothing of the
    /// command is left: then what lasts from one to the next is in a mounted directory alone. It has no sessions, and
    /// its files can be reached where the workspace is mounted, by way of one more container. Default: one container
    /// has all commands.
    pub per_command: bool,
    /// The directory of the container that is worked in.
    pub workdir: PathBuf,
    /// Whether the workspace can be written.
    pub writable: bool,
    /// What else is mounted.
    pub volumes: Vec<Volume>,
    /// Who commands run as; by the preset if nothing is said.
    pub user: Option<User>,
    /// The OCI runtime, by the name that the engine has for it.
    pub runtime: Option<String>,
    /// Whether the preset's limits are left out.
    pub unlimited: bool,
    /// Bytes of memory and swap together; by the preset if nothing is said.
    pub memory: Option<u64>,
    /// Processes and threads; by the preset if nothing is said.
    pub pids: Option<u64>,
    /// Thousandths of a processor; no limit if nothing is said.
    pub cpu_thousandths: Option<u32>,
    /// The network.
    pub network: Reach,
    /// The size of `/tmp` in bytes, in the preset `hardened`.
    pub tmp: u64,
    /// Whether it is privileged, which undoes isolation.
    pub privileged: bool,
    /// Devices of the host, each of which undoes isolation.
    pub devices: Vec<PathBuf>,
    /// Capabilities that are added, each of which undoes isolation.
    pub capabilities: Vec<String>,
    /// Whether what undoes isolation was acknowledged.
    pub acknowledge_unsafe: bool,
    /// How long the engine may take to make or to start a container. Default: 60 s. Removing one may take as long, but
    /// 20 s at most, and what the engine answers from memory a sixth of it.
    pub engine_timeout: Duration,
}

impl Options {
    /// A container of this image with everything by default: hardened, and with an empty directory to work in.
    pub fn image(image: impl Into<String>) -> Self {
        Self::of(Run::Image {
            image: image.into(),
            pull: Pull::default(),
        })
    }

    /// A container that runs already.
    pub fn attached(container: impl Into<String>) -> Self {
        Self::of(Run::Attached {
            container: container.into(),
        })
    }

    fn of(run: Run) -> Self {
        Self {
            run,
            preset: Preset::default(),
            workspace: None,
            workspace_copy: None,
            per_command: false,
            workdir: WORKDIR.into(),
            writable: false,
            volumes: Vec::new(),
            user: None,
            runtime: None,
            unlimited: false,
            memory: None,
            pids: None,
            cpu_thousandths: None,
            network: Reach::default(),
            tmp: TMP,
            privileged: false,
            devices: Vec::new(),
            capabilities: Vec::new(),
            acknowledge_unsafe: false,
            engine_timeout: SLOW,
        }
    }

    /// The limit on memory in bytes, with the preset's.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.memory.or_else(|| self.has_default_limits().then_some(MEMORY))
    }

    /// The limit on processes, with the preset's.
    pub(crate) fn pids_limit(&self) -> Option<u64> {
        self.pids.or_else(|| self.has_default_limits().then_some(PIDS))
    }

    fn has_default_limits(&self) -> bool {
        self.is_own() && self.preset == Preset::Hardened && !self.unlimited
    }

    /// The directory of this host that is mounted to be worked in.
    pub(crate) fn mounted_workspace(&self) -> Option<&PathBuf> {
        self.workspace.as_ref().filter(|_| self.workspace_copy.is_none())
    }

    /// The most bytes that the directory in memory holds that is worked in, where nothing is mounted; nothing if the
    /// kernel's own bound is all there is.
    pub(crate) fn workspace_size(&self) -> Option<u64> {
        match self.workspace_copy {
            None => Some(self.tmp),
            // Commands and the agent need the rest: without it the kernel ends them, and nobody learns that it is full.
            Some(_) => self.memory_limit().map(|memory| memory / 4 * 3),
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        matches!(self.run, Run::Image { .. })
    }

    pub(crate) fn is_hardened(&self) -> bool {
        self.is_own() && self.preset == Preset::Hardened && !self.privileged
    }
}
