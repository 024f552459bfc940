//! Errors of engines and containers, each with what the caller can do about it as data.

use std::path::PathBuf;
use std::time::Duration;

use shieling_remote::{CopyError, CopyErrorKind};

/// Why an engine gave no answer, or a refusing one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Its socket cannot be connected to.
    #[error("the engine at `{endpoint}` cannot be reached: {why}")]
    Unreachable {
        /// Its address.
        endpoint: String,
        /// What the system said.
        why: String,
    },
    /// It has not answered in time.
    #[error("{engine} at `{endpoint}` has not answered the request {what} within {} s", seconds(*after_ms))]
    Silent {
        /// `docker`, `podman`, or `the engine` if it has never answered.
        engine: &'static str,
        /// Its address.
        endpoint: String,
        /// What it was asked.
        what: &'static str,
        /// How long it was waited for.
        after_ms: u64,
    },
    /// What answered does not speak the engines' protocol.
    #[error("what answers at `{endpoint}` is no engine: {why}")]
    Foreign {
        /// Its address.
        endpoint: String,
        /// What was wrong.
        why: String,
    },
    /// It refused.
    #[error("the engine refused the request {what}: {message}")]
    Refused {
        /// What it was asked.
        what: &'static str,
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
}

/// Why no command can run in a container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// No engine answers where one is expected.
    #[error("no container engine answers; tried {}", .tried.join("; "))]
    NoEngine {
        /// Each address, with what came of it.
        tried: Vec<String>,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A start failed, and the engine has not confirmed that its container is removed.
    #[error("{error}; the container `{container}` may be left")]
    MayBeLeft {
        /// Why the start failed.
        error: Box<ContainerError>,
        /// The name or id of the container.
        container: String,
    },
    /// The options cannot hold together.
    #[error("{what}")]
    Options {
        /// What is wrong.
        what: String,
        /// What to do.
        instead: String,
    },
    /// Something that undoes isolation was not acknowledged.
    #[error("{what} would undo the container's isolation: {because}")]
    Unsafe {
        /// The option and its value.
        what: String,
        /// Why it does.
        because: String,
    },
    /// Attaching failed, and the engine has not confirmed that the agent program is removed from the container.
    #[error("{error}; the agent program may be left in `{directory}` of the container `{container}`")]
    ProgramMayBeLeft {
        /// What the engine was asked.
        error: EngineError,
        /// The container, as the caller named it.
        container: String,
        /// The directory in it.
        directory: String,
    },
    /// It was closed while its container started.
    #[error("the start of a container was given up, since everything was closed; that container may be left")]
    Closed,
    /// The image is not there, and is not to be pulled, or cannot be.
    #[error("there is no image `{image}`: {why}")]
    NoImage {
        /// Its name.
        image: String,
        /// Why it was not pulled.
        why: String,
    },
    /// The image is for other processors than the engine's.
    #[error("the image `{image}` is for {has}, and the engine's processors are {needs}")]
    Architecture {
        /// Its name.
        image: String,
        /// The architecture of the image.
        has: String,
        /// The architecture of the engine.
        needs: String,
    },
    /// The container to attach to does not run.
    #[error("the container `{container}` {why}")]
    NotRunning {
        /// Its name.
        container: String,
        /// What it does instead.
        why: String,
    },
    /// There is no space left where the engine keeps containers.
    #[error("the engine's disk is full: {message}")]
    DiskFull {
        /// Its words.
        message: String,
    },
    /// The engine ignored a limit or a part of the isolation.
    #[error("the engine has not applied {what}: asked for {asked}, in force is {found}")]
    NotApplied {
        /// What was asked for.
        what: &'static str,
        /// Its value.
        asked: String,
        /// What there is.
        found: String,
    },
    /// The agent program is not known, or cannot be put where the engine needs it.
    #[error("the agent program cannot be used: {why}")]
    Agent {
        /// Why.
        why: String,
    },
    /// The agent program started and gave no answer.
    #[error("the container started, and the agent program in it did not answer: {why}")]
    NoAnswer {
        /// What the link says, with what the agent printed.
        why: String,
    },
    /// The workspace cannot be written by the container's user, though that was asked for.
    #[error("the user {user} of the container cannot write the workspace `{}`", .workspace.display())]
    NotWritable {
        /// The user inside.
        user: String,
        /// The workspace on this host.
        workspace: PathBuf,
    },
    /// A directory could not be copied.
    #[error("{what} could not be copied: {error}")]
    Copy {
        /// Which directory, and which way.
        what: String,
        /// Why the copy stopped.
        error: CopyError,
    },
    /// A container ended between two calls, and with it its copy of the workspace. A new one runs.
    #[error(
        "the container had ended since the last call, and with it its `/tmp` and all that was changed in its copy of \
         the workspace; this call did nothing, and a new container has a new copy of the workspace"
    )]
    CopyLost,
    /// A file of this host cannot be looked at.
    #[error("`{}` cannot be used: {why}", .path.display())]
    Path {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
}

