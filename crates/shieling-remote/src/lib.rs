//! The environment protocol: any [`Environment`](shieling::environment::Environment) served over one byte stream,
//! and an environment at the near end of it. `docs/protocol.md` is its specification.
//!
//! ```text
//! Shieling ─► Remote ═══ any AsyncRead + AsyncWrite ═══ serve ─► Local, Sandbox, Memory
//!             judged here                                        runs there, ends with the stream
//! ```
//!
//! What is judged, asked and recorded stays at the near end; only what was approved is sent. The far side has the
//! same supervisor as ever, so that trees, sessions, terminals and files are what they are elsewhere. A link that is
//! lost ends every command in `lost`, and everything that the far side ran.
//!
//! A place is reached by a [`Transport`](transport::Transport), which starts the agent program there:
//! [`Remote::over`] connects it. The feature `agent` carries that program, and has the transport over `ssh`.

pub mod agent;
mod carry;
mod copy;
mod far;
mod fault;
mod flow;
mod frame;
mod link;
mod message;
mod near;
mod park;
#[cfg(feature = "agent")]
pub mod ssh;
pub mod transport;
mod wire_path;

pub use copy::{Copied, CopyError, CopyErrorKind, CopyOptions, MAX_DEPTH, Skipped};
pub use far::{Kills, Served, serve};
pub use link::{LinkError, Timing};
pub use message::Surroundings;
pub use near::{Base, Hides, Remote, Seen};
