//! The environment `container`: commands in a container of Docker or Podman.
//!
//! ```text
//! Container ─► engine's socket: create, attach, start ─► agent as pid 1 ═══ streams of the container ═══ Remote
//! ```
//!
//! The agent program is mounted into the container, takes the place of the image's entrypoint, and serves the
//! environment protocol of `shieling-remote` over its standard streams. Deadlines, process trees, sessions, terminals
//! and files are then what they are in any other environment, and nothing of the image is needed for them.
//!
//! The workspace is mounted, read-only by default, or copied into memory of the container. Directories are copied over
//! the same protocol, so that nothing of the image is needed for it, and a read-only root or a directory in memory takes
//! them: [`Container::copy_in`], [`Container::copy_out`].
//!
//! What an engine was asked for is compared with what it made, as its inspection tells and as it looks from inside. A
//! limit that is not in force makes the start fail.

mod agent;
mod attach;
mod check;
mod client;
mod discover;
mod environment;
mod error;
mod isolation;
mod options;
mod owner;
mod spec;

pub use client::{Endpoint, Engine};
pub use discover::{Choice, Surroundings, discover};
pub use environment::{Container, Progress};
pub use error::{ContainerError, EngineError};
pub use options::{Options, Preset, Pull, Reach, Run, User, Volume, WorkspaceCopy};
pub use shieling_remote::{Copied, CopyError, CopyErrorKind, CopyOptions, Skipped};