impl ContainerError {
    /// What to do about it, if something can be said.
    #[must_use]
    pub fn instead(&self) -> Option<String> {
        Some(match self {
            Self::NoEngine { .. } => "start Docker or Podman (for Podman: `systemctl --user start podman.socket`), or \
                                      set DOCKER_HOST to where it listens"
                .to_owned(),
            Self::Engine(EngineError::Unreachable { .. }) => {
                "see whether it runs, and whether you may use its socket".to_owned()
            }
            Self::Engine(EngineError::Silent { engine, .. })
            | Self::ProgramMayBeLeft {
                error: EngineError::Silent { engine, .. },
                ..
            } => match *engine {
                "docker" => "see whether `docker ps` answers, and restart the engine if it hangs: \
                             `systemctl restart docker`"
                    .to_owned(),
                "podman" => "see whether `podman ps` answers, and restart the engine if it hangs: \
                             `systemctl --user restart podman.socket podman`, without `--user` for root's"
                    .to_owned(),
                _ => "see whether the engine hangs, and restart it".to_owned(),
            },
            Self::Closed => {
                "the next start removes what is left; `docker ps --filter label=dev.shieling` (or `podman ps`) \
                             shows it"
                    .to_owned()
            }
            Self::MayBeLeft { error, container } => {
                let removed = format!(
                    "the next start removes what is left, or `docker rm -f {container}` (`podman rm -f {container}`) does"
                );
                error
                    .instead()
                    .map_or(removed.clone(), |instead| format!("{instead}; {removed}"))
            }
            Self::Engine(EngineError::Foreign { .. } | EngineError::Refused { .. }) | Self::ProgramMayBeLeft { .. } => {
                return None;
            }
            Self::Options { instead, .. } => instead.clone(),
            Self::Unsafe { .. } => "leave it out, or add `--acknowledge-unsafe` if that is what you want".to_owned(),
            Self::NoImage { .. } => {
                "check the name, or pull it with `--pull auto`, or build or load it into the engine first".to_owned()
            }
            Self::Architecture { .. } => "use an image for these processors".to_owned(),
            Self::NotRunning { .. } => "start the container first, or use `--image NAME`".to_owned(),
            Self::DiskFull { .. } => "free space for the engine, for example with `docker system prune`".to_owned(),
            Self::NotApplied { what, .. } if *what == "the limit on memory" || *what == "the limit on processes" => {
                "run an engine that can limit (rootless engines need control groups of version 2), or go without \
                 these limits: with `--unlimited`, and without `--memory` and `--pids`"
                    .to_owned()
            }
            Self::NotApplied { .. } => return None,
            Self::Agent { .. } | Self::NoAnswer { .. } => return None,
            Self::NotWritable { .. } => {
                "run as the owner of the workspace with `--user keep`, or as another with `--user UID:GID`".to_owned()
            }
            Self::Copy { error, .. } if error.kind == CopyErrorKind::Full => {
                "copy less, or allow the container more with `--memory`: directories in memory count as its memory"
                    .to_owned()
            }
            Self::Copy { error, .. } if error.kind == CopyErrorKind::Denied => {
                "copy to a directory that commands can write: for the workspace with `--workdir` one that the image \
                 does not have, and that no `--volume` lies in; or run as its owner with `--user UID:GID`"
                    .to_owned()
            }
            Self::CopyLost => "look at what is there, do again what is missing, and make this call again".to_owned(),
            Self::Copy { .. } | Self::Path { .. } => return None,
        })
    }
}

/// A duration in seconds, with a fraction if there is one.
fn seconds(milliseconds: u64) -> f64 {
    Duration::from_millis(milliseconds).as_secs_f64()
}

/// The engine's words of a refusal as what they mean.
pub(crate) fn meant(error: EngineError) -> ContainerError {
    match &error {
        EngineError::Refused { message, .. } if message.contains("no space left on device") => {
            ContainerError::DiskFull {
                message: message.clone(),
            }
        }
        _ => ContainerError::Engine(error),
    }
}
